"""How a message of a gossip method reaches the neighbours: when it is sent, and what is made of it.

A channel is one kernel function, `transmit(channel, seed, i, k, number, message, posted)`. `posted` is what the
neighbours hold of agent i; `transmit` changes it to what they hold afterwards, and returns whether something was
sent, the whole numbers, and the bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from roundelay.kernels import DIM, Part, Vector, distance, each, slot, vector
from roundelay.kernels.checks import finite_number
from roundelay.links.compressors import Compressor, Plain
from roundelay.registry import register

# Literals that `Channel.part` sets.
CENSORED: int = 0
DIFFERENCES: int = 0


class ChannelNumbers(NamedTuple):
    """The censoring threshold α·ρᵏ, and the compressor's numbers."""

    alpha: float
    rho: float
    compressor: Any


@slot
def encode(compressor: Any, seed: int, i: int, number: int, v: Vector, out: Vector) -> tuple[int, int]:
    """Slot of the compressor."""
    raise NotImplementedError


def transmit(
    channel: ChannelNumbers, seed: int, i: int, k: int, number: int, message: Vector, posted: Vector
) -> tuple[int, int, int]:
    """Send the message, or what has changed since the last one, or nothing where that is too little."""
    if CENSORED and distance(message, posted) < channel.alpha * channel.rho ** (k + 1):
        return 0, 0, 0
    if not DIFFERENCES:
        numbers, bits = encode(channel.compressor, seed, i, number, message, posted)
        return 1, numbers, bits
    change, decoded = vector(DIM), vector(DIM)
    for d in each(DIM):
        change[d] = message[d] - posted[d]
    numbers, bits = encode(channel.compressor, seed, i, number, change, decoded)
    for d in each(DIM):
        posted[d] += decoded[d]
    return 1, numbers, bits


@register()
@dataclass(frozen=True)
class Censoring:
    """Say nothing in iteration k = 1, 2, … unless the message has moved by α·ρᵏ since the last one sent.

    A message that is an increment, as those of LEAD, is compared with 0.
    """

    alpha: float = 1.0
    rho: float = 0.85

    def __post_init__(self) -> None:
        finite_number("alpha", self.alpha, least=0.0)
        if not 0.0 < finite_number("rho", self.rho) <= 1.0:
            raise ValueError(f"rho is {self.rho}: the threshold α·ρᵏ needs a number above 0 and up to 1.")


@register()
@dataclass(frozen=True)
class Channel:
    """How messages travel: a `compressor`, whether they are censored, and whether only differences are compressed.

    With `differences=True` the compressor is given what has changed since the last message, and both ends add
    up what it makes of that. Then even a coarse compressor comes to the exact value in time.
    """

    compressor: Compressor = Plain()
    censoring: Censoring | None = None
    differences: bool = False

    def __post_init__(self) -> None:
        check_compressor(self.compressor)
        if self.censoring is not None and not isinstance(self.censoring, Censoring):
            raise ValueError(f"The censoring is {self.censoring!r}: use Censoring(alpha, rho), or None for none.")
        if not isinstance(self.differences, bool):
            raise ValueError(f"differences is {self.differences!r}: use True or False.")

    def part(self, dim: int) -> Part:
        """The kernel function `transmit` with all that it calls, and its numbers."""
        encoder, censoring = self.compressor.encoder(dim), self.censoring or Censoring(0.0, 1.0)
        return Part(
            (("transmit", transmit), *encoder.functions),
            ChannelNumbers(float(censoring.alpha), float(censoring.rho), encoder.numbers),
            (("CENSORED", int(self.censoring is not None)), ("DIFFERENCES", int(self.differences)), *encoder.literals),
        )


def check_compressor(choice: Any) -> None:
    """A compressor is an object that can encode."""
    if isinstance(choice, type) or not hasattr(choice, "encoder"):
        raise ValueError(f"The channel is {choice!r}: use an object such as Quantised(2), or Channel(TopK(1)).")


def channel_of(choice: Channel | Compressor) -> Channel:
    """A compressor alone is a channel that always sends."""
    return choice if isinstance(choice, Channel) else Channel(choice)
