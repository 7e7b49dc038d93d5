from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import roundelay as rl
from roundelay.engine.replay import replay
from roundelay.paper.settings import States

AGENTS, HOPS = 8, 60
METHODS = (
    rl.IADMM(rho=5.0),
    rl.IADMM(rho=80.0, first_order=True),
    rl.RandomStart(rho=5.0),
    rl.PIADMM1(rho=5.0),
    rl.PIADMM1(rho=80.0, first_order=True),
    rl.PIADMM2(rho=5.0, sigma=1e-2),
    rl.WADMM(rho=5.0),
    rl.IADMM(rho=5.0, regulariser=rl.L1(0.5)),
)


def run_of(method, dim=2):
    problem, network = rl.paper_least_squares(AGENTS, 10, dim, seed=3), rl.random_network(AGENTS, 0.5, seed=3)
    everyone = States(tuple(range(AGENTS)), tuple(range(dim)))
    run = rl.simulate(
        method, problem, network, HOPS, seed=5, record=1, transcript=True, monitors=[everyone], progress=False,
        engine="python",
    )  # fmt: skip
    return run, problem


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_an_agent_does_again_what_it_did(method):
    run, problem = run_of(method)
    seen = run.transcript.seen_by(rl.Eavesdropper())
    for agent in range(AGENTS):
        visits = seen.visits_of(agent)
        again = replay(method.parts(), problem, run.seed, visits)
        hops = np.concatenate([[0], visits.hop + 1])
        for letter, values in (("x", again.x), ("y", again.y)):
            truth = np.column_stack([run.column(f"{letter} {agent} {d}")[hops] for d in range(2)])
            np.testing.assert_allclose(values, truth, rtol=1e-11, atol=1e-11 * np.abs(truth).max())


def test_another_problem_is_noticed():
    run, _ = run_of(rl.PIADMM1(rho=5.0))
    other = rl.paper_least_squares(AGENTS, 10, 2, seed=4)
    visits = run.transcript.seen_by(rl.Eavesdropper()).visits_of(1)
    with pytest.raises(ValueError, match="would not have sent what it sent"):
        replay(run.algorithm.parts(), other, run.seed, visits)


def test_another_seed_is_noticed():
    run, problem = run_of(rl.PIADMM1(rho=5.0))
    visits = run.transcript.seen_by(rl.Eavesdropper()).visits_of(1)
    with pytest.raises(ValueError, match="would not have sent what it sent"):
        replay(run.algorithm.parts(), problem, run.seed + 1, visits)


def test_another_parameter_is_noticed():
    run, problem = run_of(rl.IADMM(rho=5.0))
    visits = run.transcript.seen_by(rl.Eavesdropper()).visits_of(1)
    with pytest.raises(ValueError, match="would not have sent what it sent"):
        replay(replace(run.algorithm, rho=5.0001).parts(), problem, run.seed, visits)
