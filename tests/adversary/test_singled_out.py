"""A formula that singles out a person: whoever knows a patient's age to the day plans a regression whose coefficient is the outcome."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roundelay.agents.agreement.differencing import DifferenceError
from roundelay.agents.agreement.epochs import plan_ring
from roundelay.agents.agreement.plan import Stopping, Task
from roundelay.agents.agreement.policy import POLICY, Policy, refused_rows, refused_task, write_policy
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data.regressing import RegressionFit
from roundelay.regression import singled_out
from roundelay.regression.choosing import dealt
from roundelay.regression.formula import Formula
from roundelay.regression.pooled import glm, rows_of
from roundelay.regression.singled_out import between, narrow_knots
from roundelay.regression.study import Study
from roundelay.regression.sums import Known
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
        ("ill ~ bs(age, df=5) * sex + dose", "binomial", {}),
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
        sums.append(
            np.array(
                [float(known.told(one)[part][0]) for one, part in (("columns", "weight"), ("moments", "response"))]
            )
        )
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

    def allow(self, *calculations: str) -> None:
        for name in self.names:
            (self.folder / name / POLICY).unlink(missing_ok=True)
            write_policy(self.folder / name, Policy(allowed_calculations=calculations))

    def planned(self, formula: str) -> SignedPlan:
        task = Task("regression", missing="drop", regression=regression_of(Drawn().frames(), formula))
        members = [invited(site(name), columns=()) for name in self.names]
        return self.accept(self.signed(plan_ring(members, None, SEALED, task, Stopping(1e-11)), "Oslo"))


def test_the_site_that_has_the_patient_does_not_take_part_in_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wards, (_, below, above) = Wards(tmp_path, monkeypatch), known_of(Drawn().frames())
    ways = [f"length ~ dose + weights(1e-9 + (age > {limit}))" for limit in (below, above)]
    wards.allow("*")
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


def test_curves_with_factors_are_steps_too() -> None:
    """None is near another, but a sum of them with factors is about a patient."""
    frames = Drawn().frames()
    _, below, above = known_of(frames)
    step = "1 / (1 + exp(1e8 * ({} - age)))"
    first = f"length ~ 1 + weights(1 + {step.format(below)})"
    second = f"length ~ 1 + weights(2 + 3 * {step.format(above)})"
    assert between_limits(frames, first, second) == [SITE]


def in_other_words(frames: Frames) -> dict[str, str]:
    """Two limits around one patient in one formula, of which the second is written otherwise."""
    _, below, above = known_of(frames)
    first = f"I(age > {below})"
    return {
        "plainly": f"length ~ {first} + I(age > {above})",
        "another column times 0": f"length ~ {first} + I(age + 0 * dose > {above})",
        "a sign": f"length ~ {first} + I((age - {above}) / abs(age - {above}))",
        "a steep curve": f"length ~ {first} + I(1 / (1 + exp(1e8 * ({above} - age))))",
        "within a number": f"length ~ age + I(age + (age > {below})) + I(dose + (age > {above}))",
        "within weights": f"length ~ {first} + weights(1 + (age > {above}))",
        "within curves": f"length ~ I(age ** 2 + 1e-3 * (age > {below})) + I(log(dose)) + I(age ** 2 + log(dose) + 1e-3 * (age > {above}))",
    }


@pytest.mark.parametrize("way", list(in_other_words(Drawn().frames())))
def test_limits_are_held_against_each_other_however_they_are_written(way: str) -> None:
    frames = Drawn().frames()
    said = refused(frames, in_other_words(frames)[way])
    assert said[SITE] and "least_rows_a_level" in said[SITE][0]
    assert not any(said[name] for name in frames if name != SITE)


def test_between_two_limits_in_other_words_stands_the_whole_patient() -> None:
    """The control: the difference of two columns of sums, by which nobody but this patient is told of."""
    frames = Drawn().frames()
    known = glm(in_other_words(frames)["another column times 0"], frames).known
    names = [one for one in known.regression.design_names if "age" in one]
    places = [known.regression.design_names.index(one) for one in names]
    told = {**known.told("columns"), **known.told("moments")}
    counted, outcome = (told[part][places[0]] - told[part][places[1]] for part in ("columns", "explained"))
    assert counted == pytest.approx(1.0) and outcome == pytest.approx(float(frames[SITE]["length"][ROW]))


def pairs(frames: Frames) -> dict[str, tuple[str, str]]:
    """Two columns of many rows each at the site, which have one patient in common."""
    frame = frames[SITE]
    age, dose = float(frame["age"][ROW]), float(frame["dose"][ROW])
    older, more = frame["age"] > age - 1e-6, frame["dose"] > dose - 1e-6
    assert older.sum() >= 5 and more.sum() >= 5 and not (older & more).sum() >= 5
    first, second = f"age > {age - 1e-6}", f"dose > {dose - 1e-6}"
    return {
        "two limits": (f"length ~ I({first}) + I({second})", "gaussian"),
        "weights and a limit": (f"length ~ I({second}) + weights({first})", "gaussian"),
        "weights, of both sides": (f"length ~ I({second}) + weights(1e-9 + ({first}))", "gaussian"),
        "response and a limit": (f"I(length * ({first})) ~ I({second})", "gaussian"),
        "a yes or no": (f"ill ~ I({first}) + I({second}) + age", "binomial"),
        "without a comparison": (
            f"I(length * (1 + (age - {age - 1e-6}) / abs(age - {age - 1e-6}))) ~ I({second})",
            "gaussian",
        ),
    }


def crossing() -> Frames:
    """Where the old take less, so that few are old and take much."""
    frames = Drawn().frames()
    for frame in frames.values():
        frame["dose"] = frame["dose"] - 0.1 * (frame["age"] - 50.0) + 5.0
    frame = frames[SITE]
    both = frame[["age", "dose"]].rank().sum(axis=1)
    place = int(np.argmax(both.to_numpy()))
    order = [place if row == ROW else ROW if row == place else row for row in range(len(frame))]
    frames[SITE] = frame.iloc[order].reset_index(drop=True)
    return frames


def in_disguise(frames: Frames) -> str:
    """A step is the difference of two distances, and stands in no part of the formula: a number is added between."""
    age, dose = (float(frames[SITE][name][ROW]) for name in ("age", "dose"))

    def stepped(name: str, at: float, other: str) -> str:
        return f"I(abs({name} - {at - 1e-6}) * 1e6 + {other} - abs({name} - {at}) * 1e6)"

    return f"length ~ {stepped('age', age, 'visits')} + {stepped('dose', dose, 'time')} + visits + time"


def test_steps_that_stand_in_no_part_of_a_formula() -> None:
    """The product of two such columns is among the sums though it is not written: two of many rows each have few in common."""
    frames = Drawn(rows=150).frames()
    for frame in frames.values():
        frame["dose"] = frame["dose"] - 0.1 * (frame["age"] - 50.0) + 5.0
    frame = frames[SITE]
    place = int(np.argmax(frame[["age", "dose"]].rank().sum(axis=1).to_numpy()))
    frames[SITE] = frame.iloc[
        [place if row == ROW else ROW if row == place else row for row in range(len(frame))]
    ].reset_index(drop=True)
    age, dose = (float(frames[SITE][name][ROW]) for name in ("age", "dose"))
    assert ((frames[SITE]["age"] >= age) & (frames[SITE]["dose"] >= dose)).sum() == 1
    said = refused(frames, in_disguise(frames))[SITE]
    assert said and "least_rows_a_level" in said[0]


def test_a_weight_of_many_values_that_is_0_for_most() -> None:
    """The old, who take much, and have waited long: each two have many in common."""
    frames = Drawn(rows=150).frames()
    formula = "length ~ I(dose > 2):I(time > 0.6) + visits + weights((age > 62) * (2 + visits + ill))"
    frame = frames[SITE]
    cells = [frame["age"] > 62, frame["dose"] > 2, frame["time"] > 0.6]
    assert (
        min((one & other).sum() for one in cells for other in cells) >= 5 > (cells[0] & cells[1] & cells[2]).sum() > 0
    )
    said = refused(frames, formula)[SITE]
    assert said and "dose > 2" in said[0]


def test_splines_with_hardly_a_row_between_two_knots() -> None:
    frames = Drawn().frames()
    said = refused(frames, "length ~ bs(dose, df=16, degree=1)")
    assert all(said.values()) and "bs(dose, df=16, degree=1)" in said[SITE][0]


@pytest.mark.parametrize("way", list(pairs(crossing())))
def test_what_two_columns_have_in_common_is_looked_at(way: str) -> None:
    """No product is written, but all sums are of products."""
    frames = crossing()
    formula, family = pairs(frames)[way]
    said = refused(frames, formula, family)[SITE]
    assert said and "least_rows_a_level" in said[0]


def test_weights_and_a_limit_tell_the_outcome_of_who_is_beyond_both() -> None:
    """The control, at the site that has the patient."""
    frames = crossing()
    formula, _ = pairs(frames)["weights and a limit"]
    known = glm(formula, {SITE: frames[SITE]}).known
    age, dose = (float(frames[SITE][name][ROW]) for name in ("age", "dose"))
    both = frames[SITE][(frames[SITE]["age"] > age - 1e-6) & (frames[SITE]["dose"] > dose - 1e-6)]
    place = next(i for i, name in enumerate(known.regression.design_names) if "dose" in name)
    assert len(both) < 5
    assert known.told("moments")["explained"][place] == pytest.approx(both["length"].sum())


def test_limits_that_people_set_are_let_pass() -> None:
    frames = Drawn(rows=150).frames()
    for formula in (
        "length ~ I(age > 50) + C(sex) + dose",
        "ill ~ I(age > 45) + I(age > 55) + sex",
        "length ~ I(age > 50):C(sex)",
    ):
        assert not any(refused(frames, formula).values())


def invented(frames: Frames) -> tuple[Study, tuple[np.ndarray, ...]]:
    """What the first member tells of a spline before the columns are summed: knots around a patient's dose, by numbers that it has made up."""
    regression = regression_of(frames, "length ~ bs(dose, df=4, degree=1) + age", table_one=False)
    study, dose, totals = Study(regression), float(frames[SITE]["dose"][ROW]), ()
    sites = {name: rows_of(regression, frame, name) for name, frame in frames.items()}
    many, width = 2.0**46, 1e-3
    while not (known := study.known(totals, len(sites))).has("bins again"):
        total = np.sum([study.summand(one, known) for one in sites.values()], axis=0)
        name = study.sums[len(totals)].name
        if name == "rows":
            total[0] = many
        elif name == "sums":
            total = np.array([dose * many])
        elif name == "spreads":
            total = np.array([(width / 3.0) ** 2 * many])
        elif name.startswith("bins"):
            total = total + np.round(many / total.size)
        totals = (*totals, total)
    return study, totals


