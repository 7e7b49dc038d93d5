"""A member that lies about its data moves the model, and nobody sees that under masks. Every honest site sees what it did to its own rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Column, Stopping, Task
from roundelay.agents.data.models import Model
from roundelay.agents.data.own_fit import NOTHING, OwnFit, compare_rows, compare_values
from roundelay.agents.data.reading import OwnRows
from roundelay.agents.data.regressing import RegressionFit
from roundelay.agents.site.rehearsal import Rehearsal, fit_by_all_others, prepare_ring
from roundelay.agents.site.taking_part import OWN_FIT, Ending
from roundelay.problems.callables import CallableProblem
from tests.agents import regression_rings
from tests.agents.conftest import COLUMNS
from tests.agents.hospitals import TASK, Hospitals, table_of
from tests.agents.processes import wait_until
from tests.agents.regression_rings import Drawn

NAMES = ("Oslo", "Bergen", "Tromso", "Narvik", "Alta")
LIAR, HONEST = NAMES[-1], NAMES[:-1]
LOGISTIC = Task("logistic", COLUMNS[:2], COLUMNS[2], ridge=1e-3)
SEALED, TOKEN = rl.SealedLaps(wide=True), rl.PIADMM1(rho=1.0, start=rl.SealedStart())


@pytest.fixture
def hospitals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hospitals:
    return Hospitals(tmp_path, monkeypatch, NAMES)


def with_labels(hospitals: Hospitals) -> None:
    for table in hospitals.tables.values():
        score = (table[:, 0] - 50.0) / 12.0 - (table[:, 1] - 170.0) / 9.0
        table[:, 2] = np.where(score + 0.5 * np.sin(17.0 * table[:, 0]) > 0.0, 1.0, -1.0)


def own_fits(hospitals: Hospitals, task: Task, algorithm: object) -> dict[str, OwnFit]:
    """What each site finds at the end; it is in its own folder, and nowhere in the model."""
    ring = hospitals.accept(hospitals.plan(task=task, algorithm=algorithm))
    found = {}
    for name, ended in hospitals.finish(ring).items():
        assert ended.own_fit is not None and "own" not in json.dumps([*ended.notes.__dict__])
        kept = hospitals.folder / name / "runs" / ring.plan.run / OWN_FIT
        assert json.loads(kept.read_text())["bad"] == ended.own_fit.bad and kept.stat().st_mode & 0o077 == 0
        found[name] = ended.own_fit
        words = ended.own_fit.in_words(ring.plan.run)
        assert ring.plan.run in words and f"{ended.own_fit.model:.3g}" in words
        assert words.startswith("THE MODEL DOES NOT FIT THIS SITE'S DATA.") == ended.own_fit.bad
    return found


@pytest.mark.parametrize(
    ("task", "algorithm"), [(TASK, SEALED), (LOGISTIC, SEALED), (TASK, TOKEN)], ids=["squares", "labels", "token"]
)
def test_nothing_is_said_loudly_among_honest_sites(task: Task, algorithm: object, hospitals: Hospitals) -> None:
    if task is LOGISTIC:
        with_labels(hospitals)
    for one in own_fits(hospitals, task, algorithm).values():
        assert not one.bad and one.alone is not None and one.model < 0.75 * one.nothing
        assert one.model < 0.5 * (one.alone + one.nothing)


@pytest.mark.parametrize("algorithm", [SEALED, TOKEN], ids=["sealed laps", "token"])
def test_targets_times_a_thousand(algorithm: object, hospitals: Hospitals) -> None:
    hospitals.tables[LIAR][:, 2] *= 1000.0
    found = own_fits(hospitals, TASK, algorithm)
    assert all(found[name].bad and found[name].model > 100.0 * found[name].nothing for name in HONEST)


def test_labels_that_are_turned_round(hospitals: Hospitals) -> None:
    """By one with more rows than all others together."""
    hospitals.tables[LIAR] = table_of(LIAR, 1000)
    with_labels(hospitals)
    hospitals.tables[LIAR][:, 2] *= -1.0
    found = own_fits(hospitals, LOGISTIC, SEALED)
    assert all(found[name].bad and found[name].model > found[name].nothing for name in HONEST)
    assert not found[LIAR].bad  # to the liar the model is right: the others can't tell it by that


def test_features_that_were_made_up(hospitals: Hospitals) -> None:
    """They spoil the means and the spreads by which all standardise; a site's own fit does not go by those."""
    hospitals.tables[LIAR] = np.vstack([hospitals.tables[LIAR]] * 5)
    hospitals.tables[LIAR][:, :2] *= 1e4
    found = own_fits(hospitals, TASK, SEALED)
    assert all(found[name].bad for name in HONEST)


