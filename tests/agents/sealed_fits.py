"""Rings of five real processes that fit tables, nothing tuned, against the fit of another library on the pooled rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression

from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.data.fitting import RowsFit
from roundelay.agents.data.models import load_model
from roundelay.agents.data.reading import read_own_rows
from roundelay.agents.site.rehearsal import fit_by_all_others, prepare_ring, uneven_parts
from roundelay.cli.ring.planning import algorithm_for, usual_tolerance
from tests.agents.processes import ProcessRing

SITES = ("Oslo", "Bergen", "Tromso", "Trondheim", "Stavanger")
Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Case:
    """A table whose last column is explained by the others, and how its rows lie at the sites."""

    name: str
    table: Table
    kind: str = "least_squares"
    ridge: float = 0.0
    lasso: float = 0.0
    parts: Callable[[Table], list[Any]] = lambda table: list(uneven_parts(len(table), len(SITES), seed=0))

    @property
    def standardised(self) -> tuple[Table, Table, Table]:
        """The features in units of all rows, with the means and the deviations."""
        features = self.table[:, :-1]
        mean, deviation = features.mean(axis=0), features.std(axis=0)
        return (features - mean) / deviation, mean, deviation

    def pooled(self) -> Table:
        """Coefficients in standardised units by scikit-learn or by least squares, the intercept last."""
        features, _, _ = self.standardised
        target = self.table[:, -1]
        if self.kind == "logistic":
            # The ring's ridge also shrinks the intercept, so that it is a column like any other.
            design = np.column_stack([features, np.ones(len(features))])
            penalty = 1.0 / (self.ridge * len(features))
            fitted = LogisticRegression(
                C=penalty, fit_intercept=False, tol=1e-15, solver="newton-cholesky", max_iter=1000
            )
            return fitted.fit(design, target).coef_[0]
        if self.lasso:
            found = Lasso(alpha=self.lasso, tol=1e-15, max_iter=1_000_000).fit(features, target)
        else:
            found = LinearRegression().fit(features, target)
        return np.append(found.coef_, found.intercept_)


class Fitted(NamedTuple):
    """How a ring came out: the largest difference of any site in standardised units, and the laps that it took."""

    difference: float
    laps: int


def ring_of(folder: Path, case: Case) -> ProcessRing:
    """Keys, ring file and data files of five sites, as an operator's commands make them with no parameter given."""
    header = [f"f{number}" for number in range(case.table.shape[1] - 1)] + ["outcome"]
    label = (lambda value: str(int(value))) if case.kind == "logistic" else (lambda value: repr(float(value)))
    rows = {
        name: [[*(repr(float(cell)) for cell in row[:-1]), label(row[-1])] for row in case.table[part]]
        for name, part in zip(SITES, case.parts(case.table), strict=True)
    }
    task = fit_by_all_others(header, "outcome", case.kind, case.ridge)
    algorithm = algorithm_for(task, len(SITES), "SealedLaps", None, (), case.lasso)
    rehearsal = prepare_ring(folder, header, rows, task, algorithm, Stopping(usual_tolerance(algorithm)))
    own = [RowsFit(task, read_own_rows(seat.data, task)) for seat in rehearsal.seats]
    return ProcessRing(folder, rehearsal.plan, own, seed=None)


def fitted(folder: Path, case: Case) -> Fitted:
    """Run the ring, and hold the model of every site against the pooled fit."""
    ring = ring_of(folder, case)
    ring.run()
    _, mean, deviation = case.standardised
    expected, differences, laps = case.pooled(), [], 0
    for number in range(len(SITES)):
        stored = load_model(ring.site_folder(number) / "model.json")
        slopes = np.array([value for _, value in stored.model.coefficients])
        found = np.append(slopes * deviation, stored.model.intercept + slopes @ mean)
        differences.append(np.abs(found - expected).max() / max(np.abs(expected).max(), 1.0))
        laps = stored.about.questions
        assert not stored.about.doubt, stored.about.doubt
    return Fitted(float(max(differences)), laps)


# ---------------------------------------------------------------- the tables


def diabetes() -> Table:
    data = load_diabetes(scaled=False)
    return np.column_stack([data.data, data.target])


def breast_cancer() -> Table:
    data = load_breast_cancer()
    return np.column_stack([data.data, data.target])


def wine_against_the_rest() -> Table:
    data = load_wine()
    return np.column_stack([data.data, data.target == 1])


def ill_conditioned(condition: float = 1e8) -> Table:
    """Features whose correlation matrix has about this condition number."""
    draws = np.random.default_rng(5)
    one = draws.normal(size=(300, 6))
    one[:, 5] = one[:, 4] + draws.normal(size=300) * np.sqrt(2.0 / condition)
    return np.column_stack([one, one @ [1.0, -2.0, 0.5, 0.0, 1.0, 1.0] + draws.normal(size=300)])


def many_features(dim: int) -> Table:
    draws = np.random.default_rng(6)
    features = draws.normal(size=(1500, dim)) @ np.linalg.qr(draws.normal(size=(dim, dim)))[0]
    labels = features @ draws.normal(size=dim) / np.sqrt(dim) + draws.normal(size=1500) > 0.0
    return np.column_stack([features, labels])


def three_rows_at_one_site(table: Table) -> list[Any]:
    return np.split(np.random.default_rng(7).permutation(len(table)), [3, 80, 200, 300])


def one_label_at_one_site(table: Table) -> list[Any]:
    """Oslo has only rows with the label 1."""
    ones = np.flatnonzero(table[:, -1] == 1.0)[:40]
    rest = np.setdiff1d(np.arange(len(table)), ones)
    return [ones, *np.split(np.random.default_rng(8).permutation(rest), [100, 200, 350])]


def cases(dim: int = 200) -> list[Case]:
    """Everything that is held against another library, with so many features at the most."""
    wide = many_features(dim)
    linear = np.column_stack([wide[:, :-1], wide[:, :-1] @ np.linspace(-1.0, 1.0, dim) + wide[:, -1]])
    return [
        Case("diabetes", diabetes()),
        Case("diabetes, a site with 3 rows", diabetes(), parts=three_rows_at_one_site),
        Case("diabetes, lasso 1", diabetes(), lasso=1.0),
        Case("condition number 1e8", ill_conditioned()),
        Case(f"p = {dim}", linear),
        Case(f"p = {dim}, logistic, ridge 1e-2", wide, "logistic", 1e-2),
        Case("breast cancer, ridge 1e-4", breast_cancer(), "logistic", 1e-4),
        Case("breast cancer, ridge 1e-2", breast_cancer(), "logistic", 1e-2),
        Case("breast cancer, a site with one label", breast_cancer(), "logistic", 1e-2, parts=one_label_at_one_site),
        Case("wine against the rest, ridge 1e-3", wine_against_the_rest(), "logistic", 1e-3),
    ]
