"""Dense reference implementations of the gossip methods, written from the printed equations alone.

Every method is the plain textbook recursion on dense matrices, and no random number is drawn: coins, dithers
and noises come in as arrays or as callables, so a run is a deterministic function of its arguments.

Notation: N agents, dimension p, K iterations. x is (N, p), row i at agent i; ∇F(x) is (N, p), row i ∇f_i(x_i);
W is a dense symmetric N×N mixing matrix whose rows sum to 1, and W̃ = (I + W)/2. Agents i and j are neighbours
where the symmetric N×N adjacency matrix is not 0. Every start is 0 unless `x0` gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tests.reference.dense import Array, LocalObjective, damped_newton

Compressor = Callable[[int, int, Array], Array]
"""(k, agent, vector) -> what the receivers get in its place; every method says what its k counts, always from 1."""


# What a run returns


@dataclass(frozen=True, eq=False)
class GossipTrajectory:
    """The state after every iteration; entry 0 of `xs` and `ys` is the start.

    `xs` is (K+1, N, p). `sent` is (K, N): sent[k − 1, i] says that agent i transmitted in iteration k, which
    ends in xs[k]. `ys` is (K+1, N, p) where the method has multipliers (the λ or γ of the ADMMs, the D of LEAD,
    the h of Scaffnew), else None.
    """

    xs: Array
    sent: NDArray[np.bool_]
    ys: Array | None = None


class _Recorder:
    """Copies the state after every iteration."""

    def __init__(self, x: Array, y: Array | None = None) -> None:
        self._agents = len(x)
        self._xs = [x.copy()]
        self._ys = None if y is None else [y.copy()]
        self._sent: list[NDArray[np.bool_]] = []

    def record(self, x: Array, y: Array | None = None, sent: bool | NDArray[np.bool_] = True) -> None:
        self._xs.append(x.copy())
        self._sent.append(np.broadcast_to(sent, self._agents).copy())
        if self._ys is not None:
            assert y is not None
            self._ys.append(y.copy())

    def trajectory(self) -> GossipTrajectory:
        sent = np.array(self._sent, dtype=np.bool_).reshape(-1, self._agents)
        return GossipTrajectory(np.array(self._xs), sent, None if self._ys is None else np.array(self._ys))


def _start(agents: Sequence[LocalObjective], x0: Array | None) -> Array:
    """A copy of x0, or an (N, p) array of zeros."""
    shape = (len(agents), agents[0].dimension)
    if x0 is None:
        return np.zeros(shape)
    x = np.array(x0, dtype=np.float64)
    if x.shape != shape:
        raise ValueError(f"x0 has shape {x.shape}, not {shape}.")
    return x


def _gradients(agents: Sequence[LocalObjective], x: Array) -> Array:
    """∇F(x): row i is ∇f_i(x_i)."""
    return np.array([agent.gradient(x_i) for agent, x_i in zip(agents, x, strict=True)])


def _compressed(compress: Compressor, k: int, vectors: Array) -> Array:
    """Row i is compress(k, i, vectors[i])."""
    return np.array([compress(k, i, vector.copy()) for i, vector in enumerate(vectors)])


# Mixing matrices


def metropolis(adjacency: NDArray[np.generic]) -> Array:
    """W_ij = 1/(1 + max(d_i, d_j)) where i and j are neighbours, W_ii = 1 − Σ_{j≠i} W_ij, else 0."""
    links = np.asarray(adjacency) != 0
    degrees = links.sum(axis=1)
    n = len(links)
    W = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j and links[i, j]:
                W[i, j] = 1.0 / (1 + max(degrees[i], degrees[j]))
        W[i, i] = 1.0 - W[i].sum()
    return W


# ADMM


def decentralised_admm(
    agents: Sequence[LocalObjective],
    penalties: Array,
    iterations: int,
    *,
    solve: Literal["exact", "first_order", "cola"] = "exact",
    inertia: float = 0.0,
    threshold: Callable[[int], float] | None = None,
    compress: Compressor | None = None,
    dual_noise: Array | None = None,
    primal_noise: Array | None = None,
    penalty_noise: Array | None = None,
    stiffness: Callable[[int], float] | None = None,
    x0: Array | None = None,
) -> GossipTrajectory:
    """D-ADMM, weighted ADMM, COCA, COLA, quantised ADMM, and the three perturbations of DP-ADMM.

    `penalties` holds c_ij = c_ji ≥ 0, where 0 is no link, and t_i = Σ_j c_ij. At the start λ = 0 and x̂ = x⁰.
    In iteration k = 1, 2, …, with g = stiffness(k) (1 where None), ρ_l = inertia and every x̂, λ of iteration
    k − 1, all agents first update

        w_i = g(t_i x̂_i + Σ_j c_ij x̂_j) − λ_i − 2·dual_noise + 2g t_i·penalty_noise
        exact        x_i⁺ = prox_i(w_i/(2g t_i), 2g t_i)
        first_order  x_i⁺ = (w_i + ρ_l x_i − ∇f_i(x_i))/(2g t_i + ρ_l)
        cola         x_i⁺ = x_i − [∇f_i(x_i) + λ_i + Σ_j c_ij(x̂_i − x̂_j)]/(2t_i + ρ_l)

    then form the message m_i = x_i⁺ + primal_noise, which is sent if ‖m_i − x̂_i‖ ≥ threshold(k) (always where
    None); where it is sent, x̂_i⁺ = compress(k, i, m_i), at the sender as at its neighbours, else x̂_i⁺ = x̂_i.
    Last, λ_i⁺ = λ_i + Σ_j c_ij(x̂_i⁺ − x̂_j⁺), without g.

    The noises are (K, N, p); iteration k uses entry k − 1. `cola` has no w, so it takes neither the dual nor the
    penalty noise nor a stiffness. The inertia has no part in the exact form. `ys` holds λ.
    """
    if solve not in ("exact", "first_order", "cola"):
        raise ValueError(f"There is no solve {solve!r}.")
    if solve == "cola" and not (dual_noise is None and penalty_noise is None and stiffness is None):
        raise ValueError("COLA's form takes neither dual nor penalty noise nor a stiffness.")
    x = _start(agents, x0)
    c = np.array(penalties, dtype=np.float64)
    n = len(agents)
    if not (np.array_equal(c, c.T) and np.all(c >= 0.0) and np.all(np.diag(c) == 0.0)):
        raise ValueError("The penalties must be symmetric and nonnegative, with a zero diagonal.")
    t = c.sum(axis=1)
    if np.any(t == 0.0):
        raise ValueError("Every agent needs a link.")
    silent = np.zeros((iterations, *x.shape))
    dual_noise = silent if dual_noise is None else dual_noise
    primal_noise = silent if primal_noise is None else primal_noise
    penalty_noise = silent if penalty_noise is None else penalty_noise

    x_hat, multipliers = x.copy(), np.zeros_like(x)
    recorder = _Recorder(x, multipliers)
    for k in range(1, iterations + 1):
        g = 1.0 if stiffness is None else stiffness(k)
        x_new = np.empty_like(x)
        for i, agent in enumerate(agents):
            w = g * (t[i] * x_hat[i] + c[i] @ x_hat) - multipliers[i]
            w = w - 2.0 * dual_noise[k - 1, i] + 2.0 * g * t[i] * penalty_noise[k - 1, i]
            if solve == "exact":
                x_new[i] = agent.prox(w / (2.0 * g * t[i]), 2.0 * g * t[i])
            elif solve == "first_order":
                x_new[i] = (w + inertia * x[i] - agent.gradient(x[i])) / (2.0 * g * t[i] + inertia)
            else:
                disagreement = c[i] @ (x_hat[i] - x_hat)
                x_new[i] = x[i] - (agent.gradient(x[i]) + multipliers[i] + disagreement) / (2.0 * t[i] + inertia)
        x = x_new

        messages = x + primal_noise[k - 1]
        sent = np.ones(n, dtype=np.bool_)
        if threshold is not None:
            sent = np.linalg.norm(messages - x_hat, axis=1) >= threshold(k)
        for i in range(n):
            if sent[i]:
                x_hat[i] = messages[i] if compress is None else compress(k, i, messages[i].copy())
        for i in range(n):
            multipliers[i] = multipliers[i] + c[i] @ (x_hat[i] - x_hat)
        recorder.record(x, multipliers, sent)
    return recorder.trajectory()


def dp_admm_printed(
    agents: Sequence[LocalObjective],
    adjacency: NDArray[np.generic],
    eta: float,
    iterations: int,
    *,
    x0: Array | None = None,
) -> GossipTrajectory:
    """The base of DP-ADMM as printed, without noise, from λ = 0:

        f_i⁺ = argmin_f O_i(f) + 2λ_iᵀf + η Σ_j ‖½(f_i + f_j) − f‖²
        λ_i⁺ = λ_i + (η/2) Σ_j (f_i⁺ − f_j⁺)

    The minimiser is the root of ∇O_i(f) + 2λ_i + 2η Σ_j (f − ½(f_i + f_j)), by Newton. `xs` holds f and `ys`
    the printed λ, which is half the λ of `decentralised_admm`.
    """
    f = _start(agents, x0)
    neighbours = [np.flatnonzero(row) for row in np.asarray(adjacency)]
    multipliers = np.zeros_like(f)
    recorder = _Recorder(f, multipliers)
    for _ in range(iterations):
        f = np.array(
            [_printed_minimiser(agent, multipliers[i], eta, f[i], f[neighbours[i]]) for i, agent in enumerate(agents)]
        )
        for i in range(len(agents)):
            multipliers[i] = multipliers[i] + 0.5 * eta * (f[i] - f[neighbours[i]]).sum(axis=0)
        recorder.record(f, multipliers)
    return recorder.trajectory()


def _printed_minimiser(agent: LocalObjective, multiplier: Array, eta: float, own: Array, others: Array) -> Array:
    """argmin_f O(f) + 2 multiplierᵀf + η Σ_j ‖½(own + others_j) − f‖²."""
    midpoints = 0.5 * (own + others)
    return damped_newton(
        lambda f: agent.gradient(f) + 2.0 * multiplier + 2.0 * eta * (f - midpoints).sum(axis=0),
        lambda f: agent.hessian(f) + 2.0 * eta * len(midpoints) * np.eye(len(f)),
        own,
    )


def coloured_admm(
    agents: Sequence[LocalObjective],
    adjacency: NDArray[np.generic],
    colours: NDArray[np.integer],
    rho: float,
    iterations: int,
    *,
    x0: Array | None = None,
) -> GossipTrajectory:
    """Mota's coloured D-ADMM from γ = 0. In an iteration, colour 0, then 1, …, each with the latest x:

        x_i⁺ = prox_i((ρ Σ_j x_j − γ_i)/(ρ d_i), ρ d_i)

    and after the last colour, at every agent, γ_i⁺ = γ_i + ρ Σ_j (x_i⁺ − x_j⁺). Neighbours must have different
    colours. `ys` holds γ.
    """
    x = _start(agents, x0)
    links = np.asarray(adjacency) != 0
    colours = np.asarray(colours)
    if np.any(links & (colours[:, None] == colours[None, :])):
        raise ValueError("Two neighbours have the same colour.")
    neighbours = [np.flatnonzero(row) for row in links]
    multipliers = np.zeros_like(x)
    recorder = _Recorder(x, multipliers)
    for _ in range(iterations):
        for colour in range(int(colours.max()) + 1):
            for i, agent in enumerate(agents):
                if colours[i] == colour:
                    stiffness = rho * len(neighbours[i])
                    pull = rho * x[neighbours[i]].sum(axis=0) - multipliers[i]
                    x[i] = agent.prox(pull / stiffness, stiffness)
        for i in range(len(agents)):
            multipliers[i] = multipliers[i] + rho * (x[i] - x[neighbours[i]]).sum(axis=0)
        recorder.record(x, multipliers)
    return recorder.trajectory()


# Gradient methods


def dgd(
    agents: Sequence[LocalObjective],
    W: Array,
    steps: Array,
    adapt_then_combine: bool = False,
    *,
    x0: Array | None = None,
) -> GossipTrajectory:
    """x⁺ = Wx − α∇F(x), or adapt then combine: x⁺ = W(x − α∇F(x)). Iteration k uses α = steps[k − 1]."""
    x = _start(agents, x0)
    recorder = _Recorder(x)
    for alpha in np.asarray(steps, dtype=np.float64):
        descent = alpha * _gradients(agents, x)
        x = W @ (x - descent) if adapt_then_combine else W @ x - descent
        recorder.record(x)
    return recorder.trajectory()


def extra(
    agents: Sequence[LocalObjective], W: Array, alpha: float, iterations: int, *, x0: Array | None = None
) -> GossipTrajectory:
    """x¹ = Wx⁰ − α∇F(x⁰); then x^{k+2} = (I + W)x^{k+1} − W̃x^k − α(∇F(x^{k+1}) − ∇F(x^k))."""
    identity = np.eye(len(agents))
    half = (identity + W) / 2.0
    previous = _start(agents, x0)
    recorder = _Recorder(previous)
    x = previous
    for k in range(1, iterations + 1):
        if k == 1:
            x_new = W @ x - alpha * _gradients(agents, x)
        else:
            change = _gradients(agents, x) - _gradients(agents, previous)
            x_new = (identity + W) @ x - half @ previous - alpha * change
        previous, x = x, x_new
        recorder.record(x)
    return recorder.trajectory()


def nids(
    agents: Sequence[LocalObjective], W: Array, alpha: float, iterations: int, *, x0: Array | None = None
) -> GossipTrajectory:
    """x¹ = x⁰ − α∇F(x⁰); then x^{k+2} = W̃(2x^{k+1} − x^k − α(∇F(x^{k+1}) − ∇F(x^k))).

    Iteration 1 makes x¹ and sends nothing.
    """
    half = (np.eye(len(agents)) + W) / 2.0
    previous = _start(agents, x0)
    recorder = _Recorder(previous)
    x = previous
    for k in range(1, iterations + 1):
        if k == 1:
            x_new = x - alpha * _gradients(agents, x)
        else:
            change = _gradients(agents, x) - _gradients(agents, previous)
            x_new = half @ (2.0 * x - previous - alpha * change)
        previous, x = x, x_new
        recorder.record(x, sent=k > 1)
    return recorder.trajectory()


def gradient_tracking(
    agents: Sequence[LocalObjective],
    W: Array,
    alpha: float,
    iterations: int,
    adapt_then_combine: bool = False,
    *,
    x0: Array | None = None,
) -> GossipTrajectory:
    """Gradient tracking; two vectors a link and iteration.

    plain               s⁰ = ∇F(x⁰);   x⁺ = Wx − αs;    s⁺ = Ws + ∇F(x⁺) − ∇F(x)
    adapt then combine  s⁰ = W∇F(x⁰);  x⁺ = W(x − αs);  s⁺ = W(s + ∇F(x⁺) − ∇F(x))
    """
    x = _start(agents, x0)
    s = W @ _gradients(agents, x) if adapt_then_combine else _gradients(agents, x)
    recorder = _Recorder(x)
    for _ in range(iterations):
        x_new = W @ (x - alpha * s) if adapt_then_combine else W @ x - alpha * s
        change = _gradients(agents, x_new) - _gradients(agents, x)
        s = W @ (s + change) if adapt_then_combine else W @ s + change
        x = x_new
        recorder.record(x)
    return recorder.trajectory()


def network_dane(
    agents: Sequence[LocalObjective], W: Array, penalty: float, iterations: int, *, x0: Array | None = None
) -> GossipTrajectory:
    """Network-DANE from y = x⁰, s = ∇F(x⁰); two vectors a link and iteration.

    y⁺ = Wx        s⁺ = Ws + ∇F(y⁺) − ∇F(y)        x_i⁺ = prox_i(y_i⁺ + (∇f_i(y_i⁺) − s_i⁺)/μ, μ)
    """
    x = _start(agents, x0)
    y, s = x, _gradients(agents, x)
    recorder = _Recorder(x)
    for _ in range(iterations):
        before, y = _gradients(agents, y), W @ x
        slopes = _gradients(agents, y)
        s = W @ s + slopes - before
        x = np.array([agent.prox(v, penalty) for agent, v in zip(agents, y + (slopes - s) / penalty, strict=True)])
        recorder.record(x)
    return recorder.trajectory()


def lead(
    agents: Sequence[LocalObjective],
    W: Array,
    eta: float,
    gamma: float,
    alpha: float,
    quantise: Compressor,
    iterations: int,
    *,
    x0: Array | None = None,
) -> GossipTrajectory:
    """LEAD from H = H_w = D = 0. Iteration 1 makes x¹ = x⁰ − η∇F(x⁰) and sends nothing; every later one is a pass

        Y = x − η∇F(x) − ηD        q = Q(Y − H)        Ŷ = H + q        Ŷ_w = H_w + Wq
        H⁺ = (1 − α)H + αŶ         H_w⁺ = (1 − α)H_w + αŶ_w
        D⁺ = D + γ/(2η)(Ŷ − Ŷ_w)   x⁺ = x − η∇F(x) − ηD⁺

    Row i of q is quantise(k, i, ·) in pass k = 1, 2, …, which makes xs[k + 1]. `ys` holds D.
    """
    x = _start(agents, x0)
    H, H_w, D = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    recorder = _Recorder(x, D)
    if iterations >= 1:
        x = x - eta * _gradients(agents, x)
        recorder.record(x, D, sent=False)
    for k in range(1, iterations):
        gradients = _gradients(agents, x)
        Y = x - eta * gradients - eta * D
        q = _compressed(quantise, k, Y - H)
        Y_hat, Y_hat_w = H + q, H_w + W @ q
        H, H_w = (1.0 - alpha) * H + alpha * Y_hat, (1.0 - alpha) * H_w + alpha * Y_hat_w
        D = D + gamma / (2.0 * eta) * (Y_hat - Y_hat_w)
        x = x - eta * gradients - eta * D
        recorder.record(x, D)
    return recorder.trajectory()


def choco(
    agents: Sequence[LocalObjective],
    W: Array,
    eta: float,
    gamma: float,
    compress: Compressor,
    iterations: int,
    *,
    x0: Array | None = None,
) -> GossipTrajectory:
    """CHOCO-SGD with full gradients, from x̂ = 0, in this order:

        x ← x − η∇F(x)        q = Q(x − x̂)        x̂ ← x̂ + q        x_i ← x_i + γ Σ_j W_ij (x̂_j − x̂_i)

    Row i of q is compress(k, i, ·) in iteration k.
    """
    x = _start(agents, x0)
    x_hat = np.zeros_like(x)
    recorder = _Recorder(x)
    for k in range(1, iterations + 1):
        x = x - eta * _gradients(agents, x)
        x_hat = x_hat + _compressed(compress, k, x - x_hat)
        x = x + gamma * np.array([W[i] @ (x_hat - x_hat[i]) for i in range(len(agents))])
        recorder.record(x)
    return recorder.trajectory()


def scaffnew(
    agents: Sequence[LocalObjective],
    W: Array,
    gamma: float,
    tau: float,
    q: float,
    coins: NDArray[np.bool_],
    iterations: int,
    *,
    x0: Array | None = None,
) -> GossipTrajectory:
    """Decentralised Scaffnew from h = 0. In iteration k, x̂ = x − γ(∇F(x) − h), and then

        where coins[k − 1]  x⁺ = (1 − γτ/q)x̂ + (γτ/q)Wx̂        h⁺ = h + (q/γ)(x⁺ − x̂)
        else                x⁺ = x̂                              h⁺ = h

    q is the probability of a coin; all agents see the same one. `ys` holds h.
    """
    x = _start(agents, x0)
    h = np.zeros_like(x)
    recorder = _Recorder(x, h)
    for k in range(1, iterations + 1):
        coin = bool(coins[k - 1])
        x_hat = x - gamma * (_gradients(agents, x) - h)
        if coin:
            x = (1.0 - gamma * tau / q) * x_hat + (gamma * tau / q) * (W @ x_hat)
            h = h + (q / gamma) * (x - x_hat)
        else:
            x = x_hat
        recorder.record(x, h, sent=coin)
    return recorder.trajectory()


# Methods that average over all agents


def error_feedback(
    agents: Sequence[LocalObjective],
    alpha: float,
    compress: Compressor,
    iterations: int,
    *,
    x0: Array | None = None,
) -> GossipTrajectory:
    """Error feedback (EF-SignSGD, sparse dropping) with full gradients, from e = 0:

        p_i = α∇f_i(x) + e_i        Δ_i = C(p_i)        e_i⁺ = p_i − Δ_i        x⁺ = x − mean_j Δ_j

    Δ_i is compress(k, i, p_i) in iteration k. All agents hold the same x: the rows of x0 should be equal.
    """
    x = _start(agents, x0)
    errors = np.zeros_like(x)
    recorder = _Recorder(x)
    for k in range(1, iterations + 1):
        proposals = alpha * _gradients(agents, x) + errors
        deltas = _compressed(compress, k, proposals)
        errors = proposals - deltas
        x = x - deltas.mean(axis=0)
        recorder.record(x)
    return recorder.trajectory()


def pqasgd(
    agents: Sequence[LocalObjective],
    alpha: float,
    local_steps: int,
    quantise: Compressor,
    iterations: int,
    *,
    x0: Array | None = None,
) -> GossipTrajectory:
    """PQASGD with full gradients. One iteration is one local step, x_i ← x_i − α∇f_i(x_i).

    After it, where k is a multiple of `local_steps`, all agents transmit and take

        x_i = x_sync + mean_j Q(x_j − x_sync)

    which is the next x_sync; at first x_sync = x⁰, whose rows should be equal. Q(x_j − x_sync) is
    quantise(k, j, ·), k being the iteration: local_steps, 2 local_steps, ….
    """
    x = _start(agents, x0)
    x_sync = x.copy()
    recorder = _Recorder(x)
    for k in range(1, iterations + 1):
        x = x - alpha * _gradients(agents, x)
        synchronise = k % local_steps == 0
        if synchronise:
            x_sync = x_sync + _compressed(quantise, k, x - x_sync).mean(axis=0)
            x = x_sync.copy()
        recorder.record(x, sent=synchronise)
    return recorder.trajectory()


# A token method with gradient memory


def mc_sag(
    agents: Sequence[LocalObjective],
    order: Sequence[int] | NDArray[np.integer],
    gamma: float,
    hops: int,
    *,
    x0: Array | None = None,
) -> Array:
    """MC-SAG: the token (x, ḡ) starts at ḡ = 0, and agent i's memory at h_i = 0. At a hop, with i = order[hop]:

        ḡ ← ḡ + (∇f_i(x) − h_i)/N        h_i ← ∇f_i(x)        x ← x − γḡ

    Returns the token's x after every hop, (K+1, p); entry 0 is the start, the p-vector x0 (0 where None).
    """
    x = np.zeros(agents[0].dimension) if x0 is None else np.array(x0, dtype=np.float64)
    mean_gradient = np.zeros_like(x)
    memory = np.zeros((len(agents), len(x)))
    tokens = [x]
    for hop in range(hops):
        i = order[hop]
        gradient = agents[i].gradient(x)
        mean_gradient = mean_gradient + (gradient - memory[i]) / len(agents)
        memory[i] = gradient
        x = x - gamma * mean_gradient
        tokens.append(x)
    return np.array(tokens)


# Compressors


def _float32(value: float) -> float:
    """The nearest float32."""
    return float(np.float32(value))


def round_to(step: float, v: Array) -> Array:
    """step · round(v/step), a half going to the even multiple."""
    return step * np.round(v / step)


def dithered_round(step: float, v: Array, u: Array) -> Array:
    """step · ⌊v/step + u⌋: unbiased where u ~ U[0, 1), entry by entry."""
    return step * np.floor(v / step + u)


def dithered_bits(bits: int, v: Array, u: Array) -> Array:
    """sign(v) · s · 2^{1−b} · min(⌊2^{b−1}|v|/s + u⌋, 2^{b−1}), where s is ‖v‖_∞ as a float32; 0 where s = 0."""
    scale = _float32(np.abs(v).max())
    if scale == 0.0:
        return np.zeros_like(v)
    levels = 2.0 ** (bits - 1)
    return np.sign(v) * scale / levels * np.minimum(np.floor(levels * np.abs(v) / scale + u), levels)


def scaled_sign(v: Array) -> Array:
    """(‖v‖₁/dim as a float32) · sign(v), where sign(0) = +1."""
    return _float32(np.abs(v).mean()) * np.where(v >= 0.0, 1.0, -1.0)


def top_k(k: int, v: Array) -> Array:
    """v at its k entries of largest |v|, else 0; of equal ones the lowest index goes first."""
    return keep(np.argsort(-np.abs(v), kind="stable")[:k], v, 1.0)


def keep(indices: NDArray[np.integer], v: Array, scale: float) -> Array:
    """scale · v at `indices`, else 0."""
    kept = np.zeros_like(v)
    kept[indices] = scale * v[indices]
    return kept
