"""Dense reference implementations, written from the printed equations alone.

Every algorithm here is the plain textbook recursion on dense matrices: no factorisation is kept, no
rounding drift is corrected, and no random number is drawn. Walks, step sizes and noise come in as arrays,
so a run is a deterministic function of its arguments.

Notation: N agents, dimension p, K hops. Agent i holds x_i and y_i, the token holds z, and

    prox_i(v, c) = argmin_x f_i(x) + c/2 ‖x − v‖²        s_i = x_i − y_i/ρ
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

Array = NDArray[np.float64]
Regulariser = Callable[[Array, float], Array]
"""prox(v, weight) = argmin_x weight · r(x) + ½‖x − v‖²."""
BatchGradients = Callable[[int, int, Array], Array]
"""(hop, agent, x) -> an estimate of ∇f_agent(x)."""

RELAY = -1
"""Stands for an agent in a walk where the token is only passed on at that hop."""


# Local objectives


class LocalObjective(Protocol):
    """What one agent minimises."""

    @property
    def dimension(self) -> int: ...

    def value(self, x: Array) -> float: ...

    def gradient(self, x: Array) -> Array: ...

    def hessian(self, x: Array) -> Array: ...

    def prox(self, v: Array, c: float) -> Array: ...


@dataclass(frozen=True, eq=False)
class DenseQuadratic:
    """f(x) = factor · ½‖Ox − t‖² + ridge/2 ‖x‖², where O is `rows` and t is `targets`."""

    rows: Array
    targets: Array
    factor: float
    ridge: float
    is_mean: bool = False

    @classmethod
    def from_rows(
        cls,
        rows: ArrayLike,
        targets: ArrayLike,
        scale: Literal["half_sum", "mean"] = "half_sum",
        ridge: float = 0.0,
        weight: float = 1.0,
    ) -> DenseQuadratic:
        """half_sum: weight · ½‖Ox − t‖²; mean: weight · (1/b)‖Ox − t‖², over b rows; plus ridge/2 ‖x‖².

        `weight` multiplies the data loss only, not the ridge.
        """
        matrix = np.array(rows, dtype=np.float64)
        factors = {"half_sum": weight, "mean": 2.0 * weight / len(matrix)}
        return cls(matrix, np.array(targets, dtype=np.float64), factors[scale], ridge, scale == "mean")

    @property
    def dimension(self) -> int:
        return int(self.rows.shape[1])

    def value(self, x: Array) -> float:
        """factor · ½‖Ox − t‖² + ridge/2 ‖x‖²."""
        residual = self.rows @ x - self.targets
        return float(0.5 * self.factor * (residual @ residual) + 0.5 * self.ridge * (x @ x))

    def gradient(self, x: Array) -> Array:
        """factor · Oᵀ(Ox − t) + ridge · x."""
        return self.factor * self.rows.T @ (self.rows @ x - self.targets) + self.ridge * x

    def hessian(self, x: Array) -> Array:
        """factor · OᵀO + ridge · I, the same at every x."""
        return self.factor * self.rows.T @ self.rows + self.ridge * np.eye(self.dimension)

    def linear_term(self) -> Array:
        """factor · Oᵀt, so that ∇f(x) = Hx − factor · Oᵀt."""
        return self.factor * self.rows.T @ self.targets

    def prox(self, v: Array, c: float) -> Array:
        """The solution of (H + cI) x = factor · Oᵀt + cv."""
        matrix = self.hessian(v) + c * np.eye(self.dimension)
        return np.asarray(np.linalg.solve(matrix, self.linear_term() + c * v), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class DenseLogistic:
    """f(x) = weight · (1/b) Σ_j log(1 + exp(−t_j o_jᵀx)) + ridge/2 ‖x‖², labels t_j in {−1, 1}."""

    rows: Array
    labels: Array
    ridge: float
    weight: float

    @classmethod
    def from_rows(cls, rows: ArrayLike, labels: ArrayLike, ridge: float = 0.0, weight: float = 1.0) -> DenseLogistic:
        """`weight` multiplies the mean loss only, not the ridge."""
        return cls(np.array(rows, dtype=np.float64), np.array(labels, dtype=np.float64), ridge, weight)

    @property
    def dimension(self) -> int:
        return int(self.rows.shape[1])

    def margins(self, x: Array) -> Array:
        """t_j o_jᵀx for every row j."""
        return self.labels * (self.rows @ x)

    def value(self, x: Array) -> float:
        """weight · mean_j log(1 + exp(−margin_j)) + ridge/2 ‖x‖²."""
        return float(self.weight * np.mean(np.logaddexp(0.0, -self.margins(x))) + 0.5 * self.ridge * (x @ x))

    def gradient(self, x: Array) -> Array:
        """−(weight/b) Σ_j t_j σ(−margin_j) o_j + ridge · x, where σ(u) = 1/(1 + e^(−u))."""
        slopes = -self.labels * expit(-self.margins(x))
        return self.weight / len(self.rows) * self.rows.T @ slopes + self.ridge * x

    def hessian(self, x: Array) -> Array:
        """(weight/b) Σ_j σ(margin_j) σ(−margin_j) o_j o_jᵀ + ridge · I."""
        margins = self.margins(x)
        curvatures = expit(margins) * expit(-margins)
        data = self.weight / len(self.rows) * (self.rows.T * curvatures) @ self.rows
        return data + self.ridge * np.eye(self.dimension)

    def prox(self, v: Array, c: float) -> Array:
        """The root of ∇f(x) + c(x − v) = 0."""
        identity = np.eye(self.dimension)
        return damped_newton(
            lambda x: self.gradient(x) + c * (x - v),
            lambda x: self.hessian(x) + c * identity,
            v,
        )


def damped_newton(gradient: Callable[[Array], Array], hessian: Callable[[Array], Array], start: Array) -> Array:
    """The root of a monotone gradient: x ← x − t H(x)⁻¹g(x), until no t in {1, ½, …} makes ‖g‖ smaller.

    A step is taken when ‖g(x⁺)‖ ≤ (1 − t/4) ‖g(x)‖, which a short enough one always meets until rounding
    stops it: so it ends at machine precision, and anything else is an error.
    """
    x = np.array(start, dtype=np.float64)
    first_norm = np.linalg.norm(gradient(x))
    for _ in range(200):
        slope = gradient(x)
        norm = np.linalg.norm(slope)
        if norm == 0.0:
            return x
        direction = np.linalg.solve(hessian(x), slope)
        lengths = 0.5 ** np.arange(40)
        accepted = next(
            (t for t in lengths if np.linalg.norm(gradient(x - t * direction)) <= (1.0 - t / 4.0) * norm),
            None,
        )
        if accepted is None:
            rounding = np.linalg.norm(hessian(x)) * np.linalg.norm(x)
            if norm > 1e-12 * (1.0 + first_norm + rounding):
                raise RuntimeError(f"Newton's method stalled at a gradient of norm {norm:.1e}.")
            return x
        x = x - accepted * direction
    raise RuntimeError(f"Newton's method took 200 steps and left a gradient of norm {norm:.1e}.")


# What a run returns


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The state after every hop; entry 0 is the start.

    `tokens` is (K+1, p), or (K+1, M, p) for M parallel walks; `xs` and `ys` are (K+1, N, p).
    """

    tokens: Array
    xs: Array
    ys: Array


