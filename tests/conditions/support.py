"""Runs whose every state is kept, and the little that an independent recomputation of the conditions needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import roundelay as rl
from roundelay.algorithms.gossip import Gossip
from roundelay.kernels import DIM, Exchange, Numbers, each
from tests.reference.gossip import metropolis

SEED = 7


class Camera:
    """A monitor that keeps a copy of every state it is shown, and adds no column."""

    columns: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.x: list[np.ndarray] = []
        self.y: list[np.ndarray] = []
        self.tokens: list[np.ndarray] = []

    def refusal(self, method: Any) -> str:
        return ""

    def measure(self, problem: Any, method: Any, snapshot: Any) -> tuple[float, ...]:
        for kept, now in ((self.x, snapshot.x), (self.y, snapshot.y), (self.tokens, snapshot.token)):
            kept.append(np.array(now))
        return ()


@dataclass(frozen=True, eq=False)
class Film:
    """All states of a run, the start first, and the run itself. `token` is the mean x for gossip."""

    run: rl.Run
    x: np.ndarray
    y: np.ndarray
    token: np.ndarray

    @property
    def units(self) -> np.ndarray:
        return np.asarray(self.run.record.units)

    @property
    def seconds(self) -> np.ndarray:
        return np.asarray(self.run.record.seconds)


def simulate(
    algorithm: Any, problem: Any, network: rl.Network, conditions: Any = None, engine: Any = "python", **options: Any
) -> rl.Run:
    """`rl.simulate` as all tests here use it."""
    options = {"seed": SEED, **options}
    return rl.simulate(algorithm, problem, network, conditions=conditions, engine=engine, progress=False, **options)


def film(algorithm: Any, problem: Any, network: rl.Network, conditions: Any = None, **options: Any) -> Film:
    """A run with a row and a picture of every step."""
    camera = Camera()
    run = simulate(algorithm, problem, network, conditions, **{"record": 1, **options}, monitors=[camera])
    return Film(run, np.array(camera.x), np.array(camera.y), np.array(camera.tokens))


def squares(agents: int, dim: int = 2, seed: int = 1) -> rl.LeastSquares:
    """Least squares in which every agent has more rows than unknowns."""
    return rl.paper_least_squares(agents=agents, samples=6, dim=dim, seed=seed)


def triangle_with_tail() -> rl.Network:
    """Five agents, an odd cycle and a tail: neither regular nor bipartite, and without a Hamiltonian cycle."""
    return rl.Network(5, np.array([[0, 1], [1, 2], [0, 2], [2, 3], [3, 4]]))


def adjacency(network: rl.Network) -> np.ndarray:
    matrix = np.zeros((network.agents, network.agents))
    for i, j in network.edges:
        matrix[i, j] = matrix[j, i] = 1.0
    return matrix


def weights_of(network: rl.Network) -> np.ndarray:
    """The Metropolis weights, dense."""
    return metropolis(adjacency(network))


def matrix_of(network: rl.Network, seconds: Any) -> np.ndarray:
    """What belongs to the links, as a dense symmetric matrix."""
    matrix = np.zeros((network.agents, network.agents))
    for (i, j), value in zip(network.edges, np.broadcast_to(seconds, len(network.edges)), strict=True):
        matrix[i, j] = matrix[j, i] = value
    return matrix


def arcs_of(network: rl.Network) -> list[np.ndarray]:
    """Whom each agent hears, in order."""
    return [np.flatnonzero(row) for row in adjacency(network)]


def exponential(chance: float) -> float:
    return float(-np.log1p(-chance))


# ---------------------------------------------------------------- which messages are lost


def send_postcard(problem: Any, method: Any, at: Exchange, states: Any, own: Any, inbox: Any, out: Any) -> None:
    """Coordinate i of agent i's message says when it was written: k + 1."""
    for d in each(DIM):
        out[0, d] = 0.0
    out[0, at.agent] = at.iteration + 1.0


def receive_postcards(problem: Any, method: Any, at: Exchange, states: Any, own: Any, inbox: Any, talked: bool) -> None:
    """x_i is the inbox, whose coordinate j holds w_ij·(when the message of j that i goes by was written)."""
    for d in each(DIM):
        states.x[at.agent, d] = inbox[0, d]


class PostcardNumbers(NamedTuple):
    """The iteration in which the first postcards are sent."""

    first: int


