"""A regression as it is planned: all that a site must know before it looks at its rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from roundelay.kernels.checks import finite_number, whole_number
from roundelay.registry import registered
from roundelay.regression.columns import Column
from roundelay.regression.families import family_named
from roundelay.regression.families.family import Family
from roundelay.regression.formula import COUNTS, SITE, SURVIVAL, Formula

# What the standard errors hold against: nothing but the model, a variance that is not the model's (HC0 to HC3), or rows of a site that
# are not independent.
Errors = Literal["model", "hc0", "hc1", "hc2", "hc3", "site"]
ERRORS: tuple[Errors, ...] = ("model", "hc0", "hc1", "hc2", "hc3", "site")
# Responses that are not one number with a mean.
MULTINOMIAL, COX = "multinomial", "cox"
# Not more unknowns: their information matrix has half the square of that.
MOST_UNKNOWNS = 2000
USUAL_LEAST = 5
MOST_FOLDS = 20


def families() -> tuple[str, ...]:
    """The words of all families."""
    return (*registered(Family), MULTINOMIAL, COX)


@dataclass(frozen=True)
class Regression:
    """A regression over the rows of all sites.

    `formula` is in Wilkinson's notation over `columns`, which are all that leave a file. `ridge` and `lasso` are
    λ₂ and λ₁ in (1/n)·Σ loss + λ₂/2 ‖coefficients‖² + λ₁ ‖coefficients‖₁, in standardised units and never on a constant. With `folds` both are
    multiplied by a factor that is chosen by so many folds of the rows, each left out in turn. `errors` says what the standard errors hold against. With `table_one` the rows are
    described first, for each level of the column `by` where there is one; with `diagnostics` it is looked at how well the model fits,
    and with `heterogeneity` whether the sites' own estimates differ. Cells of fewer than `least` rows are not printed.
    """

    formula: str
    columns: tuple[Column, ...]
    family: str = "gaussian"
    link: str = ""
    ridge: float = 0.0
    lasso: float = 0.0
    folds: int = 0
    errors: Errors = "model"
    table_one: bool = True
    by: str = ""
    diagnostics: bool = True
    heterogeneity: bool = False
    least: int = USUAL_LEAST

    def __post_init__(self) -> None:
        if self.family not in families():
            raise ValueError(f"There is no family {self.family!r}: use {', '.join(families())}.")
        finite_number("ridge", self.ridge, least=0.0)
        finite_number("lasso", self.lasso, least=0.0)
        whole_number("folds", self.folds, least=0)
        whole_number("least", self.least, least=1)
        if self.errors not in ERRORS:
            raise ValueError(f"errors is {self.errors!r}: use {', '.join(ERRORS)}.")
        self._check_response()
        named = {*self.terms.names, *([self.by] if self.by else [])}
        for column in self.columns:
            if column.name not in named:
                raise ValueError(f"The column {column.name!r} is not named by the formula: leave it out of the plan.")
        if self.by:
            by = next((column for column in self.columns if column.name == self.by), None)
            if by is None or by.values != "levels" or not self.table_one:
                raise ValueError(
                    f"Table 1 is to be split by {self.by!r}, which is no column with levels, or there is no Table 1: name a column with levels."
                )
        if not 1 <= self.dim <= MOST_UNKNOWNS:
            raise ValueError(
                f"The formula has {self.dim:,} unknowns, and there may be 1 to {MOST_UNKNOWNS:,}: leave out terms or levels, or add one."
            )
        if self.folds and not (2 <= self.folds <= MOST_FOLDS and self.shrinks):
            raise ValueError(
                f"folds is {self.folds}: use 2 to {MOST_FOLDS}, and a ridge or a lasso (or both, in the proportion that is meant) whose strength is "
                "to be chosen."
            )
        if self.shrinks and self.errors != "model":
            raise ValueError(
                "A ridge or lasso moves the coefficients, so that they have no standard errors: leave out the kind of errors."
            )
        if self.family in (MULTINOMIAL, COX) and self.errors in ("hc1", "hc2", "hc3"):
            raise ValueError(f"The family {self.family} has errors of the kinds model, hc0 and site: use one of these.")

    def _check_response(self) -> None:
        kind, family = self.terms.response[0], self.family
        levels = self.classes
        if (kind == SURVIVAL) != (family == COX):
            raise ValueError(
                "The family cox explains Surv(time, event), and no other family does: write the formula as Surv(time, event) ~ …, or use "
                "another family."
            )
        if kind == COUNTS and family != "binomial":
            raise ValueError(
                "cbind(successes, failures) is explained by the family binomial: use it, or another response."
            )
        if family == MULTINOMIAL and len(levels) < 3:
            raise ValueError(
                "The family multinomial explains a column of at least three levels: for two use the family binomial."
            )
        if levels and family != MULTINOMIAL and (family != "binomial" or len(levels) != 2):
            raise ValueError(
                f"The response has the levels {', '.join(levels)}: two levels are explained by the family binomial, more by multinomial, and a "
                f"number by {family}."
            )
        if family == MULTINOMIAL and "offset" in self.terms.beside:
            raise ValueError("The family multinomial has no offset: leave it out of the formula.")
        if family == COX and not self.design_names:
            raise ValueError("A Cox regression has no constant, so that 1 alone explains nothing: name a predictor.")
        if family in (MULTINOMIAL, COX):
            if self.link:
                raise ValueError(f"The family {family} has no choice of links: leave the link out.")
        else:
            family_named(family, self.link)

    # ------------------------------------------------------------ what follows

    @cached_property
    def terms(self) -> Formula:
        """The formula, read."""
        return Formula(self.formula, self.columns)

    @cached_property
    def distribution(self) -> Family | None:
        """The family, where the response is one number with a mean."""
        return None if self.family in (MULTINOMIAL, COX) else family_named(self.family, self.link)

    @property
    def response(self) -> str:
        """What is explained, as the formula has it."""
        return self.formula.split("~")[0].strip()

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The levels of the response, the reference first; empty where it is a number."""
        kind, parts = self.terms.response
        name = self.terms.named(getattr(parts[0], "id", "")) if not kind else ""
        return next((column.levels for column in self.columns if column.name == name), ())

    @property
    def absorbs_sites(self) -> bool:
        """Whether each site has a constant of its own, which nobody else sees; the strata of a Cox regression are sites in any case."""
        return self.terms.has_site and self.family != COX

    @cached_property
    def design_names(self) -> tuple[str, ...]:
        """The columns of the design, the constant first where there is one."""
        own_constants = self.family == COX or self.absorbs_sites
        return tuple(name for name in self.terms.coefficients if not own_constants or name != INTERCEPT)

    @property
    def has_intercept(self) -> bool:
        """Whether one constant for all rows is among the unknowns."""
        return INTERCEPT in self.design_names

    @property
    def equations(self) -> int:
        """How many linear predictors there are: one for each level but the reference of a multinomial response."""
        return len(self.classes) - 1 if self.family == MULTINOMIAL else 1

    @cached_property
    def unknowns(self) -> tuple[str, ...]:
        """The names of the coefficients, equation after equation."""
        if self.family != MULTINOMIAL:
            return self.design_names
        return tuple(f"{level}: {name}" for level in self.classes[1:] for name in self.design_names)

    @property
    def dim(self) -> int:
        """How many unknowns there are."""
        return self.equations * len(self.design_names)

    @property
    def spared(self) -> tuple[int, ...]:
        """The places of the constants among the unknowns, which no penalty shrinks."""
        width = len(self.design_names)
        place = self.design_names.index(INTERCEPT) if self.has_intercept else None
        return () if place is None else tuple(place + width * equation for equation in range(self.equations))

    @property
    def shrinks(self) -> bool:
        """Whether coefficients are drawn towards 0."""
        return bool(self.ridge or self.lasso)

    @property
    def is_quadratic(self) -> bool:
        """Whether the loss is a sum of squares."""
        return self.family == "gaussian"

    @property
    def described(self) -> tuple[Column, ...]:
        """The columns that are described before the fit."""
        return tuple(column for column in self.columns if self.table_one or column.values == "levels")

    @property
    def in_words(self) -> str:
        """What is fitted, for people."""
        kinds = {
            "gaussian": "a linear regression", "binomial": "a regression of a yes-or-no outcome", "poisson": "a regression of counts",
            "gamma": "a gamma regression", MULTINOMIAL: "a multinomial regression", COX: "a Cox regression of survival",
        }  # fmt: skip
        kind = kinds.get(self.family, f"a regression of the family {self.family}")
        link = f" with the link {self.link}" if self.link else ""
        site = ", with a constant of its own at each site" if self.absorbs_sites else ""
        strata = ", each site with a baseline of its own" if self.family == COX else ""
        return f"{kind}{link}: {self.formula}{site}{strata}"


INTERCEPT = "Intercept"
__all__ = ["COX", "ERRORS", "INTERCEPT", "MULTINOMIAL", "SITE", "USUAL_LEAST", "Errors", "Regression", "families"]
