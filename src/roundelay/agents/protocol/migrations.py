"""How the journal of a run that an earlier release has begun becomes one of this release.

Each step knows the formats of its time by itself: what is said of them elsewhere in the code may have changed since.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Migration:
    """From one format to the next: `sql` for the tables, and `about` for what stands before the vectors of the agent's own state.

    `about` is given that and the frame that the agent has to send, which is empty where there is none.
    """

    about: Callable[[bytes, bytes], bytes]
    sql: tuple[str, ...] = ()


_HEADER_4 = struct.Struct("<4sBBHI16sQQI")
_BATON_4 = struct.Struct("<BBHIIIQ")
_FROZEN, _DONE, _ASK = 3, 4, 5


def _knows_what_it_was_asked_to_sign(about: bytes, outgoing: bytes) -> bytes:
    """Behind the hop come that of the last end which the agent was asked to sign, and whether it has told a wish to stop.

    Both follow from what it sent last. Whose wish the baton tells is not known here, so that it is taken for the agent's own: for this one
    end it would not notice that somebody has wished in its name.
    """
    asked, wished = -1, False
    if outgoing:
        phase, _, _, _, _, _, hop = _BATON_4.unpack_from(outgoing, _HEADER_4.size)
        asked = hop if phase in (_FROZEN, _DONE) else -1
        wishes = outgoing[_HEADER_4.size + _BATON_4.size :][:8]
        wished = phase == _ASK and any(wishes)
    place = struct.calcsize("<qqqdq")
    return about[:place] + struct.pack("<qq", asked, wished) + about[place:]


# By the format that each begins with.
MIGRATIONS: dict[int, Migration] = {4: Migration(_knows_what_it_was_asked_to_sign)}


def steps_between(written: str, now: int) -> list[Migration]:
    """What brings a journal from the format in which it was written to that of now; nothing where there is no way."""
    formats = range(int(written), now) if written.isdecimal() else range(0)
    steps = [MIGRATIONS[one] for one in formats if one in MIGRATIONS]
    return steps if len(steps) == len(formats) else []
