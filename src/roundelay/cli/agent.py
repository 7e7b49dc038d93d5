"""`roundelay agent`."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import signal
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundelay.cli import completion
from roundelay.cli.exits import INTERRUPTED
from roundelay.cli.options import AsJson
from roundelay.cli.output import print_json, progress_lines, stderr_console
from roundelay.cli.ring.files import DespiteDifference, Folder, read_plan, warn_of_open_files
from roundelay.cli.ring.words import model_content, print_coefficients

if TYPE_CHECKING:
    from roundelay.agents.agreement.plan import RingPlan
    from roundelay.agents.data.objectives import Local
    from roundelay.agents.site.status import Watch
    from roundelay.agents.site.taking_part import Ending, Site

# The agent stopped in a state from which it can go on.
STOPPED = 4


class PastTheLimit(StrEnum):
    """What an agent does where its neighbours could know more of it than allowed."""

    tell = "tell"
    stop = "stop"
    noise = "noise"


def agent(
    ring: Annotated[
        Path,
        typer.Option(
            "--ring",
            help="The ring file, which must have been accepted in the folder.",
            autocompletion=completion.ring_files,
        ),
    ],
    folder: Folder,
    data: Annotated[
        Path | None,
        typer.Option(
            help="This site's rows: a CSV or Parquet file; or a folder of Parquet files, which is read by batches and need not fit into memory. With "
            "--query a DuckDB database.",
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            help="This site's rows are what DuckDB answers to this, or to what stands in this file.sql; by batches."
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            help="Read a folder on this Dask cluster of the site's own, whose workers see it under the same path."
        ),
    ] = None,
    target: Annotated[str | None, typer.Option(help="The column to be explained; must be the ring file's.")] = None,
    objective: Annotated[
        str | None,
        typer.Option(help="An objective of your own instead of data: package.module:function or file.py:function."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the model here; by default model.json in the run's folder.")
    ] = None,
    warm: Annotated[Path | None, typer.Option(help="The model to start from, where the ring file says warm.")] = None,
    listen: Annotated[str, typer.Option(help="Listen here instead of at the address that the ring file has.")] = "",
    page: Annotated[bool, typer.Option("--page/--no-page", help="Serve a page on localhost on which to watch.")] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The page's port; 0 for any that is free.")] = 0,
    stay: Annotated[bool, typer.Option("--stay", help="Keep the page up after the end, until Ctrl-C.")] = False,
    privacy_limit: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="The relative error to which the neighbours may know anything of this site; 0 for no limit. What can't be measured is past it.",
        ),
    ] = 0.0,
    past_limit: Annotated[
        PastTheLimit,
        typer.Option(
            help="What to do where they could know it better: only tell, stop, or add noise, which hides the curvature from neighbours who "
            "follow the protocol, and stop where that does not help.",
        ),
    ] = PastTheLimit.stop,
    least_rows: Annotated[
        int | None, typer.Option(min=1, help="Instead of least_rows in the policy: of so many rows at least is told.")
    ] = None,
    most_epsilon: Annotated[
        float | None,
        typer.Option(help="Instead of most_epsilon in the policy: what all sums of this site may cost together."),
    ] = None,
    despite_difference: DespiteDifference = False,
    experiment_seed: Annotated[
        int | None, typer.Option(help="EXPERIMENTS ONLY: replace all secrets by draws that anybody can repeat.")
    ] = None,
    experiment_no_tls: Annotated[
        bool, typer.Option("--experiment-no-tls", help="EXPERIMENTS ONLY: send everything in the open.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take part in a ring: fit one model with the other sites, without showing them the data.

    The agent waits for its neighbours, however long that takes, and goes on where it was when it is started again.
    Nothing is lost when it is killed. It ends when the ring is done, and writes the model.

    \b
    Example:
      roundelay agent --ring ring.toml --folder oslo --data patients.csv --target outcome

    \b
    Exit codes besides those of roundelay --help:
      4    it stopped, and can go on from there; the sentence says what to do first
    """
    from roundelay.agents.links.open_files import allow_enough
    from roundelay.agents.site.taking_part import PrivacyLimit, Site, SiteOptions

    allow_enough()
    signed = read_plan(ring)
    _check_accepted(folder, signed.digest, ring)
    plan = signed.plan
    home = folder / "runs" / plan.run
    limit = PrivacyLimit(privacy_limit, past_limit.value if privacy_limit else "tell")
    options = SiteOptions(
        model=out or home / "model.json", warm=_warm(plan, warm), listen=listen, seed=experiment_seed,
        encrypted=not experiment_no_tls, privacy=limit, least_rows=least_rows, despite_difference=despite_difference,
        most_epsilon=most_epsilon,
    )  # fmt: skip
    reading = Reading()
    local = local_of(plan, target, objective, Rows(data, query, dask, home / "rows", reading))
    console = stderr_console()
    warn_of_open_files(folder)
    for flag, given in (("--experiment-seed", experiment_seed is not None), ("--experiment-no-tls", experiment_no_tls)):
        if given:
            console.print(f"{flag} is on: this run hides nothing. Never use it with data that matter.")
    site = Site(folder, plan.run, local, options)
    ending = _run(site, page, port, home, stay, reading)
    if as_json:
        print_json(_content(ending, options.model))
    else:
        _print(ending, options.model)


