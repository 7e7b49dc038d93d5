"""From captured packets to the transcript that an audit is given: the eavesdropper of the paper, on a real wire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.capture.packets import LINKS, Segment, read_packets, segment_of
from roundelay.agents.capture.streams import Stream, messages_of_stream, streams_of
from roundelay.agents.data.fitting import own_sums_of, sums_of
from roundelay.agents.protocol.baton import Baton, BatonError, Phase, Reason, unpack_baton
from roundelay.agents.protocol.beginning import grid_of
from roundelay.agents.protocol.holder import HOPS_OF_AN_EPOCH, layout_of
from roundelay.agents.protocol.wire import MAGIC, VERSION, FrameError, Kind, unpack_frame
from roundelay.algorithms.sealed.questions import numbers_told
from roundelay.engine.token_run import lap_along
from roundelay.networks.walks import tour_part
from roundelay.privacy import Public
from roundelay.transcripts import SealedLap, Transcript
from roundelay.transcripts.transcript import transcript_of_laps


class Ends(NamedTuple):
    """The member that hands over, and the one that takes."""

    sender: int
    receiver: int


def ends_of(k: int, batons: Mapping[int, Baton], plan: RingPlan) -> Ends | None:
    """The ends of hand-over k: on a cycle from the counter alone.

    On a random walk a token names the member that sends it, so that the next hand-over tells who had taken this one;
    None where there is no next one.
    """
    order = plan.order
    if plan.on_cycle:
        return Ends(order[(k - 1) % len(order)], order[k % len(order)])
    sender = _sender_on_walk(batons[k], plan)
    if batons[k].phase != Phase.ITERATE:
        lap = lap_along(np.array(order), batons[k].origin).order
        return Ends(sender, int(lap[batons[k].step % len(lap)]))
    following = batons.get(k + 1)
    return None if following is None else Ends(sender, _sender_on_walk(following, plan))


def _sender_on_walk(baton: Baton, plan: RingPlan) -> int:
    if baton.phase == Phase.ITERATE:
        return baton.origin
    lap = lap_along(np.array(plan.order), baton.origin).order
    return int(lap[(baton.step - 1) % len(lap)])


@dataclass(frozen=True, eq=False)
class Handovers:
    """What was handed over: `batons` by the counter k, and how many `frames` of the run there were, of all kinds.

    `repeated` counts the batons that were sent again, and `refused`, by the reason, messages that are none of this run.
    """

    batons: dict[int, Baton]
    frames: int
    repeated: int
    refused: Counter[str]


def handovers_of(messages: Iterable[bytes], plan: RingPlan) -> Handovers:
    """The hand-overs of a plan's epoch among messages. Of two with one counter the first is kept."""
    layout = layout_of(plan, sums_of(plan.task))
    batons: dict[int, Baton] = {}
    checksums: dict[int, int] = {}
    refused: Counter[str] = Counter()
    frames = repeated = 0
    for message in messages:
        try:
            frame = unpack_frame(message, plan.run_bytes)
            frames += 1
            if frame.kind != Kind.BATON:
                continue
            if frame.epoch != plan.epoch:
                raise FrameError(f"It is of epoch {frame.epoch}, but the ring file is of epoch {plan.epoch}.")
            if frame.k in batons:
                repeated += 1
                if checksums[frame.k] != frame.checksum:
                    raise FrameError(f"There are two different batons with the counter {frame.k}; the first is used.")
                continue
            baton = unpack_baton(frame.body, layout)
            if baton.hop // HOPS_OF_AN_EPOCH != plan.epoch:
                raise BatonError(f"The baton's hop, {baton.hop}, is none of this epoch.")
            batons[frame.k], checksums[frame.k] = baton, frame.checksum
        except (FrameError, BatonError) as error:
            refused[str(error)] += 1
    return Handovers(dict(sorted(batons.items())), frames, repeated, refused)


