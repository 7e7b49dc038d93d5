"""What a regression came to, from the totals and the point alone: everybody who knows them computes the same numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from roundelay.kernels import Matrix, Vector
from roundelay.regression.choosing import Chosen
from roundelay.regression.columns import Column
from roundelay.regression.few_rows import hidden_bins, joined
from roundelay.regression.regression import COX, INTERCEPT, MULTINOMIAL, Errors
from roundelay.regression.result import (
    Bin,
    Cell,
    Heterogeneity,
    Histogram,
    Missing,
    Result,
    Roc,
    SurvivalPoint,
    TableOne,
    TableOneRow,
    Term,
)
from roundelay.regression.study import Study
from roundelay.regression.sums import CHANCES, RESIDUAL_WIDTH, RESIDUALS, Known, full, group_names

LEVEL = 0.95
RATIOS = {COX: "hazard ratio", MULTINOMIAL: "odds ratio"}
ERRORS_IN_WORDS: dict[Errors, str] = {
    "model": "as the model has them",
    "hc0": "robust against a variance that is not the model's (HC0)",
    "hc1": "robust against a variance that is not the model's (HC1)",
    "hc2": "robust against a variance that is not the model's (HC2)",
    "hc3": "robust against a variance that is not the model's (HC3)",
    "site": "robust against rows of a site that depend on each other",
}
# With fewer sites a variance between them is hardly known.
FEW_SITES = 20
# With more unknowns their covariance is not kept: it would be most of a model's file.
MOST_IN_COVARIANCE = 300
# The area under a ROC curve is rounded. With fewer bins joined than these it would be an equation that has one solution.
AREA_PLACES, FEWEST_JOINED = 3, 3


def result_of(
    study: Study, known: Known, sites: tuple[str, ...], questions: int, converged: bool, chosen: Chosen | None = None
) -> Result:
    """The result, from all totals and the point at which they stand."""
    result = _Reckoned(study, known, sites).result(questions, converged)
    return result if chosen is None else replace(result, path=chosen.path, strength=chosen.best.factor)


def term_of(
    name: str, estimate: float, error: float, law: Any, has_ratio: bool, inflation: float | None = None
) -> Term:
    """The line of a coefficient, whose estimate has this error by this law."""
    far = float(law.ppf(0.5 + LEVEL / 2.0))
    statistic = estimate / error if error > 0.0 else math.copysign(math.inf, estimate)
    low, high = estimate - far * error, estimate + far * error
    ratio, least, most = (ratio_of(number) if has_ratio else None for number in (estimate, low, high))
    chance = float(2.0 * law.sf(abs(statistic)))
    return Term(name, estimate, error, statistic, chance, low, high, ratio, least, most, inflation)


def ratio_of(number: float) -> float:
    """e^number, as far as there are numbers."""
    return math.exp(min(number, 700.0))


class _Reckoned:
    """The numbers that several parts of a result share."""

    def __init__(self, study: Study, known: Known, sites: tuple[str, ...]) -> None:
        self.study, self.known, self.sites = study, known, sites
        self.regression = study.regression

    def result(self, questions: int, converged: bool) -> Result:
        """All of it."""
        regression, known = self.regression, self.known
        estimate, _ = self.study.raw(known)
        family = regression.distribution
        count, too_many = regression.dim + known.constants, regression.dim > MOST_IN_COVARIANCE
        return Result(
            formula=regression.formula,
            response=regression.response,
            family=regression.family,
            link="" if family is None else family.link,
            terms=self.terms(estimate),
            letter="t" if self.by_t else "z",
            errors="" if regression.shrinks else ERRORS_IN_WORDS[regression.errors],
            ratio=self.ratio,
            level=LEVEL,
            rows=known.rows,
            events=self.events,
            sites=self.sites,
            degrees=known.degrees,
            log_likelihood=self.log_likelihood,
            deviance=None if regression.family == COX else 2.0 * self.value,
            null_deviance=None if regression.family == COX else 2.0 * self.null,
            dispersion=known.dispersion,
            aic=-2.0 * self.log_likelihood + 2.0 * count,
            bic=-2.0 * self.log_likelihood + count * math.log(known.rows),
            fit=self.fit,
            fit_name="R²" if regression.is_quadratic else "McFadden's R²",
            questions=questions,
            converged=converged,
            notes=self.notes(converged),
            missing=self.missing(),
            table_one=table_one(known) if regression.table_one else None,
            calibration=self.calibration(),
            roc=self.roc(),
            residuals=self.residuals(),
            heterogeneity=self.heterogeneity(),
            survival=self.survival(),
            knots=tuple((written, tuple(knots)) for written, knots in known.knots.items()),
            covariance=() if self.covariance is None or too_many else tuple(map(tuple, self.covariance.tolist())),
        )

    # ------------------------------------------------------------ coefficients

    @property
    def by_t(self) -> bool:
        """Whether the deviation of the rows is estimated along with normal coefficients; robust errors are for many rows in any case."""
        return self.regression.is_quadratic and self.regression.errors == "model"

    @property
    def ratio(self) -> str:
        """What e^coefficient is."""
        family = self.regression.distribution
        return RATIOS[self.regression.family] if family is None else family.ratio

    @cached_property
    def covariance(self) -> Matrix | None:
        """That of the coefficients in the units of the data; None where they were shrunk."""
        if self.regression.shrinks:
            return None
        _, whole = self.study.raw(self.known)
        return whole @ self._of_unknowns() @ whole.T

    def _of_unknowns(self) -> Matrix:
        known, errors = self.known, self.regression.errors
        if errors == "model":
            return known.dispersion * known.inverse
        between = full(known.told("second look")["scores"], self.regression.dim)
        return self._correction(errors) * known.inverse_curvature @ between @ known.inverse_curvature

    def _correction(self, errors: Errors) -> float:
        """For the degrees of freedom that the fit has taken."""
        rows, left, sites = self.known.rows, max(self.known.degrees, 1), self.known.sites
        if errors == "hc1":
            return rows / left
        if errors == "site" and self.regression.family != COX and sites > 1:
            return sites / (sites - 1) * (rows - 1) / left
        return 1.0

    def terms(self, estimate: Vector) -> tuple[Term, ...]:
        """A line a coefficient."""
        regression = self.regression
        inflation = self._inflation() * regression.equations
        if self.covariance is None:
            return tuple(
                Term(name, one, ratio=self._ratio_of(name, one), inflation=inflated)
                for name, one, inflated in zip(regression.unknowns, estimate.tolist(), inflation, strict=True)
            )
        law = stats.t(self.known.degrees) if self.by_t else stats.norm()
        errors = np.sqrt(np.maximum(np.diag(self.covariance), 0.0)).tolist()
        return tuple(
            term_of(name, one, error, law, self._has_ratio(name), inflated)
            for name, one, error, inflated in zip(
                regression.unknowns, estimate.tolist(), errors, inflation, strict=True
            )
        )

    def _has_ratio(self, name: str) -> bool:
        return bool(self.ratio) and name.split(": ")[-1] != INTERCEPT

    def _ratio_of(self, name: str, number: float) -> float | None:
        return ratio_of(number) if self._has_ratio(name) else None

    def _inflation(self) -> list[float | None]:
        """How much the other columns take of each, by the inverse of their correlations."""
        products, found = self.known.products, []
        sizes = np.sqrt(np.diag(products))
        if len(products) and sizes.all():
            found = np.diag(np.linalg.pinv(products / np.outer(sizes, sizes), hermitian=True)).tolist()
        numbers = iter(found)
        return [None if name == INTERCEPT else next(numbers, None) for name in self.regression.design_names]

    # ------------------------------------------------------------ how well it fits

    @cached_property
    def value(self) -> float:
        """Half of the deviance, or −log of the likelihood."""
        return float(self.known.told("first look")["value"][0])

    @cached_property
    def null(self) -> float:
        """The same of the model that knows nothing but constants."""
        return float(self.known.told("first look")["null"][0])

    @cached_property
    def log_likelihood(self) -> float:
        """With its constants."""
        known = self.known
        if self.regression.distribution is None:
            return -self.value
        if self.regression.is_quadratic:  # with the dispersion that makes it largest
            rows, weights = known.rows, float(known.told("columns")["log weight"][0])
            return 0.5 * (weights - rows * (1.0 + math.log(2.0 * math.pi * max(2.0 * self.value, 1e-300) / rows)))
        return float(known.told("second look")["log likelihood"][0])

    @property
    def fit(self) -> float | None:
        """R², or by how much the likelihood of the null model was raised."""
        if not self.null:
            return None
        if self.regression.is_quadratic:
            return 1.0 - self.value / self.null
        null = self.log_likelihood - (self.null - self.value) / self.known.dispersion
        return 1.0 - self.log_likelihood / null if null else None

    @property
    def events(self) -> int | None:
        """Rows with the outcome."""
        if self.regression.family not in ("binomial", COX):
            return None
        return round(float(self.known.told("moments")["events"][0]))

    def _shown(self, count: float) -> bool:
        return not 0.0 < round(count) < self.regression.least

    @cached_property
    def _chances(self) -> Matrix:
        """How many rows without the outcome and with it are predicted each chance; empty where that was not looked at."""
        told = self.known.told("first look")
        return told["chances"].reshape(2, CHANCES) if "chances" in told else np.zeros((2, 0))

    @cached_property
    def _groups(self) -> tuple[slice, ...]:
        """The ten groups of rows by their chance, those joined that have few rows with the outcome or without it."""
        if not self._chances.size:
            return ()
        ends = np.round(self.known.chance_edges * CHANCES).astype(int).tolist()
        counts = [self._chances[:, begin:end].sum(axis=1) for begin, end in pairwise(ends)]
        return joined(np.column_stack(counts), self.regression.least)

    def calibration(self) -> tuple[Bin, ...]:
        """What was predicted and what was seen, in up to ten groups of rows."""
        told = self.known.told("second look")
        if "calibration" not in told:
            return ()
        _, weight, predicted, _ = told["calibration"].reshape(4, -1)
        edges, found = self.known.chance_edges, []
        for group in self._groups:
            low, high = float(edges[group.start]), float(edges[group.stop])
            # Counted as the curve counts them: a row that rounding puts on the other side of an edge would be their difference.
            without, with_it = self._chances[:, round(low * CHANCES) : round(high * CHANCES)].sum(axis=1).tolist()
            mean = float(predicted[group].sum() / (weight[group].sum() or 1.0))
            found.append(Bin(low, high, without + with_it, mean, with_it / (without + with_it)))
        return tuple(found)

    def roc(self) -> Roc | None:
        """From the rows with and without the outcome, counted by their predicted chance.

        Each step of the curve has `least` rows of both, and ends where a group of the calibration does: else a few rows were the difference of the
        two. The area is of all counts, but rounded; where hardly any were joined it would tell them, and is that of the curve.
        """
        if not self._groups:
            return None
        edges, steps, inside = np.round(self.known.chance_edges * CHANCES).astype(int), [], 0
        for group in reversed(self._groups):
            counts = self._chances[:, edges[group.start] : edges[group.stop]][:, ::-1]
            for part in joined(counts, self.regression.least):
                steps.append(counts[:, part].sum(axis=1))
                inside += int((counts[:, part].sum(axis=0) > 0.0).sum()) - 1
        if len(steps) < 2:  # a straight line says nothing
            return None
        false, true = _cumulated(np.column_stack(steps))
        whole = (false, true) if inside < FEWEST_JOINED else _cumulated(self._chances[:, ::-1])
        area = round(float(np.trapezoid(whole[1], whole[0])), AREA_PLACES)
        return Roc(tuple(false.tolist()), tuple(true.tolist()), area)

    def residuals(self) -> Histogram | None:
        """Pearson's residuals."""
        told = self.known.told("second look")
        if "residuals" not in told:
            return None
        edges = (np.arange(RESIDUALS + 1) - RESIDUALS // 2) * RESIDUAL_WIDTH
        hidden = hidden_bins(told["residuals"], self.regression.least)
        pairs = zip(told["residuals"].tolist(), hidden, strict=True)
        counts = tuple(None if few else round(count) for count, few in pairs)
        return Histogram(tuple(edges.tolist()), counts)

    def heterogeneity(self) -> tuple[Heterogeneity, ...]:
        """Cochran's Q of the sites' own estimates about the common one, where enough sites have any."""
        told = self.known.told("second look")
        if "own estimates" not in told:
            return ()
        sites, precision, apart, square = told["own estimates"].reshape(4, -1)
        found = []
        for number, name in enumerate(self.regression.unknowns):
            count = round(float(sites[number]))
            if number in self.regression.spared or count < 2 or not precision[number] > 0.0:
                continue
            q = max(float(square[number] - apart[number] ** 2 / precision[number]), 0.0)
            beyond = max(0.0, (q - (count - 1)) / q) if q else 0.0
            found.append(Heterogeneity(name, count, q, float(stats.chi2.sf(q, count - 1)), beyond))
        return tuple(found)

    def survival(self) -> tuple[SurvivalPoint, ...]:
        """Kaplan and Meier's estimate for times rounded up to the ends of the bins, with Greenwood's interval for log(−log).

        Bins are joined until each has `least` events, and the estimate is of the joined ones: of finer bins it would tell their counts, which are its ratios.
        """
        told = self.known.told("first look")
        if "ended" not in told:
            return ()
        far, left, variance, found = float(stats.norm.ppf(0.5 + LEVEL / 2.0)), 1.0, 0.0, []
        for begin, end in self._times(told["at risk"], told["ended"]):
            risk, ended = float(told["at risk"][begin]), float(told["ended"][begin:end].sum())
            left *= 1.0 - ended / risk
            variance += ended / (risk * (risk - ended)) if risk > ended else math.inf
            low, high = left, left
            if 0.0 < left < 1.0 and variance < math.inf:
                width = far * math.sqrt(variance) / abs(math.log(left))
                low, high = left ** math.exp(width), left ** math.exp(-width)
            found.append(SurvivalPoint(float(self.known.survival_edges[end - 1]), risk, ended, left, low, high))
        return tuple(found)

    def _times(self, at_risk: Vector, ended: Vector) -> list[tuple[int, int]]:
        """Where the joined bins of time begin and end. The last goes on as long as `least` rows are at risk; with an event later, to the end of all."""
        least = max(self.regression.least, 1)
        parts = [(part.start, part.stop) for part in joined(ended[None], least)]
        if not parts:
            return []
        begin = parts[-1][0]
        enough = begin + 1 + int(np.argmax(np.cumsum(np.round(ended[begin:])) >= least))
        followed = int((np.round(at_risk) >= least).sum())
        if np.round(ended[enough:]).any():  # few are left over: they would be all events less those that are shown
            seen = not np.round(ended[followed:]).any()
            return [*parts[:-1], (begin, followed if seen else len(ended))]
        return [*parts[:-1], (begin, enough), *([(enough, followed)] if followed > enough else [])]

    # ------------------------------------------------------------ in words

    def missing(self) -> tuple[Missing, ...]:
        """The columns of which cells were empty."""
        told = self.known.told("rows")["dropped by"].tolist()
        pairs = zip(self.regression.columns, told, strict=True)
        return tuple(
            Missing(str(column), round(rows) if self._shown(rows) else None) for column, rows in pairs if rows > 0.0
        )

    def notes(self, converged: bool) -> tuple[str, ...]:
        """What a reader must know."""
        regression, notes = self.regression, []
        if not converged:
            notes.append(
                "The fit came no closer to its solution than the tolerance asks for: do not publish it as it stands."
            )
        if regression.shrinks:
            notes.append("Coefficients were shrunk towards 0, so that they have no standard errors and no p values.")
        if regression.absorbs_sites:
            notes.append(
                "Each site has a constant of its own, which the others do not see; the null model has them too."
            )
        if regression.family == COX:
            notes.append("Each site has a baseline hazard of its own; ties are handled by Efron's method.")
        if regression.errors == "site" and self.known.sites < FEW_SITES:
            notes.append(f"Errors between {self.known.sites} sites are rough: with so few they tend to be too small.")
        dropped = float(self.known.told("rows")["dropped"][0])
        if dropped > 0.0:
            how_many = f"{round(dropped):,}" if self._shown(dropped) else f"Fewer than {regression.least}"
            notes.append(f"{how_many} rows with an empty cell were left out.")
        return tuple(notes)


def _cumulated(counts: Matrix) -> tuple[Vector, Vector]:
    """False and true positives behind each step, from rows without the outcome and with it."""
    false, true = (np.concatenate([[0.0], np.cumsum(line)]) / line.sum() for line in counts)
    return false, true


# ---------------------------------------------------------------- who was looked at


def table_one(known: Known) -> TableOne:
    """Each column in each group; a cell with few rows is not shown, nor one from which it would follow."""
    regression, least = known.regression, known.regression.least
    names = group_names(regression)
    counts = known.groups
    if regression.by:
        names, counts = (*names, "all"), np.append(counts, counts.sum())
    lines: list[TableOneRow] = []
    for column in regression.columns:
        if column.name == regression.by:
            continue
        if column.values == "levels":
            cells = known.told("counts")[column.name].reshape(-1, len(column.levels))
            lines += _level_lines(column.name, column.levels, _with_all(cells, bool(regression.by)), counts, least)
        elif _is_yes_or_no(known, column):
            ones = known.told("sums")[column.name]
            cells = _with_all(np.column_stack([known.groups - ones, ones]), bool(regression.by))
            lines += _level_lines(str(column), ("0", "1"), cells, counts, least)[1:]
        else:
            lines.append(
                _number_line(known, str(column), [one.name for one in regression.columns].index(column.name), counts)
            )
    hidden = hidden_cells(counts[None, :-1] if regression.by else counts[None], least)[0]
    rows = [None if few else round(count) for count, few in zip(counts.tolist(), [*hidden, False], strict=False)]
    return TableOne(regression.by, names, tuple(rows), tuple(lines), least)


def _is_yes_or_no(known: Known, column: Column) -> bool:
    """Whether all numbers are 0 or 1: only then their mean square is their mean. Then the mean is a count, and hidden as one."""
    mean, spread = known.mean(column), known.spread(column)
    return 0.0 <= mean <= 1.0 and abs(spread**2 - mean * (1.0 - mean)) <= 1e-9


def _with_all(cells: Matrix, by: bool) -> Matrix:
    return np.vstack([cells, cells.sum(axis=0)]) if by else cells


def _level_lines(name: str, levels: tuple[str, ...], cells: Matrix, counts: Vector, least: int) -> list[TableOneRow]:
    hidden = hidden_cells(cells, least)
    lines = []
    for number, level in enumerate(levels):
        found = []
        for group, count in enumerate(cells[:, number].tolist()):
            part = count / counts[group] if counts[group] else None
            found.append(Cell(None) if hidden[group, number] else Cell(round(count), part))
        lines.append(TableOneRow(name, level, tuple(found)))
    return lines


def _number_line(known: Known, name: str, place: int, counts: Vector) -> TableOneRow:
    column = known.regression.columns[place]
    described, found = known.described(column), []
    for group, count in enumerate(counts.tolist()):
        everybody = group == len(known.groups) or not known.regression.by
        if round(count) < max(known.regression.least, 2):
            found.append(Cell(None if 0.0 < count < known.regression.least else round(count)))
            continue
        quartiles = known.quantile(column, np.array([0.25, 0.5, 0.75]), None if everybody else group)
        low, middle, high = quartiles.tolist()
        place_of = len(known.groups) if everybody else group
        found.append(
            Cell(
                round(count),
                None,
                float(described.mean[place_of]),
                float(described.deviation[place_of]),
                (low, middle, high),
            )
        )
    return TableOneRow(name, "", tuple(found))


def hidden_cells(counts: Matrix, least: int) -> NDArray[np.bool_]:
    """Which cells of a table with known sums along both sides are not shown.

    Those with 1 to `least` − 1 rows; and where one alone would be hidden in a line, the smallest other one as well, since otherwise
    it followed from the sum.
    """
    rounded = np.round(counts)
    hidden = (rounded > 0.0) & (rounded < least)
    changed = bool(hidden.any())
    while changed:
        changed = False
        for lines, numbers in ((hidden, rounded), (hidden.T, rounded.T)):
            for line, own in zip(lines, numbers, strict=True):
                if line.sum() == 1 and len(line) > 1:
                    line[_smallest_shown(line, own)] = True
                    changed = True
    return hidden


def _smallest_shown(hidden: NDArray[np.bool_], counts: Vector) -> int:
    """An empty cell only where there is no other."""
    return int(np.argmin(np.where(hidden, np.inf, np.where(counts == 0.0, 1e300, counts))))
