"""`roundelay ring demo`: the main job, for real, in less than a minute."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from roundelay.cli.options import AsJson
from roundelay.cli.output import print_json, stderr_console, stdout_console
from roundelay.cli.ring.planning import algorithm_for, usual_tolerance
from roundelay.cli.ring.up import NAMES, Incident, run_all
from roundelay.kernels import Vector

if TYPE_CHECKING:
    from roundelay.agents.site.rehearsal import Rehearsal, Seat
    from roundelay.agents.site.status import MeterReading, PrivacyStatus

SITES, VICTIM, KILL_AT = 5, 2, 300
ASKED_FOR = 1e-6
# So many batons are looked for; each takes a search through the whole capture.
SAMPLE = 300


class Shown(NamedTuple):
    """What came of one run, for the table: how far it is from the pooled fit, and what it cost and gave away."""

    name: str
    laps: int
    hops: int
    bytes: int
    seconds: float
    difference: float
    privacy: PrivacyStatus | None
    wire: str


def demo(
    folder: Annotated[Path, typer.Option(help="Where the sites' folders go; what is there is replaced.")] = Path(
        "out/ring-demo"
    ),
    as_json: AsJson = False,
) -> None:
    """Five sites fit one model to the diabetes data, which stay where they are: twice, and each time one of them is killed.

    Five processes with mutual TLS and journals have 442 patients, split unevenly. First they run the paper's PI-ADMM1, a token
    that goes round; then sealed laps, the default, where each lap is one sum under masks. Each time one agent is
    killed as by a power cut and started again. In the end every coefficient is held against the fit on the pooled data, the
    wire against what may be seen on it, and both methods stand side by side.

    \b
    Example:
      roundelay ring demo
    """
    from roundelay.agents.agreement.plan import Stopping
    from roundelay.agents.site.rehearsal import fit_by_all_others, prepare_ring, uneven_parts
    from roundelay.agents.site.taking_part import PAUSED
    from roundelay.algorithms.parts.starts import SealedStart
    from roundelay.algorithms.token.incremental import PIADMM1

    header, rows = diabetes()
    parts = [[rows[row] for row in part] for part in uneven_parts(len(rows), SITES, seed=0)]
    if folder.exists():
        shutil.rmtree(folder)
    say = partial(typer.echo, err=as_json)  # what is told on the way is no result
    task = fit_by_all_others(header, "progression", "least_squares")
    sites = dict(zip(NAMES, parts, strict=False))
    token = prepare_ring(folder, header, sites, task, PIADMM1(rho=0.3, start=SealedStart()), Stopping(1e-9))
    sizes = ", ".join(f"{seat.name} {seat.rows}" for seat in token.seats)
    say(f"{SITES} sites with {len(rows)} patients ({sizes}) fit one linear model. No row leaves its site.")
    pooled = _pooled(rows)

    say("\nFirst as in the paper: a token goes round, and each site changes it (PI-ADMM1).")
    victim = token.seats[VICTIM]
    in_the_middle = Incident(victim, lambda now: now["hop"] >= KILL_AT, lambda: _cut_the_power(token, victim))
    first = _run("PI-ADMM1", token, in_the_middle, pooled, say)

    say("\nThen by sealed laps, the default: in each lap all sites add up one answer, under masks that cancel.")
    method = algorithm_for(task, SITES, "SealedLaps", None, ())
    sealed = token.another("sealed", method, Stopping(usual_tolerance(method)))
    victim = sealed.seats[VICTIM]
    # It is over in a blink: so that it can be killed in the middle, the site keeps the baton when it comes.
    pause = sealed.home_of(victim) / PAUSED
    pause.parent.mkdir(parents=True)
    pause.touch()

    def while_it_holds_the_baton() -> None:
        pause.unlink()
        _cut_the_power(sealed, victim)

    with_the_baton = Incident(victim, lambda now: now["token_here"], while_it_holds_the_baton)
    stay = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
    second = _run("sealed laps", sealed, with_the_baton, pooled, say, stay)

    fitted = _coefficients(sealed, header, pooled)
    if as_json:
        print_json(
            {
                "coefficients": [one._asdict() for one in fitted],
                "runs": [_content(run) for run in (first, second)],
                "folder": str(folder),
            }
        )
    else:
        _print_coefficients(fitted)
        _side_by_side((first, second))
    say(f"{first.wire}\n{second.wire}")
    say("A ring on data of your own: roundelay ring up --help.")
    if max(first.difference, second.difference) > ASKED_FOR:
        say(f"NOT ALL AGREE with the pooled fit (asked for: {ASKED_FOR:.0e}).")
        raise typer.Exit(1)


def _cut_the_power(rehearsal: Rehearsal, victim: Seat) -> None:
    rehearsal.kill(victim)
    stderr_console().print(f"{victim.name} was killed (kill -9), and is started again.")
    time.sleep(0.5)
    rehearsal.start(victim)


def _run(
    name: str,
    rehearsal: Rehearsal,
    incident: Incident,
    pooled: Vector,
    say: Callable[[str], None],
    stay: bool = False,
) -> Shown:
    """Let the sites fit the model, while the wire is tapped, and see what came of it."""
    from roundelay.agents.site.taking_part import read_privacy

    began = time.monotonic()
    ports = [int(member.address.rpartition(":")[2]) for member in rehearsal.plan.members]
    with tap(ports, rehearsal.ring.with_suffix(".pcap")) as tapped:
        run_all(rehearsal, incident, stay)
    seconds = time.monotonic() - began
    about = rehearsal.models()[0].about
    say(about.reason)
    batons = _hand_overs(rehearsal)
    once = sorted(one.k for one in batons) == list(range(len(batons)))
    words = "each once, none lost" if once else "BUT NOT EACH ONCE"
    say(f"{incident.seat.name} was killed on the way: the journals have {len(batons):,} hand-overs, {words}.")
    return Shown(
        name,
        about.questions,
        len(batons),
        sum(len(one.sent) + one.beside for one in batons),
        seconds,
        max(_difference(model, pooled) for model in _models(rehearsal)),
        read_privacy(rehearsal.seats[0].folder, rehearsal.plan.run),
        wire_in_words(name, [one.sent for one in batons], tapped),
    )


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


def _pooled(rows: list[list[str]]) -> Vector:
    """The fit on all rows in one place, the intercept last."""
    from sklearn.linear_model import LinearRegression

    table = np.array(rows, np.float64)
    found = LinearRegression().fit(table[:, :-1], table[:, -1])
    return np.append(found.coef_, found.intercept_)


def _models(rehearsal: Rehearsal) -> list[Vector]:
    """Every site's coefficients, the intercept last."""
    models = [stored.model for stored in rehearsal.models()]
    return [np.array([*(value for _, value in model.coefficients), model.intercept]) for model in models]


