"""How an agent is doing: one look at it, for its page and for Prometheus, and a log of events, with no number of its data."""

from __future__ import annotations

import json
import logging
import math
import os
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Literal

from roundelay.agents.agreement.disk import make_private
from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.data.models import StoredModel
from roundelay.agents.links.agent_loop import Agent
from roundelay.agents.protocol.holder import Residuals
from roundelay.networks.network_checks import shorten_names

Doing = Literal["waiting", "working", "paused", "finished", "failed"]
# Where a run is: its sites find each other, form the sums before the fit, fit, and sign what came of it.
Stage = Literal["meeting", "preparing", "fitting", "signing", "finished", "failed"]
# About how many questions an optimiser asks that can't tell.
USUAL_QUESTIONS = 20

# Where there are more residuals than this, every other one is forgotten.
MOST_RESIDUALS = 400
# Bytes of a file of the log, and how many older ones are kept: a line takes some two hundred.
LARGEST_LOG, OLDER_LOGS = 10_000_000, 4


@dataclass(frozen=True)
class MemberStatus:
    """A member of the ring: whether it is this one, and for a neighbour whether the link to it is up."""

    name: str
    me: bool
    neighbour: bool
    up: bool


@dataclass(frozen=True)
class LinkStatus:
    """The link to a neighbour."""

    name: str
    up: bool
    milliseconds: float
    broken: int
    epoch: int
    trouble: str


@dataclass(frozen=True)
class JournalStatus:
    """The last hand-over that was taken, the one that was sent on, and what it cost to keep them safe."""

    taken: int
    sent: int
    acknowledged: bool
    duplicates: int
    resent: int
    damaged: int
    refused: int
    bytes: int


# What a site keeps to itself, as its operator reads it.
GRADIENT = "the gradient of this site's function (y)"
CURVATURE = "the curvature of this site's data (H)"
SLOPE = "the slope of this site's data (g)"
# With more unknowns a meter beside the fit would take longer than the fit.
MOST_UNKNOWNS = 60
# So many visits of a token are looked at.
MOST_KEPT = 10_000


@dataclass(frozen=True)
class MeterReading:
    """How well a neighbour could know something of this site: its error, and that of a guess without any message."""

    quantity: str
    error: float
    guess: float
    attack: str


@dataclass(frozen=True)
class PrivacyStatus:
    """The privacy meter: what the two neighbours together could infer from what they saw so far.

    `visits` counts those of the token, or the sealed laps that were answered. What is `unmeasured` may be known better than `leaks` say.
    """

    visits: int
    leaks: tuple[MeterReading, ...]
    sentence: str
    unmeasured: bool = False


def proven_in_words(plan: RingPlan) -> str:
    """What is proven of sealed laps, which needs no measurement: words under masks tell whoever lacks the masks nothing but their sum."""
    if plan.agents == 2:
        return (
            "Sealed laps hide nothing between two sites: the other one knows the sum and its own part, and so all that your site "
            "answered. At least three sites are needed, and four if two of them may work together."
        )
    if plan.agents == 3:
        return (
            "Neither neighbour alone can learn anything of your data but what the sum over your site and the other one "
            "says. Both together know all that your site answered: they are all the others."
        )
    return (
        f"Your two neighbours together, and any {plan.agents - 2} of the other {plan.agents - 1} sites, can learn nothing of your "
        "data but what the sum over your site and those who do not work with them says: that is proven, not only "
        f"measured. All {plan.agents - 1} others together know all that your site answered."
    )


@dataclass(frozen=True)
class Progress:
    """How far a run is: which part of 1, after how many rounds of about how many (0: nobody can tell), and the seconds that may be left."""

    stage: Stage
    part: float = 0.0
    rounds: int = 0
    usual: int = 0
    seconds_left: float | None = None


def fitted_in_words(plan: RingPlan) -> str:
    """What is fitted, for whoever wants to know no more than that."""
    task = plan.task
    if task.regression is not None:
        return task.regression.in_words
    if not task.features or task.target is None:
        return task.in_words
    return f"{task.problem.model} of {task.target} from {shorten_names([str(column) for column in task.features], len(task.features))}"


