"""`roundelay audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundelay.cli.output import print_json, progress_lines, stdout_console

if TYPE_CHECKING:
    import pandas as pd

    from roundelay.privacy.attacks import Recovered, RecoveredAnswers
    from roundelay.privacy.audit import Audit


def audit(
    run: Annotated[
        Path,
        typer.Argument(
            help="A saved run (with its transcript), a transcript alone, together with --public, or a capture of a real "
            "ring's packets (.pcap, .pcapng), together with --ring."
        ),
    ],
    observer: Annotated[
        str, typer.Option(help="Who listens: eavesdropper, neighbours, colluders, or a link such as 3-4.")
    ] = "neighbours",
    agent: Annotated[
        str, typer.Option(help="The agent that is looked at, or all; of a real ring also a site's name.")
    ] = "0",
    public: Annotated[
        Path | None, typer.Option(help="What is public, for a transcript alone: a file that save_public wrote.")
    ] = None,
    ring: Annotated[Path | None, typer.Option(help="The ring file, for a capture of a real ring's packets.")] = None,
    records: Annotated[
        int | None, typer.Option(help="How many rows every agent has, where that is public; up to 5 are attacked.")
    ] = None,
    ridge: Annotated[float, typer.Option(help="The ridge in every agent's loss, together with --records.")] = 0.0,
    seconds: Annotated[float, typer.Option(help="No attack is begun after so many seconds for an agent.")] = 30.0,
    figure: Annotated[
        Path | None, typer.Option(help="Draw estimate and truth over the hops to this file: .png, .svg or .pdf.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """What an observer learned about an agent, by every attack that applies.

    The attacks see the tokens or the words that the observer saw and what is public, and nothing else. A saved run has no
    data in it: what they find is held against the agents' states at the end, or in sealed laps against their answers, which the
    run's seed opens. For a transcript alone there is no truth to hold
    it against; then the table has each attack's own residual. With --json there are also the estimates themselves.

    A capture of a real ring has tokens to read only where the links were not encrypted, which is for experiments.

    \b
    Example:
      roundelay simulate piadmm1 --hops 2000 --transcript --save run.npz
      roundelay audit run.npz --observer neighbours --agent 3 --figure leak.png
      roundelay audit capture.npz --public public.json --observer eavesdropper
      roundelay audit capture.pcap --ring ring.toml --observer eavesdropper --agent Oslo --json
    """
    from roundelay.plots.saving import check_figure_path, save_figure

    if figure is not None:
        check_figure_path(figure)
    watcher = _observer(observer)
    if ring is not None or run.suffix.lower() in (".pcap", ".pcapng"):
        result = _audit_capture(run, ring, public, watcher, agent, seconds, records, ridge)
    elif public is not None:
        from roundelay.privacy import load_public
        from roundelay.privacy.audit import audit_transcript
        from roundelay.transcripts import load_transcript

        result = audit_transcript(
            load_transcript(run), load_public(public), watcher, _number(agent, "--agent"), seconds, records, ridge
        )
    else:
        from roundelay.engine import load_run
        from roundelay.privacy.audit import audit as audit_run

        loaded = load_run(run)
        if agent == "all":
            _audit_everyone(loaded, observer, seconds, as_json)
            return
        result = audit_run(loaded, watcher, _number(agent, "--agent"), seconds)
    if figure is not None:
        save_figure(result.figure(), figure)
    if as_json:
        print_json(
            {
                "agent": result.agent,
                "observer": result.observer,
                "visits": result.visits,
                "proven": result.proven,
                "leaks": result.table.to_dict("records"),
                "left_out": dict(result.left_out),
                "estimates": {name: _estimate(found) for name, found in result.estimates.items()},
            }
        )
        return
    typer.echo(str(result))
    if not result.leaks:
        return
    _print_table(result.table.drop(columns="verdict"))
    for name, why in result.left_out.items():
        typer.echo(f"Not run: {name}. {why}")


def _audit_capture(
    path: Path, ring: Path | None, public: Path | None, observer: Any, agent: str, seconds: float, records: int | None, ridge: float,
) -> Audit:  # fmt: skip
    from roundelay.agents.capture import public_of, read_capture
    from roundelay.cli.ring.files import read_plan
    from roundelay.privacy.audit import audit_transcript

    if ring is None:
        raise ValueError(f"{path} is a capture of packets: name the ring file by --ring, which says how to read it.")
    if public is not None:
        raise ValueError("The ring file says what is public: leave --public out.")
    plan = read_plan(ring).plan
    known, names = public_of(plan), [member.name for member in plan.members]
    number = names.index(agent) if agent in names else _number(agent, "--agent", "the name or the number of a site")
    captured = read_capture(path, plan)
    for sentence in captured.skipped:
        typer.echo(f"Not used: {sentence}", err=True)
    captured.check_whole(number if observer == "neighbours" else None)
    return audit_transcript(captured.transcript, known, observer, number, seconds, records, ridge)


def _estimate(found: Recovered | RecoveredAnswers) -> dict[str, Any]:
    """What an attack found; rows of x and y are the agent's states before the first and after each visit, `answers` those to each lap."""
    about: dict[str, Any] = {"residual": found.residual, "converged": found.converged, "words": found.words}
    numbers = {name: getattr(found, name, None) for name in ("x", "y", "answers", "H", "g", "records", "gamma")}
    return about | {name: value for name, value in numbers.items() if value is not None}


def _audit_everyone(run: Any, observer: str, seconds: float, as_json: bool) -> None:
    from roundelay.privacy.audit import audit_all

    if observer not in ("eavesdropper", "neighbours", "colluders"):
        raise ValueError("All agents are audited for one kind of observer: eavesdropper, neighbours or colluders.")
    with progress_lines("agents", keep=False) as tell:
        result = audit_all(run, observer, seconds, lambda done, total: tell("audit", done, total))  # type: ignore[arg-type]
    if as_json:
        print_json({"observer": observer, "agents": len(result.audits), "leaks": result.table.to_dict("records")})
        return
    typer.echo(str(result))
    _print_table(result.table)


NARROW = 10


def _print_table(frame: pd.DataFrame) -> None:
    from rich.table import Table

    rows = [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    table = Table(show_edge=False, pad_edge=False)
    for column, cells in zip(frame.columns, zip(*rows, strict=True), strict=True):
        # However narrow the terminal, no number loses digits.
        longest = max(map(len, cells))
        whole = longest if longest <= NARROW else None
        table.add_column(str(column), no_wrap=column in ("quantity", "attack"), overflow="fold", min_width=whole)
    for row in rows:
        table.add_row(*row)
    stdout_console().print(table)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "–" if value != value else f"{value:.1e}"
    return str(value)


def _observer(words: str) -> Any:
    """A name, or the link between two agents."""
    from roundelay.transcripts import Link

    sender, dash, receiver = words.partition("-")
    if dash and sender.isdigit() and receiver.isdigit():
        return Link(int(sender), int(receiver))
    return words


def _number(words: str, option: str, wanted: str = "the number of an agent, or all") -> int:
    if not words.isdigit():
        raise ValueError(f"{option} is {words!r}: give {wanted}.")
    return int(words)