def _difference(model: Vector, pooled: Vector) -> float:
    """The largest difference of a coefficient, in parts of its size where that is above 1."""
    return float((np.abs(model - pooled) / np.maximum(np.abs(pooled), 1.0)).max())


class _HandOver(NamedTuple):
    """A hand-over that a site's journal says it has taken: its number, the numbers that it sent on, and how many bytes beside them."""

    k: int
    sent: bytes
    beside: int


def _hand_overs(rehearsal: Rehearsal) -> list[_HandOver]:
    from roundelay.agents.data.fitting import sums_of
    from roundelay.agents.protocol.baton import Phase
    from roundelay.agents.protocol.holder import layout_of
    from roundelay.agents.protocol.journal import Journal

    layout, found = layout_of(rehearsal.plan, sums_of(rehearsal.plan.task)), []
    for seat in rehearsal.seats:
        journal = Journal(rehearsal.home_of(seat), rehearsal.plan.run, seat.name)
        for row in journal.passages():
            beside = 0 if row.sent_phase < 0 else layout.beside(Phase(row.sent_phase))
            found.append(_HandOver(row.k, row.sent or b"", beside))
        journal.close()
    return found


class Coefficient(NamedTuple):
    """One as the ring has it, and as the fit on the pooled data has it."""

    name: str
    ring: float
    pooled: float
    largest_difference: float


