"""What may be asked of a run, and what is refused in words before it starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from roundelay.algorithms.gossip import GossipMethod, Mixing
from roundelay.algorithms.token_method import TokenMethod
from roundelay.engine.assemble import EngineChoice
from roundelay.engine.monitors import Monitor
from roundelay.kernels import Matrix, Vector
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.kernels.random import SEEDS
from roundelay.links.conditions import NetworkConditions
from roundelay.networks import Network
from roundelay.networks.walks import walked
from roundelay.problems import Problem, has_optimum
from roundelay.registry import registered


@dataclass(frozen=True)
class Options:
    """How to run and what to keep; `simulate` explains each."""

    hops: int | None = None
    iterations: int | None = None
    conditions: NetworkConditions | None = None
    engine: EngineChoice = "auto"
    record: int | Sequence[int] | None = None
    transcript: bool = False
    monitors: tuple[Monitor, ...] = ()
    tolerance: float | None = None
    content: float | None = None
    reader: int = 0
    budget: Budget | None = None
    own_starts: Matrix | None = None


class Budget(Protocol):
    """Something that visits use up, agent by agent."""

    @property
    def words(self) -> str:
        """What must not be exceeded."""

    @property
    def noise_multiplier(self) -> float:
        """How much noise a sum needs, over what one record can change, to use all of it up."""

    def spent_by(self, noise: Any) -> tuple[float, float]:
        """ε and δ of sums with this noise."""

    def refusal(self, method: Any, problem: Problem) -> str:
        """Why nobody can say what a visit or a sum of this method uses up, or nothing where one can."""

    def allowance(self, method: TokenMethod, problem: Problem, most: int) -> Callable[[int, int], bool]:
        """Whether an agent may have so many visits in all, of which there are `most` at the most."""


# ---------------------------------------------------------------- who runs, on what

# What a run needs of a problem.
PROBLEM = ("agents", "dim", "kernel", "optimum", "values", "gradients", "objective_gaps")

NEEDS = {
    "minimise": "a proximal step",
    "gradient": "gradients",
    "row_slope": "gradients of single data rows",
    "record_weight": "what a single record counts",
}
ANOTHER = "choose another algorithm, or a problem that has it"
EXACT = "use a method of exact proximal steps, such as roundelay.IADMM() or roundelay.DADMM(), or a problem that has gradients"


def name_of(algorithm: Any) -> str:
    """The algorithm's name in the papers."""
    return str(getattr(algorithm, "name", type(algorithm).__name__))


def the_problem(problem: Any, seed: int) -> Problem:
    """The problem itself, or the one that a function makes of the seed."""
    made = problem(seed) if callable(problem) and not hasattr(problem, "kernel") else problem
    missing = [name for name in PROBLEM if not hasattr(type(made), name) and name not in getattr(made, "__dict__", {})]
    if missing:
        raise ValueError(
            f"The problem is a {type(made).__name__} without {', '.join(missing)}: use for instance roundelay.LeastSquares(features, targets)."
        )
    return cast(Problem, made)


def the_network(network: Any, seed: int) -> Network:
    """The network itself, or the one that a function makes of the seed."""
    made = network(seed) if callable(network) and not isinstance(network, Network) else network
    if not isinstance(made, Network):
        raise ValueError(
            f"The network is a {type(made).__name__}: use for instance roundelay.ring(10), or roundelay.from_networkx(graph)."
        )
    return made


def the_method(algorithm: Any, problem: Problem, network: Network) -> tuple[Any, Any]:
    """The algorithm with all its parameters set, and its parts; both fit the problem and the network."""
    if isinstance(algorithm, type) or not hasattr(algorithm, "parts"):
        raise ValueError(f"{algorithm!r} is not an algorithm: use an object such as roundelay.IADMM(rho=10.0).")
    if problem.agents != network.agents:
        raise ValueError(
            f"The problem has {problem.agents} agents but the network has {network.agents}: make them agree."
        )
    method = algorithm.parts()
    offered = {slot for slot, _ in problem.kernel().functions}
    for need in method.needs:
        if need not in offered:
            raise ValueError(
                f"{name_of(algorithm)} needs {NEEDS.get(need, repr(need))}, which a {type(problem).__name__} does not offer: "
                f"{EXACT if need in ('gradient', 'row_slope') and 'minimise' in offered else ANOTHER}."
            )
    if hasattr(algorithm, "resolved"):
        algorithm = algorithm.resolved(problem)
        method = algorithm.parts()
    return algorithm, method


