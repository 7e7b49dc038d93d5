"""Choose the engine, and put the module of a run together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from roundelay.algorithms.gossip import GossipMethod
from roundelay.algorithms.gossip.mixing import MixingNumbers
from roundelay.algorithms.token_method import TokenMethod, vectors_of
from roundelay.engine import gossip_loop, loop
from roundelay.engine.assemble import CannotCompileError, Recipe, compiled_module, python_module, recipe
from roundelay.kernels import Part
from roundelay.networks import Network
from roundelay.networks.conditions import NetworkConditions
from roundelay.networks.crossing import LinkStates
from roundelay.problems import Problem

EngineChoice = Literal["auto", "compiled", "python"]

# With more agents than this their states no longer stay in the processor's cache from lap to lap.
MANY = 10_000

TOKEN_SHAPES: tuple[Any, ...] = (loop.Agents, loop.Trail, loop.Gauge, loop.Log, loop.Post, loop.Reader, loop.Rule)
GOSSIP_SHAPES: tuple[Any, ...] = (gossip_loop.Mail, loop.Gauge, gossip_loop.GossipLog, gossip_loop.GossipRule)


@dataclass(frozen=True, eq=False)
class Assembly:
    """What a run is put together from: the parts, in the order of the loop's arguments, and the loop itself."""

    parts: tuple[Part, ...]
    travel: Callable[..., int]
    dim: int
    handed: tuple[Any, ...]
    literals: tuple[tuple[str, int], ...]
    defaults: tuple[tuple[str, Callable[..., Any]], ...]


@dataclass(frozen=True, eq=False)
class Prepared:
    """The loop ready to be called, with the numbers of the parts, which engine it is of and why.

    `functions()` is the module as plain Python, whose other functions can be called one by one.
    """

    travel: Callable[..., int]
    numbers: tuple[Any, ...]
    engine: Literal["compiled", "python"]
    reason: str
    functions: Callable[[], Any]


def token_assembly(
    method: TokenMethod, problem: Problem, network: Network, conditions: NetworkConditions | None = None
) -> Assembly:
    """What a token method is put together from."""
    crossing = Part(())
    if conditions is not None:
        crossing = conditions.part(network, network.neighbour_starts, network.neighbours)
    parts = (problem.kernel(), method.update(), method.walk.part(network), crossing)
    literals = (
        ("DIM", problem.dim),
        ("TOKENS", method.tokens),
        ("VECTORS", vectors_of(method)),
        ("FAR", int(problem.agents > MANY)),
    )
    return Assembly(parts, loop.travel, problem.dim, _shapes(TOKEN_SHAPES, conditions), literals, loop.DEFAULTS)


def gossip_assembly(
    method: GossipMethod,
    problem: Problem,
    network: Network,
    mixing: MixingNumbers,
    conditions: NetworkConditions | None = None,
) -> Assembly:
    """What a gossip method is put together from."""
    crossing = Part(())
    if conditions is not None:
        crossing = conditions.part(network, mixing.starts, mixing.neighbours)
    parts = (
        problem.kernel(),
        method.update(problem, network),
        method.channel.part(problem.dim),
        Part((), mixing),
        crossing,
    )
    literals = (
        ("DIM", problem.dim),
        ("VECTORS", method.vectors),
        ("EXCHANGES", method.exchanges(network)),
        ("INCREMENTS", int(method.sends_increments)),
    )
    states = method.start_states(problem, network, 0)
    handed = (states, *_shapes(GOSSIP_SHAPES, conditions))
    return Assembly(parts, gossip_loop.travel, problem.dim, handed, literals, gossip_loop.DEFAULTS)


def _shapes(shapes: tuple[Any, ...], conditions: NetworkConditions | None) -> tuple[Any, ...]:
    every = shapes if conditions is None else (*shapes, LinkStates)
    return tuple(shape(*shape._fields) for shape in every)


def recipe_of(assembly: Assembly, compiled: bool) -> Recipe:
    """All that the module of a run contains."""
    handed = (*(part.numbers for part in assembly.parts), *assembly.handed)
    entry = (("travel", assembly.travel),)
    return recipe(assembly.parts, handed, entry, assembly.literals, compiled, assembly.defaults)


def check_engine(choice: EngineChoice) -> None:
    """An engine is one of two, or left open."""
    if choice not in ("auto", "compiled", "python"):
        raise ValueError(f'engine is {choice!r}: use "auto", "compiled" or "python".')


def prepare(assembly: Assembly, choice: EngineChoice) -> Prepared:
    """The loop, by the chosen engine."""
    check_engine(choice)
    numbers = tuple(part.numbers for part in assembly.parts)

    def plain() -> Any:
        return python_module(recipe_of(assembly, compiled=False), assembly.dim)

    if choice == "python":
        module = plain()
        return Prepared(module.travel, numbers, "python", "as asked", lambda: module)
    reason = "; ".join(part.why_not_compiled for part in assembly.parts if part.why_not_compiled)
    if not reason:
        try:
            module = compiled_module(recipe_of(assembly, compiled=True), assembly.dim)
        except CannotCompileError as error:
            reason = str(error)
        else:
            why = "as asked" if choice == "compiled" else "every part of the run can be compiled"
            return Prepared(module.travel, numbers, "compiled", why, plain)
    if choice == "compiled":
        raise CannotCompileError(
            f'The compiled engine can\'t run this: {reason.rstrip(".")}. Use engine="python" or engine="auto".'
        )
    return Prepared(plain().travel, numbers, "python", reason, plain)
