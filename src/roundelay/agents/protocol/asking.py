"""Sealed laps on a ring: what a member answers to a question, and how the first member finds the next one.

The mathematics of `algorithms/sealed`, for one member. What a member adds follows from the public place and its own data; it is
never added twice with other numbers under one mask, since the mask is of the question's number and the answer is on disk, or
follows bit for bit from what is, before it leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.data.fitting import own_sums_of
from roundelay.agents.protocol.baton import Baton, BatonError, Phase, Reason, all_finite
from roundelay.agents.protocol.carried import Carried
from roundelay.agents.protocol.signing import End
from roundelay.algorithms.sealed.optimisers import Asking as Optimising, Found, Goal, NoMinimiserError
from roundelay.algorithms.sealed.questions import (
    HESSIANS,
    LOOKS,
    OWN,
    STEP,
    VALUES,
    Asked,
    Place,
    Question,
    answers,
    asked_in,
    kinds_of,
    numbers_asked,
    numbers_told,
    question_of,
    total_of,
)
from roundelay.algorithms.sealed.sealed_laps import SealedLaps
from roundelay.kernels import Matrix, Vector
from roundelay.kernels.random import Words
from roundelay.masks import others, seal_with
from roundelay.problems import OwnProblem
from roundelay.problems.row_problem import RowProblem

if TYPE_CHECKING:
    from roundelay.agents.protocol.holder import HandOver, Holder

# So many numbers of all totals together are told to everybody at the end, so that each can replay the optimiser.
MOST_TOLD = 2_000_000
# Two computers that run the optimiser on the same totals find points that differ by rounding, more where the sums are
# ill-conditioned; beyond this it was another question.
LIKENESS = 1e-5
# A new epoch begins this far from where the last one was, in parts of its size: no point is asked again with other members.
ASIDE = 1e-3
# Under a promise of ε no point is farther away, and no token at all: beyond, products of finite numbers are none.
FARTHEST = 1e100
# What arithmetic says of totals that no data have.
UNUSABLE: tuple[type[Exception], ...] = (ValueError, ArithmeticError)
WITHOUT_GRADIENT = (Asked.NOTHING, Asked.HESSIAN_TIMES_DIRECTION, *OWN)
NOTHING_ASKED = sha256().digest()
# What stands before the point in the baton that tells how a run ends.
ENDING = 1


class Answered(NamedTuple):
    """A question that this member has answered: its kind, what was told with it, and the total where it is known.

    Long vectors are not kept: then they are None.
    """

    number: int
    kind: int
    told: Vector | None
    total: Vector | None


@dataclass(eq=False)
class Questions:
    """What a member holds of the questions of this epoch; `changed` has those that are not on disk yet.

    `chain` is a digest of all that was told and asked up to the last question, and `fitted` one of what all questions but the looks came
    to, as this member was told in the end; `doubt` says what of that was not as agreed, and `slopes` how far each question was from the goal.
    """

    place: Place | None = None
    answered: list[Answered] = field(default_factory=list)
    changed: set[int] = field(default_factory=set)
    residual: float = float("nan")
    doubt: str = ""
    numbers: int = 0
    chain: bytes = b""
    fitted: bytes = b""
    slopes: tuple[float, ...] = ()

    def note(self, one: Answered, count: int = 0) -> None:
        """Keep it, and have it written; a new question adds so many numbers to those that will be told."""
        self.answered[one.number :] = [one]
        self.changed.add(one.number)
        self.numbers += count

    def take_up(self, answered: list[Answered], numbers: int) -> None:
        """What the journal has of this epoch: the questions, and how many numbers their totals have."""
        self.answered, self.numbers = answered, numbers
        if not answered:  # that of another epoch tells nothing
            self.chain, self.fitted, self.doubt = b"", b"", ""

    def written(self) -> None:
        """All is on disk: what is too long to be told in the end need not be in memory too."""
        self.changed.clear()
        if self.numbers > MOST_TOLD:
            self.answered = [one if asked_in(one.kind) in LOOKS else one._replace(total=None) for one in self.answered]


def question_sizes(plan: RingPlan) -> dict[int, int]:
    """How many numbers the baton of each kind of question has, of those that the plan's optimiser may ask; none for a token."""
    if plan.choice is None:
        return {}
    dim, words, own = plan.dim, plan.algorithm.grid.words, own_sums_of(plan.task)
    return {
        kind: numbers_told(kind, dim, own) + words * (numbers_asked(asked, dim, own) + 1)  # the last is the count
        for asked in plan.choice.optimiser.asks
        for kind in kinds_of(asked)
    }


