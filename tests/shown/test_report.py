"""The report: pictures that show the numbers, a document that can be read aloud, and no word of others that does anything."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome
from statsmodels.stats.proportion import proportion_confint

from roundelay.regression.result import Result
from roundelay.regression.shown.drawing import Scale, ticks_in_words
from roundelay.regression.shown.pictures import calibration, convergence, forest, pictures_of, residuals, roc, survival
from roundelay.regression.shown.report import Origin, report
from roundelay.shown.numbers import printable
from tests.browser import open_browser, prefer, requested, resize
from tests.shown.examples import HOSTILE, binomial, cox, hostile

SVG = "{http://www.w3.org/2000/svg}"
SLOPES = (0.3, 0.06, 6e-3, 9e-5, 3e-8, 3e-14)
ORIGIN = Origin("ab" * 16, 0, "c0ffee" * 10 + "beef", "The mean gradient is within the tolerance.", "", "verified")


def drawn(result: Result, name: str) -> ET.Element:
    return ET.fromstring(next(one for one in pictures_of(result) if one.name == name).drawing)


def dots(picture: ET.Element) -> list[tuple[float, float]]:
    return [(float(one.get("cx", "")), float(one.get("cy", ""))) for one in picture.iter(f"{SVG}circle")]


# ---------------------------------------------------------------- pictures


def test_dots_of_ratios_lie_by_their_logarithms_and_intervals_reach_their_ends() -> None:
    result = binomial()
    terms = result.terms[1:]
    picture = drawn(result, "forest")
    places = np.array(dots(picture))[:, 0]
    slope, start = np.polyfit([one.estimate for one in terms], places, 1)
    assert np.allclose(places, [start + slope * one.estimate for one in terms], atol=0.02) and slope > 0.0
    lines = [one for one in picture.iter(f"{SVG}line") if one.get("class") == "interval"]
    ends = [(float(one.get("x1", "")), float(one.get("x2", ""))) for one in lines if one.get("y1") == one.get("y2")]
    assert np.allclose(
        ends, [(start + slope * (one.low or 0.0), start + slope * (one.high or 0.0)) for one in terms], atol=0.02
    )
    neutral = next(one for one in picture.iter(f"{SVG}line") if one.get("class") == "neutral")
    assert float(neutral.get("x1", "")) == pytest.approx(start, abs=0.02)
    said = picture.find(f"{SVG}title")
    assert said is not None and "age 0.9348 (0.8912 to 0.9805)" in (said.text or "")


def test_coefficients_in_units_that_are_far_apart_are_drawn_in_their_errors() -> None:
    terms = tuple(replace(one, ratio=None, ratio_low=None, ratio_high=None) for one in binomial().terms)
    together = binomial(ratio="", terms=terms)
    apart = replace(together, terms=(*terms[:-1], replace(terms[-1], estimate=7e4, std_error=1e4, low=5e4, high=9e4)))
    for result, words in ((together, "in the units of the data"), (apart, "in its standard errors")):
        assert words in "".join(drawn(result, "forest").itertext())
    places = np.array(dots(drawn(apart, "forest")))[:, 0]
    scores = [one.estimate / (one.std_error or 1.0) for one in apart.terms[1:]]
    assert np.corrcoef(places, scores)[0, 1] == pytest.approx(1.0, abs=1e-6)


def test_a_ratio_that_nobody_knows_has_an_arrow_and_does_not_squeeze_the_others() -> None:
    terms = binomial().terms
    wild = replace(terms[1], estimate=20.0, ratio=math.exp(20.0), ratio_low=1e-200, ratio_high=1e300)
    picture = drawn(binomial(terms=(terms[0], wild, *terms[2:])), "forest")
    assert [one.get("class") for one in picture.iter(f"{SVG}path")] == ["interval", "interval"]
    places = np.array(dots(picture))
    assert (places[:, 0] > 0.0).all() and (places[:, 0] < 400.0).all() and np.ptp(places[1:, 0]) > 5.0


def test_intervals_of_the_calibration_are_wilson_s() -> None:
    result = binomial()
    picture = drawn(result, "calibration")
    lines = [one for one in picture.iter(f"{SVG}line") if one.get("class") == "interval"]
    shown = [one for one in result.calibration if one.rows]
    assert len(lines) == len(dots(picture)) == len(shown) == 9
    spans = [
        proportion_confint(round((one.observed or 0.0) * (one.rows or 0.0)), one.rows, method="wilson") for one in shown
    ]
    drawn_spans = np.array([(float(one.get("y1", "")), float(one.get("y2", ""))) for one in lines])
    slope, start = np.polyfit(np.ravel(spans), drawn_spans.ravel(), 1)
    assert np.allclose(drawn_spans.ravel(), start + slope * np.ravel(spans), atol=0.05) and slope < 0.0


def test_no_picture_shows_a_small_count() -> None:
    picture = residuals(binomial())
    assert picture is not None and binomial().residuals is not None
    bars = list(ET.fromstring(picture.drawing).iter(f"{SVG}rect"))
    hidden = [one.get("y") for one, count in zip(bars, binomial().residuals.counts, strict=True) if count is None]  # type: ignore[union-attr]
    assert len(hidden) > 1 and len(set(hidden)) == 1, "all of them are drawn alike"


def test_questions_are_counted_in_whole_numbers_and_two_make_no_picture() -> None:
    words = [one.text for one in drawn(binomial(slopes=SLOPES[:4]), "convergence").iter(f"{SVG}text")]
    assert [one for one in words if one in ("1", "1.5", "2", "2.5", "3", "4")] == ["1", "2", "3", "4"]
    assert convergence(binomial(slopes=SLOPES[:2])) is None


def test_a_result_without_a_part_has_no_picture_of_it() -> None:
    assert [one.name for one in pictures_of(cox())] == ["forest", "survival"]
    assert [one(binomial()) for one in (survival, convergence)] == [None, None]
    only_constant = binomial(terms=binomial().terms[:1], calibration=(), roc=None, residuals=None)
    assert (
        pictures_of(only_constant) == ()
        and forest(only_constant) is calibration(only_constant) is roc(only_constant) is None
    )
    report(only_constant)


@pytest.mark.parametrize(("low", "high", "logarithmic"), [(0.0, 1.0, False), (-3.2e-9, 7e-9, False), (1e5, 9e8, False), (0.91, 1.12, True), (1e-14, 1.0, True), (0.2, 9.0, True)])  # fmt: skip
def test_ticks_are_round_inside_and_told_apart(low: float, high: float, logarithmic: bool) -> None:
    ticks = Scale(low, high, 0.0, 100.0, logarithmic).ticks
    assert 2 <= len(ticks) <= 8 and all(low * (1 - 1e-9) - 1e-20 <= one <= high * (1 + 1e-9) for one in ticks)
    assert len(set(ticks_in_words(ticks))) == len(ticks)


# ---------------------------------------------------------------- the document


class Elements(HTMLParser):
    """The names of all elements, their attributes, and the text of those that are not style."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, "every element is closed where it was opened"

    def handle_data(self, data: str) -> None:
        self.text += data * (self.open[-1:] != ["style"])


