"""Runs taken apart hop by hop, and the same runs by the dense reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import roundelay as rl
from roundelay import NoRegulariser
from roundelay.algorithms.token_method import TokenADMM
from roundelay.engine.assemble import Prepared, prepare, python_module, recipe_of, token_assembly
from roundelay.engine.checks import Options
from roundelay.engine.state import new_state
from roundelay.engine.token_loop import RUNNING
from roundelay.kernels import BATCH, PRIMAL, STEP, normals, uniform
from tests.reference import dense


@dataclass(frozen=True, eq=False)
class Trace:
    """All states of a run: index k is the state after k hops. `order` is the agent that worked, or −1 for a relay."""

    tokens: np.ndarray
    x: np.ndarray
    y: np.ndarray
    order: np.ndarray


def trace(
    algorithm: Any,
    problem: Any,
    network: rl.Network,
    hops: int,
    seed: int = 5,
    engine: Any = "python",
    prepared: Prepared | None = None,
) -> Trace:
    """Make one hop after another and keep every state."""
    method = algorithm.parts()
    prepared = prepared or prepare(token_assembly(method, problem, network), engine)
    state = new_state(method, problem, network, seed, np.array([hops]), Options())
    key = np.uint64(seed) if prepared.engine == "compiled" else seed
    tokens, xs, ys = [state.trail.tokens.copy()], [state.agents.x.copy()], [state.agents.y.copy()]
    order = []
    for hop in range(1, hops + 1):
        visits = state.agents.visits.copy()
        status = prepared.travel(*prepared.numbers, key, *state.handed(), hop)
        assert status == RUNNING
        worked = np.flatnonzero(state.agents.visits - visits)
        order.append(int(worked[0]) if len(worked) else dense.RELAY)
        tokens.append(state.trail.tokens.copy())
        xs.append(state.agents.x.copy())
        ys.append(state.agents.y.copy())
    stacked = np.array(tokens)
    return Trace(stacked[:, 0] if stacked.shape[1] == 1 else stacked, np.array(xs), np.array(ys), np.array(order))


def mutated(algorithm: Any, problem: Any, network: rl.Network, slot: str, old: str, new: str) -> Prepared:
    """The Python engine with one symbol of one kernel function changed."""
    assembly = token_assembly(algorithm.parts(), problem, network)
    recipe = recipe_of(assembly, compiled=False)
    functions = dict(recipe.functions)
    assert functions[slot].count(old) == 1, f"{old!r} must stand exactly once in {slot}:\n{functions[slot]}"
    functions[slot] = functions[slot].replace(old, new)
    module = python_module(replace(recipe, functions=tuple(sorted(functions.items()))), problem.dim)
    prepared = prepare(assembly, "python")
    return replace(prepared, travel=module.travel, functions=lambda: module)


def dense_agents(problem: Any) -> list[Any]:
    """The problem's functions as the reference has them."""
    rows = problem.rows
    blocks = [rows.of(agent) for agent in range(problem.agents)]
    if isinstance(problem, rl.LeastSquares):
        weights = problem.scales if problem.scale == "half_sum" else problem.scales * rows.counts / 2.0
        return [
            dense.DenseQuadratic.from_rows(rows.features[own], rows.targets[own], problem.scale, problem.ridge, weight)
            for own, weight in zip(blocks, weights, strict=True)
        ]
    weights = problem.scales * rows.counts
    return [
        dense.DenseLogistic.from_rows(rows.features[own], rows.targets[own], problem.ridge, weight)
        for own, weight in zip(blocks, weights, strict=True)
    ]


def dense_regulariser(regulariser: Any) -> Any:
    """The regulariser as the reference has it."""
    if isinstance(regulariser, NoRegulariser):
        return None
    if isinstance(regulariser, rl.L1):
        return dense.l1_regulariser(regulariser.weight)
    return dense.box_regulariser(regulariser.lower, regulariser.upper)


