"""The paper's own attack (its Figures 4 and 6): one sparse least-squares problem in all agents' x and y."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from roundelay.kernels import Vector
from roundelay.kernels.checks import whole_number
from roundelay.privacy.attacks.setting import Evidence, admm, evidence
from roundelay.privacy.public import Public
from roundelay.transcripts import Seen, Visits

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class System:
    """A·υ = b, where υ holds x, then y, of all agents: each agent's start, then what each of its visits left.

    `first[i]` is the place of agent i's start; its states follow. `hop` has the hop at which each state came to be,
    −1 at the start.
    """

    matrix: scipy.sparse.csr_array
    right: Vector
    first: Integers
    hop: Integers

    def of(self, agent: int) -> slice:
        """Where agent i's states stand."""
        return slice(int(self.first[agent]), int(self.first[agent + 1]))


@dataclass(frozen=True, eq=False)
class SystemEstimate:
    """One coordinate of every agent's x and y, at its start and after each of its visits.

    `iterations` is how many the solver made, `residual` is ‖Aυ − b‖/‖b‖, and `converged` whether the solver says that
    no better υ exists; after 20 iterations it never does.
    """

    system: System
    x: Vector
    y: Vector
    iterations: int
    residual: float
    converged: bool
    words: str

    def of(self, agent: int) -> tuple[Vector, Vector]:
        """x̂ and ŷ of one agent, R + 1 numbers each: row r is after r visits."""
        own = self.system.of(agent)
        return self.x[own], self.y[own]

    def at_every_hop(self, agent: int) -> tuple[Vector, Vector]:
        """x̂ᵏ and ŷᵏ of one agent for k = 0, 1, …, after k hops each: constant between its visits."""
        own = self.system.of(agent)
        hops = int(self.system.hop.max()) + 1
        since = np.searchsorted(self.system.hop[own] + 1, np.arange(hops + 1), side="right") - 1
        return self.x[own][since], self.y[own][since]


def least_squares(seen: Seen, public: Public, coordinate: int, iterations: int | None = 20) -> SystemEstimate:
    """The paper's attack on PI-ADMM1, with γ = 1 for the unknown γ; for the other methods its equations hold as they stand.

        x_i⁰ − y_i⁰/ρ = 0                              for every agent
        x⁺ − ½x = ½(d + z),  y⁺ − y + ρ/2 x = ρ/2 (z − d)    for every hop
        x⁺ = z'                                        for the last N visits
        Σ y_i = 0                                      at the end

    Solved by scipy's lsqr for one `coordinate` of the token. `iterations=20` is the default of the solver in the
    paper; None goes on to convergence. Needs an observer who reads every link.
    """
    whole_number("coordinate", coordinate, least=0)
    if coordinate >= public.dim:
        raise ValueError(f"There is no coordinate {coordinate}: the token has those from 0 to {public.dim - 1}.")
    system = build_system(seen, public, coordinate)
    unknowns = system.matrix.shape[1]
    if iterations is None:
        tight = 10.0 * float(np.finfo(np.float64).eps)
        limit = 50 * unknowns
    else:
        tight, limit = 0.0, whole_number("iterations", iterations, least=1)
    answer = scipy.sparse.linalg.lsqr(system.matrix, system.right, atol=tight, btol=tight, conlim=0.0, iter_lim=limit)
    estimate, stop, made = answer[0], int(answer[1]), int(answer[2])
    gap = system.matrix @ estimate - system.right
    slope = float(np.linalg.norm(system.matrix.T @ gap))
    size = float(np.linalg.norm(system.right))
    residual = float(np.linalg.norm(gap)) / (size if size > 0.0 else 1.0)
    converged = stop not in (3, 7) and slope <= 1e-9 * float(np.linalg.norm(system.matrix.data)) * size
    half = unknowns // 2
    words = f"{system.matrix.shape[0]} equations in {unknowns} unknowns; " + (
        f"the solver converged after {made} iterations."
        if converged
        else f"the solver was stopped after {made} iterations, before it had converged."
    )
    return SystemEstimate(system, estimate[:half], estimate[half:], made, residual, converged, words)


def build_system(seen: Seen, public: Public, coordinate: int) -> System:
    """The sparse system of one coordinate."""
    method = admm(public)
    if method.tokens != 1:
        raise ValueError(f"{method.tokens} tokens go round, but the paper's system is that of one.")
    agents = public.agents
    found = [_of_agent(seen, public, agent) for agent in range(agents)]
    counts = np.array([len(visits) for visits, _ in found])
    first = np.concatenate([[0], np.cumsum(counts + 1)])
    states = int(first[-1])
    places = np.concatenate([first[i] + np.arange(counts[i]) for i in range(agents)])  # the state before each visit
    owned = np.arange(agents)
    hop = np.full(states, -1)
    hop[places + 1] = np.concatenate([visits.hop for visits, _ in found])
    z = np.concatenate([known.z[:, coordinate] for _, known in found if known is not None])
    d = np.concatenate([known.d[:, coordinate] for _, known in found if known is not None])
    sent = np.concatenate([visits.sent[:, coordinate] for visits, _ in found])
    late = np.argsort(hop[places + 1], kind="stable")[-agents:]  # the last N visits of all

    rho, visits = method.rho, len(places)
    rows = _Rows(states)
    starts = rows.new(agents)
    rows.put(starts, x=first[owned], weight=1.0)
    rows.put(starts, y=first[owned], weight=-1.0 / rho)
    primal = rows.new(visits)
    rows.put(primal, x=places + 1, weight=1.0)
    rows.put(primal, x=places, weight=-0.5)
    dual = rows.new(visits)
    rows.put(dual, y=places + 1, weight=1.0)
    rows.put(dual, y=places, weight=-1.0)
    rows.put(dual, x=places, weight=rho / 2.0)
    consensus = rows.new(len(late))
    rows.put(consensus, x=places[late] + 1, weight=1.0)
    balance = rows.new(1)
    rows.put(np.repeat(balance, agents), y=first[owned + 1] - 1, weight=1.0)

    right = np.zeros(rows.count)
    right[primal] = 0.5 * (d + z)
    right[dual] = 0.5 * rho * (z - d)
    right[consensus] = sent[late]
    return System(rows.matrix(), right, first, hop)


def _of_agent(seen: Seen, public: Public, agent: int) -> tuple[Visits, Evidence | None]:
    """One agent's visits, of which it may not have had any yet."""
    visits = seen.visits_of(agent)
    if not visits.complete:
        raise ValueError(
            f"This observer does not see everything of agent {agent}: the system needs an eavesdropper or colluders."
        )
    return visits, evidence(visits, public) if len(visits) else None


class _Rows:
    """Collects the coefficients of equations."""

    def __init__(self, states: int) -> None:
        self.states, self.count = states, 0
        self.entries: list[tuple[Integers, Integers, Vector]] = []

    def new(self, count: int) -> Integers:
        """The numbers of new equations."""
        self.count += count
        return np.arange(self.count - count, self.count)

    def put(self, rows: Integers, *, weight: float, x: Integers | None = None, y: Integers | None = None) -> None:
        """A coefficient of x or of y in each of these equations."""
        columns = x if x is not None else self.states + np.asarray(y)
        self.entries.append((rows, columns, np.full(len(rows), weight)))

    def matrix(self) -> scipy.sparse.csr_array:
        """All of them."""
        rows, columns, weights = (np.concatenate(part) for part in zip(*self.entries, strict=True))
        return scipy.sparse.coo_array((weights, (rows, columns)), shape=(self.count, 2 * self.states)).tocsr()
