"""What can be inferred at all from sums: equations, unknowns and rank, where all that is known is the sum over the honest.

Every honest agent i has unknowns θ_i: (H_i, g_i, c_i) of f = ½x'Hx + g'x + c, or, where nothing is known of f_i, the numbers of
its answers. An answer is linear in them, A_q θ_i in lap q. The words under masks are uniform whatever the answers are, which is
proven, so that they are no equations. What is left is Σ A_q θ_i over the honest, for every lap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roundelay.algorithms.sealed.optimisers import Goal
from roundelay.algorithms.sealed.questions import (
    HESSIANS,
    VALUES,
    Asked,
    Place,
    Question,
    Total,
    numbers_asked,
)
from roundelay.algorithms.sealed.sealed_laps import Smoothness
from roundelay.kernels import Matrix
from roundelay.kernels.checks import whole_number
from roundelay.privacy.attacks.solving import times
from roundelay.privacy.determined import Determined, Identifiable, Model, null_space, untouched
from roundelay.privacy.public import Public

# Who they are is not asked here, only how many.
NAMED = {"eavesdropper": 0, "link": 0, "neighbours": 2}


def colluders_in(observer: Any, agents: int | None, colluders: int | None) -> int:
    """How many agents an observer is made of; `colluders`, where given, is their number."""
    if agents is None:
        raise ValueError("What a sum tells depends on how many agents add to it: say agents=… .")
    most = whole_number("agents", agents, least=1) - 1
    if colluders is not None:
        if not 0 <= whole_number("colluders", colluders) <= most:
            raise ValueError(f"colluders is {colluders}: of {agents} agents up to {most} can collude against one.")
        return colluders
    if observer == "colluders":
        return most
    if isinstance(observer, str):
        if observer not in NAMED:
            raise ValueError(f"There is no observer {observer!r}: use one of {', '.join(NAMED)}, colluders.")
        return min(NAMED[observer], most)
    honest = getattr(observer, "honest", None)
    if honest is not None:
        return most - len(honest)
    return min(2, most) if getattr(observer, "inside", False) else 0


def identifiable_in_sums(public: Public, colluders: int, laps: int, model: Model) -> Identifiable:
    """What `colluders` agents can infer of another one, from so many laps at the most."""
    method, dim = public.algorithm.parts(), public.dim
    masked = bool(method.masked)
    honest = public.agents - colluders if masked else 1
    asked = list(_questions(public, laps, model))
    one = _design(asked, dim) if model == "quadratic" else np.eye(sum(numbers_asked(a, dim) for a, _ in asked))
    whole = np.tile(one, honest)  # Σ A θ_i
    rank, null = null_space(whole, whole.shape[1])
    names = _slices(dim, one.shape[1]) if model == "quadratic" else {"answers": slice(0, one.shape[1])}
    quantities = []
    for name, columns in names.items():
        own = np.eye(one.shape[1])[columns]
        summed = np.tile(own, honest)
        alone = np.hstack([own, np.zeros((len(own), whole.shape[1] - one.shape[1]))])
        quantities.append(Determined(name, untouched(alone, null), len(own)))
        if honest > 1:
            quantities.append(Determined(f"sum of {name}", untouched(summed, null), len(own)))
    words = _words(public.agents, colluders, honest, masked, tuple(quantities), len(asked))
    return Identifiable(len(whole), whole.shape[1], rank, tuple(quantities), words)


def _questions(public: Public, laps: int, model: Model) -> list[tuple[Asked, Place]]:
    """What is asked, and where, of agents with generic quadratic functions."""
    dim, algorithm = public.dim, public.algorithm
    chosen = getattr(algorithm, "chosen", None)
    if chosen is None:  # one lap for everything, at the origin
        return [(Asked.GRADIENT_AND_HESSIAN, Place(np.zeros(dim), np.zeros(dim)))]
    generator = np.random.default_rng([dim, laps])
    root, slope = generator.standard_normal((2 * dim, dim)), generator.standard_normal(dim)
    hessian = root.T @ root
    goal = Goal(dim, public.agents, algorithm.regulariser)
    optimiser = chosen(Smoothness(dim, model == "quadratic", True, True)).optimiser
    place, asked, asking = Place(goal.origin, np.zeros(dim)), [], optimiser.questions(goal)
    try:
        question: Question = next(asking)
        for _ in range(laps):
            place = question.moved(place)
            asked.append((question.asked, place))
            gradient = hessian @ place.point + slope
            if question.asked == Asked.HESSIAN_TIMES_DIRECTION:
                total = Total(float("nan"), hessian @ place.direction, None)
            else:
                value = float(0.5 * place.point @ (gradient + slope))
                total = Total(value, gradient, hessian if question.asked in HESSIANS else None)
            question = asking.send(total)
    except StopIteration:
        pass
    finally:
        asking.close()
    return asked


def _slices(dim: int, size: int) -> dict[str, slice]:
    """Where H, g and c stand in θ; c only where values are asked for."""
    matrix = dim * (dim + 1) // 2
    names = {"H": slice(0, matrix), "g": slice(matrix, matrix + dim)}
    return names | ({"c": slice(size - 1, size)} if size > matrix + dim else {})


def _design(asked: list[tuple[Asked, Place]], dim: int) -> Matrix:
    """A of all laps: the numbers of an answer by θ = (vech H, g, c)."""
    matrix, valued = dim * (dim + 1) // 2, any(one in VALUES for one, _ in asked)
    blocks = []
    for one, place in asked:
        z = place.point
        by_hessian = times(z[None])[0]
        rows = []
        if one in VALUES:
            rows.append(np.concatenate([0.5 * z @ by_hessian, z, [1.0]])[None])
        if one == Asked.HESSIAN_TIMES_DIRECTION:
            rows.append(np.hstack([times(place.direction[None])[0], np.zeros((dim, dim))]))
        elif one != Asked.NOTHING:
            rows.append(np.hstack([by_hessian, np.eye(dim)]))
        if one in HESSIANS:
            rows.append(np.hstack([np.eye(matrix), np.zeros((matrix, dim))]))
        width = matrix + dim + valued
        blocks += [np.pad(row, ((0, 0), (0, width - row.shape[1]))) for row in rows]
    return np.vstack(blocks)


def _words(
    agents: int, colluders: int, honest: int, masked: bool, quantities: tuple[Determined, ...], laps: int
) -> str:
    if not masked:
        return (
            "The sums are not masked: whoever sees what enters an agent and what leaves it knows its answers"
            f"{_of(quantities, 'and so')}."
        )
    if honest == 1:
        return (
            f"With {agents} agents and {colluders} of them colluding the total without their own is the last one's answer: it "
            f"hides nothing{_of(quantities, 'so that there is determined')}."
        )
    sums = tuple(one for one in quantities if one.quantity.startswith("sum of "))
    return (
        f"With {agents} agents and {colluders} of them colluding nothing is known but the sum over the other {honest}, at the "
        f"points of {laps} laps{_of(sums, 'of which there is determined')}. Nothing of a single one of them is determined, "
        "whatever anybody computes."
    )


def _of(quantities: tuple[Determined, ...], how: str) -> str:
    parts = [
        one.quantity if one.wholly else f"{one.numbers} of {one.of} numbers of {one.quantity}"
        for one in quantities
        if one.numbers
    ]
    return f", {how}: {', '.join(parts)}" if parts else ""