def by_reference(algorithm: Any, problem: Any, run: Trace, seed: int = 5) -> dense.Trajectory:
    """The same run by the dense reference, on the same walk with the same draws."""
    agents, order, hops, dim = dense_agents(problem), run.order, len(run.order), problem.dim
    zero = np.zeros(dim)
    regulariser = dense_regulariser(getattr(algorithm, "regulariser", NoRegulariser()))
    if isinstance(algorithm, rl.WPG):
        return dense.wpg(agents, order, algorithm.alpha, hops, zero, regulariser)
    if isinstance(algorithm, rl.PointSAGA):
        return dense.point_saga(agents, order, algorithm.gamma, hops, zero)
    if isinstance(algorithm, rl.ProxDFinito):
        return dense.prox_dfinito(agents, order, algorithm.alpha, algorithm.theta, hops, regulariser)
    if isinstance(algorithm, rl.AcceleratedToken):
        return dense.accelerated_token(agents, order, algorithm.mu, algorithm.L, hops)
    if isinstance(algorithm, rl.IncrementalGradient):
        steps = algorithm.alpha / (1.0 + _turns(order)) ** algorithm.decay
        return dense.incremental_gradient(agents, order, steps, hops, zero)
    if isinstance(algorithm, rl.PrivateIncrementalGradient):
        steps, omegas = algorithm.alpha / (1.0 + _turns(order)) ** algorithm.decay, np.zeros((hops, dim))
        for k, i in enumerate(order):
            normals(seed, int(i), k, PRIMAL, omegas[k])
        omegas *= algorithm.sigma
        cut = (algorithm.clip_row, algorithm.clip_slope)
        return dense.private_incremental_gradient(agents, order, steps, omegas, *cut, hops, zero)
    if isinstance(algorithm, rl.SIADMM):
        estimate = _batch_gradient(problem, algorithm.batch, seed)
        return dense.stochastic_admm(agents, order, algorithm.rho, algorithm.c_tau, algorithm.c_gamma, estimate, hops)
    if isinstance(algorithm, (rl.PWADMM, rl.IPWADMM)):
        return dense.parallel_admm(
            agents, order, algorithm.walks, algorithm.rho, algorithm.tau, algorithm.first_order, hops
        )
    gammas, omegas = np.ones(hops), np.zeros((hops, dim))
    if isinstance(algorithm, rl.PIADMM1):
        draws = np.array([uniform(seed, int(i), k, STEP, 0) for k, i in enumerate(order)])
        gammas = algorithm.gamma * (1.0 + algorithm.gamma_spread * (2.0 * draws - 1.0))
    if isinstance(algorithm, rl.PIADMM2):
        for k, i in enumerate(order):
            normals(seed, int(i), k, PRIMAL, omegas[k])
        omegas *= algorithm.sigma
    return dense.token_admm(
        agents, order, algorithm.rho, gammas, omegas, run.x[0], run.y[0], zero, algorithm.first_order, hops, regulariser
    )


def largest_gap(run: Trace, reference: dense.Trajectory) -> float:
    """The largest difference of any token, state or multiplier at any hop, relative to the largest of its kind."""
    pairs: Sequence[tuple[np.ndarray, np.ndarray]] = (
        (run.tokens, reference.tokens), (run.x, reference.xs), (run.y, reference.ys),
    )  # fmt: skip
    gaps = []
    for ours, theirs in pairs:
        assert ours.shape == theirs.shape
        gaps.append(float(np.abs(ours - theirs).max() / max(float(np.abs(theirs).max()), 1e-300)))
    return max(gaps) if np.isfinite(gaps).all() else np.inf


def invariant_gap(algorithm: Any, run: Trace) -> float:
    """How far the mean token is from what the states say, at the worst hop, relative to the size of the states."""
    method = algorithm.parts()
    gaps = []
    for token, x, y in zip(run.tokens, run.x, run.y, strict=True):
        mean = token.mean(axis=0) if token.ndim == 2 else token
        size = (
            1.0 + np.abs(x).max() + (np.abs(y).max() / method.rho if isinstance(method, TokenADMM) else np.abs(y).max())
        )
        gaps.append(np.abs(mean - method.mean_token(x, y)).max() / size)
    return float(max(gaps))


def _turns(order: np.ndarray) -> np.ndarray:
    """How often each hop's agent had been visited before."""
    return np.array([(order[:k] == i).sum() for k, i in enumerate(order)], float)


def _batch_gradient(problem: Any, batch: int, seed: int) -> Any:
    """∇f_i estimated from the rows that the run drew, by the definition of the loss."""
    agents = dense_agents(problem)

    def estimate(hop: int, agent: int, x: np.ndarray) -> np.ndarray:
        own = problem.rows.of(agent)
        rows, targets = problem.rows.features[own], problem.rows.targets[own]
        drawn = [int(uniform(seed, agent, hop, BATCH, draw) * len(rows)) for draw in range(batch)]
        # The mean over drawn rows, scaled like the whole: for the quadratic a sum over all rows.
        full = agents[agent]
        total = np.zeros_like(x)
        for j in drawn:
            single = type(full).from_rows(rows[[j]], targets[[j]], **_single(problem, agent))
            total += single.gradient(x) * len(rows) / batch
        return total + problem.ridge * x

    return estimate


def _single(problem: Any, agent: int) -> dict[str, Any]:
    """How one row counts within its agent's loss."""
    if isinstance(problem, rl.LeastSquares):
        return {"scale": "half_sum", "ridge": 0.0, "weight": problem.scales[agent]}
    return {"ridge": 0.0, "weight": problem.scales[agent]}
