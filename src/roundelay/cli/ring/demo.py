"""`roundelay ring demo`: the main job, for real, in less than a minute."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from roundelay.cli.output import stderr_console, stdout_console
from roundelay.cli.ring.up import NAMES, run_all

if TYPE_CHECKING:
    from roundelay.agents.site.rehearsal import Rehearsal

SITES, KILL_AT = 5, 300
# So many tokens are looked for; each takes a search through the whole capture.
SAMPLE = 300


def demo(
    folder: Annotated[Path, typer.Option(help="Where the sites' folders go; what is there is replaced.")] = Path(
        "out/ring-demo"
    ),
) -> None:
    """Five sites fit one model to the diabetes data, which stay where they are; one of them is killed on the way.

    Five processes with mutual TLS and journals run PI-ADMM1 on 442 patients, split unevenly. In the middle one agent is
    killed as by a power cut and started again. In the end every coefficient is held against the fit on the pooled
    data, and the wire against what may be seen on it.

    \b
    Example:
      roundelay ring demo
    """
    from roundelay.agents.agreement.plan import Stopping
    from roundelay.agents.site.rehearsal import fit_by_all_others, prepare_ring, uneven_parts
    from roundelay.algorithms.parts.starts import SealedStart
    from roundelay.algorithms.token.incremental import PIADMM1

    header, rows = diabetes()
    parts = [[rows[row] for row in part] for part in uneven_parts(len(rows), SITES, seed=0)]
    if folder.exists():
        shutil.rmtree(folder)
    algorithm = PIADMM1(rho=0.3, start=SealedStart())
    task = fit_by_all_others(header, "progression", "least_squares")
    sites = dict(zip(NAMES, parts, strict=False))
    rehearsal = prepare_ring(folder, header, sites, task, algorithm, Stopping(1e-9))
    sizes = ", ".join(f"{seat.name} {seat.rows}" for seat in rehearsal.seats)
    typer.echo(f"{SITES} sites with {len(rows)} patients ({sizes}) fit one linear model. No row leaves its site.")
    victim = rehearsal.seats[2]

    def cut_the_power() -> None:
        rehearsal.kill(victim)
        stderr_console().print(f"{victim.name} was killed (kill -9), and is started again.")
        time.sleep(0.5)
        rehearsal.start(victim)

    began = time.monotonic()
    ports = [int(member.address.rpartition(":")[2]) for member in rehearsal.plan.members]
    with tap(ports, folder / "wire.pcap") as tapped:
        run_all(rehearsal, (KILL_AT, cut_the_power), stay=sys.stdin.isatty() and sys.stdout.isatty())
    typer.echo(f"{rehearsal.models()[0].about.reason} It took {time.monotonic() - began:.0f} s.")
    _compare(rehearsal, header, rows)
    _journals(rehearsal, victim.name)
    typer.echo(wire_in_words(rehearsal, tapped))
    _privacy(rehearsal)


def diabetes() -> tuple[list[str], list[list[str]]]:
    """The data that ship with scikit-learn, in their own units."""
    try:
        from sklearn.datasets import load_diabetes
    except ImportError:
        raise ImportError(
            "The demo needs scikit-learn for its data: install it by pip install 'roundelay[demo]'."
        ) from None
    found: Any = load_diabetes(scaled=False)
    units = {"age": "years", "bmi": "kg/m2", "bp": "mmHg"}
    names = [f"{name} [{units[name]}]" if name in units else name for name in found.feature_names]
    rows = [[repr(float(value)) for value in (*row, goal)] for row, goal in zip(found.data, found.target, strict=True)]
    return [*names, "progression"], rows


def _compare(rehearsal: Rehearsal, header: list[str], rows: list[list[str]]) -> None:
    """Every coefficient at every site against the fit on the pooled data."""
    from rich.table import Table
    from sklearn.linear_model import LinearRegression

    table = np.array(rows, np.float64)
    pooled = LinearRegression().fit(table[:, :-1], table[:, -1])
    models = [stored.model for stored in rehearsal.models()]
    shown = Table(show_edge=False, pad_edge=False)
    for column in ("", "the ring", "pooled data", "largest difference of any site"):
        shown.add_column(column, justify="left" if not column else "right")
    worst = 0.0
    expected = [*pooled.coef_, pooled.intercept_]
    for place, (name, truth) in enumerate(zip([*header[:-1], "intercept"], expected, strict=True)):
        found = [[*(value for _, value in model.coefficients), model.intercept][place] for model in models]
        apart = max(abs(value - truth) for value in found)
        worst = max(worst, apart / max(abs(truth), 1.0))
        shown.add_row(name, f"{found[0]:.6f}", f"{truth:.6f}", f"{apart:.1e}")
    stdout_console().print(shown)
    verdict = "All agree with" if worst <= 1e-6 else "NOT ALL AGREE with"
    typer.echo(f"{verdict} the pooled fit to {worst:.0e} (asked for: 1e-06).")
    if worst > 1e-6:
        raise typer.Exit(1)


def _journals(rehearsal: Rehearsal, victim: str) -> None:
    """What the journals say: every hand-over was taken once."""
    from roundelay.agents.protocol.journal import Journal

    taken: list[int] = []
    for seat in rehearsal.seats:
        journal = Journal(seat.folder / "runs" / rehearsal.plan.run, rehearsal.plan.run, seat.name)
        taken += [row.k for row in journal.passages()]
        journal.close()
    once = sorted(taken) == list(range(len(taken)))
    words = "each once, none lost" if once else "BUT NOT EACH ONCE"
    typer.echo(f"{victim} was killed in the middle: the journals have {len(taken):,} hand-overs, {words}.")


def _privacy(rehearsal: Rehearsal) -> None:
    """What the two neighbours of a site together could infer, by its own measurement."""
    from roundelay.agents.site.taking_part import read_privacy

    seat = rehearsal.seats[0]
    privacy = read_privacy(seat.folder, rehearsal.plan.run)
    if privacy is not None:
        typer.echo(f"What {seat.name}'s two neighbours together could infer, by its own privacy meter:")
        for leak in privacy.leaks:
            typer.echo(
                f"  {leak.quantity}: known to {leak.error:.0e} of its size ({leak.attack}; a guess: {leak.guess:g})"
            )
        typer.echo(f"  {privacy.sentence} docs/privacy.md says what hides more.")
    typer.echo("A ring on data of your own: roundelay ring up --help.")


@contextmanager
def tap(ports: list[int], path: Path) -> Iterator[Path | None]:
    """Capture what crosses these ports of this machine; nothing where that is not allowed."""
    from roundelay.agents.capture import Sniffer

    try:
        sniffer = Sniffer(ports, path)
        sniffer.__enter__()
    except PermissionError:
        yield None
        return
    try:
        yield path
    finally:
        sniffer.__exit__(None, None, None)


def wire_in_words(rehearsal: Rehearsal, captured: Path | None) -> str:
    """Whether any token, or any frame, can be found in what was captured."""
    from roundelay.agents.protocol.journal import Journal
    from roundelay.agents.protocol.wire import MAGIC

    if captured is None:
        return "The wire was not tapped: that needs the rights of an administrator on Linux."
    content = captured.read_bytes()
    tokens: list[bytes] = []
    for seat in rehearsal.seats:
        journal = Journal(seat.folder / "runs" / rehearsal.plan.run, rehearsal.plan.run, seat.name)
        tokens += [row.sent[:8] for row in journal.passages() if row.sent]
        journal.close()
    sample = tokens[:: max(len(tokens) // SAMPLE, 1)]
    found = sum(token in content for token in sample)
    plain = content.count(MAGIC)
    if found or plain:
        return f"The wire was tapped ({len(content):,} bytes): {found} of {len(sample)} tokens STAND THERE IN THE OPEN."
    return (
        f"The wire was tapped ({len(content):,} bytes): of {len(sample)} tokens that crossed it none can be found there, "
        "and no frame."
    )