class _Recorder:
    """Copies the state after every hop."""

    def __init__(self) -> None:
        self._states: list[tuple[Array, Array, Array]] = []

    def record(self, token: Array, x: Array, y: Array) -> None:
        self._states.append((token.copy(), x.copy(), y.copy()))

    def trajectory(self) -> Trajectory:
        tokens, xs, ys = zip(*self._states, strict=True)
        return Trajectory(np.array(tokens), np.array(xs), np.array(ys))


def _zeros(agents: Sequence[LocalObjective]) -> Array:
    """An (N, p) array of zeros."""
    return np.zeros((len(agents), agents[0].dimension))


# Algorithms


def token_admm(
    agents: Sequence[LocalObjective],
    order: Sequence[int] | NDArray[np.integer],
    rho: float,
    gammas: Array,
    omegas: Array,
    x0: Array,
    y0: Array,
    z0: Array,
    first_order: bool,
    hops: int,
    regulariser: Regulariser | None = None,
) -> Trajectory:
    """I-ADMM, Algorithm 2 (random start), PI-ADMM1, PI-ADMM2 and W-ADMM.

    At hop k, with i = order[k], γ = gammas[k] and ω = omegas[k]:

        exact        x⁺ = prox_i(z + y_i/(ργ), ργ) + ω
        first order  x⁺ = z + (y_i − ∇f_i(x_i))/(ργ) + ω
        y⁺ = y_i + ργ(z − x⁺)
        z⁺ = z + [(x⁺ − y⁺/ρ) − (x_i − y_i/ρ)]/N

    γ = 1 and ω = 0 leave the step unperturbed. With a regulariser r, the token holds z̄, which takes the
    place of z in the last line, and agents use z = prox_{r/(Nρ)}(z̄): this minimises Σf_i + r.
    """
    x = np.array(x0, dtype=np.float64)
    y = np.array(y0, dtype=np.float64)
    token = np.array(z0, dtype=np.float64)
    recorder = _Recorder()
    recorder.record(token, x, y)
    for hop in range(hops):
        i = order[hop]
        if i != RELAY:
            z = token if regulariser is None else regulariser(token, 1.0 / (len(agents) * rho))
            penalty = rho * gammas[hop]
            if first_order:
                x_new = z + (y[i] - agents[i].gradient(x[i])) / penalty + omegas[hop]
            else:
                x_new = agents[i].prox(z + y[i] / penalty, penalty) + omegas[hop]
            y_new = y[i] + penalty * (z - x_new)
            token = token + ((x_new - y_new / rho) - (x[i] - y[i] / rho)) / len(agents)
            x[i], y[i] = x_new, y_new
        recorder.record(token, x, y)
    return recorder.trajectory()


