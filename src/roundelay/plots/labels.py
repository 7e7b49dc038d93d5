"""What the axes are called, in the paper's terms."""

from __future__ import annotations

from typing import Literal

# What a curve is drawn over.
Cost = Literal["units", "bytes", "seconds"]

COSTS: dict[str, str] = {
    "units": "communication (units)",
    "bytes": "communication (bytes)",
    "seconds": "time (simulated seconds)",
}

LABELS = {
    "accuracy": r"accuracy   $\frac{1}{N}\,\sum_i\;\|x_i - x^*\|\,/\,\|x_i^0 - x^*\|$",
    "error": r"error (common)   $\frac{1}{N}\,\sum_i\;\|x_i - x^*\|\,/\,\|x^*\|$",
    "token_error": r"error of the token   $\|z - x^*\|\,/\,\|x^*\|$",
    "mean_error": r"error of the mean   $\|\bar{x} - x^*\|\,/\,\|x^*\|$",
    "consensus": r"consensus   $(\frac{1}{N}\,\sum_i\;\|x_i - z\|^2)^{1/2}\,/\,\|x^*\|$",
    "objective_gap": r"objective gap   $\sum_i f_i(z) - \min_x\,\sum_i f_i(x)$",
}

# Columns that are relative to the size of x, so that 1e-16 is where rounding sets in.
RELATIVE = frozenset({"accuracy", "error", "token_error", "mean_error", "consensus"})


def label_of(column: str) -> str:
    """The label of a history column, be it a cost or an error; its own name, where it is a monitor's."""
    return (COSTS | LABELS).get(column, column.replace("_", " "))
