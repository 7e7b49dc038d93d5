"""Numbers in few characters."""

from __future__ import annotations

import re


def brief(number: float, digits: int = 2) -> str:
    """A few digits and the power of ten, as in 2.5e-3."""
    return re.sub(r"e([-+])0*(\d)", r"e\1\2", f"{number:.{digits - 1}e}").replace("e+", "e")


def short(level: float) -> str:
    """A level in as few digits as it has: 1e-6 or 2.5e-3."""
    return next((text for digits in range(1, 8) if float(text := brief(level, digits)) == level), repr(level))


def amount(cost: float, axis: str) -> str:
    """So many units, bytes or seconds, without the word."""
    return f"{cost:.3g}" if axis == "seconds" else f"{cost:,.0f}"


def in_words(words: list[str]) -> str:
    """A list as one says it: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
