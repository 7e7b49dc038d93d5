"""What crossed the links, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Integers, Matrix, Vector
from roundelay.kernels.random import Words
from roundelay.masks import FixedPoint, Grid, PlainNumbers, WideFixedPoint

if TYPE_CHECKING:
    import pandas as pd

    from roundelay.transcripts.observers import Observer, Seen


@dataclass(frozen=True, eq=False)
class SealedLap:
    """One row a message, as words: the sum, so far, of what `agents` agents added under their masks.

    `place` counts the messages of the lap, of which there are `length`. All but the last are uniform to whoever lacks
    the masks; in the last these have cancelled, and it holds the total in fixed point with `bits` bits after the
    point, or with `wide` in two words a number. `told` has the numbers that went round with the words, and `kind` says what they
    are and of what the sum is. `wire` holds what crossed the link where links are padded besides. Where `masked` is False
    there were no masks at all, and the words are plain numbers.
    """

    place: Integers
    sender: Integers
    receiver: Integers
    words: Words
    bits: int
    length: int
    agents: int
    wire: Words | None = None
    wide: bool = False
    kind: int = 0
    told: Vector = field(default_factory=lambda: np.zeros(0))
    masked: bool = True

    def __len__(self) -> int:
        """How many messages there are."""
        return len(self.place)

    @property
    def grid(self) -> Grid:
        """How numbers stand in the words."""
        if not self.masked:
            return PlainNumbers()
        return WideFixedPoint() if self.wide else FixedPoint(self.bits)

    def part(self, rows: NDArray[np.bool_]) -> SealedLap:
        """The messages that are marked."""
        wire = None if self.wire is None else self.wire[rows]
        return replace(
            self, place=self.place[rows], sender=self.sender[rows], receiver=self.receiver[rows],
            words=self.words[rows], wire=wire,
        )  # fmt: skip

    def outside(self) -> SealedLap:
        """As it looks to whoever lacks the links' pads."""
        return self if self.wire is None else replace(self, words=self.wire)

    def total(self) -> Vector | None:
        """The sum of all summands; None where the last message is not among these."""
        last = np.flatnonzero(self.place == self.length - 1)
        return self.grid.decode(self.words[last[0]]) if len(last) else None

    def frame(self, number: int = 0) -> pd.DataFrame:
        """One row a message of the lap with this number."""
        import pandas as pd

        about = {"lap": number, "sender": self.sender, "receiver": self.receiver, "kind": self.kind}
        return pd.DataFrame(about | {"told": [self.told] * len(self), "words": list(self.words)})

    def first_token(self) -> Vector | None:
        """The token that goes round afterwards, total/N."""
        total = self.total()
        return None if total is None else total / self.agents


def sealed_lap(order: Integers, works: NDArray[np.bool_], contributions: Words, grid: Grid) -> SealedLap:
    """The lap in which the agents of `order` add their contributions where they work, and pass the sum on."""
    count, so_far = len(order), np.zeros(contributions.shape[1], np.uint64)
    words = np.empty((count, contributions.shape[1]), np.uint64)
    for place, agent in enumerate(order):
        so_far = grid.add(so_far, contributions[agent]) if works[place] else so_far
        words[place] = so_far
    return SealedLap(
        np.arange(count), order, np.roll(order, -1), words, getattr(grid, "bits", 0), count, len(contributions),
        wide=grid.words == 2,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Transcript:
    """One row a message, in the order they were sent: at `hop`, `sender` passed the token on to `receiver`.

    `relayed` tells where the sender had not worked on it but only passed it on: on a covering walk, or in the lap of
    a frozen token. `sealed` has the messages of a sealed start, before the first hop, and `laps` those of sealed laps, which
    have no token. Where links are masked `wire`
    holds the padded words that crossed them, in fixed point with `wire_bits` bits after the point; `tokens` is what
    the two ends make of them.
    """

    hop: NDArray[np.int64]
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    relayed: NDArray[np.bool_]
    tokens: Matrix
    sealed: SealedLap | None = None
    wire: Words | None = None
    wire_bits: int = 0
    laps: tuple[SealedLap, ...] = ()

    def __repr__(self) -> str:
        return f"Transcript({len(self)} messages{f', {len(self.laps)} sealed laps' if self.laps else ''})"

    def __len__(self) -> int:
        """How many messages there were, those of sealed laps not among them."""
        return len(self.hop)

    def received_by(self, agent: int) -> Matrix:
        """The tokens that an agent received, in order."""
        return self.tokens[self.receiver == agent]

    def worked_on_by(self, agent: int) -> Matrix:
        """The tokens that an agent received and then worked on; also one just arrived, if it never only relays."""
        received = np.flatnonzero(self.receiver == agent)
        sent = np.flatnonzero(self.sender == agent)
        following = np.searchsorted(sent, received, side="right")  # what the agent sent next
        arriving = following == len(sent)
        worked = ~self.relayed[sent[np.minimum(following, len(sent) - 1)]] if len(sent) else arriving
        never_relays = not self.relayed[sent].any()
        return self.tokens[received[np.where(arriving, never_relays, worked)]]

    def seen_by(self, observer: Observer) -> Seen:
        """Only what this observer sees of it."""
        from roundelay.transcripts.observers import seen_by

        return seen_by(self, observer)

    def part(self, rows: NDArray[np.bool_]) -> Transcript:
        """The messages that are marked."""
        return replace(
            self, hop=self.hop[rows], sender=self.sender[rows], receiver=self.receiver[rows], relayed=self.relayed[rows],
            tokens=self.tokens[rows], wire=None if self.wire is None else self.wire[rows],
        )  # fmt: skip

    def outside(self) -> Transcript:
        """As it looks to whoever lacks the links' pads: the words, read as tokens, are noise."""
        sealed = None if self.sealed is None else self.sealed.outside()
        if self.wire is None:
            return replace(self, sealed=sealed)
        return replace(self, sealed=sealed, tokens=FixedPoint(self.wire_bits).decode(self.wire))

    def frame(self) -> pd.DataFrame:
        """The transcript as a DataFrame: hop, sender, receiver, and the token's coordinates z0, z1, …

        Of sealed laps instead: lap, sender, receiver, what was asked, and the numbers that were told and the words of each message.
        """
        import pandas as pd

        if self.laps:
            return pd.concat([lap.frame(number) for number, lap in enumerate(self.laps)], ignore_index=True)

        columns = {"hop": self.hop, "sender": self.sender, "receiver": self.receiver, "relayed": self.relayed}
        return pd.DataFrame(columns | {f"z{d}": self.tokens[:, d] for d in range(self.tokens.shape[1])})

    def save(self, path: str | Path) -> Path:
        """Save it to one file, which `load_transcript` reads again: .npz, or .csv for other programs."""
        from roundelay.transcripts.storage import save_transcript

        return save_transcript(self, path)


def transcript_of_laps(laps: Sequence[SealedLap], dim: int) -> Transcript:
    """A transcript in which no token went round, but only sums."""
    nothing = np.zeros(0, np.int64)
    return Transcript(nothing, nothing, nothing, np.zeros(0, bool), np.zeros((0, dim)), laps=tuple(laps))


def joined(pieces: Sequence[Transcript]) -> Transcript:
    """Several transcripts without sealed laps or masks, one after another."""

    def column(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(piece, name) for piece in pieces])

    return Transcript(column("hop"), column("sender"), column("receiver"), column("relayed"), column("tokens"))
