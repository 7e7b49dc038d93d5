"""What leaves a site in a run, counted from the plan: what its data go into, and every message that crosses a link.

Nothing here is typed that could be counted: how many numbers a sum has is what the sum itself says, how large a message is what whoever
receives it insists on. So `ring accept`, the agent's verdict and the page for a privacy officer all tell the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from roundelay.agents.agreement.plan import CUSTOM, FIT_TELLS, RingPlan
from roundelay.agents.data.fitting import own_sums_of, sums_of
from roundelay.agents.protocol.asking import ENDING, MOST_TOLD, question_sizes
from roundelay.agents.protocol.baton import GATHERED, TOLD, Phase, Reason
from roundelay.agents.protocol.beginning import opens_with_a_sum
from roundelay.agents.protocol.holder import layout_of
from roundelay.agents.protocol.receipts import RECEIPT_BYTES
from roundelay.agents.protocol.station import GREETING_BYTES
from roundelay.agents.protocol.wire import SENTENCE, Kind
from roundelay.algorithms.sealed.questions import (
    GRADIENTS,
    HESSIANS,
    LOOKS,
    VALUES,
    Asked,
    asked_in,
    kinds_of,
    numbers_asked,
)
from roundelay.algorithms.token_method import has_shares
from roundelay.regression.study import Study
from roundelay.shown.numbers import plural

# How numbers of a site's own data stand in a message: under masks; under masks, with noise that stays in the sum; or open to whoever is next.
Cover = Literal["masks", "masks and noise", "none"]
Stage = Literal["before the fit", "the fit", "after the fit"]
WITH_A_VALUE = {Asked.GRADIENT: Asked.VALUE_AND_GRADIENT, Asked.GRADIENT_AND_HESSIAN: Asked.VALUE_GRADIENT_AND_HESSIAN}


@dataclass(frozen=True)
class Range:
    """From so many to so many; where nothing bounds them `most` is None."""

    least: int
    most: int | None

    def __contains__(self, number: int) -> bool:
        return self.least <= number and (self.most is None or number <= self.most)

    def __str__(self) -> str:
        """As it stands in a table."""
        if self.most is None:
            return "as needed" if not self.least else f"{self.least:,} or more"
        if self.least == self.most:
            return f"{self.most:,}"
        return f"up to {self.most:,}" if self.least <= 1 else f"{self.least:,} to {self.most:,}"


@dataclass(frozen=True)
class Told:
    """Something that a site's data go into: what it tells, of how many numbers it is each time, how often, and under which cover it leaves.

    Under masks the total is known `to` somebody, and no part of it; without them it is seen by them as it is.
    """

    name: str
    tells: str
    stage: Stage
    numbers: int
    times: Range
    cover: Cover
    to: str = "every member"

    @property
    def counted(self) -> str:
        """How many numbers, and how often, in words."""
        often = "" if self.times == Range(1, 1) else f" {_times(self.times)}"
        return f"{plural(self.numbers, 'number')}{often}"


def _times(times: Range) -> str:
    if times.most is None:
        return "as often as needed"
    return f"{times.most:,} times" if times.least == times.most else f"up to {times.most:,} times"


@dataclass(frozen=True)
class Message:
    """A kind of frame that leaves a site: how many numbers of 8 bytes are in one, how many bytes beside them, and how often one leaves."""

    kind: Kind
    phase: Phase | None
    purposes: tuple[int, ...]
    says: str
    words: Range
    beside: Range
    times: Range


def told_of(plan: RingPlan) -> tuple[Told, ...]:
    """All that a site's data go into, in order."""
    return tuple(_sums(plan) if plan.choice is not None else _token(plan))


def numbers_of(told: tuple[Told, ...]) -> int:
    """How many different numbers of a site go into them, those of a question once."""
    return sum(one.numbers for one in told)


# ---------------------------------------------------------------- what is told


def _before(plan: RingPlan) -> Iterator[Told]:
    """The sums before the fit. With a token they are those of the first epoch, and are not formed again."""
    if plan.choice is None and plan.epoch:
        return
    for name, tells, numbers in named_sums(plan):
        yield Told(name, tells, "before the fit", numbers, Range(1, 1), "masks")


def named_sums(plan: RingPlan) -> tuple[tuple[str, str, int], ...]:
    """The sums before the fit: their names, what they tell, and how many numbers they have."""
    task, counts = plan.task, sums_of(plan.task)
    if task.regression is not None:
        sums = Study(task.regression).sums[: len(counts)]
        return tuple((one.name, one.tells, count) for one, count in zip(sums, counts, strict=True))
    names = (
        ("rows and sums", "how many rows they have together, and the sum of each column"),
        ("spreads", "the spread of each column"),
    )
    return tuple((name, tells, count) for (name, tells), count in zip(names[: len(counts)], counts, strict=True))


