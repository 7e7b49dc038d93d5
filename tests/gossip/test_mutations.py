"""A wrong update that still converges must not pass: one symbol is changed, and the reference notices.

Each mutation is one symbol of one kernel function. Many of them still converge, to the right point or to a floor that
looks the same, which is why convergence alone proves nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from tests.engine.support import dense_agents, mutated as token_mutated, trace as token_trace
from tests.gossip.cases import FIVE, NETWORK, SQUARES, cases
from tests.gossip.support import by_reference, largest_gap, mutated, trace
from tests.reference import gossip

ITERATIONS = 12

DADMM, COCA = rl.DADMM(0.7), rl.COCA(0.7, alpha=0.3, rho=0.9)
COLA = rl.COCA(3.0, alpha=0.1, rho=0.9, first_order=True, cola=True)
INERTIA = rl.DADMM(3.0, first_order=True, inertia=2.0)
WEIGHTED = rl.WeightedADMM([0.3 + 0.1 * link for link in range(len(NETWORK.edges))])
ROUNDED, DITHERED = rl.QuantisedADMM(0.7, 0.02), rl.QuantisedADMM(0.7, 0.02, dithered=True)
DIFFERENCES = rl.DADMM(0.7, channel=rl.Channel(rl.Quantised(3), None, True))
COLOURED = rl.ColouredDADMM(0.7)
DUAL, PRIMAL = rl.DualPerturbedADMM(0.7, 0.05), rl.PrimalPerturbedADMM(0.7, 0.05)
PENALTY = rl.PenaltyPerturbedADMM(0.7, 1.1, 0.05)
ADAPTS = rl.DGD(0.2, decay=0.6, adapt_then_combine=True)
TRACKING, IN_TURN = rl.GradientTracking(), rl.GradientTracking(adapt_then_combine=True)
DANE = rl.NetworkDANE(3.0)
SCAFFNEW = rl.Scaffnew(q=0.4)
PQASGD = rl.PQASGD(local_steps=3)
SPARSE = rl.SparseDropping(share=0.3)
RANDOM = rl.DGD(channel=rl.RandomK(3, unbiased=True))
# LEAD sends increments, so that differences to the last message must not be taken of them.
INCREMENTS = rl.LEAD(channel=rl.Channel(rl.Quantised(2), None, True))
CHOCO_TOP = rl.CHOCO(gamma=0.3, channel=rl.TopK(2))

# (algorithm, slot, what stands there, what stands there instead)
MUTATIONS: list[tuple[Any, str, str, str]] = [
    # D-ADMM: the agent's own part, the neighbours', the multiplier, the penalty.
    (DADMM, "send", "total * own[0, d] + inbox", "total * own[0, d] - inbox"),
    (DADMM, "send", "- states.y[i, d]", "+ states.y[i, d]"),
    (DADMM, "send", "2.0 * factor * total", "1.0 * factor * total"),
    (DADMM, "send", "out[0, d] = new[d]", "out[0, d] = w[d]"),
    (DADMM, "receive", "+= total", "-= total"),
    (DADMM, "receive", "own[0, d] - inbox", "own[0, d] + inbox"),
    (DADMM, "collect", "mixing.own[i] *", "1.0 *"),
    (INERTIA, "solve_local", "x[d] - slope[d]", "x[d] + slope[d]"),
    (INERTIA, "solve_local", "xstep.inertia * x[d]", "xstep.inertia * w[d]"),
    (INERTIA, "solve_local", "penalty + xstep.inertia", "penalty - xstep.inertia"),
    (DIFFERENCES, "transmit", "message[d] - posted[d]", "message[d] + posted[d]"),
    (DIFFERENCES, "transmit", "posted[d] += decoded[d]", "posted[d] = decoded[d]"),
    (DIFFERENCES, "encode", "+ uniform(seed, i, number, QUANTISE, d)", "+ uniform(seed, i, number, QUANTISE, 0)"),
    # COCA: when it is sent, and how the linear forms step.
    (COCA, "transmit", "k + 1", "k"),
    (COCA, "transmit", "< channel.alpha", "> channel.alpha"),
    (COCA, "transmit", "channel.alpha * channel.rho", "channel.alpha + channel.rho"),
    (COCA, "transmit", "distance(message, posted)", "distance(message, message)"),
    (COLA, "solve_local", "new[d] = x[d]", "new[d] = shown[d]"),
    (COLA, "solve_local", "penalty * shown[d]", "penalty * x[d]"),
    (COLA, "solve_local", "- w[d]", "+ w[d]"),
    # Weighted ADMM.
    (WEIGHTED, "send", "total * own[0, d] + inbox", "total * own[0, d] - inbox"),
    (WEIGHTED, "send", "total = method.totals[i]", "total = method.totals[0]"),
    (WEIGHTED, "receive", "total = method.totals[i]", "total = method.totals[0]"),
    (WEIGHTED, "collect", "mixing.starts[i + 1]", "mixing.starts[i + 1] - 1"),
    # Quantised ADMM: the lattice, and the number that keys a message's draws.
    (ROUNDED, "encode", "np.rint", "np.floor"),
    (ROUNDED, "encode", "compressor.step * ", "1.001 * compressor.step * "),
    (ROUNDED, "send", "total * own[0, d]", "total * states.x[i, d]"),  # x̂ "in every exchange and reuse"
    (DITHERED, "encode", "np.floor", "np.rint"),
    (DITHERED, "encode", "+ uniform", "- uniform"),
    (DITHERED, "encode", "i, number, QUANTISE", "i, number + 1, QUANTISE"),
    (DITHERED, "encode", "uniform(seed, i", "uniform(seed, 0"),
    (DITHERED, "travel", "number * VECTORS + v", "k + number"),
    # Coloured D-ADMM: who speaks and who listens when.
    (COLOURED, "send", "inbox[0, d] - states", "inbox[0, d] + states"),
    (COLOURED, "send", "method.totals[i]", "method.totals[0]"),
    (COLOURED, "receive", "own[0, d] - inbox", "own[0, d] + inbox"),
    (COLOURED, "receive", "method.colours - 1", "method.colours - 2"),
    (COLOURED, "listens", "exchange + 1", "exchange"),
    (COLOURED, "speaks", "== exchange", "!= exchange"),
    # DP-ADMM.
    (DUAL, "disturb_pull", "-= 2.0", "+= 2.0"),
    (DUAL, "disturb_pull", "2.0 * noise", "1.0 * noise"),
    (DUAL, "private_noise", "2 * k + 1", "2 * k"),
    (DUAL, "private_noise", "/ norm(out)", "* norm(out)"),
    (PRIMAL, "disturb_message", "+= noise", "-= noise"),
    (PRIMAL, "private_noise", "2 * k,", "k,"),
    (PRIMAL, "send", "states.x[i], own[0], new", "states.x[i], own[0], out[0]"),
    (PRIMAL, "disturb_message", "message[d] +=", "message[d] ="),
    (PENALTY, "disturb_pull", "+= penalty", "-= penalty"),
    (PENALTY, "disturb_pull", "penalty * noise", "2.0 * noise"),
    (PENALTY, "stiffness", "** k", "* k"),
    (PENALTY, "send", "factor * (total", "(total"),
    # DGD.
    (rl.DGD(), "receive", "- alpha", "+ alpha"),
    (rl.DGD(), "receive", "- own[0, d]", "+ own[0, d]"),
    (rl.DGD(), "collect", "mixing.own[i] *", "1.0 *"),
    (rl.DGD(decay=0.6), "receive", "k + 1.0", "k + 2.0"),
    (ADAPTS, "send", "k + 1.0", "k + 2.0"),
    (ADAPTS, "gradient_step", "-= alpha", "+= alpha"),
    (ADAPTS, "receive", "+ inbox", "- inbox"),
    (RANDOM, "encode", "DIM - d", "DIM"),
    (RANDOM, "encode", "compressor.factor * v", "v"),
    (RANDOM, "encode", "wanted -= 1", "wanted -= 2"),
    # EXTRA.
    (rl.EXTRA(), "receive", "0.5 * (states.before[i, d]", "0.4 * (states.before[i, d]"),
    (rl.EXTRA(), "receive", "states.before[i, d] + states.mixed", "states.before[i, d] - states.mixed"),
    (rl.EXTRA(), "receive", "slope[d] - states.slope", "slope[d] + states.slope"),
    (rl.EXTRA(), "receive", "k == 0", "k == 2"),
    (rl.EXTRA(), "receive", "states.mixed[i, d] = mixed", "states.mixed[i, d] = inbox[0, 0]"),
    # NIDS.
    (rl.NIDS(), "send", "2.0 * states.x", "1.0 * states.x"),
    (rl.NIDS(), "send", "slope[d] - states.slope", "slope[d] + states.slope"),
    (rl.NIDS(), "receive", "0.5 * (inbox", "0.3 * (inbox"),
    (rl.NIDS(), "talks", "k > 0", "k > 1"),
    # Gradient tracking, both forms.
    (DANE, "send", "out[1, d] = states.s", "out[1, d] = states.slope"),
    (DANE, "receive", "+ slope[d] - states.slope", "- slope[d] - states.slope"),
    (DANE, "receive", "inbox[1, d]", "inbox[0, d]"),
    (DANE, "receive", "+ slope[d] - states.s[i, d]", "+ slope[d] + states.s[i, d]"),
    (DANE, "receive", "gradient(problem, i, states.point[i], slope)", "gradient(problem, i, states.x[i], slope)"),
    (TRACKING, "send", "k == 0", "k == 1"),
    (TRACKING, "send", "out[1, d] = states.s", "out[1, d] = states.x"),
    (TRACKING, "receive", "+ slope[d]", "- slope[d]"),
    (TRACKING, "receive", "inbox[1, d]", "inbox[0, d]"),
    (TRACKING, "receive", "- method.alpha", "+ method.alpha"),
    (IN_TURN, "send", "+ slope[d]", "- slope[d]"),
    (IN_TURN, "send", "-= method.alpha", "+= method.alpha"),
    (IN_TURN, "send", "at.exchange == 0", "at.exchange == 1"),
    (IN_TURN, "receive", "states.s[i, d] - own", "states.s[i, d] + own"),
    # LEAD.
    (rl.LEAD(), "send", "ahead - states.memory", "ahead + states.memory"),
    (rl.LEAD(), "send", "- method.eta * states.dual", "+ method.eta * states.dual"),
    (rl.LEAD(), "receive", "2.0 * method.eta", "1.0 * method.eta"),
    (rl.LEAD(), "receive", "memory[i, d] += method.alpha", "memory[i, d] += 1.0"),
    (rl.LEAD(), "receive", "mixed[i, d] += method.alpha", "mixed[i, d] += 1.0"),
    (rl.LEAD(), "encode", "/ scale + uniform", "/ scale - uniform"),
    (rl.LEAD(), "encode", "single_precision(scale)", "1.0 * scale"),  # 32 bits are paid: 64 must not be used
    (INCREMENTS, "travel", "mail.posted[i, v, d] = 0.0", "mail.posted[i, v, d] += 0.0"),
    # CHOCO.
    (rl.CHOCO(), "send", "- states.copy", "+ states.copy"),
    (rl.CHOCO(), "receive", "copy[i, d] += own", "copy[i, d] = own"),
    (rl.CHOCO(), "receive", "states.heard[i, d] - states.copy", "states.heard[i, d] + states.copy"),
    (rl.CHOCO(), "receive", "method.gamma * (states", "(states"),
    (CHOCO_TOP, "encode", "-np.abs(v)", "np.abs(v)"),
    (CHOCO_TOP, "encode", "range(compressor.kept)", "range(compressor.kept - 1)"),
    # Scaffnew.
    (SCAFFNEW, "send", "slope[d] - states.h", "slope[d] + states.h"),
    (SCAFFNEW, "receive", "method.weight * (inbox", "(inbox"),
    (SCAFFNEW, "receive", "method.q / method.gamma", "1.0 / method.gamma"),
    (SCAFFNEW, "talks", "< method.q", "> method.q"),
    # PQASGD.
    (PQASGD, "talks", "k + 1", "k"),
    (PQASGD, "send", "- states.together", "+ states.together"),
    (PQASGD, "receive", "together[i, d] += inbox", "together[i, d] -= inbox"),
    (PQASGD, "gradient_step", "-= alpha", "+= alpha"),
    # EF-SignSGD and sparse dropping.
    (rl.EFSignSGD(), "send", "rest[i, d] += method", "rest[i, d] = method"),  # no error feedback at all
    (rl.EFSignSGD(), "receive", "rest[i, d] -= own", "rest[i, d] += own"),
    (rl.EFSignSGD(), "receive", "x[i, d] -= inbox", "x[i, d] += inbox"),
    (rl.EFSignSGD(), "encode", "total / DIM", "total"),
    (SPARSE, "send", "rest[i, d] += method", "rest[i, d] = method"),
    (SPARSE, "receive", "rest[i, d] -= own", "rest[i, d] += own"),
    (SPARSE, "encode", "range(compressor.kept)", "range(compressor.kept - 1)"),
    (SPARSE, "receive", "x[i, d] -= inbox", "x[i, d] -= own"),
]  # fmt: skip


def label(mutation: tuple[Any, str, str, str]) -> str:
    algorithm, slot, old, new = mutation
    return f"{algorithm.name}: {slot}: {old} -> {new}"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=label)
def test_one_changed_symbol_is_noticed(mutation: tuple[Any, str, str, str]) -> None:
    algorithm, slot, old, new = mutation
    problem = FIVE if algorithm in (SPARSE, RANDOM, CHOCO_TOP, DIFFERENCES) else SQUARES
    reference = by_reference(algorithm, problem, NETWORK, ITERATIONS)
    assert largest_gap(trace(algorithm, problem, NETWORK, ITERATIONS), reference) < 1e-12
    with np.errstate(all="ignore"):
        prepared = mutated(algorithm, problem, NETWORK, slot, old, new)
        wrong = trace(algorithm, problem, NETWORK, ITERATIONS, prepared=prepared)
        # What single precision takes away of the scale is all that some of them change.
        assert largest_gap(wrong, reference) > (1e-9 if "single_precision" in old else 1e-6)


SAG_MUTATIONS = [
    ("slope[d] - states.y[i, d]", "slope[d] + states.y[i, d]"),
    ("y[i, d] = slope[d]", "y[i, d] = token[d]"),
    ("token[d] -= method.gamma", "token[d] += method.gamma"),
    ("* inverse_agents", "* 1.0"),
    ("mean[d] +=", "mean[d] ="),
]


@pytest.mark.parametrize(("old", "new"), SAG_MUTATIONS, ids=lambda text: text)
def test_one_changed_symbol_of_mc_sag_is_noticed(old: str, new: str) -> None:
    algorithm, hops = rl.MCSAG(0.02), 40
    prepared = token_mutated(algorithm, SQUARES, NETWORK, "visit", old, new)
    for change, noticed in ((None, False), (prepared, True)):
        run = token_trace(algorithm, SQUARES, NETWORK, hops, prepared=change)
        reference = gossip.mc_sag(dense_agents(SQUARES), run.order, algorithm.gamma, hops)
        gap = np.abs(run.tokens - reference).max() / np.abs(reference).max()
        assert gap > 1e-6 if noticed else gap < 1e-12


@pytest.mark.parametrize(
    ("algorithm", "slot", "old", "new"),
    [
        (rl.NIDS(), "receive", "0.5 * (inbox", "0.3 * (inbox"),
        (rl.LEAD(), "receive", "2.0 * method.eta", "2.5 * method.eta"),
        (SCAFFNEW, "receive", "method.q / method.gamma", "0.8 * method.q / method.gamma"),
        (COCA, "transmit", "k + 1", "k"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_some_mutations_still_converge_so_that_convergence_proves_nothing(
    algorithm: Any, slot: str, old: str, new: str
) -> None:
    prepared = mutated(algorithm, SQUARES, NETWORK, slot, old, new)
    wrong = trace(algorithm, SQUARES, NETWORK, 900, prepared=prepared)
    error = np.linalg.norm(wrong.x - SQUARES.optimum, axis=2).max(axis=1)
    assert error[-1] < 1e-9 < error[30]


def test_every_algorithm_has_at_least_three_mutations() -> None:
    counts: dict[type, int] = {}
    for algorithm, *_ in MUTATIONS:
        counts[type(algorithm)] = counts.get(type(algorithm), 0) + 1
    assert set(counts) == {type(case.algorithm) for case in cases()}
    assert min(counts.values()) >= 3
    assert len(SAG_MUTATIONS) >= 3
