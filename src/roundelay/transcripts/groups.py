"""Group hops: agents that hand the token on together, so that outsiders see what they add together only. A warning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roundelay.kernels import Matrix
from roundelay.kernels.checks import whole_number
from roundelay.transcripts.transcript import Transcript


@dataclass(frozen=True, eq=False)
class GroupVisits:
    """What a neighbour of a group sees: in round r its first member received z_r, and its last sent z'_r."""

    members: tuple[int, ...]
    received: Matrix
    sent: Matrix

    def __len__(self) -> int:
        """How many rounds there were."""
        return len(self.sent)

    def increments(self, agents: int) -> Matrix:
        """N(z' − z) = Σ_j d_j: the sum of what the members added."""
        return (self.sent - self.received) * agents


@dataclass(frozen=True)
class GroupHops:
    """`size` consecutive agents of the cycle mask their increments pairwise, so that only their sum leaves the group.

    **This is a warning, not a defence.** It hides from the neighbours of the group, and from a tap outside it, who in
    the group added what. It does not hide the members' functions: every member answers the token like a filter of its
    own, and the sum of `size` such answers over many rounds determines them all (`privacy.attacks.group_sum`: every
    member's H, of two members to about ten digits). Inside the group nothing is hidden from size − 1 colluders. Only
    noise helps.
    """

    size: int

    def __post_init__(self) -> None:
        whole_number("The size of a group", self.size, least=1)

    def groups(self, transcript: Transcript) -> list[tuple[int, ...]]:
        """The agents of the cycle in groups, from the one that has the token first; the last may be smaller."""
        order = self._lap(transcript)
        return [tuple(order[k : k + self.size]) for k in range(0, len(order), self.size)]

    def seen(self, transcript: Transcript, group: int) -> GroupVisits:
        """What is seen of a group from outside."""
        groups = self.groups(transcript)
        if not 0 <= group < len(groups):
            raise ValueError(f"There is no group {group}: the groups are numbered from 0 to {len(groups) - 1}.")
        members, lap = groups[group], sum(map(len, groups))
        entry = group * self.size
        leaving = np.arange(entry + len(members) - 1, len(transcript), lap)
        entering = leaving - len(members)
        start = transcript.sealed.first_token() if transcript.sealed is not None else None
        first = np.zeros(transcript.tokens.shape[1]) if start is None else start
        received = np.where((entering >= 0)[:, None], transcript.tokens[np.maximum(entering, 0)], first)
        return GroupVisits(members, received, transcript.tokens[leaving])

    def _lap(self, transcript: Transcript) -> list[int]:
        sender = transcript.sender
        again = np.flatnonzero(sender[1:] == sender[0])
        lap = int(again[0]) + 1 if len(again) else len(sender)
        order = sender[:lap]
        cyclic = len(set(order.tolist())) == lap and (sender == order[np.arange(len(sender)) % lap]).all()
        if not cyclic or transcript.relayed.any():
            raise ValueError(
                "Groups are made of neighbours on a cycle: use a run on a Hamiltonian cycle, without a frozen lap."
            )
        return [int(agent) for agent in order]
