"""The arrays of one run of a token method."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roundelay.algorithms.parts.starts import SealedSum
from roundelay.algorithms.slots import Agents
from roundelay.algorithms.token_method import TokenMethod, vectors_of
from roundelay.engine import token_loop
from roundelay.engine.checks import Options, marks_of
from roundelay.engine.drive import steps_of_rows
from roundelay.engine.monitors import Snapshot
from roundelay.engine.result import WINDOW
from roundelay.kernels import Integers, Matrix, Numbers, Vector
from roundelay.links.crossing import LinkStates, now
from roundelay.networks import Network
from roundelay.problems import Problem, composite_optimum, size_of

# A state this many times farther away than anything at the start counts as diverged.
DIVERGENCE = 1e30


@dataclass(frozen=True, eq=False)
class State:
    """What the loop is handed, besides the numbers of the parts and the seed; it changes the arrays in place."""

    method: TokenMethod
    agents: Agents
    trail: token_loop.Trail
    links: Any
    clock: Integers
    gauge: token_loop.Gauge
    log: token_loop.Log
    post: token_loop.Post
    reader: token_loop.Reader
    rule: token_loop.Rule
    optimum: Vector
    sealed: SealedSum | None = None

    def handed(self) -> tuple[Any, ...]:
        """In the order of the loop's arguments."""
        return self.agents, self.trail, self.links, self.clock, self.gauge, self.log, self.post, self.reader, self.rule

    @property
    def step(self) -> int:
        """How many hops have been made."""
        return int(self.clock[token_loop.HOP])

    @property
    def marks(self) -> Integers:
        """The hops at which the history has a row."""
        return self.log.marks

    @property
    def rows(self) -> int:
        """How many rows the history has."""
        return int(self.clock[token_loop.MARK])

    @property
    def seconds(self) -> float:
        """The simulated time."""
        return now(self.links) if isinstance(self.links, LinkStates) else 0.0

    @property
    def mean_token(self) -> Vector:
        """The token; the mean where there are several."""
        tokens = self.trail.tokens
        return tokens[0].copy() if len(tokens) == 1 else tokens.mean(axis=0)

    @property
    def received(self) -> Matrix:
        """The last tokens that the reader received, the oldest first."""
        count, size = int(self.reader.seen[0]), len(self.reader.tokens)
        if count <= size:
            return self.reader.tokens[:count].copy()
        return np.roll(self.reader.tokens, -(count % size), axis=0)

    def snapshot(self) -> Snapshot:
        """The state as the monitors see it."""
        token = self.mean_token
        z = self.method.regulariser.prox(token, self.method.token_scale(len(self.agents.x)))
        return Snapshot(self.agents.x, self.agents.y, token, z, self.agents.share, self.agents.visits)

    def with_room(self, messages: int) -> State:
        """The same state with room for a transcript of so many messages, at least twice as much as before."""
        have = len(self.post.sender)
        if have >= messages:
            return self
        size = max(messages, 2 * have)

        def grown(old: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([old, np.zeros((size - have, *old.shape[1:]), old.dtype)])

        return replace(self, post=token_loop.Post(*(grown(old) for old in self.post)))

    def going_on(self, hops: int) -> State:
        """A copy of the state, with room for the rows of the hops that are to follow."""
        state = copied(self)
        log, rows = state.log, state.rows
        marks = np.append(
            steps_of_rows(self), self.step + marks_of(None, hops - self.step, self.log.tokens.shape[1])[1:]
        )
        grown = (
            np.concatenate([old[:rows], np.zeros((len(marks) + 1 - rows, *old.shape[1:]), old.dtype)])
            for old in log[1:]
        )
        return replace(state, log=token_loop.Log(marks, *grown))

    def write_last_row(self) -> None:
        """The row of the hop at which the run ended, where that was not among the marks."""
        row, x, snapshot = self.rows, self.agents.x, self.snapshot()
        distances = np.linalg.norm(x - self.gauge.optimum, axis=1)
        self.log.units[row] = self.clock[token_loop.UNITS]
        self.log.seconds[row] = self.seconds
        self.log.accuracy[row] = (distances * self.gauge.distances[:, 0]).mean()
        self.log.error[row] = distances.mean()
        self.log.consensus[row] = math.sqrt(((x - snapshot.z) ** 2).sum(axis=1).mean())
        self.log.tokens[row] = snapshot.token
        self.clock[token_loop.MARK] += 1


def new_state(
    method: TokenMethod, problem: Problem, network: Network, seed: int, marks: Integers, options: Options
) -> State:
    """The state before the first hop, with room for a history at `marks`."""
    agents, dim, tokens, cargo = problem.agents, problem.dim, method.tokens, vectors_of(method) - 1
    conditions, tolerance, content = options.conditions, options.tolerance, options.content
    links: Any = Numbers()
    if conditions is not None:
        links = conditions.states(seed, agents, network.neighbours, tokens, 0, dim)
    optimum = np.array(composite_optimum(problem, method.regulariser))
    initial = method.start_states(seed, problem)
    token = np.zeros(dim) if initial.token is None else initial.token
    reference = point_of_reference(optimum)
    first = np.linalg.norm(initial.x - reference, axis=1)
    scale = size_of(problem, reference)
    rows = len(marks) + 1
    return State(
        method,
        Agents(np.array(initial.x), np.array(initial.y), np.array(initial.share), np.zeros(agents, np.int64)),
        token_loop.Trail(
            np.tile(token, (tokens, 1)), np.array(method.walk.first_places(network, seed, tokens), np.int64)
        ),
        links,
        np.array([0, 0, 0, agents], np.int64),  # as if a lap had passed since the last sum: the gauge sums at once
        new_gauge(reference, first),
        token_loop.Log(
            marks,
            np.zeros(rows, np.int64),
            np.zeros(rows),
            np.zeros(rows),
            np.zeros(rows),
            np.zeros(rows),
            np.zeros((rows, dim)),
        ),
        token_loop.Post(
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            np.zeros((0, dim)),
            np.zeros((0, cargo, dim)),
        ),
        token_loop.Reader(options.reader, np.zeros((WINDOW, dim)), np.zeros(1, np.int64)),
        token_loop.Rule(
            -1.0 if tolerance is None else float(tolerance * scale),
            -1.0 if content is None else float(content),
            DIVERGENCE * max(float(first.max()), scale),
            np.full(agents, -1, np.int64),
            np.zeros(2, np.int64),
        ),
        optimum,
        initial.sealed,
    )


def copied(state: Any, known: dict[int, NDArray[Any]] | None = None) -> Any:
    """A state with arrays of its own; those that are parts of one array are so in the copy, too."""
    known = {} if known is None else known
    if isinstance(state, np.ndarray):
        owner = state
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        copy = known.setdefault(id(owner), owner.copy())
        return np.ndarray(state.shape, state.dtype, copy, state.ctypes.data - owner.ctypes.data, state.strides)
    if hasattr(state, "_fields"):
        return type(state)(*(copied(value, known) for value in state))
    if hasattr(state, "handed"):
        return replace(state, **{field.name: copied(getattr(state, field.name), known) for field in fields(state)})
    return state


def point_of_reference(optimum: Vector) -> Vector:
    """What distances are taken from: x*, or the origin where it is not known, and only divergence is to be seen."""
    return optimum if np.isfinite(optimum).all() else np.zeros_like(optimum)


def new_gauge(optimum: Vector, first: Vector) -> token_loop.Gauge:
    """The gauge before the first hop; `first` holds ‖x_i⁰ − x*‖."""
    dim = len(optimum)
    scales = np.column_stack([1.0 / np.where(first > 0.0, first, 1.0), np.zeros(len(first))])
    return token_loop.Gauge(optimum, scales, np.zeros(3), np.zeros(dim), np.zeros(dim))
