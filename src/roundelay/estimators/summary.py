"""The table of a regression without a penalty, from one more sum that the sites form once the fit stands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import stats

from roundelay.estimators.sums import SealedSums
from roundelay.kernels import Matrix, Vector
from roundelay.regression.families import family_named
from roundelay.regression.likelihood import Likelihood
from roundelay.regression.regression import COX, INTERCEPT, MULTINOMIAL
from roundelay.regression.result import Result, Term
from roundelay.regression.results import ERRORS_IN_WORDS, LEVEL, RATIOS, term_of
from roundelay.regression.sums import full, triangle


class Look(NamedTuple):
    """What everybody knows of the point where a fit stands.

    The curvature that is expected there of half of the deviance (or of −log of the likelihood), its value there, and that of the model
    which knows nothing but constants. `beside` is what else a family needs: the logarithm of the likelihood with its constants, how many
    rows had the outcome, or of squares the logarithms of the weights.
    """

    information: Matrix
    value: float
    null: float
    beside: float


def look_at(
    sums: SealedSums, likelihoods: Sequence[Likelihood], points: tuple[Vector, Vector], beside: Sequence[float], told: Matrix | None = None
) -> Look:  # fmt: skip
    """One more sum under masks, at the point of the fit and at that of the constants; `told` is the curvature, where it was told before."""
    point, null = points
    summands = [
        np.concatenate(
            [[one.value(point), one.value(null), number], [] if told is not None else triangle(one.information(point))]
        )
        for one, number in zip(likelihoods, beside, strict=True)
    ]
    value, at_null, number, *rest = sums.total(summands, "A sum at the point of the fit").tolist()
    return Look(full(np.array(rest), len(point)) if told is None else told, value, at_null, number)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the sums say of a regression of a family: `raw` makes changes of its coefficients, by their `names`, of changes of the unknowns."""

    family: str
    response: str
    names: tuple[str, ...]
    estimate: Vector
    raw: Matrix
    look: Look
    rows: int
    sites: tuple[str, ...]
    questions: int
    converged: bool

    @property
    def degrees(self) -> int:
        """How many rows are left when every coefficient has taken one."""
        return self.rows - len(self.names)

    @property
    def dispersion(self) -> float:
        """φ: of squares it is estimated, and else 1."""
        return 2.0 * self.look.value / max(self.degrees, 1) if self.family == "gaussian" else 1.0

    @property
    def log_likelihood(self) -> float:
        """With its constants."""
        look, rows = self.look, self.rows
        if self.family == "gaussian":  # with the dispersion that makes it largest
            return 0.5 * (look.beside - rows * (1.0 + math.log(2.0 * math.pi * max(2.0 * look.value, 1e-300) / rows)))
        return look.beside if self.family == "poisson" else -look.value

    @cached_property
    def covariance(self) -> Matrix:
        """Of the coefficients."""
        return self.dispersion * self.raw @ np.linalg.pinv(self.look.information, hermitian=True) @ self.raw.T

    @property
    def fit(self) -> float | None:
        """R², or by how much the likelihood of the null model was raised."""
        value, null = self.look.value, self.look.null
        if self.family == "gaussian":
            return 1.0 - value / null if null else None
        of_null = self.log_likelihood - (null - value)
        return 1.0 - self.log_likelihood / of_null if of_null else None

    def terms(self, ratio: str) -> tuple[Term, ...]:
        """A line a coefficient; one that nothing is known of has no error."""
        law = stats.t(max(self.degrees, 1)) if self.family == "gaussian" else stats.norm()
        errors = np.sqrt(np.maximum(np.diag(self.covariance), 0.0)).tolist()
        return tuple(
            term_of(name, one, error, law, bool(ratio) and _feature(name) != INTERCEPT) if error else Term(name, one)
            for name, one, error in zip(self.names, self.estimate.tolist(), errors, strict=True)
        )

    def notes(self) -> tuple[str, ...]:
        """What a reader must know."""
        notes = []
        if not self.converged:
            notes.append("The fit came no closer to its solution than the tolerance asks for.")
        if np.linalg.matrix_rank(self.look.information, hermitian=True) < len(self.names):
            notes.append("Some columns do not vary or follow from others, so that the rows do not say their coefficients: of all that suit them alike, one is shown.")  # fmt: skip
        if self.family == COX:
            notes.append("Each site has a baseline hazard of its own; ties are handled by Efron's method.")
        return tuple(notes)

    @property
    def result(self) -> Result:
        """As it is published."""
        distribution = None if self.family in (COX, MULTINOMIAL) else family_named(self.family)
        ratio = RATIOS[self.family] if distribution is None else distribution.ratio
        look, count = self.look, len(self.names)
        features = dict.fromkeys(_feature(name) for name in self.names if _feature(name) != INTERCEPT)
        written = [name if name.isidentifier() else f"`{name}`" for name in features]
        return Result(
            formula=f"{self.response} ~ {' + '.join(written)}{'' if self.family == COX or self.names[0].endswith(INTERCEPT) else ' - 1'}",
            response=self.response,
            family=self.family,
            link="" if distribution is None else distribution.link,
            terms=self.terms(ratio),
            letter="t" if self.family == "gaussian" else "z",
            errors=ERRORS_IN_WORDS["model"],
            ratio=ratio,
            level=LEVEL,
            rows=self.rows,
            events=round(look.beside) if self.family in ("binomial", COX) else None,
            sites=self.sites,
            degrees=self.degrees,
            log_likelihood=self.log_likelihood,
            deviance=None if self.family == COX else 2.0 * look.value,
            null_deviance=None if self.family == COX else 2.0 * look.null,
            dispersion=self.dispersion,
            aic=-2.0 * self.log_likelihood + 2.0 * count,
            bic=-2.0 * self.log_likelihood + count * math.log(self.rows),
            fit=self.fit,
            fit_name="R²" if self.family == "gaussian" else "McFadden's R²",
            questions=self.questions,
            converged=self.converged,
            notes=self.notes(),
            covariance=tuple(map(tuple, self.covariance.tolist())),
        )


def _feature(name: str) -> str:
    return name.split(": ")[-1]
