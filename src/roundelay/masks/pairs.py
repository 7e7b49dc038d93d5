"""A secret for every pair of agents, and the random words that both of them draw from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from roundelay.kernels import PAIR, Integers
from roundelay.kernels.checks import whole_number
from roundelay.kernels.random import SEEDS, Words, philox

# What words are for: each purpose has a stream of its own.
MASK, SEAL, LINK = range(3)

# Pairs are drawn for in blocks of about this many, so that a thousand agents need no gigabytes.
BLOCK = 2**17


class PairSecrets(Protocol):
    """Who shares which secret: one 128-bit key for each pair of agents."""

    def key(self, first: int, second: int) -> bytes:
        """The 16 bytes that the two agents share, whichever of them is named first."""

    def words(self, first: Integers, second: Integers, purpose: int, turns: Integers, count: int) -> Words:
        """Uniform words modulo 2⁶⁴ of each pair, (pairs, count); no two (purpose, turn) give the same."""


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

    def words(self, first: Integers, second: Integers, purpose: int, turns: Integers, count: int) -> Words:
        """Uniform words modulo 2⁶⁴ of each pair, (pairs, count)."""
        low, high = self._keys(first, second)
        turn = np.asarray(turns).astype(np.uint64)
        blocks: list[Words] = []
        for block in range(-(-count // 4)):
            counter = (turn, np.full_like(turn, purpose), np.full_like(turn, block), np.zeros_like(turn))
            blocks += philox(low, high, counter)
        return np.stack(blocks[:count], axis=-1) if count else np.zeros((len(low), 0), np.uint64)

    def _keys(self, first: Integers, second: Integers) -> tuple[Words, Words]:
        one, other = (np.asarray(agents).astype(np.uint64) for agents in (first, second))
        lower, upper = np.minimum(one, other), np.maximum(one, other)
        # As every draw of the lower agent, with the upper one in the place of the hop.
        counter = (upper + np.uint64(1), np.full_like(upper, PAIR), np.zeros_like(upper), np.zeros_like(upper))
        return philox(np.full_like(lower, self.seed), lower, counter)[:2]  # type: ignore[return-value]


def blocks_of_pairs(agents: int) -> Iterator[tuple[Integers, Integers]]:
    """All pairs i < j, in blocks."""
    begin = 0
    while begin < agents - 1:
        rows = max(1, BLOCK // (agents - 1 - begin))
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