def _sums(plan: RingPlan) -> Iterator[Told]:
    """Of sealed laps."""
    yield from _before(plan)
    own, noise = own_sums_of(plan.task), plan.noise
    for asked in asked_of(plan):
        if asked in LOOKS or asked == Asked.NOTHING:
            continue
        numbers = numbers_asked(asked, plan.dim, own)
        cover: Cover = "masks" if noise is None else "masks and noise"
        yield Told(_name_of(asked), _tells(plan, asked), "the fit", numbers, _times_of(plan, asked), cover)
    if plan.task.regression is not None:
        after = Study(plan.task.regression).sums[-len(LOOKS) :]
        for one, asked in zip(after, LOOKS, strict=True):
            yield Told(one.name, one.tells, "after the fit", numbers_asked(asked, plan.dim, own), Range(1, 1), "masks")


def asked_of(plan: RingPlan) -> tuple[Asked, ...]:
    """What the agreed optimiser asks for: of two ways of asking, one with the value, that one, since every site of a ring has it."""
    assert plan.choice is not None
    asks = plan.choice.optimiser.asks
    first = [asked for asked in asks if asked == Asked.FOLDS]
    return (*first, *(asked for asked in asks if asked not in first and WITH_A_VALUE.get(asked) not in asks))


def also_answered(plan: RingPlan) -> tuple[Asked, ...]:
    """What an agent would answer besides, though the agreed optimiser does not ask for it."""
    return tuple(sorted({asked_in(kind) for kind in question_sizes(plan)} - {*asked_of(plan)}))


def _times_of(plan: RingPlan, asked: Asked) -> Range:
    """How often something may be asked for."""
    assert plan.choice is not None
    if plan.noise is not None:
        laps = 1 if asked == Asked.NOTHING else len(plan.noise.laps)
        return Range(laps, laps)
    if asked in LOOKS:
        return Range(1, 1)
    return Range(int(asked == asked_of(plan)[0]), plan.stopping.questions)


def _name_of(asked: Asked) -> str:
    if asked == Asked.FOLDS:
        return "folds"
    if asked == Asked.HESSIAN_TIMES_DIRECTION:
        return "curvature in a direction"
    parts = [word for word, kinds in (("fit", VALUES), ("slope", GRADIENTS), ("curvature", HESSIANS)) if asked in kinds]
    return ", ".join(parts)


def _tells(plan: RingPlan, asked: Asked) -> str:
    """What an answer tells."""
    task = plan.task
    if asked == Asked.FOLDS:
        return f"{FIT_TELLS}; the same of the rows outside each of {own_folds(plan)} folds, and how well it fits those inside"
    if asked == Asked.HESSIAN_TIMES_DIRECTION:
        return "for each model that is tried, how the slope there changes in one direction"
    well = "how well the sites' objectives do" if task.kind == CUSTOM else "how well it fits all rows"
    parts = [well, "how that changes with it"] if asked in VALUES else ["how the fit changes with it"]
    if asked in HESSIANS:
        squares = task.is_quadratic and task.kind != CUSTOM
        parts.append("the squares and products of all columns" if squares else "how the slope itself changes")
    listed = f"{', '.join(parts[:-1])}, and {parts[-1]}" if len(parts) > 1 else parts[0]
    return f"for each model that is tried, {listed}"


def own_folds(plan: RingPlan) -> int:
    """How many folds the rows are dealt into."""
    return 0 if plan.task.regression is None else plan.task.regression.folds


def _token(plan: RingPlan) -> Iterator[Told]:
    """Of a token."""
    yield from _before(plan)
    if opens_with_a_sum(plan.method, plan.epoch, plan.warm):
        yield Told(
            "start", "where the sites start together: the sum of what the slope of each is at the start", "before the fit",
            plan.dim, Range(1, 1), "masks",
        )  # fmt: skip
    visits = _share_of_hops(plan, None)
    yield Told(
        "token", "the model as far as it has come, before and after this site has changed it by its data", "the fit",
        plan.dim * plan.vectors, Range(1, visits), "none", "your neighbours",
    )  # fmt: skip
    if has_shares(plan.method):
        yield Told(
            "balance", "whether all that the sites have added is in the token: the sum of what each has in it", "after the fit",
            plan.dim, Range(1, plan.stopping.hops), "masks", "the site that asks all others to sign",
        )  # fmt: skip