def check_seed(seed: int) -> None:
    """A seed has 64 bits."""
    if not 0 <= seed < SEEDS:
        raise ValueError(f"The seed is {seed}: use a whole number from 0 to 2**64 - 1.")


def the_seeds(seeds: Sequence[int]) -> tuple[int, ...]:
    """The seeds as whole numbers, at least one."""
    if isinstance(seeds, (int, str)) or not np.iterable(seeds):
        raise ValueError(f"seeds is {seeds!r}: give a list of seeds, for instance range(10).")
    keys = tuple(whole_number("A seed", seed) for seed in seeds)
    if not keys:
        raise ValueError("seeds is empty: give at least one seed.")
    return keys


def check_conditions(conditions: Any) -> None:
    """The network's conditions are one object, or none."""
    if conditions is not None and (isinstance(conditions, type) or not hasattr(conditions, "states")):
        raise ValueError(
            f"conditions is {conditions!r}: use roundelay.NetworkConditions, for instance NetworkConditions(loss=BernoulliLoss(0.1))."
        )


# ---------------------------------------------------------------- how long, and what is kept


def steps_of(options: Options, noun: Literal["hops", "iterations"], name: str) -> int:
    """How many steps were asked for, in the word that the family uses."""
    other = options.iterations if noun == "hops" else options.hops
    given = options.hops if noun == "hops" else options.iterations
    if other is not None or given is None:
        kind = (
            "a token method, whose length is given in hops"
            if noun == "hops"
            else "a gossip method, whose length is given in iterations"
        )
        raise ValueError(f"{name} is {kind}: say {noun}=… .")
    steps = whole_number(noun, given, least=0)
    if steps > MOST_STEPS:
        raise ValueError(f"{noun} is {steps:.3g}, more than are ever made: use at most {MOST_STEPS:.3g}.")
    return steps


# Laps besides the hops count from 2**40 on.
MOST_STEPS = 10**12


def hops_within(
    budget: Budget | None, method: TokenMethod, problem: Problem, network: Network, seed: int, hops: int
) -> tuple[int, str]:
    """The largest number of hops with which no agent exceeds the budget, and in words why one more would be too many.

    A walk depends on the seed and on the visits, never on the data; so it can be made ahead of the run, and that the run
    ends where it does tells nobody anything of the data.
    """
    if budget is None:
        return hops, ""
    allows, visits = budget.allowance(method, problem, hops), np.zeros(problem.agents, np.int64)
    for hop, (agent, works) in enumerate(walked(method.walk, network, seed, hops, method.tokens)):
        if works:
            if not allows(agent, int(visits[agent]) + 1):
                return hop, f"visit {visits[agent] + 1} of agent {agent}, which is next, would exceed {budget.words}"
            visits[agent] += 1
    return hops, ""


# History rows where the user does not choose.
ROWS, EARLY_ROWS = 1000, 200
# A row holds the token: where that is long there are fewer, at most so many numbers in all.
MOST_NUMBERS = 50_000_000


