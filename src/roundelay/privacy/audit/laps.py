"""The audit of sums: what an observer learned of one agent's answers, held against them and against what the sum says anyway."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from roundelay.algorithms.sealed.questions import Place, answers, asked_in, question_of
from roundelay.engine import Run
from roundelay.kernels import Vector
from roundelay.masks import PairSecrets
from roundelay.privacy.attacks.lap_sums import LapAttack, RecoveredAnswers, Told, quadratic_in, told_in
from roundelay.privacy.audit.leaks import Leak, best_direction, relative, verdict
from roundelay.privacy.public import Public
from roundelay.registry import registered
from roundelay.transcripts import LapParts, Transcript, answer_in

Answers = Sequence[Vector | None]
# What single answers say, each under its name.
SINGLE: tuple[tuple[str, Callable[[Told], object]], ...] = (
    ("values", lambda told: told.value),
    ("gradients", lambda told: told.gradient),
    ("products Hv", lambda told: told.product),
)


def attacks_on(parts: LapParts, public: Public, seconds: float) -> tuple[dict[str, RecoveredAnswers], dict[str, str]]:
    """What every attack found, and why others were not run."""
    began = time.monotonic()
    found: dict[str, RecoveredAnswers] = {}
    left_out: dict[str, str] = {}
    for name, attack in registered(LapAttack).items():
        if time.monotonic() - began > seconds:
            left_out[name] = f"the {seconds:g} seconds were over before it could begin"
            continue
        try:
            found[name] = attack(parts, public)
        except ValueError as error:
            left_out[name] = str(error)
    return found, left_out


def true_answers(run: Run, transcript: Transcript, agent: int, secrets: PairSecrets) -> list[Vector]:
    """What an agent answered: from the problem, and of a run from a file, which has none, by opening all its masks."""
    problem, dim = run.problem, len(run.optimum)
    if problem is None:
        return [answer_in(lap, agent, secrets, turn) for turn, lap in enumerate(transcript.laps)]
    place, found = Place(np.zeros(dim), np.zeros(dim)), []
    for lap in transcript.laps:
        place = question_of(lap.kind, lap.told, dim).moved(place)
        found.append(answers(problem, asked_in(lap.kind), place)[agent])
    return found


def guessed_answers(parts: LapParts, transcript: Transcript) -> list[Vector | None]:
    """The best guess from what is never hidden: the mean over the honest, where there are several, or else over all agents."""
    totals = (lap.total() for lap in transcript.laps)
    everybody = [
        None if total is None else total / lap.agents for total, lap in zip(totals, transcript.laps, strict=True)
    ]
    if parts.honest < 2:
        return everybody
    return [
        mean if lap.rest is None else lap.rest / parts.honest for lap, mean in zip(parts.laps, everybody, strict=True)
    ]


def leaks_of_laps(
    parts: LapParts, observer: str, attack: str, found: RecoveredAnswers, truth: Answers | None, guess: Answers,
    quadratic: bool, dim: int,
) -> Iterator[Leak]:  # fmt: skip
    """A line for each quantity that the attack gives; without the truth they have no errors."""

    def leak(quantity: str, over_run: float, at_end: float, error_of_guess: float) -> Leak:
        words = verdict(parts.agent, quantity, observer, at_end, error_of_guess)
        return Leak(quantity, attack, over_run, at_end, error_of_guess, found.residual, found.converged, words)

    # Only what was found is held against the truth.
    known = [answer is not None for answer in found.answers]
    told = list(told_in(parts.laps, found.answers, dim))
    if truth is None:
        named = [quantity for quantity, of in SINGLE if any(of(one) is not None for one in told)]
        named += [quantity for quantity, value in (("Hessian H", found.H), ("slope g", found.g)) if value is not None]
        yield from (leak(quantity, math.nan, math.nan, math.nan) for quantity in named)
        return
    true, guessed = (
        list(told_in(parts.laps, [one if keep else None for one, keep in zip(side, known, strict=True)], dim))
        for side in (truth, guess)
    )
    for quantity, of in SINGLE:
        rows = [tuple(np.atleast_1d(of(one)) for one in each) for each in zip(told, true, guessed, strict=False) if of(each[0]) is not None]  # type: ignore[call-overload]  # fmt: skip
        if rows:
            estimate, right, mean = (np.array(column) for column in zip(*rows, strict=True))
            yield leak(
                quantity, relative(estimate, right), relative(estimate[-1], right[-1]), relative(mean[-1], right[-1])
            )
    hessian, slope = quadratic_in(iter(true), dim)
    mean_hessian, mean_slope = quadratic_in(iter(guessed), dim)
    if found.H is not None and hessian is not None and mean_hessian is not None:
        error = relative(found.H, hessian)
        yield leak("Hessian H", error, error, relative(mean_hessian, hessian))
        best = best_direction(found.H, hessian)
        yield leak("Hessian H, best-known direction", best, best, max(best_direction(mean_hessian, hessian), 1e-3))
    if quadratic and found.g is not None and slope is not None and mean_slope is not None:
        error = relative(found.g, slope)
        yield leak("slope g", error, error, relative(mean_slope, slope))


def proven(observer: str, agent: int, honest: int, masked: bool) -> str:
    """What is proven, whatever the observer computes."""
    if not masked:
        return f"There are no masks: whoever sees what enters agent {agent} and what leaves it knows what it answered."
    if honest == 1:
        return (
            f"Nothing of agent {agent} is hidden from {observer}: they know all other answers, and the total without them is "
            "its own."
        )
    return (
        f"Proven: whatever {observer} may compute, all there is to learn of the {honest} agents that keep their masks to "
        "themselves is the sum of their answers at the points asked. Every single one's answers could be any others with "
        "that sum."
    )