def captured_transcript(batons: Mapping[int, Baton], ends: Mapping[int, Ends], plan: RingPlan) -> Transcript:
    """The messages with the token. The sender of the first message with a new hop made the hop before it.

    Of sealed laps, which have no token, the words of every question.
    """
    if plan.choice is not None:
        return transcript_of_laps(captured_laps(batons, ends, plan), plan.dim)
    walk = tour_part(np.array(plan.order)) if plan.on_cycle else plan.method.walk.part(plan.network)
    works = dict(walk.functions)["works"]
    first_hop, made = plan.epoch * HOPS_OF_AN_EPOCH, 0
    rows: list[tuple[int, Ends, bool, Baton]] = []
    for k, both in ends.items():
        baton = batons[k]
        if not _carries_a_token(baton):
            continue
        hop = baton.hop - first_hop
        place = (hop - 1) % len(plan.order) if plan.on_cycle else both.sender
        # A frozen token is passed on with the hop as it was, and so is one that goes on after that.
        rows.append((hop - 1, both, not works(walk.numbers, place), baton) if hop > made else (hop, both, True, baton))
        made = hop
    return Transcript(
        np.array([hop for hop, *_ in rows], np.int64),
        np.array([both.sender for _, both, *_ in rows], np.int64),
        np.array([both.receiver for _, both, *_ in rows], np.int64),
        np.array([relayed for *_, relayed, _ in rows], np.bool_),
        np.array([baton.numbers for *_, baton in rows], np.float64).reshape(len(rows), plan.vectors * plan.dim),
        sealed=_sealed(batons, ends, plan),
    )


def _carries_a_token(baton: Baton) -> bool:
    """Whether a message counts as one with the token, as a simulator has them.

    A frozen token goes round once more where all are asked whether they are content; where the hops are used up, or somebody wished
    to stop, its lap but for the first message, and that of the end, are the ring's own.
    """
    if baton.phase == Phase.ITERATE:
        return True
    first, asked = baton.step == 1, baton.purpose == Reason.CONTENT
    return (baton.phase == Phase.FROZEN and (first or asked)) or (baton.phase == Phase.DONE and first and asked)


def captured_laps(batons: Mapping[int, Baton], ends: Mapping[int, Ends], plan: RingPlan) -> list[SealedLap]:
    """The laps of a ring's questions, each with as many of its messages as were captured."""
    questions: dict[int, list[int]] = {}
    for k in ends:
        if batons[k].phase == Phase.ASK:
            questions.setdefault(batons[k].hop, []).append(k)
    grid, laps = plan.algorithm.grid, []
    for _, messages in sorted(questions.items()):
        first = batons[messages[0]]
        lap = [k for k in messages if batons[k].purpose == first.purpose]  # others are forged
        told = numbers_told(first.purpose, plan.dim, own_sums_of(plan.task))
        laps.append(
            SealedLap(
                np.array([batons[k].step - 1 for k in lap], np.int64),
                np.array([ends[k].sender for k in lap], np.int64),
                np.array([ends[k].receiver for k in lap], np.int64),
                np.array(
                    [batons[k].numbers[told : -grid.words] for k in lap], np.uint64
                ),  # without the count of members
                getattr(grid, "bits", 0),
                len(plan.order),
                plan.agents,
                wide=grid.words == 2,
                kind=first.purpose,
                told=first.numbers[:told].view(np.float64),
            )
        )
    return laps


def _sealed(batons: Mapping[int, Baton], ends: Mapping[int, Ends], plan: RingPlan) -> SealedLap | None:
    """The lap in which the shares were summed under masks, where the ring begins so."""
    turn = len(sums_of(plan.task))
    lap = [k for k in ends if batons[k].phase == Phase.SUM and batons[k].purpose == turn]
    if not lap:
        return None
    return SealedLap(
        np.array([batons[k].step - 1 for k in lap], np.int64),
        np.array([ends[k].sender for k in lap], np.int64),
        np.array([ends[k].receiver for k in lap], np.int64),
        np.array([batons[k].numbers for k in lap], np.uint64),
        grid_of(plan.method).bits,
        len(plan.order),
        plan.agents,
    )


_MARK = MAGIC + bytes([VERSION])
# A TLS record begins with its kind, 20 to 23, and the version, 3 and a small number.
_TLS_KINDS, _TLS_VERSIONS = range(20, 24), range(5)


class EncryptedError(ValueError):
    """There is nothing to read in a capture, because it is encrypted."""


@dataclass(frozen=True, eq=False)
class Captured:
    """What a capture has of a ring.

    `transcript` has every hand-over of a token, each once; of the lap that tells the members of the end only the first,
    since the others repeat its token. `frames` is how many messages of the run were read, of all kinds. `missing` has the
    first and the last counter of each row of hand-overs that are not there, and `skipped` says in sentences what could
    not be used.
    """

    transcript: Transcript
    frames: int
    missing: tuple[tuple[int, int], ...]
    skipped: tuple[str, ...]
    plan: RingPlan

    def check_whole(self, agent: int | None = None) -> None:
        """Refuse a capture in which hand-overs are missing; with an `agent` only where these are its own.

        The attacks add up all that an agent received and sent, and would come to something else without a word.
        """
        for first, last in self.missing:
            if agent is None or not self.plan.on_cycle or agent in self._touched(first, last):
                raise ValueError(
                    f"Hand-overs {first} to {last} are not in the capture, but the attacks need all of them, from the first on: "
                    "capture the whole run, or look at what the neighbours of an agent saw whose hand-overs are all there."
                )

    def _touched(self, first: int, last: int) -> set[int]:
        """Who sent or took a hand-over of a row of them."""
        order = self.plan.order
        places = {k % len(order) for k in range(first, min(last + 1, first + len(order)))}
        return {order[place - back] for place in places for back in (0, 1)}


