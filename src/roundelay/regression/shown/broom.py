"""A result in the columns of the R package broom, which many tools know: a row for each term, and one for the whole fit."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from roundelay.regression.result import Result
from roundelay.shown.numbers import printable

Value = str | float | int | bool | None


def tidy(result: Result) -> list[dict[str, Value]]:
    """A row for each coefficient."""
    return [
        {
            "term": term.name, "estimate": term.estimate, "std.error": term.std_error, "statistic": term.statistic,
            "p.value": term.p_value, "conf.low": term.low, "conf.high": term.high, "exp.estimate": term.ratio,
            "exp.conf.low": term.ratio_low, "exp.conf.high": term.ratio_high, "vif": term.inflation,
        }
        for term in result.terms
    ]  # fmt: skip


def glance(result: Result) -> dict[str, Value]:
    """The fit as a whole."""
    return {
        "nobs": result.rows, "nevent": result.events, "df.residual": result.degrees, "logLik": result.log_likelihood,
        "AIC": result.aic, "BIC": result.bic, "deviance": result.deviance, "null.deviance": result.null_deviance,
        "dispersion": result.dispersion, ("r.squared" if result.fit_name == "R²" else "pseudo.r.squared"): result.fit,
        "auc": None if result.roc is None else result.roc.area, "nsites": len(result.sites), "family": result.family,
        "link": result.link, "converged": result.converged,
    }  # fmt: skip


def as_csv(rows: Sequence[Mapping[str, Value]]) -> str:
    """Rows as a CSV file; what is not known is empty, and no word of others is one that a spreadsheet would calculate."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Value) -> Value:
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    return f"'{printable(value)}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else printable(value)
