"""Every draw is keyed by (seed, agent, hop), so that simulator, real ring and restarted agent draw alike.

The generator is Philox4x64, counter-based: key = (seed, agent), counter = (hop, purpose, block, 0).
Under the Python engine it is NumPy's own; `philox` below is the same function over whole arrays of agents,
and what the compiled engine compiles. A test holds the two together bit for bit.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels.primitives import Flags, Vector

Words = NDArray[np.uint64]

# What a draw is for: each purpose has a stream of its own.
START, STEP, PRIMAL, WALK, BATCH, PLACE = range(6)
QUANTISE, COIN, PRIVACY, LOSS, RESEND, CHAIN, NOISE, LATENCY, WORK = range(6, 15)
CONCEAL, PAIR = range(15, 17)
LINKS, AWAKE = range(17, 19)

SEEDS = 2**64
FROM_53_BITS = 2.0**-53
# Draws with an index from here on decide ties of `chances`.
TIES = 2**32


def uniform(seed: int, agent: int, hop: int, purpose: int, index: int) -> float:
    """The draw number `index` from U[0, 1) that (seed, agent, hop, purpose) gives."""
    generator = np.random.Philox(
        key=np.array([seed, agent], np.uint64), counter=np.array([hop, purpose, index // 4, 0], np.uint64)
    )
    word = int(generator.random_raw(4)[index % 4])
    return (word >> 11) * FROM_53_BITS


def normals(seed: int, agent: int, hop: int, purpose: int, out: Vector) -> None:
    """Fill `out` with draws from N(0, 1), by Box and Muller: two of each pair of uniforms."""
    for pair in range((out.shape[0] + 1) // 2):
        radius = math.sqrt(-2.0 * math.log(1.0 - uniform(seed, agent, hop, purpose, 2 * pair)))
        angle = 2.0 * math.pi * uniform(seed, agent, hop, purpose, 2 * pair + 1)
        out[2 * pair] = radius * math.cos(angle)
        if 2 * pair + 1 < out.shape[0]:
            out[2 * pair + 1] = radius * math.sin(angle)


def uniforms(seed: int, agent: int, hop: int, purpose: int, out: Vector) -> None:
    """Fill `out` with draws from U[0, 1): those with index 0, 1, …"""
    out[:] = (_words(seed, agent, hop, purpose, -(-len(out) // 4)) >> np.uint64(11)).ravel()[: len(out)] * FROM_53_BITS


def chances(
    seed: int, agent: int, hop: int, purpose: int, chance: float, words: Words, lanes: Flags, flags: Flags
) -> None:
    """Each flag becomes 1 with this chance, else 0.

    One byte of random bits decides; only where it ties, once in 256, a uniform draw of its own does. `words` is scratch
    of 64 bits for every eight flags, rounded up to four, or more, and `lanes` the same memory byte by byte.
    """
    count = len(flags)
    blocks = -(-count // 32)
    words[: 4 * blocks] = _words(seed, agent, hop, purpose, blocks).ravel()
    scaled = 256.0 * chance
    limit = int(scaled)
    flags[:] = lanes[:count] < limit
    for place in np.flatnonzero(lanes[:count] == limit):
        flags[place] = uniform(seed, agent, hop, purpose, TIES + int(place)) < scaled - limit


def _words(seed: int, agent: int, hop: int, purpose: int, blocks: int) -> Words:
    """Blocks of four words of 64 random bits, (blocks, 4)."""
    block = np.arange(blocks, dtype=np.uint64)
    counter = (np.full_like(block, hop) + np.uint64(1), np.full_like(block, purpose), block, np.zeros_like(block))
    return np.stack(philox(np.full_like(block, seed), np.full_like(block, agent), counter), axis=-1)


def uniforms_of_agents(seed: int, agents: int, count: int, purpose: int) -> Vector:
    """Draws from U[0, 1) before the first hop, (agents, count): row i holds those of agent i."""
    blocks = -(-count // 4)
    agent = np.repeat(np.arange(agents, dtype=np.uint64), blocks)
    block = np.tile(np.arange(blocks, dtype=np.uint64), agents)
    # NumPy's generator steps its counter before the first block, hence 1 where the hop is 0.
    counter = (np.ones_like(block), np.full_like(block, purpose), block, np.zeros_like(block))
    words = np.stack(philox(np.full_like(agent, seed), agent, counter), axis=-1)
    whole = (words >> np.uint64(11)).reshape(agents, 4 * blocks)[:, :count]
    return whole.astype(np.float64) * FROM_53_BITS


def philox(key0: Words, key1: Words, counter: tuple[Words, Words, Words, Words]) -> tuple[Words, ...]:
    """Ten rounds of Philox4x64 (Salmon, Moraes, Dror, Shaw 2011): four words from a key and a counter."""
    c0, c1, c2, c3 = counter
    for turn in range(10):
        if turn > 0:
            key0 = key0 + np.uint64(0x9E3779B97F4A7C15)
            key1 = key1 + np.uint64(0xBB67AE8584CAA73B)
        high0, low0 = full_product(np.uint64(0xD2E7470EE14C6C93), c0)
        high1, low1 = full_product(np.uint64(0xCA5A826395121157), c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ key0, low1, high0 ^ c3 ^ key1, low0
    return c0, c1, c2, c3


def full_product(a: np.uint64, b: Words) -> tuple[Words, Words]:
    """The high and the low 64 bits of a·b, from products of 32-bit halves."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a_high, a_low, b_high, b_low = a >> half, a & mask, b >> half, b & mask
    middle = a_high * b_low + ((a_low * b_low) >> half)
    cross = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> half) + (cross >> half), a * b