def writes(method: PostcardNumbers, seed: int, k: int) -> bool:
    return k >= method.first


@dataclass(frozen=True)
class Postcards:
    """A gossip method that solves nothing, but whose states tell which message each agent has of each other."""

    first: int = 0
    name: str = "postcards"

    def parts(self) -> Gossip:
        functions = (("send", send_postcard), ("receive", receive_postcards), ("talks", writes))
        return Gossip(functions, lambda network: PostcardNumbers(self.first), needs=())


POSTCARDS = Postcards()


def dates(
    network: rl.Network, conditions: rl.NetworkConditions, exchanges: int, probe: Any = POSTCARDS, **options: Any
) -> np.ndarray:
    """dates[k, i, j]: in which exchange, from 1, agent j wrote what agent i has of it after exchange k; 0 for nothing."""
    problem, weights = squares(network.agents, network.agents), weights_of(network)
    x = film(probe, problem, network, conditions, iterations=exchanges, **options).x[1:]
    stamps = np.divide(x, weights, out=np.zeros_like(x), where=weights > 0.0)
    np.testing.assert_allclose(stamps, np.rint(stamps), atol=1e-6)
    return np.rint(stamps).astype(int)


def losses(
    network: rl.Network, conditions: rl.NetworkConditions, exchanges: int, probe: Any = POSTCARDS, **options: Any
) -> np.ndarray:
    """lost[k, i, j]: agent i does not hear what j sends in exchange k = 0, 1, … They do not depend on the method."""
    now = 1 + np.arange(exchanges)[:, None, None]
    return (dates(network, conditions, exchanges, probe, **options) != now) & (adjacency(network) > 0.0)


# ---------------------------------------------------------------- what the links add


class TwoNoises(NamedTuple):
    """What each agent hears of two vectors of zeros."""

    x: Any
    y: Any


def send_nothing(problem: Any, method: Any, at: Exchange, states: Any, own: Any, inbox: Any, out: Any) -> None:
    """Zeros."""
    for d in each(DIM):
        out[0, d] = 0.0
        out[1, d] = 0.0


def receive_noise(problem: Any, method: Any, at: Exchange, states: Any, own: Any, inbox: Any, talked: bool) -> None:
    """x_i and y_i are what came out of the two sums."""
    for d in each(DIM):
        states.x[at.agent, d] = inbox[0, d]
        states.y[at.agent, d] = inbox[1, d]


class Hiss:
    """A gossip method in which all are silent, so that its states are what the links add to two sums of messages."""

    name = "hiss"

    def parts(self) -> Gossip:
        functions = (("send", send_nothing), ("receive", receive_noise))
        return Gossip(functions, lambda network: Numbers(), TwoNoises, needs=(), vectors=2)


def within(measured: float, expected: float, error: float, times: float = 5.0) -> bool:
    """Whether a mean is as close to what it should be as its standard error allows."""
    return bool(abs(measured - expected) <= times * error)


def batch_error(values: np.ndarray, batches: int = 40) -> float:
    """The standard error of the mean of a series that depends on its past, from the means of long batches."""
    means = np.array([batch.mean() for batch in np.array_split(np.asarray(values, float), batches)])
    return float(means.std(ddof=1) / np.sqrt(batches))


def assert_white(draws: np.ndarray) -> None:
    """Standard normal and independent: `draws` is (times, columns)."""
    count = len(draws)
    root = np.sqrt(count)
    assert np.abs(draws.mean(axis=0)).max() <= 5.0 / root
    assert np.abs((draws**2).mean(axis=0) - 1.0).max() <= 5.0 * np.sqrt(2.0) / root
    assert abs((draws**2).mean() - 1.0) <= 5.0 * np.sqrt(2.0 / draws.size)
    assert abs((draws**4).mean() - 3.0) <= 5.0 * np.sqrt(96.0 / draws.size)
    together = draws.T @ draws / count
    assert np.abs(together - np.diag(np.diag(together))).max() <= 5.5 / root
    assert np.abs(draws[1:].T @ draws[:-1] / count).max() <= 5.5 / root
    squares = draws**2 - 1.0  # that the sizes are independent, too
    assert np.abs(squares.T @ squares / count - np.diag((squares**2).mean(axis=0))).max() <= 5.5 * 2.0 / root
