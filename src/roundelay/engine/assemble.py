"""Choose the engine, and put the module of a run together.

A run is made of parts, each with kernel functions in source (`Assembly`). Their texts, with all that they refer to, make
one module (`Recipe`), which runs as plain Python or is compiled and kept on disk (`prepare`).
"""

from __future__ import annotations

import ast
import atexit
import builtins
import hashlib
import importlib.util
import inspect
import linecache
import math
import os
import shutil
import sys
import tempfile
import textwrap
import threading
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from roundelay.algorithms.gossip import GossipMethod
from roundelay.algorithms.gossip.mixing import MixingNumbers
from roundelay.algorithms.slots import Agents
from roundelay.algorithms.token_method import TokenMethod, vectors_of
from roundelay.engine import gossip_loop, token_loop
from roundelay.kernels import Exchange, Part, Visit, bulk, primitives, random, sums as compiled_sums
from roundelay.links.conditions import NetworkConditions
from roundelay.links.crossing import LinkStates
from roundelay.networks import Network
from roundelay.problems import Problem

EngineChoice = Literal["auto", "compiled", "python"]

# With more agents than this their states no longer stay in the processor's cache from lap to lap.
MANY = 10_000

TOKEN_SHAPES: tuple[Any, ...] = (
    Visit,
    Agents,
    token_loop.Trail,
    token_loop.Gauge,
    token_loop.Log,
    token_loop.Post,
    token_loop.Reader,
    token_loop.Rule,
)
GOSSIP_SHAPES: tuple[Any, ...] = (
    Exchange,
    gossip_loop.Mail,
    token_loop.Gauge,
    gossip_loop.GossipLog,
    gossip_loop.GossipRule,
)


class CannotCompileError(ValueError):
    """The compiled engine can't run this, for the reason that the message gives."""


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
    return Assembly(
        parts, token_loop.travel, problem.dim, _handed_shapes(TOKEN_SHAPES, conditions), literals, token_loop.DEFAULTS
    )


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
    handed = (states, *_handed_shapes(GOSSIP_SHAPES, conditions))
    return Assembly(parts, gossip_loop.travel, problem.dim, handed, literals, gossip_loop.DEFAULTS)


def _handed_shapes(shapes: tuple[Any, ...], conditions: NetworkConditions | None) -> tuple[Any, ...]:
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


# ---------------------------------------------------------------- all that a module contains

PRIMITIVES = ("each", "vector", "matrix", "prefetch", "dot", "norm", "distance", "solve_positive")
SUMS = ("gather", "flagged", "latest")
DRAWS = ("uniform", "uniforms", "normals", "chances")
BULK = (("random_words", bulk.random_words), ("draw_gaps", bulk.draw_gaps))
COMPILED = (
    ("dot", compiled_sums.dot),
    ("norm", compiled_sums.norm),
    ("distance", compiled_sums.distance),
    ("solve_positive", compiled_sums.solve_positive),
    ("gather", compiled_sums.gather),
    ("flagged", compiled_sums.flagged),
    ("latest", compiled_sums.latest),
    ("uniform", random.compiled_uniform),
    ("uniforms", random.compiled_uniforms),
    ("normals", random.compiled_normals),
    ("chances", random.compiled_chances),
    ("random_words", bulk.compiled_words),
    ("draw_gaps", bulk.compiled_gaps),
    ("block_of_bits", bulk.block_of_bits),
    ("philox32", bulk.philox32),
    ("block_of_words", random.block_of_words),
    ("block_of_uniforms", random.block_of_uniforms),
    ("philox", random.philox),
)
MODULES = {"math": math, "np": np}
# Kernel functions may make these of their numbers.
TUPLES = ("Visit", "Exchange")


@dataclass(frozen=True)
class Recipe:
    """All that a module contains: functions by slot, literals, and the shapes of what it is handed."""

    functions: tuple[tuple[str, str], ...]
    literals: tuple[tuple[str, int | float], ...]
    handed: tuple[str, ...]
    # Other things that functions refer to: the plain module is given them as they are.
    others: tuple[tuple[str, Any], ...] = field(default=(), compare=False)

    @property
    def body(self) -> str:
        """The functions' text, with the literals before them."""
        constants = "\n".join(f"{name} = {_literal(value)}" for name, value in self.literals)
        shapes = "\n".join(f"# handed: {shape}" for shape in self.handed)
        return "\n\n\n".join((shapes, constants, *(text for _, text in self.functions)))


