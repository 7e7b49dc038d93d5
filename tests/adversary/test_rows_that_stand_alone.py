"""Formulas of columns as they are, powers, logarithms, splines, levels, weights and folds, in which one patient stands alone.

Nothing is calculated that the usual policy does not let every formula have. Each attack is here with what the sums tell, beside the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import BSpline

from roundelay.agents.agreement.plan import Task
from roundelay.agents.agreement.policy import Policy, refused_counts, refused_rows, refused_task
from roundelay.kernels import Matrix, Vector
from roundelay.regression import formula as formulas, sums
from roundelay.regression.choosing import dealt
from roundelay.regression.pooled import glm, rows_of
from roundelay.regression.rows import SiteRows
from roundelay.regression.study import Study, StudyError
from roundelay.regression.sums import Known, left_to_others, leverages_among_all
from tests.agents.regression_rings import Drawn, Frames, regression_of
from tests.regression.studies import SPLITS, STUDIES, split

SITE, ROW = "site2", 7
RIDGE = {"ridge": 1e-6}  # lets pass that columns follow from others


def sums_of(
    frames: Frames, formula: str, family: str = "gaussian", **planned: Any
) -> tuple[Known, dict[str, SiteRows]]:
    """What all are told before the fit."""
    regression = regression_of(frames, formula, family, **planned)
    sites = {name: rows_of(regression, frame, name, "drop") for name, frame in frames.items()}
    study, totals = Study(regression), ()
    for _ in range(study.before):
        known = study.known(totals, len(sites))
        totals = (*totals, np.sum([study.summand(one, known) for one in sites.values()], axis=0))
    return study.known(totals, len(sites)), sites


def refused(
    frames: Frames, formula: str, family: str = "gaussian", policy: Policy | None = None, **planned: Any
) -> dict[str, str]:
    """What each site refuses by its policy, before each sum and up to that before the fit: of the plan, its rows, and what was told."""
    policy = policy or Policy()
    regression = regression_of(frames, formula, family, **planned)
    sites = {name: rows_of(regression, frame, name, "drop") for name, frame in frames.items()}
    of_all = " ".join(refused_task(policy, Task("regression", missing="drop", regression=regression)))
    found = {name: " ".join([of_all, *refused_rows(policy, one)]).strip() for name, one in sites.items()}
    study, totals = Study(regression), ()
    for _ in range(study.before):
        known = study.known(totals, len(sites))
        if totals:
            for name, one in sites.items():
                found[name] += " ".join(refused_counts(policy, known, one))
        try:
            totals = (*totals, np.sum([study.summand(one, known) for one in sites.values()], axis=0))
        except StudyError:  # said to all, with nothing more added
            break
    return {name: said for name, said in found.items() if said}


def told(known: Known, combination: Mapping[str, float]) -> tuple[float, float]:
    """Columns of the design with factors: what they come to over all rows, and times what is explained."""
    names = known.regression.design_names
    parts = known.told("columns")["columns"], known.told("moments")["explained"]
    counted, outcome = (sum(factor * part[names.index(name)] for name, factor in combination.items()) for part in parts)
    return float(counted), float(outcome)


def alone(known: Known, sites: Mapping[str, SiteRows], row: int) -> float:
    """Of the row in this place of all the best guess at what is explained, by sums with the columns alone: what a fit says there."""
    design = np.vstack([one.design(known.knots) for one in sites.values()])
    sizes = np.linalg.norm(design, axis=0)
    turned, corner = np.linalg.qr(design / sizes)
    return float(turned[row] @ np.linalg.solve(corner.T, known.told("moments")["explained"] / sizes))


# ---------------------------------------------------------------- folds


def many_columns(columns: int = 38, rows: int = 100) -> tuple[Frames, str]:
    rng, found = np.random.default_rng(0), {}
    slopes = 0.3 * rng.normal(size=columns)
    for number in range(4):
        numbers = rng.normal(size=(rows, columns))
        frame = pd.DataFrame(numbers, columns=[f"x{column}" for column in range(columns)])
        found[f"site{number}"] = frame.assign(ill=(rng.random(rows) < 1.0 / (1.0 + np.exp(-numbers @ slopes))) * 1.0)
    return found, "ill ~ " + " + ".join(f"x{column}" for column in range(columns))


def test_a_fold_of_fewer_rows_than_columns_tells_every_outcome_in_it() -> None:
    """The control: of the first answer, at the point where all start, follow a fold's gradient and curvature, of 20 rows and 39 unknowns."""
    (frames, formula), folds = many_columns(), 20
    known, sites = sums_of(frames, formula, "binomial", lasso=0.1, folds=folds)
    study, dim, upper = Study(known.regression), known.regression.dim, np.triu_indices(known.regression.dim)
    answer = np.sum([study.folds(one, known)(np.zeros(folds * dim)) for one in sites.values()], axis=0).reshape(
        folds, -1
    )
    within = answer[:, 3:].sum(axis=0) / (folds - 1) - answer[4, 3:]  # the fold itself: all but what is outside
    gradient, curvature = within[:dim], np.zeros((dim, dim))
    curvature[upper] = within[dim:]
    curvature += np.triu(curvature, 1).T
    for one in sites.values():
        inside = dealt(one.count, folds) == 4
        design = ((one.design({}) - known.scaling.shift) / known.scaling.scale)[inside]
        outcomes = 0.5 - 0.25 * design @ np.linalg.pinv(curvature, rcond=1e-9, hermitian=True) @ gradient
        np.testing.assert_allclose(outcomes, one.response[inside], atol=1e-9)


