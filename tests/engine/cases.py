"""One table of algorithm × problem × network: what the engines and the reference are compared on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import roundelay as rl

AGENTS = 7


class Case(NamedTuple):
    name: str
    algorithm: Any
    problem: Any
    network: rl.Network


def _ragged(dim: int, weights: Any = "equal", ridge: float = 0.0) -> rl.LeastSquares:
    """Between one and 2·dim rows an agent, so that some Hessians are of less than full rank."""
    generator = np.random.default_rng(3)
    counts = generator.integers(1, 2 * dim, AGENTS)
    return rl.LeastSquares(
        [generator.random((count, dim)) for count in counts], [generator.random(count) for count in counts],
        ridge=ridge, weights=weights, scale="mean",
    )  # fmt: skip


def cases() -> list[Case]:
    network, line = rl.random_network(AGENTS, 0.6, 1), rl.path(AGENTS)
    squares = rl.paper_least_squares(agents=AGENTS, samples=6, dim=2, seed=1)
    wide = rl.paper_least_squares(agents=AGENTS, samples=6, dim=20, seed=1)  # thin: 6 rows, 20 unknowns
    logistic = rl.paper_logistic(agents=AGENTS, samples=6, dim=2, seed=1)
    start = rl.UniformStart(0.0, 10.0)
    return [
        Case("I-ADMM", rl.IADMM(), squares, network),
        Case("I-ADMM first order", rl.IADMM(rho=30.0, first_order=True), squares, network),
        Case("I-ADMM thin", rl.IADMM(), wide, network),
        Case("I-ADMM ragged and weighted", rl.IADMM(rho=2.0), _ragged(3, "rows", 0.1), network),
        Case("I-ADMM logistic", rl.IADMM(rho=1.0), logistic, network),
        Case("I-ADMM logistic first order", rl.IADMM(rho=1.0, first_order=True), logistic, network),
        Case("I-ADMM on a path, with relays", rl.IADMM(), squares, line),
        Case("I-ADMM with L1", rl.IADMM(regulariser=rl.L1(3.0)), squares, network),
        Case("I-ADMM with a box", rl.IADMM(regulariser=rl.Box(-0.1, 0.3)), squares, network),
        Case("I-ADMM non-negative", rl.IADMM(regulariser=rl.NonNegative()), wide, network),
        Case("Algorithm 2", rl.RandomStart(start=start), squares, network),
        Case("Algorithm 2 first order", rl.RandomStart(rho=30.0, first_order=True, start=start), squares, network),
        Case("PI-ADMM1", rl.PIADMM1(start=start), squares, network),
        Case("PI-ADMM1 first order", rl.PIADMM1(rho=30.0, first_order=True, start=start), squares, network),
        Case("PI-ADMM1 logistic", rl.PIADMM1(rho=1.0, start=start), logistic, network),
        Case("PI-ADMM1 logistic first order", rl.PIADMM1(rho=1.0, first_order=True, start=start), logistic, network),
        Case("PI-ADMM2", rl.PIADMM2(sigma=0.1, start=start), squares, network),
        Case("PI-ADMM2 first order", rl.PIADMM2(rho=30.0, sigma=0.1, first_order=True, start=start), squares, network),
        Case("PI-ADMM2 thin", rl.PIADMM2(sigma=0.1, start=start), wide, network),
        Case("W-ADMM Metropolis", rl.WADMM(), squares, network),
        Case("W-ADMM uniform", rl.WADMM(walk=rl.UniformWalk()), squares, line),
        Case("W-ADMM closed uniform", rl.WADMM(walk=rl.ClosedUniformWalk(), first_order=True, rho=30.0), squares, line),
        Case("W-ADMM with L1", rl.WADMM(regulariser=rl.L1(3.0)), squares, network),
        Case("PW-ADMM", rl.PWADMM(walks=3, tau=0.7), squares, network),
        Case("PW-ADMM logistic first order", rl.PWADMM(walks=3, tau=3.0, first_order=True), logistic, network),
        Case("IPW-ADMM", rl.IPWADMM(walks=3), squares, network),
        Case("WPG", rl.WPG(alpha=0.1), squares, network),
        Case("WPG with L1", rl.WPG(alpha=0.1, regulariser=rl.L1(3.0)), squares, network),
        Case("Point-SAGA", rl.PointSAGA(0.1), squares, network),
        Case("Point-SAGA logistic", rl.PointSAGA(1.0), logistic, network),
        Case("Prox-DFinito", rl.ProxDFinito(0.1, 0.7), squares, network),
        Case("Prox-DFinito on a path, with relays and L1", rl.ProxDFinito(0.1, 0.7, rl.L1(3.0)), squares, line),
        Case("accelerated token", rl.AcceleratedToken(0.5, 12.0), squares, network),
        Case("accelerated token that mixes", rl.AcceleratedToken(0.5, 12.0, rl.MixedWalk(2)), squares, line),
        Case("incremental gradient", rl.IncrementalGradient(alpha=0.1, decay=0.6), squares, network),
        Case("private incremental gradient", rl.PrivateIncrementalGradient(0.1, 0.2, 0.7, 0.4, 0.6), _ragged(3, "rows", 0.1), network),
        Case("private gradient on a walk, logistic", rl.PrivateIncrementalGradient(0.5, 0.2, 0.7, 0.4, walk=rl.MetropolisWalk()), logistic, line),
        Case("sI-ADMM", rl.SIADMM(batch=3), squares, network),
        Case("sI-ADMM logistic", rl.SIADMM(rho=1.0, c_tau=1.0, batch=3), logistic, network),
    ]  # fmt: skip
