"""What two agents make of the secret that they share: masks that cancel over all agents, seals, and pads for a link.

Seals and pads are words modulo 2⁶⁴. Masks are numbers, whole multiples of a grid 2^−bits: sums of such numbers below 2⁵³
grid steps are exact in floating point, in any order. A pair's mask is uniform and found in whole-number arithmetic: with a
Gaussian, log and cos would differ in the last digit from one host to another, and what one adds the other would not take
away. The sum over N − 1 pairs is nearly Gaussian anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple, Protocol

import numpy as np

from roundelay.kernels import PAIR, Integers, Matrix, Vector
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.kernels.random import SEEDS, Words, full_product, philox
from roundelay.masks.fixed_point import FixedPoint, Grid

# What words are for: each purpose has a stream of its own.
MASK, SEAL, LINK, NOISE = range(4)

# Pairs are drawn for in blocks of about this many, so that a thousand agents need no gigabytes.
_BLOCK = 2**17


# ------------------------------------------------------------ secrets


class PairSecrets(Protocol):
    """Who shares which secret: one 128-bit key for each pair of agents.

    An agent named twice is a pair too: that secret is its own alone.
    """

    def key(self, first: int, second: int) -> bytes:
        """The 16 bytes that the two agents share, whichever of them is named first."""

    def words(
        self, first: Integers, second: Integers, purpose: int, turns: Integers, count: int, about: bytes = b""
    ) -> Words:
        """Uniform words modulo 2⁶⁴ of each pair, (pairs, count); no two (purpose, turn, about) give the same."""


@dataclass(frozen=True)
class SeededPairs:
    """Secrets for the simulator, all from the run's seed by the counter-based generator.

    Whoever knows the seed knows them all, and Philox is made for simulation, not for secrecy. Real agents use
    `AgreedPairs`.
    """

    seed: int

    def __post_init__(self) -> None:
        if not 0 <= whole_number("The seed", self.seed) < SEEDS:
            raise ValueError(f"The seed is {self.seed}: use a whole number from 0 to 2**64 - 1.")

    def key(self, first: int, second: int) -> bytes:
        """The 16 bytes that the two agents share."""
        low, high = self._keys(np.array([first]), np.array([second]))
        return low.astype("<u8").tobytes() + high.astype("<u8").tobytes()

    def words(
        self, first: Integers, second: Integers, purpose: int, turns: Integers, count: int, about: bytes = b""
    ) -> Words:
        """Uniform words modulo 2⁶⁴ of each pair, (pairs, count)."""
        low, high = self._keys(first, second)
        what = int.from_bytes(sha256(about).digest()[:8], "little") if about else 0
        turn, blocks = np.asarray(turns).astype(np.uint64), -(-count // 4)
        words = np.empty((len(turn), blocks, 4), np.uint64)
        together = max(1, _BLOCK // max(len(turn), 1))  # many blocks of few pairs at once
        for begin in range(0, blocks, together):
            block = np.arange(begin, min(begin + together, blocks), dtype=np.uint64)
            keys, of_pair = (np.repeat(low, len(block)), np.repeat(high, len(block))), np.repeat(turn, len(block))
            counter = (of_pair, np.full_like(of_pair, purpose), np.tile(block, len(turn)), np.full_like(of_pair, what))
            drawn = np.stack(philox(*keys, counter), axis=-1)
            words[:, begin : begin + len(block)] = drawn.reshape(len(turn), len(block), 4)
        return words.reshape(len(turn), 4 * blocks)[:, :count]

    def _keys(self, first: Integers, second: Integers) -> tuple[Words, Words]:
        one, other = (np.asarray(agents).astype(np.uint64) for agents in (first, second))
        lower, upper = np.minimum(one, other), np.maximum(one, other)
        # As every draw of the lower agent, with the upper one in the place of the hop.
        counter = (upper + np.uint64(1), np.full_like(upper, PAIR), np.zeros_like(upper), np.zeros_like(upper))
        return philox(np.full_like(lower, self.seed), lower, counter)[:2]  # type: ignore[return-value]


# ------------------------------------------------------------ who is paired with whom


def blocks_of_pairs(agents: int) -> Iterator[tuple[Integers, Integers]]:
    """All pairs i < j, in blocks."""
    begin = 0
    while begin < agents - 1:
        rows = max(1, _BLOCK // (agents - 1 - begin))
        own = np.arange(begin, min(begin + rows, agents - 1))
        first = np.repeat(own, agents - 1 - own)
        second = np.concatenate([np.arange(i + 1, agents) for i in own])
        yield first, second
        begin += rows


def others(me: int, agents: int) -> Integers:
    """Everybody else."""
    if not 0 <= me < agents:
        raise ValueError(f"There is no agent {me}: the agents are numbered from 0 to {agents - 1}.")
    everyone = np.arange(agents)
    return everyone[everyone != me]


# ------------------------------------------------------------ seals: words that cancel

ONE_WORD = FixedPoint(0)


def seals(secrets: PairSecrets, agents: int, dim: int, turn: int = 0, grid: Grid = ONE_WORD) -> Words:
    """The masks of all agents for `dim` numbers, one row an agent: their sum is 0.

    Where two agents keep their pair's secret, the sum over any set with just one of them is uniform to everybody else.
    """
    sums = np.zeros((agents, grid.words * dim), np.uint64)
    for first, second in blocks_of_pairs(agents):
        between = secrets.words(first, second, SEAL, np.full(len(first), turn), grid.words * dim)
        if grid.words == 1:
            np.add.at(sums, first, between)
            np.subtract.at(sums, second, between)
            continue
        for one, other, words in zip(first, second, between, strict=True):
            sums[one] = grid.add(sums[one], words)
            sums[other] = grid.add(sums[other], grid.negative(words))
    return sums


def my_seal(
    secrets: PairSecrets, me: int, agents: int, dim: int, turn: int = 0, grid: Grid = ONE_WORD, about: bytes = b""
) -> Words:
    """The mask of one agent, from its own secrets alone: row `me` of `seals`.

    It is bound to what it is `about`: masks about different things have nothing in common, and they cancel only among agents
    who mean the same.
    """
    return seal_with(secrets, me, others(me, agents), dim, turn, grid, about)


def seal_with(
    secrets: PairSecrets,
    me: int,
    partners: Integers,
    dim: int,
    turn: int = 0,
    grid: Grid = ONE_WORD,
    about: bytes = b"",
) -> Words:
    """What the secrets that one agent shares with these others, in order, put into its mask: what those can lift from its words."""
    rest, count = np.asarray(partners, np.int64), grid.words * dim
    mask: Words | None = None
    together = max(1, _BLOCK // max(count, 1))  # with millions of numbers one pair after another
    for begin in range(0, len(rest), together):
        block = rest[begin : begin + together]
        between = secrets.words(np.full(len(block), me), block, SEAL, np.full(len(block), turn), count, about)
        before = int((block < me).sum())
        for part, taken in ((between[before:], False), (between[:before], True)):
            if len(part):
                summed = grid.total(part) if len(part) > 1 else part[0]
                signed = grid.negative(summed) if taken else summed
                mask = signed if mask is None else grid.add(mask, signed)
    return np.zeros(count, np.uint64) if mask is None else mask


# ------------------------------------------------------------ masks: numbers that cancel


class MaskGrid(NamedTuple):
    """A pair's mask is one of `span` neighbouring multiples of 2^−bits, 0 in their middle."""

    bits: int
    span: int


