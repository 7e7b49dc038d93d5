"""The sites' functions add up to the pooled fit, and the model in raw units is that of scikit-learn on the pooled rows."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from roundelay.agents.agreement.plan import Column, Task
from roundelay.agents.data.fitting import model_of, own_problem, read_model, weights_of
from roundelay.agents.data.models import FinalResiduals, Model, ModelNotes, load_model, write_model
from roundelay.agents.data.reading import OwnRows
from roundelay.agents.data.statistics import Standard
from roundelay.kernels import Matrix, Vector
from tests.agents.pooled import UNITS, pool, shares, standard_by_sums

FEATURES = (Column("a", "mm"), Column("b"), Column("c", "km"))
LINE = Task("least_squares", FEATURES, Column("t"))
LABELS = Task("logistic", FEATURES, Column("t"))
EXACT = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}


def slope_of_all(task: Task, tables: list[OwnRows], standard: Standard, w: Vector) -> Vector:
    problems = [own_problem(task, table, standard, len(tables)) for table in tables]
    assert all(problem.agents == 1 and problem.dim == task.dim for problem in problems)
    return np.sum([problem.gradient(0, w) for problem in problems], axis=0)


def similar_units(tables: list[OwnRows]) -> list[OwnRows]:
    """Features that need no standardising: scikit-learn takes a feature of 1e-8 times another's size for nothing."""
    return [OwnRows(table.features / UNITS + [0.0, 1.0, 2.0], table.target) for table in tables]


def scikit_line(task: Task, pooled: OwnRows) -> tuple[Vector, float]:
    """Coefficients and intercept in raw units, by scikit-learn on the pooled rows in the units of the ridge."""
    scaler = StandardScaler(with_mean=task.intercept, with_std=task.standardise).fit(pooled.features)
    scale = scaler.scale_ if task.standardise else np.ones(3)
    # scikit-learn has ‖t − Xw‖² + alpha ‖w‖², which is 2n times ours with alpha = n·ridge.
    alpha = pooled.count * task.ridge
    method = (
        Ridge(alpha, fit_intercept=task.intercept, tol=1e-14)
        if alpha
        else LinearRegression(fit_intercept=task.intercept)
    )
    fit = method.fit(scaler.transform(pooled.features), pooled.target)
    coefficients = fit.coef_ / scale
    return coefficients, float(fit.intercept_ - (coefficients @ scaler.mean_ if task.intercept else 0.0))


def scikit_labels(task: Task, pooled: OwnRows) -> tuple[Vector, float]:
    """The same for labels. scikit-learn has ½‖w‖² + C Σ loss, which is ours divided by the ridge with C = 1/(n·ridge)."""
    scaled = StandardScaler(with_mean=task.intercept, with_std=task.standardise)
    plain = pooled.features if not task.standardise else scaled.fit_transform(pooled.features)
    scale, centre = (
        (scaled.scale_, scaled.mean_ if task.intercept else np.zeros(3))
        if task.standardise
        else (np.ones(3), np.zeros(3))
    )
    if task.ridge and task.intercept:
        # A column of ones, so that the ridge is on the intercept too.
        plain = np.column_stack([plain, np.ones(pooled.count)])
        fit = LogisticRegression(C=1.0 / (pooled.count * task.ridge), fit_intercept=False, **EXACT).fit(
            plain, pooled.target
        )
        slopes, constant = fit.coef_[0, :3], fit.coef_[0, 3]
    else:
        strength = 1.0 / (pooled.count * task.ridge) if task.ridge else np.inf
        fit = LogisticRegression(C=strength, fit_intercept=task.intercept, **EXACT).fit(plain, pooled.target)
        slopes, constant = fit.coef_[0], float(fit.intercept_[0]) if task.intercept else 0.0
    return slopes / scale, float(constant - (slopes / scale) @ centre)