def test_unknowns_are_held_against_the_rows_of_a_fold() -> None:
    frames, formula = many_columns()
    said = refused(frames, formula, "binomial", lasso=0.1, folds=20)
    assert set(said) == set(frames)
    assert "A fold has 20 rows of all sites for 39 unknowns" in said[SITE] and "Plan with 3 folds at most" in said[SITE]
    assert not refused(frames, formula, "binomial", lasso=0.1, folds=3)
    assert not refused(frames, formula, "binomial", Policy(most_parameters_per_row=1.0), lasso=0.1, folds=20)


def test_levels_are_held_against_the_rows_of_a_fold() -> None:
    """Of 20 rows with a level in 10 folds, in one of which there is one, the curvature of that fold is that row."""
    frames = Drawn(rows=100).frames()
    for frame in frames.values():
        frame["stage"] = np.where(np.arange(len(frame)) < 5, "late", "early")
    said = refused(frames, "length ~ age + C(stage)", lasso=0.1, folds=10)
    assert (
        "20 rows with the level 'late' of stage, in 10 folds" in said[SITE]
        and "Plan with 4 folds at most" in said[SITE]
    )
    assert not refused(frames, "length ~ age + C(stage)", lasso=0.1, folds=4)


# ---------------------------------------------------------------- powers, and products of them


def stages() -> Frames:
    """Three numbers of three values each, of which one patient has the highest in all."""
    rng, found = np.random.default_rng(1), {}
    for number in range(4):
        three = rng.integers(0, 3, (200, 3)).astype(float)
        three[(three == 2.0).all(axis=1), 2] = 1.0
        found[f"site{number}"] = pd.DataFrame(three, columns=["stage", "ecog", "asa"]).assign(
            length=rng.gamma(2.0, 3.0, 200)
        )
    found[SITE].loc[ROW, ["stage", "ecog", "asa"]] = 2.0
    return found


def all_powers() -> str:
    """x(x − 1)/2 is 1 where x is 2, and 0 where it is 0 or 1."""
    powers = [["", name, f"I({name} ** 2)"] for name in ("stage", "ecog", "asa")]
    return "length ~ " + " + ".join(":".join(filter(None, term)) for term in product(*powers) if any(term))


def test_products_of_powers_are_cells_of_few_values() -> None:
    frames = stages()
    known, _ = sums_of(frames, all_powers())
    cell = {
        name: (-1.0) ** sum("**" not in factor for factor in name.split(":")) / 8.0
        for name in known.regression.design_names
        if name.count(":") == 2
    }
    assert told(known, cell) == pytest.approx((1.0, float(frames[SITE].loc[ROW, "length"])))
    assert set(said := refused(frames, all_powers())) == {SITE}
    assert "ecog:stage" in said[SITE] or "asa" in said[SITE]
    assert "stands nearly alone among those of all sites" in said[SITE]  # twice: by its own rows, and by what was told
    fewer = "length ~ stage + I(stage ** 2) + ecog * asa + stage:ecog"
    assert not refused(frames, fewer)


