"""The tables of a result as data: what is printed, what the report shows and what an agent's page shows are made of these."""

from __future__ import annotations

import math
from collections.abc import Sequence

from roundelay.regression.columns import Column
from roundelay.regression.result import Cell, Result, TableOne, Term
from roundelay.shown.numbers import UNKNOWN, chance, count, fixed, percent, places, plural, short
from roundelay.shown.table import Table


def tables_of(result: Result) -> tuple[Table, ...]:
    """All that a result has, in the order in which they are read."""
    found = [coefficients(result)]
    if result.knots:
        found.append(_knots(result))
    if result.table_one is not None:
        found.append(table_one(result.table_one))
    if result.missing:
        found.append(_missing(result))
    if result.calibration:
        found.append(_calibration(result))
    if result.heterogeneity:
        found.append(_heterogeneity(result))
    if result.survival:
        found.append(_survival(result))
    if result.path:
        found.append(_path(result))
    return tuple(found)


def facts(result: Result) -> tuple[tuple[str, str], ...]:
    """What there is to know of the fit as a whole, in pairs of words and what they say."""
    found = [
        ("Family", f"{result.family}, link {result.link}" if result.link else result.family),
        ("Rows", count(result.rows)),
        ("Events", count(result.events) if result.events is not None else ""),
        ("Sites", count(len(result.sites))),
        ("Residual degrees of freedom", count(result.degrees)),
        ("Log-likelihood", short(result.log_likelihood, 7)),
        ("Deviance", short(result.deviance, 7) if result.deviance is not None else ""),
        ("Null deviance", short(result.null_deviance, 7) if result.null_deviance is not None else ""),
        ("Dispersion", short(result.dispersion, 5) if result.dispersion != 1.0 else ""),
        ("AIC", short(result.aic, 7)),
        ("BIC", short(result.bic, 7)),
        (result.fit_name, fixed(result.fit, 4) if result.fit is not None else ""),
        ("Area under the ROC curve", fixed(result.roc.area, 3) if result.roc is not None else ""),
        ("Standard errors", result.errors),
        (
            "Converged",
            f"{'yes' if result.converged else 'NO'}, after {plural(result.questions, 'question')}",
        ),
    ]
    return tuple((name, said) for name, said in found if name and said)


def least_of(result: Result) -> int | None:
    """Below how many rows a count is not shown; None where the result does not say."""
    return result.table_one.least if result.table_one is not None else None


# ---------------------------------------------------------------- coefficients


def coefficients(result: Result) -> Table:
    """The table of coefficients; columns of which nothing is known are left out."""
    terms, level = result.terms, f"{100.0 * result.level:g} %"
    inexact = [
        ("std. error", "std_error"),
        (result.letter, "statistic"),
        ("p", "p_value"),
        (f"{level} from", "low"),
        ("to", "high"),
    ]
    shown = [(head, name) for head, name in inexact if _known(terms, name)]
    has_ratio = bool(result.ratio) and _known(terms, "ratio")
    has_ratio_interval = has_ratio and _known(terms, "ratio_low")
    header = ["", "estimate", *(head for head, _ in shown)]
    if has_ratio:
        header += [result.ratio, *([f"{level} from", "to"] if has_ratio_interval else [])]
    if _known(terms, "inflation"):
        header.append("VIF")
    rows = []
    for term in terms:
        row = [term.name, _by_error(term, term.estimate), *(_cell(term, name) for _, name in shown)]
        if has_ratio:
            parts = ("ratio", "ratio_low", "ratio_high") if has_ratio_interval else ("ratio",)
            row += [_ratio(term, getattr(term, part)) for part in parts]
        if _known(terms, "inflation"):
            row.append(fixed(term.inflation, 1))
        rows.append(tuple(row))
    return Table("coefficients", "Coefficients", tuple(header), tuple(rows), coefficients_caption(result))


def plain_coefficients(pairs: Sequence[tuple[str, float]]) -> Table:
    """Coefficients of which no more is known."""
    rows = tuple((name, short(value)) for name, value in pairs)
    return Table("coefficients", "Coefficients", ("", "estimate"), rows, "Estimates are in the units of the data.")


def coefficients_caption(result: Result) -> str:
    """What the table of coefficients says, for whoever reads only this."""
    said = "Estimates are in the units of the data."
    if result.errors:
        said += f" Standard errors: {result.errors}."
    if _known(result.terms, "inflation"):
        said += " VIF: how many times as large the variance is as if no other predictor explained this one; above 5 or 10 look closer."
    return said


def _known(terms: Sequence[Term], name: str) -> bool:
    return any(getattr(term, name) is not None for term in terms)


def _cell(term: Term, name: str) -> str:
    value = getattr(term, name)
    if name == "p_value":
        return chance(value)
    return fixed(value, 2) if name == "statistic" else _by_error(term, value)


def _by_error(term: Term, value: float | None) -> str:
    if term.std_error is None or not term.std_error > 0.0:
        return short(value)
    return fixed(value, places(term.std_error))


def _ratio(term: Term, value: float | None) -> str:
    """The error of a ratio is the ratio times that of the coefficient."""
    if term.ratio is None or term.std_error is None or not math.isfinite(term.ratio):
        return short(value, 4)
    return fixed(value, min(max(places(term.ratio * term.std_error), 2), 5))


def in_words(term: Term, is_ratio: bool) -> str:
    """An estimate, or its ratio, with its interval, as it is read beside a picture."""
    if is_ratio and term.ratio is not None:
        middle, low, high = (_ratio(term, value) for value in (term.ratio, term.ratio_low, term.ratio_high))
    else:
        middle, low, high = (_by_error(term, value) for value in (term.estimate, term.low, term.high))
    return middle if UNKNOWN in (low, high) else f"{middle} ({low} to {high})"


