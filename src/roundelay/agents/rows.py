"""A site that brings rows of data: the sums before the fit, its own function, and the model in the end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np

from roundelay.agents.data import Table
from roundelay.agents.fitting import own_problem
from roundelay.agents.plan import Task
from roundelay.agents.statistics import Standard, first_moments, means_of, second_moments, standard_of
from roundelay.kernels import Vector
from roundelay.problems import OwnProblem


def sums_of(task: Task) -> tuple[int, ...]:
    """n, Σx of each feature and Σt; then Σ(x − mean)² of each feature and of the target. Without columns no sums."""
    features = len(task.features)
    return () if task.kind == "custom" else (features + 2, features + 1)


@dataclass(frozen=True, eq=False)
class OwnRows:
    """The rows of one site, standardised by what all sites sum under masks: first the moments, then the spreads."""

    task: Task
    table: Table
    repeatable: bool = True

    @cached_property
    def digest(self) -> str:
        """A hash of all rows."""
        rows = np.column_stack([self.table.features, self.table.target])
        return sha256(repr(rows.shape).encode() + rows.astype("<f8").tobytes()).hexdigest()

    @property
    def sums(self) -> tuple[int, ...]:
        """How many numbers each sum has."""
        return sums_of(self.task)

    def summand(self, told: tuple[Vector, ...]) -> Vector:
        """This site's part of the next sum."""
        if not told:
            return first_moments(self.table)
        return second_moments(self.table, means_of(told[0][1:]))

    def problem(self, told: tuple[Vector, ...]) -> OwnProblem:
        """The site's own function: a common factor keeps the curvature near 1, that of the sites that were summed."""
        return own_problem(self.task, self.table, self.standard(told), agents=round(told[0][0]))

    def standard(self, told: tuple[Vector, ...]) -> Standard:
        """The statistics of all rows of all sites."""
        names = [str(column) for column in self.task.features]
        return standard_of(told[0][1:], told[1][1:], names, self.task.standardise)