def model_from(task: Task, coefficients: Vector, intercept: float) -> Model:
    names = [str(column) for column in task.features]
    return Model(tuple(zip(names, coefficients.tolist(), strict=True)), intercept, task.kind, str(task.target))


def in_one_fit(task: Task, tables: list[OwnRows], standard: Standard) -> Vector:
    """The minimiser of Σf_i by Newton's method, from the sites' gradients and Hessians alone."""
    problems = [own_problem(task, table, standard, len(tables)) for table in tables]
    w = np.zeros(task.dim)
    for _ in range(40):
        hessian: Matrix = np.sum([problem.hessian(0, w) for problem in problems], axis=0)
        slope = np.sum([problem.gradient(0, w) for problem in problems], axis=0)
        widths = np.sqrt(np.diag(hessian))
        w = w - np.linalg.solve(hessian / np.outer(widths, widths), slope / widths) / widths
    return w


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("standardise", [True, False])
def test_least_squares_is_the_pooled_fit(seed: int, ridge: float, intercept: bool, standardise: bool) -> None:
    task = replace(LINE, ridge=ridge, intercept=intercept, standardise=standardise)
    tables = shares(seed) if standardise else similar_units(shares(seed))
    standard = standard_by_sums(tables, scaled=standardise)
    coefficients, constant = scikit_line(task, pool(tables))
    w = weights_of(task, standard, model_from(task, coefficients, constant))
    assert np.abs(slope_of_all(task, tables, standard, w)).max() <= 1e-8
    found = model_of(task, standard, in_one_fit(task, tables, standard))
    np.testing.assert_allclose([value for _, value in found.coefficients], coefficients, rtol=1e-9)
    assert found.intercept == pytest.approx(constant, rel=1e-9, abs=1e-9)
    if not intercept:
        assert found.intercept == 0.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("intercept", [True, False])
def test_logistic_regression_is_the_pooled_fit(seed: int, ridge: float, intercept: bool) -> None:
    task = replace(LABELS, ridge=ridge, intercept=intercept)
    tables = shares(seed, labels=True)
    standard = standard_by_sums(tables)
    coefficients, constant = scikit_labels(task, pool(tables))
    w = weights_of(task, standard, model_from(task, coefficients, constant))
    assert np.abs(slope_of_all(task, tables, standard, w)).max() <= 1e-8
    found = model_of(task, standard, in_one_fit(task, tables, standard))
    np.testing.assert_allclose([value for _, value in found.coefficients], coefficients, rtol=1e-9)
    assert found.intercept == pytest.approx(constant, rel=1e-9, abs=1e-9)


def test_logistic_regression_in_raw_units() -> None:
    tables = similar_units(shares(1, labels=True))
    for task in (replace(LABELS, standardise=False), replace(LABELS, standardise=False, ridge=0.1, intercept=False)):
        standard = standard_by_sums(tables, scaled=False)
        coefficients, constant = scikit_labels(task, pool(tables))
        w = weights_of(task, standard, model_from(task, coefficients, constant))
        np.testing.assert_array_equal(w, [*coefficients, constant][: task.dim])  # nothing is standardised
        assert np.abs(slope_of_all(task, tables, standard, w)).max() <= 1e-8


@pytest.mark.parametrize("task", [replace(LINE, ridge=0.2), replace(LABELS, ridge=0.2)])
def test_the_values_add_up_to_n_times_the_pooled_objective(task: Task) -> None:
    tables = shares(4, labels=task.kind == "logistic")
    standard, pooled = standard_by_sums(tables), pool(tables)
    w = np.random.default_rng(0).normal(size=task.dim)
    features = StandardScaler().fit_transform(pooled.features)
    if task.kind == "logistic":
        margins = pooled.target * (np.column_stack([features, np.ones(pooled.count)]) @ w)
        loss = np.logaddexp(0.0, -margins)
    else:
        loss = 0.5 * (features @ w - (pooled.target - pooled.target.mean())) ** 2
    pooled_objective = loss.mean() + 0.5 * task.ridge * w @ w
    values = [own_problem(task, table, standard, len(tables)).value(0, w) for table in tables]
    assert sum(values) == pytest.approx(len(tables) * pooled_objective, rel=1e-12)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.booleans(), st.booleans())
