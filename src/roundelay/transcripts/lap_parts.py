"""What an observer holds of one agent's part in sealed laps: the words around it, the masks that he can lift, and the total.

Whoever sees the words that enter an agent and those that leave it knows their difference, encode(answer) + mask. The mask is
a sum over pairs. An observer that is made of agents knows the words of each pair that one of them is in, and can take them
away; the words of pairs of two others are uniform to him. He knows the total too, and what his own agents added to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roundelay.kernels import Vector
from roundelay.kernels.random import Words
from roundelay.masks import Grid, PairSecrets, my_seal, seal_with
from roundelay.transcripts.observers import Observer, members_of
from roundelay.transcripts.transcript import SealedLap, Transcript


@dataclass(frozen=True, eq=False)
class LapPart:
    """One agent's part in one lap.

    `kind` and `told` are the question, which is public. `words` is what the agent added, without the masks that the observer
    could lift; None where he did not see it enter and leave. `rest` is the sum of the answers of all `honest` agents, those
    that he is not made of: the total without his own; None where he does not know it.
    """

    kind: int
    told: Vector
    grid: Grid
    words: Words | None
    rest: Vector | None


@dataclass(frozen=True, eq=False)
class LapParts:
    """One agent's part in all laps, as an observer holds it.

    `honest` counts the agents that the observer is not made of, this one among them; `masks` how many of this agent's masks
    he can't lift, 0 where there are none.
    """

    agent: int
    laps: tuple[LapPart, ...]
    honest: int
    masks: int

    def __len__(self) -> int:
        """How many laps there were."""
        return len(self.laps)


def added_by(lap: SealedLap, agent: int) -> Words | None:
    """What left an agent minus what entered it, where it first met the lap; None where one of the two is missing."""
    sent = np.flatnonzero(lap.sender == agent)
    if not len(sent):
        return None
    row, place = int(sent[0]), int(lap.place[sent[0]])
    if place == 0:
        return lap.words[row]
    entered = np.flatnonzero((lap.place == place - 1) & (lap.receiver == agent))
    return lap.grid.add(lap.words[row], lap.grid.negative(lap.words[entered[0]])) if len(entered) else None


def answer_in(lap: SealedLap, agent: int, secrets: PairSecrets | None, turn: int) -> Vector:
    """What an agent answered, on the grid: whoever has all its masks can open it."""
    return lap.grid.decode(_opened(lap, agent, secrets, turn))


def parts_of_laps(transcript: Transcript, observer: Observer, agent: int, secrets: PairSecrets | None) -> LapParts:
    """What an observer holds of an agent's part; `secrets` are needed for one that is made of agents."""
    seen = transcript.seen_by(observer).messages
    members: frozenset[int] = members_of(observer, transcript.laps[0]) if transcript.laps else frozenset()
    masked = any(lap.masked for lap in transcript.laps)
    if masked and members and secrets is None:
        raise ValueError(
            "A transcript alone does not have the masks that agents share with each other: audit the run itself, or what the "
            "eavesdropper or a tap on a link learned."
        )
    laps = tuple(
        _part(whole, part, members, agent, secrets, turn)
        for turn, (whole, part) in enumerate(zip(transcript.laps, seen.laps, strict=True))
    )
    agents = transcript.laps[0].agents if transcript.laps else 1
    honest = agents - len(members)
    return LapParts(agent, laps, honest, honest - 1 if masked else 0)


def _part(
    whole: SealedLap, seen: SealedLap, members: frozenset[int], agent: int, secrets: PairSecrets | None, turn: int
) -> LapPart:
    grid, words = whole.grid, added_by(seen, agent)
    if words is not None and whole.masked and members and secrets is not None:
        mask = seal_with(secrets, agent, np.array(sorted(members)), _numbers(whole), turn, grid)
        words = grid.add(words, grid.negative(mask))
    # Members are told the totals in the end; others must have seen the last message.
    last = np.flatnonzero((whole if members else seen).place == whole.length - 1)
    if not len(last):
        return LapPart(whole.kind, whole.told, grid, words, None)
    rest = (whole if members else seen).words[last[0]]
    for member in members:  # what they answered themselves
        rest = grid.add(rest, grid.negative(_opened(whole, member, secrets, turn)))
    return LapPart(whole.kind, whole.told, grid, words, grid.decode(rest))


def _opened(lap: SealedLap, agent: int, secrets: PairSecrets | None, turn: int) -> Words:
    words = added_by(lap, agent)
    if words is None or (lap.masked and secrets is None):
        raise ValueError(f"What agent {agent} added can't be opened: the whole transcript is needed, and its masks.")
    if not lap.masked or secrets is None:
        return words
    return lap.grid.add(words, lap.grid.negative(my_seal(secrets, agent, lap.agents, _numbers(lap), turn, lap.grid)))


def _numbers(lap: SealedLap) -> int:
    return lap.words.shape[1] // lap.grid.words
