"""`roundelay ring up`: a whole ring of real processes on this machine."""

from __future__ import annotations

import csv
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from roundelay.cli import completion
from roundelay.cli.options import AsJson
from roundelay.cli.output import print_json, stderr_console
from roundelay.cli.ring.planning import algorithm_for, usual_tolerance
from roundelay.cli.ring.promising import USUAL_DELTA, Bounds, Delta, Epsilon, LeaveOut, LongestRow, promised
from roundelay.cli.ring.regressing import Asked, Family, Text
from roundelay.cli.ring.words import model_content, print_coefficients

if TYPE_CHECKING:
    from roundelay.agents.agreement.plan import Task
    from roundelay.agents.site.rehearsal import Plan, Rehearsal, Seat

NAMES = ("Oslo", "Bergen", "Tromso", "Trondheim", "Stavanger", "Drammen", "Narvik", "Alta", "Molde", "Hamar")


def up(
    data: Annotated[Path, typer.Option(help="A CSV file, whose rows are split unevenly between the sites.")],
    formula: Text = None,
    family: Family = None,
    target: Annotated[
        str | None, typer.Option(help="Instead of a formula: the column to be explained; all others explain it.")
    ] = None,
    agents: Annotated[int, typer.Option(min=2, max=50, help="How many sites.")] = 5,
    task: Annotated[
        str,
        typer.Option(
            help="What is fitted: least_squares, logistic, or another package's problem.",
            autocompletion=completion.tasks,
        ),
    ] = "least_squares",
    algorithm: Annotated[
        str,
        typer.Option(help="SealedLaps, or a method with one token, as PIADMM1.", autocompletion=completion.algorithms),
    ] = "SealedLaps",
    rho: Annotated[float | None, typer.Option(help="ρ of a method with a token, in standardised units.")] = None,
    ridge: Annotated[float, typer.Option(help="λ of the ridge λ/2 ‖coefficients‖².")] = 0.0,
    lasso: Annotated[float, typer.Option(help="λ of λ‖coefficients‖₁.")] = 0.0,
    tolerance: Annotated[float | None, typer.Option(help="Stop within this of the best fit.")] = None,
    epsilon: Epsilon = None,
    delta: Delta = USUAL_DELTA,
    bounds: Bounds = None,
    leave_out: LeaveOut = 1,
    longest_row: LongestRow = None,
    folder: Annotated[Path, typer.Option(help="Where the sites' folders go; it must not exist.")] = Path("out/ring"),
    as_json: AsJson = False,
) -> None:
    """Try a whole ring on this machine: one process a site, with keys, certificates and journals of its own.

    It is what the sites would do by hand: init, plan, accept, agent. Ctrl-C stops all of them; every agent can go on
    by the command that is printed.

    \b
    Example:
      roundelay ring up --data patients.csv --formula "outcome ~ age + C(sex)"
      roundelay ring up --agents 5 --data patients.csv --target outcome --task logistic --ridge 0.01
    """
    from roundelay.agents.agreement.plan import Stopping
    from roundelay.agents.site.rehearsal import fit_by_all_others, prepare_ring, uneven_parts
    from roundelay.algorithms.sealed.sealed_laps import SealedLaps
    from roundelay.regression.shown.printed import printed

    if folder.exists():
        raise ValueError(f"The folder {folder} exists already: remove it, or name another by --folder.")
    header, rows = _read(data)
    parts = [[rows[row] for row in part] for part in uneven_parts(len(rows), agents, seed=0)]
    names = [NAMES[site] if site < len(NAMES) else f"Site {site + 1}" for site in range(agents)]
    fit: Task | Plan
    if formula is not None:
        if target is not None or epsilon is not None or rho is not None or algorithm != "SealedLaps":
            raise ValueError(
                "A formula says by itself what is explained, and is fitted by sealed laps that promise no ε: leave out --target, --algorithm, "
                "--rho and --epsilon."
            )
        asked = Asked(formula, None, None, family, (), (), (), "", {"ridge": ridge, "lasso": lasso})
        fit, method = (lambda sites: asked.task(sites, "drop")), SealedLaps(wide=True)
    elif target is None:
        raise ValueError(
            'Nothing says what is to be fitted: give --formula "outcome ~ age + sex", or --target outcome.'
        )
    else:
        task_of_all = fit_by_all_others(header, target, task, ridge)
        method = algorithm_for(task_of_all, agents, algorithm, rho, (), lasso)
        fit, method = promised(task_of_all, method, epsilon, delta, bounds or (), leave_out, longest_row)
    stopping = Stopping(usual_tolerance(method) if tolerance is None else tolerance)
    try:
        rehearsal = prepare_ring(folder, header, dict(zip(names, parts, strict=True)), fit, method, stopping)
    except ValueError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    run_all(rehearsal)
    models = rehearsal.models()
    stored = models[0]
    if as_json:
        sites = [
            {"name": seat.name, "rows": seat.rows, "folder": str(seat.folder), "reason": model.about.reason}
            for seat, model in zip(rehearsal.seats, models, strict=True)
        ]
        print_json(
            {"folder": str(folder), "sites": sites, **model_content(stored.model, stored.result, stored.about.privacy)}
        )
        return
    for seat, model in zip(rehearsal.seats, models, strict=True):
        typer.echo(f"{seat.name}, {seat.rows:,} rows: {model.about.reason}")
    if stored.result is None:
        print_coefficients(stored.model, stored.about.privacy)
    else:
        typer.echo(printed(stored.result))
    typer.echo(f"Every site has this model in its folder under {folder}.")


class Incident(NamedTuple):
    """Something that is done to a ring, once, as soon as the status of a site is `so`."""

    seat: Seat
    so: Callable[[dict[str, Any]], bool]
    then: Callable[[], None]


def run_all(rehearsal: Rehearsal, incident: Incident | None = None, stay: bool = False) -> None:
    """Start all agents and wait until every site has its model; let something happen on the way."""
    console = stderr_console()
    try:
        for number, seat in enumerate(rehearsal.seats):
            rehearsal.start(seat, *(["--stay"] if stay and number == 0 else []))
        seat, shown, last = rehearsal.seats[0], False, 0.0
        while not rehearsal.done():
            failure = rehearsal.failed()
            if failure:
                raise ValueError(f"{failure} The agents can go on: look into {rehearsal.ring.parent}.")
            status = rehearsal.status_of(seat)
            if status and not shown:
                shown = True
                console.print(
                    f"{len(rehearsal.seats)} agents run. Watch one here: {rehearsal.page_of(seat)}", soft_wrap=True
                )
            if incident is not None and (now := rehearsal.status_of(incident.seat)) and incident.so(now):
                incident.then()
                incident = None
            if status and time.monotonic() - last > 2.0:
                last = time.monotonic()
                console.print(_words(status))
            time.sleep(0.1)
        if stay:
            console.print(f"The ring is done. {seat.name}'s page stays up: press Enter to end.")
            input()
    finally:
        rehearsal.stop()


def _words(status: dict[str, Any]) -> str:
    if status["sealed"]:
        return f"lap {status['visits']}"
    residuals = status.get("residuals") or []
    unrest = residuals[-1].get("unrest") if residuals else None
    return f"hop {status['hop']:,}" + ("" if unrest is None else f", residual {unrest:.1e}")


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a CSV file, as they stand."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path} can't be read: save the data as CSV in UTF-8.") from None
    if len(rows) < 2:
        raise ValueError(f"{path} has no rows: give a header and at least one row a site.")
    return rows[0], rows[1:]
