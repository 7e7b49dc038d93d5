"""Choose the engine, and put the module of a run together.

A run is made of parts, each with kernel functions in source (`Assembly`). Their texts, with all that they refer to, make
one module (`Recipe`), which runs as plain Python or is compiled and kept on disk (`prepare`).
"""

from __future__ import annotations

import ast
import atexit
import builtins
import gc
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
import time
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from roundelay.algorithms.gossip import GossipMethod
from roundelay.algorithms.gossip.mixing import MixingNumbers
from roundelay.algorithms.slots import Agents
from roundelay.algorithms.token_method import TokenMethod, vectors_of
from roundelay.engine import gossip_loop, token_loop
from roundelay.kernels import Exchange, Part, Visit, bulk, primitives, random, sparse, sums as compiled_sums
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
        crossing = conditions.part(network, network.neighbour_starts, network.neighbours, not method.walk.is_tour)
    first = int(network.tour().order[0]) if method.walk.is_tour else 0
    parts = (problem.kernel(), method.update(first), method.walk.part(network), crossing)
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


def prepare(assembly: Assembly, choice: EngineChoice, steps: int | None = None) -> Prepared:
    """The loop, by the chosen engine; for so many steps, if that is known."""
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
            if choice == "auto" and steps is not None and _is_over_soon(assembly, steps):
                return Prepared(plain().travel, numbers, "python", OVER_SOON, plain)
            travel = compiled_loop(recipe_of(assembly, compiled=True), assembly.dim)
        except CannotCompileError as error:
            reason = str(error)
        else:
            why = "as asked" if choice == "compiled" else "every part of the run can be compiled"
            return Prepared(travel, numbers, "compiled", why, plain)
    if choice == "compiled":
        raise CannotCompileError(
            f'The compiled engine can\'t run this: {reason.rstrip(".")}. Use engine="python" or engine="auto".'
        )
    return Prepared(plain().travel, numbers, "python", reason, plain)


# ---------------------------------------------------------------- what is over before it would be compiled

OVER_SOON = "the run is over before it would be compiled, and both engines have the same bits"
# So many hops take Python about a second in few coordinates; it makes them before a loop is compiled.
SHORT = 20_000
# In more coordinates than these fewer: a hop has up to as many sums, and all hops together are to take no longer than compiling does.
FEW_COORDINATES = 32
# All that kernel functions may read besides each other and numbers if both engines are to have the same bits.
ALIKE = frozenset(
    ("each", "vector", "prefetch", "dot", "norm", "distance", "uniform", "uniforms", "normals", "Visit", "math")
)
ALIKE_IN_MATH = frozenset(("sqrt", "inf", "pi", "copysign"))
ALIKE_BUILT_IN = frozenset(("range", "min", "max", "abs", "int", "float", "bool"))


def have_same_bits(recipe: Recipe, dim: int) -> bool:
    """Whether both engines give the same bits, by what the loop reads: nothing that is left to a BLAS, NumPy or a power."""
    texts, literals = dict(recipe.functions), {name for name, _ in recipe.literals}
    reached, queue = {"travel"}, ["travel"]
    while queue:
        tree = _parsed(texts[queue.pop()])
        names = _free_names(tree)
        if names - texts.keys() - literals - ALIKE - ALIKE_BUILT_IN or not _is_alike(tree):
            return False
        queue += (names & texts.keys()) - reached
        reached |= names & texts.keys()
    return dim < primitives.LEFT_TO_BLAS


def _is_alike(tree: ast.FunctionDef) -> bool:
    """Whether a function has no power, and of the module `math` only what is rounded correctly."""
    return not any(
        (isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Pow))
        or (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "math"
            and node.attr not in ALIKE_IN_MATH
        )
        for node in ast.walk(tree)
    )


@dataclass
class Allowance:
    """How many hops may still be made by Python, of all runs of one recipe in this process."""

    left: int

    def takes(self, hops: int) -> bool:
        """Whether there are so many; then they are gone."""
        enough = hops <= self.left
        self.left -= hops if enough else 0
        return enough


