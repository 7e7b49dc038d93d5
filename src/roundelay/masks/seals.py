"""Uniform masks modulo 2⁶⁴ that cancel in the sum over all agents."""

from __future__ import annotations

import numpy as np

from roundelay.kernels.random import Words
from roundelay.masks.pairs import SEAL, PairSecrets, blocks_of_pairs, others


def seals(secrets: PairSecrets, agents: int, dim: int, epoch: int = 0) -> Words:
    """The masks of all agents, (agents, dim): their sum is 0 modulo 2⁶⁴.

    Where two agents keep their pair's secret, the sum over any set with just one of them is uniform to everybody else.
    """
    sums = np.zeros((agents, dim), np.uint64)
    for first, second in blocks_of_pairs(agents):
        between = secrets.words(first, second, SEAL, np.full(len(first), epoch), dim)
        np.add.at(sums, first, between)
        np.subtract.at(sums, second, between)
    return sums


def my_seal(secrets: PairSecrets, me: int, agents: int, dim: int, epoch: int = 0) -> Words:
    """The mask of one agent, from its own secrets alone: row `me` of `seals`."""
    rest = others(me, agents)
    between = secrets.words(np.full_like(rest, me), rest, SEAL, np.full(len(rest), epoch), dim)
    return between[rest > me].sum(axis=0, dtype=np.uint64) - between[rest < me].sum(axis=0, dtype=np.uint64)
