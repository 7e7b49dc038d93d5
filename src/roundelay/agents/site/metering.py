"""The privacy meter beside a running agent: when it looks, what it tells, and what is done where the neighbours could know too much."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from roundelay.agents.agreement.disk import write_whole
from roundelay.agents.links.agent_loop import Agent, Log
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import Passage
from roundelay.agents.site.assessment import assess, unmeasured_because
from roundelay.agents.site.meter_process import MeterProcess
from roundelay.agents.site.status import CURVATURE, MOST_KEPT, MOST_UNKNOWNS, PrivacyStatus, proven_in_words
from roundelay.masks import PairSecrets

# The meter first looks after so many visits, and again after twice as many; under a limit as soon as there is something to see.
FIRST_LOOK, FIRST_LOOK_UNDER_A_LIMIT = 10, 3
# When the run is over the agent waits so many seconds for it at the most.
LAST_LOOK = 10.0
# Besides the visits of a token the journal has the sums before it.
BESIDES = 20
# A file in the run's folder: noise is added here, also after another start, and the curvature may be known no better than it says.
NOISE = "noise"

PrivacyAction = Literal["tell", "stop", "noise"]


class PrivacyLimitError(RuntimeError):
    """The neighbours could know more of this site than its operator allows."""


@dataclass(frozen=True)
class PrivacyLimit:
    """What to do where something of this site is known better than to `error` of its size, or where that can't be measured."""

    error: float = 0.0
    action: PrivacyAction = "tell"

    @property
    def acts(self) -> bool:
        """Whether more is to be done than to tell."""
        return self.action != "tell"


