"""The report in a browser: it needs nothing but itself, shows all there is, and takes no text for markup."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By

from roundelay.paper.document import Document, Section
from roundelay.paper.report import write_files, write_report
from roundelay.paper.report.markup import figures_of, tables_of
from roundelay.paper.report.page import report_page
from roundelay.plots.chart import ChartFigure
from tests.browser import open_browser, prefer, requested, resize
from tests.report_example import HOSTILE, METHODS, convergence, example_document, table

DOCUMENT = example_document()
FIGURES = figures_of(DOCUMENT)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(DOCUMENT, tmp_path_factory.mktemp("report") / "new" / "report.html")


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with open_browser(tmp_path_factory.mktemp("profile")) as chrome:
        yield chrome


@pytest.fixture
def fresh(chrome: Chrome, path: Path) -> Chrome:
    """The page as it first opens on a wide screen by day."""
    resize(chrome, 1280)
    prefer(chrome, "light")
    chrome.get(path.as_uri())
    chrome.execute_script("localStorage.clear(); delete document.documentElement.dataset.theme")
    return chrome


@pytest.fixture
def page(fresh: Chrome) -> Chrome:
    """The page with all its figures drawn."""
    fresh.execute_async_script("roundelay.drawAll().then(() => arguments[0]())")
    return fresh


def plots(page: Chrome, figure: ChartFigure, what: str) -> list[list[Any]]:
    """One value for each trace of each panel, by an expression in `trace`."""
    script = (
        "return [...document.querySelectorAll(`#item-${arguments[0]} .plot`)]"
        f".map(plot => plot.data.map(trace => {what}))"
    )
    return page.execute_script(script, figure.name)


def figure_named(name: str) -> ChartFigure:
    return next(figure for figure in FIGURES if figure.name == name)


def switch(page: Chrome, figure: str, label: str) -> None:
    buttons = page.find_elements(By.CSS_SELECTOR, f"#item-{figure} .legend button")
    click(page, next(button for button in buttons if button.get_dom_attribute("data-label") == label))


def click(page: Chrome, button: Any) -> None:
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", button)
    button.click()


def test_it_asks_for_nothing_but_itself_and_the_console_is_silent(chrome: Chrome, path: Path) -> None:
    requested(chrome), chrome.get_log("browser")
    chrome.get(path.as_uri())
    chrome.execute_async_script("roundelay.drawAll().then(() => arguments[0]())")
    click(chrome, chrome.find_element(By.CSS_SELECTOR, "button.theme"))
    switch(chrome, "convergence", METHODS[0])
    assert {address for address in requested(chrome) if not address.startswith("data:")} == {path.as_uri()}
    assert chrome.get_log("browser") == []


def test_figures_are_drawn_as_the_reader_comes_to_them_and_all_when_asked(fresh: Chrome) -> None:
    figures, drawn = fresh.execute_script("return [roundelay.figures, roundelay.drawn]")
    assert figures == len(FIGURES) > drawn
    fresh.execute_async_script("roundelay.drawAll().then(() => arguments[0]())")
    assert fresh.execute_script("return roundelay.drawn") == figures


def test_every_series_and_every_band_is_a_trace_with_all_its_points(page: Chrome) -> None:
    for figure in FIGURES:
        found = plots(page, figure, "[trace.fill, trace.x.length]")
        assert len(found) == len(figure.charts)
        for chart, traces in zip(figure.charts, found, strict=True):
            bands = [series for series in chart.series if series.low is not None]
            assert [fill for fill, _ in traces] == ["toself"] * len(bands) + [None] * len(chart.series)
            assert [points for _, points in traces[len(bands) :]] == [len(series.x) for series in chart.series]
    assert page.execute_script("return document.querySelectorAll('.plot .main-svg').length") >= len(FIGURES)


def test_axes_and_gaps_are_as_the_data_have_them(page: Chrome) -> None:
    kinds = page.execute_script(
        "return [...document.querySelectorAll('.plot')].map(plot => [plot._fullLayout.xaxis.type, plot._fullLayout.yaxis.type])"
    )
    charts = [chart for figure in FIGURES for chart in figure.charts]
    assert kinds == [["log" if log else "linear" for log in (chart.log_x, chart.log_y)] for chart in charts]
    single = figure_named("single")
    values = plots(page, single, "[...trace.y]")[0][1]
    gaps = np.flatnonzero(np.isnan(single.charts[0].series[0].y))
    assert [place for place, value in enumerate(values) if value is None] == gaps.tolist()
    limits = page.execute_script("return document.querySelector('#item-single .plot')._fullLayout.yaxis.range")
    assert limits == [0, 2]


def test_a_switch_acts_on_all_panels_at_once(page: Chrome) -> None:
    figure = figure_named("convergence")
    assert len(page.find_elements(By.CSS_SELECTOR, "#item-convergence .legend")) == 1
    before = plots(page, figure, "trace.visible && trace.meta")
    switch(page, "convergence", "I-ADMM")
    hidden = plots(page, figure, "trace.visible")
    for panel, chart in zip(hidden, figure.charts, strict=True):
        bands = [series.label for series in chart.series if series.low is not None]
        labels = bands + [series.label for series in chart.series]
        assert [shown for shown, label in zip(panel, labels, strict=True) if label == "I-ADMM"] == [False, False]
        assert sum(not shown for shown in panel) >= 2
    switch(page, "convergence", "I-ADMM")
    assert plots(page, figure, "trace.visible && trace.meta") == before


def test_a_series_that_is_not_shown_can_be_switched_on(page: Chrome) -> None:
    visible = [panel[-1] for panel in plots(page, figure_named("convergence"), "trace.visible")]
    assert visible == [True, False]
    for _ in range(2):
        switch(page, "convergence", "bound of Theorem 2")
    assert all(panel[-1] for panel in plots(page, figure_named("convergence"), "trace.visible"))


def test_panels_with_other_series_have_legends_of_their_own(page: Chrome) -> None:
    assert len(page.find_elements(By.CSS_SELECTOR, "#item-privacy .panel .legend")) == 2
    switch(page, "privacy", "from two laps")
    assert plots(page, figure_named("privacy"), "trace.visible") == [[True, True], [True, False]]


def test_day_and_night_change_the_colours_of_page_and_charts(page: Chrome) -> None:
    look = (
        "const plot = document.querySelector('#item-convergence .plot');"
        "return [getComputedStyle(document.body).backgroundColor, plot.data.at(-2).line.color,"
        " plot._fullLayout.font.color, getComputedStyle(document.querySelector('.badge')).color]"
    )
    day = page.execute_script(look)
    button = page.find_element(By.CSS_SELECTOR, "button.theme")
    click(page, button)
    night = page.execute_script(look)
    assert all(one != other for one, other in zip(day, night, strict=True))
    click(page, button)
    assert page.execute_script(look) == day
    page.execute_script("delete document.documentElement.dataset.theme")
    prefer(page, "dark")
    page.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))")
    assert page.execute_script(look) == night


def test_the_choice_of_day_or_night_outlives_the_page(page: Chrome, path: Path) -> None:
    click(page, page.find_element(By.CSS_SELECTOR, "button.theme"))
    page.get(path.as_uri())
    assert page.execute_script("return document.documentElement.dataset.theme") == "dark"


def test_claims_can_be_filtered_by_verdict(page: Chrome) -> None:
    buttons = page.find_elements(By.CSS_SELECTOR, ".filter button")
    counts = [button.find_element(By.CSS_SELECTOR, ".count").text for button in buttons]
    assert counts == ["5", "1", "1", "3"]
    rows = page.find_elements(By.CSS_SELECTOR, "table.claims tbody tr")
    for button, count in zip([*buttons[1:], buttons[0]], (1, 1, 3, 5), strict=True):
        click(page, button)
        assert sum(row.is_displayed() for row in rows) == count
        assert button.get_dom_attribute("aria-pressed") == "true"
    badges = [row.find_element(By.CSS_SELECTOR, ".badge").text for row in rows]
    assert badges == ["✓ Holds", "◐ Holds only if", "✗ Does not hold", "✗ Does not hold", "✗ Does not hold"]


def test_every_link_within_the_page_leads_somewhere(page: Chrome) -> None:
    loose = page.execute_script(
        "return [...document.querySelectorAll('a[href^=\"#\"]')].map(link => link.getAttribute('href'))"
        ".filter(href => !document.getElementById(href.slice(1)))"
    )
    assert loose == []
    for claim, row in zip(DOCUMENT.claims, page.find_elements(By.CSS_SELECTOR, "table.claims tbody tr"), strict=True):
        links = [link.get_dom_attribute("href") for link in row.find_elements(By.TAG_NAME, "a")]
        assert links == ([f"#item-{claim.figure}"] if claim.figure else [])


def test_text_that_looks_like_markup_is_shown_as_text(page: Chrome) -> None:
    assert page.find_elements(By.TAG_NAME, "b") == []
    row = page.find_elements(By.CSS_SELECTOR, "table.claims tbody tr")[3]
    cells = page.execute_script("return [...arguments[0].cells].map(cell => cell.textContent)", row)
    assert cells[0] == cells[2] == cells[4] == HOSTILE and cells[1].startswith(HOSTILE)
    labels = page.find_elements(By.CSS_SELECTOR, "#item-single .legend button")
    assert HOSTILE in [label.text for label in labels]
    hovered = page.execute_script(
        "const plot = document.querySelector('#item-single .plot');"
        "Plotly.Fx.hover(plot, [{curveNumber: 2, pointNumber: 10}]);"
        "return plot.querySelector('.hoverlayer .nums').textContent"
    )
    assert hovered.startswith(HOSTILE)


def test_dragging_zooms_and_a_double_click_or_the_button_goes_back(page: Chrome) -> None:
    plot = page.find_element(By.CSS_SELECTOR, "#item-single .plot")
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", plot)
    surface = plot.find_element(By.CSS_SELECTOR, ".nsewdrag")

    def limits() -> list[float]:
        return page.execute_script("return arguments[0]._fullLayout.xaxis.range", plot)

    def drag() -> None:
        actions = ActionChains(page).move_to_element_with_offset(surface, -100, -60).click_and_hold()
        actions.move_by_offset(100, 60).move_by_offset(60, 40).release().perform()

    drag()
    zoomed = limits()
    assert zoomed[0] > 0.0 and zoomed[1] < 59.0
    switch(page, "single", "start")
    click(page, page.find_element(By.CSS_SELECTOR, "button.theme"))
    assert limits() == zoomed
    click(page, page.find_element(By.CSS_SELECTOR, "#item-single button.reset"))
    assert limits() == [0, 59]
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", plot)
    drag()
    assert limits() != [0, 59]
    page.execute_async_script(
        "arguments[0].once('plotly_relayout', () => arguments[2]());"
        "for (const kind of ['mousedown', 'mouseup', 'mousedown', 'mouseup'])"
        " arguments[1].dispatchEvent(new MouseEvent(kind, {bubbles: true, button: 0, clientX: 600, clientY: 400}))",
        plot,
        surface,
    )
    assert limits() == [0, 59]


def test_on_a_phone_nothing_scrolls_sideways(fresh: Chrome) -> None:
    resize(fresh, 390)
    fresh.execute_async_script("roundelay.drawAll().then(() => requestAnimationFrame(() => arguments[0]()))")
    assert fresh.execute_script("return document.documentElement.scrollWidth") <= 390
    widths = fresh.execute_script("return [...document.querySelectorAll('.plot')].map(plot => plot.clientWidth)")
    assert all(300 < width <= 390 for width in widths)
    unfold = fresh.find_element(By.CSS_SELECTOR, "button.unfold")
    entry = fresh.find_element(By.CSS_SELECTOR, ".contents li li a")
    assert not entry.is_displayed()
    click(fresh, unfold)
    assert entry.is_displayed()


def test_a_finger_scrolls_until_it_is_asked_to_zoom(chrome: Chrome, path: Path) -> None:
    mode = "return document.querySelector('#item-convergence .plot')._fullLayout.dragmode"
    chrome.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    try:
        resize(chrome, 390, mobile=True)
        chrome.get(path.as_uri())
        chrome.execute_async_script("roundelay.drawAll().then(() => arguments[0]())")
        assert chrome.execute_script(mode) is False
        click(chrome, chrome.find_element(By.CSS_SELECTOR, "#item-convergence .tools button"))
        assert chrome.execute_script(mode) == "zoom"
    finally:
        chrome.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def test_before_it_is_printed_all_is_drawn_by_day(fresh: Chrome) -> None:
    click(fresh, fresh.find_element(By.CSS_SELECTOR, "button.theme"))
    background = "return getComputedStyle(document.body).backgroundColor"
    night = fresh.execute_script(background)
    fresh.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert fresh.execute_script("return roundelay.drawn === roundelay.figures")
    assert fresh.execute_script(background) == "rgb(255, 255, 255)" != night
    fresh.execute_script("dispatchEvent(new Event('afterprint'))")
    assert fresh.execute_script(background) == night


def test_the_command_can_be_copied_as_it_is(page: Chrome) -> None:
    for figure in FIGURES:
        code = page.find_element(By.CSS_SELECTOR, f"#item-{figure.name} .command code")
        assert page.execute_script("return arguments[0].textContent", code) == figure.command
    button = page.find_element(By.CSS_SELECTOR, "button.copy")
    click(page, button)
    page.execute_async_script("setTimeout(() => arguments[0](), 100)")
    assert button.text in ("Copied", "Selected")


def test_every_file_that_the_page_links_to_is_written(tmp_path: Path) -> None:
    small = replace(DOCUMENT, sections=(Section("one", "One", (), (convergence(), table())),))
    linked = set(re.findall(r'href="((?:figures|data|tables)/[^"]+)"', report_page(small)))
    written = {file.relative_to(tmp_path).as_posix() for file in write_files(small, tmp_path)}
    assert written == linked
    assert written == {
        "figures/convergence.png", "figures/convergence.svg", "data/convergence.csv", "data/units.csv", "data/claims.csv",
        "tables/units.tex", "tables/claims.tex",
    }  # fmt: skip
    assert all((tmp_path / name).is_file() for name in written)


def test_files_are_the_same_in_every_run_and_numbers_are_exact(tmp_path: Path) -> None:
    small = replace(DOCUMENT, sections=(Section("one", "One", (), (figure_named("single"), *tables_of(DOCUMENT))),))
    first, second = (write_files(small, tmp_path / name) for name in "ab")
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]
    assert not any(b"\r" in file.read_bytes() for file in first if file.suffix == ".csv")
    numbers = pd.read_csv(tmp_path / "a/data/single.csv", float_precision="round_trip", skiprows=6)
    series = figure_named("single").charts[0].series
    np.testing.assert_array_equal(numbers["y"], np.concatenate([each.y for each in series]))
    lines = (tmp_path / "a/data/claims.csv").read_text(encoding="utf-8").splitlines()
    comments = [line for line in lines if line.startswith("# ")]
    assert comments[-1] == f"# to read: pandas.read_csv(path, skiprows={len(comments)})"
    rows = list(csv.DictReader(lines[len(comments) :]))
    assert rows[3]["claim"] == HOSTILE and [row["verdict"] for row in rows] == [
        each.verdict for each in DOCUMENT.claims
    ]


def test_the_same_document_gives_the_same_page() -> None:
    assert report_page(DOCUMENT) == report_page(example_document())


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("a", "a"), "More than one figure or table"),
        (("../a", "b"), "can't name a part"),
        (("claims", "b"), "'claims'"),
    ],
)
def test_names_that_no_file_can_have_are_refused(names: tuple[str, str], words: str, tmp_path: Path) -> None:
    items = tuple(replace(convergence(), name=name) for name in names)
    document: Document = replace(DOCUMENT, sections=(Section("one", "One", (), items),))
    with pytest.raises(ValueError, match=words):
        write_report(document, tmp_path / "report.html")
    with pytest.raises(ValueError, match=words):
        write_files(document, tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_plotly_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape("pip install 'roundelay[report]'")):
        write_report(DOCUMENT, tmp_path / "report.html")
