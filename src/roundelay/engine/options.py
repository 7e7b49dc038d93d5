"""How to run, and what to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roundelay.engine.choose import EngineChoice
from roundelay.engine.monitors import Monitor


@dataclass(frozen=True)
class Options:
    """How to run and what to keep; `simulate` explains each."""

    engine: EngineChoice
    record: int | Sequence[int] | None
    transcript: bool
    monitors: tuple[Monitor, ...]
    tolerance: float | None
    content: float | None
    reader: int
