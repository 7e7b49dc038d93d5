"""What `ring accept` and `ring show` say of a plan: no more than holds, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import RingPlan, Task
from roundelay.agents.site.verdict import Verdict, verdict
from tests.agents.conftest import COLUMNS, ring_of
from tests.agents.test_private_ring import plan_of as private_plan, task_of

NAMES = ("Oslo", "Bergen", "Tromso", "Narvik", "Alta")
SQUARES, LABELS = (Task(kind, COLUMNS[:2], COLUMNS[2]) for kind in ("least_squares", "logistic"))
SEALED = rl.SealedLaps(wide=True)


def planned(algorithm: Any, agents: int = 5, task: Task = SQUARES, links: Any = None) -> RingPlan:
    return replace(ring_of(*NAMES[:agents], links=links), algorithm=algorithm, task=task)


def said(algorithm: Any, agents: int = 5, task: Task = SQUARES, me: int | None = 2, links: Any = None) -> str:
    found: Verdict = verdict(planned(algorithm, agents, task, links), me)
    assert all(sentence.endswith((".", ":", ";")) for sentence in (*found.learned, *found.risks))
    return " ".join((*found.learned, *found.risks))


@pytest.mark.parametrize(
    ("agents", "words"),
    [
        (5, "Your two neighbours together, and any 3 of the other 4 sites, can learn nothing of your data but"),
        (3, "Both together know all that your site answered"),
        (2, "Sealed laps hide nothing between two sites"),
    ],
)
def test_sealed_laps(agents: int, words: str) -> None:
    for task in (SQUARES, LABELS):
        text = said(SEALED, agents, task, me=1)
        assert words in text and "how many rows they have together" in text
        assert ("the squares and products of all columns" in text) == (task is SQUARES)
        assert "Oslo asks the questions" in text and "Any site can give false data" in text
    assert "asks the questions" not in said(SEALED, me=0)


PRODUCTS, WITH_TARGET = (
    "the sums of squares and products of your features (X'X)",
    "and of your features with outcome (X't)",
)


def test_a_token_under_masks() -> None:
    for start in (rl.SealedStart(), rl.ZeroSumStart()):
        text = said(rl.PIADMM1(rho=1.0, start=start))
        assert "Your neighbours Bergen and Narvik see it before and after you." in text
        assert PRODUCTS in text and WITH_TARGET not in text
        assert (
            "How your features go with outcome (X't) stays hidden under the masks of the start, from any 3 sites"
            in text
        )
        assert "Noise" not in text


@pytest.mark.parametrize(
    "algorithm",
    [
        rl.IADMM(rho=1.0),
        rl.PIADMM1(rho=1.0),
        rl.WPG(alpha=0.1),
        rl.PIADMM2(rho=1.0),
        rl.IADMM(rho=1.0, defence=rl.ContributionNoise()),
    ],
)
def test_a_token_without_masks_tells_all(algorithm: Any) -> None:
    text = said(algorithm)
    assert PRODUCTS in text and WITH_TARGET in text and "Nothing is hidden from these neighbours." in text
    assert ("Noise blurs what they work out" in text) == (
        isinstance(algorithm, rl.PIADMM2) or algorithm == rl.IADMM(rho=1.0, defence=rl.ContributionNoise())
    )


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (
            rl.PIADMM1(rho=1e13, start=rl.SealedStart(bits=0)),
            "With ρ = 1e+13 it hides nothing: the masks go in steps of 1e+13",
        ),
        (rl.PIADMM1(rho=1.0, start=rl.ZeroSumStart(scale=1e-9)), "it hides nothing: the masks are 1e-09 large"),
    ],
)
def test_what_only_sounds_as_if_it_hid_something(algorithm: Any, words: str) -> None:
    text = said(algorithm)
    assert words in text and WITH_TARGET in text and "stays hidden" not in text


def test_other_losses_than_squares() -> None:
    hidden, shown = (said(rl.IADMM(rho=1.0, start=start), task=LABELS) for start in (rl.SealedStart(), rl.ZeroStart()))
    assert (
        "how the slope of your rows' loss differs between the models" in hidden
        and "The slopes themselves stay hidden" in hidden
    )
    assert "the slope of your rows' loss at each model that comes by" in shown and "hidden from these" in shown
    own = said(rl.IADMM(rho=1.0), task=Task("custom", dim=3))
    assert "the slope of your objective at each model" in own and "rows they have" not in own


def test_who_stands_on_both_sides_is_named() -> None:
    star = [("Bergen", name) for name in NAMES if name != "Bergen"]
    algorithm = rl.PIADMM1(rho=1.0, start=rl.SealedStart())
    plan = planned(algorithm, links=star)
    text = said(algorithm, me=plan.number_of("Alta"), links=star)
    assert "Your neighbour Bergen sees it" in text and "Bergen stands on both sides of you" in text
    anybody = said(algorithm, me=None, links=star)
    assert "Bergen stands on both sides of Alta" in anybody and "Bergen stands on both sides of Oslo" in anybody
    assert "on both sides" not in said(algorithm)


def test_a_promise_of_epsilon_tells_no_exact_sums() -> None:
    found = verdict(private_plan(task_of("logistic"), 5), 1)
    assert "with noise in them, no other sums" in found.learned[0] and "how many rows" not in " ".join(found.learned)