def outputs(ring: Rehearsal) -> dict[str, str]:
    for seat in ring.seats:
        ring.start(seat, "--no-page")
    try:
        wait_until(
            lambda: bool(ring.failed()) or all(one.poll() is not None for one in ring.processes.values()),
            "the agents end",
        )
        assert not ring.failed(), ring.failed()
    finally:
        ring.stop()
    return {seat.name: (seat.folder / "output.txt").read_text() for seat in ring.seats}


def test_the_agents_of_the_honest_sites_say_it(tmp_path: Path) -> None:
    """Real agents over mutual TLS: four print that the model is none for their rows, with the run and the numbers."""
    rng = np.random.default_rng(5)
    rows: dict[str, list[list[str]]] = {}
    for name in NAMES:
        age = rng.normal(50.0, 12.0, 40)
        outcome = 0.3 * age + rng.normal(size=40)
        outcome *= 1000.0 if name == LIAR else 1.0
        rows[name] = [[repr(float(one)), repr(float(other))] for one, other in zip(age, outcome, strict=True)]
    header = ["age [years]", "outcome"]
    task = fit_by_all_others(header, "outcome", "least_squares")
    ring = prepare_ring(tmp_path / "ring", header, rows, task, SEALED, Stopping(1e-9))
    said = outputs(ring)
    for name in HONEST:
        assert (
            f"THE MODEL DOES NOT FIT THIS SITE'S DATA. On 40 rows of this site the loss of the model of run {ring.plan.run}"
            in said[name]
        )
        assert "a member has given false ones" in said[name]


# ---------------------------------------------------------------- what is held against what


X, Y = Column("x"), Column("y")


def made(rows: int, slope: float, seed: int, labels: bool = False, noise: float = 1.0) -> OwnRows:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 1)) * 3.0 + 20.0
    score = slope * (x[:, 0] - 20.0) + noise * rng.normal(size=rows)
    return OwnRows(x, np.where(score > 0.0, 1.0, -1.0) if labels else score)


def model(slope: float, kind: str = "least_squares") -> Model:
    return Model((("x", slope),), -20.0 * slope, kind, "y")


@pytest.mark.parametrize("labels", [False, True])
def test_chance_is_no_alarm(labels: bool) -> None:
    """A model like the site's own, or a site whose features tell nothing: three standard errors are passed about once in 700 times."""
    kind = "logistic" if labels else "least_squares"
    task, alarms = Task(kind, (X,), Y), 0
    for seed in range(80):
        rng = np.random.default_rng([seed, 1])
        rows = int(rng.integers(12, 80))
        for truth in (0.5, 0.0):
            shared = truth + 0.1 * rng.normal() / np.sqrt(rows)
            found = compare_rows(task, made(rows, truth, seed, labels), model(shared * (1.7 if labels else 1.0), kind))
            alarms += found is not None and found.bad
    assert alarms <= 1


@pytest.mark.parametrize("labels", [False, True])
def test_less_than_half_of_what_the_rows_could_give_is_said(labels: bool) -> None:
    kind = "logistic" if labels else "least_squares"
    task, rows = Task(kind, (X,), Y), made(400, 0.5, 1, labels)
    found = {slope: compare_rows(task, rows, model(slope, kind)) for slope in (0.5, 0.4, 0.02, -0.5, 500.0)}
    assert [one is not None and one.bad for one in found.values()] == [False, False, True, True, True]


