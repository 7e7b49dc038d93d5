"""A site takes part in a run: one epoch after another, until the fit is done."""

from __future__ import annotations

import asyncio
import os
import secrets as system_secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from roundelay.agents.agreement.disk import make_private, sync_folder, write_whole
from roundelay.agents.agreement.folder import ACCEPTED, accepted_plans, identity_for
from roundelay.agents.agreement.identity import load_identity
from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.agreement.policy import read_policy
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data.elsewhere import Elsewhere
from roundelay.agents.data.fitting import model_of, noise_of, read_model
from roundelay.agents.data.models import (
    BESIDE,
    FORMAT,
    FinalResiduals,
    Model,
    ModelNotes,
    PrivacyNotes,
    SignedEnd,
    SignedSums,
    StoredModel,
    read_vector,
    stands_beside,
    sums_beside,
    write_model,
    write_sums,
    write_vector,
)
from roundelay.agents.data.objectives import Local
from roundelay.agents.data.own_fit import NOTHING, OwnFit
from roundelay.agents.data.regressing import Outcome, outcome_of
from roundelay.agents.data.statistics import Standard
from roundelay.agents.links.agent_loop import Agent, Log, log_nothing, until_done
from roundelay.agents.links.grpc_transport import GrpcTransport
from roundelay.agents.protocol.baton import Reason
from roundelay.agents.protocol.holder import BeforeAdding, Holder, keep_freed_memory
from roundelay.agents.protocol.journal import Journal
from roundelay.agents.protocol.signing import SIGNATURE, Certified, MaskKey, pieces_of
from roundelay.agents.protocol.station import Reached, Station, nothing_happens
from roundelay.agents.site.bookkeeping import Bookkeeper
from roundelay.agents.site.metering import (
    Metering,
    PrivacyLimit as PrivacyLimit,
    PrivacyLimitError as PrivacyLimitError,
)
from roundelay.agents.site.status import PrivacyStatus, Watch
from roundelay.agents.site.whereabouts import Presence
from roundelay.agents.site.why_it_ended import hops_of, questions_of, why_it_ended
from roundelay.kernels import Vector
from roundelay.masks import PairSecrets, SeededPairs, new_private_key
from roundelay.regression.choosing import Chosen
from roundelay.regression.result import Result

# Seconds between looks at the folder for a newer ring file, a wish to pause or to stop.
LOOK_EVERY = 0.25
PAUSED, STOPPING, PRIVACY, OWN_FIT, MASK_KEY = "paused", "stop", "privacy.json", "own-fit.json", "mask-key-"


class NoMinimumError(RuntimeError):
    """There is no model to be found, for the reason that the sentence gives."""


@dataclass(frozen=True, eq=False)
class SiteOptions:
    """What an operator chooses for his own agent.

    `least_rows` and `most_epsilon` overrule the site's policy, and `despite_difference` what its ledger refuses. `seed` replaces all secrets by draws that anybody can repeat, and `encrypted=False` sends everything in the open:
    both are for experiments only.
    """

    model: Path | None = None
    warm: Path | None = None
    listen: str = ""
    seed: int | None = None
    encrypted: bool = True
    privacy: PrivacyLimit = PrivacyLimit()
    meter: bool = True
    least_rows: int | None = None
    most_epsilon: float | None = None
    despite_difference: bool = False


@dataclass(frozen=True, eq=False)
class Ending:
    """How a run ended for a site: the model, why the ring stopped, in words, and how the model does on the site's own data.

    `result` has the tables of a regression, and `sums` what all sites told each other, which is for them alone. `unconfirmed` is the neighbour that has not said, after all the time it was given, that it has the end too.
    """

    model: Model
    notes: ModelNotes
    estimate: Vector
    own_fit: OwnFit | None = None
    unconfirmed: str = ""
    result: Result | None = None
    sums: SignedSums | None = None


