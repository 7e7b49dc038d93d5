"""A problem that is one file outside the project runs by both engines, is audited, and goes round a ring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay import registry
from roundelay.agents.agreement.plan import Column, Stopping, Task
from roundelay.agents.data.fitting import model_of, own_problem, weights_of
from roundelay.problems import Problem, total_gradient
from tests.agents.likeness import check_every_hand_over_once, check_same, simulated
from tests.agents.pooled import shares, standard_by_sums
from tests.agents.processes import make_ring
from tests.problems.cases import call_gradient, call_minimise, kernel_function, prox_residual

from .test_examples import example


@pytest.fixture(scope="module")
def huber() -> Iterator[Any]:
    """The example, in the register for as long as these tests run."""
    before = dict(registry.registered(rl.RowProblem))
    yield example("huber_problem")
    registry._ENTRIES[rl.RowProblem] = before


@pytest.fixture
def problem(huber: Any) -> Any:
    features, targets, _ = huber.sites(agents=4, samples=9)
    return huber.OwnHuber([*features[:3], features[3][:2]], [*targets[:3], targets[3][:2]], 0.7, 0.05, "rows")


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_both_methods_end_at_the_minimiser(huber: Any, engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    errors = huber.main(engine)
    assert set(errors) == {"I-ADMM", "NIDS"} and max(errors.values()) < 1e-12
    assert "OwnHuber(8 agents, 240 rows, p = 3)" in capsys.readouterr().out


def test_the_gradient_is_the_slope_that_differences_show(problem: Any) -> None:
    assert isinstance(problem, Problem) and problem.has_hessians and not problem.is_quadratic
    rng, step = np.random.default_rng(0), 1e-6
    for agent in range(problem.agents):
        x = rng.normal(size=3)
        for d, direction in enumerate(step * np.eye(3)):
            rise = problem.value(agent, x + direction) - problem.value(agent, x - direction)
            assert rise / (2.0 * step) == pytest.approx(problem.gradient(agent, x)[d], abs=1e-8)
            turn = problem.gradient(agent, x + direction) - problem.gradient(agent, x - direction)
            np.testing.assert_allclose(turn / (2.0 * step), problem.hessian(agent, x)[:, d], atol=1e-6)


def test_the_optimum_balances_the_gradients(problem: Any) -> None:
    assert np.linalg.norm(total_gradient(problem, problem.optimum)) <= 1e-13
    around = problem.optimum + 1e-3 * np.random.default_rng(0).normal(size=(20, 3))
    assert (problem.objective_gaps(around) > 0.0).all()
    assert problem.objective_gaps(problem.optimum[None]) == [0.0]


def test_the_optimum_is_found_from_far_away_and_among_straight_lines(huber: Any) -> None:
    """At x = 0 no record is within δ, so that there is no curvature at all."""
    features, targets, truth = huber.sites(seed=3)
    far = huber.OwnHuber(features, targets + 1e3 * features[..., 0], 1e-3)
    assert (far.hessian(0, np.zeros(3)) == 0.0).all()
    scale = sum(np.linalg.norm(far.gradient(agent, np.zeros(3))) for agent in range(far.agents))
    assert np.linalg.norm(total_gradient(far, far.optimum)) <= 1e-10 * scale
    np.testing.assert_allclose(far.optimum, [truth[0] + 1e3, *truth[1:]], atol=0.1)


@pytest.mark.parametrize("compiled", [False, True])
def test_steps_and_gradients_of_either_engine(problem: Any, compiled: bool) -> None:
    minimise = kernel_function(problem, call_minimise, compiled)
    gradient = kernel_function(problem, call_gradient, compiled)
    rng = np.random.default_rng(1)
    for penalty in (1e-4, 1e-2, 1.0, 1e3):
        for spread in (0.1, 1.0, 100.0):
            for agent in range(problem.agents):
                v, start, out = spread * rng.normal(size=3), rng.normal(size=3), np.full(3, np.nan)
                minimise(agent, penalty * v, penalty, start, out)
                assert prox_residual(problem, agent, out, v, penalty) <= 1e-12
                np.testing.assert_allclose(out, problem.prox(agent, v, penalty), rtol=1e-7, atol=1e-8)
                gradient(agent, v, out)
                np.testing.assert_allclose(out, problem.gradient(agent, v), rtol=1e-12, atol=1e-12)


def test_the_engines_agree_on_steps_by_single_records_too(problem: Any) -> None:
    for algorithm in (rl.SIADMM(batch=3), rl.PIADMM2(rho=3.0, first_order=True, clip=0.5)):
        runs = [
            rl.simulate(algorithm, problem, rl.ring(4), 60, engine=engine, seed=3) for engine in ("python", "compiled")
        ]
        np.testing.assert_allclose(runs[0].x, runs[1].x, rtol=1e-9, atol=1e-12)


def test_an_audit_says_what_it_can(problem: Any) -> None:
    """There is no quadratic to know and no attack on its records, but gradients leak as ever."""
    run = rl.simulate(rl.IADMM(rho=1.0), problem, rl.ring(4), 400, transcript=True, engine="python")
    found = rl.audit(run, agent=1)
    known = {leak.quantity for leak in found.worst if leak.known}
    assert {"multipliers y", "gradient at the solution"} <= known
    assert not {"Hessian H", "records"} & {leak.quantity for leak in found.leaks}


def test_a_ring_of_processes_does_what_the_simulator_does(huber: Any, tmp_path: Path) -> None:
    features, targets, _ = huber.sites(agents=4, samples=6, dim=2)
    problem, algorithm = huber.OwnHuber(features, targets, 0.7), rl.PIADMM1(rho=1.0)
    own = [huber.OwnHuber([block], [answers], 0.7) for block, answers in zip(features, targets, strict=True)]
    ring = make_ring(tmp_path, own, algorithm, Stopping(None, 41), rl.ring(4), seed=11)
    ring.run()
    check_same(ring, simulated(algorithm, problem, rl.ring(4), 41, 11))
    check_every_hand_over_once(ring)


def test_a_ring_file_may_name_it(huber: Any) -> None:
    """The sites' functions add up to the pooled fit; the intercept is a column of ones."""
    task = Task("own_huber", (Column("a", "mm"), Column("b"), Column("c", "km")), Column("t"), ridge=0.1)
    tables = shares(2)
    standard = standard_by_sums(tables)
    problems = [own_problem(task, table, standard, len(tables)) for table in tables]
    assert task.dim == 4 and all(type(one) is huber.OwnHuber for one in problems)
    features = [problem.rows.features for problem in problems]
    rows = sum(len(block) for block in features)
    pooled = huber.OwnHuber(
        [np.concatenate(features)], [np.concatenate([one.rows.targets for one in problems])], ridge=0.1
    )
    assert rows == standard.rows
    slope = np.sum([problem.gradient(0, pooled.optimum) for problem in problems], axis=0)
    np.testing.assert_allclose(slope, 0.0, atol=1e-11)
    w = weights_of(task, standard, model_of(task, standard, pooled.optimum))
    np.testing.assert_allclose(w, pooled.optimum, rtol=1e-9)
    assert replace(task, intercept=False).dim == 3


def test_it_says_how_large_it_is_and_shows_no_data(problem: Any) -> None:
    assert (
        repr(problem) == "OwnHuber(4 agents, 29 rows, p = 3)" and repr(problem.rows) == "Rows(4 agents, 29 rows, p = 3)"
    )
