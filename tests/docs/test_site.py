"""The site of the documentation: it is built without a warning and without the network, holds together, and works in a browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from html import unescape as html_unescape
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait
from typer.main import get_command

import roundelay as rl
from roundelay.cli.app import app
from roundelay.registry import registered
from tests.browser import open_browser, prefer, requested, resize
from tests.docs.pages import PAGES, ROOT, links, tokens

PATIENCE = 300.0
# What a page loads by itself, as far as HTML says it.
LOADS = {"script": "src", "img": "src", "source": "src", "iframe": "src", "object": "data", "link": "href"}
NOT_LOADED = {"canonical", "index", "search", "next", "prev", "author"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make docs` builds, from a copy, without running the tutorials."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("tutorials", "__pycache__"))
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("out"))
    for beside in ROOT.glob("*.md"):
        shutil.copy(beside, folder)
    options = ["-W", "--keep-going", "--quiet", "-b", "html", "-D", "plot_gallery=0", "-d", str(folder / "doctrees")]
    # Whoever asks the network is refused.
    nowhere = {f"{kind}_proxy": "http://127.0.0.1:9" for kind in ("http", "https", "all")}
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(folder / "docs"), str(folder / "html")],
        env={**os.environ, **nowhere}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "html"


@dataclass
class Page(HTMLParser):
    """Where a page leads, what it loads, and what in it can be led to."""

    leads: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.places.append(given["id"])
        if tag == "a" and "href" in given:
            self.leads.append(given["href"])
        if tag in LOADS and LOADS[tag] in given and given.get("rel") not in NOT_LOADED:
            self.loads.append(given[LOADS[tag]])


@cache
def parsed(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def is_elsewhere(link: str) -> bool:
    """Whether it leads to another host, in the form that such a link must have: nobody can be asked whether it is there."""
    parts = urlsplit(link)
    if not parts.scheme and not parts.netloc:
        return False
    well_formed = parts.scheme == "https" and re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc)
    assert well_formed or parts.scheme == "mailto", f"{link} is not the address of a page of another host."
    return True


def test_no_link_is_broken(site: Path) -> None:
    broken = []
    for path in sorted(site.rglob("*.html")):
        for link in parsed(path).leads + parsed(path).loads:
            if is_elsewhere(link):
                continue
            parts = urlsplit(link)
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if not target.is_file():
                broken.append(f"{path.relative_to(site)}: {link} is no page")
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in parsed(target).places:
                broken.append(f"{path.relative_to(site)}: {link} has no such place")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        assert [load for load in parsed(path).loads if is_elsewhere(load)] == [], path
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"(?:url\(\s*['\"]?|@import\s+['\"]?)((?:https?:)?//[^)'\"]+)", text) == [], path


def test_pages_hold_together_on_a_code_host() -> None:
    """Links of Markdown lead to files of the repository, and to headings as code hosts name them."""
    broken = []
    for page in PAGES:
        for link in links(page):
            if is_elsewhere(link):
                continue
            parts = urlsplit(link)
            target = ((ROOT / page).parent / parts.path).resolve() if parts.path else ROOT / page
            if not target.exists():
                broken.append(f"{page}: {link} is no file")
            elif parts.fragment and parts.fragment not in headings(target.relative_to(ROOT).as_posix()):
                broken.append(f"{page}: {link} has no such heading")
    assert broken == []


def headings(page: str) -> set[str]:
    """The anchors of a page: small letters, no marks, a hyphen for a space, a number where one comes again."""
    found: dict[str, int] = {}
    for before, token in pairwise(tokens(page)):
        if before.type == "heading_open":
            words = "".join(child.content for child in token.children or ())
            slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            found[slug] = found.get(slug, -1) + 1
    return {f"{slug}-{k}" if k else slug for slug, times in found.items() for k in range(times + 1)}


def test_the_door_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize(
    "place", ["roundelay", "roundelay.algorithms", "roundelay.estimators", "roundelay.kernels", "roundelay.privacy"]
)
def test_all_that_is_public_has_one_entry(site: Path, place: str) -> None:
    entries = [entry for path in (site / "reference").glob("*.html") for entry in parsed(path).places]
    module, looked_at = import_module(place), 0
    for name in getattr(module, "__all__", dir(module)):
        thing = getattr(module, name)
        if (
            not name.startswith("_")
            and callable(thing)
            and str(getattr(thing, "__module__", "")).startswith("roundelay.")
        ):
            full = f"roundelay.{name}" if getattr(rl, name, None) is thing else f"{place}.{name}"
            assert entries.count(full) == 1, full
            looked_at += 1
    assert looked_at > 5


def test_each_update_is_mathematics(site: Path) -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in (site / "reference").glob("*.html"))
    for method in registered(rl.Algorithm).values():
        entry = texts.split(f'id="roundelay.{method.__name__}"')[1].split('<dl class="py class">')[0]
        assert "<mtr>" in entry, method.__name__


def test_each_command_has_its_help(site: Path) -> None:
    text = " ".join(
        html_unescape(re.sub("<[^>]+>", "", (site / "reference/commands.html").read_text(encoding="utf-8"))).split()
    )

    def look(command: Any, path: str) -> None:
        assert f"{path}¶" in text, path
        for parameter in command.params:
            for word in getattr(parameter, "opts", ()):
                assert word in text, (path, word)
        for name, inner in getattr(command, "commands", {}).items():
            look(inner, f"{path} {name}")

    look(get_command(app), "roundelay")


def test_words_of_the_glossary_can_be_led_to(site: Path) -> None:
    assert {"term-unit", "term-share-c-i", "term-ledger"} <= set(parsed(site / "glossary.html").places)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with open_browser(tmp_path_factory.mktemp("profile")) as chrome:
        yield chrome


@pytest.fixture
def chrome(browser: Chrome, address: str) -> Iterator[Chrome]:
    """A wide window by day; in the end nothing was wrong, and nobody else was asked for anything."""
    browser.get("about:blank")
    resize(browser, 1400)
    prefer(browser, "light")
    browser.get_log("browser"), requested(browser)
    yield browser
    assert browser.get_log("browser") == []
    asked = [url for url in requested(browser) if not url.startswith(("data:", "about:"))]
    assert asked and all(url.startswith(address) for url in asked), asked


def until(chrome: Chrome, script: str) -> Any:
    """What an expression on the page says, once it says anything."""
    return WebDriverWait(chrome, PATIENCE, poll_frequency=0.02).until(
        lambda _: chrome.execute_script(f"return {script}")
    )


def click(chrome: Chrome, words: str, within: str = "body") -> None:
    """Follow the link with these words, and wait for another page."""
    chrome.execute_script("window.left = true")
    links = f"[...document.querySelectorAll('{within} a')]"
    link = until(chrome, f"{links}.find(link => link.textContent.includes('{words}'))")
    chrome.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", link)
    link.click()
    until(chrome, "!window.left && document.readyState === 'complete'")


def test_from_the_front_page_to_a_method_and_on(chrome: Chrome, address: str) -> None:
    chrome.get(f"{address}index.html")
    click(chrome, "Reference", ".sidebar-tree")
    click(chrome, "Token methods", "article")
    assert chrome.find_element("css selector", "h1").text.startswith("Token methods")
    click(chrome, "Next", "footer")
    assert chrome.find_element("css selector", "h1").text.startswith("Sealed laps")


def test_the_search_finds_a_method_and_a_word_of_a_sentence(chrome: Chrome, address: str) -> None:
    chrome.get(f"{address}index.html")
    for asked, page in (("PIADMM1", "reference/token.html"), ("sealed laps", "reference/sealed.html")):
        box = until(chrome, "document.querySelector('.sidebar-search')")
        chrome.execute_script("window.left = true")
        box.clear()
        box.send_keys(asked, Keys.ENTER)
        until(chrome, "!window.left && document.readyState === 'complete'")
        found = "[...document.querySelectorAll('ul.search li a')].map(link => link.getAttribute('href'))"
        until(chrome, f"{found}.some(link => link.startsWith('{page}'))")


def test_an_update_is_set_as_mathematics(chrome: Chrome, address: str) -> None:
    chrome.get(f"{address}reference/token.html")
    until(chrome, "[...document.fonts].some(font => font.family.includes('STIX Two Math') && font.status === 'loaded')")
    entry = "document.getElementById('roundelay.IADMM').parentElement"
    rows = until(chrome, f"[...{entry}.querySelectorAll('mtr')].map(row => row.getBoundingClientRect().toJSON())")
    # x⁺, y⁺, z⁺ and s, one under the other, and the fraction in z⁺ is higher than the line of y⁺.
    assert len(rows) == 4 and all(above["bottom"] <= below["top"] + 1 for above, below in pairwise(rows))
    assert rows[2]["height"] > 1.3 * rows[1]["height"]


def test_pages_are_no_wider_than_a_telephone(chrome: Chrome, address: str, site: Path) -> None:
    """Tables, code and formulas scroll inside themselves."""
    resize(chrome, 360, mobile=True)
    wide = {}
    for path in sorted(site.rglob("*.html")):
        chrome.get(address + path.relative_to(site).as_posix())
        until(chrome, "document.readyState === 'complete'")
        if found := chrome.execute_script(TOO_WIDE):
            wide[path.name] = found
    assert wide == {}


# The page itself, and whatever reaches beyond the window without standing in something that scrolls.
TOO_WIDE = """
    const scrolls = node => node !== null && node.tagName !== 'BODY'
        && (['auto', 'scroll'].includes(getComputedStyle(node).overflowX) || scrolls(node.parentElement))
    const beyond = [...document.querySelectorAll('article *')].filter(node =>
        node.getBoundingClientRect().right > 361 && !scrolls(node))
    return [...(document.documentElement.scrollWidth > 360 ? ['the page'] : []),
        ...beyond.map(node => node.outerHTML.slice(0, 80))]
"""


def test_by_night_it_is_dark_and_can_be_read(chrome: Chrome, address: str) -> None:
    prefer(chrome, "dark")
    for page in ("index.html", "reference/token.html", "glossary.html", "field.html"):
        chrome.get(address + page)
        shades = until(chrome, f"[getComputedStyle(document.body).backgroundColor, ...{COLOURS}]")
        ground, *letters = (sum(map(int, re.findall(r"\d+", shade)[:3])) / 765 for shade in shades)
        assert ground < 0.2 and letters and min(letters) > 0.45, (page, shades)


COLOURS = """[...document.querySelectorAll('article p, article td, article math, article pre')]
    .filter(node => node.offsetParent !== null).map(node => getComputedStyle(node).color)"""
