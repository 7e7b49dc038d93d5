"""Methods that are one another for some choice of their parameters, over the first iterations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from tests.engine.support import dense_agents, trace as token_trace
from tests.gossip.cases import AGENTS, FIVE, LINE, LOGISTIC, NETWORK, SQUARES
from tests.gossip.support import Trace, adjacency, mixing_matrix, trace
from tests.reference import gossip

ITERATIONS = 25

PROBLEMS = pytest.mark.parametrize("problem", [SQUARES, FIVE, LOGISTIC], ids=["squares", "p = 5", "logistic"])
NETWORKS = pytest.mark.parametrize("network", [NETWORK, LINE], ids=["random", "path"])


def same(one: Trace, other: Trace) -> bool:
    """Bit for bit the same states, multipliers and messages."""
    assert one.y is not None and other.y is not None
    pairs = ((one.x, other.x), (one.y, other.y), (one.posted, other.posted), (one.numbers, other.numbers))
    return all((a == b).all() for a, b in pairs)


def apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max() / np.abs(other).max())


def slopes(problem: Any, x: np.ndarray) -> np.ndarray:
    return np.array([agent.gradient(x_i) for agent, x_i in zip(dense_agents(problem), x, strict=True)])


def descent(problem: Any, alpha: float, steps: int) -> np.ndarray:
    """Centralised gradient descent on (1/N)Σf_i, by the reference's gradients."""
    points = [np.zeros(problem.dim)]
    for _ in range(steps):
        points.append(points[-1] - alpha * slopes(problem, np.tile(points[-1], (problem.agents, 1))).mean(axis=0))
    return np.array(points)


# ---------------------------------------------------------------- ADMM


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_coca_without_threshold_is_d_admm_bit_for_bit(engine: str) -> None:
    coca = trace(rl.COCA(0.7, alpha=0.0), SQUARES, NETWORK, ITERATIONS, engine=engine)
    assert same(coca, trace(rl.DADMM(0.7), SQUARES, NETWORK, ITERATIONS, engine=engine))
    assert not same(coca, trace(rl.COCA(0.7, alpha=0.1), SQUARES, NETWORK, ITERATIONS, engine=engine))


@NETWORKS
def test_cola_without_threshold_is_first_order_d_admm(network: rl.Network) -> None:
    cola = trace(rl.COCA(2.0, 0.0, first_order=True, cola=True, inertia=3.0), SQUARES, network, ITERATIONS)
    assert apart(cola.x, trace(rl.DADMM(2.0, True, 3.0), SQUARES, network, ITERATIONS).x) < 1e-12


@PROBLEMS
@NETWORKS
def test_without_noise_dp_admm_is_d_admm_and_the_printed_form(problem: Any, network: rl.Network) -> None:
    eta = 0.4
    plain = trace(rl.DADMM(eta), problem, network, ITERATIONS)
    printed = gossip.dp_admm_printed(dense_agents(problem), adjacency(network), eta, ITERATIONS)
    for quiet in (
        rl.DualPerturbedADMM(eta, 0.0),
        rl.PrimalPerturbedADMM(eta, 0.0),
        rl.PenaltyPerturbedADMM(eta, 1.0, 0.0),
    ):
        run = trace(quiet, problem, network, ITERATIONS)
        assert same(run, plain)
        assert apart(run.x, printed.xs) < 1e-11
        assert run.y is not None and printed.ys is not None
        assert apart(run.y, 2.0 * printed.ys) < 1e-11  # the authors' λ is half of D-ADMM's
    growing = trace(rl.PenaltyPerturbedADMM(eta, 1.01, 0.0), problem, network, ITERATIONS)
    assert apart(growing.x, plain.x) > 1e-4


@NETWORKS
def test_equal_penalties_are_d_admm(network: rl.Network) -> None:
    plain = trace(rl.DADMM(0.7), SQUARES, network, ITERATIONS)
    assert same(trace(rl.WeightedADMM(0.7), SQUARES, network, ITERATIONS), plain)
    assert same(trace(rl.WeightedADMM([0.7] * len(network.edges)), SQUARES, network, ITERATIONS), plain)


def test_a_deleted_link_is_a_smaller_network() -> None:
    kept = np.arange(len(NETWORK.edges)) % 4 != 1
    smaller = rl.Network(AGENTS, NETWORK.edges[kept])
    weighted = trace(rl.WeightedADMM(np.where(kept, 0.7, 0.0)), SQUARES, NETWORK, ITERATIONS)
    assert same(weighted, trace(rl.DADMM(0.7), SQUARES, smaller, ITERATIONS))
    assert weighted.numbers[-1] == 2 * kept.sum() * SQUARES.dim * ITERATIONS


def test_quantised_admm_is_d_admm_through_a_rounding_channel() -> None:
    for dithered in (False, True):
        quantised = trace(rl.QuantisedADMM(0.7, 0.02, dithered), SQUARES, NETWORK, ITERATIONS)
        assert same(quantised, trace(rl.DADMM(0.7, channel=rl.Rounded(0.02, dithered)), SQUARES, NETWORK, ITERATIONS))


