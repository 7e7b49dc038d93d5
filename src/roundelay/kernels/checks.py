"""Checks of single numbers, which say in a sentence what is wrong."""

from __future__ import annotations

import math
from typing import Any


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """A whole number, also where it comes as 2e4; anything else is refused."""
    try:
        number = int(value)
        if isinstance(value, (bool, str)) or number != value:
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is {value!r}: use a whole number.") from None
    if least is not None and number < least:
        raise ValueError(f"{name} is {number}: use at least {least}.")
    return number


def finite_number(name: str, value: Any, above: float | None = None, least: float | None = None) -> float:
    """A finite number, above a bound or at least one."""
    try:
        number = float(value)
        if isinstance(value, (bool, str)):
            raise TypeError
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}: use a number.") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} is {number}: use a finite number.")
    if above is not None and not number > above:
        raise ValueError(
            f"{name} is {number}: use a {'positive number' if above == 0.0 else f'number above {above:g}'}."
        )
    if least is not None and not number >= least:
        raise ValueError(
            f"{name} is {number}: use a number that is not {'negative' if least == 0.0 else f'below {least:g}'}."
        )
    return number
