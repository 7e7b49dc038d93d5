"""Sparse features: every problem of rows is the same one as with full rows, and what is not zero is all that it costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

import roundelay as rl
from roundelay.comparison.kept import problem_digest
from roundelay.problems import least_squares, row_problem, rows as rows_module, solving
from tests.problems.cases import kernel_function

DIM = 7
FORMATS = ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")
MAKERS: dict[str, Callable[[Any, Any, float], Any]] = {
    "squares": lambda X, t, ridge: rl.LeastSquares(X, t, ridge=ridge),
    "mean squares": lambda X, t, ridge: rl.LeastSquares(X, t, "mean", ridge, [1.0 + i for i in range(len(X))]),
    "logistic": lambda X, t, ridge: rl.Logistic(X, [_sign(own) for own in t], ridge + 0.05, "rows"),
    "huber": lambda X, t, ridge: rl.Huber(X, t, 0.7, ridge + 0.05),
    "poisson": lambda X, t, ridge: rl.Poisson(X, [np.round(np.abs(own)) for own in t], ridge + 0.05),
    "smoothed hinge": lambda X, t, ridge: rl.SmoothedHinge(X, [_sign(own) for own in t], 0.4, ridge + 0.05),
}


def _sign(targets: np.ndarray) -> np.ndarray:
    return np.where(targets >= 0.0, 1.0, -1.0)


def _full(blocks: list[Any]) -> list[np.ndarray]:
    return [np.asarray(block.toarray() if hasattr(block, "toarray") else block) for block in blocks]


@st.composite
def blocks(draw: st.DrawFn) -> tuple[list[Any], list[np.ndarray]]:
    """Agents of any numbers of rows; rows and columns without a number, zeros that are written down, a place that is given twice."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    found, targets = [], []
    for _ in range(draw(st.integers(1, 3))):
        count, filled = draw(st.integers(1, 6)), draw(st.integers(0, 14))
        place = rng.integers(count, size=filled), rng.integers(DIM - 1, size=filled)  # the last column is empty
        values = np.where(rng.random(filled) < 0.2, 0.0, rng.normal(size=filled))
        kind = draw(st.sampled_from((sp.coo_array, sp.coo_matrix)))
        index = draw(st.sampled_from((np.int32, np.int64)))
        block = kind((values, tuple(axis.astype(index) for axis in place)), shape=(count, DIM))
        found.append(block.asformat(draw(st.sampled_from(FORMATS))))
        targets.append(rng.normal(size=count))
    return found, targets


def both(data: tuple[list[Any], list[np.ndarray]], kind: str, ridge: float) -> tuple[Any, Any]:
    return MAKERS[kind](data[0], data[1], ridge), MAKERS[kind](_full(data[0]), data[1], ridge)


@settings(max_examples=120)
@given(blocks(), st.sampled_from(sorted(MAKERS)), st.sampled_from([0.0, 0.3]), st.integers(0, 2**32 - 1))
def test_it_is_the_problem_of_the_full_rows(data: Any, kind: str, ridge: float, seed: int) -> None:
    sparse, full = both(data, kind, ridge)
    rng = np.random.default_rng(seed)
    points, x, direction = rng.normal(size=(sparse.agents, DIM)), rng.normal(size=DIM), rng.normal(size=DIM)
    same: Any = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)  # noqa: E731
    same(sparse.values(points), full.values(points))
    same(sparse.gradients(points), full.gradients(points))
    same(sparse.optimum, full.optimum)
    same(sparse.objective_gaps(points), full.objective_gaps(points))
    same(sparse.total_hessian(x), full.total_hessian(x))
    same((sparse.L, sparse.mu), (full.L, full.mu))
    for agent in range(sparse.agents):
        same(sparse.value(agent, x), full.value(agent, x))
        same(sparse.gradient(agent, x), full.gradient(agent, x))
        same(sparse.hessian(agent, x), full.hessian(agent, x))
        same(sparse.hessian_times(agent, x, direction), full.hessian_times(agent, x, direction))
        penalty = 10.0 ** rng.uniform(-2, 2)
        np.testing.assert_allclose(sparse.prox(agent, x, penalty), full.prox(agent, x, penalty), rtol=1e-10, atol=1e-10)


