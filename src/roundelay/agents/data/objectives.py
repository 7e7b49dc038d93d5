"""What a site brings to the fit: sums, a function, whether it is repeatable; and one from Python code of the site's own."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from roundelay.agents.agreement.ledger import Data
from roundelay.agents.agreement.policy import Breach, Policy
from roundelay.agents.data.marks import Marked
from roundelay.agents.data.models import Model
from roundelay.agents.data.own_fit import OwnFit, compare_values
from roundelay.agents.data.statistics import Standard
from roundelay.kernels import Vector
from roundelay.kernels.checks import whole_number
from roundelay.problems import OwnProblem, Regulariser
from roundelay.problems.callables import CallableProblem
from roundelay.problems.carriers import Watched
from roundelay.problems.row_problem import RowProblem


class Local(Protocol):
    """A site's own part.

    `sums` says how many numbers each sum has that all sites form before the fit, under masks: statistics of the data,
    for instance. `told` has the totals so far, each after the number of sites that were summed. `repeatable` says that the
    function gives the same bits when it is asked again, also in another process, and `digest` tells other data apart.
    """

    @property
    def digest(self) -> str:
        """What is different for other data; empty where that is not known."""

    def marked(self, key: bytes) -> Marked:
        """The data as the ledger knows them, and a mark of each row that nobody can make without the key."""

    @property
    def repeatable(self) -> bool:
        """Whether the function gives the same bits when it is asked again."""

    @property
    def slope(self) -> float:
        """About how large a number of ∇f_i(0) is, by this site's data alone: what the start of a token has to hide."""

    @property
    def sums(self) -> tuple[int, ...]:
        """How many numbers each sum has."""

    def summand(self, told: tuple[Vector, ...], sites: int) -> Vector:
        """What this site adds to the next sum, one of so many sites."""

    def check_told(self, told: tuple[Vector, ...], sites: int) -> None:
        """Refuse a last total that can't be a sum over so many sites, this one among them."""

    def breaches(self, policy: Policy, told: tuple[Vector, ...]) -> tuple[Breach, ...]:
        """What of this site's own rows does not keep to its policy, or of all rows once sums were told."""

    def refusal(self, told: tuple[Vector, ...]) -> str:
        """Why nothing can be fitted to the rows of all sites, as everybody can see from these sums; empty where it can."""

    def problem(self, told: tuple[Vector, ...]) -> OwnProblem:
        """The site's own function, once all sums are known."""

    def start(self, told: tuple[Vector, ...]) -> Vector | None:
        """Where all begin, by all sums; None for the origin."""

    def look(self, told: tuple[Vector, ...], seen: tuple[Vector, ...], point: Vector) -> Vector:
        """What this site adds to the next sum after the fit, at the point where it stands, after what was `seen` there."""

    def check_seen(self, told: tuple[Vector, ...], seen: Vector, point: Vector, least: int) -> None:
        """Refuse a total of the first look that can't be a sum with this site among it, or by which the second would be about fewer rows."""

    def folds(self, told: tuple[Vector, ...], points: Vector) -> Vector:
        """What this site's rows outside of each fold say, at a point for each."""

    def watched(self, told: tuple[Vector, ...], folds: bool) -> tuple[Watched, ...]:
        """The rows of which a point tells more the farther out it is, or those outside of each fold; nothing where no point does, or there are no rows."""

    def no_minimiser(self, told: tuple[Vector, ...]) -> tuple[float, str]:
        """A value of the sum of all functions below which there is no minimiser, and why; −∞ where none is known."""

    def all_rows(self, told: tuple[Vector, ...]) -> int | None:
        """How many rows all sites have together; None where that was not told yet, or there are no rows."""

    def standard(self, told: tuple[Vector, ...]) -> Standard | None:
        """The statistics of all rows of all sites that the sums tell; None where there are no rows."""

    def own_fit(
        self, fitted: Vector, model: Model, regulariser: Regulariser, told: tuple[Vector, ...]
    ) -> OwnFit | None:
        """How the ring's solution does on this site's own data; None where that can't be told. `regulariser` is that of one site."""


def slopes_of(problem: OwnProblem) -> Vector:
    """About how large each number of ∇f_i(0) is, by this site's data alone: of rows, what they would give if none took from another.

    Rows that stand for others say how much that is at most: sizes of columns are the same for both.
    """
    if not isinstance(problem, RowProblem):
        return np.abs(problem.gradient(0, np.zeros(problem.dim)))
    features, targets = problem.rows.features, problem.rows.targets
    slopes = problem.loss.slope(problem.own, np.zeros(len(targets)), targets)
    if not problem.has_records:
        return np.linalg.norm(slopes) * np.linalg.norm(features, axis=0) * problem.scales[0]
    return np.abs(slopes) @ np.abs(features) * problem.scales[0]


