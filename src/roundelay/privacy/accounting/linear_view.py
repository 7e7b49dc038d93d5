"""What a member sees, exactly, where all is linear: quadratic functions, first-order steps, and no gradient so long that it is clipped.

Then the tokens that v is shown are R·ω plus what follows from the data, ω being the noise of all visits but v's own, which v
knows and takes away. Noise enters where the gradient does, so that a change δ of u's gradients, in units of what the noise has
there, moves them by R_u·δ, and v's loss is exactly that of a Gaussian mechanism with

    μ² = (R_u δ)' (σ² R R')⁻¹ (R_u δ) = δ' P_uu δ / σ²,    P = R'(R R')⁻¹R, a projector,

while one who sees all has ‖δ‖²/σ². Hence 0 ≤ P_uu ≤ 1: v never has more. And the trace of P is its rank, the numbers that v was
shown and did not know: over all others' visits and coordinates the *mean* loss is the number of v's looks over that of the
others' visits, 1/(N − 1) on a ring, for PI-ADMM2 as for noisy gradient steps. How it falls on single members is another matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from roundelay.kernels import Integers, Matrix
from roundelay.kernels.checks import whole_number
from roundelay.networks import Network
from roundelay.privacy.accounting.network import path_of
from roundelay.privacy.accounting.sensitivities import method_of, noisy_step, why_no_guarantee
from roundelay.problems import Problem
from roundelay.shown.watched import reporting


@dataclass(frozen=True, eq=False)
class LinearView:
    """What each member sees of the noise of each other's visits, as parts of what one sees who sees all tokens and states.

    `seen[v]` has P's root: v's orthonormal directions among the noise of all visits, (rank, visits, p), zero at its own visits.
    `worker` says whose visit is whose.
    """

    seen: tuple[Any, ...]
    worker: Integers

    def of(self, u: int, v: int) -> Matrix:
        """P_uu: what v sees of u's visits, (visits·p, visits·p)."""
        mine = self.seen[v][:, self.worker == u].reshape(len(self.seen[v]), -1)
        return np.asarray(mine.T @ mine, np.float64)

    def _table(self, part: Any) -> Matrix:
        agents = len(self.seen)
        return np.array([[np.nan if u == v else part(self.of(u, v)) for v in range(agents)] for u in range(agents)])

    @cached_property
    def mean(self) -> Matrix:
        """The part of μ² that v (column) has of a change of u's gradients (row) in a direction of its own at each visit, drawn at random."""
        return self._table(lambda block: float(np.trace(block)) / len(block))

    @cached_property
    def steady(self) -> Matrix:
        """That of a change which is the same at all visits, such as another target of a record in least squares, in the worst direction."""
        return self._table(self._steady)

    @cached_property
    def worst(self) -> Matrix:
        """That of the worst change there is, of any size and direction at each visit."""
        return self._table(lambda block: float(np.linalg.eigvalsh(block)[-1]))

    def _steady(self, block: Matrix) -> float:
        dim = self.seen[0].shape[2]
        visits = len(block) // dim
        summed = block.reshape(visits, dim, visits, dim).sum(axis=(0, 2))
        return float(np.linalg.eigvalsh(summed)[-1]) / visits


def linear_view(
    algorithm: Any,
    problem: Problem,
    network: Network,
    hops: int,
    seed: int = 0,
    told_at_end: bool = True,
    progress: bool = True,
) -> LinearView:
    """What each member sees of each other in so many hops of first-order PI-ADMM2 or of private incremental gradient.

    It is exact as long as no record is clipped, and no promise: a clipped record, or one whose curvature is replaced as well, is not linear.
    """
    method = method_of(algorithm)
    reason = why_no_guarantee(method, problem)
    if reason:
        raise ValueError(f"Nothing linear is known of it: {reason}.")
    if not problem.is_quadratic:
        raise ValueError("Its functions are not quadratic, so that what a member sees is not linear: use LeastSquares.")
    if noisy_step(method) is None and (method.facts.xstep.rate is not None or method.tokens > 1):
        raise ValueError("What a member sees is worked out for one token, and for visits that use all records.")
    hops = whole_number("hops", hops, least=1)
    path = path_of(method, network, seed, hops)
    tokens = responses(method, problem, path)
    dim, working = problem.dim, path.works
    worker, shown = path.agents[working], []
    with reporting(progress, "what each member sees") as report:
        for member in range(problem.agents):
            looks = [*np.flatnonzero(path.agents == member), *([hops] if told_at_end else [])]
            rows = tokens[looks].reshape(len(looks) * dim, -1, dim).copy()
            rows[:, worker == member] = 0.0
            flat = rows.reshape(len(rows), -1)
            _, sizes, directions = np.linalg.svd(flat, full_matrices=False)
            rank = int((sizes > 1e-11 * max(sizes[0], 1e-300)).sum()) if len(sizes) else 0
            shown.append(directions[:rank].reshape(rank, -1, dim))
            report(member + 1, problem.agents)
    return LinearView(tuple(shown), worker)


def responses(method: Any, problem: Problem, path: Any) -> Any:
    """How each token, that before each hop and the last, answers to the noise of each visit: (hops + 1, p, visits, p)."""
    agents, dim, count = problem.agents, problem.dim, int(path.works.sum())
    bends = [np.asarray(problem.hessian(i, np.zeros(dim)), np.float64) for i in range(agents)]
    step, eye = noisy_step(method), np.eye(dim)
    token = np.zeros((dim, count * dim))
    x, y = np.zeros((agents, dim, count * dim)), np.zeros((agents, dim, count * dim))
    kept, visit = [], 0
    for i, works, length in zip(path.agents, path.works, path.lengths, strict=True):
        kept.append(token.copy())
        if not works:
            continue
        noise = np.zeros((dim, count * dim))
        noise[:, visit * dim : (visit + 1) * dim] = eye
        visit += 1
        if step is not None:
            token = token - step.alpha * length * (bends[i] @ token + noise)
        else:
            new = token + (y[i] - bends[i] @ x[i]) / method.rho + noise
            multiplier = y[i] + method.rho * (token - new)
            token = token + ((new - multiplier / method.rho) - (x[i] - y[i] / method.rho)) / agents
            x[i], y[i] = new, multiplier
    kept.append(token)
    return np.array(kept).reshape(len(kept), dim, count, dim)