def questions_of(
    answered: Iterable[Answered], plan: RingPlan, start: Vector | None
) -> Iterator[tuple[Question, Place]]:
    """These questions, and where they were answered, as far as they were kept; without a start the origin was the first."""
    place = Place(np.zeros(plan.dim) if start is None else start, np.zeros(0))
    for one in answered:
        if one.told is None or len(one.told) != numbers_told(one.kind, plan.dim, own_sums_of(plan.task)):
            return
        question = question_of(one.kind, one.told, plan.dim)
        place = question.moved(place)
        yield question, place


def places_of(answered: Iterable[Answered], plan: RingPlan, start: Vector | None) -> list[Vector]:
    """The points at which they were answered."""
    return [place.point for _, place in questions_of(answered, plan, start)]


def digest_of(told: Iterable[Vector]) -> bytes:
    """A digest of the sums that all were told, each behind its length."""
    pieces = (np.ascontiguousarray(total, "<f8").tobytes() for total in told)
    return sha256(b"".join(len(piece).to_bytes(8, "little") + piece for piece in pieces)).digest()


def digest_of_totals(fitted: bytes, looks: Sequence[Vector]) -> bytes:
    """A digest of what all questions came to: that of the fit's, and with looks one of it and of what was seen, one behind the other."""
    if not looks:
        return fitted
    return sha256(fitted + b"".join(np.ascontiguousarray(look, "<f8").tobytes() for look in looks)).digest()


def following(chain: bytes, kind: int, told: Vector) -> bytes:
    """The digest of all that was told and asked, with one more question.

    Masks are bound to it. A member that dies before its answer is on disk, and is asked another question of the same number
    then, answers that under another mask; and where two members were told different things, their masks do not cancel.
    """
    return sha256(chain + kind.to_bytes(8, "little") + np.ascontiguousarray(told, "<f8").tobytes()).digest()