class WithoutLooks:
    """A site's part of a fit of which nothing is asked but the fit, which begins at the origin and refuses nothing."""

    def breaches(self, policy: Policy, told: tuple[Vector, ...]) -> tuple[Breach, ...]:
        """Nothing more than a policy knows by itself."""
        return ()

    def refusal(self, told: tuple[Vector, ...]) -> str:
        """Nothing is refused."""
        return ""

    def start(self, told: tuple[Vector, ...]) -> Vector | None:
        """The origin."""
        return None

    def look(self, told: tuple[Vector, ...], seen: tuple[Vector, ...], point: Vector) -> Vector:
        """There are no looks."""
        raise ValueError("This fit has nothing to be looked at once it is done.")

    def check_seen(self, told: tuple[Vector, ...], seen: Vector, point: Vector, least: int) -> None:
        """There are no looks."""

    def folds(self, told: tuple[Vector, ...], points: Vector) -> Vector:
        """There are no folds."""
        raise ValueError("This fit has no folds.")

    def watched(self, told: tuple[Vector, ...], folds: bool) -> tuple[Watched, ...]:
        """There are no rows."""
        return ()


@dataclass(frozen=True, eq=False)
class Known(WithoutLooks):
    """A function that needs no sums."""

    function: OwnProblem
    sums: tuple[int, ...] = ()
    repeatable: bool = True
    digest: str = ""

    def marked(self, key: bytes) -> Marked:
        """There are no rows that could be told apart."""
        return Marked(Data(self.digest))

    @property
    def slope(self) -> float:
        """The size of a number of ∇f_i(0) on the average."""
        slope = self.function.gradients(np.zeros((1, self.function.dim)))
        return float(np.sqrt(np.mean(slope**2)))

    def summand(self, told: tuple[Vector, ...], sites: int) -> Vector:
        """There are no sums."""
        raise ValueError("This site has nothing to sum before the fit.")

    def check_told(self, told: tuple[Vector, ...], sites: int) -> None:
        """There are no sums."""

    def problem(self, told: tuple[Vector, ...]) -> OwnProblem:
        """The function itself."""
        return self.function

    def no_minimiser(self, told: tuple[Vector, ...]) -> tuple[float, str]:
        """Nothing is known of the function."""
        return -math.inf, ""

    def all_rows(self, told: tuple[Vector, ...]) -> None:
        """There are no rows."""
        return

    def standard(self, told: tuple[Vector, ...]) -> None:
        """There are no rows."""
        return

    def own_fit(
        self, fitted: Vector, model: Model, regulariser: Regulariser, told: tuple[Vector, ...]
    ) -> OwnFit | None:
        """By the values of the function, where it has any."""
        return compare_values(self.function, fitted) if self.function.has_values else None


def load_objective(entry: str, dim: int) -> Known:
    """The function that a function of the site's own returns, by "package.module:function" or "path/to/file.py:function".

    The function is called without arguments and returns an object with `gradient(x)`, and where it has them also
    `value(x)`, `hessian(x)` and `prox(v, penalty)`. It is run with all rights of this process: name code that you trust.
    Where it says `repeatable = True`, its answers are the same to the last bit whenever they are asked for, also after a
    restart; then hops take less time, since they need not be on disk before they are sent on. Where it says `digest`, a text
    that is another for other data, the site's ledger and the journal go by that.
    """
    whole_number("dim", dim, least=1)
    place, colon, name = entry.rpartition(":")
    if not (place and colon and name):
        raise ValueError(
            f'The objective is {entry!r}: name it as "package.module:function" or "path/to/file.py:function".'
        )
    module = _module(place)
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"{place} has no function {name!r}: define it there, or name another.")
    objective = _run(function, f"The function {entry}")
    gradient = _method(entry, objective, "gradient")
    if gradient is None:
        raise ValueError(
            f"What {entry} returned, a {type(objective).__name__}, has no gradient: return an object with gradient(x), and "
            "perhaps value(x), hessian(x) and prox(v, penalty)."
        )
    optional = [_method(entry, objective, what) for what in ("value", "hessian", "prox")]
    value_of, hessian_of, prox_of = [None if method is None else [method] for method in optional]
    # Making it evaluates the gradient at 0, so that a wrong shape is found before the ring starts.
    problem: OwnProblem = _run(
        lambda: CallableProblem([gradient], dim, value_of, hessian_of, prox_of), f"The gradient of {entry} at x = 0"
    )
    repeatable, digest = getattr(objective, "repeatable", False), getattr(objective, "digest", "")
    if not isinstance(digest, str):
        raise ValueError(
            f"The digest of what {entry} returned is a {type(digest).__name__}: make it a text, or leave it out."
        )
    return Known(problem, repeatable=bool(repeatable), digest=digest)


def _module(place: str) -> ModuleType:
    path = Path(place)
    if path.suffix != ".py":
        module: ModuleType = _run(lambda: importlib.import_module(place), f"Importing {place}")
        return module
    if not path.is_file():
        raise ValueError(f"There is no file {place}: check the path of the objective.")
    # A name of its own for each file, so that two called the same do not meet.
    name = f"roundelay_objective_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None  # true of every path to a .py file
    loader = specification.loader
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        _run(lambda: loader.exec_module(module), f"Running {place}")
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _method(entry: str, objective: Any, name: str) -> Callable[..., Any] | None:
    method = getattr(objective, name, None)
    if method is not None and not callable(method):
        raise ValueError(
            f"The {name} of what {entry} returned is a {type(method).__name__}: make it a function, or leave it out."
        )
    return method


def _run(function: Callable[[], Any], what: str) -> Any:
    """Run the site's own code; what goes wrong in it is said in a sentence."""
    try:
        return function()
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split()).rstrip(".:") or "without a word"
        raise ValueError(
            f"{what} ended in a {type(error).__name__} ({said}): correct the code of the objective."
        ) from error
