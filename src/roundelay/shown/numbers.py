"""How numbers are written: as many digits as they are known to, small chances and small counts not to the last one."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from unicodedata import category

# Blanks as wide as a digit and as a point, where a page would make one of several.
FIGURE_SPACE, POINT_SPACE = "\u2007", "\u2008"
UNKNOWN = "–"
# A number known to these digits is written with three of its error; beyond these sizes with a power of ten.
_DIGITS, _MOST_DECIMALS, _LARGEST = 3, 6, 1e7
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_NUMBER = re.compile(r"[−<]?[\d,]+(?:\.(\d+))?")
_POWER = re.compile(r"([-−]?[\d.]+)e([-−+]?)(\d+)")


def places(error: float) -> int:
    """How many decimals there are where the error is to have three digits."""
    if not math.isfinite(error) or error <= 0.0:
        return 4
    return min(max(_DIGITS - 1 - math.floor(math.log10(error)), 0), _MOST_DECIMALS)


def fixed(value: float | None, decimals: int) -> str:
    """With so many decimals; a number that would have no digit left, or too many, with a power of ten."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "∞" if value > 0.0 else "−∞"
    if abs(value) >= _LARGEST or 0.0 < abs(value) < 5.0 * 10.0 ** -(_MOST_DECIMALS - 1):
        return _signed(f"{value:.2e}")
    return _signed(f"{value:,.{decimals}f}")


def short(value: float | None, digits: int = 5) -> str:
    """With so many digits; a whole number without zeros behind it."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value) or (value == round(value) and abs(value) < 10.0**digits):
        return fixed(value, 0)
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    return _signed(f"{value:.{digits - 1}e}") if decimals > digits + 4 else fixed(value, decimals)


def _signed(written: str) -> str:
    """With a minus as wide as a plus; nothing is −0."""
    if written.startswith("-") and not written.strip("-0.,"):
        written = written[1:]
    return written.replace("-", "−")


def count(value: float | None, least: int | None = None) -> str:
    """A number of rows; where it is not shown, that it is less than what is."""
    if value is None:
        return f"<{least}" if least else "few"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def chance(p: float | None) -> str:
    """A p-value: three decimals, and never 0."""
    if p is None or math.isnan(p):
        return UNKNOWN
    return "<0.001" if p < 0.0005 else f"{p:.3f}"


def percent(part: float | None) -> str:
    """A part of 1 as per cent."""
    return UNKNOWN if part is None or math.isnan(part) else f"{100.0 * part:.1f} %"


def aligned(cells: Sequence[str], blank: str = " ", point: str = " ") -> tuple[str, ...]:
    """Numbers with their points one below the other; what is no number stays as it is."""
    behind = [len(found[1] or "") if (found := _NUMBER.fullmatch(cell)) else None for cell in cells]
    most = max((digits for digits in behind if digits is not None), default=0)

    def padded(cell: str, digits: int | None) -> str:
        if digits is None or digits == most:
            return cell
        return cell + ("" if digits else point) + blank * (most - digits)

    return tuple(padded(cell, digits) for cell, digits in zip(cells, behind, strict=True))


def is_number(cell: str) -> bool:
    """Whether a cell holds a number, as this module writes them."""
    return bool(_NUMBER.fullmatch(cell) or _POWER.fullmatch(cell)) or cell in ("∞", "−∞")


def with_power(cell: str) -> tuple[str, int] | None:
    """The factor and the power of ten of a number that is written by them."""
    found = _POWER.fullmatch(cell)
    return None if found is None else (found[1], int(found[3]) * (-1 if found[2] in ("-", "−") and found[2] else 1))


def printable(words: str) -> str:
    """Words of others, without what would move the cursor or turn the line about."""
    return "".join(
        letter if letter.isprintable() or category(letter) == "Zs" else "\N{REPLACEMENT CHARACTER}" for letter in words
    )


def plural(number: int, one: str, many: str = "") -> str:
    """So many of something."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def power_of_ten(value: float) -> str:
    """1, 2 or 5 times a power of ten, as people write it."""
    factor, _, exponent = f"{value:.0e}".partition("e")
    return f"{'' if factor == '1' else factor + '·'}10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