def test_knots_that_somebody_has_laid_around_a_patient() -> None:
    frames = Drawn().frames()
    study, totals = invented(frames)
    told = tuple(np.append(4.0, total) for total in totals)
    task = Task("regression", missing="drop", regression=study.regression)
    fits = {name: RegressionFit(task, rows_of(study.regression, frame, name)) for name, frame in frames.items()}
    knots = study.known(totals, 4).knots
    design = fits[SITE].rows.design(knots)
    alone = [place for place, column in enumerate(design.T) if (column != np.median(column)).sum() == 1]
    assert alone and design[ROW, alone[0]] > 0.1  # the control: a column that is the patient's alone
    found = fits[SITE].breaches(Policy(), told)
    assert found and "two knots with fewer than 5 rows of this site" in found[0]


def few_values() -> Frames:
    """Numbers of children, of whom one patient of all sites has seven."""
    frames = Drawn().frames()
    for frame in frames.values():
        frame["children"] = frame["visits"].clip(upper=4.0)
    frames[SITE].loc[ROW, "children"] = 7.0
    return frames


@pytest.mark.parametrize(
    "term",
    [
        "bs(children, df=5, degree=5)",
        "children + I(children ** 2) + I(children ** 3) + log1p(children) + sqrt(children)",
    ],
)
def test_curves_over_a_number_of_few_values_are_its_levels(term: str) -> None:
    said = refused(few_values(), f"length ~ {term} + age")[SITE]
    assert said and "children" in said[0]