def parallel_admm(
    agents: Sequence[LocalObjective],
    orders: Sequence[int] | NDArray[np.integer],
    M: int,
    rho: float,
    tau: float,
    first_order: bool,
    hops: int,
) -> Trajectory:
    """PW-ADMM and IPW-ADMM from x = y = z_m = 0. At hop k, walk m = k mod M stands at agent i = orders[k]:

        exact        x⁺ = prox_i((ρz_m + y_i + τx_i)/(ρ + τ), ρ + τ)
        first order  x⁺ = (ρz_m + y_i + τx_i − ∇f_i(x_i))/(ρ + τ)
        y⁺ = y_i + ρ(z_m − x⁺)
        z_m⁺ = z_m + (M/N) [(x⁺ − y⁺/ρ) − (x_i − y_i/ρ)]

    x_i and y_i are shared by all walks.
    """
    x, y = _zeros(agents), _zeros(agents)
    tokens = np.zeros((M, agents[0].dimension))
    recorder = _Recorder()
    recorder.record(tokens, x, y)
    for hop in range(hops):
        m, i = hop % M, orders[hop]
        if i != RELAY:
            pull = rho * tokens[m] + y[i] + tau * x[i]
            if first_order:
                x_new = (pull - agents[i].gradient(x[i])) / (rho + tau)
            else:
                x_new = agents[i].prox(pull / (rho + tau), rho + tau)
            y_new = y[i] + rho * (tokens[m] - x_new)
            tokens[m] = tokens[m] + M / len(agents) * ((x_new - y_new / rho) - (x[i] - y[i] / rho))
            x[i], y[i] = x_new, y_new
        recorder.record(tokens, x, y)
    return recorder.trajectory()


def wpg(
    agents: Sequence[LocalObjective],
    order: Sequence[int] | NDArray[np.integer],
    alpha: float,
    hops: int,
    z0: Array,
    regulariser: Regulariser | None = None,
) -> Trajectory:
    """Walk proximal gradient from y_i = z̄ = z⁰. At hop k, with i = order[k]:

        z = prox_{αr/N}(z̄)        y_i⁺ = z − α∇f_i(z)        z̄⁺ = z̄ + (y_i⁺ − y_i)/N

    The token holds z̄; without a regulariser z = z̄. `ys` holds y_i, and `xs` the z at which agent i last
    evaluated its gradient, at first z⁰.
    """
    token = np.array(z0, dtype=np.float64)
    x, y = np.tile(token, (len(agents), 1)), np.tile(token, (len(agents), 1))
    recorder = _Recorder()
    recorder.record(token, x, y)
    for hop in range(hops):
        i = order[hop]
        if i != RELAY:
            z = token if regulariser is None else regulariser(token, alpha / len(agents))
            y_new = z - alpha * agents[i].gradient(z)
            token = token + (y_new - y[i]) / len(agents)
            x[i], y[i] = z, y_new
        recorder.record(token, x, y)
    return recorder.trajectory()


