"""A formula that singles out a person: whoever knows a patient's age to the day plans a regression whose coefficient is the outcome."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roundelay.agents.agreement.differencing import DifferenceError
from roundelay.agents.agreement.epochs import plan_ring
from roundelay.agents.agreement.plan import Stopping, Task
from roundelay.agents.agreement.policy import Policy, refused_rows
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data.regressing import RegressionFit
from roundelay.regression.choosing import dealt
from roundelay.regression.pooled import glm, rows_of
from roundelay.regression.singled_out import between
from roundelay.regression.study import Study
from tests.agents.conftest import invited, site
from tests.agents.hospitals import NAMES, SEALED, Hospitals
from tests.agents.regression_rings import Drawn, Frames, regression_of
from tests.agents.test_regression_rings import FORMULAS

SITE, ROW = "site2", 7


def known_of(frames: Frames) -> tuple[float, float, float]:
    """What the planner knows of the patient: the age, and so what is just below and above it."""
    age = float(frames[SITE]["age"][ROW])
    return age, age - 1e-6, age + 1e-6


def formulas(frames: Frames) -> dict[str, str]:
    """Many ways to write it."""
    age, below, above = known_of(frames)
    one = f"(age > {below}) * (age < {above})"
    return {
        "product": f"length ~ dose + I({one})",
        "difference": f"length ~ dose + I(age > {below}) + I(age > {above})",
        "interaction": f"length ~ dose:I({one})",
        "curve": f"length ~ dose + I(exp(-1e6 * (age - {age}) ** 2))",
        "curve within a spline": f"length ~ bs(dose, df=4):I(exp(-1e6 * (age - {age}) ** 2))",
        "pole": f"length ~ dose + I(1 / abs(age - {age} + 1e-9))",
        "weights": f"length ~ 1 + weights(1e-9 + {one})",
        "all but one": f"length ~ 1 + weights(1 - {one})",
        "response": f"I(length * {one}) ~ dose",
        "offset": f"visits ~ dose + offset(-50 + 50 * {one})",
    }


def refused(frames: Frames, formula: str, family: str = "gaussian", **planned: object) -> dict[str, tuple[str, ...]]:
    """What each site's policy refuses of its own rows."""
    regression = regression_of(frames, formula, family, **planned)  # type: ignore[arg-type]
    return {name: refused_rows(Policy(), rows_of(regression, frame, name, "drop")) for name, frame in frames.items()}


def test_the_outcome_of_one_patient_is_a_coefficient() -> None:
    """The positive control: without the policy, in a sum over four sites that tells no site's part."""
    frames = Drawn().frames()
    fitted = glm(formulas(frames)["weights"], frames).coefficients["Intercept"]
    assert fitted == pytest.approx(float(frames[SITE]["length"][ROW]), abs=1e-5)


@pytest.mark.parametrize("way", list(formulas(Drawn().frames())))
def test_the_site_that_has_the_patient_does_not_take_part(way: str) -> None:
    frames = Drawn().frames()
    family = "poisson" if way == "offset" else "gaussian"
    said = refused(frames, formulas(frames)[way], family)[SITE]
    assert said and "is about fewer than 5 rows of this site" in said[0]