def test_products_of_splines_are_curves_too() -> None:
    """Thirty weeks, and a spline of twelve: its products in pairs are as many curves, of which one is a single week."""
    frames = Drawn(rows=160).frames()
    rng = np.random.default_rng(0)
    for name, frame in frames.items():
        week = rng.choice(np.delete(np.arange(30.0), 17), len(frame))
        if name == SITE:
            week[ROW] = 17.0
        frame["week"] = week
    said = refused(frames, "length ~ bs(week, df=12, degree=5) * dose")[SITE]
    assert said and "week" in said[0]
    assert not any(refused(frames, "length ~ bs(week, df=4) * dose").values())


def test_a_line_over_a_number_of_few_values_is_none() -> None:
    for term in ("children", "children + age"):
        assert not any(refused(few_values(), f"length ~ {term}").values()), term


def test_factors_that_are_1_switch_nothing_off() -> None:
    frames = crossing()
    ones = ":".join(f"I(0 * age + 1.000{number})" for number in range(1, 10))
    assert refused(frames, f"{in_other_words(Drawn().frames())['within curves']} + visits:{ones}")[SITE]


@pytest.mark.parametrize("rows", [15, 60, 400])
@pytest.mark.parametrize("seed", range(5))
def test_knots_of_real_rows_are_let_pass(rows: int, seed: int) -> None:
    frames = Drawn(rows=rows, seed=seed).frames()
    regression = regression_of(frames, "length ~ bs(dose, df=5) + bs(age, df=4)", table_one=False)
    known = glm(regression.formula, frames, "gaussian").known
    assert not any(narrow_knots(rows_of(regression, frame, name), known.knots, 5) for name, frame in frames.items())