def recipe(
    parts: Iterable[Part],
    handed: Iterable[Any],
    entry: tuple[tuple[str, Callable[..., Any]], ...],
    literals: tuple[tuple[str, int], ...],
    compiled: bool,
    defaults: tuple[tuple[str, Callable[..., Any]], ...] = (),
) -> Recipe:
    """Collect the source of every function that is needed, with the constants and helpers that it refers to.

    `defaults` fill slots that no part fills.
    """
    parts = tuple(parts)
    functions: dict[str, Callable[..., Any]] = dict(COMPILED) if compiled else {}
    for slot, function in (*entry, *(pair for part in parts for pair in part.functions)):
        if functions.setdefault(slot, function) is not function:
            raise ValueError(f"Two parts both provide the kernel function {slot!r}: give one of them another name.")
    for slot, function in defaults:
        functions.setdefault(slot, function)
    wrapped: dict[str, frozenset[str]] = {}  # of a function inside another part, the names that are that part's own
    for inner in filter(None, (part.inner for part in parts)):
        own = frozenset(slot for slot, _ in inner.functions)
        functions |= {f"inner_{slot}": function for slot, function in inner.functions}
        wrapped |= dict.fromkeys((f"inner_{slot}" for slot in own), own)
    constants: dict[str, int | float] = dict(literals)
    for part in parts:
        constants.update(part.literals)
    chosen = set(constants)
    provided = {*PRIMITIVES, *SUMS, *(("full_product", "eight_lanes") if compiled else (*DRAWS, *dict(BULK)))}
    texts: dict[str, str] = {}
    others: dict[str, Any] = {}
    queue = list(functions.items())
    while queue:
        slot, function = queue.pop()
        texts[slot], names = _definition(function, slot, wrapped.get(slot, frozenset()))
        for name in names - chosen - {*MODULES, *TUPLES}:
            meant = function.__globals__.get(name, _MISSING)
            if meant is _MISSING and (hasattr(builtins, name) or name in functions or name in provided):
                continue
            if isinstance(meant, (bool, int, float)):
                if constants.setdefault(name, meant) is not meant and constants[name] != meant:
                    raise _clash(name, function)
            elif inspect.isfunction(meant):
                if name not in provided and name not in functions:
                    functions[name] = meant
                    queue.append((name, meant))
                elif not _same_function(meant, functions.get(name)):
                    raise _clash(name, function)
            elif not compiled and meant is not _MISSING:
                if others.setdefault(name, meant) is not meant:
                    raise _clash(name, function)
            else:
                raise CannotCompileError(
                    f"The kernel function {function.__qualname__} uses the name {name!r}, which is neither a number, a function, "
                    "a primitive of roundelay.kernels nor a module that kernels may use (math, np): pass it in as an argument."
                )
    return Recipe(
        tuple(sorted(texts.items())),
        tuple(sorted(constants.items())),
        tuple(sorted(_shapes(handed))),
        tuple(others.items()),
    )


def _same_function(meant: Callable[..., Any], filler: Callable[..., Any] | None) -> bool:
    """Whether a name means what the module has under it: the same function, an open slot, or a primitive."""
    own = meant.__module__.startswith("roundelay.kernels.")
    return meant is filler or getattr(meant, "is_slot", False) or own


def _clash(name: str, function: Callable[..., Any]) -> ValueError:
    return ValueError(
        f"The name {name!r} in the kernel function {function.__qualname__} means something else in another kernel function "
        "of the same run: give one of them another name."
    )


# ---------------------------------------------------------------- the module, plain and compiled


def python_module(recipe: Recipe, dim: int) -> types.ModuleType:
    """The module as plain Python; made anew where it refers to objects that may be others the next time."""
    return _python_module.__wrapped__(recipe, dim) if recipe.others else _python_module(recipe, dim)