def marks_of(record: int | Sequence[int] | None, hops: int, dim: int = 1) -> NDArray[np.int64]:
    """The hops at which the history has a row; the last hop always has one."""
    if record is None and MOST_NUMBERS // dim < ROWS + EARLY_ROWS:
        record = -(-hops // max(1, MOST_NUMBERS // dim)) or 1
    if record is None:
        every = max(1, hops // ROWS)
        # The rows before the first of them, ever farther apart, are what a run has to show that is ended early.
        early = np.geomspace(1, ROWS * every, EARLY_ROWS if every > 1 else 0).astype(np.int64)
        return np.union1d(np.append(np.arange(0, hops + 1, every), hops), early).astype(np.int64)
    if np.ndim(record) == 0:
        every = whole_number("record", record, least=1)
        marks = np.arange(0, hops + 1, min(every, hops + 1), dtype=np.int64)
    else:
        marks = np.unique(
            np.array([whole_number("A recorded step", step) for step in cast(Sequence[int], record)], np.int64)
        )
        if len(marks) and (marks[0] < 0 or marks[-1] > hops):
            raise ValueError(
                f"record asks for the steps {marks[0]} to {marks[-1]}, but the run has the steps 0 to {hops}."
            )
    return marks if len(marks) and marks[-1] == hops else np.append(marks, np.int64(hops))


def marks_up_to(hops: int, marks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The marks of a run that ends at this hop."""
    return np.append(marks[marks < hops], np.int64(hops))


def check_reader(reader: int, agents: int) -> None:
    """A reader is one of the agents."""
    if not 0 <= reader < agents:
        raise ValueError(f"reader is {reader}: the agents are numbered from 0 to {agents - 1}.")


def check_monitors(monitors: Sequence[Monitor], method: TokenMethod, name: str) -> None:
    """Every monitor must mean something for the method."""
    for monitor in monitors:
        if isinstance(monitor, type) or not hasattr(monitor, "measure"):
            raise ValueError(f"{monitor!r} is not a monitor: use an object such as roundelay.KKTResiduals().")
        refusal = monitor.refusal(method)
        if refusal:
            raise ValueError(f"{type(monitor).__name__} can't watch {name}: {refusal}. Leave it out.")


# ---------------------------------------------------------------- what does not go together


def check_tolerance(tolerance: float | None, problem: Problem) -> None:
    """A tolerance is positive, and on the error, which needs a minimiser."""
    if tolerance is None:
        return
    finite_number("tolerance", tolerance, above=0.0)
    if not has_optimum(problem):
        raise ValueError(
            "A tolerance is on the distance to the minimiser, and this problem was said to have none (optimum=None): leave "
            "`tolerance` out, or give the minimiser."
        )


def check_stopping(
    tolerance: float | None, content: float | None, method: TokenMethod, problem: Problem, name: str, noise: float = 0.0
) -> None:
    """A stopping rule must be one that can be met."""
    check_tolerance(tolerance, problem)
    if content is None:
        return
    finite_number("content", content, above=0.0)
    reason = method.no_contentment(content, problem.dim, problem.agents)
    if noise > 0.0:
        reason = "the links' noise adds up in the token, so that what the agents find in balance is another problem"
    if reason:
        raise ValueError(
            f"The agents' own stopping rule can't end {name} with content={content:g}: {reason}. "
            "Leave `content` out and stop at `hops` or at a `tolerance`, or choose a larger value."
        )


def check_balance(initial_share: Matrix, token: Vector, name: str) -> None:
    """The agents' own stopping rule rests on Σc_i = Nz, which a start must not break."""
    gap, size = np.abs(initial_share.mean(axis=0) - token).max(), np.abs(initial_share).max()
    if gap > 1e-9 * (1.0 + size):
        raise ValueError(
            f"The agents' own stopping rule would stop {name} at a wrong point, because its start does not have Σ(x_i − y_i/ρ) = Nz: "
            "leave `content` out, or use another start."
        )


def own_starts(x0: Any, method: Any, problem: Problem, name: str) -> Matrix | None:
    """A start for each agent, where x0 is that: of methods that average by weights, whose other states follow from x. None for one point."""
    if np.ndim(x0) != 2:
        return None
    starts = np.array(x0, np.float64)
    if starts.shape != (problem.agents, problem.dim) or not np.isfinite(starts).all():
        raise ValueError(
            f"x0 has the shape {starts.shape}, or numbers that are not finite: give one point, or one for each of the {problem.agents} "
            f"agents, each of {problem.dim} finite numbers."
        )
    if not isinstance(getattr(method, "mixing", None), tuple(registered(Mixing).values())):
        raise ValueError(f"{name} starts all agents at one point: give x0 of the shape ({problem.dim},).")
    return starts


def check_x0(options: Options, method: Any, name: str) -> None:
    """A run from x0 is one from 0 on functions that are moved, which not all that may be asked of a run survives."""
    regulariser = getattr(method, "regulariser", None)
    reasons = (
        (options.transcript, "an audit takes the starts for what the methods say, at 0: leave `transcript` out"),
        (options.budget is not None, "a budget counts what the rows themselves say: leave `budget` out"),
        (bool(options.monitors), "monitors know the starts of the methods alone: leave `monitors` out"),
        (
            regulariser is not None and not regulariser.is_zero,
            "a regulariser pulls to the old origin: leave it out, or x0",
        ),
    )
    for wrong, why in reasons:
        if wrong:
            raise ValueError(f"{name} can't start at an x0 here: {why}.")


def check_words(who: str, noise: float) -> None:
    """Words modulo 2⁶⁴ arrive as they were sent, or not at all."""
    if noise > 0.0:
        raise ValueError(
            f"{who} words of 64 bits, to which a link can't add noise: leave `noise` out of the network's conditions."
        )


def check_budget(options: Options, method: TokenMethod, problem: Problem, name: str) -> None:
    """A budget must be one that the accounting can vouch for."""
    budget = options.budget
    if budget is None:
        return
    if isinstance(budget, type) or not hasattr(budget, "allowance"):
        raise ValueError(f"budget is {budget!r}: use an object such as roundelay.PrivacyBudget(epsilon=1.0).")
    reason = budget.refusal(method, problem)
    if reason:
        raise ValueError(f"{name} can't keep to a budget of {budget.words}: {reason}. Leave `budget` out.")
    if options.tolerance is not None:
        raise ValueError(
            "When the error comes down to a tolerance depends on the data, so that the stop itself would tell something of "
            "them that the budget does not count: leave `tolerance` out, or the budget."
        )


def within_budget(algorithm: Any, budget: Any) -> Any:
    """The algorithm with the noise that the budget asks for, where it adds noise to sums."""
    sums = hasattr(algorithm, "under") and hasattr(budget, "noise_multiplier")
    return algorithm.under(budget.noise_multiplier) if sums else algorithm


def check_gossip(options: Options, method: GossipMethod, name: str) -> None:
    """What belongs to tokens alone, and what loss can't be combined with."""
    if options.transcript:
        raise ValueError(
            f"A transcript holds the tokens that crossed the links, and {name} has none: leave transcript out."
        )
    if options.content is not None:
        raise ValueError(
            f"The agents' own stopping rule counts the agents that a token visits, and {name} has no token: "
            "leave `content` out and stop at `iterations` or at a `tolerance`."
        )
    if method.channel.differences and method.sends_increments:
        raise ValueError(
            f"{name} sends differences already, so that a channel of differences would change nothing: leave differences out."
        )
    conditions = options.conditions
    if conditions is not None and conditions.changes:
        check_changing(method, name, conditions)
    lossy = conditions is not None and conditions.loses and not conditions.resend
    if lossy and method.speeches > 1:
        raise ValueError(
            f"{name} sends two kinds of message in turn, and the last of one can't stand in for a lost one of the other: "
            "use resend=True in the network's conditions, or a method with one exchange."
        )
    if lossy and method.vectors > 1 and method.channel.censoring is not None:
        raise ValueError(
            f"{name} sends {method.vectors} vectors in a message, of which censoring may leave one out, and who loses the message "
            "can't tell which: use resend=True in the network's conditions, or no censoring."
        )
    if lossy and method.channel.differences:
        raise ValueError(
            "A channel of differences needs every message, or sender and receiver would no longer hold the same: "
            "use resend=True in the network's conditions, or a channel without differences."
        )


def check_changing(method: GossipMethod, name: str, conditions: NetworkConditions) -> None:
    """Where links come and go a method averages by the weights of the moment, and remembers nothing that went over a link."""
    instead = "use gradient tracking or DGD, a token method, or a network that stays."
    if not getattr(method.mixing, "averages", False):
        raise ValueError(
            f"{name} does not average over the links that are there, so that it can't go on where links come and go: {instead}"
        )
    if method.sends_increments or method.channel.differences or method.channel.censoring is not None:
        raise ValueError(
            f"{name} goes by what its neighbours remember of earlier messages, which who was away has not heard: {instead}"
        )
    if conditions.loses and not conditions.resend:
        raise ValueError(
            "Where links come and go the last message of a neighbour may be long past, and can't stand in for a lost one: "
            "use resend=True in the network's conditions."
        )


def check_detours(options: Options, method: TokenMethod) -> None:
    """Where a token looks for another way nobody knows beforehand which it takes."""
    if options.conditions is None or not options.conditions.detours or method.walk.is_tour:
        return
    if options.transcript or options.budget is not None:
        what = "a transcript" if options.transcript else "a budget of privacy"
        raise ValueError(
            f"With `detours` a token's way depends on who is awake, and is not known beforehand as {what} asks: leave `detours` out."
        )
