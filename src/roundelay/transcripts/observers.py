"""Who may be listening. Every observer also knows what is public: the algorithm, N, and the order of the walk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Integers, Matrix, Vector
from roundelay.transcripts.transcript import Transcript


@dataclass(frozen=True, eq=False)
class Visits:
    """The visits of the token to one agent: in visit r it received z_r and sent z'_r.

    `hop` is the hop at which it sent. `updates` is 1 but on a random walk, where an agent may keep the token for
    several hops and work on it each time. `complete` says whether the observer saw every visit from the first on. A
    token that the agent has not sent on yet is in none of them.

    `share` is the agent's c before the first visit, where no message but what the observer is itself tells it: those who are all
    the other agents know it, as Nz less their own.
    """

    agent: int
    hop: NDArray[np.int64]
    received: Matrix
    sent: Matrix
    updates: NDArray[np.int64]
    complete: bool
    share: Vector | None = None

    def __len__(self) -> int:
        """How many visits there were, R."""
        return len(self.hop)

    @property
    def dim(self) -> int:
        """How many numbers the token has."""
        return self.received.shape[1]

    def increments(self, agents: int, tokens: int = 1) -> Matrix:
        """d_r = N(z'_r − z_r), by how much agent i's share of Nz grew; N/M instead of N where M tokens go round."""
        return (self.sent - self.received) * (agents / tokens)

    def first(self, count: int) -> Visits:
        """The first visits only."""
        return replace(
            self,
            hop=self.hop[:count],
            received=self.received[:count],
            sent=self.sent[:count],
            updates=self.updates[:count],
        )


@dataclass(frozen=True, eq=False)
class Seen:
    """The messages that an observer saw, in order, and nothing else."""

    observer: Observer
    messages: Transcript

    def __len__(self) -> int:
        """How many messages it saw."""
        return len(self.messages)

    def visits_of(self, agent: int, tokens: int = 1) -> Visits:
        """The visits of an agent of which both the token it received and the token it sent were seen.

        The agent that has the token first received the public start: 0, or the total of a sealed lap. What an agent
        only relays is no visit. Where several `tokens` go round, they take turns, and each is followed by itself.
        """
        seen, complete = self.messages, self.observer.sees_all_of(agent)
        hops, received, sent, updates = [], [], [], []
        start = self._first_token()
        held: dict[int, tuple[int, Vector]] = (
            {} if start is None else {turn: (turn - tokens, start) for turn in range(tokens)}
        )
        for row in np.flatnonzero((seen.sender == agent) | (seen.receiver == agent)):
            hop, token = int(seen.hop[row]), seen.tokens[row]
            turn = hop % tokens
            if seen.receiver[row] == agent:
                held[turn] = hop, token
                continue
            since, before = held.pop(turn, (hop, None))
            # After the lap of a frozen token the hop counts on where it was.
            kept = max((hop - since) // tokens, 1)
            # What one who misses messages takes for a token that was kept may have been elsewhere in between.
            if before is not None and not seen.relayed[row] and (complete or kept == 1):
                hops.append(hop)
                received.append(before)
                sent.append(token)
                updates.append(kept)
        shape = (len(hops), seen.tokens.shape[1])
        return Visits(
            agent,
            np.array(hops, np.int64),
            np.array(received, np.float64).reshape(shape),
            np.array(sent, np.float64).reshape(shape),
            np.array(updates, np.int64),
            complete,
        )

    def _first_token(self) -> Vector | None:
        """What the token was before the first hop; None where that escaped the observer."""
        sealed = self.messages.sealed
        return np.zeros(self.messages.tokens.shape[1]) if sealed is None else sealed.first_token()


def seen_by(transcript: Transcript, observer: Observer) -> Seen:
    """What an observer sees of a transcript."""
    if transcript.wire is not None and len(getattr(observer, "honest", ())):
        raise ValueError(
            "Links are masked, so that colluders can't tap those between honest agents: leave `honest` out, or look at the neighbours."
        )
    whole = transcript if holds_pads(observer) else transcript.outside()
    sealed = None if whole.sealed is None else whole.sealed.part(observer.sees(whole.sealed))
    laps = tuple(lap.part(observer.sees(lap)) for lap in whole.laps)
    return Seen(observer, replace(whole.part(observer.sees(whole)), sealed=sealed, laps=laps))


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

    One that is made of agents has `inside = True`: it holds the pads of the links that it sees, where these are masked, and
    says in `members` who of those in a lap it is made of. Its `words`, such as "the eavesdropper", stand for it in sentences.
    """

    def sees(self, transcript: Messages) -> NDArray[np.bool_]:
        """One flag a message; a token that an agent keeps crosses no link, so that nobody sees it."""

    def sees_all_of(self, agent: int) -> bool:
        """Whether no message to or from this agent escapes it."""


@dataclass(frozen=True)
class Eavesdropper:
    """Reads every link."""

    words: ClassVar[str] = "the eavesdropper"

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

    @property
    def words(self) -> str:
        """Which link."""
        return f"a tap on the link from {self.sender} to {self.receiver}"

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
    words: ClassVar[str] = "its neighbours"
    agent: int

    def members(self, transcript: Messages) -> frozenset[int]:
        """Those who hand over to the agent, and those it hands over to."""
        before = transcript.sender[transcript.receiver == self.agent].tolist()
        return frozenset([*before, *transcript.receiver[transcript.sender == self.agent].tolist()]) - {self.agent}

    def sees(self, transcript: Messages) -> NDArray[np.bool_]:
        """One flag a message."""
        return crossed(transcript) & ((transcript.sender == self.agent) | (transcript.receiver == self.agent))

    def sees_all_of(self, agent: int) -> bool:
        """Nothing of their neighbour escapes them."""
        return agent == self.agent


@dataclass(frozen=True)
class Colluders:
    """All agents but `agent` pool what they know; with `honest`, all but `agent` and these, who tap the links between them too.

    On masked links there is no such tap: then nobody else may be honest.
    """

    inside: ClassVar[bool] = True
    agent: int
    honest: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        """Who they are."""
        return f"all other agents but {_listed(self.honest)} together" if self.honest else "all other agents together"

    def members(self, transcript: Messages) -> frozenset[int]:
        """Everybody else who is in the lap."""
        return frozenset(transcript.sender.tolist()) - {self.agent, *self.honest}

    def sees(self, transcript: Messages) -> NDArray[np.bool_]:
        """One flag a message."""
        return crossed(transcript)

    def sees_all_of(self, agent: int) -> bool:
        """Nothing escapes them."""
        return True


def observer_of(observer: str | Observer, agent: int) -> Observer:
    """The observer that is meant, of this agent."""
    if observer == "eavesdropper":
        return Eavesdropper()
    if observer == "neighbours":
        return Neighbours(agent)
    if observer == "colluders":
        return Colluders(agent)
    if isinstance(observer, str) or not hasattr(observer, "sees"):
        raise ValueError(
            f'There is no observer {observer!r}: use "eavesdropper", "neighbours", "colluders", or an observer such as Link(3, 4).'
        )
    return observer


def words_of(observer: Observer) -> str:
    """The observer as the subject or object of a sentence."""
    return str(getattr(observer, "words", type(observer).__name__))


def members_of(observer: Observer, transcript: Messages) -> frozenset[int]:
    """The agents that an observer is made of; nobody, where it only listens."""
    members = getattr(observer, "members", None)
    return frozenset() if members is None else members(transcript)


def _listed(agents: tuple[int, ...]) -> str:
    return ", ".join(map(str, agents))


def crossed(transcript: Messages) -> NDArray[np.bool_]:
    """Where the token changed hands: on a random walk an agent may keep it."""
    return transcript.sender != transcript.receiver


def holds_pads(observer: Observer) -> bool:
    """Whether the observer is one of the ends of the links that it sees."""
    return bool(getattr(observer, "inside", False))