@cache
def _python_module(recipe: Recipe, dim: int) -> types.ModuleType:
    text = f"from __future__ import annotations\nimport math\nimport numpy as np\n\n{recipe.body}\n"
    name = f"roundelay_python_{_digest(text)}"
    module = types.ModuleType(name)
    for primitive in (*PRIMITIVES, *SUMS, *TUPLES):
        setattr(module, primitive, getattr(primitives, primitive))
    for draw in DRAWS:
        setattr(module, draw, getattr(random, draw))
    for draw, function in BULK:
        setattr(module, draw, function)
    for other, value in recipe.others:
        setattr(module, other, value)
    path = f"<{name}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), module.__dict__)
    return module


def compiled_module(recipe: Recipe, dim: int) -> types.ModuleType:
    """The module with every function compiled, from disk where it has been compiled before."""
    with _READING:  # threads must share one module, or each would compile its own
        return _compiled_module(recipe, dim)


@cache
def _compiled_module(recipe: Recipe, dim: int) -> types.ModuleType:
    import numba  # late: it takes most of a second, which the Python engine need not wait for

    from roundelay.kernels import compiled

    provided = Path(compiled.__file__).read_text(encoding="utf-8")
    vector, matrix = compiled.scratch(dim)  # type: ignore[no-untyped-call]
    body = recipe.body.replace("\ndef ", "\n@njit(**INNER)\ndef ").replace(
        "@njit(**INNER)\ndef travel(", "@njit(**OUTER)\ndef travel("
    )
    text = (
        f"# Put together by roundelay from its own source; edits are lost.\n# {_digest(provided)}\n# numba {numba.__version__}\n"
        f"{_HEADER}vector = {vector}\nmatrix = {matrix}\n\n{body}\n"
    )
    name = f"roundelay_{_digest(text)}"
    folder = cache_folder()
    path = folder / f"{name}.py"
    if not path.exists():
        # Written beside and moved into place, so that another process never reads half a file.
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".tmp", delete=False, encoding="utf-8") as file:
            file.write(text)
        os.replace(file.name, path)
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # numba looks a function's module up by name
    specification.loader.exec_module(module)
    _share(module, recipe, {"vector": vector, "matrix": matrix})
    return module


_HEADER = """from __future__ import annotations
import math
import numpy as np
from numba import njit
from roundelay.kernels.compiled import (
    INNER, OUTER, each, full_product, prefetch, stack_vector as eight_lanes,
    heap_matrix, heap_vector, stack_matrix, stack_vector,
)
from roundelay.kernels.primitives import Exchange, Visit
"""


def _share(module: types.ModuleType, recipe: Recipe, scratch: dict[str, str]) -> None:
    """Let modules of one process have equal functions in common, so that each is compiled once and not per module.

    Functions are equal where their text is, and that of all they refer to. numba looks a name up when it compiles, so a
    module may still be given another function. The loop itself is kept on disk and stays the module's own.
    """
    texts = dict(recipe.functions) | {name: _literal(value) for name, value in recipe.literals} | scratch
    slots = {slot for slot, _ in recipe.functions}
    for slot in slots - {"travel"}:
        setattr(module, slot, _shared_function(slot, slots, texts))


def _shared_function(slot: str, slots: set[str], texts: dict[str, str]) -> Any:
    """The function in a module that has nothing else and is named by all it is made of.

    What numba keeps of a loop on disk names the modules of all that the loop calls. A process that finds it there has made
    them, too, whichever runs came before.
    """
    reached, queue = {slot}, [slot]
    while queue:
        new = _names_in(texts[queue.pop()]) & texts.keys() - reached
        reached |= new
        queue += new
    name = f"roundelay_{_digest(chr(10).join((slot, *(f'{name}: {texts[name]}' for name in sorted(reached)))))}"
    if name not in sys.modules:
        sys.modules[name] = module = types.ModuleType(name)
        literals = "\n".join(f"{other} = {texts[other]}" for other in sorted(reached - slots))
        text = f"{_HEADER}{literals}\n\n\n@njit(**INNER)\n{texts[slot]}\n"
        path = f"<{name}>"
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        exec(compile(text, path, "exec"), module.__dict__)
        for other in _names_in(texts[slot]) & slots - {slot}:
            setattr(module, other, _shared_function(other, slots, texts))
    return getattr(sys.modules[name], slot)


