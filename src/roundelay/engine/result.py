"""What a simulation leaves behind: the run, the rows of its history, and what one agent can read out of its tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector
from roundelay.kernels.checks import whole_number
from roundelay.problems import total_gradient, total_value
from roundelay.shown.notebook import Curve, View
from roundelay.shown.show import Shown
from roundelay.shown.table import table_of
from roundelay.transcripts import Transcript

if TYPE_CHECKING:
    import pandas as pd

    from roundelay.links.conditions import NetworkConditions
    from roundelay.problems import Problem, Regulariser


FAMILIES = {"token": "a token method", "gossip": "a gossip method", "sealed": "sealed laps"}
StopKind = Literal["hops", "iterations", "tolerance", "content", "diverged", "interrupted", "budget", "found"]


def outcome_in_words(
    stop: StopKind,
    steps: int,
    noun: str,
    tolerance: float | None,
    content: float | None = None,
    last_lap: int = 0,
    budget: str = "",
) -> str:
    """Why it stopped; `noun` is what the steps are called."""
    words: dict[StopKind, str] = {
        "hops": f"It made all {steps} hops that were asked for.",
        "iterations": f"It made all {steps} iterations that were asked for.",
        "tolerance": f"The error came down to {tolerance} after {steps} {noun}s.",
        "content": f"All agents were content within {content} after {steps} hops; "
        f"a last lap of {last_lap} hops carried the frozen token, and all confirmed.",
        "diverged": f"It diverged at {noun} {steps}: the states left all bounds.",
        "interrupted": f"It was interrupted after {steps} {noun}s; the state is whole.",
        "found": f"It found the minimiser after {steps} hops.",
        "budget": f"It stopped after {steps} {noun}s to stay within its budget: {budget}.",
    }
    return words[stop]


def bytes_a_message(dim: int) -> int:
    """What p numbers weigh on the wire: eight bytes each, as doubles."""
    return 8 * dim


@dataclass(frozen=True, eq=False)
class HistoryRows:
    """The history as arrays, one row a recorded hop, lap or iteration; `tokens` holds the mean of the x_i for gossip.

    With `jumps` nothing is known between two rows: all agents move at once, at the end of a lap. `measures` are the columns that
    only the problem can give, where a run comes from a file without it.
    """

    step: NDArray[np.int64]
    units: NDArray[Any]
    bytes: NDArray[np.int64]
    seconds: Vector
    accuracy: Vector
    error: Vector
    consensus: Vector
    tokens: Matrix
    monitors: dict[str, Vector] = field(default_factory=dict)
    measures: Mapping[str, Vector] | None = None
    jumps: bool = False

    def against(self, optimum: Vector) -> HistoryRows:
        """The same rows; without numbers for distances from a minimiser that is not known."""
        if np.isfinite(optimum).all():
            return self
        unknown = np.full(len(self.step), np.nan)
        return replace(self, accuracy=unknown, error=unknown)


@dataclass(frozen=True, eq=False)
class Journey:
    """What a run with tokens has besides: the tokens, the agents' visits, the tour, and what one agent received."""

    tokens: Matrix
    visits: NDArray[np.int64]
    tour: str
    received: Matrix
    reader: int
    lap_is_fixed: bool
    token_scale: float


@dataclass(frozen=True, eq=False)
class Privacy:
    """What sealed laps with noise promise every record, where neighbouring means one record more or less, and what it costs.

    (ε, δ)-differential privacy; `rho` is the same loss as zero-concentrated differential privacy has it, which adds up over runs.
    `deviations` are the standard deviations that noise has added to each unknown, to first order; NaN where the run did not end.
    """

    epsilon: float
    delta: float
    rho: float
    leave_out: int
    deviations: Vector

    @property
    def words(self) -> str:
        """The promise, and its price."""
        least, most = self.deviations.min(), self.deviations.max()
        return (
            f"ε = {self.epsilon:.4g} at δ = {self.delta:g} for one record more or less, even where {self.leave_out} members leave their noise "
            f"out; noise has given each unknown a standard deviation of {least:.2g} to {most:.2g}."
        )


