"""`roundelay ring plan`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundelay.cli import completion
from roundelay.cli.options import AsJson
from roundelay.cli.ring.files import Links, Out, SignersFolder, read_invitations, read_links, sign_plan
from roundelay.cli.ring.promising import USUAL_DELTA, Bounds, Delta, Epsilon, LeaveOut, LongestRow, promised
from roundelay.cli.ring.regressing import (
    Asked,
    By,
    Convert,
    Errors,
    Family,
    Features,
    Folds,
    Heterogeneity,
    Least,
    Levels,
    Link,
    NoDiagnostics,
    NoTableOne,
    Reference,
    Text,
)
from roundelay.cli.ring.words import print_written

if TYPE_CHECKING:
    from roundelay.agents.agreement.invitations import Invitation
    from roundelay.agents.agreement.plan import Column, RingPlan, Task

# What a ring of real sites has unless it is set otherwise: sums exact in any units; for PI-ADMM1 a start that hides the gradients,
# and a smaller ρ than the paper's, since the data are standardised.
USUAL = {"SealedLaps": {"wide": "true"}, "PIADMM1": {"start": "sealed", "rho": "1.0"}}
SEALED_TOLERANCE, TOKEN_TOLERANCE = 1e-11, 1e-9
USUAL_LEAST = 5


Fit = Annotated[
    str | None,
    typer.Option(
        "--task",
        help="Without a formula: least_squares, logistic, or another package's problem, for a token or a promise of ε.",
        autocompletion=completion.tasks,
    ),
]


class EmptyCells(StrEnum):
    """What a row with an empty cell means."""

    refuse = "refuse"
    drop = "drop"


def plan(
    invitations: Annotated[list[Path], typer.Argument(metavar="INVITATION", help="The invitations of all sites.")],
    folder: SignersFolder,
    out: Out,
    formula: Text = None,
    family: Family = None,
    target: Annotated[str | None, typer.Option(help="The column to be explained, where there is no formula.")] = None,
    features: Features = None,
    task: Fit = None,
    link: Link = "",
    errors: Errors = "model",
    reference: Reference = None,
    levels: Levels = None,
    convert: Convert = None,
    by: By = "",
    no_table_one: NoTableOne = False,
    no_diagnostics: NoDiagnostics = False,
    heterogeneity: Heterogeneity = False,
    least: Least = USUAL_LEAST,
    folds: Folds = 0,
    algorithm: Annotated[
        str,
        typer.Option(
            help="SealedLaps, which shows nobody anything but sums; or a method with one token, as PIADMM1.",
            autocompletion=completion.algorithms,
        ),
    ] = "SealedLaps",
    rho: Annotated[float | None, typer.Option(help="ρ of a method with a token, short for --set rho=….")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="An option of the algorithm; may be repeated.",
            autocompletion=completion.settings,
        ),
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Stop within this of the best fit; 0 for never. Usually left out.")
    ] = None,
    hops: Annotated[int, typer.Option(help="Stop a token after so many hops at the latest.")] = 10_000_000,
    questions: Annotated[int, typer.Option(help="Ask at most so many questions, in sealed laps.")] = 200,
    lasso: Annotated[
        float,
        typer.Option(help="λ of λ‖coefficients‖₁, which leaves out what does not help much (in standardised units)."),
    ] = 0.0,
    ridge: Annotated[float, typer.Option(help="λ of the ridge λ/2 ‖coefficients‖².")] = 0.0,
    missing: Annotated[
        EmptyCells, typer.Option(help="Whether a row with an empty cell is refused or dropped.")
    ] = EmptyCells.refuse,
    no_standardise: Annotated[bool, typer.Option("--no-standardise", help="Take the features as they are.")] = False,
    no_intercept: Annotated[bool, typer.Option("--no-intercept", help="Fit no constant.")] = False,
    epsilon: Epsilon = None,
    delta: Delta = USUAL_DELTA,
    bounds: Bounds = None,
    leave_out: LeaveOut = 1,
    longest_row: LongestRow = None,
    links: Links = None,
    first: Annotated[str | None, typer.Option(help="The site that has the token first.")] = None,
    warm: Annotated[
        bool, typer.Option("--warm", help="Start from the model of an earlier run, which every site has.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Plan a ring from the sites' invitations, and sign the ring file.

    What is fitted is a regression, by a formula: a table with standard errors, who was looked at (Table 1), and how well it fits.
    With --task it is one of the plain fits, which a token can carry too, or which keeps a promise of ε.

    A baton goes round a cycle through all sites where their links have one, else a closed walk. Compare the
    fingerprints with those that the sites read to you. Every site, yours too, must accept the ring file.

    \b
    Example:
      roundelay ring plan *.invitation.toml --folder oslo --formula "outcome ~ age + C(sex)" --family binomial --out ring.toml
      roundelay ring plan *.invitation.toml --folder oslo --task least_squares --target length --algorithm piadmm1
        --rho 10 --set defence=contribution-noise --links links.txt --out ring.toml
      roundelay ring plan *.invitation.toml --folder oslo --task logistic --target outcome --out ring.toml
        --epsilon 1.0 --bounds age=18:100 --bounds bmi=15:50
    """
    from roundelay.agents.agreement.epochs import plan_ring
    from roundelay.agents.agreement.plan import Stopping, Task

    sites = read_invitations(invitations)
    if task is None:
        _refuse_of_tasks(no_intercept, no_standardise, epsilon)
        asked = Asked(
            formula, target, features, family, reference or (), levels or (), convert or (), by,
            {
                "link": link, "ridge": ridge, "lasso": lasso, "errors": errors, "table_one": not no_table_one,
                "diagnostics": not no_diagnostics, "heterogeneity": heterogeneity, "least": least, "folds": folds,
            },
        )  # fmt: skip
        fit, lasso = asked.task(sites, missing.value), 0.0
    else:
        if formula is not None or features is not None or family is not None or target is None:
            raise ValueError(
                "A --task has a --target, which all other columns explain: leave --task out for a formula."
            )
        columns, explained = _split(sites, target)
        fit = Task(task, columns, explained, not no_intercept, not no_standardise, ridge, missing.value)
    method = algorithm_for(fit, len(sites), algorithm, rho, settings or [], lasso)
    fit, method = promised(fit, method, epsilon, delta, bounds or (), leave_out, longest_row)
    stopping = Stopping(_within(tolerance, method), hops, questions)
    planned = plan_ring(sites, read_links(links), method, fit, stopping, first, warm)
    _check_that_it_stops(planned)
    signed = sign_plan(planned, folder, out)
    print_written(signed, out, folder, as_json)


