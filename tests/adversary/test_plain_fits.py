"""A planner who wants what a policy does not allow of a formula, and plans a fit without one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roundelay.agents.agreement.plan import Column, Task
from roundelay.agents.agreement.policy import ANYTHING, Policy, refused_task
from roundelay.agents.data.fitting import RowsFit
from roundelay.agents.data.reading import OwnRows
from roundelay.algorithms.sealed.questions import Asked, Place, answers, total_of

NAMES = ("age", "income", "hiv", "rare", "length")
TASK = Task(
    "least_squares", tuple(map(Column, NAMES[:-1])), Column(NAMES[-1]), standardise=False, intercept=False
)  # fmt: skip
SITE, ROW = 2, 5


def sites(task: Task = TASK) -> list[RowsFit]:
    """Four sites, of whose patients one alone has the rare condition."""
    rng = np.random.default_rng(8)
    fits = []
    for site in range(4):
        features = np.column_stack(
            [rng.normal(58, 14, 40), rng.lognormal(10, 0.5, 40), rng.random(40) < 0.3, np.zeros(40)]
        )
        features[ROW, 3] = float(site == SITE)
        fits.append(RowsFit(task, OwnRows(features.astype(np.float64), rng.normal(8, 2, 40), 0)))
    return fits


def told(fits: list[RowsFit], before: int = 2) -> tuple[np.ndarray, ...]:
    """What the sums before the fit tell, each behind the number of sites."""
    totals: tuple[np.ndarray, ...] = ()
    for _ in range(before):
        totals = (*totals, np.append(len(fits), sum(one.summand(totals, len(fits)) for one in fits)))
    return totals


def test_beside_a_rare_condition_stands_the_whole_patient() -> None:
    """The control: what all four add to the first question, of which nobody sees but the sum, about the means that were told."""
    fits = sites()
    known = told(fits)
    place = Place(np.zeros(4), np.zeros(4))
    asked = sum(
        answers(one.problem(known), Asked.GRADIENT_AND_HESSIAN, place)[0] for one in fits
    )  # fmt: skip
    total = total_of(Asked.GRADIENT_AND_HESSIAN, asked, 4)
    assert total.hessian is not None
    beside = total.hessian[3] / total.hessian[3, 3]
    patient = fits[SITE].rows
    np.testing.assert_allclose(beside, patient.features[ROW], rtol=1e-9)
    assert -total.gradient[3] / total.hessian[3, 3] == pytest.approx(patient.target[ROW], rel=1e-9)


def test_the_site_that_has_the_patient_does_not_take_part() -> None:
    found = [one.breaches(Policy(), ()) for one in sites()]
    assert [number for number, said in enumerate(found) if said] == [SITE]
    assert "the same number in rare but for fewer than 5" in found[SITE][0] and "least_rows_a_level" in found[SITE][0]
    assert not sites()[SITE].breaches(ANYTHING, ())


def test_few_rows_with_an_outcome_are_as_few_with_a_condition() -> None:
    fit = sites()[0]
    target = np.where(np.arange(40) < 3, 1.0, -1.0)
    other = replace(fit, rows=replace(fit.rows, target=target))
    assert "length" in other.breaches(Policy(), ())[0]


@pytest.mark.parametrize("kind", ["least_squares", "logistic", "huber"])
def test_columns_and_families_that_are_not_allowed_are_not_in_a_plain_fit_either(kind: str) -> None:
    task = replace(TASK, kind=kind)
    said = refused_task(Policy(allowed_columns=("age", "length"), allowed_families=("cox",)), task)
    assert "uses income, hiv and rare" in said[0] and "(allowed_columns)" in said[0]
    word = {"least_squares": "gaussian", "logistic": "binomial"}.get(kind, kind)
    assert f"of the family {word}" in said[1]
    assert not refused_task(Policy(allowed_columns=NAMES, allowed_families=(word,)), task)


def test_nearly_as_many_unknowns_as_rows() -> None:
    fit, counted = sites()[0], np.array([4.0, 30.0, 0, 0, 0, 0, 0])
    assert "4 unknowns and all sites together 30 rows" in fit.breaches(Policy(), (counted,))[0]
    assert not fit.breaches(Policy(most_parameters_per_row=0.2), (counted,))
