"""`roundelay doctor`: what may keep a site's agent from running, and what to do about it."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from roundelay.cli.options import AsJson
from roundelay.cli.output import print_json
from roundelay.cli.ring.files import Folder

FOUND = 1


def doctor(
    folder: Folder,
    listen: Annotated[str, typer.Option(help="Where the agent listens, as it is told by its own --listen.")] = "",
    as_json: AsJson = False,
) -> None:
    """Look at a site's clock, port, certificates, disk, versions, permissions and neighbours, and say what to do.

    Nothing is changed, and a running agent is not disturbed.

    \b
    Example:
      roundelay doctor --folder oslo

    \b
    Exit codes besides those of roundelay --help:
      0    all is well
      1    there is something to do
    """
    from roundelay.agents.site.examination import examine

    findings = []
    for one in examine(folder, listen):
        findings.append(one)
        if not as_json:
            typer.echo(f"{'to do' if one.remedy else 'well '}  {one.about}: {one.sentence}")
            if one.remedy:
                typer.echo(f"       → {one.remedy}")
    if as_json:
        print_json({"findings": [dataclasses.asdict(one) for one in findings]})
    if any(one.remedy for one in findings):
        raise typer.Exit(FOUND)