@cache
def _allowance(recipe: Recipe, dim: int) -> Allowance:
    fewer = max(1, dim // FEW_COORDINATES)
    return Allowance(SHORT // fewer if have_same_bits(recipe, dim) else -1)


def _is_over_soon(assembly: Assembly, steps: int) -> bool:
    """Whether Python makes these steps sooner than they would be compiled, with all that it has made of the same recipe."""
    return assembly.travel is token_loop.travel and _allowance(recipe_of(assembly, compiled=False), assembly.dim).takes(
        steps
    )


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
    # Literals that only hint at what the numbers say as well, and are 0 where nothing is known.
    hints: tuple[str, ...] = ()
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
        constants.update({**dict(part.literals), **dict(part.hints)})
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
                    functions[name] = meant = sparse.COMPILED.get(name, meant) if compiled else meant
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
        tuple(sorted({name for part in parts for name, _ in part.hints})),
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


# About what compiling takes: whoever waits with it until as much was spent without has lost half of his time at the most.
SECONDS_OF_COMPILING = 3.0


class CompiledLoop:
    """The loop, compiled: for any dimension, or with the dimension as a literal, which takes down to half the time a hop.

    It begins with the form for any dimension, unless the other is on disk. That is compiled beside the hops once as much time was
    spent without it as compiling takes, and the next piece goes on with it: all forms have the same bits. Where references must be
    counted there is but the literal form, since that counts a few only.
    """

    def __init__(self, recipe: Recipe, dim: int) -> None:
        self.recipe, self.dim = recipe, dim
        self.called, self.seconds = False, 0.0
        self.compiling: threading.Thread | None = None
        self._begin(counted=False)

    def _begin(self, counted: bool) -> None:
        general = form_of(self.recipe, self.dim, False, counted)
        self.counted, self.literal = general.counted, None
        if self.counted or _is_on_disk(form_of(self.recipe, self.dim, True)):
            self.take_literal()
        else:
            self.general = partial(module_of(general).travel, self.dim)

    def __call__(self, *arguments: Any) -> int:
        """Go on with the loop, which is handed these."""
        if self.called:
            return self._go_on(arguments)
        with _nothing_collected():
            try:
                status = self._go_on(arguments)
            except Exception as error:
                if self.counted or not is_from_numba(error):
                    raise
                # Perhaps a function makes an array, of which its text tells nothing; the first hop was not made yet.
                self._begin(counted=True)
                status = self._go_on(arguments)
        self.called, self.seconds = True, 0.0
        return status

    def _go_on(self, arguments: tuple[Any, ...]) -> int:
        if self.literal is not None:
            return int(self.literal(*arguments))
        began = time.perf_counter()
        status = self.general(*arguments)
        self.seconds += time.perf_counter() - began
        if self.called and self.seconds > SECONDS_OF_COMPILING and self.compiling is None:
            self.compiling = threading.Thread(target=self._compile_literal, args=(arguments,))
            self.compiling.start()
        return int(status)

    def take_literal(self) -> None:
        """From now on with the dimension as a literal, whatever compiling takes."""
        self.literal = compiled_module(self.recipe, self.dim, self.counted).travel

    def _compile_literal(self, arguments: tuple[Any, ...]) -> None:
        from numba import typeof

        travel = compiled_module(self.recipe, self.dim, self.counted).travel
        travel.compile(tuple(map(typeof, arguments)))
        self.literal = travel


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Without garbage collection: compiling makes millions of objects that stay, and looking through them takes a sixth of its time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def is_from_numba(error: Exception) -> bool:
    """Whether numba says that it can't compile something."""
    return type(error).__module__ == "numba.core.errors"


@cache
def compiled_loop(recipe: Recipe, dim: int) -> CompiledLoop:
    """One for all runs of this process."""
    return CompiledLoop(recipe, dim)


def compiled_module(recipe: Recipe, dim: int, counted: bool = False) -> types.ModuleType:
    """The module with every function compiled for this dimension, from disk where it has been compiled before."""
    return module_of(form_of(recipe, dim, True, counted))


@dataclass(frozen=True)
class Form:
    """A recipe as it is compiled: what fills `vector` and `matrix`, and whether references to arrays are counted.

    They must be where functions make some of their own.
    """

    recipe: Recipe
    scratch: tuple[tuple[str, str], ...]
    counted: bool

    @property
    def header(self) -> str:
        """What stands before the functions."""
        return f"{_HEADER}INNER, OUTER = {'COUNTED' if self.counted else 'UNCOUNTED'}\n"

    @property
    def text(self) -> str:
        """The module, whole."""
        import numba

        from roundelay.kernels import compiled

        provided = Path(compiled.__file__).read_text(encoding="utf-8")
        body = self.recipe.body.replace("\ndef ", "\n@njit(**INNER)\ndef ").replace(
            "@njit(**INNER)\ndef travel(", "@njit(**OUTER)\ndef travel("
        )
        return (
            f"# Put together by roundelay from its own source; edits are lost.\n# {_digest(provided)}\n# numba {numba.__version__}\n"
            f"{self.header}{_lines(dict(self.scratch))}\n\n{body}\n"
        )

    @property
    def name(self) -> str:
        """What the module is called, here and on disk: whatever else it were made of, it would be called otherwise."""
        return f"roundelay_{_digest(self.text)}"


def form_of(recipe: Recipe, dim: int, literal: bool, counted: bool = False) -> Form:
    """How a recipe is compiled for a dimension, which is a literal or is not."""
    from roundelay.kernels import (
        compiled,
    )  # late: numba takes most of a second, which the Python engine need not wait for

    names = frozenset[str]().union(*(_names_in(text) for _, text in recipe.functions))
    rooms = zip(("vector", "matrix"), compiled.scratch(dim, literal), strict=True)  # type: ignore[no-untyped-call]
    scratch = tuple((slot, room) for slot, room in rooms if slot in names)
    on_heap = any(room.startswith("heap") for _, room in scratch)
    counted = counted or on_heap or any(_makes_arrays(text) for _, text in recipe.functions)
    return Form(recipe if literal else for_any_dimension(recipe), scratch, counted)


def _is_on_disk(form: Form) -> bool:
    """Whether a form has been compiled before."""
    return any((cache_folder() / "__pycache__").glob(f"{form.name}.travel-*.nbi"))


def module_of(form: Form) -> types.ModuleType:
    """The module of a form, ready to be called."""
    with _READING:  # threads must share one module, or each would compile its own
        return _made_module(form)


@cache
def _made_module(form: Form) -> types.ModuleType:
    name = form.name
    path = cache_folder() / f"{name}.py"
    if not path.exists():
        # Written beside and moved into place, so that another process never reads half a file.
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False, encoding="utf-8") as file:
            file.write(form.text)
        os.replace(file.name, path)
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # numba looks a function's module up by name
    specification.loader.exec_module(module)
    _share(module, form)
    return module


def _lines(values: dict[str, str]) -> str:
    return "\n".join(f"{name} = {value}" for name, value in sorted(values.items()))


_HEADER = """from __future__ import annotations
import math
import numpy as np
from numba import njit
from roundelay.kernels.compiled import (
    COUNTED, UNCOUNTED, each, full_product, prefetch, stack_vector as eight_lanes,
    heap_matrix, heap_vector, roomy_matrix, roomy_vector, stack_matrix, stack_vector,
)
from roundelay.kernels.primitives import Exchange, Visit
"""

# What kernel functions may take from NumPy and still make no array, given numbers.
SCALAR = frozenset(
    (
        "uint64",
        "int64",
        "int32",
        "uint16",
        "uint8",
        "float32",
        "float64",
        "abs",
        "floor",
        "rint",
        "sign",
        "log",
        "exp",
        "sqrt",
        "minimum",
        "maximum",
    )
)


def _makes_arrays(text: str) -> bool:
    """Whether a function may make an array of its own, as far as its text tells."""
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "np"
        and node.attr not in SCALAR
        for node in ast.walk(_tree(text))
    )


