"""What a perturbed step size does not hide where steps are first order: the function, and single records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector
from roundelay.privacy.attacks.families import Family, LogisticRecords, Quadratics, gradient_in
from roundelay.privacy.attacks.recursions import forward_filter
from roundelay.privacy.attacks.setting import (
    Attack,
    Evidence,
    Recovered,
    admm,
    evidence,
    first_order,
    one_update_each,
)
from roundelay.privacy.attacks.solving import Eliminated, eliminate, minimise_squares, split
from roundelay.privacy.public import Public
from roundelay.registry import register
from roundelay.transcripts import Visits

# A fit this good, relative to what moved, is none by chance.
FITS = 1e-9
# How each attempt lets go of γ: held near its mean, then free.
SCHEDULES = ((1e3, 0.0), (0.0,), (1e3, 1.0, 0.1, 1e-3, 0.0))


@register(Attack, "parametric, first order")
def parametric_first_order(visits: Visits, public: Public, family: Family | None = None, starts: int = 6) -> Recovered:
    """θ, every x and every y of an agent that takes first-order steps, under PI-ADMM1, Algorithm 2 or I-ADMM.

        x_{r+1} = s_{r+1} + ∇f_θ(x_r)/ρ        d_r = x_{r+1} − x_r − γ_r(z_r − x_{r+1})

    f is taken to be of a `family`: `Quadratics()` (default), which gives H and g, or `LogisticRecords(b)`, which
    gives the b records of the agent themselves. Unknown are θ, x⁰ and all γ. The first equation gives all x from θ
    and x⁰, and because first-order steps need ρ ≥ 2L it at least halves errors, so that one shot from x⁰ is as stable
    as many; γ_r is eliminated from the second in closed form. It starts from the forward filter's x and y, with up to
    `starts` guesses of θ, until the equations are met to rounding. Exact once (p − 1)R, or pR where γ is public,
    reaches the number of unknowns. Many records of one agent the equations barely tell apart: b up to about 5 is within
    reach.
    """
    method, known = admm(public), evidence(visits, public)
    if not first_order(method) or method.facts.perturbation.noise not in ("nothing", "step size"):
        raise ValueError(
            "This attack has the equations of first-order steps, with or without a perturbed step size: use "
            "parametric_step_size for exact steps and parametric_primal for primal noise."
        )
    one_update_each(visits)
    family = Quadratics() if family is None else family
    gamma, spread = method.facts.perturbation.gamma, method.facts.perturbation.width
    equations = (public.dim - 1 if spread > 0.0 else public.dim) * len(visits)
    enough = equations >= family.size(public.dim) + public.dim
    filtered = forward_filter(visits, public)
    # How far the filter's x may be off: what is left of the start, and of γ.
    off = np.linalg.norm(filtered.x[1:] - known.z, axis=1)
    left = method.facts.start.width * (1.0 + gamma) ** -np.arange(1.0, len(visits) + 1.0)
    doubt = spread * off + left + 1e-9 * known.scale
    shots = _Shots(known, family, gamma, spread, np.maximum(off, 1e-9 * known.scale))
    guesses = islice(family.starts(filtered.x[:-1], filtered.y[1:], 1.0 / (known.rho * doubt)), starts)
    best = _best_of(_attempts(shots, guesses, filtered.x[0]))
    converged = enough and best.misfit <= FITS and known.s_is_known
    theta = best.theta
    x = best.x if best.misfit <= 1e-2 else filtered.x
    y = known.rho * (x - known.s)
    words = f"{len(visits)} visits of agent {visits.agent} have {equations} equations; " + (
        f"they are met to {best.misfit:.1g}."
        if enough
        else f"that is too few for {family.size(public.dim) + public.dim} unknowns."
    )
    hessian, slope = split(theta, public.dim) if isinstance(family, Quadratics) else (None, None)
    records = theta.reshape(family.samples, public.dim) if isinstance(family, LogisticRecords) else None
    return Recovered(
        x, y, best.misfit, converged, words, hessian, slope, gradient_in(family, theta), records, best.gamma[:, None]
    )


@dataclass(frozen=True, eq=False)
class _Fit:
    """θ, the x that follow from it, γ, and the misfit relative to what moved."""

    theta: Vector
    x: Matrix
    gamma: Vector
    misfit: float


@dataclass(frozen=True, eq=False)
class _Shots:
    """All x from θ and x⁰, and what the second equation says of them."""

    known: Evidence
    family: Family
    gamma: float
    spread: float
    off: Vector

    def trajectory(self, theta: Vector, start: Vector) -> Matrix:
        """x_{r+1} = s_{r+1} + ∇f_θ(x_r)/ρ, R + 1 rows."""
        x = np.empty((len(self.known.d) + 1, len(start)))
        x[0] = start
        for r in range(len(self.known.d)):
            x[r + 1] = self.known.s[r + 1] + self.family.gradients(theta, x[r : r + 1])[0] / self.known.rho
        return x

    def sensitivity(self, theta: Vector, x: Matrix) -> NDArray[np.float64]:
        """∂x_r/∂(θ, x⁰), (R + 1, p, q + p)."""
        slopes, size, dim = self.family.slopes(theta, x[:-1]), len(theta), x.shape[1]
        by_x, by_theta = slopes.by_x / self.known.rho, slopes.by_theta / self.known.rho
        moved = np.zeros((len(x), dim, size + dim))
        moved[0, :, size:] = np.eye(dim)
        for r in range(len(x) - 1):
            moved[r + 1] = by_x[r] @ moved[r]
            moved[r + 1, :, :size] += by_theta[r]
        return moved

    def without_gamma(self, x: Matrix, hold: float) -> Eliminated:
        """x_{r+1} − x_r − d_r + γ_r(x_{r+1} − z_r), with γ_r eliminated."""
        u = x[1:] - self.known.z
        return eliminate(x[1:] - x[:-1] - self.known.d + self.gamma * u, u, self.gamma, hold)

    def fit(self, theta: Vector, start: Vector, hold: float, power: float) -> tuple[Vector, Vector]:
        """The best θ and x⁰; weights of `power` 1 suit a γ that is held, of 0 one that is free."""
        size, weight = len(theta), self.off**-power

        def residuals(unknown: Vector) -> tuple[Vector, Matrix]:
            x = self.trajectory(unknown[:size], unknown[size:])
            moved = self.sensitivity(unknown[:size], x)
            left = self.without_gamma(x, hold)
            derivative = (1.0 + left.factor)[:, None, None] * moved[1:] - moved[:-1]
            jacobian = weight[:, None, None] * left.jacobian(derivative)
            return (weight[:, None] * left.residual).ravel(), jacobian.reshape(-1, len(unknown))

        found = minimise_squares(residuals, np.concatenate([theta, start])).theta
        return found[:size], found[size:]

    def judge(self, theta: Vector, start: Vector) -> _Fit:
        """The fit, and how well the equations are met with γ in its public range: γ = −1 would meet any of them."""
        x = self.trajectory(theta, start)
        hold = 0.0 if self.spread > 0.0 else np.inf
        gamma = np.clip(self.without_gamma(x, hold).factor, self.gamma - self.spread, self.gamma + self.spread)
        gap = x[1:] - x[:-1] - self.known.d + gamma[:, None] * (x[1:] - self.known.z)
        misfit = float(np.linalg.norm(gap) / np.linalg.norm(self.known.d))
        return _Fit(theta, x, gamma, misfit if np.isfinite(misfit) else np.inf)


def _attempts(shots: _Shots, guesses: Iterator[Vector], start: Vector) -> Iterator[_Fit]:
    """Fits from each guess of θ; where γ is public it stays where it is."""
    every = list(guesses)
    for schedule in SCHEDULES if shots.spread > 0.0 else ((np.inf,),):
        for guess in every:
            theta, first = guess, start
            for hold in schedule:
                theta, first = shots.fit(theta, first, hold, 1.0)
            yield shots.judge(*shots.fit(theta, first, schedule[-1], 0.0))  # near the end all rounds round alike


def _best_of(tries: Iterator[_Fit]) -> _Fit:
    """The first that meets the equations, or the one that comes nearest."""
    made: list[_Fit] = []
    for fit in tries:
        made.append(fit)
        if fit.misfit <= FITS:
            break
    return min(made, key=lambda fit: fit.misfit)