def _coefficients(rehearsal: Rehearsal, header: list[str], pooled: Vector) -> list[Coefficient]:
    """Every coefficient at every site against the fit on the pooled data."""
    models = _models(rehearsal)
    return [
        Coefficient(name, models[0][place], truth, max(abs(model[place] - truth) for model in models))
        for place, (name, truth) in enumerate(zip([*header[:-1], "intercept"], pooled.tolist(), strict=True))
    ]


def _content(run: Shown) -> dict[str, Any]:
    """A run for machines."""
    privacy = None if run.privacy is None else asdict(run.privacy)
    return {**run._asdict(), "privacy": privacy}


def _print_coefficients(fitted: list[Coefficient]) -> None:
    from rich.table import Table

    shown = Table(show_edge=False, pad_edge=False)
    for column in ("", "the ring", "pooled data", "largest difference of any site"):
        shown.add_column(column, justify="left" if not column else "right")
    for one in fitted:
        shown.add_row(one.name, f"{one.ring:.6f}", f"{one.pooled:.6f}", f"{one.largest_difference:.1e}")
    typer.echo("\nThe model of the sealed laps:")
    stdout_console().print(shown)


def _side_by_side(runs: tuple[Shown, Shown]) -> None:
    """What both methods cost, how close they came, and what a site's two neighbours could know of its data."""
    from rich.table import Table

    shown = Table(show_edge=False, pad_edge=False)
    shown.add_column("")
    for run in runs:
        shown.add_column(run.name, justify="right")
    shown.add_row("hand-overs", *(f"{run.hops:,}" + f" ({run.laps} laps)" * bool(run.laps) for run in runs))
    shown.add_row("bytes handed over", *(f"{run.bytes:,}" for run in runs))
    shown.add_row("seconds, starting included", *(f"{run.seconds:.1f}" for run in runs))
    shown.add_row("largest error of a coefficient", *(f"{run.difference:.0e}" for run in runs))
    readings = [{leak.quantity: leak for leak in run.privacy.leaks} if run.privacy else {} for run in runs]
    quantities = list(dict.fromkeys(quantity for one in readings for quantity in one))
    if quantities:
        shown.add_section()
        shown.add_row("two neighbours can know (relative error)", "", "")
    for quantity in quantities:
        shown.add_row(f"  {quantity}", *(_known(one.get(quantity)) for one in readings))
    typer.echo("\nSide by side:")
    stdout_console().print(shown)
    for run in runs:
        if run.privacy is not None:
            typer.echo(f"{run.name[0].upper()}{run.name[1:]}: {run.privacy.sentence}")


def _known(leak: MeterReading | None) -> str:
    """How well something is known, in words."""
    if leak is None:
        return "not measured"
    return f"to {leak.error:.0e}" if leak.error < 0.5 * leak.guess else "a guess at best"


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


def wire_in_words(name: str, batons: list[bytes], captured: Path | None) -> str:
    """Whether any baton, or any frame, can be found in what was captured."""
    from roundelay.agents.protocol.wire import MAGIC

    if captured is None:
        return f"The wire of {name} was not tapped: that needs the rights of an administrator on Linux."
    content = captured.read_bytes()
    # The last numbers: the first may be 0 or 1, which stand in any packet.
    ends = [baton[-16:] for baton in batons if baton]
    sample = ends[:: max(len(ends) // SAMPLE, 1)]
    found, plain = sum(baton in content for baton in sample), content.count(MAGIC)
    tapped = f"The wire of {name} was tapped ({len(content):,} bytes)"
    if found or plain:
        return f"{tapped}: {found} of {len(sample)} batons STAND THERE IN THE OPEN."
    return f"{tapped}: of {len(sample)} batons that crossed it none can be found there, and no frame."
