"""Objectives of a site's own: what is loaded, and what is said where that fails."""

from pathlib import Path

import numpy as np
import pytest

from roundelay.agents.data.objectives import load_objective

QUADRATIC = """
from __future__ import annotations
from dataclasses import dataclass
import numpy as np

@dataclass(frozen=True)
class Quadratic:
    target: tuple[float, ...] = (1.0, -2.0)

    def gradient(self, x):
        return 3.0 * (x - np.array(self.target))

    def value(self, x):
        return 1.5 * float(((x - np.array(self.target)) ** 2).sum())

    def hessian(self, x):
        return 3.0 * np.eye(2)

    def prox(self, v, penalty):
        return (3.0 * np.array(self.target) + penalty * v) / (3.0 + penalty)

class Bare:
    pass

def quadratic():
    return Quadratic()

def gradient_alone():
    bare = Bare()
    bare.gradient = Quadratic().gradient
    return bare

def nothing():
    return Bare()

def number():
    bare = Bare()
    bare.gradient = 3.0
    return bare

def breaks():
    raise KeyError("no such thing")

def gradient_breaks():
    bare = Bare()
    bare.gradient = lambda x: 1 / 0
    return bare

def leaves():
    raise SystemExit(3)

def with_digest():
    bare = gradient_alone()
    bare.digest = "version 7"
    return bare

def with_a_number_for_a_digest():
    bare = gradient_alone()
    bare.digest = 7
    return bare

constant = 5
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.py"
    path.write_text(QUADRATIC)
    return path


@pytest.mark.parametrize("function", ["quadratic", "gradient_alone"])
def test_the_object_becomes_a_problem_of_one_agent(site: Path, function: str) -> None:
    problem = load_objective(f"{site}:{function}", 2).function
    x = np.array([0.5, 0.25])
    assert problem.agents == 1 and problem.dim == 2
    np.testing.assert_allclose(problem.gradient(0, x), 3.0 * (x - [1.0, -2.0]))
    # Where there is no prox it is solved from the gradient: the same point.
    np.testing.assert_allclose(problem.prox(0, x, 2.0), (3.0 * np.array([1.0, -2.0]) + 2.0 * x) / 5.0, atol=1e-10)
    assert problem.kernel_at(3, 5).functions


@pytest.mark.parametrize(("line", "repeatable"), [("", False), ("repeatable = True", True), ("repeatable = 0", False)])
def test_whether_it_can_be_asked_again_is_for_it_to_say(tmp_path: Path, line: str, repeatable: bool) -> None:
    path = tmp_path / "site.py"
    path.write_text(QUADRATIC.replace("    pass", f"    pass\n    {line}"))
    assert load_objective(f"{path}:gradient_alone", 2).repeatable is repeatable


def test_what_tells_other_data_apart_is_for_it_to_say(site: Path) -> None:
    assert load_objective(f"{site}:gradient_alone", 2).digest == ""
    known = load_objective(f"{site}:with_digest", 2)
    assert known.digest == known.marked(b"key").data.digest == "version 7" and known.all_rows(()) is None


def test_a_method_of_a_module_is_taken_by_its_dotted_name(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(site.parent)
    (site.parent / "own_objective_for_test.py").write_text(QUADRATIC)
    problem = load_objective("own_objective_for_test:quadratic", 2).function
    assert problem.value(0, np.array([1.0, -2.0])) == 0.0
    np.testing.assert_array_equal(problem.hessian(0, np.zeros(2)), 3.0 * np.eye(2))


@pytest.mark.parametrize(
    ("entry", "dim", "words"),
    [
        ("no colon", 2, "package.module:function"),
        (":quadratic", 2, "package.module:function"),
        ("{site}:", 2, "package.module:function"),
        ("nowhere/none.py:f", 2, "There is no file nowhere/none.py"),
        ("no_such_module_at_all:f", 2, "Importing no_such_module_at_all ended in a ModuleNotFoundError"),
        ("..:f", 2, "ended in a"),
        ("{site}:absent", 2, "has no function 'absent'"),
        ("{site}:constant", 2, "has no function 'constant'"),
        ("{site}:nothing", 2, "has no gradient"),
        ("{site}:number", 2, "The gradient of what"),
        ("{site}:breaks", 2, "ended in a KeyError"),
        ("{site}:leaves", 2, "ended in a SystemExit"),
        ("{site}:gradient_breaks", 2, "ended in a ZeroDivisionError"),
        ("{site}:quadratic", 3, "The gradient of"),
        ("{site}:quadratic", 0, "at least 1"),
        ("{site}:with_a_number_for_a_digest", 2, "returned is a int: make it a text"),
    ],
)
def test_what_goes_wrong_is_said_in_words(site: Path, entry: str, dim: int, words: str) -> None:
    with pytest.raises(ValueError) as refusal:
        load_objective(entry.format(site=site), dim)
    assert words in str(refusal.value)


def test_a_file_that_can_not_run_is_named(site: Path) -> None:
    site.write_text("def broken(:\n")
    with pytest.raises(ValueError, match=r"Running .*site\.py ended in a SyntaxError"):
        load_objective(f"{site}:broken", 2)