def _knots(result: Result) -> Table:
    rows = tuple((written, ", ".join(short(one, 5) for one in knots)) for written, knots in result.knots)
    return Table(
        "knots", "Splines", ("", "knots"), rows, "The first and the last knot are the ends, beyond which it goes on as a straight line.", words=2
    )  # fmt: skip


def columns_table(columns: Sequence[Column]) -> Table:
    """What kind of values the columns have, and which level is the reference."""
    rows = tuple((str(one), KINDS[one.values], _levels(one.levels)) for one in columns)
    return Table(
        "columns", "The columns", ("", "values", "levels"), rows, "As all sites have agreed before the fit.", words=3
    )


KINDS = {"number": "numbers", "levels": "levels", "date": "dates, as days since 1970-01-01"}
# So many levels are named.
NAMED = 30


def _levels(levels: Sequence[str]) -> str:
    if not levels:
        return ""
    more = "" if len(levels) <= NAMED else f" and {len(levels) - NAMED:,} more"
    return f"{levels[0]} (reference){''.join(f', {one}' for one in levels[1:NAMED])}{more}"


# ---------------------------------------------------------------- who was looked at


def table_one(table: TableOne) -> Table:
    """Table 1: counts and parts of levels; mean, deviation and quartiles of numbers."""
    split = bool(table.by)
    heads = tuple(f"{name} (n = {_counted(rows)})" for name, rows in zip(table.groups, table.rows, strict=True))
    rows = tuple(
        (
            line.column,
            line.level or "mean (deviation); quartiles",
            *map(_described, line.cells),
        )
        for line in table.lines
    )
    caption = f"By {table.by}. " if split else ""
    caption += f"{UNKNOWN}: fewer than {table.least} rows, or a number from which those would follow. Quartiles are read from counts in bins."
    return Table("table-1", "Who was looked at (Table 1)", ("", "", *heads), rows, caption, words=2)


def _counted(rows: float | None) -> str:
    """A count that is not shown may be one from which a small one would follow, and so any."""
    return UNKNOWN if rows is None else count(rows)


def _described(cell: Cell) -> str:
    if cell.mean is not None:
        # Quartiles are read from counts in bins, and so are known to less.
        decimals = places(cell.deviation) if cell.deviation else 2
        said = fixed(cell.mean, decimals)
        if cell.deviation is not None:
            said += f" ({fixed(cell.deviation, decimals)})"
        if cell.quartiles is not None:
            said += "; " + " / ".join(fixed(one, max(decimals - 1, 0)) for one in cell.quartiles)
        return said
    if cell.count is None:
        return UNKNOWN
    return f"{count(cell.count)} ({percent(cell.part)})" if cell.part is not None else count(cell.count)


def _missing(result: Result) -> Table:
    least = least_of(result)
    rows = tuple((one.column, count(one.rows, least)) for one in result.missing)
    return Table(
        "missing",
        "Rows left out for an empty cell",
        ("column", "rows"),
        rows,
        "A row that lacks two columns counts at both.",
    )


# ---------------------------------------------------------------- how well it fits


def _calibration(result: Result) -> Table:
    least = least_of(result)
    rows = tuple(
        (f"{one.low:.3f} to {one.high:.3f}", count(one.rows, least), fixed(one.predicted, 4), fixed(one.observed, 4))
        for one in result.calibration
    )
    return Table(
        "calibration", "Calibration in numbers", ("predicted chance", "rows", "mean prediction", "observed"), rows,
        "Rows by the chance that is predicted for them: how often the outcome was predicted, and how often it was observed. Each group has enough rows "
        "with the outcome, and without it.",
    )  # fmt: skip


def _heterogeneity(result: Result) -> Table:
    rows = tuple(
        (one.term, str(one.sites), fixed(one.q, 2), chance(one.p_value), percent(one.i_squared))
        for one in result.heterogeneity
    )
    return Table(
        "heterogeneity", "Do the sites differ?", ("", "sites", "Cochran's Q", "p", "I²"), rows,
        "Whether the sites' own estimates of a coefficient differ by more than chance. I²: what part of their spread is no chance.",
    )  # fmt: skip


def _survival(result: Result) -> Table:
    rows = tuple(
        (
            short(one.time),
            _counted(one.at_risk),
            _counted(one.events),
            fixed(one.survival, 4),
            fixed(one.low, 4),
            fixed(one.high, 4),
        )
        for one in result.survival
    )
    return Table(
        "survival", "Survival (Kaplan and Meier, on agreed bins of time)",
        ("until", "at risk", "events", "survive", f"{100.0 * result.level:g} % from", "to"), rows,
        f"{UNKNOWN}: too few rows to be shown, at risk or with an event." if any(one.events is None for one in result.survival) else "Bins of few events are joined with the next.",
        words=0,
    )  # fmt: skip


def _path(result: Result) -> Table:
    rows = tuple(
        (
            short(one.factor, 4),
            fixed(one.loss, places(one.error)),
            fixed(one.error, places(one.error)),
            fixed(one.slopes, 1),
            "taken" if one.factor == result.strength else "",
        )
        for one in result.path
    )
    return Table(
        "penalty", "How strong the penalty is", ("times the plan's", "loss", "std. error", "coefficients", ""), rows,
        "The mean loss of rows that were left out of the fit, and how many coefficients were not 0 on the average.", words=0,
    )  # fmt: skip