class Metering:
    """Keeps a meter going beside an agent, and a limit.

    By the plan alone is decided before anything leaves the site. Under a limit the token then waits here whenever the meter is
    to look, so that nobody learns more meanwhile.
    """

    def __init__(
        self,
        agent: Agent,
        limit: PrivacyLimit,
        home: Path,
        secrets: Callable[[], PairSecrets],
        tell: Callable[[PrivacyStatus], None],
        log: Log,
    ) -> None:
        self.agent, self.limit, self.home, self.log = agent, limit, home, log
        self._secrets, self._tell = secrets, tell
        self._process = MeterProcess()
        self._looking: asyncio.Task[None] | None = None
        self._wants_noise = self._noisy = False
        self._over = False
        self._allowed = limit.error
        self._due = FIRST_LOOK_UNDER_A_LIMIT if limit.acts else FIRST_LOOK
        if self._holder.asking is not None:
            self._due = 1

    @property
    def _holder(self) -> Holder:
        return self.agent.station.holder

    @property
    def _visits(self) -> int:
        """How often the token was here, or how many questions were answered."""
        asking = self._holder.asking
        return self._holder.held.visits if asking is None else len(asking.held.answered)

    # ------------------------------------------------------------ before the first hop

    def check_plan(self) -> None:
        """Refuse a plan by which the limit will be passed, or for which nobody can say whether it will."""
        if not self.limit.acts:
            return
        found = assess(self.agent.plan, self.agent.me)
        if found.unmeasured or set(found.known) - self._helped_by_noise:
            raise PrivacyLimitError(
                f"{found.sentence} {self._counts(bool(found.known))}, so the agent stops before anything has left this site. Agree with "
                "the other sites on sealed laps of four sites or more, or raise the limit."
            )
        before = self.home / NOISE
        if self.limit.action == "noise" and before.exists():
            self._add_noise(min(self.limit.error, float(before.read_text())))
        elif found.known and not self._visits:
            self._add_noise(self.limit.error)
        else:  # a hop that was made without noise may come once more, and must be made again as it was
            self._wants_noise = bool(found.known)

    @property
    def _helped_by_noise(self) -> set[str]:
        """What is hidden by noise that is taken back later: the curvature, and no gradient."""
        return {CURVATURE} if self.limit.action == "noise" and not self._noisy else set()

    def _counts(self, known: bool) -> str:
        if known:
            return f"That is more than the limit of {self.limit.error:g} allows"
        return f"What can't be measured counts as past the limit of {self.limit.error:g}"

    def _add_noise(self, allowed: float) -> None:
        """From now on the curvature may be known no better than is `allowed`."""
        self._holder.add_noise()
        write_whole(self.home / NOISE, repr(allowed).encode())
        self._wants_noise, self._noisy, self._allowed = False, True, allowed
        self.log("noise added", visits=self._visits)

    # ------------------------------------------------------------ meanwhile

    @property
    def holds(self) -> bool:
        """Whether the token is to wait here until the meter has looked; of laps it is proven what is known."""
        measures = self.limit.acts and self._holder.asking is None
        return measures and (self._looking is not None or self._visits >= self._due)

    def visited(self) -> None:
        """The agent has worked on a baton."""
        if self._wants_noise:
            self._add_noise(self.limit.error)
        if self.holds:
            self.agent.pause()

    def keep_going(self) -> None:
        """Look where there is something new; what the last look has found to be past the limit is raised here."""
        if self._looking is not None:
            if not self._looking.done():
                return
            looked, self._looking = self._looking, None
            looked.result()
        if self._visits >= self._due and not self.agent.working:
            self._due = 2 * self._visits
            self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        """Measure what the neighbours could know, tell it, and do what the operator wants done about it."""
        plan = self.agent.plan
        if self._process.trouble:
            return  # it measures no more, as was told
        if self._holder.asking is not None and plan.dim > MOST_UNKNOWNS:
            self._tell(PrivacyStatus(self._visits, (), proven_in_words(plan)))
            return
        passages: list[Passage] = []
        if not unmeasured_because(plan):
            self._process.start()
            passages = self.agent.station.journal.passages(plan.epoch, MOST_KEPT + BESIDES)
        status = await asyncio.to_thread(_measured, self._holder, passages, self._secrets(), self._process)
        self._tell(status)
        # When the run is over nothing more leaves the site, so that there is nothing to refuse where it can't be measured.
        if self.limit.acts and not (self._over and status.unmeasured):
            self._act(status)

    def _act(self, status: PrivacyStatus) -> None:
        known = {leak.quantity: leak.error for leak in status.leaks if leak.error < self._allowed}
        if not known and not status.unmeasured:
            return
        past = set(known) - self._helped_by_noise
        if status.unmeasured or past:
            measured = "".join(
                f" They know {quantity} with an error of {known[quantity]:.2g}." for quantity in sorted(past)
            )
            raise PrivacyLimitError(
                f"{status.sentence}{measured} {self._counts(bool(known))}, so the agent stops here; its state is kept. Agree with the other "
                "sites on sealed laps or more noise, or raise the limit."
            )
        # What is known by now stays known; the noise is to keep it from getting better.
        self._add_noise(0.5 * min(known.values()))

    # ------------------------------------------------------------ the end

    async def last_look(self) -> None:
        """Look once more when the run is over, but not for long: then what was found by then is told."""
        self._over = True
        looking = asyncio.create_task(self._look_at_all())
        done, _ = await asyncio.wait({looking}, timeout=LAST_LOOK)
        if not done:
            self._process.close("The run was over before the privacy meter was done.")
        await looking

    async def _look_at_all(self) -> None:
        if self._looking is not None:
            await self._looking
        await self._look()

    def close(self) -> None:
        """End the meter, whatever it does."""
        if self._looking is not None:
            self._looking.cancel()
        self._process.close()


def _measured(holder: Holder, passages: list[Passage], secrets: PairSecrets, process: MeterProcess) -> PrivacyStatus:
    """In a thread: what holds the evidence together brings the attacks, which take a while to be imported."""
    from roundelay.agents.site.meter import measure

    return measure(holder, passages, secrets, process.attack)
