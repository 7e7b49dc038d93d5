"""From captured packets to the transcript that an audit is given: the eavesdropper of the paper, on a real wire."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from roundelay.agents.capture.ends import ends_of
from roundelay.agents.capture.handovers import Handovers, handovers_of
from roundelay.agents.capture.headers import LINKS, Segment, segment_of
from roundelay.agents.capture.http2 import messages_of_stream
from roundelay.agents.capture.pcap import read_packets
from roundelay.agents.capture.tcp import Stream, streams_of
from roundelay.agents.capture.transcribing import transcript_of
from roundelay.agents.plan import RingPlan
from roundelay.agents.wire import MAGIC, VERSION
from roundelay.privacy import Public
from roundelay.transcripts import Transcript

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
    return Captured(transcript_of(found.batons, rows, plan), found.frames, missing, tuple(skipped), plan)


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
