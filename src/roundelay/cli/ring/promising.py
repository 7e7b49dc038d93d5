"""`--epsilon` and what belongs to it, in `roundelay ring plan` and `roundelay ring up`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from roundelay.agents.agreement.plan import Task

Epsilon = Annotated[
    float | None,
    typer.Option(
        help="Promise every record differential privacy with this ε: the sites add noise to their sums together."
    ),
]
Delta = Annotated[float, typer.Option(help="δ of the promise: far below one over the number of rows.")]
Bounds = Annotated[
    list[str] | None,
    typer.Option(
        "--bounds",
        metavar="COLUMN=LOW:HIGH",
        help="With --epsilon: public bounds of a column; once for every column but labels.",
    ),
]
LeaveOut = Annotated[
    int,
    typer.Option(
        help="With --epsilon: how many sites may leave their noise out, or work together, before less is promised."
    ),
]
LongestRow = Annotated[
    float | None,
    typer.Option(
        help="With --epsilon: scale rows down to this length, after their features are scaled by the bounds to -1 … 1; by default "
        "none is. Less is less noise, and another model where rows are longer."
    ),
]
USUAL_DELTA = 1e-6


def promised(
    fit: Task,
    method: Any,
    epsilon: float | None,
    delta: float,
    bounds: Sequence[str],
    leave_out: int,
    longest_row: float | None,
) -> tuple[Task, Any]:
    """The task with the promise, and the algorithm with the noise that keeps it."""
    from roundelay.agents.agreement.plan import Promise
    from roundelay.agents.data.fitting import half_range
    from roundelay.privacy.accounting.budget import sum_multiplier

    if epsilon is None:
        given = {
            "--bounds": bool(bounds),
            "--delta": delta != USUAL_DELTA,
            "--leave-out": leave_out != 1,
            "--longest-row": longest_row is not None,
        }
        for option in (name for name, is_given in given.items() if is_given):
            raise ValueError(f"{option} is for a promise of differential privacy: add --epsilon, or leave it out.")
        return fit, method
    if not hasattr(method, "noise_multiplier"):
        raise ValueError("--epsilon is for sealed laps: leave --algorithm out.")
    ends = _read(bounds)
    known = {column.name for column in fit.bounded}
    for name in ends:
        if name not in known:
            raise ValueError(
                f"--bounds names {name!r}, which is no column that needs bounds: those are {', '.join(sorted(known))}."
            )
    without = [column.name for column in fit.bounded if column.name not in ends]
    if without:
        raise ValueError(
            f"Under --epsilon nobody is told a mean or a deviation, so that public bounds must say how large {', '.join(without)} can "
            f'be: give them as --bounds "{without[0]}=LOW:HIGH", from what is known without looking at the data.'
        )
    low, high = (tuple(ends[column.name][end] for column in fit.bounded) for end in (0, 1))
    task = replace(fit, promise=Promise(epsilon, delta, low, high))
    return task, replace(
        method,
        clip_row=math.sqrt(task.dim) if longest_row is None else longest_row,
        clip_slope=half_range(task),
        leave_out=leave_out,
        noise_multiplier=sum_multiplier(epsilon, delta),
    )


def _read(bounds: Sequence[str]) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for word in bounds:
        name, equals, ends = word.rpartition("=")
        low, colon, high = ends.partition(":")
        try:
            numbers = float(low), float(high)
        except ValueError:
            equals = ""
        if not (equals and colon and name.strip()):
            raise ValueError(f'--bounds is {word!r}: write it as "bmi=15:50".')
        if name.strip() in found:
            raise ValueError(f"--bounds are given twice for {name.strip()!r}: give them once.")
        found[name.strip()] = numbers
    return found
