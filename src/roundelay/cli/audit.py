"""`roundelay audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundelay.cli import completion, options
from roundelay.cli.output import print_result, progress_lines, stdout_console

if TYPE_CHECKING:
    import pandas as pd

    from roundelay.privacy.attacks import Recovered, RecoveredAnswers
    from roundelay.privacy.audit import Audit
    from roundelay.privacy.protocols.audit import SiteAudit


def audit(
    run: Annotated[
        Path,
        typer.Argument(
            help="A saved run (with its transcript), a transcript alone, together with --public, a capture of a real "
            "ring's packets (.pcap, .pcapng), together with --ring, or recorded messages of another protocol, together with --protocol."
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
    ring: Annotated[
        Path | None,
        typer.Option(
            help="The ring file, for a capture of a real ring's packets.", autocompletion=completion.ring_files
        ),
    ] = None,
    records: Annotated[
        int | None, typer.Option(help="How many rows every agent has, where that is public; up to 5 are attacked.")
    ] = None,
    ridge: Annotated[float, typer.Option(help="The ridge in every agent's loss, together with --records.")] = 0.0,
    protocol: Annotated[
        str | None,
        typer.Option(help="Messages of another protocol: ds.glm, v6-glm, pda.odal, fedavg, ds.cov, or 'sealed laps'."),
    ] = None,
    site: Annotated[str | None, typer.Option(help="With --protocol: the one site to look at, instead of all.")] = None,
    known_record: Annotated[
        Path | None, typer.Option(help="With --protocol: a CSV file of records; is each among the site's rows?")
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            help="With --protocol: all rows of the sites, a CSV file with a column 'site', to hold it against."
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="No attack is begun after so many seconds for an agent.")] = 30.0,
    figure: Annotated[
        Path | None, typer.Option(help="Draw estimate and truth over the hops to this file: .png, .svg or .pdf.")
    ] = None,
    style: options.Style = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """What an observer learned about an agent, by every attack that applies.

    The attacks see the tokens or the words that the observer saw and what is public, and nothing else. A saved run has no
    data in it: what they find is held against the agents' states at the end, or in sealed laps against their answers, which the
    run's seed opens. For a transcript alone there is no truth to hold
    it against; then the table has each attack's own residual. With --json there are also the estimates themselves.

    A capture of a real ring has tokens to read only where the links were not encrypted, which is for experiments.

    With --protocol it is about recorded messages of another federated protocol: what they say of each site, to whoever sees them.
    docs/protocols.md says how to record them, and what was measured.

    \b
    Example:
      roundelay simulate piadmm1 --hops 2000 --transcript --save run.npz
      roundelay audit run.npz --observer neighbours --agent 3 --figure leak.png
      roundelay audit capture.npz --public public.json --observer eavesdropper
      roundelay audit capture.pcap --ring ring.toml --observer eavesdropper --agent Oslo --json
      roundelay audit messages.jsonl --protocol ds.glm --site Oslo --known-record patient.csv
    """
    if protocol is not None:
        if figure is not None or ring is not None or public is not None or records is not None:
            raise ValueError("With --protocol there are no --figure, --ring, --public and --records: leave them out.")
        _audit_protocol(run, protocol, site, known_record, truth, as_json)
        return
    if (site, known_record, truth) != (None, None, None):
        raise ValueError(
            "--site, --known-record and --truth are of another protocol's messages: name it by --protocol."
        )
    from roundelay.plots.saving import check_figure_path, save_figure

    if figure is not None:
        check_figure_path(figure, style)
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
        save_figure(result.figure(), figure, style)
    if as_json:
        print_result(
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


def _audit_protocol(
    path: Path, protocol: str, site: str | None, known_record: Path | None, truth: Path | None, as_json: bool
) -> None:
    from roundelay.privacy.protocols import audit_protocol, load_messages
    from roundelay.privacy.protocols.audit import columns_of_records
    from roundelay.tables import harmless

    recorded = load_messages(path, protocol)
    columns = list(columns_of_records(recorded))
    asked = None if known_record is None else _records(known_record, columns)
    rows = None if truth is None else _rows_of_sites(truth, columns)
    with progress_lines("sites", keep=False) as tell:
        found = audit_protocol(recorded, site, asked, rows, tell)
    if as_json:
        print_result({"protocol": protocol, "seen_by": found.seen_by, "sites": [_of_site(one) for one in found.sites]})
        return
    for line in str(found).splitlines():
        typer.echo(harmless(line))
    _print_table(found.table)


def _of_site(one: SiteAudit) -> dict[str, Any]:
    """What was learned of a site: the numbers themselves, too."""
    totals = next((found.totals for found in one.learned.values() if found.totals is not None), None)
    counts = next((found.counts for found in one.learned.values() if found.counts is not None), None)
    return {
        "site": one.site,
        "rows": one.rows,
        "words": {name: found.words for name, found in one.learned.items()},
        "left_out": dict(one.left_out),
        "totals": None if totals is None else {"XtX": totals.XtX, "Xty": totals.Xty, "yty": totals.yty},
        "counts": None if counts is None else {"kinds": counts.kinds, "least": counts.least, "most": counts.most},
        "single_rows": one.single,
        "right": one.right,
        "wrong": one.wrong,
        "error_of_totals": one.totals_error,
        "records": [{"verdict": member.verdict, "why": member.why} for member in one.members],
    }


def _records(path: Path, columns: list[str], besides: tuple[str, ...] = ()) -> pd.DataFrame:
    import pandas as pd

    from roundelay.cli.data_files import check_numbers

    if not path.is_file():
        raise ValueError(
            f"There is no file {path}: give a CSV file with the columns {', '.join((*besides, *columns))}."
        )
    try:
        frame = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} can't be read as CSV ({error}): give a table with a header.") from None
    for column in (*besides, *columns):
        if column not in frame.columns:
            raise ValueError(f"{path} has no column {column!r}: it needs {', '.join((*besides, *columns))}.")
    if frame.empty:
        raise ValueError(f"{path} has no row below its header: give a record at least.")
    check_numbers(frame, columns, path)
    return frame[[*besides, *columns]]


def _rows_of_sites(path: Path, columns: list[str]) -> dict[str, pd.DataFrame]:
    frame = _records(path, columns, ("site",))
    return {str(name): rows[columns] for name, rows in frame.groupby("site")}


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
        print_result({"observer": observer, "agents": len(result.audits), "leaks": result.table.to_dict("records")})
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
