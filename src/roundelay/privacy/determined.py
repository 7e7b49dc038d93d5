"""What equations determine, by linear algebra: a quantity is determined where no unseen change of the unknowns changes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from roundelay.kernels import Matrix
from roundelay.shown.notebook import View
from roundelay.shown.show import Shown
from roundelay.shown.table import Table

Model = Literal["quadratic", "unknown"]

# Below this part of the largest singular value is rounding.
RANK = 1e-10
# A number that the unknowns move by less than this part counts as determined: nine digits of it are.
TOUCHED = 1e-9


@dataclass(frozen=True)
class Determined:
    """How many of a quantity's numbers the observer's equations determine, of how many."""

    quantity: str
    numbers: int
    of: int

    @property
    def wholly(self) -> bool:
        """All of them."""
        return self.numbers == self.of


@dataclass(frozen=True)
class Identifiable(Shown):
    """What an observer can infer of one agent, whatever it computes: equations, unknowns, rank, and what they determine."""

    equations: int
    unknowns: int
    rank: int
    quantities: tuple[Determined, ...]
    words: str

    def view(self) -> View:
        """How many numbers of each quantity are determined."""
        rows = tuple((one.quantity, f"{one.numbers:,}", f"{one.of:,}") for one in self.quantities)
        return View(self.words, (Table("identifiable", "", ("quantity", "numbers determined", "of"), rows),))

    def __getitem__(self, quantity: str) -> Determined:
        """One quantity: "x", "y", "start", "H" or "g"; of sums "H", "sum of H" and so on."""
        for one in self.quantities:
            if one.quantity == quantity:
                return one
        raise ValueError(
            f"There is no quantity {quantity!r} here: use one of {', '.join(one.quantity for one in self.quantities)}."
        )


def null_space(jacobian: Matrix, unknowns: int) -> tuple[int, Matrix]:
    """The rank, and the directions in which the unknowns may change unseen, one a row."""
    if jacobian.size == 0:
        return 0, np.eye(unknowns)
    scaled = jacobian / np.maximum(np.linalg.norm(jacobian, axis=1, keepdims=True), 1e-300)
    _, sizes, right = np.linalg.svd(scaled)
    rank = int((sizes > RANK * sizes[0]).sum())
    return rank, right[rank:]


def untouched(slopes: Matrix, null: Matrix) -> int:
    """How many of the numbers with these slopes no unseen change of the unknowns changes."""
    if slopes.shape[1] == 0 or len(null) == 0:
        return len(slopes)
    size = np.maximum(np.linalg.norm(slopes, axis=1), 1e-300)
    return int((np.abs(slopes @ null.T).max(axis=1) <= TOUCHED * size).sum())