def mask_grid(agents: int, scale: float) -> MaskGrid:
    """The finest grid on which masks with the deviation `scale` still sum exactly; all agents find the same.

    What lies below the grid is not masked. So the grid is as fine as the sums allow, about 1e-11 for a hundred agents
    with masks of about a hundred.
    """
    whole_number("The number of agents", agents, least=1)
    finite_number("scale", scale, above=0.0)
    width = scale * math.sqrt(12.0 / max(agents - 1, 1))  # a uniform number has the deviation width/√12
    # Σ|m_i| ≤ N(N − 1)·span/2 steps must stay below 2⁵³.
    bits = 53 - math.ceil(math.log2(agents * max(agents - 1, 1) * width))
    if not -900 <= bits <= 900:
        raise ValueError(
            f"scale is {scale:g}: masks of that size can't be told from 0 or infinity; use one nearer to 1."
        )
    return MaskGrid(bits, max(1, int(math.ldexp(width, bits))))


def zero_sum_masks(secrets: PairSecrets, agents: int, dim: int, scale: float, epoch: int = 0) -> Matrix:
    """m_i = Σ_j m_ij of all agents, (agents, dim), with m_ij = −m_ji: their sum is exactly 0.

    Each coordinate of each m_i has the standard deviation `scale`. One agent alone has nobody to hide behind: its
    mask is 0.
    """
    grid = mask_grid(agents, scale)
    steps = np.zeros((agents, dim), np.int64)
    for first, second in blocks_of_pairs(agents):
        turns = np.full(len(first), epoch)
        between = _steps(secrets.words(first, second, MASK, turns, dim), grid)
        np.add.at(steps, first, between)
        np.subtract.at(steps, second, between)
    return np.ldexp(steps.astype(np.float64), -grid.bits)


def my_mask(secrets: PairSecrets, me: int, agents: int, dim: int, scale: float, epoch: int = 0) -> Vector:
    """The mask of one agent, from its own secrets alone: row `me` of `zero_sum_masks`."""
    grid, rest = mask_grid(agents, scale), others(me, agents)
    between = _steps(secrets.words(np.full_like(rest, me), rest, MASK, np.full(len(rest), epoch), dim), grid)
    signs = np.where(rest > me, 1, -1)[:, None]
    return np.ldexp((signs * between).sum(axis=0).astype(np.float64), -grid.bits)


def _steps(words: Words, grid: MaskGrid) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Words as whole numbers around 0: the high half of word·span is uniform below span."""
    high, _ = full_product(np.uint64(grid.span), words)
    return high.astype(np.int64) - grid.span // 2


# ------------------------------------------------------------ pads: words for one message


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
