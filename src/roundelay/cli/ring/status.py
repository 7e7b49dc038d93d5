"""`roundelay ring status`: where a site's agent stands, as its folder says."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundelay.cli import completion
from roundelay.cli.options import AsJson
from roundelay.cli.output import print_json
from roundelay.cli.ring.files import Folder, read_plan

if TYPE_CHECKING:
    from roundelay.agents.site.whereabouts import Standing

DOWN = 1


def status(
    folder: Folder,
    ring: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RING]",
            help="The ring file of the run; by default the latest run.",
            autocompletion=completion.ring_files,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what this site's agent is doing, or where it stands if it is down.

    It reads what the agent has left in the folder, needs no key, and disturbs nobody.

    \b
    Example:
      roundelay ring status --folder oslo

    \b
    Exit codes besides those of roundelay --help:
      0    the agent runs, or has ended with its run
      1    the agent is down
    """
    from roundelay.agents.site.whereabouts import last_run, standing_in

    home = last_run(folder) if ring is None else folder / "runs" / read_plan(ring).plan.run
    standing = standing_in(home)
    if as_json:
        print_json(_content(standing))
    else:
        for line in _lines(standing):
            typer.echo(line)
    if not standing.running and not standing.finished:
        raise typer.Exit(DOWN)


def _content(standing: Standing) -> dict[str, Any]:
    import msgspec

    return dict(msgspec.to_builtins(standing))


def _lines(standing: Standing) -> list[str]:
    word = standing.word
    others = [name for name in word.members if name != word.site]
    epoch = f", epoch {word.epoch}" if word.members else ""
    lines = [
        f"{word.site} {_being(standing)} in the run {word.run}{epoch}{f', with {_listed(others)}' if others else ''}."
    ]
    if standing.running:
        lines.append(_doing(standing))
    elif word.ended:
        lines.append(f"It ended at {_time(word.written)}. {word.ended}")
    else:
        lines.append("It died without a word: start it again by the same command, it goes on from its journal.")
    if not standing.finished:
        lines += _batons(standing)
    if word.outcome:
        lines.append(word.outcome)
    if standing.running:
        lines += [f"The link to {link.name} is down. {link.trouble}".rstrip() for link in word.links if not link.up]
        if word.links and all(link.up for link in word.links):
            lines.append(f"The links to {_listed([link.name for link in word.links])} are up.")
    if standing.journal_written is not None:
        lines.append(
            f"The journal has {standing.journal_bytes / 1e6:,.1f} MB and was last written at {_time(standing.journal_written)}."
        )
    lines.append(f"The model is in {word.model}." if standing.model_there else "There is no model yet.")
    seconds = (datetime.now(UTC) - word.written).total_seconds()
    lines.append(f"The agent left word of this at {_time(word.written)}, {seconds:,.0f} seconds ago.")
    return lines


def _being(standing: Standing) -> str:
    if standing.running:
        return "takes part"
    return "has finished" if standing.finished else "is down"


def _doing(standing: Standing) -> str:
    word = standing.word
    if word.doing == "starting":
        return "It is starting."
    if word.doing == "finished":
        return "It is done, and stays a little in case a neighbour has missed that."
    if word.doing == "paused":
        return (
            "It is paused, and keeps the baton when it comes. If its operator paused it, roundelay ring resume lets it go on; under a "
            "privacy limit it goes on by itself when the meter has looked."
        )
    if word.doing == "working":
        return "It has the baton and works on it."
    if word.baton_here:
        return f"It has the baton{f' and can not hand it to {word.handed_to} now' if word.handed_to else ''}."
    return f"It waits for the baton from {' or '.join(word.waits_for)}."


def _batons(standing: Standing) -> list[str]:
    word = standing.word
    lines = []
    if word.taken >= 0:
        when = word.taken_at or standing.journal_written
        lines.append(f"The last baton that it took was number {word.taken}{f', at {_time(when)}' if when else ''}.")
    if word.handed_to and not word.baton_here:
        lines.append(f"It handed the baton on to {word.handed_to}.")
    if word.visits:
        lines.append(
            f"It has answered {word.visits} questions." if word.sealed else f"It was its turn {word.visits} times."
        )
    return lines


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]


def _time(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M:%S} UTC"
