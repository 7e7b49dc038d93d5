"""What results show of themselves in a notebook and in a terminal: tables and small curves, by day and by night, and nobody's data."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import RingPlan, Stopping
from roundelay.shown.notebook import MOST_ROWS, Curve, View, as_html
from roundelay.shown.table import table_of
from tests.agents.world import ring_plan

# A number that is nowhere but in somebody's data.
OWN = 31.415926


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    rows = np.random.default_rng(0).standard_normal((4, 6, 2))
    rows[1, 2, 0] = OWN
    problem, network = rl.LeastSquares(rows, rows @ [1.0, 2.0]), rl.ring(4)
    options: dict[str, Any] = {"engine": "python", "progress": False}
    run = rl.simulate(rl.PIADMM1(), problem, network, 80, transcript=True, **options)
    frames = {f"s{site}": pd.DataFrame({"y": block[:, 1], "x": block[:, 0]}) for site, block in enumerate(rows)}
    return {
        "problem": problem,
        "rows": problem.rows,
        "network": network,
        "run": run,
        "transcript": run.transcript,
        "ensemble": rl.simulate(rl.IADMM(), problem, network, 40, seeds=[0, 1], **options),
        "comparison": rl.compare([rl.IADMM(), rl.EXTRA()], problem, network, seeds=[0], units=60, **options),
        "tuning": rl.tune(rl.IADMM(), problem, network, seeds=[1000], level=0.5, evaluations=3, units=60, **options),
        "audit": rl.audit(run),
        "audit of all": rl.audit_all(run),
        "conditions": rl.PIADMM1().conditions(problem),
        "plan": rl.sweep_plan(rl.IADMM(), problem, network, parameters={"rho": [1.0, 2.0]}, hops=5),
        "fit": rl.glm("y ~ x", frames),
        "ring": ring_plan(["A", "B", "C", "D"], rl.IADMM(), 2, Stopping()),
    }


class Reader(HTMLParser):
    """Which elements there are, whether all are closed, and what their attributes are."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.met: list[str] = []
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.met.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


TABLES = ("run", "ensemble", "comparison", "tuning", "audit", "audit of all", "conditions", "plan", "fit", "ring")


@pytest.mark.parametrize("name", TABLES)
def test_results_are_tables_without_a_script_an_address_or_a_colour_of_the_day(
    results: dict[str, Any], name: str
) -> None:
    page = results[name]._repr_html_()
    reader = Reader(page)
    assert not reader.open and "table" in reader.met
    assert set(reader.met) <= {
        "div",
        "p",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "svg",
        "title",
        "polyline",
        "span",
    }
    assert not {each for each in reader.attributes if each.startswith("on")} | reader.attributes & {"href", "src"}
    # Words and lines have the colours of the page around them; the one of curves is seen on black and on white.
    assert set(re.findall(r"#[0-9a-f]{6}|\brgb\b", page)) <= {"#2b8cc4"} and "color:" not in page.replace(
        "background-color", ""
    )


def test_nobody_s_data_stand_in_what_is_shown(results: dict[str, Any]) -> None:
    for name, result in results.items():
        said = repr(result) + str(getattr(result, "_repr_html_", str)())
        assert "31.41" not in said, name
        assert len(repr(result)) < 2000 and "array(" not in repr(result), name


def test_a_run_shows_how_its_error_came_down(results: dict[str, Any]) -> None:
    page = results["run"]._repr_html_()
    (points,) = re.findall(r'points="([^"]+)"', page)
    heights = [float(pair.split(",")[1]) for pair in points.split()]
    assert heights[0] == 2.0 and heights[-1] == max(heights) == 34.0
    assert results["comparison"]._repr_html_().count("<polyline") == 2


def test_without_an_optimum_there_is_a_curve_as_well() -> None:
    problem = rl.paper_least_squares(4, 5).with_optimum(None)
    run = rl.simulate(rl.IADMM(), problem, rl.ring(4), 40, engine="python", progress=False)
    assert "gradient norm" in run._repr_html_()


def test_words_of_others_are_no_markup_and_long_tables_are_cut_in_the_middle() -> None:
    frame = pd.DataFrame({"<b>": [f"<script>{place}</script>" for place in range(MOST_ROWS + 5)]})
    page = as_html(View("<i>\nline", (table_of(frame),), (Curve("<u>", (1.0, 2.0), (1.0, np.nan)),)))
    assert not {"b", "script", "i", "u"} & set(Reader(page).met)
    assert page.count("<tr") == 1 + MOST_ROWS + 1 and "5 more rows" in page


def test_a_ring_s_plan_says_who_hands_on_to_whom(results: dict[str, Any]) -> None:
    plan = results["ring"]
    assert isinstance(plan, RingPlan)
    assert [row[0] for row in plan.view().tables[0].rows] == [plan.members[number].name for number in plan.order]
    assert "BEGIN CERTIFICATE" not in repr(plan) + plan._repr_html_()
