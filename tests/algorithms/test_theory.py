"""The lemmas, and what `conditions` says of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import roundelay as rl

AGENTS = 20


@pytest.fixture(scope="module")
def problem() -> rl.LeastSquares:
    return rl.paper_least_squares(agents=AGENTS)


def test_lemma_2_and_its_numbers(problem: rl.LeastSquares) -> None:
    enough = 2.0 * problem.L + 2.0
    assert rl.IADMM(rho=enough).conditions(problem).hold
    assert not rl.IADMM(rho=0.99 * enough).conditions(problem).hold
    (condition,) = rl.IADMM(rho=10.0).conditions(problem)
    assert str(condition) == (f"Lemma 2 (Ye et al. 2020): ρ ≥ 2L + 2 does not hold (ρ = 10, 2L + 2 = {enough:.4g}).")


def test_lemma_4_needs_gamma_above_2400_where_the_paper_uses_1() -> None:
    problem = rl.paper_least_squares(agents=100, scale="mean")  # L is below ρ = 10 here
    rho_condition, gamma_condition = rl.PIADMM1(rho=10.0).conditions(problem)
    assert rho_condition.holds is True
    assert gamma_condition.holds is False
    assert gamma_condition.numbers.startswith("γ = 0.9,")
    assert gamma_condition.numbers.endswith("= 2400")
    assert rl.PIADMM1(rho=10.0, gamma=3000.0).conditions(problem).hold


def test_conditions_of_the_others(problem: rl.LeastSquares) -> None:
    L = problem.L
    assert rl.WADMM(rho=2.1 * L + 2.0).conditions(problem).hold
    assert rl.WADMM(rho=2.1 * L**2 + L + 2.0, first_order=True).conditions(problem).hold
    assert not rl.WADMM(rho=2.1 * L + 2.0, first_order=True).conditions(problem).hold
    assert rl.WPG(1.0 / L).conditions(problem).hold and not rl.WPG(2.1 / L).conditions(problem).hold
    assert not rl.IADMM(rho=1.9 * L, first_order=True).conditions(problem).hold
    assert str(rl.PIADMM2().conditions(problem)) == "No theorem is known for this method."
    assert not rl.PIADMM2().conditions(problem).hold
    unknown = rl.CallableProblem([lambda x: x] * 3, dim=2)
    (condition,) = rl.IADMM().conditions(unknown)
    assert condition.holds is None and "not known" in str(condition)
    known = rl.CallableProblem([lambda x: x] * 3, dim=2, L=1.0)
    assert rl.IADMM().conditions(known).hold


@pytest.mark.parametrize("start", [rl.ZeroStart(), rl.UniformStart(0.0, 10.0)], ids=["zero", "random"])
def test_under_lemma_2_the_lagrangian_falls_from_the_second_lap_on(problem: rl.LeastSquares, start: object) -> None:
    algorithm = rl.IADMM(rho=2.0 * problem.L + 2.0, start=start)
    lagrangian = _lagrangian(algorithm, problem, 15 * AGENTS)
    steps = np.diff(lagrangian[AGENTS:])
    assert (steps <= 1e-10 * np.abs(lagrangian).max()).all()
    assert lagrangian[-1] >= problem.values(np.tile(problem.optimum, (AGENTS, 1))).sum() - 1e-9


def test_under_lemma_4_too(problem: rl.LeastSquares) -> None:
    algorithm = rl.PIADMM1(rho=2.0 * problem.L, gamma=10_000.0, start=rl.UniformStart(0.0, 10.0))
    assert algorithm.conditions(problem).hold
    lagrangian = _lagrangian(algorithm, problem, 15 * AGENTS)
    assert (np.diff(lagrangian[AGENTS:]) <= 1e-10 * np.abs(lagrangian).max()).all()
    assert (np.diff(lagrangian[: AGENTS + 1]) > 0.0).all()  # and rises at every hop of the first lap


def test_far_below_its_condition_the_lagrangian_rises_all_the_same_it_converges(problem: rl.LeastSquares) -> None:
    lagrangian = _lagrangian(rl.IADMM(rho=10.0), problem, 15 * AGENTS)
    assert (np.diff(lagrangian[AGENTS:]) > 0.0).sum() > AGENTS
    run = rl.simulate(rl.IADMM(rho=10.0), problem, rl.ring(AGENTS), 100 * AGENTS, engine="python")
    assert run.history["error"].iloc[-1] < 1e-9


def test_the_limit_is_a_kkt_point(problem: rl.LeastSquares) -> None:
    for algorithm in (rl.IADMM(), rl.PIADMM1(), rl.WADMM()):
        run = rl.simulate(
            algorithm, problem, rl.complete(AGENTS), 400 * AGENTS, monitors=[rl.KKTResiduals()], record=400 * AGENTS
        )
        last = run.history.iloc[-1]
        assert max(last["kkt_gradient"], last["kkt_multipliers"], last["kkt_consensus"]) < 1e-9


def test_the_first_order_form_needs_more_than_twice_the_lipschitz_constant() -> None:
    """The local recursion has a root at −1 where ργ = 2L, and with many agents the token hardly damps it."""
    problem = rl.LeastSquares([np.array([[1.0]])] * 200, [np.array([1.0])] * 200)  # L = 1
    network = rl.ring(200)
    stable = rl.simulate(rl.IADMM(rho=2.5, first_order=True), problem, network, 40_000)
    unstable = rl.simulate(rl.IADMM(rho=1.5, first_order=True), problem, network, 40_000)
    assert stable.history["error"].iloc[-1] < 1e-12
    assert not unstable.history["error"].iloc[-1] < 1e-3
    assert math.isclose(problem.L, 1.0)


def _lagrangian(algorithm: object, problem: rl.LeastSquares, hops: int) -> np.ndarray:
    run = rl.simulate(
        algorithm, problem, rl.ring(AGENTS), hops, record=1, monitors=[rl.AugmentedLagrangian()], engine="python"
    )
    return run.history["augmented_lagrangian"].to_numpy()