SIMPLE = (
    "length ~ age + I(age ** 2) + log(dose) + C(sex) + bs(dose, df=4) + site",
    "length ~ I((age - 50) ** 2) + log(1 + dose) + sqrt(2 * dose) + I(age / 10) + I(age - 1.5 * age ** 3)",
    "I(length * 2) ~ age * C(sex) + offset(log(dose)) + weights(visits)",
    "Surv(time, died) ~ age:dose",
)
OTHERWISE = {
    "I(age > 50)": "age > 50",
    "I(age * dose)": "age * dose",
    "log(age - 3)": "log(age - 3)",
    "exp(age)": "exp(age)",
    "abs(age)": "abs(age)",
    "I(age ** 4)": "age ** 4",
    "I(1 / age)": "1 / age",
    "I(age ** -1)": "age ** (-1)",
    "I((age ** 2) ** 2)": "(age ** 2) ** 2",
    "I(log(age) ** 2)": "log(age) ** 2",
    "weights(1 + (age > 50))": "1 + (age > 50)",
    "offset(3 * age + dose)": "3 * age + dose",
}


def task(formula: str) -> Task:
    family = "cox" if "Surv" in formula else "gaussian"
    return Task("regression", missing="drop", regression=regression_of(Drawn().frames(), formula, family))


@pytest.mark.parametrize("formula", SIMPLE)
def test_by_default_formulas_have_powers_logarithms_and_roots_of_a_column(formula: str) -> None:
    assert not refused_task(Policy(), task(formula))


