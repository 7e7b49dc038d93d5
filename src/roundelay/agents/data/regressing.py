"""A regression on a ring: what a site brings to it, and what everybody makes of the sums that were told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.agents.agreement.policy import Breach, Policy, refused_counts, refused_rows
from roundelay.agents.data.marks import Marked, mark_rows
from roundelay.agents.data.models import Model
from roundelay.agents.data.own_fit import FOLDS, LEAST_ROWS, OwnFit, judged
from roundelay.algorithms.sealed.questions import OwnSums
from roundelay.kernels import Matrix, Vector
from roundelay.problems import OwnProblem, Regulariser
from roundelay.problems.carriers import PART, RowsAt, Watched, about
from roundelay.problems.solving import widths_of
from roundelay.regression.choosing import Chosen, numbers_of_folds
from roundelay.regression.columns import TRUTH, Column
from roundelay.regression.own_estimates import own_losses
from roundelay.regression.regression import INTERCEPT, MULTINOMIAL, Regression
from roundelay.regression.result import Result
from roundelay.regression.rows import SiteRows
from roundelay.regression.study import Study, check_totals, no_minimum, problem_of
from roundelay.regression.sums import AFTER, Known, full, look_weights

if TYPE_CHECKING:
    from roundelay.agents.agreement.plan import Task
    from roundelay.agents.data.statistics import Standard


def sums_before(regression: Regression) -> tuple[int, ...]:
    """How many numbers each sum has that comes before the fit."""
    study = Study(regression)
    return study.lengths[: study.before]


def own_sums(regression: Regression) -> OwnSums:
    """How many numbers the other sums of a regression have."""
    folds, dim = regression.folds, regression.dim
    first, second = Study(regression).lengths[-len(AFTER) :]
    return OwnSums(first, second, folds * dim, numbers_of_folds(folds, dim))


@dataclass(frozen=True, eq=False)
class RegressionFit:
    """The rows of one site, and what it adds to each sum of a regression."""

    task: Task
    rows: SiteRows
    repeatable: bool = True
    _folds: list[Callable[[Vector], Vector]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """What of the rows can't be computed with is said now, not when the others wait for a sum."""
        import_module(
            "scipy.special"
        )  # families load it late, and once others can connect an import may find no open file
        _ = self.rows.weight, self.rows.offset
        ends = {written: one.inside + 2 for written, one in self.study.regression.terms.splines.items()}
        self.rows.design({written: tuple(np.linspace(0.0, 1.0, count).tolist()) for written, count in ends.items()})

    @cached_property
    def study(self) -> Study:
        """What is planned."""
        assert self.task.regression is not None
        return Study(self.task.regression)

    # ------------------------------------------------------------ what the ledger keeps

    @cached_property
    def _cells(self) -> Matrix:
        """All cells as numbers, levels by their words: a plan that orders them otherwise tells of the same rows."""
        frame = self.rows.frame
        columns = [_cells_of(column, frame[column.name]) for column in self.study.regression.columns]
        return np.column_stack(columns) if columns else np.zeros((self.rows.count, 0))

    @cached_property
    def digest(self) -> str:
        """A hash of all rows."""
        cells = self._cells
        return sha256(repr(cells.shape).encode() + cells.astype("<f8").tobytes()).hexdigest()

    def marked(self, key: bytes) -> Marked:
        """What the ledger keeps of the rows."""
        columns, cells = self.study.regression.columns, self._cells.copy()
        for number, column in enumerate(columns):
            if column.name in self.rows.as_written:  # a plan in another unit tells of the same rows
                cells[:, number] = self.rows.as_written[column.name].values
        return mark_rows([str(column) for column in columns], cells, self.digest, key)

    @property
    def slope(self) -> float:
        """No token goes round."""
        return 0.0

    # ------------------------------------------------------------ sums before the fit

    @property
    def sums(self) -> tuple[int, ...]:
        """How many numbers each sum has."""
        return self.study.lengths[: self.study.before]

    def summand(self, told: tuple[Vector, ...], sites: int) -> Vector:
        """This site's part of the next sum."""
        return self.study.summand(self.rows, known_of(self.study, told, sites))

    def check_told(self, told: tuple[Vector, ...], sites: int) -> None:
        """Refuse a total that lacks what this site has added."""
        own = self.summand(told[:-1], sites)
        self.study.check_told(own, told[-1][1:], len(told) - 1, sites)

    def breaches(self, policy: Policy, told: tuple[Vector, ...]) -> tuple[Breach, ...]:
        """Few rows with a level, here or at all sites; more unknowns than so many rows say."""
        return (
            refused_counts(policy, known_of(self.study, told), self.rows) if told else refused_rows(policy, self.rows)
        )

    def refusal(self, told: tuple[Vector, ...]) -> str:
        """Why nothing can be fitted, as everybody can see from these sums."""
        return refusal_of(self.study, told)

    def start(self, told: tuple[Vector, ...]) -> Vector:
        """The model that knows nothing but constants."""
        return self.study.start(known_of(self.study, told))

    def problem(self, told: tuple[Vector, ...]) -> OwnProblem:
        """The site's own function, in units of all rows."""
        return problem_of([self.study.function(self.rows, known_of(self.study, told))])

    def no_minimiser(self, told: tuple[Vector, ...]) -> tuple[float, str]:
        """Where outcomes are told apart without an error."""
        return no_minimum(known_of(self.study, told))

    def all_rows(self, told: tuple[Vector, ...]) -> int | None:
        """How many complete rows all sites have."""
        return known_of(self.study, told).rows if told else None

    def standard(self, told: tuple[Vector, ...]) -> Standard | None:
        """What is known of all rows stands in the result."""
        return None

    # ------------------------------------------------------------ sums after the fit

    def look(self, told: tuple[Vector, ...], seen: tuple[Vector, ...], point: Vector) -> Vector:
        """This site's part of the next sum after the fit."""
        return self.study.summand(self.rows, known_of(self.study, told, seen=seen, point=point))

    def check_seen(self, told: tuple[Vector, ...], seen: Vector, point: Vector, least: int) -> None:
        """Refuse a total of the first look that lacks what this site has added, or by which few of its rows have all the weight in the second."""
        own, dim = self.look(told, (), point), self.study.regression.dim
        self.study.check_told(own, seen, self.study.before, round(told[0][0]))
        mine, theirs = (AFTER[0].parts(self.study.regression, one)["information"] for one in (own, seen))
        widths = widths_of(np.abs(full(theirs, dim)))
        if not np.linalg.eigvalsh((full(theirs, dim) - full(mine, dim)) / np.outer(widths, widths))[0] >= -ROUNDING:
            raise ValueError("In what all rows say of the coefficients there is less than this site has added.")
        if self.study.regression.heterogeneity:
            able = [AFTER[0].parts(self.study.regression, one)["able"][0] for one in (own, seen)]
            if able[1] - able[0] > round(told[0][0]) - 1:
                raise ValueError("More sites can fit their rows alone than there are beside this one.")
        weights = look_weights(self.rows, known_of(self.study, told, seen=(seen,), point=point))
        if weights is not None and not about(weights[:, None])[0] >= min(least, self.rows.count / PART):
            raise ValueError(
                "By it errors would be made of so few rows of this site that they could tell what is in them (least_rows_a_level)."
            )

    def folds(self, told: tuple[Vector, ...], points: Vector) -> Vector:
        """What this site's rows outside of each fold say, at a point for each."""
        if not self._folds:
            self._folds.append(self.study.folds(self.rows, known_of(self.study, told)))
        return self._folds[0](points)

    def watched(self, told: tuple[Vector, ...], folds: bool) -> tuple[Watched, ...]:
        """All rows, or those outside of each fold, but for squares; rows that are left out add nothing."""
        if self.study.regression.is_quadratic:
            return ()
        known = known_of(self.study, told)
        if not folds:
            return (self.rows.likelihood(known.knots, known.scaling).rows_at,)
        return tuple(
            partial(_among, ~fold, self.rows.without(fold).likelihood(known.knots, known.scaling).rows_at)
            for fold in self.study.folded(self.rows)
        )

    def own_fit(
        self, fitted: Vector, model: Model, regulariser: Regulariser, told: tuple[Vector, ...]
    ) -> OwnFit | None:
        """By the rows' own losses; of survival there are none."""
        known, rows = known_of(self.study, told), self.rows
        if rows.count < LEAST_ROWS:
            return None
        # A fit to these rows alone goes by their own units: those of all rows may be somebody's lie.
        own = rows.own_scaling(known.knots)
        with np.errstate(over="ignore", invalid="ignore"):  # a model may be anything
            losses = own_losses(
                rows.likelihood(known.knots, known.scaling), lambda kept: rows.without(~kept).likelihood(known.knots, own),
                np.asarray(fitted), self.study.regression.spared, FOLDS,
            )  # fmt: skip
        return None if losses is None else judged(losses)


