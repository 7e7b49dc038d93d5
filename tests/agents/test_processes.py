"""A ring of real processes under mutual TLS computes what the simulator does, to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from tests.agents.likeness import check_every_hand_over_once, check_same, first_of, simulated
from tests.agents.processes import make_ring, own_functions

SITES, HOPS, SEED = 5, 63, 11


class Case(NamedTuple):
    name: str
    algorithm: Any
    problem: Any
    network: rl.Network


def cases() -> list[Case]:
    ring, meshed, line = rl.ring(SITES), rl.random_network(SITES, 0.9, 3), rl.path(SITES)
    assert len(meshed.edges) > SITES
    squares = rl.paper_least_squares(agents=SITES, samples=6, dim=3, seed=2)
    logistic = rl.paper_logistic(agents=SITES, samples=6, dim=2, seed=2)
    start = rl.UniformStart(0.0, 10.0)
    return [
        Case("I-ADMM", rl.IADMM(), squares, ring),
        Case("I-ADMM on a random network", rl.IADMM(), squares, meshed),
        Case("I-ADMM on a path, with relays", rl.IADMM(), squares, line),
        Case("I-ADMM with L1", rl.IADMM(regulariser=rl.L1(3.0)), squares, ring),
        Case("I-ADMM sealed", rl.IADMM(start=rl.SealedStart()), squares, ring),
        Case("I-ADMM sealed, on a path", rl.IADMM(start=rl.SealedStart()), squares, line),
        Case("I-ADMM first order", rl.IADMM(rho=30.0, first_order=True), squares, ring),
        Case("I-ADMM logistic", rl.IADMM(rho=1.0), logistic, ring),
        Case("Algorithm 2", rl.RandomStart(start=start), squares, meshed),
        Case("PI-ADMM1", rl.PIADMM1(start=start), squares, ring),
        Case("PI-ADMM1 zero-sum", rl.PIADMM1(start=rl.ZeroSumStart()), squares, ring),
        Case("PI-ADMM1 sealed", rl.PIADMM1(start=rl.SealedStart()), squares, meshed),
        Case("PI-ADMM1 with a vector γ", rl.PIADMM1(start=start, gamma_is="vector"), squares, ring),
        Case("PI-ADMM1 with noise", rl.PIADMM1(start=start, defence=rl.ContributionNoise()), squares, ring),
        Case("PI-ADMM1 logistic, on a path", rl.PIADMM1(rho=1.0, start=start), logistic, line),
        Case("PI-ADMM2", rl.PIADMM2(sigma=0.1, start=start), squares, ring),
        Case("PI-ADMM2 clipped", rl.PIADMM2(rho=30.0, first_order=True, clip=0.5, start=start), logistic, ring),
        Case("W-ADMM Metropolis", rl.WADMM(), squares, meshed),
        Case("W-ADMM uniform", rl.WADMM(walk=rl.UniformWalk()), squares, meshed),
        Case("W-ADMM logistic, on a path", rl.WADMM(rho=1.0), logistic, line),
        Case("WPG", rl.WPG(alpha=0.1), squares, ring),
        Case("WPG on a walk", rl.WPG(alpha=0.1, walk=rl.MetropolisWalk()), squares, meshed),
        Case("incremental gradient", rl.IncrementalGradient(alpha=0.1, decay=0.6), squares, ring),
        Case("sI-ADMM", rl.SIADMM(batch=3), squares, ring),
        Case("sI-ADMM logistic", rl.SIADMM(rho=1.0, c_tau=1.0, batch=3), logistic, meshed),
        Case("MC-SAG", rl.MCSAG(gamma=0.05), squares, meshed),
        Case("Point-SAGA", rl.PointSAGA(gamma=0.1), squares, meshed),
        Case("Prox-DFinito on a path, with relays", rl.ProxDFinito(0.1, 0.7), squares, line),
        Case("accelerated token", rl.AcceleratedToken(0.5, 12.0), squares, meshed),
        Case("MC-SAG on the cycle", rl.MCSAG(gamma=0.05, walk=rl.Cycle()), squares, ring),
    ]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_real_processes_do_what_the_simulator_does(case: Case, tmp_path: Path) -> None:
    _, algorithm, problem, network = case
    ring = make_ring(
        tmp_path, own_functions(problem), algorithm, Stopping(None, HOPS), network,
        first_of(algorithm, network, SEED), seed=SEED,
    )  # fmt: skip
    ring.run()
    check_same(ring, simulated(algorithm, problem, network, HOPS, SEED))
    check_every_hand_over_once(ring)
