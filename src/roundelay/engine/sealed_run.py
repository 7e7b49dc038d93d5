"""Run sealed laps: a question goes round, the answers are summed, and the optimiser asks the next one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from roundelay.algorithms.sealed.optimisers import Found, Goal
from roundelay.algorithms.sealed.questions import Asked, Place, answers, numbers_asked, total_of
from roundelay.algorithms.sealed.sealed_laps import SealedMethod, smoothness_of
from roundelay.algorithms.sealed.shared_noise import SharedNoise
from roundelay.engine.assemble import check_engine, python_module, recipe
from roundelay.engine.checks import check_reader, check_tolerance, check_words
from roundelay.engine.drive import Request
from roundelay.engine.result import HistoryRows, Journey, Privacy, Run, StopKind, bytes_a_message, outcome_in_words
from roundelay.engine.token_run import Lap, lap_from
from roundelay.kernels import Matrix, Vector
from roundelay.kernels.checks import whole_number
from roundelay.kernels.random import Words
from roundelay.links.conditions import NetworkConditions
from roundelay.links.crossing import LinkStates, now
from roundelay.masks import SeededPairs, seals
from roundelay.networks import Network
from roundelay.problems import Problem, composite_optimum, has_optimum, size_of
from roundelay.shown.watched import reporting
from roundelay.transcripts import Transcript
from roundelay.transcripts.transcript import sealed_lap, transcript_of_laps

# Beyond this there is nothing left to optimise.
FAR = 1e150


def run_sealed(request: Request) -> Run:
    """Lap after lap, until the optimiser has found what it looks for or there is another reason to stop."""
    method: SealedMethod = request.method
    problem, network, seed, options = request.problem, request.network, request.seed, request.options
    _check(request)
    lap = lap_from(network, int(network.tour().order[0]))
    links = Links.of(options.conditions, network, seed, problem.dim, method.grid.words)
    noise = noise_of(request)
    goal = Goal(
        problem.dim, problem.agents, method.regulariser, values=problem.has_values, hessians=problem.has_hessians, noise=noise,
        ridge=_pooled_ridge(problem),
    )  # fmt: skip
    place = Place(goal.origin, np.zeros(problem.dim))
    rows = LapRows(problem, method, _optimum(problem, method))
    rows.write(0, links, place)
    laps: list[Any] = []
    asking = method.optimiser.questions(goal)
    most = np.inf if options.hops is None else whole_number("hops", options.hops, least=0)
    stop: StopKind | None = None if most >= len(lap.order) else "hops"
    found: Found | None = None
    question = next(asking)
    with reporting(request.progress, request.name) as report, np.errstate(over="ignore", invalid="ignore"):
        while stop is None:
            place = question.moved(place)
            number, adding = len(rows.step) - 1, None if question.asked == Asked.NOTHING else noise
            summed = np.zeros((problem.agents, 0)) if adding is not None else answers(problem, question.asked, place)
            if not (np.isfinite(summed).all() and np.abs(place.point).max(initial=0.0) < FAR):
                stop = "diverged"
                break
            words = method.grid.encode(summed, problem.agents, "The largest number of an answer")
            if adding is not None:
                words = _noisy_words(adding, problem, number, place, SeededPairs(seed))
            if options.transcript:
                count = words.shape[1] // method.grid.words
                masks = seals(SeededPairs(seed), problem.agents, count, len(laps), method.grid)
                own = np.array([method.grid.add(one, mask) for one, mask in zip(words, masks, strict=True)])
                messages = sealed_lap(lap.order, lap.works, own, method.grid)
                laps.append(replace(messages, kind=question.kind, told=question.told))
            links.cross(lap, seed, question.told.size, numbers_asked(question.asked, problem.dim) * method.grid.words)
            rows.write(len(lap.order), links, place)
            report(rows.step[-1], rows.step[-1] + len(lap.order) if most == np.inf else int(most))
            stop = _reason(request, rows, most, len(lap.order))
            try:
                whole = method.grid.total(words)
                total = method.grid.decode(whole) if adding is None else adding.decoded(number, whole)
                question = asking.send(total_of(question.asked, total, problem.dim))
            except StopIteration as end:
                found = end.value
                stop = stop or "found"
        if stop == "found":  # the last lap says that it is over, and how close the point is
            links.cross(lap, seed, 1, 0)
            rows.write(len(lap.order), links, place)
    asking.close()
    return _run(request, lap, links, rows, place, stop or "found", found, laps)


def noise_of(request: Request) -> SharedNoise | None:
    """The noise that the agents add together; None where there is none."""
    problem = request.problem
    return request.algorithm.noise_for(
        smoothness_of(problem), problem.agents, float(getattr(problem, "most_curvature", 0.0))
    )


def _noisy_words(noise: SharedNoise, problem: Any, lap: int, place: Place, secrets: SeededPairs) -> Words:
    agents = range(problem.agents)
    return np.array([noise.words(problem, agent, lap, place.point, secrets, agent) for agent in agents])


def _pooled_ridge(problem: Problem) -> float:
    """The ridge of Σf_i where every record counts 1: each agent has it once."""
    return problem.agents * float(getattr(problem, "ridge", 0.0)) / float(getattr(problem, "scales", np.ones(1))[0])


def _reason(request: Request, rows: LapRows, most: float, lap: int) -> StopKind | None:
    """Why this lap was the last; None where there is more to do."""
    tolerance = request.options.tolerance
    if tolerance is not None and rows.error[-1] <= tolerance * rows.scale:
        return "tolerance"
    if rows.step[-1] + lap > most:
        return "hops"
    return "interrupted" if request.interrupt.asked else None


def _optimum(problem: Problem, method: SealedMethod) -> Vector:
    return np.array(composite_optimum(problem, method.regulariser))


def _check(request: Request) -> None:
    """What does not go with sealed laps, in words."""
    options, name, method = request.options, request.name, request.method
    if options.iterations is not None:
        raise ValueError(f"{name} are made of hops: leave iterations out, or say hops=… .")
    if options.content is not None:
        raise ValueError(f"{name} stop by themselves where the sum of all gradients says so: leave `content` out.")
    if options.monitors:
        raise ValueError(f"Agents of {name.lower()} have no state that a monitor could watch: leave `monitors` out.")
    if options.record is not None:
        raise ValueError(f"The history of {name.lower()} has one row a lap: leave `record` out.")
    check_words(f"{name} send", 0.0 if options.conditions is None else options.conditions.noise)
    check_engine(options.engine)
    if options.engine == "compiled":
        raise ValueError(f"{name} have no loop to compile: leave `engine` out.")
    check_reader(options.reader, request.problem.agents)
    check_tolerance(options.tolerance, request.problem)
    if request.problem.dim < 1 or method.grid.words < 1:
        raise ValueError("There is nothing to sum.")


# ---------------------------------------------------------------- what the laps cost


@dataclass(eq=False)
class Links:
    """What messages cost on these links, and when they arrive."""

    functions: Any = None
    numbers: Any = None
    states: LinkStates | None = None
    a_number: int = 1
    hop: int = 0
    sent: int = 0
    bytes: int = 0

    @staticmethod
    def of(conditions: NetworkConditions | None, network: Network, seed: int, dim: int, words: int) -> Links:
        """The links under these conditions, for numbers of so many words."""
        if conditions is None:
            return Links(a_number=words)
        part = conditions.part(network, network.neighbour_starts, network.neighbours)
        functions = python_module(recipe((part,), (part.numbers,), (), (("DIM", dim),), False), dim)
        return Links(
            functions, part.numbers, conditions.states(seed, network.agents, network.neighbours, 1, 0, dim), words
        )

    def cross(self, lap: Lap, seed: int, told: int, words: int) -> None:
        """A message of so many numbers that are told, and words, goes round; whoever is met again only relays it."""
        count = len(lap.order)
        attempts = count if count > 1 else 0
        if self.states is not None and count > 1:
            attempts = 0
            following = np.roll(lap.order, -1)
            for place, (sender, receiver) in enumerate(zip(lap.order.tolist(), following.tolist(), strict=True)):
                hop = self.hop + place
                if words and lap.works[place]:
                    self.functions.work(self.numbers, self.states, seed, hop, 0, sender)
                attempts += int(self.functions.cross(self.numbers, self.states, seed, hop, 0, sender, receiver))
        self.hop += count
        self.sent += attempts * (told + words // self.a_number)
        self.bytes += bytes_a_message(attempts * (told + words))

    @property
    def seconds(self) -> float:
        """The time that has passed."""
        return now(self.states) if self.states is not None else 0.0


@dataclass(eq=False)
class LapRows:
    """The rows of the history, one a lap. Every agent stands at the public point."""

    problem: Problem
    method: SealedMethod
    optimum: Vector
    step: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    points: list[Vector] = field(default_factory=list)

    @property
    def scale(self) -> float:
        """‖x*‖, or 1 where the optimum is the origin."""
        return size_of(self.problem, self.optimum)

    @property
    def measured_against(self) -> Vector:
        """x*, or the last point, where nobody has looked for x* beforehand; no number, where there is to be none."""
        known = np.isfinite(self.optimum).all() or not has_optimum(self.problem)
        return self.optimum if known else self.points[-1]

    def write(self, hops: int, links: Links, place: Place) -> None:
        """A row after so many more hops; the first one is where all begin."""
        self.step.append((self.step[-1] if self.step else 0) + (hops if self.step else 0))
        self.sent.append(links.sent)
        self.bytes.append(links.bytes)
        self.seconds.append(links.seconds)
        self.error.append(float(np.linalg.norm(place.point - self.optimum)))
        self.points.append(place.point)

    def history(self) -> HistoryRows:
        """The history as arrays."""
        error = np.linalg.norm(np.array(self.points) - self.measured_against, axis=1)
        first = error[0] if error[0] > 0.0 else 1.0
        return HistoryRows(
            np.array(self.step, np.int64), np.array(self.sent) / self.problem.dim, np.array(self.bytes, np.int64),
            np.array(self.seconds), error / first, error, np.zeros(len(error)), np.array(self.points), jumps=True,
        )  # fmt: skip


def _run(
    request: Request,
    lap: Lap,
    links: Links,
    rows: LapRows,
    place: Place,
    stop: StopKind,
    found: Found | None,
    laps: list[Any],
) -> Run:
    problem, options = request.problem, request.options
    steps = rows.step[-1]
    everyone: Matrix = np.tile(place.point, (problem.agents, 1))
    asked = len(rows.step) - 1 - (stop == "found")
    noise = noise_of(request)
    privacy = None if noise is None else _privacy(noise, request, found)
    transcript: Transcript | None = transcript_of_laps(laps, problem.dim) if options.transcript else None
    return Run(
        algorithm=request.algorithm,
        seed=request.seed,
        engine="python",
        engine_reason="there is no loop to compile",
        outcome=_outcome(request, steps, asked, len(lap.order), stop, found, privacy),
        stop=stop,
        steps=steps,
        units=links.sent / problem.dim,
        estimate=place.point,
        x=everyone,
        y=np.zeros_like(everyone),
        optimum=rows.measured_against,
        record=rows.history(),
        journey=Journey(
            place.point[None], np.full(problem.agents, asked), request.network.tour().words,
            np.zeros((0, problem.dim)), options.reader, False, 0.0,
        ),
        transcript=transcript,
        conditions=options.conditions,
        problem=problem,
        regulariser=request.method.regulariser,
        privacy=privacy,
    )  # fmt: skip


def _outcome(
    request: Request, steps: int, asked: int, lap: int, stop: StopKind, found: Found | None, privacy: Privacy | None
) -> str:
    """Why it stopped, and why by this optimiser, where that was left open."""
    name, hops = request.method.words, request.options.hops
    noise = noise_of(request)
    if stop == "found" and noise is not None and privacy is not None:
        words = f"{name}, {noise.laps_in_words}: {privacy.words}"
    elif stop == "found" and found is not None:
        words = (
            f"{name} found the minimiser in {_laps(asked)}: the mean gradient there is {found.residual:.1e}."
            if found.converged
            else f"{name} came no further after {_laps(asked)}: the mean gradient is still {found.residual:.1e}."
        )
    elif stop == "hops":
        words = f"{name} made {_laps(asked)}: another of {lap} hops would be more than the {hops} that were asked for."
    else:
        words = outcome_in_words(stop, steps, "hop", request.options.tolerance)
    if request.given == request.algorithm:
        return words
    choice = request.given.choice(request.problem)
    return f"{words} Auto chose {choice.optimiser.name}: {choice.because}."


def _laps(count: int) -> str:
    return f"{count} lap{'s' * (count != 1)}"


def _privacy(noise: SharedNoise, request: Request, found: Found | None) -> Privacy:
    """What was promised, and what the noise has done to each unknown."""
    budget = request.options.budget
    covariance = None if found is None else found.covariance
    deviations = np.full(noise.dim, math.nan) if covariance is None else np.sqrt(np.diag(covariance))
    epsilon, delta = (math.nan, math.nan) if budget is None else budget.spent_by(noise)
    return Privacy(epsilon, delta, noise.rho, noise.leave_out, deviations)