ROUNDING = 1e-9


def _among(these: NDArray[np.bool_], rows_at: Watched, point: Vector) -> RowsAt:
    """What some rows add, among all of the site."""
    some = rows_at(point)
    assert isinstance(some, RowsAt)

    def among(numbers: Any) -> Any:
        found = np.zeros((len(these), *numbers.shape[1:]))
        found[these] = numbers
        return found

    return some._replace(
        predictions=among(some.predictions), slopes=among(some.slopes), curvatures=among(some.curvatures),
        ends=tuple(among(end) for end in some.ends), weight=among(some.weight),
    )  # fmt: skip


def _cells_of(column: Column, values: object) -> Vector:
    """A column of cells as numbers."""
    if column.values != "levels":
        return np.asarray(values, np.float64)
    numbers = np.array([_number_of(level) for level in column.levels])
    return numbers[np.asarray(values.cat.codes, np.int64)]  # type: ignore[attr-defined]


def _number_of(level: str) -> float:
    """A level that is a number, or says yes or no, as that, so that it is the same where another plan calculates with it; of a word a digest."""
    try:
        number = TRUTH[level.lower()] if level.lower() in TRUTH else float(level)
    except ValueError:
        number = np.nan
    if np.isfinite(number):
        return number
    return 1.0 + int.from_bytes(sha256(level.encode()).digest()[:8], "little") / 2.0**52


