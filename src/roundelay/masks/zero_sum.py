"""Masks that sum to exactly zero over all agents.

They are whole numbers of a grid 2^−bits. Sums of such numbers below 2⁵³ grid steps are exact in floating point, in
any order. A pair's mask is uniform and found in whole-number arithmetic: with a Gaussian, log and cos would differ in
the last digit from one host to another, and what one adds the other would not take away. The sum over N − 1 pairs is
nearly Gaussian anyway.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from roundelay.kernels import Matrix, Vector
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.kernels.random import Words, full_product
from roundelay.masks.pairs import MASK, PairSecrets, blocks_of_pairs, others


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