@dataclass(eq=False)
class Site:
    """A site's part in a run, from its folder, its own function, and the ring files that were accepted there."""

    folder: Path
    run_id: str
    local: Local
    options: SiteOptions = SiteOptions()
    log: Log = log_nothing
    reached: Reached = nothing_happens
    watch: Watch | None = None
    on_epoch: Callable[[Watch], None] = field(default=lambda watch: None)

    def __post_init__(self) -> None:
        self.name = load_identity(self.folder).name
        self.home = self.folder / "runs" / self.run_id
        self._seen = 0
        self._presence = Presence(self.home, self.name, self.run_id, self.options.model)

    async def run(self) -> Ending:
        """Take part until the ring is done."""
        # Now, while nobody can have connected: an import needs an open file. The last is for the fit to a site's own rows.
        later = ("cryptography.hazmat.primitives.kdf.hkdf", "encodings.idna", "scipy.linalg")
        for module in (*later, "roundelay.agents.site.meter") if self.options.meter else later:
            import_module(module)
        with self._presence:
            return await self._run()

    async def _run(self) -> Ending:
        while True:
            signed = self._newest()
            books = self._books(signed)
            books.check_policy()  # before the journal has it that these data are those of the run
            journal = Journal(self.home, self.run_id, self.name)
            try:
                if self.local.digest:
                    journal.check_data(self.local.digest)
                if self.options.warm is not None:
                    journal.check_start(_digest_of_model(self.options.warm))
                books.check_whole(journal)
                self._end_earlier_epoch(signed, journal)
                self._forget_mask_keys(before=signed.plan.epoch)
                books.check(lost=self._is_new(signed.plan, journal))
                ending = await self._epoch(signed, journal, books)
                if ending is not None:
                    return ending
            finally:
                journal.close()

    # ------------------------------------------------------------ one epoch

    def _end_earlier_epoch(self, signed: SignedPlan, journal: Journal) -> None:
        """Where the agent died in an epoch before: do first what it had acknowledged there."""
        standing = journal.standing()
        if standing is not None and standing.epoch < signed.plan.epoch and journal.inbox():
            for earlier in accepted_plans(self.folder, self.run_id):
                if earlier.plan.epoch == standing.epoch:
                    # Nothing of it is sent any more, but the journal will have it.
                    books = self._books(earlier)
                    Station(self._holder(earlier, books, books.note), journal).catch_up()

    def _is_new(self, plan: RingPlan, journal: Journal) -> bool:
        """Whether the folder has nothing of an epoch: neither what was done, nor the key by which its noise is drawn."""
        standing = journal.standing()
        return (standing is None or standing.epoch < plan.epoch) and not self._mask_key(plan).exists()

    def _mask_key(self, plan: RingPlan) -> Path:
        return self.home / f"{MASK_KEY}{plan.epoch}"

    def _books(self, signed: SignedPlan) -> Bookkeeper:
        policy, options = read_policy(self.folder), self.options
        if options.least_rows is not None:
            policy = replace(policy, least_rows=options.least_rows)
        if options.most_epsilon is not None:
            policy = replace(policy, most_epsilon=options.most_epsilon)
        return Bookkeeper(self.folder, signed, self.local, policy, options.despite_difference)

    def _holder(self, signed: SignedPlan, books: Bookkeeper, before_adding: BeforeAdding) -> Holder:
        plan = signed.plan
        signer = Certified(tuple(member.certificate for member in plan.members), identity_for(self.folder, plan))
        me, secrets = plan.number_of(self.name), self._secrets(plan)
        return Holder(
            plan, me, self.local, self._seed(), secrets, self._warm, before_adding, signer, signed.digest, books.policy.least_rows_a_level,
            self._elsewhere(plan, books),
        )  # fmt: skip

    def _elsewhere(self, plan: RingPlan, books: Bookkeeper) -> Elsewhere | None:
        """What the rows answered in other runs and epochs; of rows that are read by batches none is known again."""
        asked = plan.choice is not None and plan.noise is None and books.marked.data.cells
        return Elsewhere(self.folder, books.marked, plan.run, plan.epoch) if asked else None

    async def _epoch(self, signed: SignedPlan, journal: Journal, books: Bookkeeper) -> Ending | None:
        """How the run ended in this epoch; None where there is a newer one."""
        plan = signed.plan
        holder = self._holder(signed, books, books.before_adding)
        me, station = holder.me, Station(holder, journal, self.reached)
        over = holder.finished  # then there is nothing to measure, and no key to measure it with
        if station.heavy:
            keep_freed_memory()
        identity = identity_for(self.folder, plan) if self.options.encrypted else None
        transport = GrpcTransport(plan, me, identity, holder.largest_layout.largest, self.options.listen)
        agent = Agent(station, transport, self.log)
        if (self.home / PAUSED).exists():
            agent.pause()
        self.watch = watch = Watch(agent)
        metering = Metering(agent, self.options.privacy, self.home, holder.agree, self._tell, self.log)
        metering.check_plan()

        def visited() -> None:
            watch.visited()
            if self.options.meter:
                metering.visited()

        agent.on_visit = visited
        self.on_epoch(watch)
        self._presence.seen(watch)
        self.log("epoch", epoch=plan.epoch, members=plan.agents)
        looking = asyncio.create_task(self._look(agent, signed, metering))
        running = asyncio.create_task(agent.run())
        ending = asyncio.create_task(self._end_when_finished(signed, agent))
        try:
            done, _ = await asyncio.wait({looking, running}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            # Also where the epoch is left: what is begun is worked on to its end before anything is written.
            await running
            if holder.finished:
                watch.outcome = _why_it_stopped(holder)
                lingering = asyncio.create_task(agent.linger())
                if self.options.meter and not over:
                    await metering.last_look()
                await lingering
            station.close()  # not after a failure, when what is in memory is worth nothing
            return replace(await ending, unconfirmed=agent.unconfirmed) if holder.finished else None
        finally:
            for one in (looking, running, ending):
                one.cancel()
            metering.close()

            async def over_and_done() -> None:
                await asyncio.gather(looking, running, ending, return_exceptions=True)
                await agent.end()
                await transport.stop()

            # Whoever is in a hurry waits, too: the journal is closed next.
            await until_done(over_and_done())

    async def _look(self, agent: Agent, signed: SignedPlan, metering: Metering) -> None:
        """Look for what the operator has decided, and keep the privacy meter going."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            assert self.watch is not None
            self._presence.seen(self.watch)
            if self.options.meter:
                metering.keep_going()
            if ((self.home / PAUSED).exists() or (self.options.meter and metering.holds)) != agent.paused:
                agent.resume() if agent.paused else agent.pause()
            if self._changed_folder() and self._newest().plan.epoch > signed.plan.epoch:
                agent.leave_epoch()
                return
            if not agent.counts.taken:
                continue  # the first baton may be one that was sent on before the agent died: the same is made of it
            if (self.home / STOPPING).exists():
                agent.station.holder.wants_to_stop = True

    def _tell(self, privacy: PrivacyStatus) -> None:
        """Show what was measured, and keep it."""
        assert self.watch is not None
        self.watch.privacy = privacy
        write_whole(self.home / PRIVACY, msgspec.json.encode(privacy))

    # ------------------------------------------------------------ secrets

    def _seed(self) -> int:
        """What keys this agent's own draws: from the operating system, once for a run, and kept to itself."""
        if self.options.seed is not None:
            return self.options.seed
        path = self.home / "seed"
        if not path.exists():
            make_private(self.home)
            write_whole(path, system_secrets.token_bytes(8))  # half of it would be one that anybody can guess
        return int.from_bytes(path.read_bytes(), "little")

    def _secrets(self, plan: RingPlan) -> PairSecrets | MaskKey:
        """A key for the masks of this epoch, on disk before anybody is told of it."""
        if self.options.seed is not None:
            return SeededPairs(self.options.seed)
        path = self._mask_key(plan)
        if not path.exists():
            write_whole(path, new_private_key())
        return MaskKey(path.read_bytes())

    def _forget_mask_keys(self, before: int | None = None) -> None:
        """Whoever takes the folder later shall not find what lifts the masks of epochs that are over."""
        for path in self.home.glob(f"{MASK_KEY}*"):
            if before is None or int(path.name.removeprefix(MASK_KEY)) < before:
                path.unlink()
        sync_folder(self.home)

    def _warm(self, told: tuple[Vector, ...]) -> Vector | None:
        """Where to start from: the model of an earlier run, in the units of this one."""
        if self.options.warm is None:
            return None
        task = self._newest().plan.task
        beside = self.options.warm.with_suffix(".npy")
        if stands_beside(task) and beside.exists():
            return read_vector(beside, task.dim)
        return read_model(self.options.warm, task, self.local.standard(told))

    # ------------------------------------------------------------ the end

    def _changed_folder(self) -> bool:
        """Whether a ring file may have been accepted since the last look."""
        seen, self._seen = self._seen, (self.folder / ACCEPTED).stat().st_mtime_ns
        return seen != self._seen

    def _newest(self) -> SignedPlan:
        plans = accepted_plans(self.folder, self.run_id)
        if not plans:
            raise ValueError(
                f"No ring file of the run {self.run_id} is accepted in {self.folder}: look at it, then accept it by "
                "roundelay ring accept."
            )
        return plans[-1]

    async def _end_when_finished(self, signed: SignedPlan, agent: Agent) -> Ending:
        """The model is written as soon as this site has it, whoever is still to be told."""
        await agent.finished.wait()
        assert self.watch is not None
        try:
            ending = self._end(signed, agent.station.holder)
        except NoMinimumError as error:
            self.watch.failed = str(error)  # it is told at once, and raised when the others have been answered
            raise
        self.watch.model = StoredModel(ending.model, ending.notes, FORMAT, ending.result, signed.plan.task.regression)
        own_fit = await asyncio.to_thread(
            self._own_fit, signed.plan, ending, agent.station.holder.held.told
        )  # meanwhile the others are answered
        return replace(ending, own_fit=own_fit)

    def _end(self, signed: SignedPlan, holder: Holder) -> Ending:
        plan, me, held = signed.plan, holder.me, holder.held
        assert held.estimate is not None
        self._forget_mask_keys()
        asking = holder.asking
        if held.reason == Reason.NO_MINIMUM and asking is not None:
            raise NoMinimumError(asking.held.doubt or asking.why_none)
        standard = self.local.standard(held.told)
        large = stands_beside(plan.task)
        model, result = _outcome(holder, standard)
        disagreement = float(np.linalg.norm(held.x[me] - held.estimate)) if asking is None else 0.0
        notes = ModelNotes(
            run=plan.run,
            epoch=plan.epoch,
            hops=hops_of(plan, held.hop),
            members=tuple(one.name for one in plan.members),
            reason=_why_it_stopped(holder),
            residuals=FinalResiduals(_proven(plan, holder), disagreement),
            standard=standard,
            ring_digest=signed.digest,
            questions=0 if asking is None else len(asking.held.answered),
            doubt="" if asking is None else asking.held.doubt,
            privacy=_privacy(plan, holder),
            end=_signed_end(holder, large),
        )
        sums = None
        if plan.task.regression is not None and asking is not None:
            sums = SignedSums(signed.digest, _as_numbers(held.told), _as_numbers(asking.seen))
        if self.options.model is not None:
            if large:
                write_vector(self.options.model.with_suffix(".npy"), held.estimate)
            if sums is not None:  # first: no model is left without its sums
                write_sums(sums_beside(self.options.model), sums)
            write_model(self.options.model, model, notes, result, plan.task.regression)
        return Ending(model, notes, held.estimate, result=result, sums=sums)

    def _own_fit(self, plan: RingPlan, ending: Ending, told: tuple[Vector, ...]) -> OwnFit | None:
        """How the model does on this site's own data. It is kept beside the journal, not in the model, which others may see."""
        regulariser: Any = NOTHING if plan.task.regression else getattr(plan.algorithm, "regulariser", NOTHING)
        if hasattr(regulariser, "weight"):  # that of the ring is for N times the pooled function
            regulariser = replace(regulariser, weight=regulariser.weight / plan.agents)
        found = self.local.own_fit(ending.estimate, ending.model, regulariser, told)
        if found is not None:
            write_whole(self.home / OWN_FIT, msgspec.json.encode(found))
            self.log("own fit", bad=found.bad)
        return found


def _outcome(holder: Holder, standard: Standard | None) -> Outcome:
    """The model in the units of the data, and of a regression its tables."""
    plan, held, asking = holder.plan, holder.held, holder.asking
    assert held.estimate is not None
    if plan.task.regression is None or asking is None:
        return Outcome(BESIDE if stands_beside(plan.task) else model_of(plan.task, standard, held.estimate), None)
    names, converged = tuple(one.name for one in plan.members), held.reason == Reason.CONTENT
    questions = questions_of(plan, held.hop)
    found = asking.found() if plan.task.regression.folds else None
    chosen: Chosen | None = getattr(found, "chosen", None)
    outcome = outcome_of(
        plan.task.regression, held.told, asking.seen, held.estimate, names, questions, converged, chosen
    )
    result = None if outcome.result is None else replace(outcome.result, slopes=asking.held.slopes)
    return outcome._replace(result=result)


def _digest_of_model(path: Path) -> str:
    """A digest of a model's file, and of the unknowns beside it."""
    beside = path.with_suffix(".npy")
    try:
        pieces = [path.read_bytes(), beside.read_bytes() if beside.exists() else b""]
    except OSError as error:
        raise ValueError(f"{path} can't be opened ({error.strerror}): check the path and who may read it.") from None
    return sha256(b"".join(len(piece).to_bytes(8, "little") + piece for piece in pieces)).hexdigest()


def _signed_end(holder: Holder, large: bool) -> SignedEnd:
    """What all members have signed, for whoever reads the model."""
    end, held = holder.end, holder.held
    assert held.estimate is not None
    beside = holder.plan.task.regression is not None  # of other fits they are the statistics that the file has anyhow
    return SignedEnd(
        end.hop, end.reason, end.by, () if beside else _as_numbers(held.told), end.asked.hex(), end.totals.hex(),
        () if large and np.array_equal(end.point, held.estimate) else tuple(end.point.tolist()), tuple(one.hex() for one in pieces_of(held.signatures, SIGNATURE)),
        "" if holder.asking is None else holder.asking.held.fitted.hex(), sums=end.told.hex() if beside else "",
    )  # fmt: skip


def _as_numbers(totals: Iterable[Vector]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(total.tolist()) for total in totals)


def _privacy(plan: RingPlan, holder: Holder) -> PrivacyNotes | None:
    """What was promised, and what noise has done to each coefficient."""
    promise, noise = plan.task.promise, plan.noise
    if promise is None or noise is None or holder.asking is None:
        return None
    covariance = holder.asking.covariance()
    notes = PrivacyNotes(promise.epsilon, promise.delta, noise.rho, noise.leave_out)
    if covariance is None:
        return notes
    slopes, of_intercept = noise_of(plan.task, covariance)
    names = map(str, plan.task.features)
    return replace(notes, noise=tuple(zip(names, slopes.tolist(), strict=True)), of_intercept=of_intercept)


def read_privacy(folder: Path, run_id: str) -> PrivacyStatus | None:
    """What a site's privacy meter showed last; None where it has not measured yet."""
    path = folder / "runs" / run_id / PRIVACY
    if not path.exists():
        return None
    return msgspec.json.decode(path.read_bytes(), type=PrivacyStatus)


def _why_it_stopped(holder: Holder) -> str:
    end = holder.end
    return why_it_ended(holder.plan, end.hop, Reason(end.reason), end.by)


def _proven(plan: RingPlan, holder: Holder) -> float | None:
    """What the mean gradient is at most: where all were content, that is proven by their own residuals."""
    if holder.asking is not None:
        return holder.asking.held.residual
    return plan.stopping.tolerance if holder.held.reason == Reason.CONTENT else None


def ask(folder: Path, run_id: str, what: str, wanted: bool = True) -> None:
    """Leave a wish where the agent looks: to pause, to go on, to stop the ring."""
    home = folder / "runs" / run_id
    if not home.is_dir():
        raise ValueError(f"No agent of the run {run_id} has run in {folder}: check the folder and the ring file.")
    path = home / what
    if wanted:
        path.touch(mode=0o600)
    elif path.exists():
        os.unlink(path)
