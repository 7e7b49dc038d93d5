"""`roundelay ring plan`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundelay.cli.options import AsJson
from roundelay.cli.output import print_json
from roundelay.cli.ring.files import Links, Out, SignersFolder, read_invitations, read_links, sign_plan
from roundelay.cli.ring.words import plan_content, print_written

if TYPE_CHECKING:
    from roundelay.agents.agreement.invitations import Invitation
    from roundelay.agents.agreement.plan import Column, RingPlan

# In a ring of real sites PI-ADMM1 hides the gradients, and standardised data want a smaller ρ than the paper's.
USUAL = {"start": "sealed", "rho": "1.0"}


Fit = Annotated[
    str, typer.Option("--task", help="What is fitted: least_squares, logistic, or another package's problem.")
]


class EmptyCells(StrEnum):
    """What a row with an empty cell means."""

    refuse = "refuse"
    drop = "drop"


def plan(
    invitations: Annotated[list[Path], typer.Argument(metavar="INVITATION", help="The invitations of all sites.")],
    folder: SignersFolder,
    task: Fit,
    target: Annotated[str, typer.Option(help="The column to be explained; all others explain it.")],
    out: Out,
    algorithm: Annotated[
        str, typer.Option(help="A method with one token; PIADMM1 has start=sealed and rho=1 unless set otherwise.")
    ] = "PIADMM1",
    rho: Annotated[float | None, typer.Option(help="ρ, short for --set rho=….")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="An option of the algorithm; may be repeated."),
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Stop when every site is content within this; 0 for never.")] = 1e-9,
    hops: Annotated[int, typer.Option(help="Stop after so many hops at the latest.")] = 10_000_000,
    ridge: Annotated[float, typer.Option(help="λ of the ridge λ/2 ‖coefficients‖².")] = 0.0,
    missing: Annotated[
        EmptyCells, typer.Option(help="Whether a row with an empty cell is refused or dropped.")
    ] = EmptyCells.refuse,
    no_standardise: Annotated[bool, typer.Option("--no-standardise", help="Take the features as they are.")] = False,
    no_intercept: Annotated[bool, typer.Option("--no-intercept", help="Fit no constant.")] = False,
    links: Links = None,
    first: Annotated[str | None, typer.Option(help="The site that has the token first.")] = None,
    warm: Annotated[
        bool, typer.Option("--warm", help="Start from the model of an earlier run, which every site has.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Plan a ring from the sites' invitations, and sign the ring file.

    The token goes round a cycle through all sites where their links have one, else a closed walk. Compare the
    fingerprints with those that the sites read to you. Every site, yours too, must accept the ring file.

    \b
    Example:
      roundelay ring plan *.invitation.toml --folder oslo --task logistic --target outcome --out ring.toml
      roundelay ring plan *.invitation.toml --folder oslo --task least_squares --target length --rho 10
        --set defence=contribution-noise --links links.txt --out ring.toml
    """
    from roundelay.agents.agreement.epochs import plan_ring
    from roundelay.agents.agreement.plan import Stopping, Task

    sites = read_invitations(invitations)
    features, explained = _split(sites, target)
    fit = Task(task, features, explained, not no_intercept, not no_standardise, ridge, missing.value)
    stopping = Stopping(tolerance if tolerance != 0.0 else None, hops)
    planned = plan_ring(
        sites, read_links(links), _algorithm(algorithm, rho, settings or []), fit, stopping, first, warm
    )
    _check_that_it_stops(planned)
    signed = sign_plan(planned, folder, out)
    if as_json:
        print_json(plan_content(signed))
    else:
        print_written(signed, out)


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


def _algorithm(name: str, rho: float | None, settings: Sequence[str]) -> Any:
    from roundelay.algorithms.token.incremental import PIADMM1
    from roundelay.cli.settings import algorithm_named, configured

    kind = algorithm_named(name)
    words = [*([] if rho is None else [f"rho={rho!r}"]), *settings]
    chosen = {word.partition("=")[0].strip() for word in words}
    if kind is PIADMM1:
        words += [f"{option}={value}" for option, value in USUAL.items() if option not in chosen]
    return configured(kind, words)


def _check_that_it_stops(plan: RingPlan) -> None:
    tolerance = plan.stopping.tolerance
    why = "" if tolerance is None else plan.method.no_contentment(tolerance, plan.dim, plan.agents)
    if why:
        raise ValueError(
            f"The ring can't stop by itself within {tolerance:g}: {why}. Use another --tolerance, or 0 to stop after "
            "--hops alone."
        )
