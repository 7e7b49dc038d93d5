"""What members sign: a key for masks of their own for one epoch, sums that they tell all, and how the run ended.

Each statement holds the digest of the ring file. So whoever has accepted another file, was told other sums or has seen another end is named
by its own signature, by every member, whoever stands between the two on the lap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256, sha512
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from roundelay.agents.agreement.identity import Identity, is_signed_by, sign
from roundelay.kernels import Vector
from roundelay.masks.agreement import KEY_BYTES, AgreedPairs, public_key_of

# Bytes: of a signature, and of a member's public key with its signature.
SIGNATURE = 64
CARD = KEY_BYTES + SIGNATURE


class Checker(Protocol):
    """Checks what members have signed."""

    def is_signed(self, member: int, statement: bytes, signature: bytes) -> bool:
        """Whether a member has signed this."""


class Signer(Checker, Protocol):
    """Signs for one member too."""

    def sign(self, statement: bytes) -> bytes:
        """64 bytes."""


@dataclass(frozen=True)
class Certificates:
    """Goes by the certificates in the ring file (ECDSA, P-256), in the order of the members."""

    certificates: tuple[str, ...]

    def is_signed(self, member: int, statement: bytes, signature: bytes) -> bool:
        """Whether the key of that member's certificate made it: two numbers of 32 bytes."""
        if len(signature) != SIGNATURE:
            return False
        numbers = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
        return is_signed_by(self.certificates[member], statement, encode_dss_signature(*numbers))


@dataclass(frozen=True)
class Certified(Certificates):
    """Signs with the key of the site's own certificate."""

    identity: Identity

    def sign(self, statement: bytes) -> bytes:
        """Both numbers of the signature, 32 bytes each."""
        first, second = decode_dss_signature(sign(self.identity, statement))
        return first.to_bytes(32, "big") + second.to_bytes(32, "big")


@dataclass(frozen=True)
class Unproven:
    """Marks instead of signatures, for members in one process: they tell other statements apart, and anybody can make them."""

    me: int

    def sign(self, statement: bytes) -> bytes:
        """A hash of the member and the statement."""
        return _mark(self.me, statement)

    def is_signed(self, member: int, statement: bytes, signature: bytes) -> bool:
        """Whether it is that hash."""
        return signature == _mark(member, statement)


def _mark(member: int, statement: bytes) -> bytes:
    return sha512(member.to_bytes(8, "little") + statement).digest()


# ---------------------------------------------------------------- statements


def key_statement(ring: bytes, epoch: int, name: str, public_key: bytes) -> bytes:
    """This is the key with which I mask what I add in this epoch of this ring file."""
    return _statement(b"key", ring, _whole(epoch), name.encode(), public_key)


def told_statement(ring: bytes, epoch: int, purpose: int, told: Vector) -> bytes:
    """This is what sum number `purpose` came to."""
    return _statement(b"told", ring, _whole(epoch), _whole(purpose), _bytes(told))


def receipt_statement(
    ring: bytes, epoch: int, name: str, peer: str, given: int, taken: int, gave: bytes, took: bytes
) -> bytes:
    """This is what I have handed to my neighbour, and taken from it, up to these counters."""
    return _statement(b"receipt", ring, *map(_whole, (epoch, given, taken)), name.encode(), peer.encode(), gave, took)


@dataclass(frozen=True, eq=False)
class End:
    """How a run ended: at which hop, why and by whom, and at which point.

    `told` is the digest of the sums before the fit; in sealed laps `asked` is that of all questions and `totals` that of what they
    came to.
    """

    ring: bytes
    epoch: int
    hop: int
    reason: int
    by: int
    point: Vector
    told: bytes
    asked: bytes = b""
    totals: bytes = b""

    @property
    def statement(self) -> bytes:
        """What every member signs: I have seen this end, and confirm what I can of it."""
        numbers = (self.epoch, self.hop, self.reason, self.by)
        digests = (self.told, self.asked, self.totals)
        return _statement(b"end", self.ring, *map(_whole, numbers), sha256(_bytes(self.point)).digest(), *digests)


def _statement(about: bytes, *pieces: bytes) -> bytes:
    """The pieces, each behind its length, so that no two statements read alike."""
    whole = (b"roundelay statement 1", about, *pieces)
    return b"".join(len(piece).to_bytes(8, "little") + piece for piece in whole)


def _whole(number: int) -> bytes:
    return number.to_bytes(8, "little", signed=True)


def _bytes(numbers: Vector) -> bytes:
    return np.ascontiguousarray(numbers, "<f8").tobytes()


# ---------------------------------------------------------------- many of them, one behind another


def placed(pieces: bytes, member: int, piece: bytes) -> bytes:
    """The pieces of all members, each of the same length, with that of one member replaced."""
    begin = member * len(piece)
    return pieces[:begin] + piece + pieces[begin + len(piece) :]


def pieces_of(pieces: bytes, length: int) -> Iterator[bytes]:
    """The pieces of all members, by their numbers."""
    return (pieces[begin : begin + length] for begin in range(0, len(pieces), length))


def unsigned(checker: Checker, statement: bytes, signatures: bytes) -> list[int]:
    """The members that have not signed a statement."""
    each = enumerate(pieces_of(signatures, SIGNATURE))
    return [member for member, signature in each if not checker.is_signed(member, statement, signature)]


# ---------------------------------------------------------------- keys for masks


@dataclass(frozen=True)
class MaskKey:
    """A member's private key for the masks of one epoch: made for it and deleted after it, so that nobody who takes the site's folder
    later can lift a mask.
    """

    private: bytes = field(repr=False)

    @property
    def public(self) -> bytes:
        """What the others are given."""
        return public_key_of(self.private)

    def agreed(self, me: int, cards: bytes, run: str, epoch: int, ring: bytes) -> AgreedPairs:
        """The secrets with all others, from their cards; they are bound to the ring file and to all keys."""
        keys = tuple(card[:KEY_BYTES] for card in pieces_of(cards, CARD))
        return AgreedPairs(me, self.private, keys, run, epoch, sha256(ring + b"".join(keys)).digest())

    def card(self, signer: Signer, ring: bytes, epoch: int, name: str) -> bytes:
        """The public key, signed."""
        return self.public + signer.sign(key_statement(ring, epoch, name, self.public))


def without_a_good_card(checker: Checker, cards: bytes, ring: bytes, epoch: int, names: Sequence[str]) -> list[int]:
    """The members whose card is not theirs, or of another ring file."""
    found = []
    for member, (name, card) in enumerate(zip(names, pieces_of(cards, CARD), strict=True)):
        statement = key_statement(ring, epoch, name, card[:KEY_BYTES])
        if not checker.is_signed(member, statement, card[KEY_BYTES:]):
            found.append(member)
    return found
