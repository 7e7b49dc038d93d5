"""`--formula` and what belongs to it, in `roundelay ring plan`."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from roundelay.cli import completion

if TYPE_CHECKING:
    from roundelay.agents.agreement.invitations import Invitation
    from roundelay.agents.agreement.plan import Missing, Task
    from roundelay.regression.columns import Column

Text = Annotated[
    str | None,
    typer.Option("--formula", help='What is explained by what, as "outcome ~ age + C(sex) * smoker + bs(bmi, df=4)".'),
]
Features = Annotated[
    str | None,
    typer.Option(
        help="Instead of a formula, with --target: the columns that explain it, with commas; else all others."
    ),
]
Family = Annotated[
    str | None,
    typer.Option(
        help="gaussian, binomial, poisson, gamma, multinomial or cox; by default what the response looks like: binomial of two levels or 0 and 1, "
        "multinomial of more, cox of Surv(time, event), else gaussian.",
        autocompletion=completion.families,
    ),
]
Link = Annotated[str, typer.Option(help="The link, where it is not the family's usual one: log or probit of binomial.")]
Errors = Annotated[
    str,
    typer.Option(
        help="Standard errors: model, hc0, hc1, hc2, hc3, or site for rows of a site that depend on each other."
    ),
]
Reference = Annotated[
    list[str] | None,
    typer.Option("--reference", metavar="COLUMN=LEVEL", help="The level with which the others are compared."),
]
Levels = Annotated[
    list[str] | None,
    typer.Option(
        "--levels",
        metavar="COLUMN=A,B,…",
        help="The levels of a column, the reference first, where they do not follow from the invitations.",
    ),
]
Convert = Annotated[
    list[str] | None,
    typer.Option(
        "--convert", metavar="RULE", help='How a unit becomes the agreed one, as "weight: lb -> kg * 0.45359237".'
    ),
]
By = Annotated[str, typer.Option(help="Describe the rows by the levels of this column (Table 1).")]
NoTableOne = Annotated[bool, typer.Option("--no-table-one", help="Do not describe the rows: no Table 1.")]
NoDiagnostics = Annotated[
    bool, typer.Option("--no-diagnostics", help="Do not look at how well the model fits: fewer sums are told.")
]
Heterogeneity = Annotated[
    bool,
    typer.Option(
        "--heterogeneity",
        help="Look whether the sites' own estimates differ by more than chance: sums of these are told.",
    ),
]
Folds = Annotated[
    int,
    typer.Option(
        help="Choose how much to shrink by so many folds of the rows: --ridge and --lasso then say in which proportion."
    ),
]
Least = Annotated[int, typer.Option(help="Print no cell with fewer rows of all sites than this.")]


class Asked(NamedTuple):
    """What an operator says of a regression."""

    formula: str | None
    target: str | None
    features: str | None
    family: str | None
    references: Sequence[str]
    levels: Sequence[str]
    conversions: Sequence[str]
    by: str
    # All else, as a `Regression` has it.
    planned: dict[str, Any]

    def task(self, sites: Sequence[Invitation], missing: Missing) -> Task:
        """The regression over the columns that all sites agree on."""
        from roundelay.agents.agreement.agreed_columns import agreed_columns, lone_levels, unit_change
        from roundelay.agents.agreement.plan import REGRESSION, Task
        from roundelay.regression.formula import factors_in, names_in
        from roundelay.regression.regression import Regression

        formula = " ".join(self.formula.split()) if self.formula else self._of_columns(sites)
        offered = {column.name for column in sites[0].columns}
        if not offered:
            raise ValueError("The invitations name no columns: make them by roundelay ring offer with --data.")
        used = (names_in(formula) | {self.by}) & offered
        levels = {
            name: tuple(word.strip() for word in words.split(",")) for name, words in _pairs("--levels", self.levels)
        }
        columns = agreed_columns(
            sites,
            used,
            factors=(factors_in(formula) | {self.by}) & offered,
            references=dict(_pairs("--reference", self.references)),
            levels=levels,
            conversions=[unit_change(one) for one in self.conversions],
        )
        for note in lone_levels(sites, columns):
            typer.echo(f"! {note}", err=True)
        codes = {one.name for one in sites[0].columns if all(one.name in _yes_or_no(site) for site in sites)}
        family = self.family or usual_family(formula, columns, codes)
        return Task(
            REGRESSION, missing=missing, regression=Regression(formula, columns, family, by=self.by, **self.planned)
        )

    def _of_columns(self, sites: Sequence[Invitation]) -> str:
        """The formula of one column by others."""
        if self.target is None:
            raise ValueError(
                'Nothing says what is to be fitted: give --formula "outcome ~ age + sex", or --target outcome with --features age,sex.'
            )
        others = [column.name for column in sites[0].columns if column.name != self.target]
        chosen = (
            others if self.features is None else [name.strip() for name in self.features.split(",") if name.strip()]
        )
        return f"{_quoted(self.target)} ~ {' + '.join(map(_quoted, chosen)) or '1'}"


def _yes_or_no(site: Invitation) -> set[str]:
    """The columns of numbers of which a site says that they have 0 and 1 alone."""
    return {one.name for one in site.columns if one.values == "number" and {*one.levels} in ({"0"}, {"1"}, {"0", "1"})}


def usual_family(formula: str, columns: Sequence[Column], codes: Collection[str] = ()) -> str:
    """The family that a response looks like; `codes` are columns of zeros and ones."""
    from roundelay.regression.formula import COUNTS, SURVIVAL, Formula

    terms = Formula(formula, tuple(columns))
    kind, names = terms.response[0], terms.response_names
    if kind in (COUNTS, SURVIVAL):
        return "binomial" if kind == COUNTS else "cox"
    if any(names == (name,) and terms.response[1][0].__class__ is ast.Name for name in codes):
        return "binomial"
    levels = next((len(column.levels) for column in columns if names == (column.name,)), 0)
    return "gaussian" if levels == 0 else "binomial" if levels == 2 else "multinomial"


def _pairs(option: str, given: Sequence[str]) -> list[tuple[str, str]]:
    pairs = [(name.strip(), rest.strip()) for name, sign, rest in (one.partition("=") for one in given) if sign]
    if len(pairs) < len(given) or len(dict(pairs)) < len(pairs):
        raise ValueError(f"{option} is given as {', '.join(given)}: write COLUMN=…, once for a column.")
    return pairs


def _quoted(name: str) -> str:
    """A column as it stands in a formula."""
    return name if re.fullmatch(r"[^\W\d]\w*", name) else f"`{name}`"
