"""Options that are one of a few words."""

from __future__ import annotations

from enum import StrEnum


class Engine(StrEnum):
    """Which engine runs: "auto" is compiled where possible."""

    auto = "auto"
    compiled = "compiled"
    python = "python"


class ProblemKind(StrEnum):
    """The paper's two experiments."""

    least_squares = "least-squares"
    logistic = "logistic"