def test_the_regulariser_is_that_of_the_ring() -> None:
    """A lasso that leaves all out is no lie: a fit to these rows alone would leave all out, too."""
    task, rows = Task("least_squares", (X,), Y), made(100, 0.5, 2)
    found = compare_rows(task, rows, model(0.0), rl.L1(100.0))
    assert found is not None and not found.bad and found.alone == pytest.approx(found.nothing)
    free = compare_rows(task, rows, model(0.0))
    assert free is not None and free.bad


def test_labels_that_can_be_separated_and_more_columns_than_rows() -> None:
    separable = compare_rows(
        Task("logistic", (X,), Y), made(60, 0.5, 3, labels=True, noise=0.0), model(2.0, "logistic")
    )
    assert separable is not None and not separable.bad and np.isfinite(separable.alone or np.nan)
    rng = np.random.default_rng(4)
    wide = OwnRows(rng.normal(size=(20, 50)), rng.normal(size=20))
    columns = tuple(Column(f"c{number}") for number in range(50))
    many = Model(tuple((one.name, 0.0) for one in columns), 0.0, "least_squares", "y")
    found = compare_rows(Task("least_squares", columns, Y), wide, many)
    assert found is not None and not found.bad and np.isfinite(found.alone or np.nan)


def test_nothing_is_told_of_few_rows_or_one_target_alone() -> None:
    task = Task("least_squares", (X,), Y)
    assert compare_rows(task, made(9, 0.5, 1), model(500.0)) is None
    rows = made(50, 0.5, 1)
    assert compare_rows(task, OwnRows(rows.features, np.ones(50)), model(500.0)) is None


def test_numbers_beyond_all_measure_are_bad_and_no_trouble() -> None:
    found = compare_rows(Task("least_squares", (X,), Y), made(50, 0.5, 1), model(1e200))
    assert found is not None and found.bad and np.isfinite(found.model)


@pytest.mark.parametrize(
    ("formula", "family"),
    [("length ~ age + dose", "gaussian"), ("ill ~ age + dose", "binomial"), ("visits ~ age + dose", "poisson")],
)
def test_a_regression_that_is_far_off_is_bad_though_one_row_loses_most(formula: str, family: str) -> None:
    """Also where a loss is no number any more, or one row's is larger than those of all others together, as that of a count is."""
    frames = Drawn().frames()
    ring = regression_rings.holders(frames, regression_rings.regression_of(frames, formula, family))
    list(regression_rings.hand_overs(ring))
    for one in ring:
        assert isinstance(one.local, RegressionFit) and one.held.estimate is not None
        found = []
        for times in (1.0, 50.0, 1e3, 1e100, 1e160, 1e300):
            found.append(
                one.local.own_fit(times * one.held.estimate, Model((), 0.0, "regression", ""), NOTHING, one.held.told)
            )
        assert [fit is not None and fit.bad and np.isfinite(fit.model) for fit in found] == [False] + [True] * 5


def test_an_objective_of_the_sites_own_is_held_against_0() -> None:
    square = CallableProblem([lambda x: 2.0 * (x - 1.0)], 1, [lambda x: float(((x - 1.0) ** 2).sum())])
    near, far = (compare_values(square, np.array([point])) for point in (1.5, 3.0))
    assert near is not None and far is not None and (near.bad, far.bad) == (False, True)
    assert "This site's objective is 4 at the solution of run abc, and 1 at 0." in far.in_words("abc")

    def breaks(x: np.ndarray) -> float:
        raise RuntimeError("no value")

    assert compare_values(CallableProblem([lambda x: x], 1, [breaks]), np.ones(1)) is None


def test_a_run_that_ended_well_says_so_in_json(hospitals: Hospitals) -> None:
    ended = next(iter(hospitals.finish(hospitals.accept(hospitals.plan())).values()))
    assert isinstance(ended, Ending)
    from roundelay.cli.agent import _content

    assert _content(ended, None)["own_fit"]["bad"] is False
