"""A part of an algorithm or a problem, as the engines see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def slot(function: Function) -> Function:
    """Mark a function as a hole that a part fills: calls of it go to the part's function of the same name."""
    function.is_slot = True  # type: ignore[attr-defined]
    return function


class Numbers(NamedTuple):
    """No numbers: what a part without parameters hands to its functions."""


@dataclass(frozen=True, eq=False)
class Part:
    """Kernel functions, the numbers they read, and the literals they are compiled with.

    `functions` pairs the name that other functions call (a slot) with the function that fills it.
    `numbers` is a NamedTuple of arrays and floats, handed to the functions at run time, so that new
    values need no new compilation. `literals` become constants of the compiled module.
    `why_not_compiled` is empty where the functions can be compiled, and otherwise says why they can't.
    """

    functions: tuple[tuple[str, Callable[..., Any]], ...]
    numbers: Any = Numbers()
    literals: tuple[tuple[str, int], ...] = ()
    why_not_compiled: str = ""