@pytest.mark.parametrize("algorithm", [rl.DADMM(0.7), rl.ColouredDADMM(0.7)], ids=["D-ADMM", "coloured D-ADMM"])
def test_differences_that_are_not_compressed_are_the_messages(algorithm: Any) -> None:
    differences = type(algorithm)(0.7, channel=rl.Channel(rl.Plain(), None, True))
    run = trace(differences, SQUARES, NETWORK, ITERATIONS)
    assert apart(run.x, trace(algorithm, SQUARES, NETWORK, ITERATIONS).x) < 1e-13


# ---------------------------------------------------------------- NIDS, LEAD, Scaffnew


@PROBLEMS
@NETWORKS
def test_lead_without_compression_is_nids(problem: Any, network: rl.Network) -> None:
    lead = trace(rl.LEAD(channel=rl.Plain()), problem, network, ITERATIONS)
    nids = trace(rl.NIDS(), problem, network, ITERATIONS)
    assert apart(lead.x, nids.x) < 1e-12
    assert (lead.sent == nids.sent).all() and (lead.numbers == nids.numbers).all()
    # Whatever the memory forgets, as long as nothing is compressed away.
    assert apart(trace(rl.LEAD(alpha=0.9, channel=rl.Plain()), problem, network, ITERATIONS).x, nids.x) < 1e-12
    assert apart(trace(rl.LEAD(), problem, network, ITERATIONS).x, nids.x) > 1e-4


@PROBLEMS
@NETWORKS
def test_scaffnew_that_always_talks_is_the_recursion_of_nids(problem: Any, network: rl.Network) -> None:
    alpha = 1.0 / problem.L
    half = (np.eye(AGENTS) + mixing_matrix(network)) / 2.0
    for tau in (None, 1.0 / (2.0 * alpha)):
        x = trace(rl.Scaffnew(alpha, 1.0, tau), problem, network, ITERATIONS).x
        assert apart(x[1], half @ (x[0] - alpha * slopes(problem, x[0]))) < 1e-13
        for before, now, after in zip(x[:-2], x[1:-1], x[2:], strict=True):
            change = slopes(problem, now) - slopes(problem, before)
            assert apart(after, half @ (2.0 * now - before - alpha * change)) < 1e-12
    assert apart(x, trace(rl.NIDS(alpha), problem, network, ITERATIONS).x) > 1e-3  # which starts from another x¹


# ---------------------------------------------------------------- centralised gradient descent


@PROBLEMS
def test_on_the_complete_graph_adapting_first_is_centralised_descent(problem: Any) -> None:
    alpha, network = 0.3 / problem.L, rl.complete(AGENTS)
    central = descent(problem, alpha, ITERATIONS)
    for form in (rl.DGD, rl.GradientTracking):
        adapts = trace(form(alpha, adapt_then_combine=True), problem, network, ITERATIONS).x
        assert apart(adapts, np.repeat(central[:, None], AGENTS, axis=1)) < 1e-13
        combines = trace(form(alpha), problem, network, ITERATIONS).x
        assert apart(combines, np.repeat(central[:, None], AGENTS, axis=1)) > 1e-3


@PROBLEMS
@NETWORKS
def test_means_of_all_are_centralised_descent_where_nothing_is_left_out(problem: Any, network: rl.Network) -> None:
    alpha = 0.3 / problem.L
    central = np.repeat(descent(problem, alpha, ITERATIONS)[:, None], AGENTS, axis=1)
    for algorithm in (rl.SparseDropping(alpha, share=1.0), rl.PQASGD(alpha, 1, rl.Plain())):
        assert apart(trace(algorithm, problem, network, ITERATIONS).x, central) < 1e-13
    assert apart(trace(rl.EFSignSGD(alpha), problem, network, ITERATIONS).x, central) > 1e-3


@PROBLEMS
@NETWORKS
def test_choco_without_compression_is_dgd_that_adapts_first(problem: Any, network: rl.Network) -> None:
    alpha = 0.3 / problem.L
    dgd = trace(rl.DGD(alpha, adapt_then_combine=True), problem, network, ITERATIONS).x
    assert apart(trace(rl.CHOCO(alpha, 1.0, rl.Plain()), problem, network, ITERATIONS).x, dgd) < 1e-13
    assert apart(trace(rl.CHOCO(alpha, 0.9, rl.Plain()), problem, network, ITERATIONS).x, dgd) > 1e-4


# ---------------------------------------------------------------- MC-SAG


@PROBLEMS
def test_mc_sag_on_the_cycle_is_the_incremental_aggregated_gradient(problem: Any) -> None:
    gamma, hops, agents = 0.1 / problem.L, 5 * AGENTS, dense_agents(problem)
    run = token_trace(rl.MCSAG(gamma, rl.Cycle()), problem, NETWORK, hops)
    x, last = np.zeros(problem.dim), np.zeros((AGENTS, problem.dim))
    for hop in range(hops):
        i = int(NETWORK.tour().order[hop % AGENTS])
        last[i] = agents[i].gradient(x)
        x = x - gamma * last.mean(axis=0)  # the sum formed anew, not kept up
        assert apart(run.tokens[hop + 1], x) < 1e-12
