"""Many draws from N(0, 1) at once, by the ziggurat of Marsaglia and Tsang (2000): mostly a product and a comparison.

The area under exp(−x²/2) is cut into layers of equal area. A point that is uniform in a random layer is, where it lies
under the curve, as good as a normal draw; it is certainly there if it also lies within the next layer.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from roundelay.kernels.bulk import random_words
from roundelay.kernels.primitives import Vector
from roundelay.kernels.random import FROM_53_BITS, TIES, uniform

ZIGGURAT_LAYERS: int = 512


def layer_edges(layers: int = ZIGGURAT_LAYERS) -> Vector:
    """How far each layer reaches, and 0 for the top. Beyond edge 1 is the tail, which belongs to the lowest layer.

    Edge 0 is where that layer would end if it were a rectangle. The tail begins where the layers, all of the same area
    as the lowest, end at the top of the curve.
    """
    return _edges_from(_where_the_tail_begins(layers), layers)


@cache
def _where_the_tail_begins(layers: int) -> float:
    low, high = 3.0, 5.0
    for _ in range(60):
        tail = 0.5 * (low + high)
        low, high = (tail, high) if _edges_from(tail, layers)[-1] == 0.0 else (low, tail)
    return low


def _edges_from(tail: float, layers: int) -> Vector:
    """The edges where the tail begins here; the last is only 0 if the layers reach the top."""
    area = tail * math.exp(-0.5 * tail**2) + math.sqrt(0.5 * math.pi) * math.erfc(tail / math.sqrt(2.0))
    edges = np.zeros(layers + 1)
    edges[0], edges[1] = area / math.exp(-0.5 * tail**2), tail
    for layer in range(1, layers):
        height = math.exp(-0.5 * edges[layer] ** 2) + area / edges[layer]
        if height >= 1.0:
            return edges
        edges[layer + 1] = math.sqrt(-2.0 * math.log(height))
    return edges


def quick_normals(edges: Vector, seed: int, agent: int, hop: int, purpose: int, words: Any, out: Vector) -> None:
    """Fill `out` with draws from N(0, 1), other ones than `normals` gives.

    `words` is scratch of a word of 64 bits for each, rounded up to two.
    """
    count = out.shape[0]
    random_words(seed, agent, hop, purpose, 0, (count + 1) // 2, words)
    for n in range(count):
        layer = int(words[n] & np.uint64(ZIGGURAT_LAYERS - 1))
        # An odd number of 54 bits and either sign, so that x and −x are equally likely.
        across = ((np.int64(words[n]) >> 10) | 1) * FROM_53_BITS
        x = across * edges[layer]
        if abs(x) < edges[layer + 1]:
            out[n] = x
        else:
            out[n] = beyond_next_layer(edges, seed, agent, hop, purpose, n, layer, x)


def beyond_next_layer(
    edges: Vector, seed: int, agent: int, hop: int, purpose: int, n: int, layer: int, x: float
) -> float:
    """The draw number n, whose point lies where its layer is not all under the curve; once in 80 draws.

    It has uniform draws of its own, from (n + 1)·TIES on.
    """
    first = (n + 1) * TIES
    if layer == 0:
        return math.copysign(tail_draw(edges[1], seed, agent, hop, purpose, first), x)
    low, high = math.exp(-0.5 * edges[layer] ** 2), math.exp(-0.5 * edges[layer + 1] ** 2)
    if low + (high - low) * uniform(seed, agent, hop, purpose, first) < math.exp(-0.5 * x * x):
        return x
    # Above the curve: another draw takes its place, by Box and Muller.
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(seed, agent, hop, purpose, first + 1)))
    return radius * math.cos(2.0 * math.pi * uniform(seed, agent, hop, purpose, first + 2))


def tail_draw(tail: float, seed: int, agent: int, hop: int, purpose: int, first: int) -> float:
    """A normal draw given that it is larger than `tail` (Marsaglia 1964): exponential, and kept with the right chance."""
    index = first
    while True:
        past = -math.log(1.0 - uniform(seed, agent, hop, purpose, index)) / tail
        if -2.0 * math.log(1.0 - uniform(seed, agent, hop, purpose, index + 1)) > past * past:
            return tail + past
        index += 2