def test_a_logarithm_is_of_a_column_and_not_of_one_that_was_shifted() -> None:
    """Two poles below the youngest, which its neighbours are far from: with powers, that leaves the youngest."""
    frames = Drawn(rows=100).frames()
    ages = np.concatenate([frame["age"] for frame in frames.values()])
    youngest = int(ages.argmin())
    logarithms = " + ".join(f"log(1 + (age - {float(ages.min()) - below + 1.0!r}))" for below in (2.0, 5.0))
    formula = f"length ~ age + I(age ** 2) + I(age ** 3) + {logarithms}"
    known, sites = sums_of(frames, formula)
    truth = float(np.concatenate([frame["length"] for frame in frames.values()])[youngest])
    assert alone(known, sites, youngest) == pytest.approx(truth, abs=0.1)
    assert all("(allowed_calculations)" in one for one in refused(frames, formula).values())
    said = refused(frames, formula, policy=Policy(allowed_calculations=("*",)))
    assert any("stands nearly alone among those of all sites" in one for one in said.values())
    for term in ("log((age - 9) * 1)", "log(1 + 2 * (age - 9))", "sqrt(age + 1 - 9)", "log(1 + (1 + age))"):
        assert refused(frames, f"length ~ {term}"), term
    for term in ("log(1 + age)", "log(1 + 2 * age)", "log(age / 10 + 1)", "log1p(dose)", "sqrt(1 + dose)"):
        assert not refused(frames, f"length ~ {term} + C(sex)"), term


# ---------------------------------------------------------------- splines


def long_tail() -> Frames:
    """A measurement as of the blood, of whose logarithm there is a bell."""
    rng = np.random.default_rng(5)
    return {
        f"site{number}": pd.DataFrame(
            {
                "crp": np.exp(rng.normal(1.0, 1.0, 150)),
                "age": rng.normal(60.0, 10.0, 150),
                "ill": (rng.random(150) < 0.4) * 1.0,
                "length": rng.normal(8.0, 2.0, 150),
            }
        )
        for number in range(4)
    }


def polynomials(x: Vector, knots: list[float], degree: int) -> Matrix:
    """Splines that go on as polynomials beyond their ends."""
    whole = np.concatenate([np.full(degree, knots[0]), knots, np.full(degree, knots[-1])])
    return np.asarray(BSpline(whole, np.eye(len(whole) - degree - 1), degree)(x), np.float64)[:, 1:]


