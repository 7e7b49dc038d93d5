"""One compiled form for all dimensions, and one in which the dimension is a literal: the same bits, wherever one takes the other's place."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import roundelay as rl
from roundelay.algorithms import Conditions, OwnVisit
from roundelay.engine import assemble
from roundelay.engine.assemble import compiled_loop, form_of, prepare, recipe_of, token_assembly
from roundelay.kernels.primitives import LEFT_TO_BLAS

NETWORK = rl.random_network(7, 0.6, 1)
LOSSY = rl.NetworkConditions(loss=rl.BernoulliLoss(0.2), noise=1e-3)


def squares(dim: int) -> rl.LeastSquares:
    return rl.paper_least_squares(7, samples=9, dim=dim)


# Long and short sums, a matrix of the method's own, random draws, loss and noise; both families.
CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "token": (rl.PIADMM1(), squares(3), {"hops": 300}),
    "token, long sums": (rl.PIADMM1(), squares(21), {"hops": 300}),
    "Newton's method": (rl.IADMM(rho=1.0), rl.paper_logistic(7, samples=9, dim=3), {"hops": 100, "conditions": LOSSY}),
    "gossip": (rl.DADMM(0.7), squares(3), {"iterations": 40, "conditions": LOSSY}),
}


@pytest.fixture
def begin_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Whether runs find the literal form on disk; none remembers what others have made."""

    def begin(literal: bool) -> None:
        monkeypatch.setattr(assemble, "_is_on_disk", lambda form: literal)
        compiled_loop.cache_clear()

    return begin


def bits(run: rl.Run) -> tuple[bytes, ...]:
    return run.estimate.tobytes(), run.x.tobytes(), run.history["error"].to_numpy().tobytes()


@pytest.mark.parametrize("name", CASES)
def test_both_forms_have_the_same_bits(name: str, begin_with: Callable[[bool], None]) -> None:
    algorithm, problem, options = CASES[name]
    found = []
    for literal in (False, True):
        begin_with(literal)
        found.append(bits(rl.simulate(algorithm, problem, NETWORK, engine="compiled", record=10, seed=3, **options)))
    assert found[0] == found[1]


class AtOnce:
    """A thread that has ended before it begins."""

    def __init__(self, target: Callable[..., None], args: tuple[Any, ...]) -> None:
        self.target, self.args = target, args

    def start(self) -> None:
        self.target(*self.args)


