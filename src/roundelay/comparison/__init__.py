"""Compare methods by what they cost, and tune them beforehand, each with the same effort."""

from roundelay.comparison.comparing import (
    MethodReport as MethodReport,
    compare as compare,
)
from roundelay.comparison.comparison import (
    Comparison as Comparison,
    Row as Row,
)
from roundelay.comparison.costs import (
    Reached as Reached,
    floor_of as floor_of,
    reached as reached,
)
from roundelay.comparison.tuning import (
    Tuning as Tuning,
    tune as tune,
    untuned as untuned,
)
