"""`roundelay model`: what there is to know of the file of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roundelay.cli.options import AsJson
from roundelay.cli.output import print_json
from roundelay.cli.ring.app import CommandsOfARing
from roundelay.cli.ring.files import read_plan

model = typer.Typer(name="model", cls=CommandsOfARing, no_args_is_help=True, rich_markup_mode=None)


@model.callback()
def model_command() -> None:
    """Check the file of a model that a ring has fitted.

    \b
    Example:
      roundelay model verify model.json --ring ring.toml
    """


@model.command(short_help="Check that every site has signed a model.")
def verify(
    file: Annotated[Path, typer.Argument(metavar="MODEL", help="The file of the model.")],
    ring: Annotated[Path, typer.Option("--ring", help="The ring file by which it was fitted.")],
    as_json: AsJson = False,
) -> None:
    """Check that every site of a ring has signed the end that a model comes from, and that it follows from what was signed.

    No key is needed, and no site is asked. A signature says: this is the end that I have seen, at this point, after these sums. Of a
    fit by a token that all were content with it says too that the site itself found it so. Whether a site has told the truth
    about its own data nobody can see; how near the end is, and whether all went as agreed, is the word of the site that wrote the
    file. The fingerprints of the sites stand in the ring file: roundelay ring show.

    \b
    Example:
      roundelay model verify model.json --ring ring.toml
    """
    from roundelay.agents.site.verification import verify_model
    from roundelay.tables import harmless

    signed = read_plan(ring)
    stored = verify_model(file, signed)
    names = [member.name for member in signed.plan.members]
    if as_json:
        print_json({"model": str(file), "run": signed.plan.run, "ring": signed.digest, "signed_by": names})
        return
    typer.echo(f"All {len(names)} sites have signed this model: {', '.join(names)}.")
    typer.echo(stored.about.reason)
    if stored.about.doubt:
        typer.echo(f"NOT AS AGREED, says the site that wrote it: {harmless(stored.about.doubt)}")