@pytest.mark.parametrize("term", list(OTHERWISE))
def test_by_default_they_have_nothing_else(term: str) -> None:
    """So no limit of a stranger's choosing, however it is written, is ever held against the rows."""
    said = refused_task(Policy(), task(f"length ~ age + dose + {term}"))
    assert f'"{OTHERWISE[term]}"' in said[0] and "(allowed_calculations)" in said[0]
    for allowed in (OTHERWISE[term], OTHERWISE[term].replace(" ", ""), "*"):
        assert not refused_task(Policy(allowed_calculations=(allowed,)), task(f"length ~ age + dose + {term}"))


def test_all_formulas_above_are_refused_by_default_at_accept() -> None:
    frames = Drawn().frames()
    for formula in (*formulas(frames).values(), *in_other_words(frames).values(), in_disguise(frames)):
        assert refused_task(Policy(), task(formula)), formula


# ---------------------------------------------------------------- what stands in no calculation

RARE = {
    "a yes or no": ("case ~ age + dose", "binomial"),
    "a count": ("case ~ age + dose", "poisson"),
    "a number": ("case ~ age + dose", "gaussian"),
    "all but one": ("control ~ age + dose", "binomial"),
    "deaths": ("Surv(time, case) ~ age + dose", "cox"),
    "trials": ("cbind(case, tried) ~ age + dose", "binomial"),
}


def one_case() -> Frames:
    """Of all patients of all sites one has the illness."""
    frames = Drawn().frames()
    for frame in frames.values():
        frame["case"], frame["tried"] = 0.0, 4.0
    frames[SITE].loc[ROW, "case"] = 1.0
    for frame in frames.values():
        frame["control"] = 1.0 - frame["case"]
    return frames


def test_sums_with_an_outcome_that_one_has_are_the_whole_patient() -> None:
    """The control: of no column or level are there few, and no question is asked; the sums before the fit tell it."""
    frames = one_case()
    known = glm("case ~ age + dose", frames, "binomial").known
    patient = frames[SITE].loc[ROW, ["age", "dose"]].to_numpy(np.float64)
    np.testing.assert_allclose(known.told("moments")["explained"][1:], patient, rtol=1e-9)


@pytest.mark.parametrize("way", list(RARE))
def test_an_outcome_that_few_have_is_as_a_level_that_few_have(way: str) -> None:
    said = refused(one_case(), *RARE[way])
    assert {name for name, found in said.items() if found} == {SITE}
    assert "least_rows_a_level" in said[SITE][0]


CURVES = "length ~ bs(age, df=16, degree=1):C(stage) + dose"


def stages() -> Frames:
    """Five of each site have a rare stage of an illness, as many as the policy asks for."""
    frames, rng = Drawn(rows=300).frames(), np.random.default_rng(1)
    for frame in frames.values():
        frame["stage"] = "early"
        frame.loc[rng.choice(len(frame), 5, replace=False), "stage"] = "late"
    return frames


def test_a_spline_beside_a_rare_level_tells_outcomes_one_by_one() -> None:
    """The control: between two of its knots are many rows, and of the level there is one."""
    frames = stages()
    regression = regression_of(frames, CURVES, ridge=0.1)  # which lets pass that some of its columns follow from others
    study, totals = Study(regression), ()
    sites = {name: rows_of(regression, frame, name) for name, frame in frames.items()}
    while not (known := study.known(totals, len(sites))).has("moments"):
        totals = (*totals, np.sum([study.summand(one, known) for one in sites.values()], axis=0))
    moments = {**known.told("columns"), **known.told("moments")}
    design = np.vstack([one.design(known.knots) for one in sites.values()])
    lengths = np.concatenate([frame["length"] for frame in frames.values()])
    alone = np.flatnonzero((design != 0.0).sum(axis=0) == 1)
    assert len(alone) and all("late" in regression.design_names[column] for column in alone)
    for column in alone:
        outcome = moments["explained"][column] / moments["columns"][column]
        assert outcome == pytest.approx(float(lengths[design[:, column] != 0.0][0]))


