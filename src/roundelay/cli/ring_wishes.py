"""`roundelay ring pause | resume | stop`: what an operator wants of his running agent."""

from __future__ import annotations

import typer

from roundelay.cli.ring_files import read_plan
from roundelay.cli.ring_options import Folder, RingFile


def pause(ring: RingFile, folder: Folder) -> None:
    """Let this site's agent keep the token when it comes. Nothing is lost, and everybody waits.

    \b
    Example:
      roundelay ring pause ring.toml --folder oslo
    """
    from roundelay.agents.site import PAUSED, ask

    ask(folder, read_plan(ring).plan.run, PAUSED)
    typer.echo("The agent will keep the token when it comes. Let it go on by roundelay ring resume.")


def resume(ring: RingFile, folder: Folder) -> None:
    """Let this site's agent go on after a pause.

    \b
    Example:
      roundelay ring resume ring.toml --folder oslo
    """
    from roundelay.agents.site import PAUSED, ask

    ask(folder, read_plan(ring).plan.run, PAUSED, wanted=False)
    typer.echo("The agent goes on.")


def stop(ring: RingFile, folder: Folder) -> None:
    """Ask the whole ring to stop where it is, at the agent's next visit; every site then writes the model so far.

    \b
    Example:
      roundelay ring stop ring.toml --folder oslo
    """
    from roundelay.agents.site import STOPPING, ask

    ask(folder, read_plan(ring).plan.run, STOPPING)
    typer.echo("The ring will stop when the token comes by.")
