"""`roundelay model`: what there is to know of the file of a model; and `roundelay predict`, what it says of other rows."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundelay.cli import completion
from roundelay.cli.exits import IN_PART, CommandsOfARing
from roundelay.cli.options import AsJson
from roundelay.cli.output import print_json
from roundelay.cli.ring.files import read_plan

if TYPE_CHECKING:
    from roundelay.agents.data.loaded import LoadedModel
    from roundelay.regression.shown.report import Signed

File = Annotated[Path, typer.Argument(metavar="MODEL", help="The file of the model.")]
Sums = Annotated[
    Path | None,
    typer.Option(
        "--sums",
        help="The sums that a regression was made of, which its members have; by default MODEL.sums.json beside it.",
    ),
]

model = typer.Typer(name="model", cls=CommandsOfARing, no_args_is_help=True, rich_markup_mode=None)


@model.callback()
def model_command() -> None:
    """Read the file of a model that a ring has fitted, make a report of it, and check who has signed it.

    \b
    Example:
      roundelay model show model.json
      roundelay model report model.json --ring ring.toml --out report.html
      roundelay model verify model.json --ring ring.toml
    """


@model.command(short_help="Print the tables of a model.")
def show(
    file: File,
    csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV, a row a coefficient, in the columns of R's broom.")
    ] = False,
    whole: Annotated[bool, typer.Option("--glance", help="Of --csv the one row of the whole fit instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print a model: coefficients with their errors and intervals, how well it fits, and who was looked at.

    Of a model that was fitted without a formula there are coefficients alone. With --json everything that the file says of the fit.

    \b
    Example:
      roundelay model show model.json
      roundelay model show model.json --csv > coefficients.csv
    """
    from roundelay.agents.data.loaded import load_model
    from roundelay.regression.shown.broom import as_csv

    if whole and not csv:
        raise ValueError("--glance is one of the two tables of --csv: give both.")
    if csv and as_json:
        raise ValueError("--csv and --json are two ways of printing the same: give one.")
    loaded = load_model(file)
    if csv:
        typer.echo(as_csv([loaded.glance()] if whole else loaded.tidy()), nl=False)
    elif as_json:
        print_json(_content(loaded))
    else:
        typer.echo(loaded.summary(), nl=False)


def _content(loaded: LoadedModel) -> dict[str, object]:
    result = loaded.result
    return {
        "tidy": loaded.tidy(),
        "glance": loaded.glance(),
        "result": None if result is None else dataclasses.asdict(result),
    }


@model.command(short_help="Make a report of a model, one file of HTML.")
def report(
    file: File,
    out: Annotated[Path, typer.Option("--out", help="Write the report here.")] = Path("report.html"),
    ring: Annotated[
        Path | None,
        typer.Option(
            "--ring",
            help="The ring file: then the signatures of all sites are checked first.",
            autocompletion=completion.ring_files,
        ),
    ] = None,
    sums: Sums = None,
) -> None:
    """Make a report of a model: its tables and pictures, who took part, what was disclosed, who has signed.

    It is one file that needs nothing else, and runs nothing: it can be sent, read aloud and printed. With --ring it says that all sites
    have signed; where they have not, no report is made. Where the sums of the sites are not beside the model, it says that the numbers
    were not held against them.

    \b
    Example:
      roundelay model report model.json --ring ring.toml --out report.html
    """
    from roundelay.agents.agreement.disk import USUAL, write_whole
    from roundelay.agents.data.loaded import LoadedModel, load_model

    loaded = load_model(file)
    known: Signed | None = None
    if ring is not None:
        from roundelay.agents.site.verification import verify_as_far_as_known

        verified = verify_as_far_as_known(file, read_plan(ring), sums)
        loaded, known = LoadedModel(verified.stored), "verified" if verified.whole else "in part"
    document = loaded.report(known)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, document.encode(), USUAL)
    typer.echo(f"The report is in {out}.")


@model.command(short_help="Check that every site has signed a model.")
def verify(
    file: File,
    ring: Annotated[
        Path,
        typer.Option("--ring", help="The ring file by which it was fitted.", autocompletion=completion.ring_files),
    ],
    sums: Sums = None,
    as_json: AsJson = False,
) -> None:
    """Check that every site of a ring has signed the end that a model comes from, and that it follows from what was signed.

    No key is needed, and no site is asked. A signature says: this is the end that I have seen, at this point, after these sums. Of a
    fit by a token that all were content with it says too that the site itself found it so. Whether a site has told the truth
    about its own data nobody can see; how near the end is, and whether all went as agreed, is the word of the site that wrote the
    file. The fingerprints of the sites stand in the ring file: roundelay ring show.

    The coefficients and tables of a regression follow from the point and from sums that only members have, in a file beside the model. Without it
    the signatures and the point are checked, and it is said that coefficients and tables were not; exit code 1.

    \b
    Example:
      roundelay model verify model.json --ring ring.toml
      roundelay model verify published.json --ring ring.toml --sums model.sums.json
    """
    from roundelay.agents.site.verification import lacks_sums, verify_as_far_as_known
    from roundelay.tables import harmless

    signed = read_plan(ring)
    verified = verify_as_far_as_known(file, signed, sums)
    stored, whole = verified.stored, verified.whole
    names = [member.name for member in signed.plan.members]
    if as_json:
        about = {"model": str(file), "run": signed.plan.run, "ring": signed.digest, "signed_by": names}
        print_json(about | {"checked": ["signatures", "point", *(["coefficients", "tables"] if whole else [])]})
        raise typer.Exit(0 if whole else IN_PART)
    what = "this model" if whole else "the end of the run that this model names, and the point in it"
    typer.echo(f"All {len(names)} sites have signed {what}: {', '.join(names)}.")
    if whole and verified.sums is not None:
        typer.echo(f"Its coefficients and tables follow from the sums in {verified.sums}, which they have signed too.")
    if not whole:
        typer.echo(f"NOT CHECKED: {lacks_sums(file, verified)}")
    typer.echo(stored.about.reason)
    if stored.about.doubt:
        typer.echo(f"NOT AS AGREED, says the site that wrote it: {harmless(stored.about.doubt)}")
    if not whole:
        raise typer.Exit(IN_PART)


def predict(
    file: File,
    rows: Annotated[Path, typer.Argument(metavar="ROWS", help="The rows to predict: a CSV or Parquet file.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the predictions here instead of printing them.")
    ] = None,
    link: Annotated[
        bool, typer.Option("--link", help="The linear predictor instead, as log-odds are of a chance.")
    ] = False,
) -> None:
    """Say what a model predicts for the rows of a file, with an interval of 95 % for the mean where it is known.

    The file needs the columns that the model was fitted on, but not the outcome. What comes out is CSV, a line for each row, which is
    named by its place in the file.

    \b
    Example:
      roundelay predict model.json new.csv --out predictions.csv
    """
    from roundelay.agents.data.loaded import load_model
    from roundelay.agents.data.reading import read_frame
    from roundelay.shown.numbers import printable

    loaded = load_model(file)
    loaded.check_predicts()
    frame, _ = read_frame(rows, loaded.features)
    predicted = loaded.predict(frame, link)
    text = predicted.to_csv(
        lineterminator="\n", header=[printable(str(name)) for name in predicted]
    )  # levels are others' words
    if out is None:
        typer.echo(text, nl=False)
        return
    from roundelay.agents.agreement.disk import USUAL, write_whole

    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, text.encode(), USUAL)
    typer.echo(f"The predictions for {len(frame):,} rows are in {out}.")
