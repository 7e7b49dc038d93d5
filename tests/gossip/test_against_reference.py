"""Compiled, Python and an independent dense reference agree iteration by iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.algorithms.algorithm import Algorithm
from roundelay.links import Compressor
from roundelay.registry import registered
from tests.engine.support import dense_agents, trace as token_trace
from tests.gossip.cases import AGENTS, COMPRESSORS, FIVE, LINE, LOGISTIC, NETWORK, SQUARES, Case, cases
from tests.gossip.support import by_reference, largest_gap, trace
from tests.reference import gossip

ITERATIONS = 14


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_iteration_agrees_with_the_dense_reference(case: Case) -> None:
    reference = by_reference(case.algorithm, case.problem, case.network, ITERATIONS)
    plain = trace(case.algorithm, case.problem, case.network, ITERATIONS, engine="python")
    runs = [plain]
    if case.compiled:
        ours = trace(case.algorithm, case.problem, case.network, ITERATIONS, engine="compiled")
        runs.append(ours)
        assert (ours.sent == plain.sent).all()
        assert (ours.numbers == plain.numbers).all() and (ours.bits == plain.bits).all()
        for a, b in ((ours.x, plain.x), (ours.posted, plain.posted)):
            assert np.abs(a - b).max() <= 1e-13 * np.abs(b).max()
    assert np.abs(plain.x[-1]).max() > 1e-3  # it moves
    if isinstance(case.algorithm, (rl.COCA, rl.Scaffnew)) or "censored" in case.name:
        assert 0 < reference.sent.sum() < reference.sent.size  # else the case would compare less than it says
    for run in runs:
        assert largest_gap(run, reference) < 1e-12
        if not isinstance(case.algorithm, rl.ColouredDADMM):  # there the last exchange is not the only one
            assert (run.sent == reference.sent).all()


def test_a_single_unknown_is_no_special_case() -> None:
    problem = rl.paper_least_squares(agents=AGENTS, samples=6, dim=1, seed=1)
    gaps = {
        case.name: largest_gap(
            trace(case.algorithm, problem, case.network, 6), by_reference(case.algorithm, problem, case.network, 6)
        )
        for case in cases()
        if isinstance(case.problem, rl.LeastSquares)
    }
    assert len(gaps) > 60
    assert {name: gap for name, gap in gaps.items() if gap > 1e-12} == {}


def test_every_gossip_algorithm_is_among_the_cases() -> None:
    algorithms = {one for one in registered(Algorithm).values() if ".gossip." in one.__module__}
    assert {type(case.algorithm) for case in cases()} == algorithms and len(algorithms) == 19
    assert {type(way) for way in COMPRESSORS.values()} == {*registered(Compressor).values()} - {rl.Plain}


def test_neighbours_have_different_colours_and_every_colour_speaks() -> None:
    run = trace(rl.ColouredDADMM(0.7), SQUARES, NETWORK, 1)
    assert run.numbers[-1] == 2 * len(NETWORK.edges) * SQUARES.dim
    reference = by_reference(rl.ColouredDADMM(0.7), SQUARES, NETWORK, 1)  # refuses neighbours of one colour
    assert (np.abs(run.x[-1]) > 0.0).all() and np.abs(run.x[-1] - reference.xs[-1]).max() < 1e-14


# ---------------------------------------------------------------- MC-SAG, which belongs to the tokens

SAG = [
    pytest.param(rl.MCSAG(0.05, rl.Cycle()), SQUARES, NETWORK, True, id="cycle"),
    pytest.param(rl.MCSAG(0.05, rl.Cycle()), FIVE, LINE, False, id="path, with relays"),
    pytest.param(rl.MCSAG(0.02), SQUARES, NETWORK, True, id="Metropolis walk"),
    pytest.param(rl.MCSAG(0.3, rl.UniformWalk()), LOGISTIC, LINE, False, id="uniform walk, logistic"),
]


@pytest.mark.parametrize(("algorithm", "problem", "network", "compiled"), SAG)
def test_mc_sag_agrees_hop_by_hop(algorithm: Any, problem: Any, network: rl.Network, compiled: bool) -> None:
    hops = 6 * AGENTS
    for engine in ("python", "compiled") if compiled else ("python",):
        run = token_trace(algorithm, problem, network, hops, engine=engine)
        worked = run.order >= 0
        reference = gossip.mc_sag(dense_agents(problem), run.order[worked], algorithm.gamma, int(worked.sum()))
        tokens = np.concatenate([run.tokens[:1], run.tokens[1:][worked]])
        assert np.abs(tokens - reference).max() < 1e-12 * np.abs(reference).max()
        # A relay passes on what it got.
        assert (np.diff(run.tokens, axis=0)[~worked] == 0.0).all()
