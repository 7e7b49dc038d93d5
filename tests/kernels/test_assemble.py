"""How kernel functions are put together into one module."""

from __future__ import annotations

import importlib.util
import itertools
import linecache
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from roundelay.engine.assemble import CannotCompileError, compiled_module, python_module, recipe
from roundelay.kernels import DIM, Part, each, vector

LIMIT = 3
RATE = 0.25
TABLE = [1.0, 2.0]
COUNT: int = 0
NUMBERS = (("DIM", 3), ("TOKENS", 1))
UNIQUE = itertools.count()


def halve(x: Any, out: Any) -> None:
    """With a docstring, and a helper of its own."""
    for d in each(DIM):
        out[d] = helper(x[d])


def helper(value: float) -> float:
    return RATE * value * LIMIT


def uses_a_table(x: Any, out: Any) -> None:
    out[0] = TABLE[0]


def uses_nothing_known(x: Any, out: Any) -> None:
    out[0] = nowhere_defined  # noqa: F821


def counts(x: Any, out: Any) -> float:
    space = vector(DIM)
    for d in each(DIM):
        space[d] = x[d] + COUNT
        out[d] = space[d]
    return 0.0


def other_halve(x: Any, out: Any) -> None:
    for d in each(DIM):
        out[d] = 0.5 * x[d]


def built(parts: tuple[Part, ...], entry: Callable[..., Any], compiled: bool) -> Callable[..., Any]:
    text = recipe(parts, (), (("travel", entry),), NUMBERS, compiled)
    return (compiled_module if compiled else python_module)(text, 3).travel


@pytest.mark.parametrize("compiled", [False, True])
def test_helpers_and_constants_come_along(compiled: bool) -> None:
    out = np.empty(3)
    built((), halve, compiled)(np.array([1.0, -2.0, 4.0]), out)
    np.testing.assert_array_equal(out, [0.75, -1.5, 3.0])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("count", [5, -7])
def test_literals_take_the_place_of_the_names(count: int, compiled: bool) -> None:
    out = np.empty(3)
    part = Part((), literals=(("COUNT", count),))
    built((part,), counts, compiled)(np.zeros(3), out)
    np.testing.assert_array_equal(out, np.full(3, float(count)))


def twice_counted(x: Any, out: Any) -> None:
    counts_again(x, out)


def counts_again(x: Any, out: Any) -> None:
    counts(x, out)


def halved_and_counted(x: Any, out: Any) -> None:
    halve(x, out)
    counts_again(out, out)


def test_modules_have_in_common_what_is_equal_down_to_the_last_number() -> None:
    def module(entry: Callable[..., Any], count: int, dim: int = 3) -> ModuleType:
        part = Part((), literals=(("COUNT", count),))
        return compiled_module(recipe((part,), (), (("travel", entry),), (("DIM", dim), ("TOKENS", 1)), True), dim)

    one, other = module(twice_counted, 5), module(halved_and_counted, 5)
    another_number, another_length = module(halved_and_counted, 6), module(halved_and_counted, 5, 4)
    too_long = module(halved_and_counted, 5, 300)
    assert one.travel is not other.travel
    assert one.counts_again is other.counts_again and one.counts is other.counts
    # The number stands two calls below; `counts` reads the length. Of 300 numbers its scratch is on the heap, where references count.
    assert another_number.counts_again is not one.counts_again
    assert another_number.halve is other.halve and another_number.helper is other.helper
    assert another_length.counts is not one.counts and another_length.helper is other.helper
    assert too_long.counts is not one.counts and too_long.helper is not other.helper
    # Compiled in this order, each module still does what its own text says.
    for assembled, dim, expected in (
        (one, 3, 9.0),
        (other, 3, 8.0),
        (another_number, 3, 9.0),
        (another_length, 4, 8.0),
        (too_long, 300, 8.0),
    ):
        out = np.empty(dim)
        assembled.travel(np.full(dim, 4.0), out)
        np.testing.assert_array_equal(out, np.full(dim, expected))


def test_without_a_literal_the_module_s_own_number_counts() -> None:
    out = np.empty(3)
    built((), counts, False)(np.ones(3), out)
    np.testing.assert_array_equal(out, np.ones(3))


@pytest.mark.parametrize(
    ("function", "compiled"), [(uses_a_table, True), (uses_nothing_known, False), (uses_nothing_known, True)]
)
def test_unknown_names_are_refused(function: Callable[..., Any], compiled: bool) -> None:
    name = "TABLE" if function is uses_a_table else "nowhere_defined"
    with pytest.raises(ValueError, match=f"{function.__name__} uses the name '{name}'") as caught:
        recipe((), (), (("travel", function),), NUMBERS, compiled)
    assert re.match(r"^[A-Z].*: pass it in as an argument\.$", str(caught.value))


def test_two_parts_with_one_slot_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^Two parts both provide the kernel function 'halve': .*\.$"):
        recipe((Part((("halve", halve),)), Part((("halve", other_halve),))), (), (), NUMBERS, False)
    twice = recipe((Part((("halve", halve),)), Part((("halve", halve),))), (), (), NUMBERS, False)
    assert [slot for slot, _ in twice.functions].count("halve") == 1


