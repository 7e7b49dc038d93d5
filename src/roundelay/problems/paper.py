"""The synthetic data of the paper's two experiments."""

from __future__ import annotations

from typing import Literal

import numpy as np

from roundelay.problems.least_squares import LeastSquares
from roundelay.problems.logistic import Logistic


def paper_least_squares(
    agents: int = 100,
    samples: int = 30,
    dim: int = 2,
    seed: int = 0,
    scale: Literal["half_sum", "mean"] = "half_sum",
) -> LeastSquares:
    """Least squares with all entries of features and targets drawn from U(0, 1)."""
    _check_sizes(agents, samples, dim, seed)
    generator = np.random.default_rng([seed, 1])
    return LeastSquares(generator.random((agents, samples, dim)), generator.random((agents, samples)), scale)


def paper_logistic(agents: int = 100, samples: int = 30, dim: int = 2, seed: int = 0, ridge: float = 0.0) -> Logistic:
    """Logistic regression: o ~ N(0, I), and the label is 1 with probability 1/(1 + exp(−x'o)) for one x ~ N(0, I)."""
    _check_sizes(agents, samples, dim, seed)
    generator = np.random.default_rng([seed, 2])
    truth = generator.standard_normal(dim)
    features = generator.standard_normal((agents, samples, dim))
    chance = 1.0 / (1.0 + np.exp(-features @ truth))
    labels = np.where(generator.random((agents, samples)) <= chance, 1.0, -1.0)
    return Logistic(features, labels, ridge)


def _check_sizes(agents: int, samples: int, dim: int, seed: int) -> None:
    for name, size in (("agents", agents), ("samples", samples), ("dimensions", dim)):
        if size < 1:
            raise ValueError(f"The number of {name} is {size}: use at least 1.")
    if seed < 0:
        raise ValueError(f"The seed is {seed}: use a whole number that is not negative.")
