from collections.abc import Callable
from functools import cache

import pytest

import roundelay as rl

AGENTS = 8


@cache
def small_problem(seed: int) -> rl.LeastSquares:
    return rl.paper_least_squares(AGENTS, 10, 2, seed=seed)


@cache
def small_network(seed: int) -> rl.Network:
    return rl.random_network(AGENTS, 0.6, seed=seed)


@pytest.fixture(scope="session")
def problem() -> Callable[[int], rl.LeastSquares]:
    """A problem of its own for each seed: eight agents, two unknowns."""
    return small_problem


@pytest.fixture(scope="session")
def network() -> Callable[[int], rl.Network]:
    """A network of its own for each seed."""
    return small_network
