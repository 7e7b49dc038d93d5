"""The journals of sites that agree to show them, held against each other and against what their neighbours have had signed.

What can be decided: whether a journal is the one that its site has signed towards its neighbours; whether both ends of a link have the same
hand-overs; whether totals are what the words of their sum came to; and whether what was only to be handed on was. Whether a site's own part of a
sum or a token follows from its data no journal tells: words stand under masks, and a token's visit is anybody's function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.protocol.baton import BatonError, Phase
from roundelay.agents.protocol.holder import STATISTICS
from roundelay.agents.protocol.journal import JournalError, Passage, shown
from roundelay.agents.protocol.receipts import NOTHING, OneEnd, Receipt, is_receipt_of
from roundelay.agents.protocol.signing import Certificates

# What every member of a lap hands on as it came: totals, and the end.
ONLY_HANDED_ON = (Phase.TELL, Phase.FROZEN, Phase.DONE)


@dataclass(frozen=True)
class Finding:
    """What does not fit, and the sites that it can only be of: one where that is certain, two where only one of them is honest."""

    sites: tuple[str, ...]
    sentence: str


@dataclass(frozen=True)
class Comparison:
    """What was found, and of which site the neighbours shown have no signature; `folders` has where each of the journals is.

    Whose a journal is it says itself: nothing in it proves that.
    """

    journals: tuple[str, ...]
    folders: tuple[Path, ...]
    hand_overs: int
    findings: tuple[Finding, ...]
    unsigned: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class Shown:
    """One site's journal: its hand-overs of the epoch, and what neighbours have signed."""

    member: int
    passages: Sequence[Passage]
    receipts: dict[int, Receipt]


def compare_journals(signed: SignedPlan, folders: Sequence[Path]) -> Comparison:
    """Hold the journals in these folders of a run against each other."""
    plan = signed.plan
    journals: dict[int, Shown] = {}
    places: dict[int, Path] = {}
    for folder in folders:
        one = _read(signed, folder)
        if one.member in journals:
            raise ValueError(f"{folder} has another journal of {plan.members[one.member].name}: name one of each site.")
        journals[one.member], places[one.member] = one, folder
    if len(journals) < 2:
        raise ValueError("One journal has nothing to be held against: name the run's folders of two sites or more.")
    findings, unsigned, crossed = [], [], 0
    convicted = set()
    for member, one in journals.items():
        for peer in sorted(plan.neighbours[member] & journals.keys()):
            receipt = journals[peer].receipts.get(member)
            if receipt is None:
                unsigned.append((_name(plan, member), _name(plan, peer)))
            elif not _fits(one, peer, receipt):
                convicted.add(member)
                findings.append(_other_than_signed(plan, member, peer))
        findings += _own_words(plan, one)
    for member, one in journals.items():
        for peer in sorted(plan.neighbours[member] & journals.keys()):
            count, sentence = _differ(plan, one, journals[peer])
            crossed += count
            if sentence and not {member, peer} & convicted:
                findings.append(Finding((_name(plan, member), _name(plan, peer)), sentence))
    members = sorted(journals)
    names, where = tuple(_name(plan, member) for member in members), tuple(places[member] for member in members)
    return Comparison(names, where, crossed, tuple(findings), tuple(unsigned))


def _read(signed: SignedPlan, folder: Path) -> Shown:
    plan = signed.plan
    try:
        name, passages, received = shown(folder, plan.epoch)
    except JournalError as error:
        raise ValueError(str(error)) from None
    if not all(map(_is_of_an_agent, passages)):
        raise ValueError(
            f"The journal in {folder}, of {name}, holds what no agent writes: somebody has changed it. Compare those of the others."
        )
    names, ring = [member.name for member in plan.members], bytes.fromhex(signed.digest)
    if name not in names:
        raise ValueError(f"The journal in {folder} is of {name or 'nobody'}, who is no member of this ring.")
    me, certificates, receipts = names.index(name), Certificates(tuple(one.certificate for one in plan.members)), {}
    for peer, body in received.items():
        try:
            receipt = Receipt.read(body)
        except (BatonError, TypeError):
            continue
        # What its owner has made up for a neighbour is not signed by that neighbour, and proves nothing.
        if peer in plan.neighbours[me] and is_receipt_of(peer, me, receipt, certificates, ring, plan.epoch, names):
            receipts[peer] = receipt
    return Shown(me, passages, receipts)