class Asking:
    """A member of a ring of sealed laps, on behalf of its holder."""

    def __init__(self, holder: Holder) -> None:
        self.holder, self.plan, self.me = holder, holder.plan, holder.me
        self.algorithm: SealedLaps = holder.plan.algorithm
        assert holder.plan.choice is not None
        self.optimiser = holder.plan.choice.optimiser
        self.own_sums = own_sums_of(holder.plan.task)
        self.noise = holder.plan.noise
        self.held = Questions()
        # Totals of this epoch as they stand on disk, for a replay; places at which this member answered in other epochs.
        self.on_disk: Callable[[], Iterable[Vector]] = tuple
        self.elsewhere: list[Vector] = []
        self._optimising: Optimising | None = None
        self._carried: Carried | None = None
        self._partners = others(self.me, self.plan.agents)
        # One step of the grid, which each member adds behind its answer, without noise: where the masks cancel all are counted.
        self._one = np.eye(1, self.algorithm.grid.words, dtype=np.uint64)[0]

    # ------------------------------------------------------------ what all know

    def goal(self, start: Vector | None) -> Goal:
        """What is to be found, from where."""
        problem, plan = self.holder.problem, self.plan
        least, why = self.holder.local.no_minimiser(self.holder.held.told)
        if not plan.regulariser.is_zero:
            least = -np.inf  # which ends what would go on for ever
        return Goal(
            plan.dim,
            plan.agents,
            plan.regulariser,
            plan.stopping.tolerance or 0.0,
            problem.has_values,
            problem.has_hessians,
            start,
            least,
            why,
            plan.stopping.questions - (1 + len(LOOKS) if any(self.own_sums) else 0),  # so that the looks are asked too
            plan.noise,
        )

    def check_answers(self, problem: OwnProblem) -> None:
        """Refuse a function that can't answer what all sites are asked for."""
        for kinds, has, what in (
            (VALUES, problem.has_values, "value(x)"),
            (HESSIANS, problem.has_hessians, "hessian(x)"),
        ):
            if not has and any(asked in kinds for asked in self.optimiser.asks):
                raise ValueError(
                    f"This site's objective has no {what}, for which all sites are asked: give it one, or plan the ring with a "
                    "token method such as PIADMM1."
                )

    def start(self) -> Vector | None:
        """Where all stand before the first question: the model of an earlier run, what follows from the sums, or the origin."""
        holder, told = self.holder, self.holder.held.told
        if self.plan.warm and holder.warm is not None:
            return holder.warm(told)
        return holder.local.start(told) if len(told) == len(holder.local.sums) and not self.refusal else None

    @property
    def refusal(self) -> str:
        """Why nothing is asked, as it follows from the sums before; empty where there is something to be fitted."""
        return self.holder.local.refusal(self.holder.held.told)

    @property
    def why_none(self) -> str:
        """Why there is no best model."""
        return self.refusal or self.goal(None).why_none

    def asked(self, kind: int) -> int:
        """How many numbers the answer to a kind of question has."""
        return numbers_asked(asked_in(kind), self.plan.dim, self.own_sums)

    def told_with(self, kind: int) -> int:
        """How many numbers are told with a kind of question."""
        return numbers_told(kind, self.plan.dim, self.own_sums)

    @property
    def place(self) -> Place:
        """Where all stand now."""
        if self.held.place is None:
            start = self.start()
            self.held.place = Place(np.zeros(self.plan.dim) if start is None else start, np.zeros(0))
        return self.held.place

    @property
    def ending(self) -> int:
        """How many numbers a frozen baton has: the residual, the point, and the totals, those of the looks alone where all are too many."""
        return ENDING + self.plan.dim + sum(self.asked(one.kind) for one in self._told_in_the_end)

    @property
    def _told_in_the_end(self) -> list[Answered]:
        """The questions whose totals everybody is told at the end."""
        if self.held.numbers <= MOST_TOLD:
            return self.held.answered
        return [one for one in self.held.answered if asked_in(one.kind) in LOOKS]

    # ------------------------------------------------------------ the first member

    def first(self) -> HandOver:
        """The first question of the epoch."""
        start = self._start_of_epoch()
        self._optimising = self.optimiser.questions(self.goal(start))
        question = next(self._optimising)
        return self._ask(question if self.plan.epoch == 0 else replace(question, point=start))

    def refused(self) -> HandOver:
        """Nothing can be fitted to the rows of all sites, as everybody has been told: that is the end."""
        return self.holder.freeze(Reason.NO_MINIMUM, self.holder.first_hop, self._at_the_end([]))

    def _start_of_epoch(self) -> Vector | None:
        """Where an epoch begins: beside the last point, since what was asked there was asked with other members."""
        if self.plan.epoch == 0:
            return self.start()
        point = self.place.point
        draws = np.random.Generator(np.random.Philox(key=[self.holder.seed, self.plan.epoch]))
        return point + ASIDE * max(float(np.abs(point).max()), 1.0) * draws.standard_normal(len(point))

    def _ask(self, question: Question) -> HandOver:
        number, point = len(self.held.answered), question.point
        # Where the best model is all zeros, say, it is so with other members too.
        while point is not None and self._is_elsewhere(point):
            point = np.array(point)
            point[0] = np.nextafter(point[0], np.inf)
            question = replace(question, point=point)
        told = question.told
        numbers = np.concatenate([told.view(np.uint64), self._words(number, question)])
        return self.holder.start_lap(Phase.ASK, question.kind, self.holder.first_hop + number, numbers)

    def _closed(self, baton: Baton) -> HandOver:
        """The lap is closed: the masks have cancelled, and the optimiser is told the total."""
        held, dim = self.held, self.plan.dim
        last = held.answered[-1]
        summed, count = np.split(baton.numbers[self.told_with(last.kind) :], [-self.algorithm.grid.words])
        if not np.array_equal(count, self.plan.agents * self._one):
            raise BatonError(
                f"The masks of question {last.number} did not cancel: not all members were told the same, or one has another ring file or "
                "another key."
            )
        total = self._decoded(last, summed)
        optimising = self._replayed()
        held.note(last._replace(total=total))
        if asked_in(last.kind) not in WITHOUT_GRADIENT:
            gradient = total_of(asked_in(last.kind), total, dim).gradient
            held.residual = self.goal(None).residual(self.place.point, gradient)
        if baton.content or self.holder.wants_to_stop:
            return self._end(Reason.ASKED, baton.content | self._wish())
        try:
            if len(held.answered) >= self.plan.stopping.questions:
                return self._end(Reason.HOPS)
            return self._ask(optimising.send(total_of(asked_in(last.kind), total, dim)))
        except StopIteration as end:
            found: Found = end.value
            held.residual = found.residual
            return self._end(Reason.CONTENT if found.converged else Reason.HOPS)
        except NoMinimiserError:
            return self._end(Reason.NO_MINIMUM)
        except UNUSABLE as error:
            raise BatonError(
                f"With the sums of question {last.number + 1} the optimiser can't go on ({error}): some site has answered what no data can "
                "have. Ask all sites for their part of it."
            ) from None

    def _decoded(self, one: Answered, words: Words) -> Vector:
        """The numbers of a total: where noise was added, in steps of it."""
        if self.noise is not None and asked_in(one.kind) != Asked.NOTHING:
            return self.noise.decoded(one.number, words)
        return self.algorithm.grid.decode(words)

    def _replayed(self) -> Optimising:
        """The optimiser, as it waits for the total of the last question: after a restart it is run again."""
        if self._optimising is None:
            first = self.held.answered[0]
            start = self.start() if self.plan.epoch == 0 else first.told
            optimising = self.optimiser.questions(self.goal(start))
            next(optimising)
            for one, total in zip(self.held.answered, self.on_disk(), strict=False):
                optimising.send(total_of(asked_in(one.kind), total, self.plan.dim))
            self._optimising = optimising
        return self._optimising

    def _end(self, reason: Reason, wished: int = 0) -> HandOver:
        on_disk = dict(enumerate(self.on_disk()))
        told = [on_disk[one.number] if one.total is None else one.total for one in self._told_in_the_end]
        return self.holder.freeze(
            reason, self.holder.first_hop + len(self.held.answered), self._at_the_end(told), wished
        )

    def _at_the_end(self, told: list[Vector]) -> Vector:
        residual = self.held.residual if self.held.answered else 0.0
        return np.concatenate([[residual], self.place.point, *told])

    # ------------------------------------------------------------ every member

    def act(self, baton: Baton) -> HandOver:
        """What this member makes of a question."""
        lap = self.holder.lap_of(Phase.ASK, baton.origin, baton.hop)
        if baton.step == len(lap.order):
            return self._closed(baton)
        return self.holder.pass_on(baton, lap, self._answer)

    def _answer(self, baton: Baton) -> Baton:
        told = self.told_with(baton.purpose)
        question = question_of(baton.purpose, baton.numbers[:told].view(np.float64), self.plan.dim)
        words = self._words(baton.hop - self.holder.first_hop, question)
        added = self.algorithm.grid.add(baton.numbers[told:], words)
        return baton._replace(
            numbers=np.concatenate([baton.numbers[:told], added]), content=baton.content | self._wish()
        )

    def _wish(self) -> int:
        """This member's bit, where its operator wants to stop."""
        self.holder.held.wished |= self.holder.wants_to_stop
        return self.holder.held.wished << self.me

    def _words(self, number: int, question: Question) -> Words:
        """This member's answer, under its mask for this question."""
        holder, grid = self.holder, self.algorithm.grid
        holder.note()
        place = question.moved(self.place)
        self._check_carriers(number, question, place)
        noisy = self.noise is not None and question.asked != Asked.NOTHING
        words = self._with_noise(number, place) if noisy else self._plain(number, question, place)
        count = len(words) // grid.words
        kind, told = question.kind, question.told
        self.held.chain = following(self.held.chain or self.beginning, kind, told)
        self.held.place = Place(np.array(place.point), np.array(place.direction))
        kept = np.array(told) if len(told) <= MOST_TOLD // 100 or question.asked in LOOKS else None
        self.held.note(Answered(number, kind, kept, None), count)
        holder.held.hop = holder.first_hop + number + 1
        turn = self.turn_of(number)
        mask = seal_with(holder.secrets, self.me, self._partners, count + 1, turn, grid, self.held.chain)
        return np.concatenate([grid.add(words, mask[: len(words)]), grid.add(self._one, mask[len(words) :])])

    def _plain(self, number: int, question: Question, place: Place) -> Words:
        """The answer as it is."""
        holder, grid = self.holder, self.algorithm.grid
        own = question.asked in OWN
        answer = self._own_sum(question) if own else answers(holder.problem, question.asked, place)[0]
        if not all_finite(answer):
            raise holder.unanswerable(number, "has a number that is not finite")
        try:
            return grid.encode(answer, self.plan.agents)
        except ValueError:  # it says how large the number is, on the narrow grid
            raise holder.unanswerable(number, "has a number that is too large to be added up exactly") from None

    def _check_carriers(self, number: int, question: Question, place: Place) -> None:
        """Answer nothing that would be about few rows of this site. The agent stops: each refusal more would tell where they are."""
        holder, least = self.holder, self.holder.least_carriers
        if (least <= 1 and holder.elsewhere is None) or self.noise is not None:
            return
        if self._carried is None:  # also after a restart
            self._carried = Carried(
                holder.local, holder.held.told, self.plan.dim, least, self.optimiser.asks, holder.elsewhere
            )
            for one, there in questions_of(self.held.answered[:number], self.plan, self.start()):
                self._carried.note(one, there)
        if not self._carried.admits(question, place):
            raise holder.too_few(number)

    def _own_sum(self, question: Question) -> Vector:
        """What this member sees where the fit stands, or what its rows outside each fold say."""
        holder = self.holder
        told, point, beside = holder.held.told, self.place.point, question.beside
        if beside is None:
            return holder.local.look(told, (), point)
        if question.asked == Asked.FOLDS:
            return holder.local.folds(told, beside)
        try:
            holder.local.check_seen(told, beside, point, holder.least_carriers)
        except ValueError as error:
            raise holder.deceived("What is told of the first look", error) from None
        return holder.local.look(told, (beside,), point)

    def _with_noise(self, number: int, place: Place) -> Words:
        """The clipped records and this member's share of the noise, which is the same again whenever this question is."""
        problem = self.holder.problem
        assert self.noise is not None and isinstance(problem, RowProblem)
        return self.noise.words(problem, 0, number, place.point, self.holder.secrets, self.me)

    def turn_of(self, number: int) -> int:
        """The turn of the masks of a question: after those of the sums before the fit."""
        return 1 + len(self.holder.local.sums) + number

    @property
    def beginning(self) -> bytes:
        """A digest of the sums that were told before the first question: an answer follows from them too."""
        return digest_of(self.holder.held.told)

    def chains(self) -> Iterator[bytes]:
        """What the mask of each question is about, as far as what was told is kept."""
        chain = self.beginning
        for one in self.held.answered:
            if one.told is None:
                return
            chain = following(chain, one.kind, one.told)
            yield chain

    def check(self, baton: Baton) -> None:
        """Refuse a question that no honest first member asks now."""
        order, _ = self.holder.lap_of(baton.phase, baton.origin, baton.hop)
        number, known = baton.hop - self.holder.first_hop, len(self.held.answered)
        if baton.origin != order[0] or not 1 <= baton.step <= len(order) - (baton.phase == Phase.DONE):
            raise BatonError("The baton's lap did not begin at the first member, or is longer than a lap.")
        if order[baton.step % len(order)] != self.me:
            raise BatonError(f"The baton is at step {baton.step} of its lap, which is not this member's.")
        if baton.phase in (Phase.FROZEN, Phase.DONE):
            self._check_end(baton, number)
            return
        adds = self.holder.adds(baton)
        if number != (known if adds else known - 1) or number < 0:
            raise BatonError(
                f"The baton asks question {number}, but this member has answered {known}: a mask is used once, and questions come "
                "in order."
            )
        if not adds and (baton.purpose != self.held.answered[-1].kind or self.holder.held.asked > baton.hop):
            raise BatonError(
                f"The lap of question {number} comes back as another one, or once more after it was closed."
            )
        if number >= self.plan.stopping.questions:
            raise BatonError(f"This is question {number}, but the ring file allows {self.plan.stopping.questions}.")
        if self.noise is not None and (asked_in(baton.purpose) == Asked.NOTHING) != (number >= len(self.noise.laps)):
            raise BatonError(
                f"Question {number} is not one of the {len(self.noise.laps)} laps with noise that were planned: more would cost more than ε."
            )
        told = baton.numbers[: self.told_with(baton.purpose)].view(np.float64)
        if not all_finite(told):
            raise BatonError("The baton tells a number that is not finite.")
        if adds and any(self.own_sums):
            self._check_own_sum(asked_in(baton.purpose))
        if self.noise is not None and np.abs(told).max(initial=0.0) > FARTHEST:
            raise BatonError("The baton tells a point beyond all measure, where no record's answer could be clipped.")
        if adds:
            self._check_new(baton, told)

    def _check_own_sum(self, asked: Asked) -> None:
        """Folds come before the fit. The looks are at the point where it stands, one after the other, each once, and nothing after them."""
        before = asked_in(self.held.answered[-1].kind) if self.held.answered else Asked.NOTHING
        if asked == Asked.FOLDS and self.held.answered and before != Asked.FOLDS:
            raise BatonError(
                "The baton asks for folds, but the strength of the penalty was chosen before: the fit has begun."
            )
        wanted = {Asked.FIRST_LOOK: Asked.SECOND_LOOK}.get(before)
        if before == Asked.SECOND_LOOK or (wanted is not None and asked != wanted):
            raise BatonError("The fit is done, and has been looked at: nothing else is asked at any other point.")
        if (asked == Asked.SECOND_LOOK and wanted is None) or (
            asked == Asked.FIRST_LOOK and before in WITHOUT_GRADIENT
        ):
            raise BatonError(
                "The baton asks for a look, but the fit does not stand anywhere yet, or was not looked at before."
            )

    def _check_new(self, baton: Baton, told: Vector) -> None:
        """Refuse a place at which this member has answered with other members."""
        if not (self.plan.epoch or self.elsewhere or baton.purpose & STEP):
            return  # there are no others yet
        question = question_of(baton.purpose, told, self.plan.dim)
        if question.step is not None and len(self.place.direction) != self.plan.dim:
            raise BatonError("The baton tells a step, but no direction has been told.")
        if self.plan.epoch and baton.hop == self.holder.first_hop and question.point is None:
            raise BatonError("The first question of a new epoch does not tell its point.")
        point = question.moved(self.place).point
        if question.asked != Asked.NOTHING and self._is_elsewhere(point):
            raise BatonError(
                "The baton asks at a point at which this member has answered in another epoch, with other members: the difference "
                "would be theirs alone."
            )

    def _is_elsewhere(self, point: Vector) -> bool:
        """Whether this member has answered there with other members.

        To the last digit only: how close points of two epochs may come is for the ledger, since functions are smooth.
        """
        return any(np.array_equal(point, other) for other in self.elsewhere)

    # ------------------------------------------------------------ the end

    def _check_end(self, baton: Baton, number: int) -> None:
        """The end must be where this member itself has answered last."""
        point = baton.numbers[ENDING : ENDING + self.plan.dim]
        if number != len(self.held.answered) or not np.array_equal(point, self.place.point):
            raise BatonError(
                "The baton ends the run at another point than the one at which this member was asked last: it would not be what the "
                "sites have found."
            )
        if not (number or self.refusal):
            raise BatonError(
                "The baton ends the run before anything was asked, though there is something to be fitted."
            )
        if baton.content >> self.me & 1 and not self.holder.held.wished:
            raise BatonError(
                f"The baton says that {self.plan.members[self.me].name} asked the ring to stop, which it did not: somebody has ended it in "
                "its name."
            )

    def end_in(self, baton: Baton) -> End:
        """The end that a baton tells: with its totals where it is frozen, later with those that this member was told then."""
        numbers = np.array(baton.numbers[ENDING : ENDING + self.plan.dim])
        totals = self.totals
        if baton.phase == Phase.FROZEN:
            totals = digest_of_totals(self._digest_of_fit(baton), [one for one in [self._looks_in(baton)] if len(one)])
        return self.holder.end_at(baton.hop, baton.purpose, self._ended_by(baton), numbers, self.held.chain, totals)

    def _digest_of_fit(self, baton: Baton) -> bytes:
        end = len(baton.numbers) - len(self._looks_in(baton))
        return sha256(np.ascontiguousarray(baton.numbers[ENDING + self.plan.dim : end], "<f8").tobytes()).digest()

    def _looks_in(self, baton: Baton) -> Vector:
        """The totals of the looks, which come last."""
        count = sum(self.asked(one.kind) for one in self.held.answered if asked_in(one.kind) in LOOKS)
        return baton.numbers[len(baton.numbers) - count :]

    @property
    def seen(self) -> tuple[Vector, ...]:
        """What all rows came to where the fit stands, as far as it was looked at and this member was told."""
        looks = (one.total for one in self.held.answered if asked_in(one.kind) in LOOKS)
        return tuple(total for total in looks if total is not None)

    @property
    def totals(self) -> bytes:
        """A digest of what all questions came to."""
        return digest_of_totals(self.held.fitted if self.held.answered else NOTHING_ASKED, self.seen)

    def _ended_by(self, baton: Baton) -> int:
        """Who wished to stop, or the first member, who ends it."""
        wishes = [member for member in range(self.plan.agents) if baton.content >> member & 1]
        return wishes[0] if wishes else baton.origin

    def ended(self, baton: Baton) -> Baton:
        """The run is over: the point is where all stand."""
        holder = self.holder
        holder.held.estimate = holder.held.final = np.array(baton.numbers[ENDING : ENDING + self.plan.dim])
        holder.held.reason, holder.held.hop, holder.held.ended_by = (
            Reason(baton.purpose),
            baton.hop,
            self._ended_by(baton),
        )
        return baton

    def take_totals(self, baton: Baton) -> None:
        """Before this member signs the end: whoever was told the totals replays what was asked."""
        held = self.held
        held.fitted = self._digest_of_fit(baton)
        totals = self._told_totals(baton)
        for one, total in zip(tuple(self._told_in_the_end), totals, strict=True):
            # What was seen or chosen, and what noise did to the model, follow from them, also after a restart.
            if self.noise is not None or self.own_sums.folds or asked_in(one.kind) in LOOKS:
                held.note(one._replace(total=np.array(total)))
        if len(totals) < len(held.answered):
            totals = []
        held.residual = self._residual_of(totals, float(baton.numbers[0]))
        held.slopes = self._slopes_of(totals)
        if not held.answered:  # it ends since nothing can be fitted, as this member has found too
            held.doubt = ""
            return
        held.doubt = (
            self.replayed_doubt(totals, Reason(baton.purpose))
            if totals
            else "The sums are too long to be handed round, and were not replayed."
        )

    def _residual_of(self, totals: list[Vector], told: float) -> float:
        """By the last total that has a gradient, rather than as it is told; where a penalty is chosen it follows from all of them."""
        if self.own_sums.folds and totals:
            found = self.found()
            return found.residual if found is not None else told
        for one, total in zip(reversed(self.held.answered), reversed(totals), strict=False):
            if asked_in(one.kind) not in WITHOUT_GRADIENT:
                gradient = total_of(asked_in(one.kind), total, self.plan.dim).gradient
                return self.goal(None).residual(self.place.point, gradient)
        return told

    def _slopes_of(self, totals: list[Vector]) -> tuple[float, ...]:
        """How far each question with a gradient was from the goal, for whoever wants to see the fit converge."""
        if self.own_sums.folds or not totals:  # those of folds are of other functions
            return ()
        found = []
        try:
            goal, points = self.goal(self.start()), places_of(self.held.answered, self.plan, self.start())
            for one, total, point in zip(self.held.answered, totals, points, strict=False):
                if asked_in(one.kind) not in WITHOUT_GRADIENT:
                    found.append(goal.residual(point, total_of(asked_in(one.kind), total, self.plan.dim).gradient))
        except UNUSABLE:  # the doubt says that the totals were none
            return ()
        return tuple(found) if np.isfinite(found).all() else ()

    def covariance(self) -> Matrix | None:
        """What noise has given to the unknowns; None where the optimiser did not come to its end."""
        found = self.found()
        covariance = None if found is None else found.covariance
        return covariance if covariance is not None and np.isfinite(covariance).all() else None

    def found(self) -> Found | None:
        """Where the agreed optimiser ends on the totals; None where it did not come to its end."""
        optimising = self.optimiser.questions(self.goal(self.start()))
        try:
            next(optimising)
            for one in self.held.answered:
                if one.total is None:
                    return None
                optimising.send(total_of(asked_in(one.kind), one.total, self.plan.dim))
        except StopIteration as end:
            found: Found = end.value
            return found
        except UNUSABLE:  # the doubt says that the totals were none
            return None
        finally:
            optimising.close()
        return None

    def _told_totals(self, baton: Baton) -> list[Vector]:
        """The totals in a frozen baton."""
        counts = [self.asked(one.kind) for one in self._told_in_the_end]
        return np.split(baton.numbers[ENDING + self.plan.dim :], np.cumsum(counts)[:-1]) if counts else []

    def replayed_doubt(self, totals: list[Vector], reason: Reason) -> str:
        """Replay the agreed optimiser on the totals: the first question that it would not have asked, or another end; empty if none."""
        answered, dim = self.held.answered, self.plan.dim
        start = self.start() if self.plan.epoch == 0 else answered[0].told
        optimising = self.optimiser.questions(self.goal(start))
        asker = self.plan.members[self.plan.order[0]].name
        try:
            question = next(optimising)
            for one, total in zip(answered, totals, strict=True):
                told = question.told if self.plan.epoch == 0 or one.number else one.told
                if one.told is None or told is None:
                    return "A question was too long to be kept, and was not replayed."
                same = np.array_equal if question.asked in LOOKS else _alike
                if asked_in(one.kind) != question.asked or not same(told, one.told):
                    return (
                        f"Question {one.number + 1} is not one that the agreed optimiser would have asked: {asker}, who asks, may have "
                        "wanted to know the sum of all sites' functions elsewhere."
                    )
                if one.number + 1 < len(answered):
                    question = optimising.send(total_of(question.asked, total, dim))
            if reason != self._reason_of(optimising, answered[-1], totals[-1]) and reason != Reason.ASKED:
                return (
                    f"The agreed optimiser would not have ended here, or not for this reason: {asker}, who asks, did. What is said of why "
                    "the ring stopped is not so."
                )
        except (StopIteration, NoMinimiserError):
            return f"More was asked than the agreed optimiser needs: {asker}, who asks, went on after the end."
        except UNUSABLE as error:
            return f"The sums that {asker} told can't be those that were formed ({error})."
        finally:
            optimising.close()
        return ""

    def _reason_of(self, optimising: Optimising, last: Answered, total: Vector) -> Reason | None:
        """Why the optimiser ends, told the last total; None where it goes on."""
        if len(self.held.answered) >= self.plan.stopping.questions:
            return Reason.HOPS
        try:
            optimising.send(total_of(asked_in(last.kind), total, self.plan.dim))
        except StopIteration as end:
            found: Found = end.value
            return Reason.CONTENT if found.converged else Reason.HOPS
        except NoMinimiserError:
            return Reason.NO_MINIMUM
        return None


def _alike(one: Vector, other: Vector) -> bool:
    """Whether two vectors are the same but for rounding."""
    if len(one) != len(other):
        return False
    return bool(np.abs(one - other).max(initial=0.0) <= LIKENESS * (1e-9 + np.abs(other).max(initial=0.0)))