def incremental_gradient(
    agents: Sequence[LocalObjective],
    order: Sequence[int] | NDArray[np.integer],
    steps: Array,
    hops: int,
    z0: Array,
) -> Trajectory:
    """z⁺ = z − α_k ∇f_i(z), with i = order[k] and α_k = steps[k].

    `xs` holds z⁺ at agent i's last visit, at first z⁰; `ys` stays at 0.
    """
    token = np.array(z0, dtype=np.float64)
    x, y = np.tile(token, (len(agents), 1)), _zeros(agents)
    recorder = _Recorder()
    recorder.record(token, x, y)
    for hop in range(hops):
        i = order[hop]
        if i != RELAY:
            token = token - steps[hop] * agents[i].gradient(token)
            x[i] = token
        recorder.record(token, x, y)
    return recorder.trajectory()


def private_incremental_gradient(
    agents: Sequence[LocalObjective],
    order: Sequence[int] | NDArray[np.integer],
    steps: Array,
    omegas: Array,
    longest: float,
    steepest: float,
    hops: int,
    z0: Array,
) -> Trajectory:
    """z⁺ = z − α_k(g_i(z) + ω_k), with i = order[k], α_k = steps[k] and ω_k = omegas[k].

    g_i is ∇f_i for rows o·min(1, B/‖o‖), each ℓ' between −C and C, where B = `longest` and C = `steepest`. ℓ is ½r² in a
    half sum, r² in a mean, and log(1 + exp(−t·o'x)) of a label.
    """
    token = np.array(z0, dtype=np.float64)
    x, y = np.tile(token, (len(agents), 1)), _zeros(agents)
    recorder = _Recorder()
    recorder.record(token, x, y)
    for hop in range(hops):
        i = order[hop]
        if i != RELAY:
            total = agents[i].ridge * token + omegas[hop]
            for weight, row, slope in clipped_records(agents[i], longest, token):
                total = total + weight * np.clip(slope, -steepest, steepest) * row
            token = token - steps[hop] * total
            x[i] = token
        recorder.record(token, x, y)
    return recorder.trajectory()


def clipped_records(agent: Any, longest: float, z: Array) -> Iterator[tuple[float, Array, float]]:
    """What a record counts, its row cut to the norm `longest`, and ℓ' at that row's prediction of z."""
    if isinstance(agent, DenseQuadratic):
        bend = 2.0 if agent.is_mean else 1.0
        for row, target in zip(agent.rows, agent.targets, strict=True):
            short = row * min(1.0, longest / np.linalg.norm(row))
            yield agent.factor / bend, short, bend * (short @ z - target)
    else:
        for row, label in zip(agent.rows, agent.labels, strict=True):
            short = row * min(1.0, longest / np.linalg.norm(row))
            yield agent.weight / len(agent.rows), short, -label * expit(-label * (short @ z))


def stochastic_admm(
    agents: Sequence[LocalObjective],
    order: Sequence[int] | NDArray[np.integer],
    rho: float,
    c_tau: float,
    c_gamma: float,
    batch_gradients: BatchGradients,
    hops: int,
) -> Trajectory:
    """Stochastic I-ADMM (sI-ADMM) from x = y = z = 0. At a hop of lap k = 1, 2, …, with i = order[hop]:

        τ = c_τ √k        γ = c_γ / √k
        x⁺ = (ρz + y_i + τx_i − g)/(ρ + τ)
        y⁺ = y_i + ργ(z − x⁺)
        z⁺ = z + [(x⁺ − y⁺/ρ) − (x_i − y_i/ρ)]/N

    g = batch_gradients(hop, i, x_i) is an estimate of ∇f_i(x_i). A lap is N hops.
    """
    x, y = _zeros(agents), _zeros(agents)
    z = np.zeros(agents[0].dimension)
    recorder = _Recorder()
    recorder.record(z, x, y)
    for hop in range(hops):
        i = order[hop]
        if i != RELAY:
            lap = hop // len(agents) + 1
            tau, gamma = c_tau * np.sqrt(lap), c_gamma / np.sqrt(lap)
            x_new = (rho * z + y[i] + tau * x[i] - batch_gradients(hop, i, x[i])) / (rho + tau)
            y_new = y[i] + rho * gamma * (z - x_new)
            z = z + ((x_new - y_new / rho) - (x[i] - y[i] / rho)) / len(agents)
            x[i], y[i] = x_new, y_new
        recorder.record(z, x, y)
    return recorder.trajectory()


