"""Choose the engine, and put the module of a run together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from roundelay.algorithms.token_method import TokenMethod
from roundelay.engine import loop
from roundelay.engine.assemble import CannotCompileError, Recipe, compiled_module, python_module, recipe
from roundelay.networks import Network
from roundelay.problems import Problem

EngineChoice = Literal["auto", "compiled", "python"]

# With more agents than this their states no longer stay in the processor's cache from lap to lap.
MANY = 10_000

SHAPES: tuple[Any, ...] = (loop.Agents, loop.Trail, loop.Gauge, loop.Log, loop.Post, loop.Reader, loop.Rule)


@dataclass(frozen=True, eq=False)
class Prepared:
    """The hop loop ready to be called, with the numbers of the parts, which engine it is of and why.

    `functions()` is the module as plain Python, whose other functions can be called one by one.
    """

    travel: Callable[..., int]
    problem: Any
    method: Any
    walk: Any
    engine: Literal["compiled", "python"]
    reason: str
    functions: Callable[[], Any]


def recipe_of(method: TokenMethod, problem: Problem, network: Network, compiled: bool) -> Recipe:
    """All that the module of this run contains."""
    parts = (problem.kernel(), method.update(), method.walk.part(network))
    handed = (*(part.numbers for part in parts), *(shape(*shape._fields) for shape in SHAPES))
    literals = (("DIM", problem.dim), ("TOKENS", method.tokens), ("FAR", int(problem.agents > MANY)))
    defaults = (("agent_soon", loop.nobody_soon), ("fetch", loop.fetch_nothing))
    return recipe(parts, handed, (("travel", loop.travel),), literals, compiled, defaults)


def prepare(method: TokenMethod, problem: Problem, network: Network, choice: EngineChoice) -> Prepared:
    """The loop for this method on this problem and network, by the chosen engine."""
    if choice not in ("auto", "compiled", "python"):
        raise ValueError(f'engine is {choice!r}: use "auto", "compiled" or "python".')
    parts = (problem.kernel(), method.update(), method.walk.part(network))
    numbers = {"problem": parts[0].numbers, "method": parts[1].numbers, "walk": parts[2].numbers}

    def plain() -> Any:
        return python_module(recipe_of(method, problem, network, compiled=False), problem.dim)

    if choice == "python":
        return Prepared(plain().travel, engine="python", reason="as asked", functions=plain, **numbers)
    reason = "; ".join(part.why_not_compiled for part in parts if part.why_not_compiled)
    if not reason:
        try:
            module = compiled_module(recipe_of(method, problem, network, compiled=True), problem.dim)
        except CannotCompileError as error:
            reason = str(error)
        else:
            why = "as asked" if choice == "compiled" else "every part of the run can be compiled"
            return Prepared(module.travel, engine="compiled", reason=why, functions=plain, **numbers)
    if choice == "compiled":
        raise CannotCompileError(
            f'The compiled engine can\'t run this: {reason}. Use engine="python" or engine="auto".'
        )
    return Prepared(plain().travel, engine="python", reason=reason, functions=plain, **numbers)