@pytest.mark.parametrize("result", [binomial(slopes=SLOPES), cox(), hostile(binomial(slopes=SLOPES)), hostile(cox())])
def test_it_is_whole_needs_nothing_and_can_be_read_aloud(result: Result) -> None:
    document = report(result, origin=replace(ORIGIN, digest=HOSTILE, reason=HOSTILE, doubt=HOSTILE, run=HOSTILE))
    found = Elements(document)
    assert found.open == []
    assert found.names.isdisjoint({"script", "img", "link", "iframe", "object", "a", "base", "form"})
    names = {name for name, _ in found.attributes}
    assert not any(name.startswith("on") or name in ("src", "href", "style", "srcset") for name in names)
    assert "http" not in re.sub(r'xmlns="http://www.w3.org/2000/svg"|http-equiv', "", document)
    ids = [value for name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    for name, value in found.attributes:
        assert name != "aria-labelledby" or value in ids
    assert document.count("<svg") == document.count('role="img"') > 0
    assert document.count("<table") == document.count("<caption")
    assert printable(HOSTILE) in found.text and "\x1b" not in document


def test_what_is_not_known_of_the_signatures_is_said() -> None:
    assert "has signed, verified" in report(binomial(), origin=ORIGIN)
    unchecked = report(binomial(), origin=replace(ORIGIN, signed="not checked"))
    assert "has signed, verified" not in unchecked and "was not checked" in unchecked
    assert "nothing was signed" in report(binomial())
    assert "Not as agreed: A site lied." in report(binomial(), origin=replace(ORIGIN, doubt="A site lied."))
    assert "has not converged" in report(binomial(converged=False))


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with open_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser_it_asks_for_nothing_fits_a_telephone_and_runs_nothing(
    chrome: Chrome, tmp_path: Path, scheme: str
) -> None:
    file = tmp_path / "report.html"
    file.write_text(report(hostile(binomial(slopes=SLOPES)), origin=replace(ORIGIN, doubt=HOSTILE)), encoding="utf-8")
    resize(chrome, 360, 740, mobile=True)
    prefer(chrome, scheme)
    requested(chrome), chrome.get_log("browser")
    chrome.get(file.as_uri())
    assert requested(chrome) == [file.as_uri()]
    assert chrome.get_log("browser") == []
    assert chrome.execute_script("return [window.fooled, document.images.length, document.scripts.length]") == [
        None,
        0,
        0,
    ]
    assert chrome.execute_script("return document.documentElement.scrollWidth") == 360
    paper = chrome.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[scheme]
    chrome.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": "print", "features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    assert chrome.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", (
        "paper is white"
    )
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen"})
    size = "return Math.min(...[...document.querySelectorAll('.picture text')].map(node => node.getBoundingClientRect().height))"
    assert chrome.execute_script(size) > 9.0, "letters of pictures can be read"
