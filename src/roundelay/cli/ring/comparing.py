"""`roundelay ring compare`: the journals of sites that agree to show them, held against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roundelay.cli import completion
from roundelay.cli.options import AsJson
from roundelay.cli.output import print_json
from roundelay.cli.ring.files import read_plan

FOUND = 1


def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER…", help="The run's folder of each site that agrees: oslo/runs/<run id>."),
    ],
    ring: Annotated[
        Path,
        typer.Option("--ring", help="The ring file of the run's last epoch.", autocompletion=completion.ring_files),
    ],
    as_json: AsJson = False,
) -> None:
    """Hold the journals of several sites against each other, and name who handed over or told what it should not have.

    For when a run came out wrong and the operators agree to look: each copies the folder of the run to one place, after its agent was
    stopped. It holds what neighbours already know of each other; keys for masks and the seed need not be copied. No key is needed.

    While a ring runs, both ends of each link sign every minute, and before the end, what crossed it. So a site that
    shows another journal than it kept is named by its own signature. Where journals differ in what nobody has signed, both ends of
    that link are named. Whose journal one is it says itself: take each from its own site. Whether a site's own part of a sum or of the token follows from its data no journal can tell.

    \b
    Example:
      roundelay ring compare --ring ring.toml oslo/run bergen/run tromso/run

    \b
    Exit codes besides those of roundelay --help:
      0    all fits
      1    something does not
    """
    from roundelay.agents.site.comparing import compare_journals

    found = compare_journals(read_plan(ring), folders)
    if as_json:
        findings = [{"sites": list(one.sites), "finding": one.sentence} for one in found.findings]
        unsigned = [list(pair) for pair in found.unsigned]
        content = {
            "journals": list(found.journals),
            "folders": list(map(str, found.folders)),
            "hand_overs": found.hand_overs,
            "findings": findings,
            "unsigned": unsigned,
        }
        print_json(content)
    else:
        for name, folder in zip(found.journals, found.folders, strict=True):
            typer.echo(f"{folder}: the journal of {name}, as it says itself.")
        typer.echo(f"{found.hand_overs} hand-overs between {', '.join(found.journals)}.")
        for one in found.findings:
            typer.echo(f"{' or '.join(one.sites)}: {one.sentence}")
        for site, peer in found.unsigned:
            typer.echo(
                f"{peer} shows no signature of {site}: the run was too short for that, or {site} would not sign, or {peer} does not show it."
            )
        if not found.findings:
            typer.echo("All fits.")
    if found.findings:
        raise typer.Exit(FOUND)
