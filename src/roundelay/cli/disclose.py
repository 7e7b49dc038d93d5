"""`roundelay disclose`: what a run will disclose of a site, for whoever answers for its data, before anything runs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundelay.cli.options import AsJson
from roundelay.cli.output import print_json, stdout_console
from roundelay.cli.ring.files import RingFile, read_plan

if TYPE_CHECKING:
    from roundelay.agents.agreement.ringfile import SignedPlan
    from roundelay.agents.data.objectives import Local
    from roundelay.shown.document import Document, Part

REFUSED = 1
# Cells have sentences: where nothing says how wide a line may be, they are broken so that they can be read.
WIDEST = 160


def disclose(
    ring: RingFile,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", help="The folder of a site: then the page is for this site, with its policy and its ledger."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="This site's rows: then the plan is held against them, too, as its agent does."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the page as one file of HTML.")
    ] = None,
    pdf: Annotated[Path | None, typer.Option("--pdf", metavar="FILE", help="Write the page as a PDF.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a run will disclose, before anything runs: for a privacy officer.

    It says which numbers leave a site and who can see them; what two neighbours, all others but one, and a thief of keys could work out of them;
    whether the site's policy allows it; what the site's ledger has already, and whether old and new sums together would tell of a single site; and what
    is not promised. Nothing is sent, and nothing is accepted. The files of --html and --pdf are made to be attached to a data-protection impact
    assessment: each is whole by itself, and nothing in it runs. Without --folder it is what each site would disclose, as whoever plans the ring wants to
    know it, held against the policy of a site that has changed nothing.

    \b
    Example:
      roundelay disclose ring.toml
      roundelay disclose ring.toml --folder oslo --data patients.csv --html disclosed.html --pdf disclosed.pdf

    \b
    Exit codes besides those of roundelay --help:
      0    the plan keeps to the policy, as far as can be said now
      1    it breaks an entry of the policy, or would tell of a single site together with earlier sums
    """
    from roundelay.agents.agreement.disk import USUAL, write_whole
    from roundelay.agents.site.disclosure import content_of, disclosure, document_of
    from roundelay.shown.document import as_html

    if data is not None and folder is None:
        raise ValueError("--data are the rows of a site: name its folder, too, by --folder.")
    signed = read_plan(ring)
    found = disclosure(signed, datetime.now(UTC), folder, None if data is None else _rows(signed, folder, data))
    document = document_of(found)
    written = []
    if pdf is not None:
        from roundelay.shown.pdf import as_pdf

        written.append((pdf, as_pdf(document)))
    if html is not None:
        written.append((html, as_html(document).encode()))
    for path, content in written:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content, USUAL)
    if as_json:
        print_json(content_of(found))
    elif written:
        _print_notes(document)
        typer.echo(f"The page is in {' and '.join(str(path) for path, _ in written)}.")
    else:
        _print(document)
    if found.is_refused:
        raise typer.Exit(REFUSED)


def _rows(signed: SignedPlan, folder: Path | None, data: Path) -> Local:
    """The site's rows, read as its agent reads them."""
    from roundelay.cli.agent import Reading, Rows, local_of

    assert folder is not None
    rows = Rows(data, None, None, folder / "runs" / signed.plan.run / "rows", Reading())
    return local_of(signed.plan, None, None, rows)


def _print_notes(document: Document) -> None:
    for note in document.notes:
        _print_part(note)


def _print(document: Document) -> None:
    """The page in the terminal: its sentences in lines, its tables as wide as there is room."""
    from roundelay.shown.document import in_text

    typer.echo(f"{in_text(document.title)}\n\n{in_text(document.about)}\n")
    _print_notes(document)
    for name, value in document.facts:
        typer.echo(f"  {name}: {in_text(value)}")
    for section in document.sections:
        typer.echo(f"\n{section.title.upper()}\n")
        for part in section.parts:
            _print_part(part)
    typer.echo(f"\n{in_text(document.last_words)}")


def _print_part(part: Part) -> None:
    from roundelay.shown.document import Judged, Note, in_text

    if isinstance(part, Note):
        typer.echo(in_text(f"{'! ' if part.look == 'bad' else ''}{part.words}"))
    elif isinstance(part, str):
        typer.echo(in_text(part))
    else:
        _print_table(part.table if isinstance(part, Judged) else part)


def _print_table(shown: object) -> None:
    from rich.table import Table as Columns

    from roundelay.shown.numbers import printable
    from roundelay.shown.table import Table

    assert isinstance(shown, Table)
    columns = Columns(show_edge=False, pad_edge=False, show_lines=True)
    for place, head in enumerate(shown.header):
        columns.add_column(printable(head), justify="left" if place < shown.words else "right")
    for row in shown.rows:
        columns.add_row(*map(printable, row))
    console = stdout_console()
    console.width = min(console.width, WIDEST)
    typer.echo()
    console.print(columns)
    typer.echo()
