"""Run an algorithm in one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from roundelay.engine.assemble import EngineChoice
from roundelay.engine.checks import (
    Budget,
    Options,
    check_budget,
    check_conditions,
    check_monitors,
    check_seed,
    check_x0,
    name_of,
    own_starts,
    the_method,
    the_network,
    the_problem,
    within_budget,
)
from roundelay.engine.drive import Request, deferred_interrupt
from roundelay.engine.ensemble import Ensemble, run_seeds
from roundelay.engine.gossip_run import run_gossip
from roundelay.engine.monitors import Monitor
from roundelay.engine.one_pass import run_one_pass
from roundelay.engine.result import Run
from roundelay.engine.sealed_run import run_sealed
from roundelay.engine.token_run import run_token
from roundelay.kernels.checks import whole_number
from roundelay.links.conditions import NetworkConditions
from roundelay.networks import Network
from roundelay.problems import MovedProblem, Problem, begun_at
from roundelay.shown.watched import Report


@overload
def simulate(
    algorithm: Any,
    problem: Problem,
    network: Network,
    hops: int | None = ...,
    *,
    iterations: int | None = ...,
    seed: int = ...,
    seeds: None = ...,
    conditions: NetworkConditions | None = ...,
    engine: EngineChoice = ...,
    record: int | Sequence[int] | None = ...,
    transcript: bool = ...,
    monitors: Sequence[Monitor] = ...,
    tolerance: float | None = ...,
    content: float | None = ...,
    reader: int = ...,
    budget: Budget | None = ...,
    x0: Sequence[float] | NDArray[np.float64] | None = ...,
    progress: Report | bool = ...,
) -> Run: ...


@overload
def simulate(
    algorithm: Any,
    problem: Problem | Callable[[int], Problem],
    network: Network | Callable[[int], Network],
    hops: int | None = ...,
    *,
    iterations: int | None = ...,
    seed: int = ...,
    seeds: Sequence[int],
    conditions: NetworkConditions | None = ...,
    engine: EngineChoice = ...,
    record: int | Sequence[int] | None = ...,
    transcript: bool = ...,
    monitors: Sequence[Monitor] = ...,
    tolerance: float | None = ...,
    content: float | None = ...,
    reader: int = ...,
    budget: Budget | None = ...,
    x0: Sequence[float] | NDArray[np.float64] | None = ...,
    progress: Report | bool = ...,
) -> Ensemble: ...


def simulate(
    algorithm: Any,
    problem: Problem | Callable[[int], Problem],
    network: Network | Callable[[int], Network],
    hops: int | None = None,
    *,
    iterations: int | None = None,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    conditions: NetworkConditions | None = None,
    engine: EngineChoice = "auto",
    record: int | Sequence[int] | None = None,
    transcript: bool = False,
    monitors: Sequence[Monitor] = (),
    tolerance: float | None = None,
    content: float | None = None,
    reader: int = 0,
    budget: Budget | None = None,
    x0: Sequence[float] | NDArray[np.float64] | None = None,
    progress: Report | bool = True,
) -> Run | Ensemble:
    """Run `algorithm` on `problem` over `network`, for `hops` hops of a token or `iterations` of a gossip method.

    Sealed laps and the one pass need neither: they end of themselves, and `hops` is the most that they may make.

    `conditions` are those of a real network: loss, noise, latency, compute times. `seed` keys every random draw. With `seeds` instead, one run for each is made, in parallel, and an
    `Ensemble` comes back; `problem` and `network` may then be functions of the seed.
    `engine` is "auto" (compiled where possible, but for runs that are over before), "compiled" or "python"; `run.engine_reason` says why.
    `record` chooses the rows of the history: every so many hops, or the hops themselves.
    `transcript=True` keeps what crossed the links. `monitors` adds columns, such as `AugmentedLagrangian()`.
    It stops at `hops` or `iterations`; where `tolerance` is given, as soon as the common error is that small; where
    `content` is given, when the agents' own stopping rule says so with that tolerance.
    `budget`, such as `PrivacyBudget(epsilon=1.0)`, ends the run before any agent would exceed it; sealed laps add the noise that
    it asks for, and `run.privacy` says what that did to each unknown.
    `x0` is a point at which all start that would start at 0, or where the problem begins; a start of the method's own is drawn around it. Gossip that averages by weights
    takes one point for each agent, too.
    `reader` is the agent whose received tokens `run.readout()` uses.
    `progress` is True for a bar on long runs, False for none, or a function (done, total).
    """
    if not isinstance(monitors, Sequence):
        raise ValueError(f"monitors is {monitors!r}: give a list, for instance [roundelay.KKTResiduals()].")
    check_conditions(conditions)
    if seeds is not None and seed != 0:
        raise ValueError(f"There is a seed, {seed}, and there are seeds: give one of the two.")
    options = Options(
        hops, iterations, conditions, engine, record, transcript, tuple(monitors), tolerance, content,
        whole_number("reader", reader), budget,
    )  # fmt: skip
    with deferred_interrupt() as interrupt:

        def one(seed: int, progress: Report | bool) -> Run:
            check_seed(seed)
            own_problem, own_network = the_problem(problem, seed), the_network(network, seed)
            given = within_budget(algorithm, budget)
            resolved, method = the_method(given, own_problem, own_network)
            request = Request(given, resolved, method, own_problem, own_network, seed, options, progress, interrupt)
            start = getattr(own_problem, "begins_at", None) if x0 is None else x0
            return _run(request) if start is None else _run_from(start, request)

        if seeds is None:
            return one(whole_number("The seed", seed), progress)
        return run_seeds(lambda seed: one(seed, False), seeds, name_of(algorithm), progress, interrupt)


def _run_from(x0: Any, request: Request) -> Run:
    """A run from x0: one from 0 on the functions of u = x − x0, told in x."""
    starts = own_starts(x0, request.method, request.problem, request.name)
    if starts is not None:
        return _run(replace(request, options=replace(request.options, own_starts=starts)))
    check_x0(request.options, request.method, request.name)
    origin = begun_at(request.problem, x0)
    _, method = the_method(request.algorithm, origin, request.network)
    return _told_from(origin, _run(replace(request, method=method, problem=origin)))


def _told_from(origin: MovedProblem, run: Run) -> Run:
    """A run on functions of u, told in x."""
    resume = run.resume
    record, journey = replace(run.record, tokens=run.record.tokens + origin.origin), run.journey
    if journey is not None:
        journey = replace(journey, tokens=journey.tokens + origin.origin, received=journey.received + origin.origin)
    return replace(
        run,
        estimate=run.estimate + origin.origin,
        x=run.x + origin.origin,
        optimum=np.array(origin.inner.optimum),
        record=record,
        journey=journey,
        problem=origin.inner,
        resume=None if resume is None else lambda steps: _told_from(origin, resume(steps)),
    )


def _run(request: Request) -> Run:
    """Run the algorithm as its family asks for: gossip, tokens, sealed laps, or the one pass."""
    check_monitors(request.options.monitors, request.method, request.name)
    check_budget(request.options, request.method, request.problem, request.name)
    if hasattr(request.method, "mixing"):
        return run_gossip(request)
    if hasattr(request.method, "walk"):
        return run_token(request)
    if hasattr(request.method, "optimiser"):
        return run_sealed(request)
    return run_one_pass(request)