def read_capture(path: str | Path, plan: RingPlan) -> Captured:
    """The tokens of a ring in a pcap or pcapng file; the plan, which every member has, says how to read them.

    Refused with an EncryptedError where the connections are encrypted, as they are unless that was switched off.
    """
    kinds: set[int] = set()
    streams = [stream for stream in streams_of(_segments(path, kinds)) if stream.pieces]
    found = handovers_of((message for one in streams for message in messages_of_stream(one, _MARK)), plan)
    encrypted = sum(map(_is_encrypted, streams))
    if not found.batons:
        raise _nothing(path, plan, found, streams, encrypted)
    missing = tuple(_missing(list(found.batons)))
    ends = {k: ends_of(k, found.batons, plan) for k in found.batons}
    rows = {k: both for k, both in ends.items() if both is not None}
    skipped = [*_words(found, streams, encrypted, missing, kinds)]
    if len(rows) < len(ends):
        skipped.append(
            f"{len(ends) - len(rows)} hand-overs of a random walk, since who took them is not in the capture."
        )
    return Captured(captured_transcript(found.batons, rows, plan), found.frames, missing, tuple(skipped), plan)


def public_of(plan: RingPlan) -> Public:
    """What everybody knows of a ring; refused where it did not begin as its algorithm says."""
    if plan.epoch or plan.warm:
        how = f"is of epoch {plan.epoch}" if plan.epoch else "asks for a warm start"
        raise ValueError(
            f"The ring file {how}, where the sites begin from what they had, which is not public: the attacks can't be used. "
            "Audit epoch 0 of a run without a warm start."
        )
    return Public(plan.algorithm, plan.agents, plan.dim)


def _segments(path: str | Path, kinds: set[int]) -> Iterator[Segment]:
    for packet in read_packets(path):
        kinds.add(packet.link)
        segment = segment_of(packet)
        if segment is not None:
            yield segment


# ------------------------------------------------------------ what is not there


def _missing(counters: list[int]) -> Iterator[tuple[int, int]]:
    """From the first hand-over on, which has the counter 1, to the last that is there."""
    for before, after in zip([0, *counters], counters, strict=False):
        if after > before + 1:
            yield before + 1, after - 1


def _is_encrypted(stream: Stream) -> bool:
    """By the first bytes that are there: records of TLS begin in their own way."""
    data = stream.pieces[0].data[:3]
    return len(data) == 3 and data[0] in _TLS_KINDS and data[1] == 3 and data[2] in _TLS_VERSIONS


def _words(
    found: Handovers, streams: list[Stream], encrypted: int, missing: tuple[tuple[int, int], ...], kinds: set[int]
) -> Iterator[str]:
    if encrypted:
        yield f"{encrypted} directions of connections are encrypted."
    lost = sum(stream.missing for stream in streams)
    if lost:
        yield f"{lost} bytes are missing in the capture: packets were lost or cut short."
    if missing:
        count, (first, last) = sum(last - first + 1 for first, last in missing), missing[0]
        yield f"{count} hand-overs are not in the capture, first those from {first} to {last}."
    if kinds - set(LINKS):
        yield f"Packets of the link types {sorted(kinds - set(LINKS))}, which are not read here."
    for reason, count in found.refused.most_common(5):
        yield f"{count} messages: {reason}"


def _nothing(path: str | Path, plan: RingPlan, found: Handovers, streams: list[Stream], encrypted: int) -> ValueError:
    if encrypted:
        return EncryptedError(
            f"Nothing in {path} can be read: {encrypted} of the {len(streams)} directions of connections in it are encrypted "
            "by TLS, as those of a ring are unless that was switched off for an experiment."
        )
    why = f" ({found.refused.most_common(1)[0][0]})" if found.refused else ""
    lost = sum(stream.missing for stream in streams)
    if lost:
        return ValueError(
            f"{path} has no whole hand-over of the run {plan.run}, epoch {plan.epoch}{why}, and {lost} bytes in it are missing: "
            "packets were lost or cut short. Capture them whole, as tcpdump -s 0 does."
        )
    return ValueError(
        f"{path} has no hand-over of the run {plan.run}, epoch {plan.epoch}{why}: check the ring file, and that the capture "
        "covers the ports of its members."
    )