def test_unknowns_and_models_map_back_and_forth(seed: int, labels: bool, intercept: bool, standardise: bool) -> None:
    task = replace(LABELS if labels else LINE, intercept=intercept, standardise=standardise)
    standard = standard_by_sums(shares(seed), scaled=standardise)
    w = np.random.default_rng(seed).normal(size=task.dim)
    np.testing.assert_allclose(weights_of(task, standard, model_of(task, standard, w)), w, rtol=1e-9, atol=1e-9)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_the_model_predicts_in_raw_units_what_is_fitted_in_standardised_ones(
    seed: int, intercept: bool, standardise: bool
) -> None:
    task = replace(LINE, intercept=intercept, standardise=standardise)
    tables = shares(seed)
    standard, table = standard_by_sums(tables, scaled=standardise), tables[-1]
    w = np.random.default_rng(seed).normal(size=3)
    rows = own_problem(task, table, standard, 4).rows  # type: ignore[attr-defined]
    model = model_of(task, standard, w)
    predicted = table.features @ [value for _, value in model.coefficients] + model.intercept
    # The residuals are the same in both.
    np.testing.assert_allclose(predicted - table.target, rows.features @ w - rows.targets, rtol=1e-7, atol=1e-7)


def notes(standard: Standard | None) -> ModelNotes:
    return ModelNotes(
        "ab" * 16, 2, 12345, ("Köln", "Paris"), "all content", FinalResiduals(1e-10, None), standard, "cd" * 32
    )


def test_a_model_is_written_and_read_to_the_last_digit(tmp_path: Path) -> None:
    standard = standard_by_sums(shares(2))
    w = np.random.default_rng(1).normal(size=4)
    model = model_of(LABELS, standard, w)
    path = tmp_path / "new" / "model.json"
    write_model(path, model, notes(standard))
    write_model(path, model, notes(standard))
    assert [file.name for file in path.parent.iterdir()] == ["model.json"]
    stored = load_model(path)
    assert stored.model == model
    assert repr(replace(stored.about, standard=None)) == repr(replace(notes(None), standard=None))
    assert stored.about.standard is not None and stored.about.standard.mean.tolist() == standard.mean.tolist()
    np.testing.assert_allclose(read_model(path, LABELS, standard), w, rtol=1e-9)


def test_a_warm_start_is_in_the_units_of_the_new_rows(tmp_path: Path) -> None:
    old, new = standard_by_sums(shares(2)), standard_by_sums(shares(3))
    model = model_of(LABELS, old, np.array([1.0, -2.0, 0.5, 0.25]))
    write_model(tmp_path / "model.json", model, notes(old))
    w = read_model(tmp_path / "model.json", LABELS, new)
    again = model_of(LABELS, new, w)
    np.testing.assert_allclose([v for _, v in again.coefficients], [v for _, v in model.coefficients], rtol=1e-12)
    assert again.intercept == pytest.approx(model.intercept, rel=1e-12)
    # Features may stand in another order.
    turned = replace(LABELS, features=FEATURES[::-1])
    flipped = Standard(new.rows, new.mean[::-1], new.deviation[::-1], new.target_mean, new.target_deviation)
    np.testing.assert_allclose(read_model(tmp_path / "model.json", turned, flipped), [*w[2::-1], w[3]], rtol=1e-12)