@pytest.mark.parametrize("go_on", [True, False])
def test_beyond_its_ends_a_spline_is_a_straight_line(go_on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it is about the largest value alone, where a column has a long tail, and tells the outcome beside it."""
    if go_on:
        monkeypatch.setattr(formulas, "spline_columns", polynomials)
    frames, formula = long_tail(), "length ~ bs(crp, df=10) + age"
    known, sites = sums_of(frames, formula)
    whole = pd.concat(frames.values())
    largest = int(whole["crp"].argmax())
    error = abs(alone(known, sites, largest) - float(whole["length"].iloc[largest]))
    highest = max(float(leverages_among_all(one, known).max()) for one in sites.values())
    assert (error < 0.1 and highest > 0.99) if go_on else (error > 1.0 and highest < 0.7)
    assert bool(refused(frames, formula)) is go_on
    assert not go_on or "take the logarithm of a column with a long tail" in " ".join(refused(frames, formula).values())


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_line_begins_where_the_spline_ends(degree: int) -> None:
    knots, near = [0.0, 0.4, 1.0], np.array([-1e-7, 0.0, 1e-7, 1.0 - 1e-7, 1.0, 1.0 + 1e-7])
    found = formulas.spline_columns(near, knots, degree)
    np.testing.assert_allclose(found, polynomials(near, knots, degree), atol=1e-12)
    far = formulas.spline_columns(np.array([1.0, 2.0, 3.0]), knots, degree)
    np.testing.assert_allclose(far[2] - far[1], far[1] - far[0], atol=1e-12)


# ---------------------------------------------------------------- a level times many columns


@pytest.mark.parametrize(("columns", "planned"), [(61, RIDGE), (57, {})])
def test_fewer_rows_have_a_level_than_there_are_columns_beside_it(columns: int, planned: dict[str, float]) -> None:
    """Of all rows there are ten to each unknown, and of the level one or none."""
    rng, frames = np.random.default_rng(0), {}
    for number in range(4):
        frame = pd.DataFrame(rng.uniform(1.0, 2.0, (320, columns)), columns=[f"x{column}" for column in range(columns)])
        stage = np.full(320, "common", object)
        stage[rng.permutation(320)[:15]] = "rare"
        frames[f"site{number}"] = frame.assign(stage=stage, length=rng.normal(8.0, 2.0, 320))
    formula = f"length ~ C(stage) * ({' + '.join(f'x{column}' for column in range(columns))})"
    planned = {"table_one": False, **planned}
    known, sites = sums_of(frames, formula, **planned)
    names = known.regression.design_names
    rare = [place for place, name in enumerate(names) if name.startswith("C(stage)[T.rare]")]
    design = np.vstack([one.design({}) for one in sites.values()])
    has = design[:, rare[0]] == 1.0
    of_rare = design[has][:, rare]
    guesses = of_rare @ np.linalg.pinv(of_rare.T @ of_rare, rcond=1e-11) @ known.told("moments")["explained"][rare]
    lengths = np.concatenate([one.response for one in sites.values()])[has]
    assert len(lengths) == 60 and np.median(np.abs(guesses - lengths)) < (1e-6 if columns >= 60 else 0.5)
    said = refused(frames, formula, **planned)
    assert set(said) == set(frames) and "stands nearly alone among those of all sites" in said[SITE]
    assert not refused(frames, f"length ~ C(stage) * (x0 + x1 + x2) + {' + '.join(f'x{one}' for one in range(3, 9))}")


def test_without_the_look_at_all_rows_the_plan_goes_on() -> None:
    """With 1 nobody looks."""
    frames = long_tail()
    formula = (
        "length ~ "
        + " + ".join(f"I(crp ** {power})" if power > 1 else "crp" for power in (1, 2, 3))
        + " + age * I(crp ** 3)"
    )
    assert refused(frames, formula) and not refused(
        frames, formula, policy=Policy(least_rows_a_level=1, lone_levels=True)
    )


def test_leverages_are_those_of_all_rows_whatever_the_formula() -> None:
    """With a constant, without one, of sites with constants of their own, of weights and of survival: against the design of all rows."""
    frames = Drawn(rows=30).frames()
    for formula, family in (
        ("length ~ age + dose + C(sex)", "gaussian"),
        ("length ~ 0 + age + dose", "gaussian"),
        ("length ~ age + dose + site", "gaussian"),
        ("length ~ age + dose + weights(time)", "gaussian"),
        ("Surv(time, died) ~ age + dose", "cox"),
    ):
        known, sites = sums_of(frames, formula, family)
        designs = [np.column_stack([one.design({}), np.ones(one.count)]) for one in sites.values()]
        if known.regression.absorbs_sites:
            own = np.repeat(np.eye(len(sites)), [one.count for one in sites.values()], axis=0)
            designs = [np.column_stack([np.vstack(designs), own])]
        weights = np.sqrt(np.concatenate([one.weight for one in sites.values()]))
        turned, sizes, _ = np.linalg.svd(weights[:, None] * np.vstack(designs), full_matrices=False)
        expected = (turned[:, sizes > 1e-9 * sizes[0]] ** 2).sum(axis=1)
        found = np.concatenate([leverages_among_all(one, known) for one in sites.values()])
        np.testing.assert_allclose(found, expected, rtol=1e-8, err_msg=formula)


# ---------------------------------------------------------------- two columns that are nearly the same


def twice() -> Frames:
    """Columns that were noted twice, and differ in one patient."""
    frames, rng = Drawn(rows=100).frames(), np.random.default_rng(3)
    for frame in frames.values():
        frame["smoker"] = (rng.random(len(frame)) < 0.3) * 1.0
        frame["ward"] = rng.choice(["a", "b", "c"], len(frame))
        frame["grams"] = 1000.0 * frame["dose"]
        for name in ("smoker", "ward", "grams"):
            frame[f"{name}_later"] = frame[name]
    patient = frames[SITE].loc[ROW]
    frames[SITE].loc[ROW, "smoker_later"] = 1.0 - patient["smoker"]
    frames[SITE].loc[ROW, "ward_later"] = {"a": "b", "b": "c", "c": "b"}[patient["ward"]]
    frames[SITE].loc[ROW, "grams_later"] = patient["grams"] + 1.0
    return frames


TWICE = {
    "yes or no": ("smoker + smoker_later", {"smoker": 1.0, "smoker_later": -1.0}),
    "levels": ("C(ward) + C(ward_later)", {}),
    "numbers": ("grams + grams_later", {"grams_later": 1.0, "grams": -1.0}),
    "in another unit": ("dose + grams_later", {"grams_later": 1.0, "dose": -1000.0}),
}


@pytest.mark.parametrize("way", list(TWICE))
def test_two_columns_that_differ_in_one_patient_tell_that_patient(way: str) -> None:
    frames = twice()
    terms, apart = TWICE[way]
    known, _ = sums_of(frames, f"length ~ age + {terms}", **RIDGE)
    if way == "levels":
        level = str(frames[SITE].loc[ROW, "ward_later"])
        apart = {f"C(ward_later)[T.{level}]": 1.0, f"C(ward)[T.{level}]": -1.0}
    counted, outcome = told(known, apart)
    assert outcome / counted == pytest.approx(float(frames[SITE].loc[ROW, "length"]), rel=1e-5)
    for planned in ({}, RIDGE):
        said = refused(frames, f"length ~ age + {terms}", **planned)
        assert " beside " in said[SITE] and "is about fewer than 5 rows" in said[SITE]
    by_all = refused(frames, f"length ~ age + {terms}", **RIDGE)[SITE]
    assert "stands nearly alone among those of all sites" in by_all


def test_two_columns_that_are_the_same_in_all_rows_or_differ_in_many_are_let_pass() -> None:
    """Which is said of the rows of all sites, since the first leave no fit."""
    frames = twice()
    for frame in frames.values():
        frame["half"] = frame["dose"] / 2.0
        frame["other"] = np.where(np.arange(len(frame)) < 20, 1.0 - frame["smoker"], frame["smoker"])
    assert not refused(frames, "length ~ dose + half") and not refused(frames, "length ~ smoker + other + age")


# ---------------------------------------------------------------- weights


def intensive_care() -> Frames:
    """Where there are men, but for one woman."""
    frames, rng = Drawn(rows=100).frames(), np.random.default_rng(0)
    for frame in frames.values():
        frame["icu"] = (rng.random(len(frame)) < 0.25) * 1.0
        frame.loc[frame["sex"] == "f", "icu"] = 0.0
    women = frames[SITE].index[frames[SITE]["sex"] == "f"]
    frames[SITE].loc[women[3], "icu"] = 1.0
    return frames


def test_of_the_rows_that_count_one_has_the_level() -> None:
    frames = intensive_care()
    known, _ = sums_of(frames, "length ~ C(sex) + weights(icu)")
    men = told(known, {"C(sex)[T.m]": 1.0})
    women = known.weight - men[0], float(known.told("moments")["response"][0]) - men[1]
    patient = frames[SITE][(frames[SITE]["icu"] == 1.0) & (frames[SITE]["sex"] == "f")].iloc[0]
    assert women == pytest.approx((1.0, patient["length"]))
    said = refused(frames, "length ~ C(sex) + weights(icu)")
    assert "1 row with the level 'f' of sex among those with the weight 1" in said[SITE]
    assert "stands nearly alone among those of all sites" in said[SITE]
    assert SITE in refused(frames, "length ~ C(sex) * (age + dose) + weights(icu)")
    for frame in frames.values():
        frame["icu"] = (np.arange(len(frame)) % 3 == 0) * 1.0
    assert not refused(frames, "length ~ C(sex) * (age + dose) + weights(icu)")


# ---------------------------------------------------------------- an outcome within a level


def one_ill(column: str) -> Frames:
    """Of those with a late stage one patient of all has the outcome."""
    frames, rng = Drawn(rows=100).frames(), np.random.default_rng(0)
    for frame in frames.values():
        frame["stage"] = rng.choice(["early", "late"], len(frame), p=[0.8, 0.2])
        frame["late"] = (frame["stage"] == "late") * 1.0
        frame["code"] = 2.0 - frame["late"]
        frame.loc[frame["stage"] == "late", column] = 0.0
    frames[SITE].loc[frames[SITE].index[frames[SITE]["stage"] == "late"][3], column] = 1.0
    return frames


OUTCOMES = [
    ("ill ~ C(stage) * (age + dose)", "binomial", "ill"),
    ("ill ~ late * (age + dose)", "binomial", "ill"),
    ("ill ~ code * (age + dose)", "binomial", "ill"),
    ("visits ~ C(stage) * (age + dose)", "poisson", "visits"),
    ("Surv(time, died) ~ C(stage) * (age + dose)", "cox", "died"),
]


@pytest.mark.parametrize(("formula", "family", "column"), OUTCOMES)
def test_one_outcome_in_a_level_that_is_multiplied_with_numbers(formula: str, family: str, column: str) -> None:
    frames = one_ill(column)
    known, _ = sums_of(frames, formula, family)
    patient = frames[SITE][(frames[SITE]["stage"] == "late") & (frames[SITE][column] > 0.0)].iloc[0]
    if family == "binomial":
        of_late = [name for name in known.regression.design_names if ":" in name]
        other = {"age": 2.0, "dose": 2.0} if "code" in formula else {}
        found = [
            abs(told(known, {name: 1.0, **{one: -much for one, much in other.items() if one in name.split(":")}})[1])
            for name in of_late
        ]
        assert found == pytest.approx([patient["age"], patient["dose"]])
    said = refused(frames, formula, family)
    assert set(said) == set(frames) and "multiplies a number with levels of which fewer than 5 rows" in said[SITE]
    assert not refused(frames, formula, family, Policy(least_rows_a_level=1))
    frames = Drawn(rows=100).frames()
    for frame in frames.values():
        frame["stage"], frame["late"] = frame["sex"], (frame["sex"] == "m") * 1.0
        frame["code"] = 2.0 - frame["late"]
    assert not refused(frames, formula, family)


# ---------------------------------------------------------------- sums of what bends, and bins of weights


def with_incomes() -> Frames:
    frames, rng = Drawn(rows=100, seed=3).frames(), np.random.default_rng(1)
    for frame in frames.values():
        logarithm = 10.0 + 0.05 * (frame["age"] - 50.0) + rng.normal(0.0, 0.3, len(frame))
        frame["income"] = np.round(np.exp(logarithm), 2).clip(upper=190_000.0)
    return frames


def test_three_sums_of_distances_are_a_tent_over_one_patient() -> None:
    """The control: were |column| summed, as a size, an age would tell any number of its patient. Of squares such a sum is the same for all."""
    frames, apart = with_incomes(), 1e-4
    patient = frames[SITE].loc[ROW]
    terms = " + ".join(f"I(age - {float(patient['age']) + side * apart!r})" for side in (-1.0, 0.0, 1.0))
    known, sites = sums_of(frames, f"length ~ {terms} + weights(income)", **RIDGE)
    bends = sum(one.weight @ np.abs(one.design({})[:, 1:]) for one in sites.values())
    assert (bends[0] - 2.0 * bends[1] + bends[2]) / (2.0 * apart) == pytest.approx(patient["income"], rel=1e-4)
    squares = sum(one.weight @ one.design({}) ** 2 for one in sites.values())
    np.testing.assert_allclose(known.sizes**2 * known.weight, squares, rtol=1e-12)
    assert set(known.told("columns")) == {"weight", "columns", "squares", "log weight"}


@pytest.mark.parametrize("size", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_the_size_of_a_column_is_found_in_any_unit(size: float) -> None:
    frames = Drawn(rows=100).frames()
    for frame in frames.values():
        frame["age"] *= size
    known, _ = sums_of(frames, "length ~ age + C(sex)")
    ages = np.concatenate([frame["age"] for frame in frames.values()])
    assert known.sizes[1] == pytest.approx(np.sqrt((ages**2).mean()), rel=1e-9)
    assert [known.is_whole(column) for column in range(3)] == [True, False, True]


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(
    ("formula", "family", "parts"),
    [
        ("ill ~ age + dose + weights(income)", "binomial", ("chances",)),
        ("I(income / 200000) ~ age + dose", "binomial", ("chances",)),
        ("Surv(time, died) ~ dose + weights(income)", "cox", ("at risk", "ended")),
    ],
)
def test_bins_count_rows_whatever_they_weigh(
    formula: str, family: str, parts: tuple[str, ...], weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a bin with one patient tells the weight, or the part of 1 that is explained."""
    if weighted:
        monkeypatch.setattr(sums, "_counted", lambda rows: rows.weight)
        monkeypatch.setattr(sums, "_yes", lambda rows: rows.response)
    frames = with_incomes()
    told_at_end = glm(formula, frames, family).known.told("first look")
    counts = np.concatenate([told_at_end[part] for part in parts])
    incomes = np.concatenate([frame["income"] for frame in frames.values()]) / (200000.0 if "I(" in formula else 1.0)
    known_now = sum(bool(np.isclose(counts, income, rtol=1e-9).any()) for income in incomes)
    assert known_now > 0 if weighted else (np.array_equal(counts, np.round(counts)) and not known_now)


def test_of_counts_of_many_no_row_is_counted_by_its_outcome() -> None:
    """Of trials a bin with one row would tell how many went well."""
    frames = Drawn(rows=100).frames()
    for frame in frames.values():
        frame["rest"] = 3.0 - frame["ill"]
    result = glm("cbind(ill, rest) ~ age", frames, "binomial").result
    assert result.roc is None and result.calibration == () and result.residuals is not None


# ---------------------------------------------------------------- splines beside levels


def beside_a_spline() -> Frames:
    """Ten patients of all sites have a high grade, of whom one is old."""
    rng, found = np.random.default_rng(1), {}
    for number in range(4):
        grade = np.array(["low", "middle"] * 200, object)
        age = rng.uniform(20.0, 90.0, 400)
        if number in (0, 2):
            grade[:5], age[:5] = "high", rng.uniform(22.0, 45.0, 5)
        found[f"site{number}"] = pd.DataFrame({"age": age, "grade": grade, "length": rng.normal(8.0, 2.0, 400)})
    found[SITE].loc[2, "age"] = 68.37
    return found


def test_a_spline_and_a_level_that_nothing_multiplies_tell_an_age() -> None:
    """The products of all columns in pairs are told: of two hats side by side, with none beside them, one patient has both."""
    frames, formula = beside_a_spline(), "length ~ C(grade) + bs(age, df=13, degree=1)"
    known, _ = sums_of(frames, formula, table_one=False)
    names = [name for name in known.regression.design_names if name != "Intercept"]
    sizes, means = known.sizes[1:], known.shift[1:]
    products = known.products * np.outer(sizes, sizes) + known.weight * np.outer(means, means)
    ones = known.told("columns")["columns"][1:]
    of_grade = [names.index(name) for name in names if name.startswith("C(grade)")]
    beside = ones - products[of_grade].sum(axis=0)  # of the reference, which is the high grade
    hats = beside[[names.index(name) for name in names if name.startswith("bs(")]]
    knots = np.array(next(iter(known.knots.values())))
    assert known.regression.columns[1].levels[0] == "high" or known.regression.columns[0].levels[0] == "high"
    place = max(place for place in range(len(hats) - 2) if min(hats[place], hats[place + 1]) > 1e-6)
    part = hats[place + 1] / (hats[place] + hats[place + 1])
    assert knots[place + 1] + part * (knots[place + 2] - knots[place + 1]) == pytest.approx(68.37, abs=1e-6)
    said = refused(frames, formula, table_one=False)
    assert set(said) == set(frames) and "bs(age, df=13, degree=1) beside grade" in said[SITE]
    assert "smaller df" in said[SITE]
    for frame in frames.values():
        frame["high"] = (frame.pop("grade") == "high") * 1.0
    assert refused(frames, "length ~ high + bs(age, df=13, degree=1)")


def test_splines_beside_levels_and_each_other_that_many_rows_have() -> None:
    frames = Drawn(rows=100).frames()
    assert not refused(frames, "length ~ C(grade) + bs(age, df=6) + bs(dose, df=4)")
    assert refused(frames, "length ~ bs(age, df=16) + bs(dose, df=16)")


# ---------------------------------------------------------------- what must go on

HONEST = [
    ("length ~ age + I(age ** 2) + I(age ** 3) + C(sex)", "gaussian"),
    ("length ~ bs(age, df=4) + C(grade)", "gaussian"),
    ("length ~ bs(dose, df=4) + C(sex)", "gaussian"),
    ("length ~ C(sex) * C(grade)", "gaussian"),
    ("length ~ C(grade) * age + log(dose)", "gaussian"),
    ("length ~ C(centre) + age + C(sex)", "gaussian"),
    ("ill ~ C(sex) * age + dose", "binomial"),
    ("ill ~ bs(age, df=4) * C(sex)", "binomial"),
    ("ill ~ age + dose + site", "binomial"),
    ("visits ~ (age + dose) ** 2 + C(sex)", "poisson"),
    ("grade ~ C(sex) * age", "multinomial"),
    ("Surv(time, died) ~ C(sex) * age + bs(dose, df=4)", "cox"),
]


@pytest.mark.parametrize("folds", [0, 5, 10])
@pytest.mark.parametrize(("formula", "family"), HONEST, ids=lambda one: one)
def test_what_hospitals_ask_goes_on(formula: str, family: str, folds: int) -> None:
    frames, rng = Drawn(rows=100, seed=1).frames(), np.random.default_rng(1)
    for frame in frames.values():
        frame["centre"] = rng.choice(list("abcd"), len(frame))
    planned = {"lasso": 0.01, "folds": folds} if folds else {}
    assert not refused(frames, formula, family, **planned)


@pytest.mark.parametrize("how", SPLITS)
@pytest.mark.parametrize("case", STUDIES, ids=lambda case: case.name)
def test_real_data_stand_alone_nowhere(case: Any, how: str) -> None:
    """Whatever else a site's policy says of a site with few rows: no row is told of, no two columns are alike."""
    said = " ".join(refused(split(case.rows(), how, case.label, case.sites), case.formula, **case.planned).values())
    assert "stands nearly alone" not in said and " beside " not in said


# ---------------------------------------------------------------- one site among all


def with_a_number_of_each_site() -> dict[str, pd.DataFrame]:
    """Each hospital has a number of its own, as a latitude is; one of them alone has a robot."""
    frames = Drawn(rows=100).frames()
    for number, frame in enumerate(frames.values(), start=1):
        frame["hospital"], frame["robot"] = float(number), 0.0
    frames[SITE].loc[:29, "robot"] = 1.0
    return frames


POWERS = "length ~ hospital + I(hospital ** 2) + I(hospital ** 3) + age + hospital:age + I(hospital ** 2):age + I(hospital ** 3):age"


def test_powers_of_a_number_of_each_site_are_each_site_alone() -> None:
    """Sums of 1, h, h² and h³ over four hospitals are four equations for what each has."""
    frames = with_a_number_of_each_site()
    known, _ = sums_of(frames, POWERS, **RIDGE)
    names = ("Intercept", "hospital", "I(hospital ** 2)", "I(hospital ** 3)")
    sums = np.array([told(known, {name: 1.0}) for name in names])
    each = np.linalg.solve(np.vander(np.arange(1.0, 5.0), increasing=True).T, sums)
    np.testing.assert_allclose(each, [[len(frame), frame["length"].sum()] for frame in frames.values()], rtol=1e-9)
    said = refused(frames, POWERS, **RIDGE)
    assert set(said) == set(frames) and all("(lone_levels)" in words for words in said.values())
    assert not any("(lone_levels)" in one for one in refused(frames, POWERS, policy=Policy(lone_levels=True)).values())


def test_a_number_that_one_site_alone_has_is_as_a_level_that_it_has() -> None:
    frames = with_a_number_of_each_site()
    known, _ = sums_of(frames, "length ~ age + robot")
    own = frames[SITE][frames[SITE]["robot"] == 1.0]["length"]
    assert told(known, {"robot": 1.0}) == pytest.approx((30.0, own.sum()), rel=1e-9)
    said = refused(frames, "length ~ age + robot")
    assert set(said) == {SITE} and "be of this site alone, which its policy does not allow (lone_levels)" in said[SITE]
    assert not refused(frames, "length ~ age + hospital") and not refused(frames, "length ~ age * hospital + dose")


@pytest.mark.parametrize("how", SPLITS)
def test_sites_of_real_data_are_not_told_apart(how: str) -> None:
    for case in STUDIES:
        rows = split(case.rows(), how, case.label, case.sites)
        frames = {site: frame.reset_index(drop=True) for site, frame in rows.items()}
        if min(map(len, frames.values())) < 10:
            continue  # three rows elsewhere hide nothing of seven columns
        known, sites = sums_of(frames, case.formula, **case.planned)
        assert min(left_to_others(one, known) for one in sites.values()) > 0.04, case.name