def test_a_spline_is_held_against_the_rows_of_each_level_beside_it() -> None:
    assert not any(refused(stages(), "length ~ bs(age, df=16, degree=1) + C(stage) + dose").values())
    assert all("bs(age, df=16, degree=1)" in said[0] for said in refused(stages(), CURVES).values())
    cells = "length ~ bs(age, df=3):C(sex):C(stage) + dose"  # of which some have a row or two
    assert all("bs(age, df=3)" in said[0] for said in refused(stages(), cells).values())


OLDEST = 104.0


def two_polynomials() -> str:
    """Two columns whose difference is a polynomial that is small up to 85, and large at the age of one patient, where both are small."""
    roots = 52.5 + 32.5 * np.cos(np.pi * (2 * np.arange(8) + 1) / 16)

    def product(root: float) -> str:
        all_roots = [*roots, root]
        cubics = [np.poly(all_roots[place::3]) for place in range(3)]
        return ":".join(
            f"I(age ** 3 + {a!r} * age ** 2 + {b!r} * age + {c!r})" for _, a, b, c in map(np.ndarray.tolist, cubics)
        )

    return f"length ~ {product(OLDEST - 0.1)} + {product(OLDEST + 0.1)}"


def one_old() -> Frames:
    frames = Drawn(rows=150).frames()
    for frame in frames.values():
        frame["age"] = frame["age"].clip(20.0, 85.0)
    frames[SITE].loc[ROW, "age"] = OLDEST
    return frames