def for_any_dimension(recipe: Recipe) -> Recipe:
    """The same functions, with DIM as the first argument of all that need it in the place of a literal; and without what only hints at it.

    The operations and their order are those of the literal form, and so are the bits.
    """
    reads = {slot: _free_names(_parsed(text)) for slot, text in recipe.functions}
    needing: set[str] = set()
    while more := {slot for slot, names in reads.items() if names & {"DIM", *needing}} - needing:
        needing |= more
    literals = ((name, 0 if name in recipe.hints else value) for name, value in recipe.literals if name != "DIM")
    functions = tuple((slot, _with_dim(text, slot in needing, needing)) for slot, text in recipe.functions)
    return replace(recipe, functions=functions, literals=tuple(literals), hints=())


def _with_dim(text: str, needs: bool, needing: set[str]) -> str:
    """A function's text where those `needing` it are handed DIM; this one among them if it `needs` it."""
    tree = _parsed(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in needing:
            node.args.insert(0, ast.Name("DIM"))
        elif isinstance(node, ast.FunctionDef) and needs:
            node.args.args.insert(0, ast.arg("DIM"))
    return ast.unparse(tree)


def _share(module: types.ModuleType, form: Form) -> None:
    """Let modules of one process have equal functions in common, so that each is compiled once and not per module.

    Functions are equal where their text is, and that of all they refer to. numba looks a name up when it compiles, so a
    module may still be given another function. The loop itself is kept on disk and stays the module's own.
    """
    recipe = form.recipe
    texts = dict(recipe.functions) | {name: _literal(value) for name, value in recipe.literals} | dict(form.scratch)
    slots = {slot for slot, _ in recipe.functions}
    for slot in slots - {"travel"}:
        setattr(module, slot, _shared_function(slot, slots, texts, form.header))


def _shared_function(slot: str, slots: set[str], texts: dict[str, str], header: str) -> Any:
    """The function in a module that has nothing else and is named by all it is made of.

    What numba keeps of a loop on disk names the modules of all that the loop calls. A process that finds it there has made
    them, too, whichever runs came before.
    """
    reached, queue = {slot}, [slot]
    while queue:
        new = _names_in(texts[queue.pop()]) & texts.keys() - reached
        reached |= new
        queue += new
    made_of = (header, slot, *(f"{name}: {texts[name]}" for name in sorted(reached)))
    name = f"roundelay_{_digest(chr(10).join(made_of))}"
    if name not in sys.modules:
        sys.modules[name] = module = types.ModuleType(name)
        literals = {other: texts[other] for other in reached - slots}
        text = f"{header}{_lines(literals)}\n\n\n@njit(**INNER)\n{texts[slot]}\n"
        path = f"<{name}>"
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        exec(compile(text, path, "exec"), module.__dict__)
        for other in _names_in(texts[slot]) & slots - {slot}:
            setattr(module, other, _shared_function(other, slots, texts, header))
    return getattr(sys.modules[name], slot)


def _tree(text: str) -> ast.Module:
    """One thread at a time."""
    with _READING:
        return ast.parse(text)


def _parsed(text: str) -> ast.FunctionDef:
    function = _tree(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    return function


@cache
def _names_in(text: str) -> frozenset[str]:
    """Every name in a piece of source, whatever it is there."""
    return frozenset(node.id for node in ast.walk(_tree(text)) if isinstance(node, ast.Name))


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

# CPython 3.11 counts for all threads together how deep it is in a tree, and stops where another one came in between (SystemError).
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
            tree = _tree(textwrap.dedent(inspect.getsource(function))).body[0]
        except (OSError, TypeError, SyntaxError, IndexError):
            raise CannotCompileError(
                f"The source of the kernel function {function.__qualname__} can't be read: define it in a file."
            ) from None
        if function.__name__ == "<lambda>":
            raise CannotCompileError(
                f"The kernel function {slot!r} is a lambda, whose source can't be told from what stands around it: define it by def."
            )
        if not isinstance(tree, ast.FunctionDef) or not _same_code(function):
            if (
                function.__code__.co_filename == "<string>"
            ):  # of which Python 3.13 takes what -c was given for the source
                raise CannotCompileError(
                    f"The source of the kernel function {function.__qualname__} can't be read: define it in a file."
                )
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
