"""What becomes of a vector on its way: sent as it is, rounded, quantised, or made sparse; and what it then weighs.

A compressor is one kernel function, `encode(compressor, seed, i, number, v, out)`. It writes to `out` what the
receivers read, and returns what was sent: whole numbers of 64 bits, and single bits. `number` is the message's own
number, which keys its draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from roundelay.kernels import DIM, QUANTISE, Numbers, Part, Vector, each, uniform
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.registry import register


class Compressor(Protocol):
    """A way to write a vector down."""

    def encoder(self, dim: int) -> Part:
        """The kernel function `encode` for vectors of this dimension, and its numbers."""

    def weight(self, dim: int) -> tuple[float, float]:
        """How many whole numbers and how many bits one message holds, about."""


# ---------------------------------------------------------------- as it is


def encode_exactly(compressor: Numbers, seed: int, i: int, number: int, v: Vector, out: Vector) -> tuple[int, int]:
    """The vector itself."""
    for d in each(DIM):
        out[d] = v[d]
    return DIM, 0


@register(Compressor, "plain")
@dataclass(frozen=True)
class Plain:
    """The vector itself, p numbers."""

    def encoder(self, dim: int) -> Part:
        """The kernel function `encode` and its numbers."""
        return Part((("encode", encode_exactly),))

    def weight(self, dim: int) -> tuple[float, float]:
        """All p numbers."""
        return dim, 0.0


# ---------------------------------------------------------------- a lattice


class LatticeNumbers(NamedTuple):
    """The distance Δ of two lattice points."""

    step: float


def varint_bits(whole: float) -> int:
    """The bits of a whole number in bytes of seven bits and a flag whether more follow; the sign comes first."""
    rest, bits = (2.0 * whole if whole >= 0.0 else -2.0 * whole - 1.0), 8
    while rest >= 128.0 and bits < 160:  # what does not fit into 20 bytes has diverged
        rest = np.floor(rest / 128.0)
        bits += 8
    return bits


def lattice_bits(step: float, v: Vector) -> int:
    """The bits of all coordinates of a lattice point."""
    bits = 0
    for d in range(DIM):
        bits += varint_bits(np.rint(v[d] / step))
    return bits


def encode_rounded(
    compressor: LatticeNumbers, seed: int, i: int, number: int, v: Vector, out: Vector
) -> tuple[int, int]:
    """Δ·round(v/Δ)."""
    for d in each(DIM):
        out[d] = compressor.step * np.rint(v[d] / compressor.step)
    return 0, lattice_bits(compressor.step, out)


def encode_dithered(
    compressor: LatticeNumbers, seed: int, i: int, number: int, v: Vector, out: Vector
) -> tuple[int, int]:
    """Δ·floor(v/Δ + u) with u from U[0, 1): right in the mean."""
    for d in range(DIM):
        out[d] = compressor.step * np.floor(v[d] / compressor.step + uniform(seed, i, number, QUANTISE, d))
    return 0, lattice_bits(compressor.step, out)


@register(Compressor, "rounded")
@dataclass(frozen=True)
class Rounded:
    """Every coordinate becomes a multiple of `step`: the nearest, or at random one of the two around it (`dithered`).

    Dithered, the result is right in the mean. Sent are whole numbers, each in as many bytes as it needs.
    """

    step: float = 1e-3
    dithered: bool = False

    def __post_init__(self) -> None:
        finite_number("step", self.step, above=0.0)

    def encoder(self, dim: int) -> Part:
        """The kernel function `encode` and its numbers."""
        return Part(
            (("encode", encode_dithered if self.dithered else encode_rounded),), LatticeNumbers(float(self.step))
        )

    def weight(self, dim: int) -> tuple[float, float]:
        """Two bytes a coordinate, as a guess."""
        return 0.0, 16.0 * dim


# ---------------------------------------------------------------- b bits


class QuantiserNumbers(NamedTuple):
    """2^(b−1), the number of steps from 0 to the largest coordinate, and the bits of one coordinate."""

    levels: float
    bits: int


def single_precision(value: float) -> float:
    """The value as 32 bits can hold it: what is paid as 32 bits must fit into them."""
    return float(np.float32(value))


def encode_quantised(
    compressor: QuantiserNumbers, seed: int, i: int, number: int, v: Vector, out: Vector
) -> tuple[int, int]:
    """sign(v)·s/2^(b−1)·floor(2^(b−1)|v|/s + u), s = max|v| and u from U[0, 1): right in the mean."""
    scale = 0.0
    for d in range(DIM):
        scale = max(scale, abs(v[d]))
    scale = single_precision(scale)
    for d in range(DIM):
        level = 0.0
        if scale > 0.0:
            level = np.floor(compressor.levels * abs(v[d]) / scale + uniform(seed, i, number, QUANTISE, d))
        size = scale * min(level, compressor.levels) / compressor.levels
        out[d] = size if v[d] >= 0.0 else -size
    return 0, 32 + DIM * compressor.bits


@register(Compressor, "quantised")
@dataclass(frozen=True)
class Quantised:
    """`bits` bits and a sign for each coordinate, and the largest coordinate in single precision; right in the mean.

    Between 0 and the largest coordinate lie 2^(bits−1) equal steps; which end of its step a coordinate goes to
    is drawn.
    """

    bits: int = 2

    def __post_init__(self) -> None:
        if not 1 <= whole_number("bits", self.bits, least=1) <= 32:
            raise ValueError(f"bits is {self.bits}: use a whole number from 1 to 32.")

    def encoder(self, dim: int) -> Part:
        """The kernel function `encode` and its numbers."""
        return Part((("encode", encode_quantised),), QuantiserNumbers(2.0 ** (self.bits - 1), int(self.bits) + 1))

    def weight(self, dim: int) -> tuple[float, float]:
        """One 32-bit number, and bits + 1 for each coordinate."""
        return 0.0, 32.0 + dim * (self.bits + 1)


def encode_signs(compressor: Numbers, seed: int, i: int, number: int, v: Vector, out: Vector) -> tuple[int, int]:
    """(‖v‖₁/p)·sign(v)."""
    total = 0.0
    for d in range(DIM):
        total += abs(v[d])
    size = single_precision(total / DIM)
    for d in range(DIM):
        out[d] = size if v[d] >= 0.0 else -size
    return 0, 32 + DIM


@register(Compressor, "signs")
@dataclass(frozen=True)
class Signs:
    """The sign of each coordinate, times the mean size of all: one bit a coordinate."""

    def encoder(self, dim: int) -> Part:
        """The kernel function `encode` and its numbers."""
        return Part((("encode", encode_signs),))

    def weight(self, dim: int) -> tuple[float, float]:
        """One 32-bit number, and a bit for each coordinate."""
        return 0.0, 32.0 + dim


# ---------------------------------------------------------------- few coordinates


class SparseNumbers(NamedTuple):
    """How many coordinates are sent, what an index weighs, and the factor on what is sent."""

    kept: int
    index_bits: int
    factor: float


def encode_largest(
    compressor: SparseNumbers, seed: int, i: int, number: int, v: Vector, out: Vector
) -> tuple[int, int]:
    """The largest coordinates, each with its index; of equal ones the first."""
    order = np.argsort(-np.abs(v), kind="mergesort")
    for d in range(DIM):
        out[d] = 0.0
    for place in range(compressor.kept):
        d = order[place]
        out[d] = v[d]
    return compressor.kept, compressor.kept * compressor.index_bits


def encode_random(compressor: SparseNumbers, seed: int, i: int, number: int, v: Vector, out: Vector) -> tuple[int, int]:
    """Coordinates drawn without replacement. Sender and receiver draw alike, so that no index is sent."""
    wanted = compressor.kept
    for d in range(DIM):
        chosen = uniform(seed, i, number, QUANTISE, d) * (DIM - d) < wanted
        wanted -= 1 if chosen else 0
        out[d] = compressor.factor * v[d] if chosen else 0.0
    return compressor.kept, 0


@register(Compressor, "topk")
@dataclass(frozen=True)
class TopK:
    """The `count` largest coordinates with their indices; the others are left out."""

    count: int = 1

    def __post_init__(self) -> None:
        whole_number("count", self.count, least=1)

    def encoder(self, dim: int) -> Part:
        """The kernel function `encode` and its numbers."""
        count = min(int(self.count), dim)
        return Part((("encode", encode_largest),), SparseNumbers(count, index_bits(dim), 1.0))

    def weight(self, dim: int) -> tuple[float, float]:
        """The coordinates and their indices."""
        count = min(int(self.count), dim)
        return count, count * index_bits(dim)


@register(Compressor, "randomk")
@dataclass(frozen=True)
class RandomK:
    """`count` coordinates drawn at random, which the receivers draw too, so that no index is sent.

    `unbiased` multiplies them by p/count, which makes the result right in the mean.
    """

    count: int = 1
    unbiased: bool = False

    def __post_init__(self) -> None:
        whole_number("count", self.count, least=1)

    def encoder(self, dim: int) -> Part:
        """The kernel function `encode` and its numbers."""
        count = min(int(self.count), dim)
        return Part((("encode", encode_random),), SparseNumbers(count, 0, dim / count if self.unbiased else 1.0))

    def weight(self, dim: int) -> tuple[float, float]:
        """The coordinates alone."""
        return min(int(self.count), dim), 0.0


@register(Compressor, "topshare")
@dataclass(frozen=True)
class TopShare:
    """The largest `share` of the coordinates, at least one, with their indices."""

    share: float = 0.01

    def __post_init__(self) -> None:
        if not 0.0 < finite_number("share", self.share) <= 1.0:
            raise ValueError(f"share is {self.share}: use a number above 0 and up to 1.")

    def of(self, dim: int) -> TopK:
        """The same as a number of coordinates."""
        return TopK(max(1, math.ceil(self.share * dim - 1e-9)))

    def encoder(self, dim: int) -> Part:
        """The kernel function `encode` and its numbers."""
        return self.of(dim).encoder(dim)

    def weight(self, dim: int) -> tuple[float, float]:
        """The coordinates and their indices."""
        return self.of(dim).weight(dim)


def index_bits(dim: int) -> int:
    """The bits that tell one of p coordinates."""
    return max(dim - 1, 0).bit_length()
