"""Run a gossip method: all that such a run holds, its iterations, and what is left of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roundelay.algorithms.gossip import GossipMethod
from roundelay.algorithms.gossip.mixing import MixingNumbers
from roundelay.engine import gossip_loop
from roundelay.engine.assemble import gossip_assembly
from roundelay.engine.checks import Options, check_gossip, check_reader, check_tolerance, marks_of, steps_of
from roundelay.engine.drive import Driver, Request, deferred_interrupt, steps_of_rows
from roundelay.engine.monitors import Snapshot
from roundelay.engine.result import HistoryRows, Run, StopKind, bytes_a_message, outcome_in_words
from roundelay.engine.state import DIVERGENCE, copied, new_gauge, point_of_reference
from roundelay.engine.token_loop import Gauge
from roundelay.kernels import Integers, Matrix, Numbers, Vector
from roundelay.links.crossing import LinkStates, now
from roundelay.networks import Network
from roundelay.problems import Problem, size_of


def run_gossip(request: Request, begun: GossipState | None = None) -> Run:
    """Make the iterations until there is a reason to stop, and what is left of them; from a state that has `begun`, the rest of them."""
    method: GossipMethod = request.method
    problem, network, options, name = request.problem, request.network, request.options, request.name
    iterations = steps_of(options, "iterations", name)
    check_gossip(options, method, name)
    check_reader(options.reader, problem.agents)
    check_tolerance(options.tolerance, request.problem)
    marks, mixing = marks_of(options.record, iterations, problem.dim), method.mixing.numbers(network)

    assembly = gossip_assembly(method, problem, network, mixing, options.conditions)
    driver = Driver(assembly, request, iterations, "iterations")
    state = (
        new_gossip_state(method, problem, network, mixing, request.seed, marks, options)
        if begun is None
        else begun.going_on(iterations)
    )
    stop: StopKind | None = None
    with driver.under_way():
        while stop is None:
            status = driver.advance(state, driver.until(state))
            stop = driver.reason_to_stop(state, status)
    driver.write_last_row(state)

    rows = _history_rows(state, driver.columns).against(problem.optimum)
    return Run(
        algorithm=request.algorithm,
        seed=request.seed,
        engine=driver.prepared.engine,
        engine_reason=driver.prepared.reason,
        outcome=outcome_in_words(stop, state.step, "iteration", options.tolerance),
        stop=stop,
        steps=state.step,
        units=rows.units[-1].item(),
        estimate=rows.tokens[-1],
        x=state.states.x,
        y=state.multipliers,
        optimum=np.array(problem.optimum),
        record=rows,
        conditions=options.conditions,
        problem=problem,
        resume=None if options.monitors else partial(_resumed, request, state),
    )


def _resumed(request: Request, state: GossipState, steps: int) -> Run:
    with deferred_interrupt() as interrupt:
        more = replace(request.options, iterations=state.step + steps, record=None)
        return run_gossip(replace(request, options=more, interrupt=interrupt), state)


# ---------------------------------------------------------------- all that it holds


@dataclass(frozen=True, eq=False)
class GossipState:
    """What the loop is handed, besides the numbers of the parts and the seed; it changes the arrays in place."""

    states: Any
    mail: gossip_loop.Mail
    links: Any
    clock: Integers
    gauge: Gauge
    log: gossip_loop.GossipLog
    rule: gossip_loop.GossipRule

    def handed(self) -> tuple[Any, ...]:
        """In the order of the loop's arguments."""
        return self.states, self.mail, self.links, self.clock, self.gauge, self.log, self.rule

    @property
    def step(self) -> int:
        """How many iterations have been made."""
        return int(self.clock[gossip_loop.ITERATION])

    @property
    def rows(self) -> int:
        """How many rows the history has."""
        return int(self.clock[gossip_loop.MARK])

    @property
    def marks(self) -> Integers:
        """The iterations at which the history has a row."""
        return self.log.marks

    @property
    def seconds(self) -> float:
        """The simulated time."""
        return now(self.links) if isinstance(self.links, LinkStates) else 0.0

    @property
    def multipliers(self) -> Matrix:
        """The states that a method calls y; 0 where it has none."""
        return self.states.y if hasattr(self.states, "y") else np.zeros_like(self.states.x)

    def snapshot(self) -> Snapshot:
        """The state as the monitors see it: in place of a token stands the mean of the x_i."""
        mean = self.states.x.mean(axis=0)
        return Snapshot(self.states.x, self.multipliers, mean, mean)

    def going_on(self, iterations: int) -> GossipState:
        """A copy of the state, with room for the rows of the iterations that are to follow."""
        state = copied(self)
        log, rows = state.log, state.rows
        marks = np.append(
            steps_of_rows(self), self.step + marks_of(None, iterations - self.step, self.log.means.shape[1])[1:]
        )
        grown = (
            np.concatenate([old[:rows], np.zeros((len(marks) + 1 - rows, *old.shape[1:]), old.dtype)])
            for old in log[1:]
        )
        return replace(state, log=gossip_loop.GossipLog(marks, *grown))

    def write_last_row(self) -> None:
        """The row of the iteration at which the run ended, where that was not among the marks."""
        row, x, log = self.rows, self.states.x, self.log
        distances = np.linalg.norm(x - self.gauge.optimum, axis=1)
        mean = x.mean(axis=0)
        log.numbers[row], log.bits[row] = self.clock[gossip_loop.NUMBERS], self.clock[gossip_loop.BITS]
        log.seconds[row] = self.seconds
        log.accuracy[row] = (distances * self.gauge.distances[:, 0]).mean()
        log.error[row] = distances.mean()
        log.consensus[row] = math.sqrt(((x - mean) ** 2).sum(axis=1).mean())
        log.means[row] = mean
        self.clock[gossip_loop.MARK] += 1