# What follows is `uniform` and `normals` again in words of four, as the compiled engine assembles them
# around `philox`: NumPy's generator can't be called from compiled code.


def block_of_words(seed: int, agent: int, hop: int, purpose: int, block: int) -> tuple[Words, ...]:
    """Four words of 64 random bits."""
    return philox(
        np.uint64(seed),  # type: ignore[arg-type]
        np.uint64(agent),  # type: ignore[arg-type]
        (np.uint64(hop) + np.uint64(1), np.uint64(purpose), np.uint64(block), np.uint64(0)),  # type: ignore[arg-type]
    )


def block_of_uniforms(seed: int, agent: int, hop: int, purpose: int, block: int) -> tuple[float, ...]:
    """Four draws from U[0, 1): those with index 4·block to 4·block + 3."""
    w0, w1, w2, w3 = block_of_words(seed, agent, hop, purpose, block)
    shift = np.uint64(11)
    return (
        (w0 >> shift) * FROM_53_BITS,
        (w1 >> shift) * FROM_53_BITS,
        (w2 >> shift) * FROM_53_BITS,
        (w3 >> shift) * FROM_53_BITS,
    )  # type: ignore[return-value]


def compiled_uniform(seed: int, agent: int, hop: int, purpose: int, index: int) -> float:
    """`uniform` for the compiled engine."""
    u0, u1, u2, u3 = block_of_uniforms(seed, agent, hop, purpose, index // 4)
    lane = index % 4
    if lane < 2:
        return u0 if lane == 0 else u1
    return u2 if lane == 2 else u3


def compiled_normals(seed: int, agent: int, hop: int, purpose: int, out: Vector) -> None:
    """`normals` for the compiled engine: four of each block."""
    for block in range((out.shape[0] + 3) // 4):
        u0, u1, u2, u3 = block_of_uniforms(seed, agent, hop, purpose, block)
        first, second = 4 * block, 4 * block + 2
        radius = math.sqrt(-2.0 * math.log(1.0 - u0))
        angle = 2.0 * math.pi * u1
        out[first] = radius * math.cos(angle)
        if first + 1 < out.shape[0]:
            out[first + 1] = radius * math.sin(angle)
        if second < out.shape[0]:
            radius = math.sqrt(-2.0 * math.log(1.0 - u2))
            angle = 2.0 * math.pi * u3
            out[second] = radius * math.cos(angle)
            if second + 1 < out.shape[0]:
                out[second + 1] = radius * math.sin(angle)


def compiled_uniforms(seed: int, agent: int, hop: int, purpose: int, out: Vector) -> None:
    """`uniforms` for the compiled engine."""
    for block in range((out.shape[0] + 3) // 4):
        u0, u1, u2, u3 = block_of_uniforms(seed, agent, hop, purpose, block)
        first = 4 * block
        out[first] = u0
        if first + 1 < out.shape[0]:
            out[first + 1] = u1
        if first + 2 < out.shape[0]:
            out[first + 2] = u2
        if first + 3 < out.shape[0]:
            out[first + 3] = u3


def compiled_chances(
    seed: int, agent: int, hop: int, purpose: int, chance: float, words: Words, lanes: Flags, flags: Flags
) -> None:
    """`chances` for the compiled engine."""
    scaled = 256.0 * chance
    limit = np.int32(scaled)
    count = flags.shape[0]
    for block in range((count + 31) // 32):
        w0, w1, w2, w3 = block_of_words(seed, agent, hop, purpose, block)
        words[4 * block], words[4 * block + 1], words[4 * block + 2], words[4 * block + 3] = w0, w1, w2, w3
        first = 32 * block
        ties = 0
        if first + 32 <= count:  # of a fixed length, which the vector unit does in a few steps
            for lane in range(32):
                flags[first + lane] = np.int32(lanes[first + lane]) < limit
                ties += np.int32(lanes[first + lane]) == limit
        else:
            for place in range(first, count):
                flags[place] = np.int32(lanes[place]) < limit
                ties += np.int32(lanes[place]) == limit
        if ties > 0:
            for place in range(first, min(first + 32, count)):
                if np.int32(lanes[place]) == limit:
                    flags[place] = uniform(seed, agent, hop, purpose, TIES + place) < scaled - limit