# ---------------------------------------------------------------- what everybody knows


def known_of(
    study: Study,
    told: Sequence[Vector],
    sites: int = 0,
    seen: Sequence[Vector] = (),
    point: Vector | None = None,
) -> Known:
    """What follows from the sums that were told before the fit, each behind the number of sites, and from those that were seen after it."""
    totals = (*(total[1:] for total in told), *seen)
    return study.known(totals, round(float(told[0][0])) if told else sites, point)


def refusal_of(study: Study, told: Sequence[Vector]) -> str:
    """Why nothing can be fitted, as everybody can see from these sums; empty where it can, or is not known yet."""
    if not told:
        return ""
    known = known_of(study, told)
    try:
        check_totals(known)
        if known.has("bins again"):
            _ = known.knots
    except ValueError as error:
        return str(error)
    except (ArithmeticError, LookupError) as error:
        return f"The sums that were told can't be those of any rows ({error}): ask who formed them."
    return ""


def as_planned(regression: Regression | None) -> tuple[object, ...]:
    """All that a regression says: that two columns are called the same does not make their levels the same."""
    if regression is None:
        return ()
    return regression, tuple(
        (str(column), column.values, column.levels, column.conversions) for column in regression.columns
    )


class Outcome(NamedTuple):
    """The model, and the result with its tables, where the fit was looked at and what was told there can be of any rows."""

    model: Model
    result: Result | None


def outcome_of(
    regression: Regression,
    told: Sequence[Vector],
    seen: Sequence[Vector],
    point: Vector,
    sites: tuple[str, ...],
    questions: int,
    converged: bool,
    chosen: Chosen | None = None,
) -> Outcome:
    """What a regression came to, by what all members have signed: the sums before, the point, and the sums at it.

    How a penalty was chosen follows from what all questions came to, of which the digest is signed.
    """
    from roundelay.regression.results import result_of  # late: it takes long, and is needed once

    study = Study(regression)
    known = known_of(study, told, seen=seen, point=np.asarray(point, np.float64))
    values = dict(zip(regression.unknowns, study.raw(known)[0].tolist(), strict=True))
    constant = values.pop(INTERCEPT, 0.0) if regression.family != MULTINOMIAL else 0.0
    model = Model(tuple(values.items()), constant, "regression", regression.response)
    if len(seen) < len(AFTER):
        return Outcome(model, None)
    try:
        return Outcome(model, result_of(study, known, sites, questions - len(AFTER), converged, chosen))
    except (ValueError, ArithmeticError, LookupError):  # whoever formed the sums has made them up
        return Outcome(model, None)
