"""How much is computed: the whole report, or a quick look at it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """How many seeds the figures and the checks of the theory are made with; the first of them is 0."""

    name: str
    seeds: int
    theory_seeds: int

    @property
    def words(self) -> str:
        """The seeds of the figures, in words."""
        return f"seeds 0 to {self.seeds - 1}, each with its own data, network and draws"


FULL = Effort("full", seeds=20, theory_seeds=5)
QUICK = Effort("quick", seeds=3, theory_seeds=1)
