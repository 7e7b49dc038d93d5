"""How to run, and what to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roundelay.engine.budgets import Budget
from roundelay.engine.choose import EngineChoice
from roundelay.engine.monitors import Monitor
from roundelay.networks.conditions import NetworkConditions


@dataclass(frozen=True)
class Options:
    """How to run and what to keep; `simulate` explains each."""

    hops: int | None
    iterations: int | None
    conditions: NetworkConditions | None
    engine: EngineChoice
    record: int | Sequence[int] | None
    transcript: bool
    monitors: tuple[Monitor, ...]
    tolerance: float | None
    content: float | None
    reader: int
    budget: Budget | None = None