def test_rows_of_very_different_lengths_are_no_trouble() -> None:
    """60 rows from 1e-4 to 1e4 long: the matrix is conditioned like 1e16, and the step is exact to rounding."""
    rng = np.random.default_rng(3)
    block = rng.normal(size=(60, 90)) * 10.0 ** rng.uniform(-4, 4, (60, 1))
    targets, v, out = rng.normal(size=60), rng.normal(size=90), np.empty(90)
    full = rl.LeastSquares([block], [targets])
    sparse = rl.LeastSquares([sp.csr_array(block)], [targets])
    kernel_function(sparse, call_all, False)(0, 1e-3 * v, 1e-3, np.zeros(90), out, np.empty(90), np.empty(90))
    for step in (out, sparse.prox(0, v, 1e-3)):
        left = full.gradient(0, step) + 1e-3 * (step - v)
        assert np.linalg.norm(left) <= 1e-14 * (full.L * np.linalg.norm(step) + np.linalg.norm(block.T @ targets))


def call_all(problem: Any, i: int, w: Any, penalty: float, x: Any, out: Any, slope: Any, rows: Any) -> float:
    minimise(problem, i, w, penalty, x, out)  # noqa: F821
    gradient(problem, i, x, slope)  # noqa: F821
    length = 0.0
    for j in range(problem.row_starts[i], problem.row_starts[i + 1]):
        add_row(problem, i, j, row_slope(problem, i, j, x), rows)  # noqa: F821
        length += row_length(problem, j)  # noqa: F821
    return length