@cache
def _names_in(text: str) -> frozenset[str]:
    """Every name in a piece of source, whatever it is there."""
    return frozenset(node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name))


@cache
def cache_folder() -> Path:
    """Where compiled modules are kept: ROUNDELAY_CACHE, or the user's cache folder, or a temporary one."""
    chosen = os.environ.get("ROUNDELAY_CACHE")
    try:
        folder = (
            Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roundelay"
        )
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):  # not writable, or no home
        temporary = Path(tempfile.mkdtemp(prefix="roundelay-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        return temporary


# ---------------------------------------------------------------- functions as text

_MISSING = object()

# Python 3.11's parser counts its depth for all threads together and fails when two use it at once.
_READING = threading.RLock()


@cache
def _definition(
    function: Callable[..., Any], slot: str, wrapped: frozenset[str] = frozenset()
) -> tuple[str, frozenset[str]]:
    """The function's text under the name of its slot, without docstring and annotations, and the names it reads.

    Names that are `wrapped` stand for those of the part inside.
    """
    with _READING:
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        except (OSError, TypeError, SyntaxError, IndexError):
            raise CannotCompileError(
                f"The source of the kernel function {function.__qualname__} can't be read: define it in a file."
            ) from None
        if function.__name__ == "<lambda>":
            raise CannotCompileError(
                f"The kernel function {slot!r} is a lambda, whose source can't be told from what stands around it: define it by def."
            )
        if not isinstance(tree, ast.FunctionDef) or not _same_code(function):
            raise CannotCompileError(
                f"The file of the kernel function {function.__qualname__} has changed since it was imported: start Python anew."
            )
        tree.name = slot
        tree.decorator_list = []
        tree.returns = None
        for argument in (*tree.args.args, *tree.args.posonlyargs, *tree.args.kwonlyargs):
            argument.annotation = None
        if isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant):
            tree.body = tree.body[1:] or [ast.Pass()]
        for node in ast.walk(tree) if wrapped else ():
            if isinstance(node, ast.Name) and node.id in wrapped:
                node.id = f"inner_{node.id}"
        return ast.unparse(tree), frozenset(_free_names(tree))


def _same_code(function: Callable[..., Any]) -> bool:
    """Whether the file still holds the function that is in memory."""
    wanted = function.__code__
    text = "".join(linecache.getlines(wanted.co_filename))
    return any(
        code.co_qualname == wanted.co_qualname
        and code.co_firstlineno == wanted.co_firstlineno
        and code.co_code == wanted.co_code
        and code.co_consts == wanted.co_consts
        and code.co_names == wanted.co_names
        for code in _codes_of(text, wanted.co_filename)
    )


@cache
def _codes_of(text: str, filename: str) -> tuple[types.CodeType, ...]:
    """The code of every function in a file."""
    found, queue = [], [compile(text, filename, "exec", dont_inherit=True)]
    while queue:
        inner = [constant for constant in queue.pop().co_consts if isinstance(constant, types.CodeType)]
        found += inner
        queue += inner
    return tuple(found)


def _literal(value: float) -> str:
    return repr(value) if math.isfinite(value) else f"float({str(value)!r})"


def _free_names(tree: ast.FunctionDef) -> set[str]:
    """The names that a function reads and does not define."""
    loads: set[str] = set()
    stores = {node.arg for node in ast.walk(tree.args) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (loads if isinstance(node.ctx, ast.Load) else stores).add(node.id)
    return loads - stores


def _shapes(handed: Iterable[Any]) -> set[str]:
    """The names of the fields of every NamedTuple among the arguments, nested ones too."""
    shapes = set()
    for value in handed:
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            # With the module: numba's index on disk names it, and must not be read after it has moved.
            shapes.add(f"{type(value).__module__}.{type(value).__qualname__}({', '.join(value._fields)})")
            shapes |= _shapes(value)
    return shapes


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
