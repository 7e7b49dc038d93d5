"""Secrets of pairs from real key agreement: no agent, and no seed, knows those of others."""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from types import ModuleType
from typing import Any

import numpy as np

from roundelay.kernels import Integers
from roundelay.kernels.checks import whole_number
from roundelay.kernels.random import Words

KEY_BYTES = 32
CONTEXT = b"roundelay pair secret 3"


def new_private_key() -> bytes:
    """A private key from the operating system, 32 bytes. It never leaves its agent."""
    return _x25519().X25519PrivateKey.generate().private_bytes_raw()


def public_key_of(private_key: bytes) -> bytes:
    """The public key that belongs to a private key: what the other agents are given."""
    _check_key("The private key", private_key)
    return _x25519().X25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()


class BadKeyError(ValueError):
    """A public key with which nobody can agree on a secret; `agents` have it."""

    def __init__(self, sentence: str, *agents: int) -> None:
        super().__init__(sentence)
        self.agents = agents


@dataclass(frozen=True)
class AgreedPairs:
    """The secrets that agent `me` shares with each other agent: X25519, then HKDF-SHA256.

        key_ij = HKDF(X25519(private_i, public_j), info = run, epoch, what it is bound to, the two public keys in order)

    With itself the agent agrees on what nobody else can find from its public key: a secret of its own.

    `public_keys` holds those of all agents in their order. Both ends find the same key without a message; another
    run, another `epoch`, another pair, or another thing that it is `bound` to, such as what the agents have agreed on, has another
    one, and one key tells nothing of the others. The words are the
    stream of AES-256 in counter mode, under a key of the pair's key and the purpose (HMAC-SHA256), from a nonce of the pair's key, the
    purpose, the turn and what the words are about (keyed BLAKE2b), which is safe also where an observer knows what they have masked, and chooses what it is about. Public keys must come over a
    channel that nobody can forge: who can replace them can sit in the middle.
    """

    me: int
    private_key: bytes = field(repr=False)
    public_keys: tuple[bytes, ...]
    run: str
    epoch: int = 0
    bound: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(self, "public_keys", tuple(self.public_keys))
        _check_key("The private key", self.private_key)
        for agent, public in enumerate(self.public_keys):
            _check_key(f"The public key of agent {agent}", public)
        if not 0 <= whole_number("me", self.me) < len(self.public_keys):
            raise ValueError(f"There is no agent {self.me}: there are {len(self.public_keys)} public keys.")
        whole_number("epoch", self.epoch, least=0)
        if len(set(self.public_keys)) < len(self.public_keys):
            twins = next(key for key, count in Counter(self.public_keys).items() if count > 1)
            agents = [agent for agent, key in enumerate(self.public_keys) if key == twins]
            raise BadKeyError("Two agents have the same public key: let each make its own private key.", *agents)
        if public_key_of(self.private_key) != self.public_keys[self.me]:
            raise ValueError(
                f"The private key does not belong to public key {self.me}: give each agent its own, and the keys in one order."
            )

    def key(self, first: int, second: int) -> bytes:
        """The 16 bytes that the two agents share; one of them must be this agent."""
        if self.me not in (first, second):
            raise ValueError(
                f"Agent {self.me} does not know the secret of agents {first} and {second}: only those two do."
            )
        return self._keys[second if first == self.me else first]

    def words(
        self, first: Integers, second: Integers, purpose: int, turns: Integers, count: int, about: bytes = b""
    ) -> Words:
        """Uniform words modulo 2⁶⁴ of each pair, (pairs, count); this agent must be in all of them."""
        zeros, drawn = bytes(8 * count), []
        for i, j, turn in zip(first.tolist(), second.tolist(), np.asarray(turns).tolist(), strict=True):
            places, stream = self._streams.get((i, j, purpose)) or self._open(i, j, purpose)
            place = places.copy()
            place.update(turn.to_bytes(8, "little"))
            place.update(about)
            # 128 bits that nobody can choose without the key: two streams of 2²⁰ blocks meet with a chance of 2⁻¹⁰⁷.
            stream.reset_nonce(place.digest())
            drawn.append(stream.update(zeros))
        whole = drawn[0] if len(drawn) == 1 else b"".join(drawn)
        return np.frombuffer(whole, "<u8").astype(np.uint64, copy=False).reshape(len(drawn), count)

    def _open(self, first: int, second: int, purpose: int) -> tuple[Any, Any]:
        """The stream of a pair for a purpose, and what says where in it the words of a turn begin."""
        name = purpose.to_bytes(8, "little")
        places = blake2b(key=self.key(first, second), digest_size=16, person=name)
        stream = _counter_mode(hmac.digest(self.key(first, second), name, "sha256"))
        self._streams[first, second, purpose] = places, stream
        return places, stream

    @cached_property
    def _streams(self) -> dict[tuple[int, int, int], tuple[Any, Any]]:
        return {}

    @cached_property
    def _keys(self) -> tuple[bytes, ...]:
        return tuple(self._agree(agent, public) for agent, public in enumerate(self.public_keys))

    def _agree(self, agent: int, public: bytes) -> bytes:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        x25519 = _x25519()
        try:
            shared = x25519.X25519PrivateKey.from_private_bytes(self.private_key).exchange(
                x25519.X25519PublicKey.from_public_bytes(public)
            )
        except ValueError:  # a point of low order gives 0 with every private key
            raise BadKeyError(f"The public key of agent {agent} is no good: let it make another one.", agent) from None
        epoch = self.epoch.to_bytes(8, "little")
        info = [CONTEXT, self.run.encode(), epoch, self.bound, *sorted((public, self._own_public))]
        return HKDF(SHA256(), 16, salt=None, info=_with_lengths(info)).derive(shared)

    @property
    def _own_public(self) -> bytes:
        return self.public_keys[self.me]


def _counter_mode(key: bytes) -> Any:
    """AES-256 in counter mode."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()


def _with_lengths(pieces: Sequence[bytes]) -> bytes:
    """The pieces, each after its length, so that no two lists read alike."""
    return b"".join(len(piece).to_bytes(8, "little") + piece for piece in pieces)


def _check_key(what: str, key: bytes) -> None:
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise ValueError(f"{what} is not {KEY_BYTES} bytes: use what new_private_key and public_key_of give.")


def _x25519() -> ModuleType:
    try:
        from cryptography.hazmat.primitives.asymmetric import x25519
    except ImportError:
        raise ImportError(
            "Real key agreement needs the package cryptography: install it by pip install 'roundelay[ring]'."
        ) from None
    return x25519