def point_saga(
    agents: Sequence[LocalObjective], order: Sequence[int] | NDArray[np.integer], gamma: float, hops: int, z0: Array
) -> Trajectory:
    """Point-SAGA from g_i = 0. At hop k, with i = order[k] and the mean over the whole table:

        v = x + γ(g_i − (1/N)Σ_j g_j)        x⁺ = prox_i(v, 1/γ)        g_i⁺ = (v − x⁺)/γ

    The token is x; `xs` holds the x⁺ that agent i last found, at first 0, and `ys` the table.
    """
    token = np.array(z0, dtype=np.float64)
    x, table = _zeros(agents), _zeros(agents)
    recorder = _Recorder()
    recorder.record(token, x, table)
    for hop in range(hops):
        i = order[hop]
        if i != RELAY:
            v = token + gamma * (table[i] - table.mean(axis=0))
            token = agents[i].prox(v, 1.0 / gamma)
            table[i] = (v - token) / gamma
            x[i] = token
        recorder.record(token, x, table)
    return recorder.trajectory()


def prox_dfinito(
    agents: Sequence[LocalObjective],
    order: Sequence[int] | NDArray[np.integer],
    alpha: float,
    theta: float,
    hops: int,
    regulariser: Regulariser | None = None,
) -> Trajectory:
    """Prox-DFinito from z_i = 0. A lap begins with the agent of hop 0, and before it all z_i are damped at once:

        z_i ← (1 − θ)z_i' + θz_i,   z' being what they were as the last lap began
        at a hop   x = prox_{αr/N}((1/N)Σ_j z_j)        z_i ← x − α∇f_i(x),   i = order[k]

    The token is (1/N)Σ_j z_j, `xs` the x that agent i saw last, `ys` the z_i that damping will leave.
    """
    x, z = _zeros(agents), _zeros(agents)
    before = z.copy()
    recorder = _Recorder()
    recorder.record(z.mean(axis=0), x, z)
    for hop in range(hops):
        i = order[hop]
        if i != RELAY:
            if i == order[0]:
                z = (1.0 - theta) * before + theta * z
                before = z.copy()
            mean = z.mean(axis=0)
            x[i] = mean if regulariser is None else regulariser(mean, alpha / len(agents))
            z[i] = x[i] - alpha * agents[i].gradient(x[i])
        recorder.record(z.mean(axis=0), x, (1.0 - theta) * before + theta * z)
    return recorder.trajectory()


def accelerated_token(
    agents: Sequence[LocalObjective],
    order: Sequence[int] | NDArray[np.integer],
    mu: float,
    L: float,
    hops: int,
) -> Trajectory:
    """Random gradient extrapolation for (1/N)Σφ_i + μ/2‖·‖² with φ_i = f_i − μ/2‖·‖², from 0. In step t, with i = order[t]:

        g̃_j = g_j + Nα(g_j − g_j'),  g' being the gradients of one step earlier
        x⁺ = argmin ⟨(1/N)Σ_j g̃_j, x⟩ + μ/2‖x‖² + η/2‖x − x_t‖²        v_i⁺ = (x⁺ + τv_i)/(1 + τ)        g_i⁺ = ∇φ_i(v_i⁺)

    α = 1 − 1/(N + √(N² + 16N(L − μ)/μ)), τ = 1/(N(1 − α)) − 1, η = αμ/(1 − α). The token that leaves i is the x of the next step.
    """
    N = len(agents)
    alpha = 1.0 - 1.0 / (N + np.sqrt(N**2 + 16.0 * N * (L - mu) / mu))
    tau, eta = 1.0 / (N * (1.0 - alpha)) - 1.0, alpha * mu / (1.0 - alpha)
    point, sent, v, g = np.zeros(agents[0].dimension), _zeros(agents), _zeros(agents), _zeros(agents)
    earlier = g.copy()

    def step() -> Array:
        extrapolated = g + N * alpha * (g - earlier)
        return (eta * point - extrapolated.mean(axis=0)) / (mu + eta)

    point = step()
    recorder = _Recorder()
    recorder.record(point, sent, g)
    for hop in range(hops):
        i = order[hop]
        if i != RELAY:
            v[i] = (point + tau * v[i]) / (1.0 + tau)
            earlier = g.copy()
            g[i] = agents[i].gradient(v[i]) - mu * v[i]
            point = step()
            sent[i] = point
        recorder.record(point, sent, g)
    return recorder.trajectory()


