"""What the holder of a baton makes of it: the mathematics of one agent, without a word about links or files."""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.data.fitting import own_sums_of
from roundelay.agents.data.objectives import Local
from roundelay.agents.protocol.asking import ENDING, FARTHEST, MOST_TOLD, Asking, digest_of, question_sizes
from roundelay.agents.protocol.baton import (
    GATHERED,
    TOLD,
    Baton,
    BatonError,
    Layout,
    Phase,
    Reason,
    all_finite,
)
from roundelay.agents.protocol.beginning import begin, grid_of, opens_with_a_sum
from roundelay.agents.protocol.carried import Elsewhere
from roundelay.agents.protocol.signing import (
    CARD,
    SIGNATURE,
    End,
    MaskKey,
    Signer,
    Unproven,
    placed,
    told_statement,
    unsigned,
    without_a_good_card,
)
from roundelay.algorithms.parts.defences import ContributionNoise
from roundelay.algorithms.parts.starts import OneAgent
from roundelay.algorithms.slots import Agents
from roundelay.algorithms.token_method import has_shares
from roundelay.engine import token_loop
from roundelay.engine.assemble import TOKEN_SHAPES, Assembly, prepare
from roundelay.engine.token_run import Lap, lap_along, lap_at
from roundelay.kernels import Integers, Matrix, Part, Vector, Visit
from roundelay.kernels.random import Words
from roundelay.masks import AgreedPairs, BadKeyError, Grid, PairSecrets, WideFixedPoint, my_seal
from roundelay.networks.network_checks import join_names
from roundelay.networks.walks import tour_part
from roundelay.problems import OwnProblem

# Every epoch has hop numbers of its own, so that no draw of noise is ever used twice.
HOPS_OF_AN_EPOCH = 2**40
# A token that moved by so much more than ever before in a lap is not one of a method that converges.
ABSURD = 1e3
VISITS_BEFORE_JUDGING = 3
# Up to so many unknowns a gradient more at each visit does not matter.
CHEAP = 1000
# Coordinates at a time: so many stay near the processor.
BLOCK = 8192
# The sums before the fit, in whatever units.
STATISTICS = WideFixedPoint()
_NO_VISITS: Integers = np.zeros(0, np.int64)
_NO_NUMBERS: Vector = np.zeros(0)
# The shares add up to N times the token but for rounding, in parts of its size.
OUT_OF_BALANCE = 1e-9

# Of glibc's malloc.h.
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
KEEP = 2**30


class SolverError(RuntimeError):
    """The site's own function gave something with which the fit can't go on."""


class DeceivedError(RuntimeError):
    """What this site was told can't be true of data that hold its own. The agent stops: asked again and again, it would tell how much it has."""


# Where to start from, once the sums before the fit are known.
Warm = Callable[[tuple[Vector, ...]], Vector | None]
# What a site does before its first words of an epoch leave, and again when it has been told sums of this epoch.
BeforeAdding = Callable[[tuple[Vector, ...]], None]


def nothing_to_note(told: tuple[Vector, ...]) -> None:
    """What is done before words leave, where no ledger is kept."""


class HandOver(NamedTuple):
    """A baton, and the member that it goes to."""

    receiver: int
    baton: Baton


@dataclass(frozen=True)
class Residuals:
    """What an agent sees of how far the fit is: ‖x⁺ − z‖, ρ‖s⁺ − s‖, and how far it is from balance with the token."""

    hop: int
    primal: float
    dual: float
    unrest: float


@dataclass(eq=False)
class Held:
    """What an agent has to keep: its own states, the sums that it was told, and how the run ended for it.

    `summed` is how many of this epoch's sums it has added to: the mask of each is used once. `cards` are the keys for masks of all
    members in this epoch, and `signatures` those of all members under the end of the run, of which `final` is the point. `asked` is
    the hop of the last end that it was asked to sign, and `wished` says whether it has told the others that its operator wants to stop.
    The matrices have a row for every member, of which only the agent's own is ever touched, and so takes memory.
    """

    x: Matrix
    y: Matrix
    share: Matrix
    begun: bool = False
    visits: int = 0
    summed: int = 0
    told: tuple[Vector, ...] = ()
    largest_jump: float = 0.0
    estimate: Vector | None = None
    final: Vector | None = None
    reason: Reason | None = None
    ended_by: int = -1
    hop: int = -1
    cards: bytes = b""
    signatures: bytes = b""
    asked: int = -1
    wished: bool = False
    residuals: Residuals | None = field(default=None, repr=False)


class Functions(NamedTuple):
    """The kernel functions of this agent as one module, and the numbers of its function and of the method."""

    module: Any
    problem: Any
    method: Any


def layout_of(plan: RingPlan, sums: tuple[int, ...]) -> Layout:
    """How large the batons of a ring are whose sites form sums of so many numbers before the fit."""
    counts, questions = [1 + count for count in sums], question_sizes(plan)
    words = tuple(STATISTICS.words * count for count in counts)
    if questions:
        done = ENDING + plan.dim
        return Layout(
            plan.agents, done + max(MOST_TOLD, sum(own_sums_of(plan.task))), done, words, tuple(counts), questions
        )
    token, shares = plan.vectors * plan.dim, STATISTICS.words * plan.dim if has_shares(plan.method) else 0
    return Layout(plan.agents, token, token, (*words, plan.dim), tuple(counts), shares=shares)