def _is_of_an_agent(row: Passage) -> bool:
    """Whether an entry has whole numbers, and vectors of words of eight bytes: whoever shows a journal may have written anything into it."""
    *numbers, received, sent = row
    vectors = (one for one in (received, sent) if one is not None)
    return all(isinstance(one, int) for one in numbers) and all(
        isinstance(one, bytes) and len(one) % 8 == 0 for one in vectors
    )


def _fits(one: Shown, peer: int, receipt: Receipt) -> bool:
    """Whether a journal is what its owner has signed to a neighbour."""
    now = OneEnd(peer).up_to(receipt.given, receipt.taken, one.passages)
    return now.digests == (receipt.gave, receipt.took)


def _other_than_signed(plan: RingPlan, member: int, peer: int) -> Finding:
    name = _name(plan, member)
    return Finding(
        (name,),
        f"{name} shows another journal than the one that it has signed to {_name(plan, peer)}: it was changed afterwards, or put back to an "
        "older state.",
    )


def _own_words(plan: RingPlan, one: Shown) -> list[Finding]:
    """What a site told or handed on otherwise than it came, by its own journal."""
    name, found = _name(plan, one.member), []
    for row in one.passages:
        if row.received is None or row.sent is None:
            continue
        first = row.phase == Phase.TELL and one.member == plan.order[0]  # with whom a lap ends, and the next one begins
        if row.phase == row.sent_phase and row.phase in ONLY_HANDED_ON and row.received != row.sent and not first:
            what = "totals" if row.phase == Phase.TELL else "an end"
            found.append(Finding((name,), f"{name} was told {what} by hand-over {row.k}, and has handed on another."))
        if (row.phase, row.sent_phase) == (Phase.SUM, Phase.TELL):
            words = np.frombuffer(row.received, np.uint64)
            whole = len(words) % STATISTICS.words == 0
            if not (whole and np.array_equal(STATISTICS.decode(words), np.frombuffer(row.sent))):
                found.append(
                    Finding((name,), f"{name} has told other totals, by hand-over {row.sent_k}, than the sum came to.")
                )
    return found


def _differ(plan: RingPlan, giver: Shown, taker: Shown) -> tuple[int, str]:
    """How many hand-overs crossed from one site to the other, and where their journals part first."""
    gave = {one.sent_k: (one.sent_phase, one.sent) for one in giver.passages if one.receiver == taker.member}
    took = {one.k: (one.phase, one.received) for one in taker.passages if one.sender == giver.member}
    # Where an agent was stopped, the last one may be on its way, or on the taker's disk alone.
    last = (
        max((one.sent_k for one in giver.passages), default=NOTHING),
        max((one.k for one in taker.passages), default=NOTHING),
    )
    for k in sorted(gave.keys() | took.keys()):
        names = f"{_name(plan, giver.member)} to {_name(plan, taker.member)}"
        if k not in took and k < last[1]:
            return len(gave), f"Hand-over {k} from {names} is only in the journal of the first."
        if k not in gave and k != max(took):
            return len(gave), f"Hand-over {k} from {names} is only in the journal of the second."
        if k in gave and k in took and gave[k] != took[k]:
            return len(gave), f"Hand-over {k} from {names} has other numbers in the one journal than in the other."
    return len(gave.keys() & took.keys()), ""


def _name(plan: RingPlan, member: int) -> str:
    return plan.members[member].name
