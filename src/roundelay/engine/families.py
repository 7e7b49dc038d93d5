"""One algorithm on one problem, run as its family asks for: tokens, gossip, or the one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from roundelay.algorithms.gossip import GossipMethod
from roundelay.algorithms.token_method import TokenMethod, vectors_of
from roundelay.engine import token_loop as loop
from roundelay.engine.assemble import Assembly, CannotCompileError, Prepared, gossip_assembly, prepare, token_assembly
from roundelay.engine.checks import (
    Options,
    check_balance,
    check_budget,
    check_gossip,
    check_monitors,
    check_reader,
    check_stopping,
    check_tolerance,
    check_words,
    hops_within,
    marks_of,
    marks_up_to,
    name_of,
    steps_of,
    the_method,
)
from roundelay.engine.drive import Course, Interrupt, Report, all_confirm, drive
from roundelay.engine.gossip_state import GossipState, new_gossip_state
from roundelay.engine.laps import cost_of_lap, first_agent, lap_from, with_words
from roundelay.engine.one_pass import run_one_pass
from roundelay.engine.result import Journey, Run
from roundelay.engine.results import (
    gossip_record_of,
    next_moves,
    outcome_in_words,
    received_by_reader,
    record_of,
    transcript_of,
)
from roundelay.engine.state import State, new_state
from roundelay.networks import Network
from roundelay.networks.walks import Cycle
from roundelay.problems import Problem, composite_optimum


def run_algorithm(
    algorithm: Any,
    problem: Problem,
    network: Network,
    seed: int,
    options: Options,
    progress: Report | bool,
    interrupt: Interrupt,
) -> Run:
    """Run the algorithm as its family asks for."""
    algorithm, method = the_method(algorithm, problem, network)
    check_monitors(options.monitors, method, name_of(algorithm))
    check_budget(options, method, problem, name_of(algorithm))
    if hasattr(method, "mixing"):
        return _run_gossip(algorithm, method, problem, network, seed, options, progress, interrupt)
    if hasattr(method, "walk"):
        return _run_token(algorithm, method, problem, network, seed, options, progress, interrupt)
    return run_one_pass(algorithm, problem, network, seed, options)


def _run_by(
    assembly: Assembly, options: Options, run: Callable[[Prepared], Course[Any]]
) -> tuple[Prepared, Course[Any]]:
    """Run by the engine that was asked for; where it was left open, by Python what turns out not to compile."""
    prepared = prepare(assembly, options.engine)
    try:
        return prepared, run(prepared)
    except CannotCompileError as error:  # found out when compiling, before the first step
        if options.engine != "auto":
            raise
        plain = replace(prepare(assembly, "python"), reason=str(error))
        return plain, run(plain)


def _run_token(
    algorithm: Any,
    method: TokenMethod,
    problem: Problem,
    network: Network,
    seed: int,
    options: Options,
    progress: Report | bool,
    interrupt: Interrupt,
) -> Run:
    name, tolerance, content, conditions = name_of(algorithm), options.tolerance, options.content, options.conditions
    asked = steps_of(options, "hops", name)
    check_reader(options.reader, problem.agents)
    check_stopping(tolerance, content, method, problem, name, 0.0 if conditions is None else conditions.noise)
    hops, too_far = hops_within(options.budget, method, problem, network, seed, asked)
    marks = marks_up_to(hops, marks_of(options.record, asked))
    optimum = np.array(composite_optimum(problem, method.regulariser))
    last_lap = len(network.tour().order) if content is not None else 0
    wire = getattr(getattr(method, "defence", None), "wire", None)
    frozen: list[int] = []

    def run(prepared: Prepared) -> Course[State]:
        state = new_state(
            method, problem, network, seed, optimum, marks, tolerance, content, options.reader, conditions
        )
        check_words(state.sealed is not None, wire is not None, 0.0 if conditions is None else conditions.noise, name)
        if content is not None:
            check_balance(state.agents.share, state.mean_token, name)
        if state.sealed is not None:
            first_lap = lap_from(network, first_agent(method.walk, network, seed))
            state.clock[loop.UNITS] += cost_of_lap(prepared, state.links, first_lap, seed, 0, working=True)

        def before(state: State, until: int) -> State:
            return state.with_room(until) if options.transcript else state

        def confirm(state: State) -> bool:
            frozen.append(state.step)
            tour = lap_from(network, int(network.tour().order[0]))
            state.clock[loop.UNITS] += cost_of_lap(prepared, state.links, tour, seed, len(frozen), working=False)
            confirmed = all_confirm(state, prepared)
            if not confirmed:
                state.rule.tally[:] = state.rule.tally[0] + 1, 0
            return confirmed

        return drive(
            state, prepared, problem, seed, hops, "budget" if too_far else "hops", options.monitors, progress, name,
            interrupt, before, confirm,
        )  # fmt: skip

    prepared, course = _run_by(token_assembly(method, problem, network, conditions), options, run)
    state: State = course.state
    following = next_moves(state, method.walk.part(network), seed)
    # So far the messages that are still under way were counted at a unit a vector.
    state.clock[loop.UNITS] += vectors_of(method) * sum(move.cost - 1 for move in following)
    token, scale = state.mean_token, float(method.token_scale(problem.agents))
    on_tour, undisturbed = isinstance(method.walk, Cycle), conditions is None or conditions.noise == 0.0
    transcript = None
    if options.transcript:
        first_lap = lap_from(network, first_agent(method.walk, network, seed))
        plain = transcript_of(state, frozen, following, network)
        transcript = with_words(plain, first_lap, state.sealed, wire, seed)
    return Run(
        algorithm=algorithm,
        seed=seed,
        engine=prepared.engine,
        engine_reason=prepared.reason,
        outcome=outcome_in_words(course.stop, state.step, "hop", tolerance, content, last_lap, too_far),
        stop=course.stop,
        steps=state.step,
        units=int(state.clock[loop.UNITS]),
        estimate=method.regulariser.prox(token, scale),
        x=state.agents.x,
        y=state.agents.y,
        optimum=optimum,
        record=record_of(state, course.watched, options.monitors),
        journey=Journey(
            state.trail.tokens,
            state.agents.visits,
            network.tour().words if on_tour else "",
            received_by_reader(state, following),
            options.reader,
            on_tour and undisturbed and method.mean_token(state.agents.x, state.agents.y) is not None,
            scale,
        ),
        transcript=transcript,
        conditions=conditions,
        problem=problem,
        regulariser=method.regulariser,
    )


def _run_gossip(
    algorithm: Any,
    method: GossipMethod,
    problem: Problem,
    network: Network,
    seed: int,
    options: Options,
    progress: Report | bool,
    interrupt: Interrupt,
) -> Run:
    name, tolerance, conditions = name_of(algorithm), options.tolerance, options.conditions
    iterations = steps_of(options, "iterations", name)
    check_gossip(options, method, name)
    check_reader(options.reader, problem.agents)
    check_tolerance(tolerance)
    marks, mixing, optimum = marks_of(options.record, iterations), method.mixing.numbers(network), problem.optimum

    def run(prepared: Prepared) -> Course[GossipState]:
        state = new_gossip_state(method, problem, network, mixing, seed, optimum, marks, tolerance, conditions)
        return drive(
            state, prepared, problem, seed, iterations, "iterations", options.monitors, progress, name, interrupt
        )

    prepared, course = _run_by(gossip_assembly(method, problem, network, mixing, conditions), options, run)
    state: GossipState = course.state
    record = gossip_record_of(state, course.watched, options.monitors)
    return Run(
        algorithm=algorithm,
        seed=seed,
        engine=prepared.engine,
        engine_reason=prepared.reason,
        outcome=outcome_in_words(course.stop, state.step, "iteration", tolerance),
        stop=course.stop,
        steps=state.step,
        units=record.units[-1].item(),
        estimate=record.tokens[-1],
        x=state.states.x,
        y=state.multipliers,
        optimum=np.array(optimum),
        record=record,
        conditions=conditions,
        problem=problem,
    )