@dataclass(frozen=True, eq=False)
class Run(Shown):
    """The result of `simulate`.

    `estimate` is the solution that was found: what the token stands for, the public point of sealed laps, or the mean of the
    agents' x_i in a gossip method. `x` and `y` are the states and multipliers (N, p). `outcome` says in words why it stopped; `stop` is the
    reason as one word, `steps` (hops or iterations) and `units` how far it came. `engine` tells which engine ran, and
    why. With tokens, `token` is what went round at the end (the mean, where there are several: `tokens` has them all).
    `resume` makes more steps; it stays behind where the run goes to a file or to another process. `conditions` are the network's, where there were any. `privacy` is what sealed laps under a budget have promised, and its price.
    """

    algorithm: Any
    seed: int
    engine: str
    engine_reason: str
    outcome: str
    stop: StopKind
    steps: int
    units: float
    estimate: Vector
    x: Matrix
    y: Matrix
    optimum: Vector
    record: HistoryRows
    journey: Journey | None = None
    transcript: Transcript | None = None
    conditions: NetworkConditions | None = None
    problem: Problem | None = None
    regulariser: Regulariser | None = None
    privacy: Privacy | None = None
    resume: Callable[[int], Run] | None = None
    kept_data_in_words: str = ""

    def __repr__(self) -> str:
        return f"Run({self.name}{self._where}, seed {self.seed}, {self.engine} engine: {self.outcome})"

    @property
    def name(self) -> str:
        """What the method is called."""
        described = self.algorithm.get("class") if isinstance(self.algorithm, dict) else None
        return str(described or getattr(self.algorithm, "name", type(self.algorithm).__name__))

    def view(self) -> View:
        """Where it began and ended, and how the error came down."""
        ends = self.history.iloc[sorted({0, len(self.history) - 1})]
        return View(
            f"{self.name}{self._where}, seed {self.seed}. {self.outcome}", (table_of(ends, "run"),), (self.curve(),)
        )

    def curve(self, name: str = "") -> Curve:
        """How the error came down over the units, or what there is in its place."""
        column = next(one for one in ("error", "gradient_norm", "objective", "consensus") if one in self.history)
        return Curve(name or column.replace("_", " "), tuple(self.column("units")), tuple(self.column(column)))

    def made(self) -> dict[str, Any]:
        """Its method with all parameters, its seed, and its data, where these have a name."""
        return {"parameters": self.algorithm, "seeds": self.seed, "data": self.data_in_words}

    @property
    def data_in_words(self) -> str:
        """Where the rows come from and how they were divided, as `roundelay.split` says it; empty where nobody has said."""
        return getattr(self.problem, "data_in_words", self.kept_data_in_words)

    @property
    def _where(self) -> str:
        return f" on {self.data_in_words}" if self.data_in_words else ""

    @property
    def family(self) -> Literal["token", "gossip", "sealed"]:
        """Whether a token went round, or all agents spoke to their neighbours, or sums under masks went round."""
        return "gossip" if self.journey is None else "sealed" if self.record.jumps else "token"

    @property
    def hops(self) -> int:
        """How many hops were made."""
        _ = self._journey("hops, but iterations")
        return self.steps

    @property
    def iterations(self) -> int:
        """How many iterations were made."""
        if self.journey is not None:
            raise AttributeError(f"A run of {FAMILIES[self.family]} has hops, not iterations: use run.hops.")
        return self.steps

    @property
    def tokens(self) -> Matrix:
        """All tokens at the end."""
        return self._journey("tokens").tokens

    @property
    def token(self) -> Vector:
        """The token at the end; the mean where there are several."""
        tokens = self._journey("token: use run.estimate, the mean of the agents' x,").tokens
        return tokens[0] if len(tokens) == 1 else tokens.mean(axis=0)

    @property
    def visits(self) -> NDArray[np.int64]:
        """How often each agent has worked on a token."""
        return self._journey("visits").visits

    @property
    def tour(self) -> str:
        """The way the token went round, in words; empty where it walked at random, or where there is none."""
        return "" if self.journey is None else self.journey.tour

    @property
    def reader(self) -> int:
        """The agent whose received tokens `readout` uses."""
        return self._journey("reader").reader

    @property
    def received(self) -> Matrix:
        """The last tokens that the reader received."""
        return self._journey("received tokens").received

    @property
    def has_optimum(self) -> bool:
        """Whether the run is measured by its distance from a minimiser."""
        return bool(np.isfinite(self.optimum).all())

    def _journey(self, what: str) -> Journey:
        if self.journey is None:
            raise AttributeError(f"A run of {FAMILIES[self.family]} has no {what}.")
        return self.journey

    @cached_property
    def history(self) -> pd.DataFrame:
        """One row a recorded hop, or iteration.

        `hop` or `iteration`; `units` (messages sent, each of p numbers; 32 bits of a compressed message count as one
        number), `bytes` (8 for a number), and `seconds` (simulated, where the network's conditions were given); `accuracy` is the paper's (1/N)Σ‖x_i − x*‖/‖x_i⁰ − x*‖, `error`
        the common (1/N)Σ‖x_i − x*‖/‖x*‖; `token_error` is ‖z − x*‖/‖x*‖; `consensus` is the root mean square of
        ‖x_i − z‖/‖x*‖; `objective_gap` is Σf_i(z) + r(z) minus its value at x*, below 0 where z is better than x*. Then the columns of the
        monitors. In a gossip method z is the mean of the x_i, and its error the column `mean_error`.

        Where the problem was said to have no minimiser (optimum=None), or has several and no gradient, there are instead `consensus`, not divided by anything,
        `gradient_norm`, which is ‖Σ∇f_i(z)‖ (with r the length of a proximal gradient step of size 1), and `objective`, Σf_i(z) + r(z).
        """
        import pandas as pd  # late: a run need not wait for it

        record, scale, known = self.record, _scale(self.optimum), self.has_optimum
        tokens = self.journey is not None
        distances: dict[str, Any] = {
            "accuracy": record.accuracy,
            "error": record.error / scale,
            "token_error" if tokens else "mean_error": self._distances() / scale,
        }
        columns: dict[str, Any] = {
            "hop" if tokens else "iteration": record.step,
            "units": record.units,
            "bytes": record.bytes,
            **({} if self.conditions is None else {"seconds": record.seconds}),
            **(distances if known else {}),
            "consensus": record.consensus / scale,
            **(self._measures() if record.measures is None else record.measures),
        }
        return pd.DataFrame(columns | record.monitors)

    def column(self, name: str) -> Vector:
        """A column of the history as an array of floats."""
        if name not in self.history.columns:
            columns = f"it has {', '.join(self.history.columns)}"
            hint = "give the network's conditions to simulate" if name == "seconds" else columns
            if not self.has_optimum:
                hint = f"the problem was said to have no minimiser; {columns}"
            raise ValueError(f"The history has no column {name!r}: {hint}.")
        return self.history[name].to_numpy(np.float64)

    def units_to(self, error: float, column: str = "error") -> float:
        """How many units it took until the error stayed at or below this value; infinite where it never did."""
        return self.cost_to(error, "units", column)

    def cost_to(self, error: float, axis: str = "units", column: str = "error") -> float:
        """What it took, in units, bytes or seconds, until the error stayed at or below this value; infinite if never."""
        values, cost = self.column(column), self.column(axis)
        above = np.flatnonzero(~(values <= error))
        last = int(above[-1]) if len(above) else -1
        if last == len(values) - 1:
            return float("inf")
        if last < 0:
            return float(cost[0])
        if self.record.jumps:
            return float(cost[last + 1])
        # Between two rows the logarithm of the error is taken as a straight line.
        start, end = np.log(values[last]), np.log(max(values[last + 1], 1e-300))
        part = (start - np.log(error)) / (start - end) if np.isfinite(start) else 1.0
        return float(cost[last] + part * (cost[last + 1] - cost[last]))

    def readout(self, agent: int | None = None) -> Readout:
        """The best estimate that one agent can make of the tokens it received: see `Readout`."""
        journey = self._journey("readout: every agent has its own x")
        received = journey.received
        if agent is not None and not 0 <= agent < len(self.x):
            raise ValueError(f"There is no agent {agent}: the agents are numbered from 0 to {len(self.x) - 1}.")
        if self.family == "sealed":
            moved = np.linalg.norm(np.diff(self.record.tokens[-2:], axis=0), axis=1)
            return Readout(self.estimate, False, np.inf, float(moved[0]) if len(moved) else np.inf, PUBLIC_POINT)
        if agent is not None and agent != journey.reader:
            if self.transcript is None:
                raise ValueError(
                    f"The tokens that agent {agent} received were not kept: simulate with transcript=True, or with reader={agent}."
                )
            received = self.transcript.worked_on_by(agent)
        readout = read_out(received, self.token, journey.lap_is_fixed)
        return replace(readout, estimate=self._solutions(readout.estimate[None])[0])

    def extend(self, steps: int) -> Run:
        """The run with so many more hops or iterations, the same to the bit as if all had been made at once.

        Its history has the rows of this one, and then as many as a run of the new steps would have.
        """
        if self.resume is None:
            raise ValueError(
                "Only a run of hops or iterations can be continued, and in the process that made it: simulate again with as many as you need."
            )
        return self.resume(whole_number("The number of further steps", steps, least=1))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "resume": None}

    def save(self, path: str | Path) -> Path:
        """Save the run to one file, which `roundelay.load_run` reads again."""
        from roundelay.engine.storage import save_run

        return save_run(self, Path(path))

    def _solutions(self, tokens: Matrix) -> Matrix:
        """What tokens stand for: their prox, where they carry a regulariser."""
        if self.regulariser is None or self.journey is None:
            return tokens
        scale = self.journey.token_scale
        return np.array([self.regulariser.prox(token, scale) for token in tokens])

    def _distances(self) -> Vector:
        """How far what the tokens stand for is from the optimum."""
        with np.errstate(over="ignore", invalid="ignore"):  # of a run that diverged
            return np.linalg.norm(self._solutions(self.record.tokens) - self.optimum, axis=1)

    def _measures(self) -> dict[str, Vector]:
        """What only the problem can tell of the solutions: the gap of the objective, or without an optimum the gradient and the objective."""
        tokens, problem, regulariser = self.record.tokens, self.problem, self.regulariser
        names = ("objective_gap",) if self.has_optimum else ("gradient_norm", "objective")
        if problem is not None and not problem.has_gradients:
            names = names[-1:]
        if problem is None:
            return {name: np.full(len(tokens), np.nan) for name in names}
        finite = np.isfinite(tokens).all(axis=1)
        points = self._solutions(tokens[finite])
        penalties = 0.0 if regulariser is None else np.array([regulariser.value(point) for point in points])
        if self.has_optimum:
            gaps = problem.objective_gaps(points) - problem.objective_gaps(self.optimum[None]) + penalties
            found = [gaps if regulariser is None else gaps - regulariser.value(self.optimum)]
        else:
            slopes = [total_gradient(problem, point) for point in points] if problem.has_gradients else []
            if regulariser is not None and slopes:
                slopes = [
                    point - regulariser.prox(point - slope, 1.0) for point, slope in zip(points, slopes, strict=True)
                ]
            known = problem.has_values
            values = np.array([total_value(problem, point) if known else np.nan for point in points])
            found = [np.array([np.linalg.norm(slope) for slope in slopes]), values + penalties][-len(names) :]
        columns = {name: np.full(len(tokens), np.inf) for name in names}
        for name, numbers in zip(names, found, strict=True):
            columns[name][finite] = numbers
        return columns


