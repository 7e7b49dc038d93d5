"""Choose the engine, and put the module of a run together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from roundelay.algorithms.token_method import TokenMethod
from roundelay.engine import loop
from roundelay.engine.assemble import CannotCompileError, compiled_module, python_module, recipe
from roundelay.networks import Network
from roundelay.problems import Problem

EngineChoice = Literal["auto", "compiled", "python"]

SHAPES: tuple[Any, ...] = (loop.Agents, loop.Trail, loop.Gauge, loop.Log, loop.Post, loop.Reader, loop.Rule)


@dataclass(frozen=True, eq=False)
class Prepared:
    """The hop loop ready to be called, with the numbers of the parts, and which engine it is of."""

    travel: Callable[..., int]
    problem: Any
    method: Any
    walk: Any
    engine: Literal["compiled", "python"]
    reason: str
    functions: Any


def prepare(method: TokenMethod, problem: Problem, network: Network, choice: EngineChoice) -> Prepared:
    """The loop for this method on this problem and network, by the chosen engine."""
    if choice not in ("auto", "compiled", "python"):
        raise ValueError(f'engine is {choice!r}: use "auto", "compiled" or "python".')
    parts = (problem.kernel(), method.update(), method.walk.part(network))
    problem_numbers, method_numbers, walk_numbers = (part.numbers for part in parts)
    numbers = (problem_numbers, method_numbers, walk_numbers)
    handed = (*numbers, *(shape(*shape._fields) for shape in SHAPES))
    literals = (("DIM", problem.dim), ("TOKENS", method.tokens))
    entry = (("travel", loop.travel), *((slot, getattr(loop, slot)) for slot in HELPERS))

    def assemble(compiled: bool) -> Any:
        text = recipe(parts, handed, entry, literals, compiled)
        return (compiled_module if compiled else python_module)(text, problem.dim)

    plain = assemble(compiled=False)
    reason = "; ".join(part.why_not_compiled for part in parts if part.why_not_compiled)
    if choice == "python":
        return Prepared(plain.travel, *numbers, "python", "as asked", plain)
    if not reason:
        try:
            travel = assemble(compiled=True).travel
            why = "as asked" if choice == "compiled" else "every part of the run can be compiled"
            return Prepared(travel, *numbers, "compiled", why, plain)
        except CannotCompileError as error:
            reason = str(error)
    if choice == "compiled":
        raise CannotCompileError(
            f'The compiled engine can\'t run this: {reason}. Use engine="python" or engine="auto".'
        )
    return Prepared(plain.travel, *numbers, "python", reason, plain)


HELPERS = ("sum_distances", "sum_spread", "write_row", "mean_of_tokens", "all_content")
