"""What a site brings to the ring: its own function, and the sums that are needed before it is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from roundelay.kernels import Vector
from roundelay.problems import OwnProblem


class Local(Protocol):
    """A site's own part.

    `sums` says how many numbers each sum has that all sites form before the fit, under masks: statistics of the data,
    for instance. `told` has the totals so far, each after the number of sites that were summed. `repeatable` says that the
    function gives the same bits when it is asked again, also in another process, and `digest` tells other data apart.
    """

    @property
    def digest(self) -> str:
        """What is different for other data; empty where that is not known."""

    @property
    def repeatable(self) -> bool:
        """Whether the function gives the same bits when it is asked again."""

    @property
    def sums(self) -> tuple[int, ...]:
        """How many numbers each sum has."""

    def summand(self, told: tuple[Vector, ...]) -> Vector:
        """What this site adds to the next sum."""

    def problem(self, told: tuple[Vector, ...]) -> OwnProblem:
        """The site's own function, once all sums are known."""


@dataclass(frozen=True, eq=False)
class Known:
    """A function that needs no sums."""

    function: OwnProblem
    sums: tuple[int, ...] = ()
    repeatable: bool = True
    digest: str = ""

    def summand(self, told: tuple[Vector, ...]) -> Vector:
        """There are no sums."""
        raise ValueError("This site has nothing to sum before the fit.")

    def problem(self, told: tuple[Vector, ...]) -> OwnProblem:
        """The function itself."""
        return self.function
