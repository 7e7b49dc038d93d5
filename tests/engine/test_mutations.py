"""A wrong update that still converges must not pass: one symbol is changed, and the reference notices.

Each mutation is one symbol of one kernel function. Many of them still converge to the right point, which is
why convergence alone proves nothing; the comparison with the dense reference, hop by hop, sees all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from tests.engine.support import by_reference, largest_gap, mutated, trace

AGENTS = 7
HOPS = 4 * AGENTS
START = rl.UniformStart(0.0, 10.0)

PRIVATE = rl.PrivateIncrementalGradient(0.1, 0.2, 0.4, 0.1, 0.6)

# (algorithm, slot, what stands there, what stands there instead)
ADMM = [
    ("visit", "y[i, d] += along", "y[i, d] -= along"),
    ("visit", "y[i, d] * inverse_rho - share", "y[i, d] * inverse_rho + share"),
    ("visit", "token[d] + fraction", "token[d] - fraction"),
    ("visit", "(step, d) * (z[d] - new[d])", "(step, d) * (token[d] - z[d])"),
    ("visit", "share[i, d] += whole", "share[i, d] -= whole"),
    ("visit", "whole * (moved - token[d])", "whole * (moved - z[d] * 2)"),
]
MUTATIONS: list[tuple[Any, str, str, str]] = [
    *((rl.IADMM(), *change) for change in ADMM),
    (rl.IADMM(), "step_sizes", "return (rho, rho, 0.0)", "return (rho, rho, 0.1)"),
    (rl.IADMM(), "step_sizes", "return (rho, rho, 0.0)", "return (rho, 2 * rho, 0.0)"),
    *((rl.RandomStart(start=START), *change) for change in ADMM[:3]),
    *((rl.WADMM(), *change) for change in ADMM[:3]),
    # PI-ADMM1: γ only in the x-step, only in the multiplier, or drawn half as wide.
    (rl.PIADMM1(start=START), "step_sizes", "(rho * gamma, rho * gamma, 0.0)", "(rho * gamma, rho, 0.0)"),
    (rl.PIADMM1(start=START), "step_sizes", "(rho * gamma, rho * gamma, 0.0)", "(rho, rho * gamma, 0.0)"),
    (rl.PIADMM1(start=START), "step_sizes", "2.0 * uniform", "1.0 * uniform"),
    (rl.PIADMM1(start=START), "visit", "inverse_rho, fraction, whole = (1.0 / rho", "inverse_rho, fraction, whole = (1.0 * rho"),
    # PI-ADMM2: the noise left out of the multiplier, subtracted, or doubled.
    (rl.PIADMM2(sigma=0.1, start=START), "disturb", "new[d] += perturbation", "new[d] -= perturbation"),
    (rl.PIADMM2(sigma=0.1, start=START), "disturb", "new[d] += perturbation", "new[d] = perturbation"),
    (rl.PIADMM2(sigma=0.1, start=START), "disturb", "perturbation.sigma * omega", "perturbation.sigma / omega"),
    # First order: the gradient at the wrong sign, the wrong penalty, or none.
    (rl.IADMM(rho=30.0, first_order=True), "solve", "w[d] - slope[d]", "w[d] + slope[d]"),
    (rl.IADMM(rho=30.0, first_order=True), "solve", "inverse = 1.0 / penalty", "inverse = 2.0 / penalty"),
    (rl.IADMM(rho=30.0, first_order=True), "solve", "gradient(problem, at.agent, x, slope)", "gradient(problem, at.agent, w, slope)"),
    # Several walks: the wrong fraction, the inertia at the wrong point, or forgotten.
    (rl.PWADMM(walks=3, tau=0.7), "visit", "TOKENS / at.agents", "1 / at.agents"),
    (rl.PWADMM(walks=3, tau=0.7), "visit", "inertia * x[i, d]", "inertia * z[d]"),
    (rl.PWADMM(walks=3, tau=0.7), "step_sizes", "perturbation.tau)", "0.0)"),
    (rl.IPWADMM(walks=3, tau=0.7), "visit", "TOKENS / at.agents", "1 / at.agents"),
    (rl.IPWADMM(walks=3, tau=0.7), "x_step", "pull + inertia", "pull - inertia"),
    (rl.IPWADMM(walks=3, tau=0.7), "visit", "+ inertia * x[i, d]", "- inertia * x[i, d]"),
    # WPG.
    (rl.WPG(), "visit", "z[d] - alpha * slope[d]", "z[d] + alpha * slope[d]"),
    (rl.WPG(), "visit", "own - states.share[i, d]", "own + states.share[i, d]"),
    (rl.WPG(), "visit", "gradient(problem, i, z, slope)", "gradient(problem, i, states.x[i], slope)"),
    # Point-SAGA.
    (rl.PointSAGA(0.1), "visit", "(states.y[i, d] - mean[d])", "(states.y[i, d] + mean[d])"),
    (rl.PointSAGA(0.1), "visit", "pull[d] - rho * new[d]", "pull[d] - new[d]"),
    (rl.PointSAGA(0.1), "visit", "(slope - states.y[i, d]) * inverse_agents", "(slope - states.y[i, d])"),
    (rl.PointSAGA(0.1), "visit", "states.y[i, d] = slope", "states.y[i, d] = slope + mean[d]"),
    # Prox-DFinito.
    (rl.ProxDFinito(0.1, 0.7), "visit", "method.theta * (token[d] - states.share[i, d])", "(token[d] - states.share[i, d])"),
    (rl.ProxDFinito(0.1, 0.7), "visit", "method.theta * change", "change"),
    (rl.ProxDFinito(0.1, 0.7), "visit", "change * inverse_agents", "method.theta * change * inverse_agents"),
    (rl.ProxDFinito(0.1, 0.7), "visit", "- method.alpha * slope[d]", "+ method.alpha * slope[d]"),
    (rl.ProxDFinito(0.1, 0.7), "visit", "if at.turn > 0:", "if at.turn > 1:"),
    (rl.ProxDFinito(0.1, 0.7, rl.L1(3.0)), "estimate", "method.alpha / agents", "method.alpha"),
    # The accelerated token.
    (rl.AcceleratedToken(0.5, 12.0), "visit", "- alpha * change", "+ alpha * change"),
    (rl.AcceleratedToken(0.5, 12.0), "visit", "slope[d] - method.mu", "slope[d] + method.mu"),
    (rl.AcceleratedToken(0.5, 12.0), "visit", "16.0 * method.kappa", "4.0 * method.kappa"),
    (rl.AcceleratedToken(0.5, 12.0), "visit", "weight * (token[d]", "(token[d]"),
    (rl.AcceleratedToken(0.5, 12.0), "visit", "1.0 / (method.mu + eta)", "1.0 / eta"),
    # Incremental gradient.
    (rl.IncrementalGradient(decay=0.6), "visit", "token[d] - step", "token[d] + step"),
    (rl.IncrementalGradient(decay=0.6), "visit", "turn + 1.0", "turn + 2.0"),
    (rl.IncrementalGradient(decay=0.6), "visit", "method.alpha / ", "method.alpha * "),
    # The same with noise: rows not cut, slopes cut on one side, the noise with its step or its sign wrong.
    (PRIVATE, "visit", "shrink * token[d]", "token[d]"),
    (PRIVATE, "visit", "shrink * factor", "factor"),
    (PRIVATE, "visit", "max(row_slope(problem, i, j, seen), -limit)", "row_slope(problem, i, j, seen)"),
    (PRIVATE, "visit", "slope[d] + method.sigma", "slope[d] - method.sigma"),
    (PRIVATE, "visit", "turn + 1.0", "turn + 2.0"),
    # sI-ADMM.
    (rl.SIADMM(batch=3), "step_sizes", "perturbation.c_gamma / root", "perturbation.c_gamma * root"),
    (rl.SIADMM(batch=3), "step_sizes", "turn + 1.0", "turn + 2.0"),
    (rl.SIADMM(batch=3), "solve", "rows / xstep.batch", "rows * xstep.batch"),
    # The regulariser, in the three methods that carry one.
    (rl.IADMM(regulariser=rl.L1(3.0)), "estimate", "1.0 / (agents * method.rho)", "1.0 / method.rho"),
    (rl.WADMM(regulariser=rl.L1(3.0)), "at_token", "np.abs(token[d]) - threshold", "np.abs(token[d]) + threshold"),
    (rl.WPG(regulariser=rl.L1(3.0)), "estimate", "method.alpha / agents", "method.alpha * agents"),
    (rl.IADMM(regulariser=rl.L1(3.0)), "visit", "as_sent(method.defence, token[d]", "as_sent(method.defence, z[d]"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("algorithm", "slot", "old", "new"), MUTATIONS, ids=lambda value: value if isinstance(value, str) else value.name
)
def test_one_changed_symbol_is_noticed(algorithm: Any, slot: str, old: str, new: str) -> None:
    problem = rl.paper_least_squares(agents=AGENTS, samples=6, seed=1)
    network = rl.random_network(AGENTS, 0.6, 1)
    right = trace(algorithm, problem, network, HOPS)
    assert largest_gap(right, by_reference(algorithm, problem, right)) < 1e-12
    with np.errstate(all="ignore"):
        wrong = trace(algorithm, problem, network, HOPS, prepared=mutated(algorithm, problem, network, slot, old, new))
        assert largest_gap(wrong, by_reference(algorithm, problem, wrong)) > 1e-6


def test_some_mutations_still_converge_so_that_convergence_proves_nothing() -> None:
    problem, network = rl.paper_least_squares(agents=AGENTS, samples=6, seed=1), rl.random_network(AGENTS, 0.6, 1)
    algorithm = rl.PIADMM1(start=START)
    wrong = mutated(
        algorithm, problem, network, "step_sizes", "(rho * gamma, rho * gamma, 0.0)", "(rho, rho * gamma, 0.0)"
    )
    run = trace(algorithm, problem, network, 500 * AGENTS, prepared=wrong)
    assert np.linalg.norm(run.tokens[-1] - problem.optimum) < 1e-9


def test_every_algorithm_has_at_least_three_mutations() -> None:
    counts: dict[str, int] = {}
    for algorithm, *_ in MUTATIONS:
        counts[algorithm.name] = counts.get(algorithm.name, 0) + 1
    named = [rl.IADMM, rl.RandomStart, rl.PIADMM1, rl.PIADMM2, rl.WADMM, rl.PWADMM, rl.IPWADMM, rl.WPG]
    named += [rl.PointSAGA, rl.ProxDFinito, rl.AcceleratedToken]
    for algorithm in [*named, rl.IncrementalGradient, rl.PrivateIncrementalGradient, rl.SIADMM]:
        assert counts[algorithm.name] >= 3
