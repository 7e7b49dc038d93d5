"""The page in a real browser, of an agent in a real ring: it lives without being loaded again, and says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import hypot
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.support.wait import WebDriverWait

from roundelay.agents.data.models import FinalResiduals, Model, ModelNotes, StoredModel
from roundelay.agents.site.status import MeterReading, PrivacyStatus
from roundelay.regression.result import Result
from tests.agents.live_ring import NAMES, TOKEN, LiveRing, live_ring
from tests.agents.processes import PATIENCE
from tests.browser import open_browser, prefer, requested, resize
from tests.shown.examples import binomial, hostile

HOSTILE = "<img src=x onerror=\"window.fooled=1\"> & 'quoted' averyveryveryveryveryveryveryveryverylongword"
PRIVACY = PrivacyStatus(
    12,
    (
        MeterReading("The curvature", 0.01, 1.0, "Least squares on the tokens"),
        MeterReading("The gradient", 0.25, 0.5, "Differences of tokens"),
        MeterReading("The position", float("inf"), 1.0, HOSTILE),
        MeterReading("The dual", 3.0, 1.0, "Sums of tokens"),
    ),
    f"Two neighbours would know it all. {HOSTILE}",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with open_browser(tmp_path_factory.mktemp("profile")) as chrome:
        yield chrome


@pytest.fixture
def chrome(browser: Chrome) -> Chrome:
    """A wide window by day."""
    browser.get("about:blank")
    resize(browser, 1200)
    prefer(browser, "light")
    browser.get_log("browser"), requested(browser)
    return browser


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[LiveRing]:
    with live_ring(tmp_path) as ring:
        yield ring


def until(chrome: Chrome, script: str, wanted: Callable[[Any], bool] = bool) -> Any:
    """Wait until an expression on the page is as wanted."""
    WebDriverWait(chrome, PATIENCE, poll_frequency=0.02).until(lambda _: wanted(value(chrome, script)), script)
    return value(chrome, script)


def value(chrome: Chrome, script: str) -> Any:
    return chrome.execute_script(f"return {script}")


def text(selector: str) -> str:
    return f"[...document.querySelectorAll('{selector}')].map(node => node.textContent).join(' ')"


@contextmanager
def shown(chrome: Chrome, ring: LiveRing, method: bool = True) -> Iterator[None]:
    """Open the page, wait until it shows something, and look in the end whether the browser found anything wrong."""
    chrome.get(ring.address)
    until(chrome, "document.getElementById('connection').dataset.state === 'live'")
    if method:
        chrome.execute_script("document.getElementById('method').click()")
    yield
    errors = chrome.get_log("browser")
    chrome.get("about:blank")
    assert errors == []


def test_it_changes_as_the_run_goes_on_and_is_never_loaded_again(chrome: Chrome, ring: LiveRing) -> None:
    with shown(chrome, ring):
        chrome.execute_script("window.sameAsBefore = true")
        until(chrome, "document.getElementById('series-unrest') !== null")
        hop, line = (
            value(chrome, text("#hop")),
            value(chrome, "document.getElementById('series-unrest').getAttribute('d')"),
        )
        until(chrome, text("#hop"), lambda now: int(now.replace(",", "")) > int(hop.replace(",", "")) + 10)
        until(chrome, "document.getElementById('series-unrest').getAttribute('d')", lambda now: now != line)
        assert value(chrome, "window.sameAsBefore")
        root = ring.address.partition("?")[0]
        addresses = [address for address in requested(chrome) if not address.startswith("data:")]
        assert all(address.startswith(root) for address in addresses)
        assert addresses.count(root + "live") == 1 == addresses.count(ring.address)
        assert value(chrome, "location.href") == root, "the token does not stay in the address"
        assert value(chrome, text("#site")) == NAMES[0]
        assert value(chrome, text("#ring text")) == " ".join(NAMES)
        assert value(chrome, "document.querySelectorAll('#ring .arc.up').length") == 2
        for name in ("unrest", "primal", "dual"):
            assert value(chrome, f"document.getElementById('series-{name}') !== null")
        assert value(chrome, "document.getElementById('tolerance') !== null")
        assert "unrest" in value(chrome, "document.querySelector('#chart svg').getAttribute('aria-label')")


def test_the_token_goes_round_the_circle(chrome: Chrome, ring: LiveRing) -> None:
    with shown(chrome, ring):
        seen: set[tuple[str, str]] = set()
        places: set[str] = set()

        def all_seen(token: list[str]) -> bool:
            x, y, place = token
            seen.add((x, y))
            places.add(place)
            return len(places) == len(NAMES) and len(seen) > len(NAMES)

        script = "['cx', 'cy', 'data-place'].map(name => document.getElementById('token').getAttribute(name))"
        until(chrome, script, all_seen)
        width, height = value(chrome, "document.querySelector('#ring svg').getAttribute('viewBox')").split()[2:]
        distances = {round(hypot(float(x) - float(width) / 2, float(y) - float(height) / 2), 1) for x, y in seen}
        assert len(distances) == 1, "it stays on the circle"
        assert "estimate" in until(chrome, text("#ring-caption"))


def test_a_paused_agent_says_so_and_goes_on_when_told(chrome: Chrome, ring: LiveRing) -> None:
    with shown(chrome, ring):
        ring.call(ring.agents[0].pause)
        assert "Paused" in until(chrome, text("#doing"), lambda now: "Paused" in now)
        assert value(chrome, text("#announcement")).startswith("Paused")
        ring.until(lambda: ring.agents[0].station.journal.inbox() is not None)
        hop = value(chrome, text("#hop"))
        ring.call(ring.agents[0].resume)
        until(chrome, text("#hop"), lambda now: now != hop)
        until(chrome, text("#doing"), lambda now: "Fitting" in now)


def test_a_broken_link_is_down_until_it_is_up_again(chrome: Chrome, ring: LiveRing) -> None:
    with shown(chrome, ring):
        assert value(chrome, text(".banner")) == ""
        ring.cables[0].reason = f"Nobody answers. {HOSTILE}"
        ring.wait(ring.cables[1].pull())
        row = f"tr[data-neighbour={NAMES[1]}]"
        until(chrome, text(f"{row} .badge"), lambda now: now == "no connection")
        assert f"There is no connection to {NAMES[1]}" in until(chrome, text(".banner"))
        assert HOSTILE in value(chrome, text(f"{row} td:last-child"))
        assert value(chrome, "document.querySelectorAll('#ring .arc.down').length") == 1
        assert value(chrome, "[window.fooled, document.images.length]") == [None, 0]
        ring.wait(ring.cables[1].plug())
        until(chrome, text(f"{row} .badge"), lambda now: now == "connected")
        until(chrome, text(".banner"), lambda now: now == "")
        hop = value(chrome, text("#hop"))
        until(chrome, text("#hop"), lambda now: now != hop)


def test_a_refused_message_is_told(chrome: Chrome, ring: LiveRing) -> None:
    with shown(chrome, ring):
        ring.forge_a_baton()
        assert "refused 1 message" in until(chrome, text(".banner"), lambda now: "refused" in now)
        assert "1 hand-over was refused" in until(chrome, text("#journal"), lambda now: "refused" in now)


def test_the_privacy_meter(chrome: Chrome, ring: LiveRing) -> None:
    with shown(chrome, ring):
        assert value(chrome, text("#privacy")) == "Nothing has been measured yet."
        ring.watches[0].privacy = PRIVACY
        until(chrome, "document.querySelectorAll('.meter').length", lambda count: count == 4)
        script = "[...document.querySelectorAll('.meter')].map(meter => [meter.getAttribute('aria-valuenow'), meter.firstChild.style.width])"
        assert value(chrome, script) == [["99", "99%"], ["50", "50%"], ["0", "0%"], ["0", "0%"]]
        assert HOSTILE in value(chrome, text("#privacy > p"))
        assert value(chrome, "[window.fooled, document.images.length]") == [None, 0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_has_nothing_beside_it(chrome: Chrome, ring: LiveRing, scheme: str) -> None:
    prefer(chrome, scheme)
    resize(chrome, 360, 740, mobile=True)
    ring.watches[0].privacy = PRIVACY
    ring.cables[0].reason = HOSTILE
    with shown(chrome, ring):
        ring.wait(ring.cables[1].pull())
        until(chrome, text(".banner"))
        until(chrome, "document.querySelectorAll('#series-dual, .meter').length >= 5")
        assert value(chrome, "[document.documentElement.scrollWidth, innerWidth]") == [360, 360]
        widest = "Math.max(...[...document.querySelectorAll('body *')].map(node => node.getBoundingClientRect().right))"
        assert value(chrome, widest) <= 360
        paper = value(chrome, "getComputedStyle(document.body).backgroundColor")
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[scheme]


def test_the_outcome_stands_at_the_top_when_it_is_over(chrome: Chrome, tmp_path: Path) -> None:
    with live_ring(tmp_path, latency=0.0, rho=3.0, tolerance=1e-6) as ring, shown(chrome, ring):
        assert until(chrome, text("#doing"), lambda now: "Every site is content" in now).startswith("Finished")
        assert value(chrome, "document.getElementById('token').hasAttribute('hidden')")
        assert "this site is content" in value(chrome, text("#chart-caption"))
        assert value(chrome, text(".banner")) == ""


def stored(result: Result | None) -> StoredModel:
    """What a ring has fitted, as its file holds it."""
    about = ModelNotes("ab" * 16, 0, 10, NAMES, "All were content.", FinalResiduals(0.0, 0.0), None, "c0ffee")
    model = Model((("age [years]", 0.5), (HOSTILE, -2.0)), 1.5, "least_squares", "y")
    return StoredModel(model, about, 5, result)


def test_in_the_end_the_model_is_there_with_its_pictures_and_nothing_is_red(chrome: Chrome, tmp_path: Path) -> None:
    with live_ring(tmp_path, latency=0.0, rho=3.0, tolerance=1e-6) as ring, shown(chrome, ring, method=False):
        ring.until(lambda: bool(ring.watches[0].outcome))
        assert value(chrome, "document.getElementById('model').hidden")
        ring.watches[0].model = stored(hostile(binomial()))
        until(chrome, "document.querySelectorAll('#model .picture').length", lambda count: count == 4)
        assert value(chrome, text("#doing")) == "Finished: the model is here, and every site has signed it."
        assert value(chrome, "document.querySelectorAll('#model tbody tr').length") == len(binomial().terms)
        assert "0.9348 (0.8912 to 0.9805)" in value(chrome, text("#model .picture"))
        assert value(chrome, "[window.fooled, document.images.length, document.scripts.length]") == [None, 0, 1]
        for number in (1, 4):
            ring.wait(ring.cables[number].pull())
        until(chrome, text(".badge"), lambda now: now == "finished finished")
        assert (
            value(chrome, text(".banner")) == "" and value(chrome, "document.querySelectorAll('.arc.down').length") == 0
        )
        chrome.get(ring.address.replace("/?", "/report.html?"))
        assert value(chrome, text("h1")).startswith("Regression of")
        assert value(chrome, "[window.fooled, document.images.length, document.scripts.length]") == [None, 0, 0]
        assert value(chrome, "getComputedStyle(document.querySelector('.facts')).display") == "grid", "its style counts"


def test_a_model_without_a_formula_has_its_coefficients_and_a_picture_of_them(chrome: Chrome, ring: LiveRing) -> None:
    ring.watches[0].model = stored(None)
    with shown(chrome, ring):
        until(chrome, "document.querySelectorAll('#model .picture').length", lambda count: count == 1)
        assert value(
            chrome, "[...document.querySelectorAll('#model tbody tr')].map(row => row.firstChild.textContent)"
        ) == ["age [years]", HOSTILE, "Intercept"]
        assert value(chrome, "document.querySelector('#model a')") is None


def test_the_words_of_the_method_are_there_for_whoever_wants_them_alone(chrome: Chrome, ring: LiveRing) -> None:
    ring.watches[0].privacy = PRIVACY
    with shown(chrome, ring, method=False):
        until(chrome, text("#doing"), lambda now: now.startswith("Fitting"))
        until(chrome, "document.querySelectorAll('.meter').length", lambda count: count == 4)
        plain = value(chrome, "document.body.innerText")
        assert all(
            word not in plain.lower()
            for word in ("admm", "residual", "unrest", "journal", "least squares on", "hop", "lap")
        )
        assert "together with Basel, Chur, Davos and Emmental" in plain and "they can only guess" in plain
        chrome.execute_script("document.getElementById('method').click()")
        until(
            chrome,
            "document.body.innerText",
            lambda now: "Residuals" in now and "PI-ADMM1" in now and "Least squares on the tokens" in now,
        )
        chrome.refresh()
        until(chrome, "document.body.innerText", lambda now: "Residuals" in now)
        chrome.execute_script("document.getElementById('method').click()")


def test_a_run_that_failed_says_why(chrome: Chrome, ring: LiveRing) -> None:
    with shown(chrome, ring):
        until(chrome, text("[aria-current=step]"), lambda now: now == "Fit")
        ring.watches[0].failed = f"The outcome is the same in all rows. {HOSTILE}"
        until(chrome, text("#doing"), lambda now: now == "Nothing could be fitted.")
        assert value(chrome, text(".banner")) == f"The outcome is the same in all rows. {HOSTILE}."
        assert value(chrome, "document.getElementById('course').hidden")
        assert value(chrome, text(".badge")) == "finished finished"
        assert value(chrome, "[window.fooled, document.images.length]") == [None, 0]


def test_a_ring_that_has_not_begun_is_shown_as_such(chrome: Chrome, tmp_path: Path) -> None:
    resize(chrome, 360, 740, mobile=True)
    with live_ring(tmp_path, begin=False) as ring, shown(chrome, ring):
        assert value(chrome, "[document.documentElement.scrollWidth, innerWidth]") == [360, 360]
        assert value(chrome, text("#doing")) == f"Waiting for {NAMES[1]} and {NAMES[4]}, who can't be reached yet."
        assert value(chrome, text(".badge")) == "not connected yet not connected yet"
        assert value(chrome, text(".banner")) == ""
        assert value(chrome, "document.getElementById('token').hasAttribute('hidden')")
        ring.wait(ring.begin())
        until(chrome, text("#hop"), lambda now: now != "0")


def test_a_lost_agent_is_looked_for_until_it_is_back(browser: Chrome, ring: LiveRing) -> None:
    browser.get(ring.address)
    until(browser, "document.getElementById('connection').dataset.state === 'live'")
    port = int(ring.address.partition("/?")[0].rpartition(":")[2])
    ring.wait(ring.close_page())
    assert "connection to the agent is lost" in until(browser, text(".banner"))
    until(browser, "document.getElementById('main').classList.contains('stale')")
    ring.wait(ring.serve(port, "another-token"))
    until(browser, text(".banner"), lambda now: "The access token is not the one of this agent" in now)
    ring.wait(ring.close_page())
    ring.wait(ring.serve(port, TOKEN))
    until(browser, "document.getElementById('connection').dataset.state === 'live'")
    assert value(browser, text(".banner")) == ""
    assert not value(browser, "document.getElementById('main').classList.contains('stale')")
