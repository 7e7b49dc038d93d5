"""Who may be listening. Every observer also knows what is public: the algorithm, N, and the order of the walk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Integers


class Messages(Protocol):
    """Who sent to whom: a transcript, or a sealed lap."""

    @property
    def sender(self) -> Integers:
        """The sender of each message."""

    @property
    def receiver(self) -> Integers:
        """The receiver of each message."""


class Observer(Protocol):
    """Somebody who sees some of the messages.

    One that is made of agents has `inside = True`: it holds the pads of the links that it sees, where these are masked.
    """

    def sees(self, transcript: Messages) -> NDArray[np.bool_]:
        """One flag a message; a token that an agent keeps crosses no link, so that nobody sees it."""

    def sees_all_of(self, agent: int) -> bool:
        """Whether no message to or from this agent escapes it."""


@dataclass(frozen=True)
class Eavesdropper:
    """Reads every link."""

    def sees(self, transcript: Messages) -> NDArray[np.bool_]:
        """One flag a message."""
        return crossed(transcript)

    def sees_all_of(self, agent: int) -> bool:
        """Nothing escapes it."""
        return True


@dataclass(frozen=True)
class Link:
    """A tap on the link from `sender` to `receiver`, in that direction only."""

    sender: int
    receiver: int

    def sees(self, transcript: Messages) -> NDArray[np.bool_]:
        """One flag a message."""
        return crossed(transcript) & (transcript.sender == self.sender) & (transcript.receiver == self.receiver)

    def sees_all_of(self, agent: int) -> bool:
        """It sees what an agent sends or what it receives, never both."""
        return False


@dataclass(frozen=True)
class Neighbours:
    """Those before and after `agent` pool what they sent to it and received from it."""

    inside: ClassVar[bool] = True
    agent: int

    def sees(self, transcript: Messages) -> NDArray[np.bool_]:
        """One flag a message."""
        return crossed(transcript) & ((transcript.sender == self.agent) | (transcript.receiver == self.agent))

    def sees_all_of(self, agent: int) -> bool:
        """Nothing of their neighbour escapes them."""
        return agent == self.agent


@dataclass(frozen=True)
class Colluders:
    """All agents but `agent` pool what they know. Every message is to or from one of them."""

    inside: ClassVar[bool] = True
    agent: int

    def sees(self, transcript: Messages) -> NDArray[np.bool_]:
        """One flag a message."""
        return crossed(transcript)

    def sees_all_of(self, agent: int) -> bool:
        """Nothing escapes them."""
        return True


def crossed(transcript: Messages) -> NDArray[np.bool_]:
    """Where the token changed hands: on a random walk an agent may keep it."""
    return transcript.sender != transcript.receiver


def holds_pads(observer: Observer) -> bool:
    """Whether the observer is one of the ends of the links that it sees."""
    return bool(getattr(observer, "inside", False))