def _share_of_hops(plan: RingPlan, me: int | None) -> int:
    """How many of all hops are at most a site's own: on a lap every place has its turn, on a walk one site may have them all."""
    if not plan.on_cycle:
        return plan.stopping.hops
    return -(-plan.stopping.hops // len(plan.order)) * places(plan, me)


def places(plan: RingPlan, me: int | None) -> int:
    """How often a lap comes by a site; where none is meant, by the one that it comes by most often."""
    return max(plan.order.count(one) for one in ((me,) if me is not None else range(plan.agents)))


# ---------------------------------------------------------------- every message


def messages_of(plan: RingPlan, me: int | None = None) -> tuple[Message, ...]:
    """Every kind of frame that leaves a site, or the site that sends most of them."""
    return (*_batons(plan, places(plan, me), me), *_others())


def _batons(plan: RingPlan, turns: int, me: int | None) -> Iterator[Message]:
    layout, once = layout_of(plan, sums_of(plan.task)), Range(turns, turns)

    def baton(phase: Phase, purposes: tuple[int, ...], says: str, words: Range, times: Range) -> Message:
        beside = layout.beside(phase)
        return Message(Kind.BATON, phase, purposes, says, words, Range(beside, beside), times)

    def exactly(phase: Phase, purpose: int, says: str, times: Range) -> Message:
        numbers = layout.numbers(phase, purpose)
        assert numbers is not None
        return baton(phase, (purpose,), says, Range(numbers, numbers), times)

    yield exactly(Phase.KEYS, GATHERED, "keys for masks, signed: this site puts in its own", once)
    yield exactly(Phase.KEYS, TOLD, "the keys for masks of all sites", once)
    for number, (name, _, _) in enumerate(named_sums(plan)):
        if plan.choice is not None or not plan.epoch:
            yield exactly(Phase.SUM, number, f"{name}: this site's part under masks, on those before it", once)
        yield exactly(Phase.TELL, number, f"{name}: the total of all sites, signed", once)
    if plan.choice is None:
        yield from _of_a_token(plan, turns, me, exactly)
        return
    sizes = question_sizes(plan)
    for asked in asked_of(plan):
        kinds = [kind for kind in kinds_of(asked) if kind in sizes]
        words = [sizes[kind] for kind in kinds]
        times, what = _times_of(plan, asked), _name_of(asked) or "where all are to stand"
        if asked in LOOKS:
            what = Study(plan.task.regression).sums[-len(LOOKS) + LOOKS.index(asked)].name  # type: ignore[arg-type]
        says = f"a question, and {what}: this site's part under masks, on those before it"
        if asked == Asked.NOTHING:
            says = f"a question: {what}; nothing of this site"
        yield baton(
            Phase.ASK, tuple(kinds), says, Range(min(words), max(words)),
            Range(turns * times.least, turns * (times.most or 0)),
        )  # fmt: skip
    most = ENDING + plan.dim + _told_in_the_end(plan)
    ends = tuple(Reason)
    yield baton(
        Phase.FROZEN, ends, "the end, to be signed: the model, and what all questions came to", Range(ENDING + plan.dim, most), once,
    )  # fmt: skip
    done = layout.done
    yield baton(
        Phase.DONE, ends, "the end, signed by all: the model", Range(done, done), Range(0, turns)
    )  # the last one sends none


def _told_in_the_end(plan: RingPlan) -> int:
    """How many numbers all questions come to at most, as far as all are told them."""
    own = own_sums_of(plan.task)
    looks = own.first + own.second
    if plan.noise is not None:
        return len(plan.noise.laps) * plan.noise.numbers
    each = max(numbers_asked(asked, plan.dim, own) for asked in asked_of(plan) if asked not in LOOKS)
    return min(plan.stopping.questions * each + looks, max(MOST_TOLD, looks))


def _of_a_token(plan: RingPlan, turns: int, me: int | None, exactly: object) -> Iterator[Message]:
    assert callable(exactly)
    hops = plan.stopping.hops
    if opens_with_a_sum(plan.method, plan.epoch, plan.warm):
        yield exactly(
            Phase.SUM, len(sums_of(plan.task)), "start: this site's share under masks, on those before it", Range(turns, turns)
        )  # fmt: skip
    yield exactly(Phase.ITERATE, 0, "the token, as this site has changed it", Range(1, _share_of_hops(plan, me)))
    frozen = exactly(
        Phase.FROZEN, 0, "the token as it stands, to be signed; and under masks what each site has in it", Range(turns, turns * hops)
    )  # fmt: skip
    done = exactly(Phase.DONE, 0, "the end, signed by all: the model", Range(0, turns))
    ends = tuple(Reason)
    yield from (
        Message(one.kind, one.phase, ends, one.says, one.words, one.beside, one.times) for one in (frozen, done)
    )


def _others() -> Iterator[Message]:
    """What else crosses a link."""
    nothing, often = Range(0, 0), Range(0, None)

    def frame(kind: Kind, says: str, beside: Range = nothing) -> Message:
        return Message(kind, None, (), says, nothing, beside, often)

    yield frame(
        Kind.HELLO, "a greeting when a link comes up: the digest of the ring file, and the numbers of the last messages",
        Range(GREETING_BYTES, GREETING_BYTES),
    )  # fmt: skip
    yield frame(Kind.ACK, "that a message has come")
    yield frame(Kind.RECEIPT, "which messages have crossed a link, signed", Range(RECEIPT_BYTES, RECEIPT_BYTES))
    yield frame(Kind.PING, "whether the neighbour is there")
    yield frame(Kind.PONG, "that this site is there")
    yield frame(Kind.REFUSAL, "why a message is not taken, in a sentence", Range(1, SENTENCE))
