"""How much is computed: the whole report, or a quick look at it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """How many seeds the figures and the checks of the theory are made with; the first of them is 0.

    `gossip_share` is the part of its iterations that a gossip method makes, `tuning_share` that of the evaluations.
    """

    name: str
    seeds: int
    theory_seeds: int
    gossip_share: float = 1.0
    tuning_share: float = 1.0

    @property
    def words(self) -> str:
        """The seeds of the figures, in words."""
        return f"seeds 0 to {self.seeds - 1}, each with its own data, network and draws"


FULL = Effort("full", seeds=20, theory_seeds=5)
QUICK = Effort("quick", seeds=3, theory_seeds=1, gossip_share=0.4, tuning_share=0.5)
