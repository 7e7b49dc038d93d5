"""The agents' own stopping rule: whenever it stops, the mean gradient at the token is within the tolerance."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.problems import total_gradient

AGENTS = 10
NETWORKS = {"cycle": rl.ring(AGENTS), "path": rl.path(AGENTS), "barbell": rl.barbell(4, 2)}


def mean_gradient(problem: rl.LeastSquares, run: rl.Run) -> float:
    return float(np.linalg.norm(total_gradient(problem, run.token)) / problem.agents)


@pytest.mark.parametrize("scale", ["half_sum", "mean"])
@pytest.mark.parametrize("dim", [2, 20])
@pytest.mark.parametrize("shape", NETWORKS)
def test_every_stop_is_right(shape: str, dim: int, scale: str) -> None:
    problem = rl.paper_least_squares(agents=AGENTS, dim=dim, seed=3, scale=scale)
    stops = 0
    for rho in (1.0, 10.0, 100.0, 1000.0):
        for gamma in (1.0, 30.0, 1e3, 1e5, 1e7):
            for tolerance in (1e-2, 1e-5):
                algorithm = rl.PIADMM1(rho, gamma=gamma)
                run = rl.simulate(algorithm, problem, NETWORKS[shape], 200_000, content=tolerance, record=100_000)
                if run.stop == "content":
                    stops += 1
                    assert mean_gradient(problem, run) <= tolerance
                else:  # nothing but divergence or very slow convergence may keep it from stopping
                    assert run.stop == "diverged" or mean_gradient(problem, run) > 1e-3 * tolerance
    assert stops >= 15


@pytest.mark.parametrize(
    "algorithm",
    [rl.IADMM(), rl.IADMM(60.0, first_order=True), rl.WADMM(), rl.RandomStart(3.0), rl.WPG(0.05), rl.WADMM(walk=rl.UniformWalk())],
    ids=repr,
)  # fmt: skip
def test_other_methods_stop_right_too(algorithm: object) -> None:
    problem = rl.paper_least_squares(agents=AGENTS, seed=4)
    run = rl.simulate(algorithm, problem, rl.complete(AGENTS), 100_000, content=1e-6)
    assert run.stop == "content"
    assert mean_gradient(problem, run) <= 1e-6
    assert run.units == run.hops + AGENTS  # one last lap
    assert run.history["units"].iloc[-1] == run.units


def test_with_a_regulariser_the_stop_is_stationary_for_the_sum() -> None:
    problem = rl.paper_least_squares(agents=AGENTS, dim=3, seed=4)
    run = rl.simulate(rl.IADMM(regulariser=rl.L1(5.0)), problem, rl.ring(AGENTS), 100_000, content=1e-7)
    slope = total_gradient(problem, run.estimate) / AGENTS
    subgradient = np.where(run.estimate != 0.0, 0.5 * np.sign(run.estimate), np.clip(-slope, -0.5, 0.5))
    assert np.linalg.norm(slope + subgradient) <= 1e-7


def test_either_condition_alone_would_stop_too_early() -> None:
    """Why the agents look at the balance too: the residuals alone let small ρ stop far from the optimum."""
    problem = rl.paper_least_squares(agents=12, dim=20, seed=3)
    run = rl.simulate(rl.IADMM(rho=1.0), problem, rl.ring(12), 200_000, content=1e-2)
    early = rl.simulate(rl.IADMM(rho=1.0), problem, rl.ring(12), 200_000, record=1)
    assert run.stop == "content"
    assert mean_gradient(problem, run) <= 1e-2
    # A lap in which no token moved by more than 1e-2/ρ a hop had come long before.
    steps = np.linalg.norm(np.diff(early.record.tokens, axis=0), axis=1) * 12
    quiet = np.convolve(steps <= 1e-2, np.ones(12), "valid") == 12
    token = early.record.tokens[np.flatnonzero(quiet)[0] + 12]
    assert np.linalg.norm(total_gradient(problem, token)) / 12 > 1e-2


@pytest.mark.parametrize(
    ("algorithm", "reason"),
    [
        (rl.PIADMM2(), "primal noise"),
        (rl.SIADMM(), "shrink by themselves"),
        (rl.IncrementalGradient(), "do not tell an agent"),
        (rl.PWADMM(walks=3), "3 tokens go round"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_where_the_rule_means_nothing_it_is_refused_in_words(algorithm: object, reason: str) -> None:
    problem = rl.paper_least_squares(agents=AGENTS)
    with pytest.raises(ValueError, match=reason):
        rl.simulate(algorithm, problem, rl.ring(AGENTS), 100, content=1e-4)


def test_above_the_floor_of_its_noise_pi_admm2_stops() -> None:
    problem = rl.paper_least_squares(agents=AGENTS)
    with pytest.raises(ValueError, match=r"below 0\.\d+") as refusal:
        rl.simulate(rl.PIADMM2(), problem, rl.ring(AGENTS), 100, content=1e-3)
    floor = float(str(refusal.value).split("below ")[1].split(".  ")[0].split(". ")[0])
    run = rl.simulate(rl.PIADMM2(), problem, rl.ring(AGENTS), 100_000, content=1.5 * floor)
    assert run.stop == "content"
    assert mean_gradient(problem, run) <= 1.5 * floor


def test_a_start_that_breaks_the_balance_is_refused() -> None:
    """With the paper's printed sign Σc_i is not Nz, and contentment would mean nothing."""
    wrong = rl.RandomStart(start=rl.UniformStart(0.0, 100.0, printed_sign=True))
    with pytest.raises(ValueError, match="at a wrong point"):
        rl.simulate(wrong, rl.paper_least_squares(agents=AGENTS), rl.ring(AGENTS), 1000, content=1e-6)


def test_the_stop_is_right_to_the_last_digit() -> None:
    for seed in range(5):
        problem = rl.paper_least_squares(agents=20, seed=seed)
        for tolerance in (1e-10, 1e-11, 2e-12):
            run = rl.simulate(rl.IADMM(rho=1000.0), problem, rl.ring(20), 400_000, content=tolerance)
            assert run.stop == "hops" or mean_gradient(problem, run) <= tolerance
