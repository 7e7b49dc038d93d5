"""Kernel functions by themselves, as the compiled engine puts them together."""

from __future__ import annotations

from typing import Any

from roundelay.engine.assemble import compiled_module, recipe


def compiled(entry: Any) -> Any:
    """`entry` with all that it calls."""
    return compiled_module(recipe((), (), (("travel", entry),), (("DIM", 2), ("TOKENS", 1)), True), 2).travel


def within(measured: float, expected: float, error: float, times: float = 5.0) -> bool:
    """Whether a mean is as close to what it should be as its standard error allows."""
    return bool(abs(measured - expected) <= times * error)
