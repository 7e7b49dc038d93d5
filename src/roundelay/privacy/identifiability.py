"""What can be inferred at all: equations, unknowns and rank, by linear algebra at a random point of the update.

An observer of one agent knows the tokens z_r that it received and the increments d_r that it sent. These are a function of
what it does not know: the start, the draws, and the function f_i. The derivative of that function at a random point
says how much of it the increments determine: a quantity is determined where no change of the unknowns that leaves the
increments as they are changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from roundelay.algorithms.parts.defences import ContributionNoise, MaskedLinks
from roundelay.algorithms.parts.perturbations import PrimalNoise, StepSizeNoise, Unperturbed
from roundelay.algorithms.parts.starts import SealedStart, UniformStart, ZeroStart
from roundelay.algorithms.parts.vector_steps import VectorStepSizeNoise
from roundelay.algorithms.token_method import TokenADMM
from roundelay.kernels import Matrix, Vector
from roundelay.kernels.checks import whole_number
from roundelay.privacy.attacks.setting import admm, first_order
from roundelay.privacy.public import Public
from roundelay.transcripts import Colluders, Eavesdropper, Neighbours, Observer

Model = Literal["quadratic", "unknown"]
Complex = NDArray[np.complex128]

# Below this part of the largest singular value is rounding.
RANK = 1e-10
# A number that the unknowns move by less than this part counts as determined: nine digits of it are.
TOUCHED = 1e-9
# The imaginary step of the derivatives, which have no cancellation.
STEP = 1e-30


@dataclass(frozen=True)
class Determined:
    """How many of a quantity's numbers the observer's equations determine, of how many."""

    quantity: str
    numbers: int
    of: int

    @property
    def wholly(self) -> bool:
        """All of them."""
        return self.numbers == self.of


@dataclass(frozen=True)
class Identifiable:
    """What an observer can infer of one agent, whatever it computes: equations, unknowns, rank, and what they determine."""

    equations: int
    unknowns: int
    rank: int
    quantities: tuple[Determined, ...]
    words: str

    def __getitem__(self, quantity: str) -> Determined:
        """One quantity: "x", "y", "start", "H" or "g"."""
        for one in self.quantities:
            if one.quantity == quantity:
                return one
        raise ValueError(
            f"There is no quantity {quantity!r} here: use one of {', '.join(one.quantity for one in self.quantities)}."
        )


def identifiable(
    algorithm: Any,
    observer: Literal["eavesdropper", "neighbours", "colluders", "link"] | Observer = "neighbours",
    visits: int = 20,
    dim: int = 2,
    model: Model = "quadratic",
) -> Identifiable:
    """What an observer of so many `visits` can infer of an agent, given that f_i is quadratic, or nothing about f_i.

    Every number is a number: p equations a visit, one unknown for each coordinate of what is drawn. It speaks of a generic
    agent (H of full rank, another token at each visit), and of what is determined locally: a quantity that is not
    determined can't be inferred by anybody; one that is has at most isolated other solutions.

        >>> identifiable(rl.PIADMM1(), visits=20)["H"].wholly
        True
    """
    visits = whole_number("visits", visits, least=1)
    dim = whole_number("dim", dim, least=1)
    if model not in ("quadratic", "unknown"):
        raise ValueError(f'model is {model!r}: use "quadratic" or "unknown".')
    method = admm(Public(algorithm, 2, dim))
    _check(method)
    unknown = _unknowns(method, visits, dim, model)
    generator = np.random.default_rng([dim, visits, len(unknown.parts)])
    point = unknown.draw(generator)
    received = generator.standard_normal((visits, dim))

    def everything(values: Complex) -> tuple[Complex, dict[str, Complex]]:
        return _agent(method, unknown, values, received, dim, model)

    jacobian = _derivative(lambda values: everything(values)[0], point)
    sees = _sees_increments(observer)
    if not sees:
        jacobian = jacobian[:0]
    rank, null = _null_space(jacobian, len(point))
    found = []
    for quantity in everything(point.astype(np.complex128))[1]:

        def one(values: Complex, quantity: str = quantity) -> Complex:
            return everything(values)[1][quantity]

        slopes = _derivative(one, point)
        found.append(Determined(quantity, _untouched(slopes, null), len(slopes)))
    quantities = tuple(found)
    return Identifiable(
        len(jacobian), len(point), rank, quantities, _words(quantities, len(jacobian), len(point), rank, sees, model)
    )


# ---------------------------------------------------------------- the agent


@dataclass(frozen=True, eq=False)
class _Unknowns:
    """The unknown numbers, in parts one after another."""

    parts: tuple[tuple[str, int], ...]
    visits: int

    def of(self, values: Complex, name: str) -> Complex | None:
        """One part of them."""
        begin = 0
        for part, size in self.parts:
            if part == name:
                return values[begin : begin + size]
            begin += size
        return None

    def draw(self, generator: np.random.Generator) -> Vector:
        """A random point: factors near 1, everything else of size 1."""
        pieces = [
            generator.uniform(0.9, 1.1, size) if part in ("gamma", "gammas") else generator.standard_normal(size)
            for part, size in self.parts
        ]
        return np.concatenate(pieces) if pieces else np.empty(0)


def _unknowns(method: TokenADMM, visits: int, dim: int, model: Model) -> _Unknowns:
    parts: list[tuple[str, int]] = []
    if not isinstance(method.start, (ZeroStart, SealedStart)):
        parts.append(("start", dim))
    if not isinstance(method.start, (ZeroStart, UniformStart, SealedStart)):
        parts.append(("mask", dim))  # x⁰ − y⁰/ρ is not known either
    if isinstance(method.start, SealedStart) and model == "unknown":
        parts.append(("sealed", dim))  # ∇f_i(0), which is an unknown of its own where f_i may be anything
    noise = method.perturbation
    if isinstance(noise, StepSizeNoise) and noise.spread > 0.0:
        a_coordinate = isinstance(noise, VectorStepSizeNoise)
        parts.append(("gammas", visits * dim) if a_coordinate else ("gamma", visits))
    if isinstance(noise, PrimalNoise) and noise.sigma > 0.0:
        parts.append(("omega", visits * dim))
    if _conceals(method):
        parts.append(("concealed", visits * dim))
    parts.append(("factor", dim * (dim + 1) // 2) if model == "quadratic" else ("moves", visits * dim))
    if model == "quadratic":
        parts.append(("slope", dim))
    return _Unknowns(tuple(parts), visits)


def _agent(
    method: TokenADMM, unknown: _Unknowns, values: Complex, received: Matrix, dim: int, model: Model
) -> tuple[Complex, dict[str, Complex]]:
    """The increments that an agent sends, and what it keeps to itself, from all that is unknown: the update itself."""
    rho, visits = method.rho, unknown.visits
    linear = first_order(method)

    def rows(name: str) -> Complex:
        part = unknown.of(values, name)
        return np.zeros((visits, dim), np.complex128) if part is None else part.reshape(visits, dim)

    start = unknown.of(values, "start")
    x = np.zeros(dim, np.complex128) if start is None else start
    hessian, slope = _quadratic(unknown, values, dim) if model == "quadratic" else (None, None)
    mask = unknown.of(values, "mask")
    share = np.zeros(dim, np.complex128) if mask is None else mask
    if isinstance(method.start, SealedStart):
        sealed = slope if slope is not None else unknown.of(values, "sealed")
        assert sealed is not None
        share = -sealed / rho
    share_at_start = share
    y = rho * (x - share)
    factors = unknown.of(values, "gammas")
    gamma, omega, concealed, moves = unknown.of(values, "gamma"), rows("omega"), rows("concealed"), rows("moves")
    noise = method.perturbation
    middle = noise.gamma if isinstance(noise, StepSizeNoise) else 1.0
    increments, after_x, after_y = [], [], []
    first = x
    for r in range(visits):
        penalty = np.full(dim, rho * (middle * gamma[r] if gamma is not None else middle), np.complex128)
        if factors is not None:
            penalty = rho * middle * factors.reshape(visits, dim)[r]
        z = received[r]
        if hessian is None or slope is None:
            new = moves[r]  # f_i may be anything, and so x⁺ may be anything
        elif linear:
            new = z + (y - (hessian @ x + slope)) / penalty + omega[r]
        else:
            solved = np.linalg.solve(hessian + np.diag(penalty), penalty * z + y - slope)
            new = solved + omega[r]
        y = y + penalty * (z - new)
        x = new
        contribution = x - y / rho + concealed[r]
        increments.append(contribution - share)
        share = contribution
        after_x.append(x)
        after_y.append(y)
    kept = {"x": np.concatenate(after_x), "y": np.concatenate(after_y)}
    if slope is None and isinstance(method.start, SealedStart):
        kept["gradient at 0"] = -rho * share_at_start
    if start is not None:
        kept["start"] = first
    if hessian is not None and slope is not None:
        kept |= {"H": hessian[np.triu_indices(dim)], "g": slope}
    return np.concatenate(increments), kept


def _quadratic(unknown: _Unknowns, values: Complex, dim: int) -> tuple[Complex, Complex]:
    """H and g; H is near a multiple of I, so that it is positive definite."""
    triangle, slope = unknown.of(values, "factor"), unknown.of(values, "slope")
    assert triangle is not None
    assert slope is not None
    hessian = np.zeros((dim, dim), np.complex128)
    hessian[np.triu_indices(dim)] = triangle
    return hessian + hessian.T + 4.0 * (1.0 + dim**0.5) * np.eye(dim), slope


def _conceals(method: TokenADMM) -> bool:
    """Whether what the agent adds to the token carries noise of its own."""
    noise = method.defence.noise if isinstance(method.defence, MaskedLinks) else method.defence
    return isinstance(noise, ContributionNoise) and noise.scale > 0.0


def _check(method: TokenADMM) -> None:
    if method.tokens != 1:
        raise ValueError(f"{method.tokens} tokens go round, but this counts the equations of one.")
    if not isinstance(method.perturbation, (Unperturbed, StepSizeNoise, PrimalNoise)):
        raise ValueError(
            f"There are no equations here for {type(method.perturbation).__name__}: use I-ADMM, Algorithm 2, PI-ADMM1 or PI-ADMM2."
        )


def _sees_increments(observer: Any) -> bool:
    """Whether the observer sees both what an agent received and what it sent."""
    if observer in ("eavesdropper", "neighbours", "colluders"):
        return True
    if observer == "link":
        return False
    if isinstance(observer, str) or not hasattr(observer, "sees"):
        raise ValueError(f'There is no observer {observer!r}: use "eavesdropper", "neighbours", "colluders" or "link".')
    return isinstance(observer, (Eavesdropper, Neighbours, Colluders))


# ---------------------------------------------------------------- linear algebra


def _derivative(function: Callable[[Complex], Complex], point: Vector) -> Matrix:
    """The Jacobian, a column for each unknown, by complex steps."""
    columns = []
    for place in range(len(point)):
        moved = point.astype(np.complex128)
        moved[place] += 1j * STEP
        columns.append(function(moved).imag / STEP)
    return np.array(columns).T if columns else np.zeros((len(function(point.astype(np.complex128))), 0))


def _null_space(jacobian: Matrix, unknowns: int) -> tuple[int, Matrix]:
    """The rank, and the directions in which the unknowns may change unseen, one a row."""
    if jacobian.size == 0:
        return 0, np.eye(unknowns)
    scaled = jacobian / np.maximum(np.linalg.norm(jacobian, axis=1, keepdims=True), 1e-300)
    _, sizes, right = np.linalg.svd(scaled)
    rank = int((sizes > RANK * sizes[0]).sum())
    return rank, right[rank:]


def _untouched(slopes: Matrix, null: Matrix) -> int:
    """How many of the numbers with these slopes no unseen change of the unknowns changes."""
    if slopes.shape[1] == 0 or len(null) == 0:
        return len(slopes)
    size = np.maximum(np.linalg.norm(slopes, axis=1), 1e-300)
    return int((np.abs(slopes @ null.T).max(axis=1) <= TOUCHED * size).sum())


def _words(quantities: Sequence[Determined], equations: int, unknowns: int, rank: int, sees: bool, model: Model) -> str:
    if not sees:
        return "The observer sees only what the agent received or only what it sent: it has no equation at all."
    known = [one.quantity for one in quantities if one.wholly]
    partly = [f"{one.numbers} of {one.of} numbers of {one.quantity}" for one in quantities if 0 < one.numbers < one.of]
    hidden = [one.quantity for one in quantities if one.numbers == 0]
    given = "given that f_i is quadratic" if model == "quadratic" else "given nothing about f_i"
    parts = [
        f"determined: {', '.join([*known, *partly])}" if known or partly else "",
        f"not determined, so that nobody can infer it exactly: {', '.join(hidden)}" if hidden else "",
    ]
    return (
        f"{equations} equations in {unknowns} unknowns, rank {rank}, {given}; " + "; ".join(filter(None, parts)) + "."
    )