def _scale(optimum: Vector) -> float:
    """‖x*‖, or 1 where the optimum is the origin."""
    size = float(np.linalg.norm(optimum))
    return size if size > 0.0 else 1.0


# ---------------------------------------------------------------- the readout

PUBLIC_POINT = (
    "The public point, at which every agent stands: it jumps from lap to lap, and there is nothing to extrapolate."
)

# How many of the last tokens are used.
WINDOW = 20

# How many tokens are held back, one after another, to see whether the extrapolation stands still.
HELD_BACK = 4

# The extrapolation must move this much less than the token itself. Where a lap is one fixed linear map it
# moves a hundred times less or better; where steps or walks are random it hardly ever does.
TRUST = 0.02

# The token's later steps must be this much shorter than its earlier ones: at a floor of noise, or of
# rounding, they are not, and there is no limit to extrapolate to.
SHRINKS = 0.8


@dataclass(frozen=True, eq=False)
class Readout:
    """`estimate`, and whether it is `extrapolated` or the last token as it came.

    The agent judges both by what it has seen. `plain_residual` is how far the last lap moved the token.
    `residual` is the same for the estimate: how far the last four tokens moved the extrapolation (infinite
    where there is none). The extrapolation is taken where it moved far less than the token.
    """

    estimate: Vector
    extrapolated: bool
    residual: float
    plain_residual: float
    words: str


