"""Runs of gossip methods taken apart iteration by iteration, and the same runs by the dense reference.

What the reference has no option for, a channel in a gradient method for instance, is written out here from the
docstrings: `Wire` is a channel, and the recursions below it are those of the methods with x̂ = what the wire holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import roundelay as rl
from roundelay.algorithms.gossip.admm import colours_of
from roundelay.engine.assemble import Prepared, gossip_assembly, prepare, python_module, recipe_of
from roundelay.engine.checks import Options
from roundelay.engine.gossip_loop import BITS, NUMBERS
from roundelay.engine.gossip_run import new_gossip_state
from roundelay.engine.token_loop import RUNNING
from roundelay.kernels import COIN, PRIVACY, QUANTISE, normals, uniform
from roundelay.links import channel_of
from tests.engine.support import dense_agents
from tests.reference import gossip
from tests.reference.gossip import GossipTrajectory

SEED = 5

# What the methods call their multipliers.
MULTIPLIERS = ("y", "dual", "h")


@dataclass(frozen=True, eq=False)
class Trace:
    """A run of K iterations: `x` (K+1, N, p), `y` alike or None, what the others hold, and what was sent so far.

    `sent` (K, N) says who spoke in the last exchange of each iteration. `numbers` and `bits` (K+1,) are totals.
    """

    x: np.ndarray
    y: np.ndarray | None
    sent: np.ndarray
    posted: np.ndarray
    numbers: np.ndarray
    bits: np.ndarray


def resolved(algorithm: Any, problem: Any) -> Any:
    """With its step size set."""
    return algorithm.resolved(problem) if hasattr(algorithm, "resolved") else algorithm


def assembly_of(algorithm: Any, problem: Any, network: rl.Network) -> Any:
    method = resolved(algorithm, problem).parts()
    return gossip_assembly(method, problem, network, method.mixing.numbers(network))


def trace(
    algorithm: Any,
    problem: Any,
    network: rl.Network,
    iterations: int,
    seed: int = SEED,
    engine: Any = "python",
    prepared: Prepared | None = None,
) -> Trace:
    """Make one iteration after another and keep every state."""
    method = resolved(algorithm, problem).parts()
    prepared = prepared or prepare(assembly_of(algorithm, problem, network), engine)
    state = new_gossip_state(
        method, problem, network, method.mixing.numbers(network), seed, np.array([iterations]), Options()
    )
    key = np.uint64(seed) if prepared.engine == "compiled" else seed
    held = next((name for name in MULTIPLIERS if hasattr(state.states, name)), None)
    xs, ys, sent, posted = [state.states.x.copy()], [], [], []
    numbers, bits = [0], [0]
    if held:
        ys.append(getattr(state.states, held).copy())
    for k in range(1, iterations + 1):
        state.mail.sent[:] = 0  # an iteration in which nobody talks leaves them as they are
        assert prepared.travel(*prepared.numbers, key, *state.handed(), k) == RUNNING
        xs.append(state.states.x.copy())
        sent.append(state.mail.sent.astype(bool))
        posted.append(state.mail.posted.copy())
        numbers.append(int(state.clock[NUMBERS]))
        bits.append(int(state.clock[BITS]))
        if held:
            ys.append(getattr(state.states, held).copy())
    return Trace(
        np.array(xs), np.array(ys) if held else None, np.array(sent), np.array(posted), np.array(numbers), np.array(bits)
    )  # fmt: skip


def mutated(algorithm: Any, problem: Any, network: rl.Network, slot: str, old: str, new: str) -> Prepared:
    """The Python engine with one symbol of one kernel function changed."""
    assembly = assembly_of(algorithm, problem, network)
    recipe = recipe_of(assembly, compiled=False)
    functions = dict(recipe.functions)
    assert functions[slot].count(old) == 1, f"{old!r} must stand exactly once in {slot}:\n{functions[slot]}"
    functions[slot] = functions[slot].replace(old, new)
    module = python_module(replace(recipe, functions=tuple(sorted(functions.items()))), problem.dim)
    return replace(prepare(assembly, "python"), travel=module.travel, functions=lambda: module)


def largest_gap(run: Trace, reference: GossipTrajectory) -> float:
    """The largest difference of any state or multiplier in any iteration, relative to the largest of its kind."""
    pairs = [(run.x, reference.xs)]
    if reference.ys is not None:
        assert run.y is not None
        pairs.append((run.y, reference.ys))
    gaps = []
    for ours, theirs in pairs:
        assert ours.shape == theirs.shape
        gaps.append(float(np.abs(ours - theirs).max() / max(float(np.abs(theirs).max()), 1e-300)))
    return max(gaps) if np.isfinite(gaps).all() else np.inf


# ---------------------------------------------------------------- networks as matrices


def adjacency(network: rl.Network) -> np.ndarray:
    links = np.zeros((network.agents, network.agents))
    for i, j in network.edges:
        links[i, j] = links[j, i] = 1.0
    return links


def mixing_matrix(network: rl.Network) -> np.ndarray:
    return gossip.metropolis(adjacency(network))


def penalty_matrix(network: rl.Network, penalties: Any) -> np.ndarray:
    """c_ij, from one number or one for each link."""
    matrix = np.zeros((network.agents, network.agents))
    for (i, j), c in zip(network.edges, np.broadcast_to(penalties, len(network.edges)), strict=True):
        matrix[i, j] = matrix[j, i] = c
    return matrix


# ---------------------------------------------------------------- channels


def draws(seed: int, agent: int, number: int, dim: int) -> np.ndarray:
    """The numbers from U[0, 1) that belong to one message."""
    return np.array([uniform(seed, agent, number, QUANTISE, d) for d in range(dim)])


def drawn_without_replacement(u: np.ndarray, count: int) -> np.ndarray:
    """Coordinate after coordinate: of those that are left, each is taken with the chance that is left."""
    taken: list[int] = []
    for d, draw in enumerate(u):
        if draw < (count - len(taken)) / (len(u) - d):
            taken.append(d)
    return np.array(taken)


def decoded(compressor: Any, seed: int, agent: int, number: int, v: np.ndarray) -> np.ndarray:
    """What receivers read of v, by the reference."""
    dim = len(v)
    match compressor:
        case rl.Plain():
            return v.copy()
        case rl.Rounded(step, False):
            return gossip.round_to(step, v)
        case rl.Rounded(step, True):
            return gossip.dithered_round(step, v, draws(seed, agent, number, dim))
        case rl.Quantised(bits):
            return gossip.dithered_bits(bits, v, draws(seed, agent, number, dim))
        case rl.Signs():
            return gossip.scaled_sign(v)
        case rl.TopK(count):
            return gossip.top_k(count, v)
        case rl.TopShare(share):
            return gossip.top_k(max(1, int(np.ceil(share * dim))), v)
        case rl.RandomK(count, unbiased):
            count = min(count, dim)
            kept = drawn_without_replacement(draws(seed, agent, number, dim), count)
            return gossip.keep(kept, v, dim / count if unbiased else 1.0)
    raise AssertionError(compressor)


class Wire:
    """A channel: `held` (N, p) is what the others hold of each agent."""

    def __init__(self, channel: Any, shape: tuple[int, int], seed: int, numbering: Callable[[int], int]) -> None:
        self.channel, self.seed, self.numbering = channel_of(channel), seed, numbering
        self.held = np.zeros(shape)

    def carry(self, k: int, i: int, message: np.ndarray) -> bool:
        """Agent i's message in iteration k = 1, 2, …; whether it was sent."""
        censoring = self.channel.censoring
        if censoring and np.linalg.norm(message - self.held[i]) < censoring.alpha * censoring.rho**k:
            return False
        self.held[i] = self.compress(k, i, message)
        return True

    def compress(self, k: int, i: int, message: np.ndarray) -> np.ndarray:
        """What is held after the message; `held` must be up to date with what was sent before."""
        base = self.held[i] if self.channel.differences else np.zeros_like(message)
        self.held[i] = base + decoded(self.channel.compressor, self.seed, i, self.numbering(k), message - base)
        return self.held[i].copy()

    def carry_all(self, k: int, messages: np.ndarray) -> np.ndarray:
        """All agents' messages."""
        return np.array([self.carry(k, i, message) for i, message in enumerate(messages)])