# Measures


def augmented_lagrangian(agents: Sequence[LocalObjective], rho: float, x: Array, y: Array, z: Array) -> float:
    """L_ρ = Σ f_i(x_i) + ⟨y, 1⊗z − x⟩ + ρ/2 ‖1⊗z − x‖²."""
    gap = z - x
    values = sum(agent.value(x_i) for agent, x_i in zip(agents, x, strict=True))
    return float(values + np.sum(y * gap) + 0.5 * rho * np.sum(gap**2))


def kkt_residuals(agents: Sequence[LocalObjective], x: Array, y: Array, z: Array) -> tuple[float, float, float]:
    """(max_i ‖∇f_i(x_i) − y_i‖, ‖Σ y_i‖, max_i ‖z − x_i‖): zero together at the optimum only."""
    gradients = np.array([agent.gradient(x_i) for agent, x_i in zip(agents, x, strict=True)])
    stationarity = np.linalg.norm(gradients - y, axis=1).max()
    balance = np.linalg.norm(y.sum(axis=0))
    consensus = np.linalg.norm(z - x, axis=1).max()
    return float(stationarity), float(balance), float(consensus)


# Optima


def optimum_quadratic(agents: Sequence[DenseQuadratic]) -> Array:
    """The solution of (Σ H_i) x = Σ factor_i O_iᵀt_i, which minimises Σ f_i."""
    origin = np.zeros(agents[0].dimension)
    hessian = np.sum([agent.hessian(origin) for agent in agents], axis=0)
    return np.linalg.solve(hessian, np.sum([agent.linear_term() for agent in agents], axis=0))


def optimum_smooth(agents: Sequence[LocalObjective]) -> Array:
    """The root of Σ ∇f_i(x) = 0, by damped Newton from 0."""
    return damped_newton(
        lambda x: np.sum([agent.gradient(x) for agent in agents], axis=0),
        lambda x: np.sum([agent.hessian(x) for agent in agents], axis=0),
        np.zeros(agents[0].dimension),
    )


def lasso_objective_scaling(weight: float, samples: int) -> float:
    """The `alpha` for which scikit-learn's Lasso minimises ½‖Ox − t‖² + weight ‖x‖₁ over `samples` rows."""
    # With n rows, scikit-learn minimises 1/(2n) ‖Ox − t‖² + alpha ‖x‖₁. Multiplied by n, that is
    # ½‖Ox − t‖² + n · alpha ‖x‖₁, so n · alpha = weight.
    return weight / samples


def lasso_by_sklearn(rows: Sequence[Array], targets: Sequence[Array], weight: float) -> Array:
    """The minimiser of Σ_i ½‖O_i x − t_i‖² + weight ‖x‖₁; `rows` and `targets` hold one array per agent."""
    from sklearn.linear_model import Lasso  # type: ignore[import-untyped]

    stacked_rows, stacked_targets = np.vstack(rows), np.concatenate(targets)
    alpha = lasso_objective_scaling(weight, len(stacked_rows))
    model = Lasso(alpha=alpha, fit_intercept=False, tol=1e-14, max_iter=1_000_000)
    return np.array(model.fit(stacked_rows, stacked_targets).coef_, dtype=np.float64)


# Proximal maps


def soft_threshold(v: Array, threshold: float) -> Array:
    """The prox of threshold · ‖x‖₁: sign(v) max(|v| − threshold, 0)."""
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)


def project_nonnegative(v: Array) -> Array:
    """The nearest point with x ≥ 0."""
    return np.maximum(v, 0.0)


def project_box(v: Array, lower: ArrayLike, upper: ArrayLike) -> Array:
    """The nearest point with lower ≤ x ≤ upper."""
    return np.minimum(np.maximum(v, lower), upper)


def l1_regulariser(strength: float) -> Regulariser:
    """r(x) = strength · ‖x‖₁."""
    return lambda v, weight: soft_threshold(v, weight * strength)


def nonnegative_regulariser() -> Regulariser:
    """r(x) = 0 where x ≥ 0, else infinite; its prox is the projection, whatever the weight."""
    return lambda v, weight: project_nonnegative(v)


def box_regulariser(lower: ArrayLike, upper: ArrayLike) -> Regulariser:
    """r(x) = 0 where lower ≤ x ≤ upper, else infinite; its prox is the projection, whatever the weight."""
    return lambda v, weight: project_box(v, lower, upper)
