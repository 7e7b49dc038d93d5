"""Quantities of theory, evaluated on request wherever the history has a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from roundelay.algorithms.token_method import TokenMethod, has_shares
from roundelay.kernels import Integers, Matrix, Vector
from roundelay.problems import Problem


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of a run after some hop; z is the mean token, after the prox of the regulariser.

    `share` holds the c_i of a token method.
    `visits` is how often each agent has worked on a token; None in a gossip method.
    """

    x: Matrix
    y: Matrix
    token: Vector
    z: Vector
    share: Matrix | None = None
    visits: Integers | None = None


class Monitor(Protocol):
    """Something to watch: named columns of the history."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""

    def refusal(self, method: TokenMethod) -> str:
        """Why it means nothing for this method, or nothing where it does."""

    def measure(self, problem: Problem, method: TokenMethod, snapshot: Snapshot) -> tuple[float, ...]:
        """One number for each column."""


@dataclass(frozen=True)
class AugmentedLagrangian:
    """L_ρ = Σ f_i(x_i) + ⟨y_i, z − x_i⟩ + ρ/2 ‖z − x_i‖², for methods of the ADMM family."""

    columns: tuple[str, ...] = ("augmented_lagrangian",)

    def refusal(self, method: TokenMethod) -> str:
        """It needs ρ and multipliers."""
        return (
            ""
            if has_shares(method)
            else "this augmented Lagrangian is that of a token and its agents, which incremental ADMM has"
        )

    def measure(self, problem: Problem, method: TokenMethod, snapshot: Snapshot) -> tuple[float, ...]:
        """L_ρ."""
        assert has_shares(method)
        gap = snapshot.z - snapshot.x
        coupling = (snapshot.y * gap).sum() + 0.5 * method.rho * (gap**2).sum()
        return (float(problem.values(snapshot.x).sum() + coupling + method.regulariser.value(snapshot.z)),)


@dataclass(frozen=True)
class KKTResiduals:
    """How far the KKT conditions of the paper are from holding.

    `kkt_gradient` is max ‖∇f_i(x_i) − y_i‖, `kkt_multipliers` is ‖Σ y_i‖ and `kkt_consensus` is max ‖z − x_i‖.
    """

    columns: tuple[str, ...] = ("kkt_gradient", "kkt_multipliers", "kkt_consensus")

    def refusal(self, method: TokenMethod) -> str:
        """It needs multipliers."""
        return (
            ""
            if has_shares(method)
            else "these KKT residuals are those of a token and its agents, which incremental ADMM has"
        )

    def measure(self, problem: Problem, method: TokenMethod, snapshot: Snapshot) -> tuple[float, ...]:
        """The three residuals; without gradients the first is not a number."""
        slopes = problem.gradients(snapshot.x) if problem.has_gradients else np.nan
        gradient_gap = np.linalg.norm(slopes - snapshot.y, axis=1).max()
        # With a regulariser Σ y_i need not vanish; it must lie in the subgradient of −r instead.
        multipliers = np.linalg.norm(_outside_subgradient(method, snapshot.z, -snapshot.y.sum(axis=0)))
        consensus = np.linalg.norm(snapshot.z - snapshot.x, axis=1).max()
        return float(gradient_gap), float(multipliers), float(consensus)


def _outside_subgradient(method: TokenMethod, z: Vector, slope: Vector) -> Vector:
    """How far `slope` is from a subgradient of r at z: z − prox_r(z + slope), which vanishes for one."""
    return method.regulariser.prox(z + slope, 1.0) - z


@dataclass(frozen=True)
class Invariant:
    """How far the mean token is from what the states say it must be, as a norm.

    That is the mean of s_i = x_i − y_i/ρ in the ADMM family. Under a defence an agent adds noise or rounds what it
    sends, and takes it back at its next visit: there the token is the mean of the shares c_i, and it is from that
    mean that the distance is taken.
    """

    columns: tuple[str, ...] = ("invariant",)

    def refusal(self, method: TokenMethod) -> str:
        """It needs an invariant."""
        invariant = getattr(method, "mean_token", None)
        known = invariant is not None and invariant(np.zeros((1, 1)), np.zeros((1, 1))) is not None
        return "" if known else "this method keeps no invariant"

    def measure(self, problem: Problem, method: TokenMethod, snapshot: Snapshot) -> tuple[float, ...]:
        """‖token − what it must be‖."""
        expected = method.mean_token(snapshot.x, snapshot.y)
        if has_shares(method) and not method.shares_are_states:
            assert snapshot.share is not None
            expected = snapshot.share.mean(axis=0)
        assert expected is not None
        return (float(np.linalg.norm(snapshot.token - expected)),)
