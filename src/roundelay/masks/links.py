"""One-time pads: what two agents send each other is uniform to everybody else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roundelay.kernels import Integers, Vector
from roundelay.kernels.random import Words
from roundelay.masks.fixed_point import FixedPoint
from roundelay.masks.pairs import LINK, PairSecrets


def pads(secrets: PairSecrets, first: Integers, second: Integers, messages: Integers, dim: int) -> Words:
    """The pad of each message, (messages, dim). A pad is for one message: no number may be used twice by a pair."""
    return secrets.words(first, second, LINK, messages, dim)


@dataclass(frozen=True)
class MaskedLink:
    """The link between two agents: a token in fixed point, plus a pad that only these two can draw.

    `number` tells the messages of the pair apart, in both directions. The same message sent again has the same
    number; another one never. It hides what is sent, not that something is; it does not show whether somebody changed
    it on the way.
    """

    secrets: PairSecrets
    first: int
    second: int
    fixed: FixedPoint

    def seal(self, token: Vector, number: int) -> Words:
        """The words to send."""
        return self.fixed.encode(token) + self._pad(number, len(token))

    def open(self, words: Words, number: int) -> Vector:
        """The token that was sent, on the grid."""
        return self.fixed.decode(words - self._pad(number, len(words)))

    def _pad(self, number: int, dim: int) -> Words:
        ends = np.array([self.first]), np.array([self.second])
        return pads(self.secrets, *ends, np.array([number]), dim)[0]