@dataclasses.dataclass
class Reading:
    """How far a pass over the rows is, where one is being made; who else wants to know, and whether nobody does any more."""

    done: int = 0
    total: int = 0
    show: Callable[[int, int], None] | None = None
    ended: bool = False

    def __call__(self, done: int, total: int) -> None:
        """So many of so many rows have been read."""
        from roundelay.batches.folder import PassError

        if self.ended:
            raise PassError(
                "The pass over the rows ended with its agent, which makes it anew when it is started again."
            )
        self.done, self.total = done, total
        if self.show is not None:
            self.show(done, total)

    @property
    def words(self) -> list[str]:
        """As part of a line."""
        return [f"{self.done:,} of {self.total:,} rows read"] if self.done < self.total else []


@dataclasses.dataclass(frozen=True)
class Rows:
    """Where the rows of a site are, and where those of a query are kept."""

    data: Path | None
    query: str | None
    dask: str | None
    kept: Path
    reading: Reading

    @property
    def by_batches(self) -> bool:
        """Whether they are read so."""
        return self.query is not None or (self.data is not None and self.data.is_dir())


def _run(site: Site, page: bool, port: int, home: Path, stay: bool, reading: Reading) -> Ending:
    """Run, and turn what may stop an agent into a sentence."""
    from roundelay.agents.agreement.differencing import DifferenceError
    from roundelay.agents.agreement.ledger import LedgerError
    from roundelay.agents.agreement.policy import PolicyError
    from roundelay.agents.links.agent_loop import RefusedError
    from roundelay.agents.links.grpc_transport import ListenError
    from roundelay.agents.page.server import PageError
    from roundelay.agents.protocol.baton import BatonError
    from roundelay.agents.protocol.holder import DeceivedError, SolverError
    from roundelay.agents.protocol.journal import JournalError
    from roundelay.agents.site.status import JsonLog
    from roundelay.agents.site.taking_part import NoMinimumError, PrivacyLimitError
    from roundelay.batches.folder import PassError

    site.log = log = JsonLog(home / "agent.log", site.name)
    try:
        return asyncio.run(_watched(site, page, port, home, stay, reading))
    except (
        JournalError,
        LedgerError,
        DifferenceError,
        PolicyError,
        SolverError,
        DeceivedError,
        RefusedError,
        PrivacyLimitError,
        NoMinimumError,
        ListenError,
        PageError,
        BatonError,
        PassError,
    ) as error:
        log("stopped", why=str(error))
        typer.echo(str(error), err=True)
        raise typer.Exit(STOPPED) from None
    except OSError as error:  # not in the log: it may be the log that can't be written
        where = f" {error.filename}" if error.filename else ""
        typer.echo(
            f"The agent can't go on with the file{where} ({error.strerror or error}). Nothing is lost: mend that, then start it again by the "
            "same command.",
            err=True,
        )
        raise typer.Exit(STOPPED) from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        log("interrupted")
        typer.echo("The agent was stopped. Its state is kept: the same command goes on from there.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        log.close()


async def _watched(site: Site, page: bool, port: int, home: Path, stay: bool, reading: Reading) -> Ending:
    """Run with a page and a line of progress."""
    from roundelay.agents.agreement.disk import write_whole
    from roundelay.agents.page import PageServer

    loop, this = asyncio.get_running_loop(), asyncio.current_task()
    assert this is not None
    loop.add_signal_handler(signal.SIGTERM, this.cancel)
    watches: list[Watch] = []
    site.on_epoch = watches.append
    progress = asyncio.create_task(_progress(watches, reading))
    server: Any = None
    running = asyncio.create_task(site.run())
    try:
        while page and not watches and not running.done():
            await asyncio.sleep(0.01)
        if page and watches:
            server = PageServer(lambda: watches[-1].status(), port, model=lambda: watches[-1].model)
            address = await server.start()
            write_whole(home / "page", address.encode())
            stderr_console().print(f"Watch it here: {address}", soft_wrap=True)
        try:
            ending = await running
        except Exception as error:
            if stay and server is not None:
                watches[-1].failed = str(error)
                progress.cancel()
                stderr_console().print(f"{error} The page stays until Ctrl-C.", soft_wrap=True)
                await _until_stopped()
            raise
        if stay and server is not None:
            progress.cancel()
            stderr_console().print("The ring is done. The page stays until Ctrl-C.")
            await _until_stopped()
        return ending
    finally:
        reading.ended = True
        progress.cancel()
        running.cancel()
        await asyncio.gather(progress, running, return_exceptions=True)
        if server is not None:
            await server.stop()
            with contextlib.suppress(OSError):
                (home / "page").unlink()


async def _until_stopped() -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


async def _progress(watches: list[Watch], reading: Reading) -> None:
    """One line that is kept up where somebody watches; elsewhere a line now and then."""
    console = stderr_console()
    wait, last = 5.0, ""
    with console.status("Waiting for the ring …") if console.file.isatty() else contextlib.nullcontext() as line:
        while True:
            await asyncio.sleep(0.2 if line is not None else wait)
            words = ", ".join([_words(watches[-1]) if watches else "Waiting for the ring …", *reading.words])
            if line is not None:
                line.update(as_it_stands(words))
            elif words != last:
                console.print(words)
                last, wait = words, min(2.0 * wait, 60.0)


def as_it_stands(words: str) -> Any:
    """A spinner takes words for markup, and some of these are another site's."""
    from rich.text import Text

    return Text(words)


def _words(watch: Watch) -> str:
    """How far it is, in a line."""
    status = watch.status()
    down = [link.name for link in status.links if not link.up]
    trouble = next((link.trouble for link in status.links if link.trouble), "")
    parts = [f"{status.site}: {status.doing}, hop {status.hop % 2**40:,}"]
    if status.sealed:
        parts[0] = f"{status.site}: {status.doing}, lap {status.visits}"
    elif status.residuals:
        parts.append(f"residual {status.residuals[-1].unrest:.1e}")
    if status.epoch:
        parts.append(f"epoch {status.epoch}")
    if down:
        parts.append(f"no link to {', '.join(down)}")
    return ", ".join(parts) + (f". {trouble}" if trouble else "")


# ---------------------------------------------------------------- what is given


def _check_accepted(folder: Path, digest: str, ring: Path) -> None:
    from roundelay.agents.agreement.folder import is_accepted

    if not is_accepted(folder, digest):
        raise ValueError(
            f"The ring file {ring} has not been accepted in {folder}: read it by roundelay ring show, compare the fingerprints "
            f"with the other sites, then accept it by roundelay ring accept {ring} --folder {folder}."
        )


def local_of(plan: RingPlan, target: str | None, objective: str | None, rows: Rows) -> Local:
    """The site's own function, or the rows that it is made of."""
    from roundelay.agents.data.fitting import RowsFit
    from roundelay.agents.data.objectives import load_objective
    from roundelay.agents.data.reading import read_own_rows, read_site_rows
    from roundelay.agents.data.regressing import RegressionFit

    task, data = plan.task, rows.data
    if rows.dask is not None and not rows.by_batches:
        raise ValueError("--dask reads rows by batches: give a folder of Parquet files by --data, or a --query.")
    if task.kind == "custom":
        if objective is None or data is not None or rows.query is not None:
            raise ValueError(
                "This ring fits an objective of the sites' own: name yours by --objective, without --data."
            )
        return load_objective(objective, task.dim)
    if (data is None and rows.query is None) or objective is not None:
        raise ValueError("This ring fits data: name this site's file or folder by --data, without --objective.")
    explained = task.explained[1]
    if target is not None and explained is not None and target != explained.name:
        raise ValueError(
            f"The target is {target!r}, but the ring file explains {explained.name!r}: leave --target out."
        )
    if rows.by_batches:
        return _by_batches(plan, rows)
    assert data is not None
    if task.regression is not None:
        own = read_site_rows(data, task.regression, task.missing)
        _say_dropped(own.dropped)
        return RegressionFit(task, own)
    own_rows = read_own_rows(data, task)
    _say_dropped(own_rows.dropped)
    fit = RowsFit(task, own_rows)
    if task.promise is not None:
        stderr_console().print(
            f"{fit.beyond:,} cells of {own_rows.count:,} rows lie beyond the bounds, and are moved to them."
        )
    return fit


def _by_batches(plan: RingPlan, rows: Rows) -> Local:
    """Rows that need not fit into memory, looked at once."""
    from roundelay.agents.data.by_batches import read_by_batches
    from roundelay.batches import PassError, Passes, rows_of_query

    reading = rows.reading
    try:
        if rows.query is not None:
            asked = Path(rows.query).read_text(encoding="utf-8") if rows.query.endswith(".sql") else rows.query
            source: Any = rows_of_query(asked, rows.kept, rows.data)
        else:
            source = rows.data
        with progress_lines("rows", keep=False) as tell:
            reading.show = lambda done, total: tell("reading", done, total)
            fit = read_by_batches(source, plan.task, Passes(dask=rows.dask, tell=reading), plan.choice is None)
    except PassError as error:
        raise ValueError(str(error)) from None
    finally:
        reading.show = None
    _say_dropped(fit.dropped)
    return fit


def _say_dropped(rows: int) -> None:
    if rows:
        stderr_console().print(f"{rows:,} rows with empty cells are left out, as the ring file says.")


def _warm(plan: RingPlan, warm: Path | None) -> Path | None:
    if plan.warm != (warm is not None):
        raise ValueError(
            "This ring starts from an earlier model: name it by --warm."
            if plan.warm
            else "This ring does not start from an earlier model: leave --warm out, or plan the ring with --warm."
        )
    return warm


# ---------------------------------------------------------------- what is said


def _content(ending: Ending, path: Path | None) -> dict[str, Any]:
    model, notes = ending.model, ending.notes
    return {
        **model_content(model, ending.result, notes.privacy),
        "reason": notes.reason,
        "hops": notes.hops,
        "questions": notes.questions,
        "doubt": notes.doubt,
        "model": str(path),
        "own_fit": None if ending.own_fit is None else dataclasses.asdict(ending.own_fit),
        "unconfirmed": ending.unconfirmed,
    }


def _print(ending: Ending, path: Path | None) -> None:
    from roundelay.agents.agreement.plan import REGRESSION

    model = ending.model
    typer.echo(ending.notes.reason)
    if ending.notes.doubt:
        typer.echo(f"NOT AS AGREED: {ending.notes.doubt}")
    if ending.result is not None:
        from roundelay.regression.shown.printed import printed

        typer.echo(printed(ending.result))
        typer.echo(f"The model is in {path}; roundelay model report {path} makes a page of it.")
        if path is not None:
            from roundelay.agents.data.models import sums_beside

            typer.echo(
                f"What all sites told each other is in {sums_beside(path)}: it has counts of few rows and is for the sites alone."
            )
    else:
        print_coefficients(model, ending.notes.privacy)
        typer.echo(f"The model is in {path}.")
        if model.kind == REGRESSION:
            typer.echo(
                "It has no tables: the fit was ended before it was looked at, or what was told of all rows there can't be of any rows."
            )
    if ending.own_fit is not None:
        typer.echo(ending.own_fit.in_words(ending.notes.run))
    if ending.unconfirmed:
        typer.echo(
            f"{ending.unconfirmed} has not confirmed that it has the end. Nothing is missing here; where it still waits for its "
            "model, start this agent once more by the same command while its agent runs, and the end is handed over again."
        )
