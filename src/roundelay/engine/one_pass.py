"""Run the one-pass baseline: two laps of the tour."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundelay.algorithms.sealed.questions import POINT, Asked
from roundelay.algorithms.token.one_pass import is_quadratic
from roundelay.engine.assemble import check_engine, python_module, recipe
from roundelay.engine.checks import Options, check_reader, check_tolerance, marks_of
from roundelay.engine.drive import Request
from roundelay.engine.result import HistoryRows, Journey, Run, bytes_a_message, outcome_in_words
from roundelay.kernels import Matrix, Vector
from roundelay.kernels.checks import whole_number
from roundelay.links.crossing import LinkStates, now
from roundelay.masks import PlainNumbers
from roundelay.networks.tours.tour import Tour
from roundelay.problems import Problem
from roundelay.problems.problem import check_matrix
from roundelay.transcripts import SealedLap, Transcript
from roundelay.transcripts.transcript import transcript_of_laps


def run_one_pass(request: Request) -> Run:
    """Hop after hop: sum up the normal equations, solve them, hand the solution round."""
    problem, network, seed, options = request.problem, request.network, request.seed, request.options
    check_one_pass(problem, options)
    agents, dim, tour = problem.agents, problem.dim, network.tour()
    lap = len(tour.order)
    full = 2 * lap - 1
    hops = full if options.hops is None else min(full, whole_number("hops", options.hops, least=0))
    marks = marks_of(1 if options.record is None else options.record, hops)
    conditions = options.conditions
    crossing: Any = None
    functions: Any = None
    links: LinkStates | None = None
    if conditions is not None:
        part = conditions.part(network, network.neighbour_starts, network.neighbours)
        crossing, functions = (
            part.numbers,
            python_module(recipe((part,), (part.numbers,), (), (("DIM", dim),), False), dim),
        )
        links = conditions.states(seed, agents, network.neighbours, 1, 0, dim)
    noise = 0.0 if conditions is None else conditions.noise
    generator = np.random.Generator(np.random.Philox(key=np.array([seed, 0x1A55], np.uint64)))

    x, optimum = np.zeros((agents, dim)), np.array(problem.optimum)
    gram, right = np.zeros((dim, dim)), np.zeros(dim)
    carried: Vector = np.zeros(dim)
    numbers, rows = 0, []
    sums: list[Vector] = []
    for hop in range(hops + 1):
        if hop in marks:
            rows.append((hop, numbers, now(links) if links is not None else 0.0, x.copy(), carried.copy()))
        if hop == hops:
            break
        agent = int(tour.order[hop % lap])
        if hop < lap and tour.works[hop]:
            gram += problem.hessian(agent, carried)
            right -= problem.gradient(agent, np.zeros(dim))
        if hop == lap:
            carried = np.asarray(np.linalg.lstsq(gram, right, rcond=None)[0], np.float64)
        if links is not None and tour.works[hop % lap]:
            functions.work(crossing, links, seed, hop, 0, agent)
        if hop >= lap:
            x[agent] = carried
        attempts = 1
        if links is not None:
            attempts = functions.cross(crossing, links, seed, hop, 0, agent, int(tour.order[(hop + 1) % lap]))
        numbers += (lap > 1) * attempts * (dim * (dim + 3) // 2 if hop < lap else dim)
        if noise > 0.0:
            if hop < lap:
                gram, right = _disturbed(gram, noise, generator), _disturbed(right, noise, generator)
            else:
                carried = _disturbed(carried, noise, generator)
        if hop < lap and options.transcript:
            sums.append(np.concatenate([-right, gram[np.triu_indices(dim)]]))
    if hops == full:  # what was sent last has arrived
        if full == lap:  # one agent alone
            carried = np.asarray(np.linalg.lstsq(gram, right, rcond=None)[0], np.float64)
        x[int(tour.order[-1])] = carried
        rows[-1] = (*rows[-1][:3], x.copy(), carried.copy())
    return Run(
        algorithm=request.algorithm,
        seed=seed,
        engine="python",
        engine_reason="there is no loop to compile",
        outcome=outcome_in_words("hops", hops, "hop", options.tolerance),
        stop="hops",
        steps=hops,
        units=numbers / dim,
        estimate=carried,
        x=x,
        y=np.zeros((agents, dim)),
        optimum=optimum,
        record=_history_rows(rows, optimum, dim),
        journey=Journey(
            carried[None], np.bincount(tour.order[:hops][tour.works[:hops].astype(bool)], minlength=agents), tour.words,
            np.zeros((0, dim)), options.reader, False, 1.0,
        ),
        transcript=_transcript(tour, np.array(sums), carried, agents, hops) if options.transcript else None,
        conditions=conditions,
        problem=problem,
    )  # fmt: skip


def _transcript(tour: Tour, sums: Matrix, solution: Vector, agents: int, hops: int) -> Transcript:
    """The sums as they went round, in the open, and the lap that tells the solution, as far as the hops went."""
    order, laps = tour.order, []
    for first, kind, told in (
        (0, Asked.GRADIENT_AND_HESSIAN, np.zeros(0)),
        (len(order), Asked.NOTHING | POINT, solution),
    ):
        count = min(max(hops - first, 0), len(order))
        if count:
            words = PlainNumbers().encode(sums[:count] if first == 0 else np.zeros((count, 0)))
            laps.append(
                SealedLap(
                    np.arange(count), order[:count], np.roll(order, -1)[:count], words, 0, len(order), agents,
                    kind=int(kind), told=told, masked=False,
                )
            )  # fmt: skip
    return transcript_of_laps(laps, len(solution))


def check_one_pass(problem: Problem, options: Options) -> None:
    """What it can't do, in words."""
    if not is_quadratic(problem):
        raise ValueError(
            f"The one-pass baseline solves least squares by its normal equations, which a {type(problem).__name__} does "
            "not have: choose another algorithm, or a LeastSquares problem."
        )
    check_matrix(problem.dim)
    if options.iterations is not None:
        raise ValueError("The one pass is made of hops: leave iterations out, or say hops=… .")
    if options.content is not None or options.monitors:
        raise ValueError("The one pass has nothing to stop or to watch: leave these options out.")
    check_engine(options.engine)
    check_reader(options.reader, problem.agents)
    check_tolerance(options.tolerance, problem)


def _disturbed(values: Any, noise: float, generator: np.random.Generator) -> Any:
    """What a noisy link makes of numbers; a symmetric matrix is sent as one triangle."""
    draws = noise * generator.standard_normal(values.shape)
    if values.ndim == 2:
        draws = np.triu(draws) + np.triu(draws, 1).T
    return values + draws


def _history_rows(rows: list[tuple[Any, ...]], optimum: Vector, dim: int) -> HistoryRows:
    steps, numbers, seconds, states, estimates = (list(column) for column in zip(*rows, strict=True))
    distances = np.array([np.linalg.norm(x - optimum, axis=1) for x in states])
    first = np.where(distances[0] > 0.0, distances[0], 1.0)
    sent = np.array(numbers)
    spread = [np.sqrt(((x - z) ** 2).sum(axis=1).mean()) for x, z in zip(states, estimates, strict=True)]
    return HistoryRows(
        np.array(steps),
        sent / dim,
        sent * bytes_a_message(1),
        np.array(seconds),
        (distances / first).mean(axis=1),
        distances.mean(axis=1),
        np.array(spread),
        np.array(estimates),
    )
