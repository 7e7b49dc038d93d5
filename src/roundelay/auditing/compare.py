"""An attack's findings held against the truth."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from roundelay.auditing.leak import Leak, verdict
from roundelay.auditing.truth import Truth
from roundelay.kernels import Matrix, Vector
from roundelay.privacy.attacks import Recovered

Numbers = NDArray[np.float64]


def leaks_of(
    agent: int, observer: str, attack: str, found: Recovered, truth: Truth | None, optimum: Vector | None
) -> Iterator[Leak]:
    """A line for each quantity that the attack gives."""

    def leak(quantity: str, over_run: float, at_end: float, guess: float) -> Leak:
        words = verdict(agent, quantity, observer, at_end, guess)
        return Leak(quantity, attack, over_run, at_end, guess, found.residual, found.converged, words)

    if truth is None:
        yield leak("states x", math.nan, math.nan, math.nan)
        yield leak("multipliers y", math.nan, math.nan, math.nan)
        for quantity, value in (("Hessian H", found.H), ("slope g", found.g), ("records", found.records)):
            if value is not None:
                yield leak(quantity, math.nan, math.nan, math.nan)
        return
    yield leak("states x", *_states(found.x, truth.x, truth.whole_run, truth.mean_x))
    # The multipliers add up to 0 in the end, so that their mean tells nothing.
    yield leak("multipliers y", *_states(found.y, truth.y, truth.whole_run, np.zeros(truth.y.shape[1])))
    if truth.gradient is not None:
        estimate = found.gradient(optimum) if found.gradient is not None and optimum is not None else found.y[-1]
        error = relative(estimate, truth.gradient)
        yield leak("gradient at the solution", error, error, 1.0)
    if found.H is not None and truth.H is not None and truth.mean_hessian is not None:
        error, guess = relative(found.H, truth.H), relative(truth.mean_hessian, truth.H)
        yield leak("Hessian H", error, error, guess)
        best, best_guess = best_direction(found.H, truth.H), best_direction(truth.mean_hessian, truth.H)
        yield leak("Hessian H, best-known direction", best, best, max(best_guess, 1e-3))
    if found.g is not None and truth.g is not None and truth.mean_g is not None:
        error, guess = relative(found.g, truth.g), relative(truth.mean_g, truth.g)
        yield leak("slope g", error, error, guess)
    if found.records is not None and truth.records is not None and len(found.records) == len(truth.records):
        error = records_error(found.records, truth.records)
        guess = relative(np.broadcast_to(truth.records.mean(axis=0), truth.records.shape), truth.records)
        yield leak("records", error, error, guess)


def _states(estimate: Matrix, truth: Matrix, whole_run: bool, guess: Vector | None) -> tuple[float, float, float]:
    """The error over the run, at its end, and that of the guess; the start itself, which is drawn, is left out."""
    at_end = relative(estimate[-1], truth[-1])
    over_run = relative(estimate[1:], truth[1:]) if whole_run else math.nan
    return over_run, at_end, relative(guess, truth[-1]) if guess is not None else math.nan


def relative(estimate: Numbers, truth: Numbers) -> float:
    """‖estimate − truth‖/‖truth‖."""
    size = float(np.linalg.norm(truth))
    return float(np.linalg.norm(estimate - truth)) / (size if size > 0.0 else 1.0)


def best_direction(estimate: Matrix, truth: Matrix) -> float:
    """The least |v'(Ĥ − H)v|/v'Hv over the eigenvectors of that quotient: the direction an observer knows best."""
    values, vectors = np.linalg.eigh(truth)
    root = vectors / np.sqrt(np.maximum(values, 1e-12 * max(float(values.max()), 1e-300)))
    return float(np.abs(np.linalg.eigvalsh(root.T @ (estimate - truth) @ root)).min())


def records_error(estimate: Matrix, truth: Matrix) -> float:
    """The relative error of the records, whose order nobody knows."""
    costs = np.linalg.norm(estimate[:, None, :] - truth[None, :, :], axis=2) ** 2
    rows, columns = linear_sum_assignment(costs)
    return relative(estimate[rows], truth[columns])