def test_a_run_goes_on_with_the_literal_form_once_that_is_compiled(
    begin_with: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    algorithm, problem, _ = CASES["token"]
    begin_with(False)
    expected = bits(rl.simulate(algorithm, problem, NETWORK, 20_000, seed=3, engine="compiled"))
    begin_with(False)
    monkeypatch.setattr(assemble, "SECONDS_OF_COMPILING", 0.0)
    monkeypatch.setattr(assemble.threading, "Thread", AtOnce)
    loop = prepare(token_assembly(algorithm.parts(), problem, NETWORK), "compiled").travel
    assert isinstance(loop, assemble.CompiledLoop) and loop.literal is None
    taken = []

    def note(done: int, total: int) -> None:
        taken.append(loop.literal is not None)

    assert bits(rl.simulate(algorithm, problem, NETWORK, 20_000, seed=3, engine="compiled", progress=note)) == expected
    assert not taken[0] and taken[-1]


def test_another_dimension_needs_no_other_module() -> None:
    names = set()
    for dim in (2, 5, 21, 256):
        recipe = recipe_of(token_assembly(rl.IADMM().parts(), squares(dim), NETWORK), compiled=True)
        names.add(form_of(recipe, dim, literal=False).name)
    assert len(names) == 1


class Factor(NamedTuple):
    factor: float


def visit(problem: Any, method: Factor, at: Any, token: Any, states: Any, watch: bool) -> tuple[float, float]:
    shrunk = token * method.factor
    for d in range(token.shape[0]):
        token[d] = shrunk[d] + 1.0
        states.x[at.agent, d] = token[d]
    return 0.0, 0.0


@dataclass(frozen=True)
class Shrinking:
    """An update that makes an array, of which its text tells nothing."""

    name: ClassVar[str] = "shrinking"

    def parts(self) -> OwnVisit:
        return OwnVisit(visit, Factor(0.5))

    def conditions(self, problem: Any) -> Conditions:
        return Conditions()


def test_a_function_that_makes_arrays_is_compiled_all_the_same() -> None:
    run = rl.simulate(Shrinking(), squares(2), NETWORK, 50, engine="compiled")
    expected = 0.0
    for _ in range(50):
        expected = 0.5 * expected + 1.0
    np.testing.assert_array_equal(run.token, np.full(2, expected))


def test_a_short_run_is_pythons_until_there_have_been_many(begin_with: Callable[[bool], None]) -> None:
    algorithm, problem, _ = CASES["token"]
    assemble._allowance.cache_clear()
    first = rl.simulate(algorithm, problem, NETWORK, assemble.SHORT - 200, seed=3)
    assert first.engine == "python" and first.engine_reason == assemble.OVER_SOON
    assert rl.simulate(algorithm, problem, NETWORK, 200, seed=3).engine == "python"
    later = rl.simulate(algorithm, problem, NETWORK, 200, seed=3)
    assert later.engine == "compiled"
    again = rl.simulate(algorithm, problem, NETWORK, assemble.SHORT - 200, seed=3)
    assert again.engine == "compiled" and bits(again) == bits(first)


@pytest.mark.parametrize("name", ["token", "token, long sums"])
def test_both_engines_have_the_same_bits(name: str, begin_with: Callable[[bool], None]) -> None:
    algorithm, problem, options = CASES[name]
    assemble._allowance.cache_clear()
    begin_with(False)
    soon, compiled = (
        rl.simulate(algorithm, problem, NETWORK, engine=engine, seed=3, record=10, **options)  # type: ignore[call-overload]
        for engine in ("auto", "compiled")
    )
    assert soon.engine == "python" and compiled.engine == "compiled" and bits(soon) == bits(compiled)
    assert soon.history.equals(compiled.history) and soon.y.tobytes() == compiled.y.tobytes()


def test_python_makes_fewer_hops_the_more_coordinates_there_are() -> None:
    recipe = recipe_of(token_assembly(rl.IADMM().parts(), squares(2), NETWORK), compiled=False)
    assemble._allowance.cache_clear()
    lengths = [assemble._allowance(recipe, dim).left for dim in (2, 20, 100, 1000, LEFT_TO_BLAS)]
    assert lengths == [20_000, 20_000, 6_666, 645, -1]


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("token")])
def test_no_run_is_pythons_where_the_engines_differ(name: str) -> None:
    algorithm, problem, options = CASES[name]
    assert rl.simulate(algorithm, problem, NETWORK, **options).engine == "compiled"


@pytest.mark.parametrize(
    "line",
    [
        "token[0] += np.abs(token[1])",
        "token[0] = token[1] ** at.turn",
        "token[0] = math.exp(token[1])",
        "token[0] **= 2",
    ],
)
def test_what_may_be_rounded_otherwise_is_seen(line: str) -> None:
    problem = squares(2)
    recipe = recipe_of(token_assembly(rl.IADMM().parts(), problem, NETWORK), compiled=False)
    assert assemble.have_same_bits(recipe, 2) and not assemble.have_same_bits(recipe, LEFT_TO_BLAS)
    functions = dict(recipe.functions)
    functions["visit"] = functions["visit"].replace("\n", f"\n    {line}\n", 1)
    assert not assemble.have_same_bits(replace(recipe, functions=tuple(functions.items())), 2)


def test_seeds_in_threads_may_all_read_source_at_once() -> None:
    """Where the interpreter changes threads in the middle of a tree, CPython 3.11 raises a SystemError of its own."""
    text = "\n".join(f"def f{k}(a, b):\n    return [a + b * {k}, (a, b)]" for k in range(60))

    def change_threads(phase: str, about: dict[str, int]) -> None:
        time.sleep(1e-4)

    often = gc.get_threshold()
    gc.callbacks.append(change_threads)
    gc.set_threshold(20)
    try:
        with ThreadPoolExecutor(4) as threads:
            trees = list(threads.map(assemble._tree, [text] * 20))
    finally:
        gc.set_threshold(*often)
        gc.callbacks.remove(change_threads)
    assert {len(tree.body) for tree in trees} == {60}
