"""Compare methods by what they cost, and tune them beforehand, each with the same effort."""

from roundelay.comparison.comparing import MethodReport, compare
from roundelay.comparison.comparison import Comparison, Row
from roundelay.comparison.costs import Reached, floor_of, reached
from roundelay.comparison.tuning import Tuning, tune, untuned

__all__ = [
    "Comparison",
    "MethodReport",
    "Reached",
    "Row",
    "Tuning",
    "compare",
    "floor_of",
    "reached",
    "tune",
    "untuned",
]
