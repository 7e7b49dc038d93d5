"""How many rows carry what is told: what the count says, and that rows are those of which the sums are made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import roundelay as rl
from roundelay.problems.carriers import PART, RowsAt, about, carriers, carriers_wanted
from roundelay.regression.families import family_named
from roundelay.regression.likelihood import FamilyLosses, Linear
from tests.regression.test_likelihood import ALL, made

FEW = settings(max_examples=50, deadline=None)
sizes = st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=8)


def rows_at(
    predictions: list[float], slopes: list[float], curvatures: list[float], ends: tuple[float, ...] = ()
) -> RowsAt:
    columns = [np.array([one]).T for one in (predictions, slopes, curvatures)]
    return RowsAt(*columns, tuple(np.full_like(columns[1], end) for end in ends), np.ones(len(slopes)), 0.0)


# ---------------------------------------------------------------- the count


def test_alike_rows_are_all_counted_and_one_that_outweighs_the_rest_alone() -> None:
    assert about(np.full((7, 1), -1e-200)) == pytest.approx(7.0)
    assert about(np.array([[1e200], [1.0], [0.0]])) == pytest.approx(1.0)
    assert about(np.array([[3.0, 0.0], [1.0, 0.0]])) == pytest.approx([1.6, np.inf])  # of nothing nothing is told


@FEW
@given(st.lists(sizes, min_size=1, max_size=6))
def test_what_all_sites_tell_is_about_as_many_rows_as_at_the_site_with_fewest(sites: list[list[float]]) -> None:
    """So a floor that each site holds for itself holds for the sum, of which alone anybody learns."""
    fewest = min(float(about(np.array([one]).T)[0]) for one in sites)
    whole = float(about(np.concatenate(sites)[:, None])[0])
    assert whole >= fewest * (1.0 - 1e-9)


# ---------------------------------------------------------------- what is counted


def test_each_of_the_things_that_are_told_is_counted() -> None:
    level = [1.0] * 4
    same = rows_at([0.0] * 4, level, level)
    assert carriers(same, [], True) == 4.0
    assert carriers(same._replace(curvatures=np.eye(4)[:, :1]), [], False) == 1.0
    # One row is beyond the bend, and the end on the other side is known.
    over = rows_at([9.0, -9.0, -9.0, -9.0], [1.0, 0.0, 0.0, 0.0], level, (0.0, 1.0))
    assert carriers(over, [], False) == 1.0
    # Between two points one row has gone over.
    before = rows_at([-9.0] * 4, [0.0] * 4, level)
    assert carriers(over._replace(ends=()), [before], False) == 1.0
    assert carriers(over._replace(ends=()), [], False) == 4.0
    # Its curvature alone: where curvatures are told.
    bent = rows_at([9.0] * 4, level, [1.2, 1.0, 1.0, 1.0])
    assert carriers(bent, [before], False) > 3.9
    assert carriers(bent, [before], True) == 1.0


def test_a_small_step_counts_by_the_curvature() -> None:
    """The rows move by most unequal ways, but what is told is the curvature times these ways, and the curvature is known."""
    before = rows_at([0.0] * 4, [0.0] * 4, [1.0] * 4)
    after = rows_at([1e-3, 1e-9, 1e-9, 1e-9], [1e-3, 1e-9, 1e-9, 1e-9], [1.0] * 4)
    assert carriers(after, [before], True) == pytest.approx(4.0)


def test_what_is_no_number_is_enough_for_nothing() -> None:
    far = rows_at([np.inf] * 9, [np.nan] * 9, [0.0] * 9)
    assert not carriers(far, [rows_at([0.0] * 9, [0.0] * 9, [1.0] * 9)], True) >= carriers_wanted(far, far, 1)


def test_how_many_are_wanted() -> None:
    start = rows_at([0.0] * 80, [0.0] * 80, [1.0] * 80)._replace(loss=10.0)
    assert carriers_wanted(start, start, 5) == 5.0
    assert carriers_wanted(start._replace(loss=10.1), start, 5) == 80 / PART
    few = start._replace(weight=np.ones(16), loss=9.0)
    assert carriers_wanted(few, start, 5) == 16 / PART  # a small site tells more of each row anyway


@pytest.mark.parametrize("kind", ["binomial", "poisson", "gamma", "multinomial"])
def test_a_start_that_somebody_has_made_bad_lowers_nothing(kind: str) -> None:
    """Where all begin follows from sums that were told: beside a false one every point would fit the rows well."""
    likelihood, w = made(kind, 8)
    far, here = likelihood.rows_at(12.0 * w), likelihood.rows_at(np.zeros(likelihood.dim))
    bad = likelihood.rows_at(60.0 * w)
    count = float(about(far.weight[:, None])[0])
    assert bad.loss > far.loss > 2.0 * here.null
    assert here.null <= likelihood.rows_at(np.zeros(likelihood.dim)).loss
    assert carriers_wanted(far, bad._replace(null=np.inf), 1) == 1.0  # the positive control
    assert carriers_wanted(far, bad, 1) == carriers_wanted(far, here, 1) == count / PART


def test_rows_of_one_outcome_have_a_null_too() -> None:
    losses = FamilyLosses(family_named("binomial"), np.ones(20), np.ones(20), np.zeros(20))
    assert Linear(np.ones((20, 1)), losses).rows_at(np.array([30.0])).null == pytest.approx(20.0 * np.log(2.0))


# ---------------------------------------------------------------- of rows


@pytest.mark.parametrize("kind", ALL)
def test_rows_are_those_of_which_the_gradient_is_made(kind: str) -> None:
    likelihood, w = made(kind, 6)
    rows = likelihood.rows_at(w)
    if kind == "cox":
        kept = likelihood._kept
        died = likelihood._weights[kept.dead] @ likelihood._centred[kept.dead]
        ordered = rows.slopes[kept.order, 0]  # they stand as the rows do, not by time
        assert likelihood._centred.T @ ordered - died == pytest.approx(likelihood.gradient(w))
        assert rows.slopes.sum() == pytest.approx(likelihood._terms.weight.sum())  # as many deaths as there were
        return
    design = likelihood._centred if kind.startswith("own") else likelihood.design
    own = rows.slopes[:, 1:] if "multinomial" in kind else rows.slopes
    assert (own.T @ design).reshape(-1) == pytest.approx(likelihood.gradient(w))
    assert rows.loss == pytest.approx(likelihood.value(w))
    step = 1e-5
    bends = (_slopes(likelihood, rows, step) - _slopes(likelihood, rows, -step)) / (2.0 * step)
    if "multinomial" not in kind:
        assert rows.curvatures[:, :1] == pytest.approx(bends, rel=1e-5, abs=1e-8)
        information = (design.T * rows.curvatures[:, 1]) @ design
        mixed = rows.curvatures[:, 1] @ design
        absorbed = np.outer(mixed, mixed) / rows.curvatures[:, 1].sum() if kind.startswith("own") else 0.0
        assert information - absorbed == pytest.approx(likelihood.information(w))


def _slopes(likelihood: object, rows: RowsAt, step: float) -> np.ndarray:
    losses = getattr(likelihood, "losses", None) or likelihood.linear.losses.without_the_unseen()  # type: ignore[attr-defined]
    moved = rows.predictions[:, 1:] if rows.predictions.shape[1] > losses.equations else rows.predictions
    found: np.ndarray = losses.slopes(moved + step)
    return found


@pytest.mark.parametrize("kind", ["binomial", "poisson", "gamma", "gaussian", "binomial-probit", "multinomial"])
def test_slopes_come_to_their_ends(kind: str) -> None:
    likelihood, w = made(kind, 7)
    ends = likelihood.rows_at(w).ends
    assert len(ends) == {"binomial": 2, "multinomial": 2, "poisson": 1, "gamma": 1}.get(kind, 0)
    far = likelihood.rows_at(1e4 * w)
    if len(ends) == 2:
        near = np.minimum(np.abs(far.slopes - ends[0]), np.abs(far.slopes - ends[1]))
        assert near.max() < 1e-6


def test_rows_of_a_plain_fit() -> None:
    rng = np.random.default_rng(0)
    features, x = rng.normal(size=(20, 3)), rng.normal(size=3)
    for problem, ends in (
        (rl.Logistic([features], [np.sign(features[:, 0])], separable=True), 2),
        (rl.Huber([features], [features @ x + rng.normal(size=20)]), 2),
        (rl.LeastSquares([features], [rng.normal(size=20)], scale="mean"), 0),
    ):
        rows = problem.rows_at(0, x)
        assert problem.scales[0] * features.T @ rows.slopes[:, 0] == pytest.approx(problem.gradient(0, x))
        assert problem.scales[0] * (features.T * rows.curvatures[:, 0]) @ features == pytest.approx(
            problem.hessian(0, x)
        )
        assert problem.scales[0] * rows.loss == pytest.approx(problem.value(0, x))
        assert len(rows.ends) == ends


def test_no_ring_asks_for_a_curvature_that_jumps() -> None:
    """One row that crosses the corner is the whole difference of two Hessians."""
    from roundelay.agents.agreement.plan import Column, Stopping, Task
    from tests.agents.world import ring_plan

    task = Task("huber", (Column("a"), Column("b")), Column("t"))
    plan = replace(ring_plan(["one", "two", "three"], rl.SealedLaps(wide=True), 3, Stopping()), task=task)
    assert plan.choice is not None and isinstance(plan.choice.optimiser, rl.LBFGS)
    with pytest.raises(ValueError, match="needs Hessians"):
        replace(plan, algorithm=rl.SealedLaps("newton", wide=True))
