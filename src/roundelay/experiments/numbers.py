"""Numbers in few characters."""

from __future__ import annotations

import re


def brief(number: float, digits: int = 2) -> str:
    """A few digits and the power of ten, as in 2.5e-3."""
    return re.sub(r"e([-+])0*(\d)", r"e\1\2", f"{number:.{digits - 1}e}").replace("e+", "e")