def check_kernel(data: Any, kind: str, ridge: float, compiled: bool) -> None:
    """The step by its optimality for the full rows and against their own prox, the gradient whole and row by row."""
    sparse, full = both(data, kind, ridge)
    travel, rng = kernel_function(sparse, call_all, compiled), np.random.default_rng(7)
    for agent in range(sparse.agents):
        w, x, penalty = rng.normal(size=DIM), rng.normal(size=DIM), 10.0 ** rng.uniform(-2, 2)
        out, slope, rows = np.empty(DIM), np.empty(DIM), full.ridge * x
        length = travel(agent, w, penalty, x, out, slope, rows)
        np.testing.assert_allclose(slope, full.gradient(agent, x), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(rows, slope, rtol=1e-11, atol=1e-12)
        block = full.rows.features[full.rows.of(agent)]
        np.testing.assert_allclose(length, np.linalg.norm(block, axis=1).sum(), rtol=1e-12)
        np.testing.assert_allclose(out, full.prox(agent, w / penalty, penalty), rtol=1e-9, atol=1e-10)
        left = full.gradient(agent, out) + penalty * out - w
        terms = (
            (full.L + penalty) * np.linalg.norm(out) + np.linalg.norm(w) + np.linalg.norm(full.gradient(agent, 0 * w))
        )
        assert np.linalg.norm(left) <= 1e-13 * terms


# What is wrong in a step alone, as in the conjugate gradients, the next step makes good: that costs time and no digits.
MUTATIONS = [
    ("slope_in_places", "spans, slopes, out", "spans, predictions, out"),
    ("gradient", "out[places[m]] + slope[m]", "out[places[m]] - slope[m]"),
    ("gradient", "problem.ridge * x[d]", "problem.ridge + x[d]"),
    ("row_slope", "problem.place_starts[i] + problem.columns", "problem.columns"),
    ("add_row", "+ factor * values[k]", "+ values[k]"),
    ("row_length", "inner(values, values)", "inner(values, values * values)"),
    ("step_by_conjugate_gradients", "diagonal[m] + shift", "diagonal[m] - shift"),
    ("minimise", "shift * trial[m] - pull[m]", "shift * trial[m] + pull[m]"),
    ("minimise", "x[m] - length * step[m]", "x[m] + length * step[m]"),
    ("minimise", "out[d] = w[d] / shift", "out[d] = w[d] * shift"),
]


def kernel_gap(kind: str, change: tuple[str, str, str] | None) -> float:
    """How far the gradient, whole and by rows, the lengths and the steps are from those of the full rows."""
    rng, gap = np.random.default_rng(5), 0.0
    found = [sp.random_array((6, DIM), density=0.4, rng=rng, format="csr") for _ in range(3)]
    sparse, full = both((found, [rng.normal(size=6) for _ in found]), kind, 0.3)
    travel = kernel_function(sparse, call_all, False, change)
    for agent in range(3):
        w, x = rng.normal(size=DIM), rng.normal(size=DIM)
        out, slope, rows = np.empty(DIM), np.empty(DIM), full.ridge * x
        length = travel(agent, w, 0.7, x, out, slope, rows)
        lengths = np.linalg.norm(full.rows.features[full.rows.of(agent)], axis=1).sum()
        exact, step = full.gradient(agent, x), full.prox(agent, w / 0.7, 0.7)
        gaps = [slope - exact, rows - exact, out - step, np.atleast_1d(length - lengths)]
        gap = max(gap, *(float(np.abs(one).max()) for one in gaps))
    return gap if np.isfinite(gap) else np.inf


@pytest.mark.parametrize("change", MUTATIONS, ids=lambda change: f"{change[0]}: {change[2]}")
def test_one_changed_symbol_is_noticed(change: tuple[str, str, str]) -> None:
    assert kernel_gap("logistic", None) < 1e-10
    with np.errstate(all="ignore"):
        assert kernel_gap("logistic", change) > 1e-6


@settings(max_examples=60)
@given(blocks(), st.sampled_from(sorted(MAKERS)), st.sampled_from([0.0, 0.3]))
def test_the_kernel_in_python(data: Any, kind: str, ridge: float) -> None:
    check_kernel(data, kind, ridge, compiled=False)


@settings(max_examples=40)
@given(blocks(), st.sampled_from(["mean squares", "logistic"]))
def test_the_kernel_compiled(data: Any, kind: str) -> None:
    check_kernel(data, kind, 0.3, compiled=True)


@settings(max_examples=30)
@given(blocks(), st.floats(-6, 6), st.integers(0, 2**32 - 1))
def test_steps_do_not_depend_on_the_units_of_features(data: Any, scale: float, seed: int) -> None:
    """Conjugate gradients in units of their own: columns a million times larger or smaller leave the step exact."""
    units = 10.0 ** np.random.default_rng(seed).uniform(-abs(scale), abs(scale), DIM)
    scaled = [block.tocsr() @ sp.diags_array(units) for block in data[0]]
    sparse, full = MAKERS["squares"](scaled, data[1], 0.0), MAKERS["squares"](_full(scaled), data[1], 0.0)
    travel, w = kernel_function(sparse, call_all, False), np.ones(DIM)
    out = np.empty(DIM)
    travel(0, w, 1.0, np.zeros(DIM), out, np.empty(DIM), np.empty(DIM))
    left = full.gradient(0, out) + out - w
    block = full.rows.features[full.rows.of(0)]
    terms = (
        np.abs(block).T @ (np.abs(block) @ np.abs(out) + np.abs(full.rows.targets[full.rows.of(0)])) + np.abs(out) + 1.0
    )
    assert (np.abs(left) <= 1e-12 * terms).all()


SMALL = [
    sp.random_array((count, 9), density=0.4, rng=np.random.default_rng(count), format="csr") for count in (12, 20, 1)
]
TARGETS = [np.random.default_rng(block.shape[0]).normal(size=block.shape[0]) for block in SMALL]


@pytest.mark.parametrize(
    "method, length",
    [
        (rl.IADMM(rho=0.5), {"hops": 40}),
        (rl.PIADMM1(rho=5.0, first_order=True), {"hops": 40}),
        (rl.SIADMM(batch=3), {"hops": 40}),
        (rl.PIADMM2(rho=5.0, first_order=True, clip=0.5, sigma=0.0), {"hops": 40}),
        (rl.WPG(alpha=0.05), {"hops": 40}),
        (rl.EXTRA(), {"iterations": 15}),
        (rl.DADMM(), {"iterations": 15}),
        (rl.SealedLaps(), {}),
        (rl.SealedLaps(rl.ConjugateGradients()), {}),
        (rl.SealedLaps(rl.LBFGS()), {}),
        (rl.OnePass(), {}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_every_family_makes_the_same_of_it(method: Any, length: dict[str, int]) -> None:
    runs = [
        rl.simulate(
            method, rl.LeastSquares(X, TARGETS, ridge=0.1), rl.ring(3), **length, engine="auto" if not length else "python",
            progress=False,
        )
        for X in (SMALL, _full(SMALL))
    ]  # fmt: skip
    np.testing.assert_allclose(runs[0].estimate, runs[1].estimate, rtol=1e-11, atol=1e-12)
    assert runs[0].units == runs[1].units


def test_a_run_from_a_point_of_ones_own_and_with_noise_for_a_promise() -> None:
    run = rl.simulate(rl.IADMM(), rl.LeastSquares(SMALL, TARGETS), rl.ring(3), 5, x0=np.ones(9), engine="python")
    full = rl.simulate(
        rl.IADMM(), rl.LeastSquares(_full(SMALL), TARGETS), rl.ring(3), 5, x0=np.ones(9), engine="python"
    )
    np.testing.assert_allclose(run.estimate, full.estimate, rtol=1e-12)
    promise = rl.SealedLaps(clip_row=1.0, noise_multiplier=1.0)
    noisy = [
        rl.simulate(promise, rl.LeastSquares(X, TARGETS, ridge=1.0), rl.ring(3)).estimate for X in (SMALL, _full(SMALL))
    ]
    np.testing.assert_array_equal(noisy[0], noisy[1])


def test_what_is_too_much_for_full_rows_is_iterated(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = [_sign(target) for target in TARGETS]
    exact = [rl.LeastSquares(_full(SMALL), TARGETS, ridge=ridge).optimum for ridge in (0.0, 0.1)]
    logistic = rl.Logistic(_full(SMALL), labels, ridge=0.1).optimum
    thin = rl.LeastSquares(_full(SMALL[2:]), TARGETS[2:]).optimum
    L = rl.LeastSquares(_full(SMALL), TARGETS).L
    for module in (solving, row_problem, least_squares):
        monkeypatch.setattr(module, "MOST_FACTORED", 2)
    monkeypatch.setattr(rows_module, "MOST_DENSE", 2)
    for ridge, x in zip((0.0, 0.1), exact, strict=True):
        np.testing.assert_allclose(rl.LeastSquares(SMALL, TARGETS, ridge=ridge).optimum, x, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(rl.Logistic(SMALL, labels, ridge=0.1).optimum, logistic, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(rl.LeastSquares(SMALL[2:], TARGETS[2:]).optimum, thin, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(rl.LeastSquares(SMALL, TARGETS).L, L, rtol=1e-12)
    assert np.isnan(rl.LeastSquares(SMALL, TARGETS).mu)


def test_labels_that_a_plane_separates_are_refused_whatever_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    X = [sp.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [-1.0, 3.0, 0.0]]))]
    for most in (solving.MOST_FACTORED, 1):
        monkeypatch.setattr(row_problem, "MOST_FACTORED", most)
        with pytest.raises(ValueError, match="separated by a plane"):
            rl.Logistic(X, [np.array([1.0, 1.0, -1.0])])
    mixed = [sp.csr_array(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0]]))]
    np.testing.assert_allclose(rl.Logistic(mixed, [np.array([1.0, -1.0, 1.0, -1.0])]).optimum[0], 0.0, atol=1e-12)


def test_a_million_unknowns() -> None:
    rng, p = np.random.default_rng(0), 1_000_000
    X = [sp.random_array((count, p), density=1e-5, rng=rng, format="csr") for count in (2, 3)]
    targets = [rng.normal(size=block.shape[0]) for block in X]
    for problem in (rl.LeastSquares(X, targets, ridge=0.1), rl.Logistic(X, [_sign(t) for t in targets], ridge=0.1)):
        x = problem.optimum
        assert np.linalg.norm(problem.total_gradient(x)) <= 1e-12
        assert np.count_nonzero(x) <= sum(block.nnz for block in X)
        sealed = rl.simulate(rl.SealedLaps(), problem, rl.ring(2), progress=False)
        assert np.linalg.norm(sealed.estimate - x) <= 1e-9 * np.linalg.norm(x)
        token = rl.simulate(rl.IADMM(rho=0.1), problem, rl.ring(2), 6, engine="python", record=6, progress=False)
        assert token.history["error"].iloc[-1] < token.history["error"].iloc[0]
        # An agent's step is the same in its own places alone, and elsewhere it is v times penalty/(penalty + ridge).
        v = rng.normal(size=p)
        step = problem.prox(0, v, 0.4)
        elsewhere = np.ones(p, bool)
        elsewhere[X[0].indices] = False
        np.testing.assert_allclose(step[elsewhere], 0.8 * v[elsewhere], rtol=1e-14)
        assert np.linalg.norm(problem.gradient(0, step) + 0.4 * (step - v)) <= 1e-12 * np.linalg.norm(v)
        with pytest.raises(ValueError, match=r"1,000,000 unknowns.*8,000 GB.*LBFGS"):
            problem.hessian(0, x)
    squares = rl.LeastSquares(X, targets)
    for method in (rl.SealedLaps(rl.NormalEquations()), rl.OnePass()):
        with pytest.raises(ValueError, match=r"1,000,000 unknowns.*8,000 GB"):
            rl.simulate(method, squares, rl.ring(2))


def test_a_history_of_long_tokens_has_fewer_rows() -> None:
    from roundelay.engine.checks import marks_of

    assert len(marks_of(None, 5000, 10)) > 1000
    marks = marks_of(None, 5000, 1_000_000)
    assert len(marks) == 51 and marks[0] == 0 and marks[-1] == 5000
    assert marks_of(None, 0, 10**9).tolist() == [0]
    assert len(marks_of(None, 20, 10**9)) == 2


def test_the_rows_are_ones_own_and_stay_as_they_are() -> None:
    block = sp.csr_array((np.array([1.0, 2.0, 0.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 3))
    before = block.data.copy(), block.indices.copy()
    problem = rl.LeastSquares([block], [np.ones(2)])
    np.testing.assert_array_equal(problem.rows.features.toarray(), [[0.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
    assert problem.rows.features.nnz == 1
    np.testing.assert_array_equal(block.data, before[0])
    np.testing.assert_array_equal(block.indices, before[1])
    block.data[:] = 7.0
    assert problem.rows.features.data.tolist() == [3.0]
    assert repr(problem) == "LeastSquares(1 agents, 2 rows, p = 3, sparse)"
    assert repr(problem.rows) == "Rows(1 agents, 2 rows, p = 3, sparse)"


def test_full_and_sparse_blocks_stand_beside_each_other() -> None:
    mixed = rl.LeastSquares([SMALL[0], SMALL[1].toarray(), SMALL[2]], TARGETS, ridge=0.1)
    np.testing.assert_array_equal(mixed.optimum, rl.LeastSquares(SMALL, TARGETS, ridge=0.1).optimum)
    assert problem_digest(mixed) == problem_digest(rl.LeastSquares(SMALL, TARGETS, ridge=0.1))


def test_one_agent_answers_to_any_number() -> None:
    """As on a ring."""
    own = rl.LeastSquares(SMALL[1:2], TARGETS[1:2], ridge=0.1)
    part, where = own.kernel_at(2, 5), dict(own.kernel().functions)
    numbers = part.numbers
    assert numbers.row_starts[2] == 0 and numbers.row_starts[3] == 20
    assert numbers.places[numbers.place_starts[2] : numbers.place_starts[3]].tolist() == own.rows.places_of(0).tolist()
    assert set(where) >= {"minimise", "gradient"}


def refused(make: Callable[[], Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make()


def test_what_can_not_be_meant_is_refused_in_words() -> None:
    def problem(block: Any) -> Callable[[], Any]:
        return lambda: rl.LeastSquares([sp.eye_array(3, format="csr"), block], [np.ones(3), np.ones(block.shape[0])])

    bad = sp.csr_array((np.array([1.0, np.nan]), np.array([0, 1]), np.array([0, 1, 1, 2])), shape=(3, 3))
    outside = sp.csr_array(np.eye(3))
    outside.indices[1] = 7
    refused(problem(bad), r"features of agent 1 hold nan in row 2: remove or impute")
    refused(problem(sp.csr_array(np.eye(3) * 1e200)), r"agent 1 hold 1e\+200 in row 0: rescale")
    refused(problem(outside), r"features of agent 1 are not numbers")
    refused(problem(sp.csr_array(np.eye(3) * 1j)), r"agent 1 are not numbers.*complex")
    refused(problem(sp.csr_array((0, 3))), r"Agent 1 has no rows")
    refused(problem(sp.csr_array((3, 2))), r"Agent 1 has 2 features but agent 0 has 3")
    refused(problem(sp.csr_array((3, 0))), r"agent 1 have no columns")
    refused(lambda: rl.LeastSquares([sp.eye_array(3, format="csr")], [np.ones(2)]), r"3 rows of features but 2 targets")
    refused(
        lambda: rl.LeastSquares(sp.eye_array(3, format="csr"), [np.ones(3)]), r"one sparse matrix.*roundelay\.split"
    )
    refused(lambda: rl.LeastSquares([np.eye(3)], [sp.csr_array(np.ones((3, 1)))]), r"targets of agent 0 are a sparse")
    for kind in (rl.Hinge, rl.Quantile):
        refused(lambda kind=kind: kind([sp.eye_array(3, format="csr")], [np.ones(3)]), r"full rows.*toarray.*Logistic")


@settings(max_examples=15)
@given(blocks())
def test_no_features_at_all_leave_the_origin(data: Any) -> None:
    empty = [sp.csr_array(block.shape) for block in data[0]]
    for ridge in (0.0, 0.3):
        for kind in MAKERS:
            problem = MAKERS[kind](empty, data[1], ridge)
            assert not problem.optimum.any()
            assert kind == "poisson" or pytest.approx(problem.ridge) == problem.L
            np.testing.assert_allclose(problem.prox(0, np.ones(DIM), 2.0), 2.0 / (2.0 + problem.ridge), rtol=1e-15)
    assert not rl.Logistic(empty, [_sign(t) for t in data[1]]).optimum.any()