def test_the_unknowns_of_a_custom_objective_are_kept_by_number(tmp_path: Path) -> None:
    task, w = Task("custom", dim=2), np.array([0.1, -3.0])
    write_model(tmp_path / "model.json", model_of(task, None, w), notes(None))
    assert read_model(tmp_path / "model.json", task, None).tolist() == w.tolist()
    with pytest.raises(ValueError, match=r'model\.json.*no feature "2"'):
        read_model(tmp_path / "model.json", Task("custom", dim=3), None)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (replace(LABELS, features=FEATURES[:2]), 'has the feature "c \\[km\\]", but the task has not'),
        (replace(LABELS, features=(*FEATURES, Column("d"))), 'no feature "d"'),
        (replace(LABELS, features=(Column("a", "cm"), *FEATURES[1:])), 'no feature "a \\[cm\\]"'),
        (replace(LABELS, target=Column("u")), 'the target "u"'),
        (LINE, "kind logistic"),
    ],
)
def test_a_model_that_does_not_fit_the_task_is_refused(tmp_path: Path, task: Task, words: str) -> None:
    standard = standard_by_sums(shares(2))
    write_model(tmp_path / "model.json", model_of(LABELS, standard, np.ones(4)), notes(standard))
    with pytest.raises(ValueError, match=words):
        read_model(tmp_path / "model.json", task, standard)


def test_a_model_that_is_not_finite_is_not_written(tmp_path: Path) -> None:
    model = Model((("a", math.inf),), 0.0, "logistic", "t")
    with pytest.raises(ValueError, match="diverged"):
        write_model(tmp_path / "model.json", model, notes(None))
    assert not list(tmp_path.iterdir())


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_bytes_in_a_models_file_end_in_a_model_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "model.json"
    write_model(
        path,
        Model((("a", 1.5), ("b", -2.0)), 0.5, "logistic", "t"),
        notes(Standard(9, np.zeros(2), np.ones(2), 0.0, 1.0)),
    )
    content = json.loads(path.read_bytes())
    # Either any bytes, or good JSON with one value replaced by one of another kind.
    odd = st.sampled_from([None, True, -1, 1e999, 10**400, "x", [], {}, [None], {"feature": 3}, [[1]], 0.5])
    places = [content, content["model"], content["about"], content["about"]["residuals"], content["about"]["standard"]]
    inner = data.draw(st.sampled_from(places))
    inner[data.draw(st.sampled_from(sorted(inner)))] = data.draw(odd)
    path.write_bytes(data.draw(st.one_of(st.binary(max_size=50), st.just(json.dumps(content).encode()))))
    try:
        load_model(path)
    except ValueError as refusal:
        assert "is not a model of roundelay" in str(refusal) and str(refusal).endswith("a ring has written.")


def test_deep_and_absent_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 200_000)
    with pytest.raises(ValueError, match="not a model"):
        load_model(tmp_path / "deep.json")
    with pytest.raises(ValueError, match="can't be opened"):
        load_model(tmp_path / "none.json")


def test_what_does_not_belong_together_is_refused() -> None:
    tables = shares(1)
    standard = standard_by_sums(tables)
    with pytest.raises(ValueError, match="kind custom"):
        own_problem(Task("custom", dim=2), tables[0], standard, 4)
    with pytest.raises(ValueError, match="The rows have 2 features"):
        own_problem(LINE, OwnRows(tables[0].features[:, :2], tables[0].target), standard, 4)
    with pytest.raises(ValueError, match="all sites together have 1"):
        own_problem(LINE, tables[-1], replace(standard, rows=1), 4)
    with pytest.raises(ValueError, match='feature "b" is the same'):
        own_problem(LINE, tables[0], replace(standard, deviation=np.array([1.0, 0.0, 1.0])), 4)
    with pytest.raises(ValueError, match="statistics of 2 features"):
        own_problem(LINE, tables[0], Standard(200, np.zeros(2), np.ones(2), 0.0, 1.0), 4)
    with pytest.raises(ValueError, match="same label"):
        own_problem(LABELS, tables[0], replace(standard, target_deviation=0.0), 4)
    with pytest.raises(ValueError, match="3 unknowns"):
        model_of(LINE, standard, np.ones(4))
    with pytest.raises(ValueError, match="give the standard"):
        model_of(LINE, None, np.ones(3))