def usual_rounds(plan: RingPlan, sums: int) -> int:
    """About how often something goes round all sites, from the first key to the last signature; 0 where a token goes round."""
    if plan.choice is None:
        return 0
    questions = int(getattr(plan.choice.optimiser, "usual", USUAL_QUESTIONS))
    if plan.noise is not None:
        questions = len(plan.noise.laps) + 1
    return 2 + 2 * sums + min(questions, plan.stopping.questions) + 2


@dataclass(frozen=True)
class Status:
    """One look at an agent. `first_hop` is the number of the epoch's first hop; off a cycle no place can be estimated. Where laps are
    `sealed`, `visits` are the questions that it has answered. `fits` says what is fitted, and `has_model` that there is one to be shown.
    """

    site: str
    run: str
    epoch: int
    algorithm: str
    doing: Doing
    members: tuple[MemberStatus, ...]
    order: tuple[int, ...]
    token_here: bool
    token_place: int
    hop: int
    visits: int
    lap_seconds: float
    tolerance: float | None
    residuals: tuple[Residuals, ...]
    links: tuple[LinkStatus, ...]
    journal: JournalStatus
    privacy: PrivacyStatus | None
    outcome: str
    first_hop: int = 0
    on_cycle: bool = True
    sealed: bool = False
    fits: str = ""
    progress: Progress = Progress("meeting")
    has_model: bool = False