@pytest.mark.parametrize(
    ("formula", "family", "planned"),
    [
        *FORMULAS,
        ("length ~ age + I(age ** 2) + log(dose)", "gaussian", {}),
        ("length ~ I(age > 50) + sex:dose", "gaussian", {}),
        ("visits ~ sex + offset(log(dose))", "poisson", {}),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_people_fit_is_let_pass(formula: str, family: str, planned: dict[str, object]) -> None:
    assert not any(refused(Drawn().frames(), formula, family, **planned).values())


def test_a_number_that_few_have_is_as_a_level_that_few_have() -> None:
    frames = Drawn().frames()
    for frame in frames.values():
        frame["flag"] = 0.0
    frames[SITE].loc[ROW, "flag"] = 1.0
    assert {name for name, said in refused(frames, "length ~ age + flag").items() if said} == {SITE}


def test_folds_of_a_few_rows_are_refused() -> None:
    """What the rows outside each fold say at one point: the sum of all of them tells what all rows say, and so what each fold does."""
    frames, formula, dim = Drawn(rows=24).frames(), "length ~ age + dose", 3
    regression = regression_of(frames, formula, "gaussian", ridge=0.1, folds=8)
    sites = {name: rows_of(regression, frame, name) for name, frame in frames.items()}
    study, totals = Study(regression), ()
    while not (known := study.known(totals, len(sites))).has("products"):
        totals = (*totals, np.sum([study.summand(one, known) for one in sites.values()], axis=0))
    told = np.sum([study.folds(one, known)(np.zeros(8 * dim)) for one in sites.values()], axis=0).reshape(8, -1)
    fold = told[:, 0].sum() / 7 - told[3, 0]
    assert round(fold) == sum(int((dealt(one.count, 8) == 3).sum()) for one in sites.values()) < 20
    said = {name: refused_rows(Policy(), one) for name, one in sites.items()}
    assert {name for name, found in said.items() if found} == {"site0", "site1", "site2"}
    assert "leaves rows out in 8 folds" in said["site0"][0]


def between_limits(frames: Frames, first: str, second: str) -> list[str]:
    """The sites that find few rows between the limits of two regressions."""
    one, other = regression_of(frames, first), regression_of(frames, second)
    found = {name: between(rows_of(other, frame, name, "drop"), 10, [one]) for name, frame in frames.items()}
    return [name for name, said in found.items() if said]


def test_two_sums_whose_limits_differ_by_one_patient() -> None:
    """Each is about many rows; their difference is the patient's outcome."""
    frames = Drawn().frames()
    _, below, above = known_of(frames)
    ways = [f"length ~ 1 + weights(1e-9 + (age > {limit}))" for limit in (below, above)]
    assert not any(refused(frames, ways[0])[SITE]) and not any(refused(frames, ways[1])[SITE])
    sums = []
    for way in ways:
        known = glm(way, frames).known
        sums.append(np.array([float(known.told("moments")[part][0]) for part in ("weight", "response")]))
    weight, outcome = sums[0] - sums[1]
    assert weight == pytest.approx(1.0) and outcome == pytest.approx(float(frames[SITE]["length"][ROW]))
    assert between_limits(frames, *ways) == [SITE]


def test_limits_that_many_rows_are_between_and_the_same_limits_again() -> None:
    frames = Drawn().frames()
    assert not between_limits(frames, "length ~ I(age > 45)", "ill ~ I(age > 55)")
    assert not between_limits(frames, "length ~ I(age > 62)", "ill ~ dose + I(age > 62)")
    assert not between_limits(frames, "length ~ I(age > 45)", "ill ~ I(dose > 1.01)")
    assert not between_limits(frames, "length ~ age", "ill ~ I(dose > 1.01)")


class Wards(Hospitals):
    """Sites that bring these rows to regressions."""

    def local(self, name: str, task: Task) -> RegressionFit:  # type: ignore[override]
        assert task.regression is not None
        frame = Drawn().frames()[f"site{NAMES.index(name)}"]
        return RegressionFit(task, rows_of(task.regression, frame, name, task.missing))

    def planned(self, formula: str) -> SignedPlan:
        task = Task("regression", missing="drop", regression=regression_of(Drawn().frames(), formula))
        members = [invited(site(name), columns=()) for name in self.names]
        return self.accept(self.signed(plan_ring(members, None, SEALED, task, Stopping(1e-11)), "Oslo"))


def test_the_site_that_has_the_patient_does_not_take_part_in_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wards, (_, below, above) = Wards(tmp_path, monkeypatch), known_of(Drawn().frames())
    ways = [f"length ~ dose + weights(1e-9 + (age > {limit}))" for limit in (below, above)]
    wards.finish(wards.planned(ways[0]))
    ended = wards.run(wards.planned(ways[1]))["Tromso"]
    assert isinstance(ended, DifferenceError) and "between which it has fewer than" in str(ended)


def test_steep_curves_of_two_runs_differ_by_a_patient() -> None:
    """As limits do; each is about many rows."""
    frames = Drawn().frames()
    _, below, above = known_of(frames)
    ways = [f"length ~ 1 + weights(1e-12 + 1 / (1 + exp(1e8 * ({limit} - age))))" for limit in (below, above)]
    assert not any(refused(frames, ways[0])[SITE] + refused(frames, ways[1])[SITE])
    outcomes = [float(glm(way, frames).known.told("moments")["response"][0]) for way in ways]
    assert outcomes[0] - outcomes[1] == pytest.approx(float(frames[SITE]["length"][ROW]), abs=1e-6)
    assert between_limits(frames, *ways) == [SITE]


def test_curves_that_differ_for_all_are_let_pass() -> None:
    frames = Drawn().frames()
    assert not between_limits(frames, "length ~ I(age ** 2)", "length ~ log(age) + I(age ** 3)")
    assert not between_limits(frames, "length ~ I(age ** 2) + C(sex)", "ill ~ I(age ** 2) + bs(dose, df=4)")


def test_three_curves_can_still_come_to_a_patient() -> None:
    """What remains: none is near another, but their sum with factors is."""
    frames = Drawn().frames()
    _, below, above = known_of(frames)
    step = "1 / (1 + exp(1e8 * ({} - age)))"
    first = f"length ~ 1 + weights(1 + {step.format(below)})"
    second = f"length ~ 1 + weights(2 + 3 * {step.format(above)})"
    assert between_limits(frames, first, second) == []