def new_gossip_state(
    method: GossipMethod,
    problem: Problem,
    network: Network,
    mixing: MixingNumbers,
    seed: int,
    marks: Integers,
    options: Options,
) -> GossipState:
    """The state before the first iteration, with room for a history at `marks`."""
    agents, dim, vectors, rows = problem.agents, problem.dim, method.vectors, len(marks) + 1
    states, optimum = method.start_states(problem, network, seed), problem.optimum
    if options.own_starts is not None:
        states.x[:] = options.own_starts
    reference = point_of_reference(optimum)
    first = np.linalg.norm(states.x - reference, axis=1)
    scale = size_of(problem, reference)
    conditions, tolerance = options.conditions, options.tolerance
    links: Any = Numbers()
    posted = np.zeros((agents, vectors, dim))
    before = np.zeros_like(posted)
    if conditions is not None:
        links = conditions.states(seed, agents, mixing.neighbours, 0, vectors, dim)
        if conditions.replaces:
            posted = np.zeros((2 * agents + len(mixing.neighbours), vectors, dim))
            before = posted[agents : 2 * agents]
    return GossipState(
        states,
        gossip_loop.Mail(
            posted,
            before,
            np.zeros((agents, vectors, dim)),
            np.zeros((vectors, dim)),
            np.zeros(agents, np.uint8),
            np.zeros(agents, np.uint8),
            np.zeros(agents, np.int64),
            np.zeros(agents, np.int64),
        ),
        links,
        np.zeros(4, np.int64),
        new_gauge(reference, first),
        gossip_loop.GossipLog(
            marks,
            np.zeros(rows, np.int64),
            np.zeros(rows, np.int64),
            np.zeros(rows),
            np.zeros(rows),
            np.zeros(rows),
            np.zeros(rows),
            np.zeros((rows, dim)),
        ),
        gossip_loop.GossipRule(
            -1.0 if tolerance is None else float(tolerance * scale), DIVERGENCE * max(float(first.max()), scale)
        ),
    )


# ---------------------------------------------------------------- what is made of a run that has ended


def _history_rows(state: GossipState, monitors: dict[str, Vector]) -> HistoryRows:
    """The rows of the history."""
    log, rows, dim = state.log, state.rows, state.log.means.shape[1]
    numbers, bits = log.numbers[:rows], log.bits[:rows]
    # As the literature counts: a number of a quantised message is worth 32 bits. On the wire a number takes 64.
    units: NDArray[Any] = numbers // dim if not (bits.any() or (numbers % dim).any()) else (numbers + bits / 32.0) / dim
    return HistoryRows(
        steps_of_rows(state),
        units,
        numbers * bytes_a_message(1) + -(-bits // 8),
        log.seconds[:rows].copy(),
        log.accuracy[:rows].copy(),
        log.error[:rows].copy(),
        log.consensus[:rows].copy(),
        log.means[:rows].copy(),
        monitors,
    )
