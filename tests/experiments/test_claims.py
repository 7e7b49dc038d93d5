"""Every claim of the paper, with its tolerance; that of a claim which does not hold says that it does not."""

from __future__ import annotations

import math

import pytest

from roundelay.paper.claims import CLAIMS
from roundelay.paper.document import Check, Claim, judge, number
from roundelay.paper.pieces import Measured

EXPECTED = {
    "cheapest on least squares": "holds",
    "cheapest on logistic regression": "holds only if",
    "faster than a random walk": "holds",
    "slow at first, then faster": "holds only if",
    "same speed in the end": "holds",
    "same cost in the end": "holds only if",
    "a floor set by σ": "holds",
    "σ unambiguous": "holds only if",
    "connectivity does not matter": "holds",
    "slower in larger networks": "holds",
    "the printed loss": "holds only if",
    "Lemma 2, descent": "holds only if",
    "Lemma 4, descent": "holds only if",
    "Lemma 4, lower bound": "holds only if",
    "Theorem 1": "holds",
    "sufficient, not necessary": "holds",
    "the proof covers the experiments": "does not hold",
    "private where proven": "does not hold",
    "Lemma 3": "holds",
    "Remark 1": "holds only if",
    "Remark 2, the count": "holds only if",
    "Remark 2, the substance": "does not hold",
    "Remark 3": "holds",
    "Remark 4": "holds only if",
    "Theorems 2 and 3, the counts": "holds",
    "Theorem 2": "holds only if",
    "Corollary 1": "holds only if",
    "Theorem 3": "holds only if",
    "the estimate of x closes in": "holds",
    "the estimate of y diverges": "holds only if",
    "noise that fades": "holds",
    "first order costs more": "holds",
    "enough links for a cycle": "holds only if",
    "inexact rivals": "holds",
    "more accurate than gradient descent": "holds",
    "stragglers": "holds",
}


def test_every_claim_has_an_expected_verdict():
    names = [claim.name for claim in CLAIMS]
    assert names == list(EXPECTED)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.name for claim in CLAIMS])
def test_verdict(claim, found):
    judged = judge(claim, found)
    assert judged.verdict == EXPECTED[claim.name], judged.measured
    assert (judged.condition != "") == (judged.verdict == "holds only if")
    assert str(claim.stated(found)[0]) in judged.measured


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.name for claim in CLAIMS])
def test_no_verdict_is_near_its_threshold(claim, found):
    """A verdict that a few other seeds could turn is no verdict: the number is at least 5 % away, or counted."""
    conditional = claim.conditional(found) if claim.conditional is not None else ()
    for check in (*claim.stated(found), *conditional):
        counted = check.value == int(check.value) if math.isfinite(check.value) else True
        assert counted or abs(check.value - check.limit) >= 0.05 * abs(check.limit), str(check)


@pytest.mark.parametrize("name", ["slow at first, then faster", "slower in larger networks", "a floor set by σ"])
def test_a_claim_on_accuracy_has_both_numbers_in_its_row(name, found):
    claim = next(claim for claim in CLAIMS if claim.name == name)
    checks = [check.words for check in claim.stated(found)]
    for words in ("common error", "accuracy"):
        assert any(words in said for said in checks)
    assert "common error" in judge(claim, found).measured and "accuracy" in judge(claim, found).measured


# ---------------------------------------------------------------- the rule itself


def rule(stated: bool, conditional: bool | None) -> str:
    def checks(holds: bool):
        return lambda found: (Check("a number", 1.0 if holds else 3.0, "≤", 2.0),)

    claim = Claim(
        "name", "where", "claim", "why", checks(stated), None if conditional is None else checks(conditional), "so"
    )
    return judge(claim, {}).verdict


def test_a_claim_holds_where_all_its_checks_do():
    assert rule(stated=True, conditional=None) == "holds"
    assert rule(stated=True, conditional=False) == "holds"
    assert rule(stated=False, conditional=None) == "does not hold"
    assert rule(stated=False, conditional=True) == "holds only if"
    assert rule(stated=False, conditional=False) == "does not hold"


def test_a_number_that_is_none_keeps_no_threshold():
    assert not Check("a number", math.nan, "≤", 1.0).holds
    assert not Check("a number", math.nan, "≥", 1.0).holds
    assert not Check("units", math.inf, "≤", 1.0).holds


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0"), (3.0, "3"), (12345.6, "12,346"), (1e-7, "1e-07"), (math.inf, "never"), (2.0e8, "2e+08")],
)
def test_numbers_as_a_reader_likes_them(value, words):
    assert number(value) == words


def test_verdicts_follow_the_numbers(found):
    """Positive control: other numbers give another verdict."""
    changed = dict(found)
    broken = found["PI-ADMM1 inferred"]
    changed["PI-ADMM1 inferred"] = Measured(dict.fromkeys(broken.numbers, 1.0), broken.tables)
    claim = next(claim for claim in CLAIMS if claim.name == "Theorem 2")
    assert judge(claim, changed).verdict == "holds"