def once_an_iteration(k: int) -> int:
    """The number of a message where every agent speaks once in every iteration."""
    return k - 1


def through_wire(algorithm: Any, problem: Any, network: rl.Network, iterations: int, seed: int) -> GossipTrajectory:
    """The gradient methods with a channel: x̂ is what the wire holds, and Wx becomes x + Wx̂ − x̂."""
    agents, W = dense_agents(problem), mixing_matrix(network)
    shape = (problem.agents, problem.dim)

    def slopes(x: np.ndarray) -> np.ndarray:
        return np.array([agent.gradient(x_i) for agent, x_i in zip(agents, x, strict=True)])

    def wire(numbering: Callable[[int], int] = once_an_iteration) -> Wire:
        return Wire(algorithm.channel, shape, seed, numbering)

    x = np.zeros(shape)
    xs, sent = [x], []
    if isinstance(algorithm, rl.DGD):
        own = wire()
        for k in range(1, iterations + 1):
            step = algorithm.alpha / k**algorithm.decay * slopes(x)
            message = x - step if algorithm.adapt_then_combine else x
            sent.append(own.carry_all(k, message))
            x = x - step + W @ own.held - own.held
            xs.append(x)
    elif isinstance(algorithm, rl.EXTRA):
        own, past = wire(), None
        for k in range(1, iterations + 1):
            sent.append(own.carry_all(k, x))
            now = (x, x + W @ own.held - own.held, slopes(x))
            if past is None:
                x = now[1] - algorithm.alpha * now[2]
            else:
                x = now[0] + now[1] - 0.5 * (past[0] + past[1]) - algorithm.alpha * (now[2] - past[2])
            past = now
            xs.append(x)
    elif isinstance(algorithm, rl.NIDS):
        own, past = wire(), None
        for k in range(1, iterations + 1):
            now = (x, slopes(x))
            if past is None:
                x = x - algorithm.alpha * now[1]
                sent.append(np.zeros(len(x), bool))
            else:
                message = 2.0 * x - past[0] - algorithm.alpha * (now[1] - past[1])
                sent.append(own.carry_all(k, message))
                x = message + 0.5 * (W @ own.held - own.held)
            past = now
            xs.append(x)
    elif isinstance(algorithm, rl.GradientTracking) and not algorithm.adapt_then_combine:
        first, second, s = wire(lambda k: 2 * (k - 1)), wire(lambda k: 2 * (k - 1) + 1), slopes(x)
        for k in range(1, iterations + 1):
            sent.append(first.carry_all(k, x) | second.carry_all(k, s))
            x, before = x + W @ first.held - first.held - algorithm.alpha * s, x
            s = s + W @ second.held - second.held + slopes(x) - slopes(before)
            xs.append(x)
    elif isinstance(algorithm, rl.GradientTracking):
        first, second = wire(lambda k: 2 * (k - 1)), wire(lambda k: 2 * (k - 1) + 1)
        s, known = np.zeros(shape), np.zeros(shape)
        for k in range(1, iterations + 1):
            s, known = s + slopes(x) - known, slopes(x)
            first.carry_all(k, s)
            s = s + W @ first.held - first.held
            x = x - algorithm.alpha * s
            sent.append(second.carry_all(k, x))
            x = x + W @ second.held - second.held
            xs.append(x)
    elif isinstance(algorithm, rl.Scaffnew):
        own, h, gamma, q = wire(), np.zeros(shape), algorithm.gamma, algorithm.q
        weight = 0.5 if algorithm.tau is None else gamma * algorithm.tau / q
        hs = [h]
        for k, coin in enumerate(coins(q, iterations, seed), start=1):
            x = x - gamma * (slopes(x) - h)
            sent.append(own.carry_all(k, x) if coin else np.zeros(len(x), bool))
            if coin:
                change = weight * (W @ own.held - own.held)
                x, h = x + change, h + q / gamma * change
            xs.append(x)
            hs.append(h)
        return GossipTrajectory(np.array(xs), np.array(sent), np.array(hs))
    else:
        raise AssertionError(algorithm)
    return GossipTrajectory(np.array(xs), np.array(sent))