def test_two_products_of_powers_differ_by_one_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: each factor is a cube at most, and each column is about many rows; that the patient has their products alone is not looked at."""
    monkeypatch.setattr(Formula, "_is_bent", lambda self, term: False)
    monkeypatch.setattr(singled_out, "_by_combinations", lambda rows: iter(()))
    frames = one_old()
    regression = regression_of(frames, two_polynomials())
    sites = [rows_of(regression, frame, name) for name, frame in frames.items()]
    assert not refused_task(Policy(), Task("regression", missing="drop", regression=regression))
    assert not any(refused_rows(Policy(), one) for one in sites)
    designs = np.vstack([one.design({}) for one in sites])
    outcomes = np.concatenate([one.response for one in sites])
    first, second = designs[:, 1], designs[:, 2]  # of which the sums tell what each comes to, and times the outcome
    told = (first @ outcomes - second @ outcomes) / (first.sum() - second.sum())
    assert told == pytest.approx(float(frames[SITE].loc[ROW, "length"]), abs=0.05)


def test_powers_of_one_column_are_powers_however_they_are_multiplied() -> None:
    frames = one_old()
    assert (
        "(allowed_calculations)"
        in refused_task(
            Policy(), Task("regression", missing="drop", regression=regression_of(frames, two_polynomials()))
        )[0]
    )
    for term in ("I(age ** 2):I((age - 50) ** 2)", "age:log(age)", "bs(age, df=4):bs(age, df=5)", "bs(age, df=4):age"):
        said = refused_task(Policy(), task(f"length ~ dose + {term}"))
        assert f'"{term}"' in said[0]
        assert not refused_task(Policy(allowed_calculations=(term,)), task(f"length ~ dose + {term}"))
    for term in ("age:I(age ** 2)", "age:I(dose ** 3):I(age ** 2)", "bs(age, df=4):dose", "age * dose * sex"):
        assert not refused_task(Policy(), task(f"length ~ dose + {term}"))


# ---------------------------------------------------------------- an offset, in the sums before the fit


def beside_age(frames: Frames, formula: str, sign: str = "") -> str:
    """An offset that is a square of one column, and 0 at the age of the patient."""
    return f"{formula} + offset({sign}1e6 * (age - {known_of(frames)[0]!r}) ** 2)"


def sums_before(frames: Frames, formula: str, family: str, until: str) -> tuple[Known, Study, tuple[np.ndarray, ...]]:
    """What all are told before the fit, up to a sum and with it."""
    regression = regression_of(frames, formula, family)
    study, totals = Study(regression), ()
    sites = [rows_of(regression, frame, name) for name, frame in frames.items()]
    while not (known := study.known(totals, len(sites))).has(until):
        totals = (*totals, np.sum([study.summand(one, known) for one in sites], axis=0))
    return known, study, totals


def test_beside_an_offset_stands_the_outcome_of_one_patient() -> None:
    """The control: e to the power of the offset is 0 for all others, and by default a square is no calculation."""
    frames = Drawn().frames()
    formula = beside_age(frames, "time ~ dose")
    assert not refused_task(
        Policy(), Task("regression", missing="drop", regression=regression_of(frames, formula, "gamma"))
    )
    known, *_ = sums_before(frames, formula, "gamma", "moments")
    assert float(known.told("moments")["relative"][0]) == pytest.approx(float(frames[SITE]["time"][ROW]))


@pytest.mark.parametrize(
    ("formula", "family", "sign"), [("time ~ dose", "gamma", ""), ("visits ~ dose", "poisson", "-")]
)
def test_what_an_offset_makes_of_the_rows_is_looked_at_before_the_first_sum(
    formula: str, family: str, sign: str
) -> None:
    frames = Drawn().frames()
    said = refused(frames, beside_age(frames, formula, sign), family)[SITE]
    assert said and "least_rows_a_level" in said[0]
    assert not any(refused(frames, f"{formula} + offset(log(dose))", family).values())


@pytest.mark.parametrize(
    ("formula", "family"),
    [
        ("length ~ dose", "gaussian"),
        ("ill ~ dose", "binomial"),
        ("Surv(time, died) ~ dose", "cox"),
        ("visits ~ dose", "poisson"),
    ],
)
def test_what_no_fit_needs_of_an_offset_is_not_summed(formula: str, family: str) -> None:
    frames = Drawn().frames()
    told = sums_before(frames, beside_age(frames, formula), family, "moments")[0].told("moments")
    assert not told["relative"].any() and (family == "poisson" or not told["exposure"].any())


def balanced(frames: Frames) -> str:
    """An offset whose mean is 0, as sums of an earlier run tell, and which is 0 at the age of the patient, too."""
    age, ages = known_of(frames)[0], np.concatenate([frame["age"] for frame in frames.values()])
    other = float((ages * (ages - age)).mean() / (ages - age).mean())
    return f"offset(1e6 * (age - {age!r}) * (age - {other!r}))"


@pytest.mark.parametrize("alone", [True, False])
def test_the_best_constant_beside_an_offset_is_not_found_by_one_patient(alone: bool) -> None:
    """The control: the curvature that is summed is that of the patient, who alone is near the bend."""
    frames = Drawn().frames()
    formula = f"ill ~ dose + {balanced(frames) if alone else 'offset(log(dose))'}"
    known, study, totals = sums_before(frames, formula, "binomial", "null 0")
    assert not refused_task(Policy(), Task("regression", missing="drop", regression=study.regression))
    assert not any(refused(frames, formula, "binomial").values())
    if alone:
        assert 0.1 < float(known.told("null 0")["curvature"][0]) < 0.2501
    fit_task = Task("regression", missing="drop", regression=study.regression)
    fits = {name: RegressionFit(fit_task, rows_of(study.regression, frame, name)) for name, frame in frames.items()}
    told = tuple(np.append(4.0, total) for total in totals)
    said = {name: one.breaches(Policy(), told[:-1]) for name, one in fits.items()}
    assert bool(said[SITE]) is alone and (alone or not any(said.values()))
    assert not alone or "Beside the offset of the formula" in said[SITE][0]
