"""Who may be listening. Every observer also knows what is public: the algorithm, N, and the order of the walk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.transcripts.transcript import Transcript


class Observer(Protocol):
    """Somebody who sees some of the messages."""

    def sees(self, transcript: Transcript) -> NDArray[np.bool_]:
        """One flag a message; a token that an agent keeps crosses no link, so that nobody sees it."""

    def sees_all_of(self, agent: int) -> bool:
        """Whether no message to or from this agent escapes it."""


@dataclass(frozen=True)
class Eavesdropper:
    """Reads every link."""

    def sees(self, transcript: Transcript) -> NDArray[np.bool_]:
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

    def sees(self, transcript: Transcript) -> NDArray[np.bool_]:
        """One flag a message."""
        return crossed(transcript) & (transcript.sender == self.sender) & (transcript.receiver == self.receiver)

    def sees_all_of(self, agent: int) -> bool:
        """It sees what an agent sends or what it receives, never both."""
        return False


@dataclass(frozen=True)
class Neighbours:
    """Those before and after `agent` pool what they sent to it and received from it."""

    agent: int

    def sees(self, transcript: Transcript) -> NDArray[np.bool_]:
        """One flag a message."""
        return crossed(transcript) & ((transcript.sender == self.agent) | (transcript.receiver == self.agent))

    def sees_all_of(self, agent: int) -> bool:
        """Nothing of their neighbour escapes them."""
        return agent == self.agent


@dataclass(frozen=True)
class Colluders:
    """All agents but `agent` pool what they know. Every message is to or from one of them."""

    agent: int

    def sees(self, transcript: Transcript) -> NDArray[np.bool_]:
        """One flag a message."""
        return crossed(transcript)

    def sees_all_of(self, agent: int) -> bool:
        """Nothing escapes them."""
        return True


def crossed(transcript: Transcript) -> NDArray[np.bool_]:
    """Where the token changed hands: on a random walk an agent may keep it."""
    return transcript.sender != transcript.receiver