class Holder:
    """One member of a ring, when it holds the baton: what it makes of it, and to whom it hands it on.

    `seed` keys the agent's own draws, `first_hop` is the epoch's. `secrets` are what it shares with each other member, or a key of its
    own for masks: then all tell each other theirs before anything else. `ring` is the digest of the ring file, and `least_carriers` how many rows of
    this site an answer must be about, also beside those that it gave `elsewhere`.
    `act` changes what is held in memory; where it raises, that is worth nothing any more, and the agent goes on from its
    journal.
    """

    def __init__(
        self,
        plan: RingPlan,
        me: int,
        local: Local,
        seed: int,
        secrets: PairSecrets | MaskKey,
        warm: Warm | None = None,
        before_adding: BeforeAdding = nothing_to_note,
        signer: Signer | None = None,
        ring: str = "",
        least_carriers: int = 1,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self.least_carriers, self.elsewhere = least_carriers, elsewhere
        self.plan, self.me, self.local, self.seed, self.warm = plan, me, local, seed, warm
        self._key = secrets if isinstance(secrets, MaskKey) else None
        self._secrets = None if isinstance(secrets, MaskKey) else secrets
        self.signer: Signer = Unproven(me) if signer is None else signer
        self.ring = bytes.fromhex(ring)
        self._before_adding, self._noted = before_adding, -1
        self.asking = Asking(self) if plan.choice is not None else None
        self.first_hop = plan.epoch * HOPS_OF_AN_EPOCH
        rows = plan.agents + plan.vectors - 1
        x, y, share = (untouched_zeros(rows, plan.dim) for _ in range(3))
        self.held = Held(x, y, share)
        self.wants_to_stop = False
        self._functions: Functions | None = None
        self._own: OwnProblem | None = None
        self._noisy = False
        self._layout = self.largest_layout
        if self.asking is None:
            self.method = plan.method
        self._walk: Part = tour_part(np.array(plan.order)) if plan.on_cycle else plan.method.walk.part(plan.network)
        self._steps = dict(self._walk.functions)

    # ------------------------------------------------------------ what there is to know

    @cached_property
    def largest_layout(self) -> Layout:
        """How large batons are at most."""
        return layout_of(self.plan, self.local.sums)

    @property
    def layout(self) -> Layout:
        """How large batons are now: the last one of sealed laps has as many numbers as were asked for."""
        if self.asking is None:
            return self.largest_layout
        if self._layout.token != self.asking.ending:
            self._layout = replace(self._layout, token=self.asking.ending)
        return self._layout

    @property
    def problem(self) -> OwnProblem:
        """The site's own function."""
        if self._own is None:
            self._own = self.local.problem(self.held.told)
            if self._own.dim != self.plan.dim:
                raise SolverError(
                    f"This site's function has {self._own.dim} unknowns, but the ring's fit has {self.plan.dim}: "
                    "check the data or the objective against the ring file."
                )
            if self.asking is not None:
                self.asking.check_answers(self._own)
        return self._own

    @property
    def makes_passes(self) -> bool:
        """Whether an answer may take as long as reading more rows than fit into memory."""
        return bool(getattr(self.local, "makes_passes", False))

    @property
    def repeatable(self) -> bool:
        """Whether a hop that is made again gives the same bits: all draws are keyed by the hop, so the function decides.

        An answer with noise is taken for one that does not, so that it is on disk before it leaves: asked elsewhere after a crash, the
        same noise and mask would come twice, and cancel in the difference. So is one that tells a wish, which waits after a start.
        """
        telling = self.asking is not None and self.wants_to_stop
        return self.local.repeatable and not self._noisy and not telling and self.plan.noise is None

    @property
    def secrets(self) -> PairSecrets:
        """What this member shares with each other one: of this epoch's keys, once all have told theirs."""
        if self._secrets is None:
            self._secrets = self.agree()
        return self._secrets

    def agree(self) -> PairSecrets:
        """The same secrets in an object of their own: drawing from them is not for two threads at once."""
        if self._key is None:
            assert self._secrets is not None
            return self._secrets
        return self._agreed(self.held.cards)

    def _agreed(self, cards: bytes) -> AgreedPairs:
        assert self._key is not None
        return self._key.agreed(self.me, cards, self.plan.run, self.plan.epoch, self.ring)

    @property
    def finished(self) -> bool:
        """Whether the run is over for this agent."""
        return self.held.reason is not None

    def place_of(self, hop: int) -> int:
        """The place of the walk at which a hop is made by this agent."""
        return (hop - self.first_hop) % len(self.plan.order) if self.plan.on_cycle else self.me

    # ------------------------------------------------------------ the baton

    def first(self) -> HandOver | None:
        """How the epoch begins, at the first member of its lap."""
        return self._opened() if self._key is None or self.held.cards else self._gather_keys()

    def act(self, baton: Baton) -> HandOver | None:
        """What this agent makes of a baton, and whom it goes to; None where the run is over."""
        if baton.phase == Phase.ITERATE:
            return self._iterate(baton)
        if baton.phase == Phase.ASK and self.asking is not None:
            return self.asking.act(baton)
        lap = self.lap_of(baton.phase, baton.origin, baton.hop)
        returned = baton.step == len(lap.order)
        if baton.phase == Phase.KEYS and baton.purpose == GATHERED:
            return self._tell_keys(baton) if returned else self.pass_on(baton, lap, self._keyed)
        if baton.phase == Phase.KEYS:
            return self._opened() if returned else self.pass_on(baton, lap, self._heard_keys)
        if baton.phase == Phase.SUM:
            return self._summed(baton) if returned else self.pass_on(baton, lap, self._added)
        if baton.phase == Phase.TELL:
            return self._after_told(baton.purpose) if returned else self.pass_on(baton, lap, self._heard)
        if baton.phase == Phase.FROZEN:
            return self._asked(baton) if returned else self.pass_on(baton, lap, self.confirmed)
        # The last lap need not return: where it began nobody waits for it, and may have ended.
        moved = self.pass_on(baton, lap, self._ended)
        return moved if lap.works[baton.step + 1 :].any() else None

    def check(self, baton: Baton, previous: Vector | None) -> None:
        """Refuse a baton that is not for this member now, or a token that has moved absurdly far since it sent it on."""
        self._check_order(baton)
        if self.asking is not None and baton.phase in (Phase.ASK, Phase.FROZEN, Phase.DONE):
            self.asking.check(baton)
        else:
            self._check_place(baton)
        if baton.phase == Phase.KEYS:
            self._check_keys(baton)
        elif baton.phase == Phase.TELL:
            self._check_told(baton)
        elif baton.phase in (Phase.FROZEN, Phase.DONE):
            self._check_signatures(baton)
        if self.asking is None and baton.phase in (Phase.ITERATE, Phase.FROZEN):
            self._check_jump(baton, previous)

    def _check_jump(self, baton: Baton, previous: Vector | None) -> None:
        """Refuse a token that is nowhere near a model; this site's own update would come to no numbers, and seem to be at fault."""
        if previous is None or len(previous) != len(baton.numbers):
            previous = None
        jump = _distance(baton.numbers, np.zeros(len(baton.numbers)) if previous is None else previous)
        if not jump <= FARTHEST:
            raise BatonError(
                "The token is beyond all measure, where no model is: a site before this one has made it so."
            )
        if previous is None:
            return
        held = self.held
        if held.visits >= VISITS_BEFORE_JUDGING and jump > ABSURD * held.largest_jump > 0.0:
            raise BatonError(
                f"The token has moved by {jump:.2g} since this member sent it on, but never before by more than "
                f"{held.largest_jump:.2g}."
            )
        held.largest_jump = max(held.largest_jump, jump)

    def _check_order(self, baton: Baton) -> None:
        """First the keys for masks are told, then the sums, each after the one that it follows from; then the fit begins, until its end."""
        if self.held.reason is not None and baton.phase != Phase.DONE:
            raise BatonError("The run is over for this member, which has signed its end and answers nothing after it.")
        if baton.phase == Phase.KEYS:
            return
        if self._key is not None and not self.held.cards:
            raise BatonError(
                f"The baton, of the phase {baton.phase.name}, came before all members have told their keys for masks."
            )
        known, sums = len(self.held.told), len(self.local.sums)
        needed = min(baton.purpose, sums) if baton.phase in (Phase.SUM, Phase.TELL) else sums
        if self._is_refused(baton):
            needed = 0
        if known < needed:
            raise BatonError(
                f"The baton, of the phase {baton.phase.name}, came before sum {known} was told, from which it follows."
            )

    def _is_refused(self, baton: Baton) -> bool:
        """Whether the baton ends the run because nothing can be fitted, and this member finds so by the sums that it was told."""
        ends = baton.phase in (Phase.FROZEN, Phase.DONE) and baton.purpose == Reason.NO_MINIMUM
        return ends and self.asking is not None and bool(self.asking.refusal)

    def _check_place(self, baton: Baton) -> None:
        """A hop or a step of a lap must be this member's and within the ring's agreement, and no hop is made twice."""
        hop, iterates = baton.hop, baton.phase == Phase.ITERATE
        own = 0 <= hop - self.first_hop <= self.plan.stopping.hops - iterates
        if own and iterates:
            own = self._steps["agent_at"](self._walk.numbers, self.place_of(hop)) == self.me
        elif own:
            order, _ = self.lap_of(baton.phase, baton.origin, hop)
            own = order[0] == baton.origin and 1 <= baton.step <= len(order) - (baton.phase == Phase.DONE)
            own = own and order[baton.step % len(order)] == self.me
        if not own:
            raise BatonError(
                f"The baton says that hop {hop}, at step {baton.step} of its lap, is this member's, which it is not."
            )
        adds = not iterates and self.adds(baton)
        if adds and baton.phase == Phase.SUM and baton.purpose < self.held.summed:
            raise BatonError(
                f"This member has added to sum {baton.purpose} already, and the mask of a sum is used once."
            )
        if adds and baton.phase == Phase.SUM and self._keeps_statistics and baton.purpose < len(self.held.told):
            raise BatonError(
                "The statistics of all rows were summed when the run began, and are not summed again over other members."
            )
        if baton.phase == Phase.KEYS and (self._key is None or (adds and bool(self.held.cards))):
            raise BatonError("The keys for masks are known already, or none are made in this ring.")
        if not adds:
            self._check_closed(baton)
        if self.finished and baton.phase == Phase.DONE:
            return  # on a lap that meets this member again
        # Whatever this member has signed or worked on is not gone back behind: neither a mask nor a signature is for two ends.
        begun = self.held.hop >= self.first_hop
        begun = begun or (self.asking is not None and bool(self.asking.held.answered))
        if begun and (
            hop <= self.held.hop
            if baton.phase in (Phase.ITERATE, Phase.FROZEN, Phase.DONE)
            else baton.phase in (Phase.KEYS, Phase.SUM, Phase.TELL)
        ):
            raise BatonError(f"The baton would go back to hop {hop}, but this member has made hop {self.held.hop}.")
        last = max(self.held.hop, self.first_hop - 1)
        if self.plan.on_cycle and baton.phase in (Phase.ITERATE, Phase.FROZEN) and hop - last > len(self.plan.order):
            raise BatonError(
                f"The baton is at hop {hop}, but this member, which makes one in {len(self.plan.order)}, has made hop {last} last: hops were "
                "left out, so that the ring would end before it was agreed."
            )

    def _check_closed(self, baton: Baton) -> None:
        """Where a lap began it is closed once, and as what it began: told another total, this member would be named for what it tells then."""
        sender = self.plan.members[self.plan.order[-1]].name
        if baton.phase == Phase.SUM and baton.origin == self.me and baton.purpose < len(self.held.told):
            raise BatonError(
                f"The lap of sum {baton.purpose} comes back once more after it was closed and its total told: {sender} has sent it again."
            )
        if baton.phase == Phase.KEYS and baton.purpose == TOLD and not self.held.cards:
            raise BatonError(f"The lap of the keys for masks comes back as another one, from {sender}.")

    # ------------------------------------------------------------ keys for masks

    def _gather_keys(self) -> HandOver:
        begun = self.start_lap(Phase.KEYS, GATHERED, self.first_hop, _NO_NUMBERS, bytes(CARD * self.plan.agents))
        return begun._replace(baton=self._keyed(begun.baton))

    def _keyed(self, baton: Baton) -> Baton:
        """Put in this member's own card."""
        assert self._key is not None
        card = self._key.card(self.signer, self.ring, self.plan.epoch, self.plan.members[self.me].name)
        return baton._replace(beside=placed(baton.beside, self.me, card))

    def _tell_keys(self, baton: Baton) -> HandOver:
        self.held.cards = baton.beside
        return self.start_lap(Phase.KEYS, TOLD, self.first_hop, _NO_NUMBERS, baton.beside)

    def _heard_keys(self, baton: Baton) -> Baton:
        self.held.cards = baton.beside
        return baton

    def _check_keys(self, baton: Baton) -> None:
        """When all cards are in, each must be signed by its member, for this ring file and epoch, and this member's own be the one it gave."""
        if baton.purpose == GATHERED and baton.step < len(self._whole_lap.order):
            return
        names = [member.name for member in self.plan.members]
        wrong = without_a_good_card(self.signer, baton.beside, self.ring, self.plan.epoch, names)
        if wrong:
            raise BatonError(
                f"The key for masks of {self._named(wrong)} is not signed for this site's ring file: another file was accepted there, or "
                "somebody has replaced the key on the way. Compare the digests (roundelay ring show) of all sites."
            )
        if self.held.cards and baton.beside != self.held.cards:
            raise BatonError("The keys for masks are others than those that this member has been told.")
        try:
            self._agreed(baton.beside).key(self.me, self.me)  # which agrees with all
        except BadKeyError as error:
            raise BatonError(
                f"With the key for masks of {self._named([*error.agents])} no secret can be agreed on, or one is a copy of the other: who signed "
                "it wants no masks. Drop the site that it is."
            ) from None
        except ValueError as error:
            raise BatonError(f"The keys for masks can't be used. {error}") from None

    def _named(self, members: list[int]) -> str:
        return join_names([self.plan.members[member].name for member in members])

    # ------------------------------------------------------------ laps before the first hop

    def _opened(self) -> HandOver | None:
        return self._tell(0) if self.held.told else self._after_told(-1)

    def note(self) -> None:
        """Have noted what is about to be added, before the first words of an epoch and after each sum that was told."""
        told = self.held.told if self.held.summed else ()  # what an earlier epoch was told is not of these members
        if len(told) > self._noted:
            self._before_adding(told)
            self._noted = len(told)

    def _summand(self, purpose: int) -> Words:
        """What this agent adds to a sum, under its mask."""
        self.note()
        if purpose < len(self.local.sums):
            numbers = np.concatenate([[1.0], self.local.summand(self.held.told[:purpose], self.plan.agents)])
            grid: Grid = STATISTICS
            words = grid.encode(numbers)
        else:
            self._begin()
            grid, share = grid_of(self.method), self.held.share[self.me]
            words = grid.encode(share, self.plan.agents, "The largest share of the token")
            share[:] = grid.decode(words)  # what is summed is what it has in the token
        self.held.summed = purpose + 1
        # The mask of a sum is used once: every epoch has secrets of its own, every sum its turn.
        turn = 0 if purpose == len(self.local.sums) else purpose + 1
        count = len(words) // grid.words
        # A summand follows from what was told before: who was told something else gets no sum with the others.
        told = self.held.told[:purpose]
        about = digest_of(told) if told else b""
        return grid.add(words, my_seal(self.secrets, self.me, self.plan.agents, count, turn, grid, about))

    def _sum(self, purpose: int) -> HandOver:
        return self.start_lap(Phase.SUM, purpose, self.first_hop, self._summand(purpose))

    def _added(self, baton: Baton) -> Baton:
        grid: Grid = STATISTICS if baton.purpose < len(self.local.sums) else grid_of(self.method)
        return baton._replace(numbers=grid.add(baton.numbers, self._summand(baton.purpose)))

    def _summed(self, baton: Baton) -> HandOver | None:
        """The lap of a sum is closed: the masks have cancelled."""
        if baton.purpose < len(self.local.sums):
            total = STATISTICS.decode(baton.numbers)
            self._check_total(baton.purpose, total, "The sum")
            self.held.told = (*self.held.told[: baton.purpose], total)
            return self._tell(baton.purpose)
        mean = grid_of(self.method).decode(baton.numbers) / self.plan.agents
        return self._iterate(self._token(np.pad(mean, (0, (self.plan.vectors - 1) * self.plan.dim)), self.first_hop))

    def _tell(self, purpose: int) -> HandOver:
        told = self.held.told[purpose]
        signature = self.signer.sign(told_statement(self.ring, self.plan.epoch, purpose, told))
        return self.start_lap(Phase.TELL, purpose, self.first_hop, told, signature)

    def _check_told(self, baton: Baton) -> None:
        """What is told must be signed by the member that formed the sum, and be possible with what this site itself has added."""
        teller = self.plan.members[baton.origin].name
        if not self.signer.is_signed(
            baton.origin, told_statement(self.ring, self.plan.epoch, baton.purpose, baton.numbers), baton.beside
        ):
            raise BatonError(
                f"What is told of the sums is not what {teller} has signed: somebody between {teller} and this site has changed it."
            )
        if baton.purpose < len(self.held.told):
            # Told once: each total more, until one is not taken, would tell more of what this site has added.
            if not np.array_equal(self.held.told[baton.purpose], baton.numbers):
                raise BatonError(f"{teller} tells other sums than those that this site was told before.")
        elif self.held.summed > baton.purpose:
            self._check_total(baton.purpose, baton.numbers, f"What {teller} tells of the sums")
        elif self._keeps_statistics:
            self._check_heard(baton.purpose, baton.numbers, f"What {teller} tells of the sums")
        else:
            raise BatonError(f"Sum {baton.purpose} is told before this member has added to it.")

    @property
    def _keeps_statistics(self) -> bool:
        """Whether statistics of before this epoch go on to hold: with a token they are those of the beginning, which newcomers are told."""
        return self.asking is None and self.plan.epoch > 0

    def _check_total(self, purpose: int, total: Vector, what: str) -> None:
        """Refuse a total that can't be: the masks did not cancel, or it lacks what this site has added."""
        if not (all_finite(total) and round(float(total[0])) == self.plan.agents):
            raise BatonError(
                f"{what} did not come out: the masks did not cancel, since some member was told or has told something else, or has "
                "another ring file."
            )
        try:
            self.local.check_told((*self.held.told[:purpose], total), self.plan.agents)
        except ValueError as error:
            raise self.deceived(what, error) from None

    def _check_heard(self, purpose: int, total: Vector, what: str) -> None:
        """Refuse a total from which nothing can follow, of sums that were formed before this site came: once kept, it would fail at every start."""
        told = (*self.held.told[:purpose], total)
        try:
            if purpose + 1 < len(self.local.sums):
                self.local.summand(told, self.plan.agents)
            else:
                self.local.standard(told)
        except (ValueError, ArithmeticError) as error:
            raise self.deceived(what, error) from None

    def deceived(self, what: str, error: Exception) -> DeceivedError:
        """What to say where something that was told can't be."""
        return DeceivedError(
            f"{what} can't be right. {error} The agent stops, and nothing of this is kept: ask the other sites what they were told."
        )

    def _heard(self, baton: Baton) -> Baton:
        self.held.told = (*self.held.told[: baton.purpose], np.array(baton.numbers))
        return baton

    def _after_told(self, purpose: int) -> HandOver | None:
        """What follows after sum `purpose` is known to all."""
        following = purpose + 1
        if self.asking is not None and self.asking.refusal:
            return self.asking.refused()
        if following < len(self.local.sums):
            return self._tell(following) if following < len(self.held.told) else self._sum(following)
        if self.asking is not None:
            return self.asking.first()
        if opens_with_a_sum(self.method, self.plan.epoch, self.plan.warm):
            return self._sum(len(self.local.sums))
        return self._iterate(self._token(np.zeros(self.plan.vectors * self.plan.dim), self.first_hop))

    def _begin(self) -> None:
        held, me = self.held, self.me
        if not held.begun:
            warm = self.warm(held.told) if self.plan.warm and self.warm is not None else None
            held.x[me], held.y[me], held.share[me] = begin(
                self.method, self.problem, OneAgent(me, self.plan.agents, self.seed, self.secrets), warm
            )
            held.begun = True

    # ------------------------------------------------------------ the hops

    def _token(self, numbers: Vector, hop: int, content: int = 0) -> Baton:
        return Baton(Phase.ITERATE, hop, self.me, 0, 0, content, numbers)

    def _iterate(self, baton: Baton) -> HandOver | None:
        """Make hop `baton.hop`, and where the walk stays here the next ones too."""
        while True:
            moved = self._hop(baton)
            if moved is None or moved.receiver != self.me or moved.baton.phase != Phase.ITERATE:
                return moved
            baton = moved.baton

    def _hop(self, baton: Baton) -> HandOver | None:
        walk, hop = self._walk, baton.hop
        place = self.place_of(hop)
        content = baton.content
        if self._steps["works"](walk.numbers, place):
            baton, content = self.visit(baton)
        if hop + 1 - self.first_hop >= self.plan.stopping.hops:
            return self.freeze(Reason.HOPS, hop + 1, baton.numbers)
        if self.wants_to_stop:
            return self.freeze(Reason.ASKED, hop + 1, baton.numbers)
        if content == (1 << self.plan.agents) - 1:
            return self.freeze(Reason.CONTENT, hop + 1, baton.numbers)
        return self._onward(baton.numbers, hop + 1, content)

    def _onward(self, numbers: Vector, hop: int, content: int) -> HandOver:
        """The token goes to whoever makes the next hop."""
        walk, place = self._steps, self.place_of(hop - 1)
        following = walk["advance"](self._walk.numbers, self.seed, hop, place, _NO_VISITS)
        return HandOver(int(walk["agent_at"](self._walk.numbers, following)), self._token(numbers, hop, content))

    def visit(self, baton: Baton) -> tuple[Baton, int]:
        """The update itself: the very function that the simulator runs."""
        self.note()
        self._begin()
        held, me, agents, functions = self.held, self.me, self.plan.agents, self.functions
        tolerance = self.plan.stopping.tolerance
        vectors = np.array(baton.numbers).reshape(self.plan.vectors, self.plan.dim)
        token = vectors[0]
        if len(vectors) > 1:
            held.share[agents:] = vectors[1:]
        primal, dual = functions.module.visit(
            functions.problem, functions.method, Visit(self.seed, me, baton.hop, held.visits, agents),
            token, Agents(held.x, held.y, held.share, _NO_VISITS), True,
        )  # fmt: skip
        if len(vectors) > 1:
            vectors[1:] = held.share[agents:]
        held.visits += 1
        held.hop = baton.hop
        if not (all_finite(vectors.reshape(-1)) and all_finite(held.x[me])):
            raise self.not_finite(f"update at hop {baton.hop}")
        content = 0
        unrest = float("nan")
        if has_shares(self.method) and tolerance is not None:
            likely = primal <= tolerance and dual <= tolerance
            if likely or self.plan.dim <= CHEAP:  # where it costs little, it is there to be looked at
                unrest = self._unrest(token)
            if likely and unrest <= tolerance:
                content = baton.content | 1 << me
        held.residuals = Residuals(baton.hop, primal, dual, unrest)
        return baton._replace(numbers=vectors.reshape(-1)), content

    def not_finite(self, what: str) -> SolverError:
        """What to say where this site's own numbers are none."""
        return SolverError(
            f"This site's own {what} has a number that is not finite, so nothing was sent on: check the data and the objective, "
            "then start the agent again."
        )

    def unanswerable(self, number: int, why: str) -> SolverError:
        """What to say where a question has no answer here, which may be the site's own fault or that of who asks."""
        asker = self.plan.members[self.plan.order[0]].name
        return SolverError(
            f"This site's own answer to question {number + 1} {why}, so nothing was sent on. Check the data and the objective; where they are "
            f"right {asker}, who asks, has asked far from any model. Then start the agent again."
        )

    def too_few(self, number: int) -> DeceivedError:
        """What to say where an answer would be about few rows: nothing of which, or how many."""
        asker = self.plan.members[self.plan.order[0]].name
        return DeceivedError(
            f"Question {number + 1} is at a point where so few rows of this site carry what would be told that it could tell what is in them "
            f"(least_rows_a_level in this site's policy). The agent stops, and nothing of it was answered. {asker}, who asks, may have asked there to "
            "learn of them, or some site has told false data to lead there; or the plan does, by an offset or by weights. An honest fit comes there "
            "where the outcomes can nearly be told apart: then let it be planned with a larger --ridge."
        )

    def _unrest(self, token: Vector) -> float:
        functions = self.functions
        share = self.held.share[self.me]
        return float(
            functions.module.unrest(functions.problem, functions.method, self.me, self.plan.agents, token, share)
        )

    @property
    def functions(self) -> Functions:
        """The kernel functions, put together once the site's own function is known."""
        if self._functions is None:
            update = self.method.update(int(self.plan.order[0]) if self.plan.on_cycle else 0)
            parts = (self.problem.kernel_at(self.me, self.plan.agents), update, self._walk, Part(()))
            literals = (("DIM", self.plan.dim), ("TOKENS", 1), ("VECTORS", self.plan.vectors), ("FAR", 0))
            handed = tuple(shape(*shape._fields) for shape in TOKEN_SHAPES)
            whole = Assembly(parts, token_loop.travel, self.plan.dim, handed, literals, token_loop.DEFAULTS)
            prepared = prepare(whole, "python")
            self._functions = Functions(prepared.functions(), *prepared.numbers[:2])
        return self._functions

    def add_noise(self) -> None:
        """From now on hide this agent's contributions under noise that decays; the token still ends at the minimiser.

        Any member may do so by itself: what it adds it takes back, whatever the others do.
        """
        if self._noisy or self.asking is not None or not has_shares(self.method):
            return
        self._noisy = True
        self.method = replace(self.method, defence=ContributionNoise(since=self.held.visits))
        self._functions = None

    # ------------------------------------------------------------ the end

    def freeze(self, reason: Reason, hop: int, numbers: Vector, wished: int = 0) -> HandOver:
        """Let everybody sign this end."""
        signatures = bytes(SIGNATURE * self.plan.agents + 8 * self.largest_layout.shares)
        frozen = self.start_lap(Phase.FROZEN, reason, hop, numbers, signatures)
        return frozen._replace(baton=self.confirmed(frozen.baton._replace(content=wished)))

    def confirmed(self, baton: Baton) -> Baton:
        """Sign the end where this member itself finds it right; with a token it adds its share to their sum, too."""
        self.held.asked = baton.hop
        if self.asking is not None:
            self.asking.take_totals(baton)
        elif not self._is_content(baton):
            return baton
        signatures, words = self._split(baton)
        signatures = placed(signatures, self.me, self.signer.sign(self.end_in(baton).statement))
        if len(words):
            words = STATISTICS.add(words, self._share_at(baton))
        content = baton.content if self.asking is not None else baton.content | 1 << self.me
        return baton._replace(content=content, beside=signatures + words.tobytes())

    def _share_at(self, baton: Baton) -> Words:
        """What this member has in a frozen token, under a mask."""
        self.note()
        self._begin()  # a share that comes later would be the difference to none, under the same mask
        own = STATISTICS.encode(self.held.share[self.me], self.plan.agents, "This site's largest share of the token")
        # Bound to this very end, which is never asked about again after a visit: where it goes on after all, the next has other masks.
        about = sha256(baton.hop.to_bytes(8, "little") + np.ascontiguousarray(baton.numbers).tobytes()).digest()
        self.held.hop = max(self.held.hop, baton.hop - 1)
        turn = 1 + len(self.local.sums)
        seal = my_seal(self.secrets, self.me, self.plan.agents, self.plan.dim, turn, STATISTICS, about)
        return STATISTICS.add(own, seal)

    def _is_content(self, baton: Baton) -> bool:
        """Whether this agent confirms the token as it stands frozen; where it need not be the best fit, there is nothing to confirm."""
        if baton.purpose != Reason.CONTENT:
            return True
        tolerance = self.plan.stopping.tolerance
        return tolerance is not None and self._unrest(np.array(baton.numbers[: self.plan.dim])) <= tolerance

    def end_in(self, baton: Baton) -> End:
        """The end that a baton of the phases FROZEN and DONE tells, as this member knows it."""
        if self.asking is not None:
            return self.asking.end_in(baton)
        return self.end_at(baton.hop, baton.purpose, baton.origin, np.array(baton.numbers))

    def end_at(self, hop: int, reason: int, by: int, point: Vector, asked: bytes = b"", totals: bytes = b"") -> End:
        """An end of this epoch, after the sums that this member was told."""
        return End(self.ring, self.plan.epoch, hop, reason, by, point, digest_of(self.held.told), asked, totals)

    @property
    def end(self) -> End:
        """How the run ended for this member."""
        held, asked = (
            self.held,
            (b"", b"") if self.asking is None else (self.asking.held.chain, self.asking.totals),
        )
        assert held.reason is not None and held.final is not None
        return self.end_at(held.hop, held.reason, held.ended_by, held.final, *asked)

    def _split(self, baton: Baton) -> tuple[bytes, Words]:
        """The signatures in a frozen baton, and the words of the shares' sum."""
        length = SIGNATURE * self.plan.agents
        return baton.beside[:length], np.frombuffer(baton.beside[length:], np.uint64)

    def _check_signatures(self, baton: Baton) -> None:
        """A frozen baton must be signed by whoever froze it; at the end by all, this member among them."""
        if baton.phase == Phase.FROZEN:
            if (
                baton.purpose == Reason.HOPS
                and self.asking is None
                and baton.hop - self.first_hop < self.plan.stopping.hops
            ):
                raise BatonError("The baton says that all hops were made that the ring file allows, which is not so.")
            if baton.purpose == Reason.NO_MINIMUM and self.asking is None:
                raise BatonError("The baton says that there is no best model, which no token can find out.")
            signatures, _ = self._split(baton)
            own = slice(SIGNATURE * baton.origin, SIGNATURE * (baton.origin + 1))
            if not self.signer.is_signed(baton.origin, self.end_in(baton).statement, signatures[own]):
                raise BatonError(
                    f"The end that the baton tells is not what {self.plan.members[baton.origin].name} has signed, where it should "
                    "have begun, or that site was told other things than this one."
                )
            if self.adds(baton) and baton.hop <= self.held.asked:
                raise BatonError(
                    f"{self.plan.members[baton.origin].name} asks this site to sign another end of the run than the one that it was asked to "
                    "sign before: then the sites could end with different models, each signed by all."
                )
            return
        missing = unsigned(self.signer, self.end_in(baton).statement, baton.beside)
        if missing:
            raise BatonError(
                f"{self._named(missing)} {'has' if len(missing) == 1 else 'have'} not signed the end that the baton tells: it is made "
                "up, or those sites were told other things than this one."
            )
        if baton.hop != self.held.asked:
            raise BatonError(
                "The baton tells another end of the run than the one that this site was asked to sign last."
            )

    def _asked(self, baton: Baton) -> HandOver | None:
        """Everybody has been asked: it is done, or it goes on."""
        signatures, words = self._split(baton)
        if self.asking is not None:
            return self.done(baton, signatures, baton.numbers[: self.largest_layout.done])
        if baton.content != (1 << self.plan.agents) - 1:
            return self._onward(baton.numbers, baton.hop, 0)
        if len(words):
            self._check_balance(np.array(baton.numbers[: self.plan.dim]), STATISTICS.decode(words))
        return self.done(baton, signatures, baton.numbers)

    def _check_balance(self, token: Vector, total: Vector) -> None:
        """Σc_i = Nz at every hop: where that is not so, a site has forgotten what it did, or never did what it told."""
        agents = self.plan.agents
        most = agents * OUT_OF_BALANCE * max(1.0, float(np.abs(token).max()))
        off = float(np.abs(total - agents * token).max())
        if not off <= most:
            raise BatonError(
                f"What all sites have in the token does not add up to it ({off:.2g} is missing): a site's folder was put back to an older "
                "state, or a site has changed the token by something that it does not count as its own. The run does not end with this "
                "model. Compare the journals of all sites (roundelay ring compare), drop the site that it is, and let it join anew."
            )

    def done(self, baton: Baton, signatures: bytes, numbers: Vector) -> HandOver:
        """All have signed: tell it."""
        done = self.start_lap(Phase.DONE, baton.purpose, baton.hop, numbers, signatures)
        done = done._replace(baton=done.baton._replace(content=baton.content))
        missing = unsigned(self.signer, self.end_in(done.baton).statement, signatures)
        if missing:
            raise BatonError(
                f"{self._named(missing)} {'has' if len(missing) == 1 else 'have'} signed another end than this site: told other things, or "
                "changed on the way. The run does not end with this model; compare the journals (roundelay ring compare)."
            )
        return done._replace(baton=self._ended(done.baton))

    def _ended(self, baton: Baton) -> Baton:
        self.held.signatures = baton.beside
        if self.asking is not None:
            return self.asking.ended(baton)
        scale = float(self.method.token_scale(self.plan.agents))
        self.held.final = np.array(baton.numbers)
        self.held.estimate = self.method.regulariser.prox(self.held.final[: self.plan.dim], scale)
        self.held.reason, self.held.ended_by, self.held.hop = Reason(baton.purpose), baton.origin, baton.hop
        return baton

    # ------------------------------------------------------------ laps

    def lap_of(self, phase: Phase, origin: int, hop: int) -> Lap:
        """The lap that began at a member when the token was to go on with `hop`.

        On the cycle it goes on from where the token is, since a member may stand in the order more than once and every
        hand-over has its place there.
        """
        if phase in (Phase.KEYS, Phase.SUM, Phase.TELL, Phase.ASK) or self.asking is not None:
            return self._whole_lap
        order = np.array(self.plan.order)
        return lap_at(order, self.place_of(hop - 1)) if self.plan.on_cycle else lap_along(order, origin)

    def adds(self, baton: Baton) -> bool:
        """Whether a lap meets this member for the first time, so that it is not only to pass it on."""
        order, works = self.lap_of(baton.phase, baton.origin, baton.hop)
        return baton.step < len(order) and bool(works[baton.step])

    @cached_property
    def _whole_lap(self) -> Lap:
        """The lap from the first member on."""
        return lap_at(np.array(self.plan.order), 0)

    def start_lap(self, phase: Phase, purpose: int, hop: int, numbers: Vector | Words, beside: bytes = b"") -> HandOver:
        """A lap begins here."""
        lap = self.lap_of(phase, self.me, hop)
        return HandOver(int(lap.order[1]), Baton(phase, hop, self.me, 1, purpose, 0, numbers, beside))

    def pass_on(self, baton: Baton, lap: Lap, work: Any) -> HandOver:
        """Do one's part where the lap meets this member first, and hand on."""
        after = work(baton) if lap.works[baton.step] else baton
        return HandOver(int(lap.order[(baton.step + 1) % len(lap.order)]), after._replace(step=baton.step + 1))


def _distance(one: Vector, other: Vector) -> float:
    """The distance between two points, however many coordinates they have, without a vector of differences."""
    square = 0.0
    with np.errstate(over="ignore"):  # then it is infinite, and refused
        for first in range(0, len(one), BLOCK):
            apart = one[first : first + BLOCK] - other[first : first + BLOCK]
            square += float(np.dot(apart, apart))
    return math.sqrt(square)


# ---------------------------------------------------------------- memory, where there are a million unknowns


def untouched_zeros(rows: int, columns: int) -> Matrix:
    """Zeros of which only those rows take memory that are ever touched, whatever was freed before."""
    return np.frombuffer(mmap.mmap(-1, max(8 * rows * columns, 1))).reshape(rows, columns)


def keep_freed_memory() -> None:
    """Let large blocks that are freed be used again.

    Otherwise every vector of a few megabytes is new memory, whose pages the system clears one by one: at a million
    unknowns that takes longer than the arithmetic. Where there is no glibc nothing is changed.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(ARENA_MAX, 1)  # long work runs in a thread, which must find what the others have freed
    mallopt(MMAP_THRESHOLD, KEEP)
    mallopt(TRIM_THRESHOLD, KEEP)