def coloured_through_wire(
    algorithm: Any, problem: Any, network: rl.Network, iterations: int, seed: int
) -> GossipTrajectory:
    """Coloured D-ADMM where x̂, what the wire holds, stands for x in every exchange and reuse."""
    agents, links, colours = dense_agents(problem), adjacency(network), colours_of(network)
    x = np.zeros((problem.agents, problem.dim))
    y, count = np.zeros_like(x), int(colours.max()) + 1
    wires = [
        Wire(algorithm.channel, x.shape, seed, lambda k, colour=colour: (k - 1) * count + colour)
        for colour in range(count)
    ]
    held = np.zeros_like(x)
    xs, ys = [x.copy()], [y.copy()]
    for k in range(1, iterations + 1):
        for colour in range(count):
            for i in np.flatnonzero(colours == colour):
                stiffness = algorithm.rho * links[i].sum()
                x[i] = agents[i].prox((algorithm.rho * links[i] @ held - y[i]) / stiffness, stiffness)
                wires[colour].carry(k, i, x[i])
                held[i] = wires[colour].held[i]
        y = y + algorithm.rho * (links.sum(axis=1)[:, None] * held - links @ held)
        xs.append(x.copy())
        ys.append(y.copy())
    return GossipTrajectory(np.array(xs), np.ones((iterations, len(x)), bool), np.array(ys))