def _refuse_of_tasks(no_intercept: bool, no_standardise: bool, epsilon: float | None) -> None:
    """What a regression does not have."""
    if no_intercept:
        raise ValueError(
            "A formula says by itself that it has no constant: write - 1 behind it, and leave --no-intercept out."
        )
    if no_standardise:
        raise ValueError(
            "The coefficients of a formula are in the units of the data in any case: leave --no-standardise out."
        )
    if epsilon is not None:
        raise ValueError(
            "A formula is fitted by exact sums, which promise no ε: leave --epsilon out, or plan with a --task, such as logistic."
        )


def _split(sites: Sequence[Invitation], target: str) -> tuple[tuple[Column, ...], Column]:
    """The features in the order of the first site's file, and the target."""
    from roundelay.agents.agreement.invitations import check_same_columns

    check_same_columns(sites)
    columns = sites[0].columns
    if not columns:
        raise ValueError("The invitations name no columns: make them by roundelay ring init with --data.")
    explained = next((column for column in columns if column.name == target), None)
    if explained is None:
        raise ValueError(
            f"There is no column {target!r} in the invitations: the columns are {', '.join(map(str, columns))}."
        )
    return tuple(column for column in columns if column != explained), explained


def algorithm_for(
    fit: Task, sites: int, name: str, rho: float | None, settings: Sequence[str], lasso: float = 0.0
) -> Any:
    """The algorithm with what a ring usually has, unless it is set otherwise."""
    from roundelay.cli.settings import algorithm_named, configured

    kind = algorithm_named(name)
    words = [*([] if rho is None else [f"rho={rho!r}"]), *settings]
    if not lasso >= 0.0:
        raise ValueError(f"--lasso is {lasso:g}: use a number from 0 on.")
    if lasso:
        if fit.has_constant:
            raise ValueError(
                "--lasso would draw the intercept towards 0 as well: add --no-intercept, or leave --lasso out and use --ridge."
            )
        words.append(f"regulariser=l1:{sites * lasso!r}")  # the sites' functions add up to N times the pooled one
    chosen = {word.partition("=")[0].strip() for word in words}
    usual = USUAL.get(kind.__name__, {})
    return configured(kind, [*words, *(f"{option}={value}" for option, value in usual.items() if option not in chosen)])


def _within(tolerance: float | None, method: Any) -> float | None:
    """The tolerance of the plan; None where the ring is not to stop by itself."""
    if tolerance is None:
        return usual_tolerance(method)
    return tolerance if tolerance != 0.0 else None


def usual_tolerance(method: Any) -> float:
    """How close to the best fit a ring goes on, where nobody says."""
    from roundelay.algorithms.sealed.sealed_laps import SealedLaps

    return SEALED_TOLERANCE if isinstance(method, SealedLaps) else TOKEN_TOLERANCE


def _check_that_it_stops(plan: RingPlan) -> None:
    tolerance = plan.stopping.tolerance
    if tolerance is None or plan.choice is not None:
        return
    why = plan.method.no_contentment(tolerance, plan.dim, plan.agents)
    if why:
        raise ValueError(
            f"The ring can't stop by itself within {tolerance:g}: {why}. Use another --tolerance, or 0 to stop after "
            "--hops alone."
        )