def test_a_function_without_a_file_is_refused() -> None:
    space: dict[str, Any] = {}
    exec("def lonely(x, out):\n    out[0] = x[0]\n", space)
    with pytest.raises(CannotCompileError, match=r"^The source of the kernel function lonely can't be read: .*\.$"):
        recipe((), (), (("travel", space["lonely"]),), NUMBERS, False)


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Callable[[str], ModuleType]]:
    """Write a module into a file of its own and import it; written again, the file is edited under it."""
    name = f"kernels_of_a_user_{next(UNIQUE)}"
    path = tmp_path / f"{name}.py"

    def writer(text: str) -> ModuleType:
        path.write_text(text, encoding="utf-8")
        if name not in sys.modules:
            specification = importlib.util.spec_from_file_location(name, path)
            assert specification is not None and specification.loader is not None
            sys.modules[name] = importlib.util.module_from_spec(specification)
            specification.loader.exec_module(sys.modules[name])
        else:
            later = path.stat().st_mtime + 10.0
            os.utime(path, (later, later))
            linecache.checkcache(str(path))
        return sys.modules[name]

    yield writer
    sys.modules.pop(name, None)


def test_a_file_that_changed_since_its_import_is_refused(write: Callable[[str], ModuleType]) -> None:
    module = write("def used(x, out):\n    out[0] = 2.0 * x[0]\n\n\ndef scale(x, out):\n    out[0] = 2.0 * x[0]\n")
    out = np.empty(3)
    built((), module.used, False)(np.ones(3), out)
    assert out[0] == 2.0
    write("def used(x, out):\n    out[0] = 3.0 * x[0]\n\n\ndef scale(x, out):\n    out[0] = 3.0 * x[0]\n")
    with pytest.raises(CannotCompileError, match=r"scale has changed since it was imported: start Python anew\.$"):
        recipe((), (), (("travel", module.scale),), NUMBERS, False)
    # What was read before the edit goes on as the function that is in memory.
    built((), module.used, False)(np.ones(3), out)
    assert out[0] == 2.0


def test_the_order_of_the_parts_does_not_matter() -> None:
    one, other = Part((("halve", halve),)), Part((("counts", counts),))
    assert recipe((one, other), (), (), NUMBERS, True) == recipe((other, one), (), (), NUMBERS, True)


def test_a_helper_of_the_same_name_in_another_module_is_refused(tmp_path: Path) -> None:
    first = load_module(
        tmp_path, "first", "def helper(x):\n    return x + 1.0\n\n\ndef one(x):\n    return helper(x)\n"
    )
    second = load_module(
        tmp_path, "second", "def helper(x):\n    return x * 1e5\n\n\ndef two(x):\n    return helper(x)\n"
    )
    parts = [Part((("one", first.one),)), Part((("two", second.two),))]
    with pytest.raises(ValueError, match=r"'helper' in the kernel function .* means something else"):
        recipe(parts, (), (), (), compiled=False)


def test_a_constant_of_the_same_name_and_another_value_is_refused(tmp_path: Path) -> None:
    first = load_module(tmp_path, "third", "LIMIT = 1.0\n\n\ndef one(x):\n    return x + LIMIT\n")
    second = load_module(tmp_path, "fourth", "LIMIT = 2.0\n\n\ndef two(x):\n    return x + LIMIT\n")
    parts = [Part((("one", first.one),)), Part((("two", second.two),))]
    with pytest.raises(ValueError, match="'LIMIT' in the kernel function"):
        recipe(parts, (), (), (), compiled=False)


def test_infinite_constants_survive(tmp_path: Path) -> None:
    module = load_module(tmp_path, "fifth", "FAR = float('inf')\n\n\ndef one(x):\n    return min(x, FAR)\n")
    assembled = python_module(recipe([Part((("one", module.one),))], (), (), (), compiled=False), 1)
    assert assembled.one(3.0) == 3.0 and float("inf") == assembled.FAR


def test_functions_that_swapped_places_in_their_file_are_refused(tmp_path: Path) -> None:
    text = "def aaa(x):\n    return x + 1.0\n\n\ndef bbb(x):\n    return x + 2.0\n"
    module = load_module(tmp_path, "sixth", text)
    swapped = "def bbb(x):\n    return x + 2.0\n\n\ndef aaa(x):\n    return x + 1.0\n"
    Path(module.__file__).write_text(swapped, encoding="utf-8")
    with pytest.raises(CannotCompileError, match="has changed since it was imported"):
        recipe([Part((("one", module.aaa),))], (), (), (), compiled=False)


def load_module(folder: Path, name: str, text: str) -> ModuleType:
    path = folder / f"kernels_{name}.py"
    path.write_text(text, encoding="utf-8")
    specification = importlib.util.spec_from_file_location(f"kernels_{name}", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
