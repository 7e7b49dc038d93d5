"""What no method on a fixed tour can do better: a lower bound, and the problem that shows it.

Woodworth and Srebro ("Tight complexity bounds for optimizing composite objectives", NeurIPS 2016, arXiv 1605.08003) show that whoever chooses deterministically
whom to ask needs Ω(N√(L/μ) log 1/ε) gradients or proximal steps of single f_i in the worst case, where random choices need N + √(NL/μ) log 1/ε. Their statement leaves the
constant open and takes as many unknowns as it needs. For tokens on a tour this is the same with all numbers, for any p:

    f_i = μ/2 ‖x‖² + (L − μ)/4 Σ_j (x_j − x_{j+1})²,   x_0 = 1, x_{p+1} = 0,   over odd j in the first half of the tour, even j in the second

Every f_i is quadratic with curvatures from μ to L. A gradient or a proximal step of f_i at a point whose last coordinates are 0 adds at most one to those that are not, and only in the half whose
turn it is: so after h visits from 0 at most ⌈2h/N⌉ − 1 coordinates of anything that any agent knows are not 0. The solution is
x*_j = (q^j − q^{2p+2−j})/(1 − q^{2p+2}) with q = (√κ − 1)/(√κ + 1), κ = L/μ, and what is missing of it is the error.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels.checks import finite_number, whole_number
from roundelay.networks import Network
from roundelay.problems import LeastSquares


def hard_chain(network: Network, dim: int, L: float, mu: float) -> LeastSquares:  # noqa: N803
    """The problem on which no method on the tour of this network is quicker than `least_hops`; every f_i curves by `mu` to `L`."""
    agents = _checked(network.agents, dim, L, mu)
    order, size = network.tour().order, math.sqrt((L - mu) / 2.0)
    if len(order) != agents:
        raise ValueError(
            "The bound is one for tours that meet everybody once, and this network has none: use for instance a ring."
        )
    links = np.zeros((dim + 1, dim))  # row j is that of (x_j − x_{j+1})
    links[np.arange(dim), np.arange(dim)] -= size
    links[np.arange(1, dim + 1), np.arange(dim)] += size
    targets = np.zeros(dim + 1)
    targets[0] = -size
    half = np.zeros(agents, np.int64)
    half[order[: agents // 2]] = 1
    return LeastSquares([links[side::2] for side in half], [targets[side::2] for side in half], ridge=mu)


def least_error(hops: int, agents: int, dim: int, L: float, mu: float) -> float:  # noqa: N803
    """What ‖x − x*‖/‖x*‖ is at least after so many visits on a tour, on the `hard_chain`, for everything that any agent knows."""
    agents = _checked(agents, dim, L, mu)
    known = max(-(-2 * whole_number("hops", hops, least=0) // agents) - 1, 0)
    solution = _solution(dim, L, mu)
    return float(np.linalg.norm(solution[known:]) / np.linalg.norm(solution))


def least_hops(level: float, agents: int, dim: int, L: float, mu: float) -> int:  # noqa: N803
    """How many visits a tour needs at least until an error is at most `level`, on the `hard_chain`.

    It is a bound for the worst problem with these numbers, by methods that go by gradients and proximal steps alone; another problem may be solved sooner.
    """
    agents = _checked(agents, dim, L, mu)
    finite_number("level", level, above=0.0)
    solution = _solution(dim, L, mu)
    left = np.sqrt(np.append(np.cumsum(solution[::-1] ** 2)[::-1], 0.0)) / np.linalg.norm(solution)
    known = int(np.flatnonzero(left <= level)[0])
    return known * (agents // 2) + 1 if known else 0


def _solution(dim: int, L: float, mu: float) -> NDArray[np.float64]:  # noqa: N803
    """x* of the chain."""
    j = np.arange(1, dim + 1, dtype=np.float64)
    if mu == 0.0:
        return 1.0 - j / (dim + 1.0)
    root = math.sqrt(L / mu)
    q = (root - 1.0) / (root + 1.0)
    return np.asarray((q**j - q ** (2.0 * dim + 2.0 - j)) / (1.0 - q ** (2.0 * dim + 2.0)), np.float64)


def _checked(agents: int, dim: int, L: float, mu: float) -> int:  # noqa: N803
    whole_number("dim", dim, least=1)
    if whole_number("agents", agents, least=2) % 2:
        raise ValueError(
            f"There are {agents} agents, and the bound divides the tour into two equal halves: use an even number."
        )
    if finite_number("mu", mu, least=0.0) >= finite_number("L", L, above=0.0):
        raise ValueError(
            f"mu is {mu:g} and L is {L:g}: the bound is for functions that curve by different amounts, mu below L."
        )
    return int(agents)
