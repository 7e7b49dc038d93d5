"""What group hops do not hide: the sum of a few agents' answers tells each agent's function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector
from roundelay.privacy.attacks.setting import admm, first_order
from roundelay.privacy.attacks.solving import Minimum, minimise_squares, split, unknowns
from roundelay.privacy.public import Public
from roundelay.transcripts import GroupVisits

# A fit this good, relative to what moved, is none by chance.
FITS = 1e-8
# Rounds in which less than this part of the largest number moved say nothing but rounding.
TINY = 1e-11
# Members who stand in an order are told apart by it, and soon; others only slowly.
ITERATIONS, WITHOUT_ORDER = 50, 400
# Of a derivative by complex numbers, which has no rounding error however small the step is.
STEP = 1e-30


@dataclass(frozen=True, eq=False)
class GroupRecovered:
    """The members' Hessians (m, p, p), and under a public start their slopes (m, p).

    `residual` is what the attack can measure of its own failure, relative to what moved; `converged` where the
    equations are met. Members are told apart only by their order in the group, which moves the token by 1/N: they may
    come out exchanged.
    """

    H: NDArray[np.float64]
    g: Matrix | None
    residual: float
    converged: bool
    words: str


def group_sum(visits: GroupVisits, public: Public, tries: int = 40) -> GroupRecovered:
    """Every member's quadratic f_j = ½x'H_jx + g_j'x, from the sum of what the members add in each round.

        x_j⁺ = (I + Q_j)⁻¹(t_j + v_j)    v_j⁺ = v_j + t_j − x_j⁺    d_j = (x_j⁺ − v_j⁺) − (x_j − v_j)    v = (y −
        g)/ρ, Q = H/ρ

    t_1 is the token that entered the group, t_{j+1} = t_j + d_j/N, and N(z' − z) = Σ_j d_j is seen. Every member is a
    linear filter, and the sum of m filters determines them all once p·R exceeds their unknowns. It is solved by
    Levenberg and Marquardt's method for all (Q_j, v_j⁰) at once, from `tries` random starts around the filter that
    explains the mean of the members alone. Under a sealed start v_j⁰ = 0, and H_j is all that there is to find.
    """
    method = admm(public)
    sealed = method.facts.start.share == "sealed"
    if (
        first_order(method)
        or method.facts.perturbation.noise != "nothing"
        or not (sealed or method.facts.start.at_zero)
    ):
        raise ValueError(
            "This attack has the equations of exact, unperturbed steps from a zero or a sealed start: use it there."
        )
    model = _Model(public.agents, public.dim, visits.received, visits.increments(public.agents), sealed)
    return _solved(model, len(visits.members), method.rho, tries)


def lap_sum(points: Matrix, sums: Matrix, members: int, rho: float, tries: int = 12) -> GroupRecovered:
    """The same where all members answer one and the same point, and the sum of all is all that is seen: consensus ADMM under masks.

        z_{r+1} = z_r + Σ_j d_j/N    `points` has the z_r and `sums` the Σ_j d_j of each lap

    Members stand in no order, so that they come out in any. It is why a member of sealed laps must have no memory: these
    have one, y, and their sum alone betrays them all.
    """
    return _solved(_Model(np.inf, points.shape[1], points, sums, False), members, rho, tries)


def _solved(model: _Model, members: int, rho: float, tries: int) -> GroupRecovered:
    dim, sealed = model.dim, model.sealed
    size = unknowns(dim) - (dim if sealed else 0)
    if model.kept.sum() * dim < members * size:
        raise ValueError(
            f"{len(model.received)} rounds have {int(model.kept.sum()) * dim} equations in {members * size} unknowns: observe more hops."
        )
    best = _best_fit(model, members, size, tries)
    misfit = model.misfit(best.cost)
    pieces = [_one(piece, dim, sealed) for piece in best.theta.reshape(members, size)]
    slopes = None if sealed else -rho * np.array([first for _, first in pieces])
    words = f"The sum of {members} members over {int(model.kept.sum())} rounds is met to {misfit:.1g}" + (
        ", so that every member's H is known." if misfit <= FITS else " only."
    )
    return GroupRecovered(rho * np.array([q for q, _ in pieces]), slopes, misfit, misfit <= FITS, words)


def _best_fit(model: _Model, members: int, size: int, tries: int) -> Minimum:
    """The first fit that meets the equations, or the best of all.

    Members in the wrong order fit nearly as well, since their order moves the token by 1/N only: so every order is
    tried.
    """
    found: list[Minimum] = []
    ordered = bool(np.isfinite(model.agents))
    limit = ITERATIONS if ordered else WITHOUT_ORDER
    for start in _starts(model, members, size, tries):
        fit = minimise_squares(model.residuals(members), start, limit=limit)
        for order in permutations(range(members)) if ordered else [range(members)]:
            other = fit.theta.reshape(members, size)[list(order)].ravel()
            found.append(minimise_squares(model.residuals(members), other, limit=limit))
            if model.misfit(found[-1].cost) <= FITS:
                return found[-1]
    return min(found, key=lambda fit: fit.cost)


@dataclass(frozen=True, eq=False)
class _Model:
    """The tokens that entered the group, and the sums that its members added; of infinitely many agents none moves the token."""

    agents: float
    dim: int
    received: Matrix
    sums: Matrix
    sealed: bool

    @property
    def kept(self) -> NDArray[np.bool_]:
        """The rounds in which something moved."""
        length = np.linalg.norm(self.sums, axis=1)
        return length > TINY * max(float(np.abs(self.received).max()), float(np.abs(self.sums).max()))

    @property
    def weights(self) -> Vector:
        """A round counts by what moved in it."""
        return 1.0 / np.linalg.norm(self.sums[self.kept], axis=1)

    def misfit(self, cost: float) -> float:
        """The root mean square of the residuals."""
        return float(np.sqrt(cost / (self.kept.sum() * self.dim)))

    def residuals(self, members: int) -> Any:
        """The weighted residuals of all unknowns, with their Jacobian by complex steps, which are exact."""

        def residuals(theta: Vector) -> tuple[Vector, Matrix]:
            trials = theta + 1j * STEP * np.vstack([np.zeros(len(theta)), np.eye(len(theta))])
            answers = self.answers(trials.reshape(len(trials), members, -1))
            gaps = (answers - self.sums)[:, self.kept] * self.weights[:, None]
            flat = gaps.reshape(len(trials), -1)
            return flat[0].real, (flat[1:].imag / STEP).T

        return residuals

    def answers(self, theta: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """Σ_j d_j in each round, (trials, R, p), for the unknowns (trials, members, q) of several trials at once."""
        trials, members = theta.shape[:2]
        q, v = _matrices(theta, self.dim, self.sealed)
        inverse = np.linalg.inv(np.eye(self.dim) + q)
        x = np.zeros_like(v)
        out = np.empty((trials, len(self.received), self.dim), np.complex128)
        for r, entered in enumerate(self.received):
            token = np.broadcast_to(entered, (trials, self.dim)).astype(np.complex128)
            total = np.zeros_like(token)
            for j in range(members):
                new = np.einsum("tab,tb->ta", inverse[:, j], token + v[:, j])
                after = v[:, j] + token - new
                added = (new - after) - (x[:, j] - v[:, j])
                x[:, j], v[:, j] = new, after
                token = token + added / self.agents
                total += added
            out[:, r] = total
        return out


def _matrices(
    theta: NDArray[np.complex128], dim: int, sealed: bool
) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Q_j and v_j⁰ = −g_j/ρ of every trial and member."""
    row, column = np.triu_indices(dim)
    q = np.empty((*theta.shape[:2], dim, dim), np.complex128)
    q[..., row, column] = q[..., column, row] = theta[..., : len(row)]
    first = np.zeros((*theta.shape[:2], dim), np.complex128) if sealed else theta[..., len(row) :].copy()
    return q, first


def _one(theta: Vector, dim: int, sealed: bool) -> tuple[Matrix, Vector]:
    return split(np.append(theta, np.zeros(dim)) if sealed else theta, dim)


def _starts(model: _Model, members: int, size: int, tries: int) -> Iterator[Vector]:
    """Members scattered around the one that explains their mean."""
    generator = np.random.default_rng(0)  # the attack's own draws
    row, column = np.triu_indices(model.dim)
    mean_model = _Model(model.agents, model.dim, model.received, model.sums / members, model.sealed)
    flat = np.zeros(size)
    flat[: len(row)] = (row == column) * 1.0
    middle = minimise_squares(mean_model.residuals(1), flat, limit=60).theta
    for trial in range(tries):
        spread = 0.1 + 0.4 * (trial / tries)
        pieces = []
        for _ in range(members):
            piece = middle * (1.0 + spread * generator.standard_normal(size))
            turn = spread * generator.standard_normal((model.dim, model.dim))
            piece[: len(row)] += (turn + turn.T)[row, column] * np.abs(middle[: len(row)]).mean()
            pieces.append(piece)
        yield np.concatenate(pieces)