# ---------------------------------------------------------------- the same run by the reference


def coins(q: float, iterations: int, seed: int) -> np.ndarray:
    """The coins that all agents of Scaffnew see."""
    return np.array([uniform(seed, 0, k, COIN, 0) < q for k in range(iterations)])


def private_noise(scale: float, iterations: int, problem: Any, seed: int) -> np.ndarray:
    """ε: a direction from normals, and a length from Gamma(p, scale) as a sum of exponential draws."""
    noise = np.empty((iterations, problem.agents, problem.dim))
    for k in range(iterations):
        for i in range(problem.agents):
            normals(seed, i, 2 * k, PRIVACY, noise[k, i])
            lengths = [-np.log(1.0 - uniform(seed, i, 2 * k + 1, PRIVACY, d)) for d in range(problem.dim)]
            noise[k, i] *= scale * sum(lengths) / np.linalg.norm(noise[k, i])
    return noise


def by_reference(
    algorithm: Any, problem: Any, network: rl.Network, iterations: int, seed: int = SEED
) -> GossipTrajectory:
    """The same run by the dense reference, with the same draws."""
    algorithm = resolved(algorithm, problem)
    agents, W, shape = dense_agents(problem), mixing_matrix(network), (problem.agents, problem.dim)

    def quantiser(channel: Any, numbering: Callable[[int], int] = once_an_iteration) -> gossip.Compressor:
        """Q of a method that sends increments: nothing is held."""
        plain = replace(channel_of(channel), differences=False)
        return Wire(plain, shape, seed, numbering).compress

    match algorithm:
        case rl.DADMM() | rl.COCA() | rl.WeightedADMM() | rl.QuantisedADMM():
            return _admm(algorithm, problem, network, iterations, seed)
        case rl.DualPerturbedADMM() | rl.PrimalPerturbedADMM() | rl.PenaltyPerturbedADMM():
            names = {rl.DualPerturbedADMM: "dual_noise", rl.PrimalPerturbedADMM: "primal_noise"}
            noise = {
                names.get(type(algorithm), "penalty_noise"): private_noise(algorithm.scale, iterations, problem, seed)
            }
            growth = getattr(algorithm, "growth", 1.0)
            return gossip.decentralised_admm(
                agents, penalty_matrix(network, algorithm.eta), iterations, stiffness=lambda k: growth ** (k - 1), **noise
            )  # fmt: skip
        case rl.ColouredDADMM(rho, rl.Plain()):
            return gossip.coloured_admm(agents, adjacency(network), colours_of(network), rho, iterations)
        case rl.ColouredDADMM():
            return coloured_through_wire(algorithm, problem, network, iterations, seed)
        case rl.DGD(alpha, decay, adapts, rl.Plain()):
            return gossip.dgd(agents, W, alpha / np.arange(1, iterations + 1) ** decay, adapts)
        case rl.EXTRA(alpha, rl.Plain()):
            return gossip.extra(agents, W, alpha, iterations)
        case rl.NIDS(alpha, rl.Plain()):
            return gossip.nids(agents, W, alpha, iterations)
        case rl.GradientTracking(alpha, adapts, rl.Plain()):
            return gossip.gradient_tracking(agents, W, alpha, iterations, adapts)
        case rl.NetworkDANE(penalty, rl.Plain()):
            return gossip.network_dane(agents, W, penalty, iterations)
        case rl.LEAD(eta, gamma, alpha, channel):
            # The reference counts passes, of which the first is in the second iteration.
            return gossip.lead(agents, W, eta, gamma, alpha, quantiser(channel, lambda k: k), iterations)
        case rl.CHOCO(eta, gamma, channel):
            return gossip.choco(agents, W, eta, gamma, quantiser(channel), iterations)
        case rl.Scaffnew(gamma, q, tau, rl.Plain()):
            return gossip.scaffnew(
                agents, W, gamma, q / (2.0 * gamma) if tau is None else tau, q, coins(q, iterations, seed), iterations
            )
        case rl.EFSignSGD(alpha):
            return gossip.error_feedback(agents, alpha, quantiser(rl.Signs()), iterations)
        case rl.SparseDropping(alpha, share):
            return gossip.error_feedback(agents, alpha, quantiser(rl.TopShare(share)), iterations)
        case rl.PQASGD(alpha, local_steps, channel):
            return gossip.pqasgd(agents, alpha, local_steps, quantiser(channel), iterations)
    return through_wire(algorithm, problem, network, iterations, seed)


def _admm(algorithm: Any, problem: Any, network: rl.Network, iterations: int, seed: int) -> GossipTrajectory:
    """Decentralised ADMM through its channel."""
    match algorithm:
        case rl.COCA():
            channel = rl.Channel(algorithm.compressor, rl.Censoring(algorithm.alpha, algorithm.rho))
        case rl.QuantisedADMM():
            channel = rl.Channel(rl.Rounded(algorithm.step, algorithm.dithered))
        case _:
            channel = channel_of(algorithm.channel)
    penalties = algorithm.penalties if isinstance(algorithm, rl.WeightedADMM) else algorithm.c
    censoring = channel.censoring
    wire = Wire(channel, (problem.agents, problem.dim), seed, once_an_iteration)
    solve = ("cola" if getattr(algorithm, "cola", False) else "first_order") if algorithm.first_order else "exact"
    return gossip.decentralised_admm(
        dense_agents(problem), penalty_matrix(network, penalties), iterations, solve=solve, inertia=algorithm.inertia,
        threshold=None if censoring is None else lambda k: censoring.alpha * censoring.rho**k, compress=wire.compress,
    )  # fmt: skip