@dataclass(eq=False)
class Watch:
    """Follows one agent: keeps the residuals of its visits, and how long a lap takes.

    In the end `outcome` says why the run is over, and `model` is what came of it; `failed` says why nothing did.
    """

    agent: Agent
    privacy: PrivacyStatus | None = None
    residuals: list[Residuals] = field(default_factory=list)
    outcome: str = ""
    failed: str = ""
    model: StoredModel | None = None
    visited_at: float | None = None
    _every: int = 1
    _seen: int = 0
    _last: float = 0.0
    _lap: float = 0.0
    _first: tuple[float, float] | None = None

    def visited(self) -> None:
        """The agent has worked on a baton."""
        now, held = time.monotonic(), self.agent.station.holder.held
        if self._last:
            self._lap = now - self._last if not self._lap else 0.9 * self._lap + 0.1 * (now - self._last)
        self._last, self.visited_at = now, time.time()
        if held.residuals is not None:
            if self._first is None and held.residuals.unrest > 0.0:
                self._first = now, held.residuals.unrest
            self._seen += 1
            if self._seen % self._every == 0:
                self.residuals.append(held.residuals)
            if len(self.residuals) > MOST_RESIDUALS:
                self.residuals, self._every = self.residuals[::2], 2 * self._every

    def status(self) -> Status:
        """How things stand now."""
        agent, plan, held = self.agent, self.agent.plan, self.agent.station.holder.held
        standing, asking = agent.station.standing, agent.station.holder.asking
        here = agent.holds_token
        return Status(
            site=plan.members[agent.me].name,
            run=plan.run,
            epoch=plan.epoch,
            algorithm=str(getattr(plan.algorithm, "name", plan.algorithm)),
            doing=self.doing,
            members=tuple(self._member(number) for number in range(plan.agents)),
            order=plan.order,
            token_here=here,
            token_place=self._place(here),
            hop=max(held.hop, agent.station.holder.first_hop),
            visits=held.visits if asking is None else len(asking.held.answered),
            lap_seconds=self._lap,
            tolerance=plan.stopping.tolerance,
            residuals=tuple(self.residuals),
            links=self.links,
            journal=JournalStatus(
                standing.k,
                standing.sent_k,
                agent.station.acknowledged,
                agent.counts.duplicates,
                agent.counts.resent,
                agent.counts.damaged,
                agent.counts.refused,
                agent.station.journal.size,
            ),
            privacy=self.privacy,
            outcome=self.failed or self.outcome,
            first_hop=agent.station.holder.first_hop,
            on_cycle=plan.on_cycle,
            sealed=asking is not None,
            fits=fitted_in_words(plan),
            progress=self.progress,
            has_model=self.model is not None,
        )

    @property
    def stage(self) -> Stage:
        """Where the run is."""
        holder = self.agent.station.holder
        if self.failed or holder.finished:
            return "failed" if self.failed else "finished"
        if self.agent.station.standing.k < 0:
            return "meeting"
        if holder.held.asked >= 0:
            return "signing"
        begun = holder.held.visits if holder.asking is None else len(holder.asking.held.answered)
        return "fitting" if begun else "preparing"

    @property
    def progress(self) -> Progress:
        """How far the run is, and how long it may still take."""
        stage, plan, holder = self.stage, self.agent.plan, self.agent.station.holder
        if stage in ("finished", "failed", "meeting"):
            return Progress(stage, float(stage == "finished"))
        if holder.asking is None:
            return self._towards_the_tolerance(stage)
        rounds = (self.agent.station.standing.k + 1) // len(plan.order)
        # What takes longer than it usually does may end with the next round.
        usual = max(usual_rounds(plan, len(holder.local.sums)), rounds + (1 if stage == "signing" else 3))
        left = (usual - rounds) * self._lap if self._lap else None
        return Progress(stage, rounds / usual, rounds, usual, left)

    def _towards_the_tolerance(self, stage: Stage) -> Progress:
        """Of a token: how many of the decades that it has to come down are behind it."""
        tolerance, lap = self.agent.plan.stopping.tolerance, len(self.agent.plan.order)
        rounds = (self.agent.station.standing.k + 1) // lap
        if not tolerance or self._first is None or not self.residuals or stage == "signing":
            return Progress(stage, 1.0 if stage == "signing" else 0.0, rounds)
        began, first = self._first
        unrest = self.residuals[-1].unrest
        if not (unrest > 0.0 and first > tolerance):
            return Progress(stage, 0.0, rounds)
        part = min(max(math.log(first / unrest) / math.log(first / tolerance), 0.0), 0.99)
        passed = self._last - began  # what is told changes with a visit, and not by itself
        return Progress(stage, part, rounds, 0, passed * (1.0 - part) / part if part > 0.05 else None)

    @property
    def doing(self) -> Doing:
        """What the agent does now."""
        if self.failed:
            return "failed"
        if self.agent.station.holder.finished:
            return "finished"
        if self.agent.paused:
            return "paused"
        return "working" if self.agent.working else "waiting"

    def _place(self, here: bool) -> int:
        """Where the token is in the lap: known where it is here, otherwise by how long a lap usually takes."""
        order, me = self.agent.plan.order, self.agent.me
        own = order.index(me)
        if here or not self._lap:
            return own
        part = min((time.monotonic() - self._last) / self._lap, 0.999)
        return (own + max(int(part * len(order)), 1)) % len(order)

    def _member(self, number: int) -> MemberStatus:
        link = self.agent.links.get(number)
        name = self.agent.plan.members[number].name
        return MemberStatus(name, number == self.agent.me, link is not None, link is not None and link.up)

    @property
    def links(self) -> tuple[LinkStatus, ...]:
        """The links to all neighbours."""
        return tuple(self._link(peer) for peer in sorted(self.agent.links))

    def _link(self, peer: int) -> LinkStatus:
        health = self.agent.links[peer]
        trouble = health.refused or ("" if health.up else self.agent.transport.trouble(peer))
        return LinkStatus(
            self.agent.plan.members[peer].name,
            health.up,
            1e3 * health.patience.usual,
            health.broken,
            health.epoch,
            trouble,
        )


class JsonLog:
    """The log: a line of JSON an event, with who and which hand-over; only whole numbers and words, never a coordinate or a residual.

    A file of it grows to 10 MB, and four older ones are kept beside it; no line is torn between two of them.
    """

    def __init__(self, path: Path, site: str) -> None:
        make_private(path.parent)
        _end_last_line(path)
        self._lines = _Lines(path, maxBytes=LARGEST_LOG, backupCount=OLDER_LOGS, encoding="utf-8")
        self._site = site

    def __call__(self, event: str, **about: str | int) -> None:
        """Write a line."""
        for name, value in about.items():
            if not isinstance(value, (str, int)):
                raise TypeError(f"The log of {event!r} would hold {name}, which is neither a whole number nor words.")
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "site": self._site, "event": event}
        self._lines.handle(logging.makeLogRecord({"msg": json.dumps(line | about, ensure_ascii=False)}))

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


class _Lines(RotatingFileHandler):
    """The files of a log, of which what can't be written is an error as of any other file."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        raise


def _end_last_line(path: Path) -> None:
    """End a line in the middle of which the disk was full or the power failed, so that the next one stands by itself."""
    if path.exists() and path.stat().st_size:
        with path.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