def read_out(received: Matrix, token: Vector, lap_is_fixed: bool) -> Readout:
    """The better of the token as it stands and the limit extrapolated from those that one agent received.

    `lap_is_fixed` says that the token comes round by the same way each lap and that the method keeps an
    invariant: otherwise there is no sequence to extrapolate, or one that leads beside the optimum.
    """
    plain = float(np.linalg.norm(received[-1] - received[-2])) if len(received) > 1 else np.inf
    if not lap_is_fixed:
        words = "The plain token: on a random walk, or without an invariant, there is nothing to extrapolate."
        return Readout(token, False, np.inf, plain, words)
    if len(received) < HELD_BACK + 3:
        return Readout(token, False, np.inf, plain, "The plain token: too few laps to extrapolate.")
    sequence = received[-WINDOW:]
    steps = np.linalg.norm(np.diff(sequence, axis=0), axis=1)
    half = len(steps) // 2
    if not np.median(steps[half:]) < SHRINKS * np.median(steps[:half]):
        return Readout(token, False, np.inf, plain, "The plain token: it no longer comes closer from lap to lap.")
    limit = vector_epsilon(sequence)
    moved = max(float(np.linalg.norm(limit - vector_epsilon(sequence[:-held]))) for held in range(1, HELD_BACK + 1))
    if moved < TRUST * plain:
        words = f"The limit extrapolated from {len(sequence)} tokens: it moved by {moved:.1e} where the token moved by {plain:.1e}."
        return Readout(limit, True, moved, plain, words)
    words = f"The plain token: it moved by {plain:.1e}, and the extrapolation by {moved:.1e}, too much to be trusted."
    return Readout(token, False, moved, plain, words)


def vector_epsilon(sequence: Matrix) -> Vector:
    """The limit of a linearly converging sequence of vectors, by Wynn's vector epsilon algorithm."""
    before = np.zeros((len(sequence) + 1, sequence.shape[1]))
    current = np.array(sequence)
    best = current[-1]
    for column in range(1, len(sequence)):
        step = np.diff(current, axis=0)
        squares = (step**2).sum(axis=1)
        if not (squares > 0.0).all():
            break  # two equal entries: the sequence has arrived
        following = before[1 : len(step) + 1] + step / squares[:, None]
        before, current = current, following
        if column % 2 == 0:  # only even columns hold estimates of the limit
            if not np.isfinite(current).all():
                break
            best = current[-1]
    return best
