"""Where a site's agent stands, as its folder says: the agent leaves word there, and nobody who reads it disturbs it.

The journal belongs to the agent alone while it runs, and to whoever looked into it at the moment in which it starts.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from roundelay.agents.agreement.disk import PRIVATE, in_use, is_in_use, make_private
from roundelay.agents.site.status import LinkStatus, Watch

WHEREABOUTS, RUNNING = "whereabouts.json", "running"
# Seconds between two words that are left.
EVERY = 2.0


@dataclass(frozen=True)
class Whereabouts:
    """What an agent has left word of.

    `taken` is the counter of the last hand-over that it took, −1 where there was none in this epoch, and `taken_at` when, where that was since its start.
    `ended` says why it runs no more; it is empty while it runs, and where it died before it could say so.
    """

    site: str
    run: str
    written: datetime
    model: str = ""
    epoch: int = 0
    members: tuple[str, ...] = ()
    doing: str = "starting"
    sealed: bool = False
    visits: int = 0
    taken: int = -1
    taken_at: datetime | None = None
    baton_here: bool = False
    handed_to: str = ""
    waits_for: tuple[str, ...] = ()
    links: tuple[LinkStatus, ...] = ()
    outcome: str = ""
    ended: str = ""


def whereabouts(watch: Watch, model: str, ended: str = "") -> Whereabouts:
    """Where an agent stands now."""
    agent, plan = watch.agent, watch.agent.plan
    station, names = agent.station, tuple(member.name for member in plan.members)
    asking, receiver, here = station.holder.asking, station.standing.receiver, agent.holds_token
    if here or station.holder.finished:
        awaited: list[int] = []
    elif plan.on_cycle:
        awaited = [plan.order[place - 1] for place, member in enumerate(plan.order) if member == agent.me]
    else:
        awaited = sorted(plan.neighbours[agent.me])
    return Whereabouts(
        site=names[agent.me],
        run=plan.run,
        written=datetime.now(UTC),
        model=model,
        epoch=plan.epoch,
        members=names,
        doing="finished" if station.holder.finished else watch.doing,  # also where nothing could be fitted
        sealed=asking is not None,
        visits=station.holder.held.visits if asking is None else len(asking.held.answered),
        taken=station.standing.k,
        taken_at=None if watch.visited_at is None else datetime.fromtimestamp(watch.visited_at, UTC),
        baton_here=here,
        handed_to=names[receiver] if receiver >= 0 else "",
        waits_for=tuple(dict.fromkeys(names[member] for member in awaited)),
        links=watch.links,
        outcome=watch.outcome,
        ended=ended,
    )


class Presence:
    """Shows in the folder of a run that its agent runs, leaves word of what it does, and at the end why it ended."""

    def __init__(self, home: Path, site: str, run: str, model: Path | None) -> None:
        self.home, self.site, self.run = home, site, run
        self.model = "" if model is None else str(model.resolve())
        self.watch: Watch | None = None
        self._due = 0.0
        self._held = ExitStack()

    def __enter__(self) -> Self:
        make_private(self.home)
        self._held.enter_context(in_use(self.home / RUNNING))
        self._leave()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._held:
            if error is None:
                self._leave("It has ended with its model.")
            elif isinstance(error, Exception):
                self._leave(str(error) or type(error).__name__)
            else:
                self._leave("It was stopped by its operator.")

    def seen(self, watch: Watch) -> None:
        """Leave word now and then."""
        if watch is not self.watch or time.monotonic() >= self._due:
            self.watch, self._due = watch, time.monotonic() + EVERY
            self._leave()

    def _leave(self, ended: str = "") -> None:
        if self.watch is None:
            word = Whereabouts(self.site, self.run, datetime.now(UTC), self.model, ended=ended)
        else:
            word = whereabouts(self.watch, self.model, ended)
        # Not synced, since nothing depends on it; and no reason to stop where it can't be written.
        with suppress(OSError):
            beside = self.home / f".{WHEREABOUTS}"
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE), "wb") as file:
                file.write(msgspec.json.encode(word))
            os.replace(beside, self.home / WHEREABOUTS)


@dataclass(frozen=True)
class Standing:
    """What a folder says of a run: the last word of its agent, whether that runs, and what is on disk.

    `journal_written` is later than `word.written` where the agent died before it could leave word.
    """

    word: Whereabouts
    running: bool
    finished: bool
    journal_bytes: int
    journal_written: datetime | None
    model_there: bool


def standing_in(home: Path) -> Standing:
    """How a run stands, by its folder; the journal is not opened."""
    try:
        word = msgspec.json.decode((home / WHEREABOUTS).read_bytes(), type=Whereabouts)
    except FileNotFoundError:
        raise ValueError(
            f"No agent has left word in {home}: none has run there yet, or it was one of an older release."
        ) from None
    except msgspec.DecodeError as error:
        raise ValueError(
            f"{home / WHEREABOUTS} can't be read ({error}): start the agent again, which writes it anew."
        ) from None
    journal = [path for path in home.iterdir() if path.name.startswith("journal.db") or path.suffix == ".bin"]
    stats = []
    for path in journal:
        with suppress(FileNotFoundError):  # the agent ends at this moment, and its log with it
            stats.append(path.stat())
    return Standing(
        word=word,
        running=is_in_use(home / RUNNING),
        finished=word.doing == "finished",
        journal_bytes=sum(one.st_size for one in stats),
        journal_written=datetime.fromtimestamp(max(one.st_mtime for one in stats), UTC) if stats else None,
        model_there=bool(word.model) and Path(word.model).exists(),
    )


def last_run(folder: Path) -> Path:
    """The folder of the run in which the site's agent left word last."""
    words = sorted((folder / "runs").glob(f"*/{WHEREABOUTS}"), key=lambda path: path.stat().st_mtime)
    if not words:
        raise ValueError(f"No agent has run in {folder} yet: start one by roundelay agent, or name another folder.")
    return words[-1].parent
