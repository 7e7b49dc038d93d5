"""ε towards each member over all random walks, before one is drawn.

Who visits when does not depend on the data, so that walk and view together are, given the walk, a Gaussian mechanism with the
μ of `network.py`. Over all walks the Rényi divergence of the order α is then at most

    1/(α − 1) log E exp(α(α − 1) μ²/2),    μ² ≤ (Δ_u/σ)² Σ 1/G over the visits of u,

where G counts the steps from a visit of u until the token is at u or v again, or to the end: each visit takes only the noise that
no other visit of u takes. The walk begins anew at each return to u or v, so the mean follows exactly from the chances f(j) that
the first return takes j steps: with n hops to go, A_u(n) = Σ_j e^{θ/j} (f_uu(j) A_u(n − j) + f_uv(j) A_v(n − j)) + P(none in n) e^{θ/(n + 1)},
θ = α(α − 1)/2 (Δ_u/σ)², and A_v without the exponentials. It also holds against a member who knows the whole walk.
"""

from __future__ import annotations

import numpy as np

from roundelay.kernels import Matrix, Vector
from roundelay.privacy.accounting.composition import dp_accounting
from roundelay.shown.watched import Report

# Rényi orders.
ORDERS = 1.0 + np.geomspace(0.1, 400.0, 30)


def epsilons_before_the_walk(
    chances: Matrix, hops: int, mu: Vector, delta: float, report: Report
) -> tuple[Matrix, Vector]:
    """ε of each member's records towards each other member, and towards one who sees all; `mu` is Δ_u/σ of each."""
    agents = len(chances)
    epsilon, of_all = np.full((agents, agents), np.nan), np.zeros(agents)
    thetas = 0.5 * ORDERS * (ORDERS - 1.0)
    known: dict[tuple[bytes, bytes, float], float] = {}  # pairs that lie alike need be reckoned once
    for u in range(agents):
        of_all[u] = _epsilon(growth_seen_by_all(chances, hops, u, thetas * mu[u] ** 2), delta)
        for v in range(agents):
            if v != u:
                returns = returns_of(chances, hops - 1, u, v)
                alike = (returns[0].round(12).tobytes(), returns[1].round(12).tobytes(), round(float(mu[u]), 12))
                if alike not in known:
                    known[alike] = _epsilon(growth(*returns, agents, thetas * mu[u] ** 2), delta)
                epsilon[u, v] = min(known[alike], of_all[u])
        report(u + 1, agents)
    return epsilon, of_all


def _epsilon(logarithms: Vector, delta: float) -> float:
    with np.errstate(all="ignore"):
        return float(
            dp_accounting().rdp.compute_epsilon(ORDERS, np.maximum(logarithms, 0.0) / (ORDERS - 1.0), delta)[0]
        )


def returns_of(chances: Matrix, most: int, u: int, v: int) -> tuple[Vector, Vector]:
    """The chances that a walk is first at u or v (again) after so many steps, and that it was not there in so many.

    Of walks that begin at u, at v, and at any of the others: (3, 2, most + 1), and (3, most + 1).
    """
    agents = len(chances)
    rest = np.ones(agents)
    rest[[u, v]] = 0.0
    away = np.stack([np.eye(agents)[u], np.eye(agents)[v], rest / agents])
    first, none = np.zeros((3, 2, most + 1)), np.zeros((3, most + 1))
    none[:, 0] = away.sum(axis=1)
    for steps in range(1, most + 1):
        away = away @ chances
        first[:, :, steps] = away[:, [u, v]]
        away[:, [u, v]] = 0.0
        none[:, steps] = away.sum(axis=1)
    return first, none


def growth(first: Vector, none: Vector, agents: int, thetas: Vector) -> Vector:
    """log E exp(θ Σ 1/G) over all walks from a first place drawn uniformly, for each θ, from the chances of `returns_of`."""
    most = none.shape[1] - 1
    # In logarithms, since a walk that dwells at u may make the mean as large as it likes.
    growing = np.zeros((len(thetas), 2, most + 1))
    with np.errstate(divide="ignore"):
        first, none = np.log(first), np.log(none)
    gain = thetas[:, None] / np.maximum(np.arange(most + 1), 1)
    growing[:, 0, 0] = thetas
    for left in range(1, most + 1):
        met = first[None, :2, :, 1 : left + 1] + growing[:, None, :, left - 1 :: -1]
        met[:, 0] += gain[:, None, 1 : left + 1]
        never = none[None, :2, left] + np.column_stack([thetas / (left + 1.0), np.zeros(len(thetas))])
        growing[:, :, left] = _log_sum(np.concatenate([met.reshape(len(thetas), 2, -1), never[:, :, None]], axis=2))
    begun = first[None, 2, :, 1:] + growing[:, :, most - 1 :: -1] if most else np.full((len(thetas), 2, 0), -np.inf)
    ends = np.column_stack([growing[:, 0, most], growing[:, 1, most]]) - np.log(agents)
    parts = [begun.reshape(len(thetas), -1), ends, np.full((len(thetas), 1), none[2, most])]
    return _log_sum(np.concatenate(parts, axis=1))


def growth_seen_by_all(chances: Matrix, hops: int, u: int, thetas: Vector) -> Vector:
    """log E exp(θ·visits of u), for each θ."""
    gains = np.zeros((len(thetas), len(chances)))
    gains[:, u] = thetas
    logarithms = gains.copy()
    for _ in range(hops - 1):
        top = logarithms.max(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):  # what is too small to count
            logarithms = gains + top + np.log(np.exp(logarithms - top) @ chances.T)
    return _log_sum(logarithms - np.log(len(chances)))


def _log_sum(terms: Matrix) -> Matrix:
    top = terms.max(axis=-1, keepdims=True)
    return np.asarray((top + np.log(np.exp(terms - top).sum(axis=-1, keepdims=True)))[..., 0], np.float64)
