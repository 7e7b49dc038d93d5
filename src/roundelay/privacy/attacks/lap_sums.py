"""Attacks on laps of sums: the words around an agent, and the sum over all who are honest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from roundelay.algorithms.sealed.questions import (
    Asked,
    Place,
    asked_in,
    numbers_asked,
    question_of,
    total_of,
)
from roundelay.kernels import Matrix, Vector
from roundelay.privacy.attacks.families import Quadratics
from roundelay.privacy.attacks.solving import split, times
from roundelay.privacy.public import Public
from roundelay.registry import register
from roundelay.transcripts import LapPart, LapParts

# Directions in which the points asked lie closer together than this part of the widest one tell nothing.
FLAT = 1e-9


class Told(NamedTuple):
    """What an answer says of f_i, and where: a value, a gradient, H·direction, a Hessian, as far as they were asked for."""

    place: Place
    value: float | None
    gradient: Vector | None
    product: Vector | None
    hessian: Matrix | None


@dataclass(frozen=True, eq=False)
class RecoveredAnswers:
    """An estimate of what agent i answered, one vector a lap; None where nothing was seen of it.

    `H` and `g` are those of f = ½x'Hx + g'x + c, where the answers determine them. `residual` is what the attack itself can
    measure of its own failure, `converged` whether no mask is left in what it has, and `words` says how it went.
    """

    answers: tuple[Vector | None, ...]
    H: Matrix | None
    g: Vector | None
    residual: float
    converged: bool
    words: str


class LapAttack(Protocol):
    """What an observer can make of an agent's part in laps of sums; it refuses by a ValueError what it can't work with.

    Entered by @register(LapAttack, "word") it is run by every audit and by the privacy meter of every site.
    """

    def __call__(self, parts: LapParts, public: Public, /) -> RecoveredAnswers:
        """An estimate of what the agent answered, from what was seen and what is public."""


@register(LapAttack, "difference of words")
def difference_of_words(parts: LapParts, public: Public) -> RecoveredAnswers:
    """What left the agent minus what entered it, without the masks that the observer can lift, read as numbers.

    Where no mask is left this is the answer, to the grid. One that is left makes it uniform.
    """
    answers = [None if lap.words is None else lap.grid.decode(lap.words) for lap in parts.laps]
    if all(answer is None for answer in answers):
        raise ValueError(f"nothing was seen that entered agent {parts.agent} and left it again")
    words = (
        f"Of the masks of agent {parts.agent} {parts.masks} are left, each of which makes its words uniform."
        if parts.masks
        else f"No mask of agent {parts.agent} is left: its answers are read as they are."
    )
    return _recovered(parts, public.dim, answers, parts.masks == 0, words)


@register(LapAttack, "mean of the honest sum")
def mean_of_the_honest(parts: LapParts, public: Public) -> RecoveredAnswers:
    """The sum over the honest agents, which no mask hides, divided by their number: what it says of each of them."""
    answers = [None if lap.rest is None else lap.rest / parts.honest for lap in parts.laps]
    if all(answer is None for answer in answers):
        raise ValueError("no total was seen")
    words = (
        f"The sum over {parts.honest} honest agents is known, and it is all that is known."
        if parts.honest > 1
        else f"Only agent {parts.agent} is honest: the sum without all others is its own answer."
    )
    return _recovered(parts, public.dim, answers, parts.honest == 1, words)


def _recovered(
    parts: LapParts, dim: int, answers: Sequence[Vector | None], converged: bool, words: str
) -> RecoveredAnswers:
    hessian, slope = quadratic_in(told_in(parts.laps, answers, dim), dim)
    return RecoveredAnswers(tuple(answers), hessian, slope, 0.0 if converged else float("nan"), converged, words)


# ---------------------------------------------------------------- what answers say


def told_in(
    laps: Sequence[LapPart], answers: Sequence[Vector | None], dim: int, start: Vector | None = None
) -> Iterator[Told]:
    """What every answer says, and of which point; the first point is public, the origin where nothing else is said."""
    place = Place(np.zeros(dim) if start is None else start, np.zeros(dim))
    for lap, answer in zip(laps, answers, strict=True):
        place = question_of(lap.kind, lap.told, dim).moved(place)
        asked = asked_in(lap.kind)
        if answer is None or asked == Asked.NOTHING or len(answer) != numbers_asked(asked, dim):
            continue
        total = total_of(asked, answer, dim)
        value = None if np.isnan(total.value) else total.value
        if asked == Asked.HESSIAN_TIMES_DIRECTION:
            yield Told(place, None, None, total.gradient, None)
        else:
            yield Told(place, value, total.gradient, None, total.hessian)


def quadratic_in(told: Iterator[Told], dim: int) -> tuple[Matrix | None, Vector | None]:
    """H and g of the one quadratic that gives these answers; None where they leave it open.

    A Hessian is read as it stands. Otherwise gradients Hz + g and products Hv are linear equations in (vech H, g).
    """
    known = list(told)
    for one in reversed(known):
        if one.hessian is not None and one.gradient is not None:
            return one.hessian, one.gradient - one.hessian @ one.place.point
    rows: list[Matrix] = []
    right: list[Vector] = []
    for one in known:
        at = one.place.point if one.product is None else one.place.direction
        constant = np.eye(dim) * (one.product is None)
        rows.append(np.hstack([times(at[None])[0], constant]))
        right.append(one.gradient if one.gradient is not None else one.product)  # type: ignore[arg-type]
    size = Quadratics().size(dim)
    if len(rows) * dim < size:
        return None, None
    design = np.vstack(rows)
    weight = np.maximum(np.linalg.norm(design, axis=1), 1e-300)
    theta, _, rank, _ = np.linalg.lstsq(design / weight[:, None], np.concatenate(right) / weight, rcond=FLAT)
    return split(theta, dim) if rank == size else (None, None)
