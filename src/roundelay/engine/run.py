"""What a simulation leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from roundelay.engine.readout import Readout, read_out
from roundelay.engine.token import bytes_a_message
from roundelay.engine.transcript import Transcript
from roundelay.kernels import Matrix, Vector

if TYPE_CHECKING:
    import pandas as pd

    from roundelay.problems import Problem, Regulariser

StopKind = Literal["hops", "tolerance", "content", "diverged", "interrupted"]


@dataclass(frozen=True, eq=False)
class Record:
    """The history as arrays, one row a recorded hop."""

    hop: NDArray[np.int64]
    units: NDArray[np.int64]
    accuracy: Vector
    error: Vector
    consensus: Vector
    tokens: Matrix
    monitors: dict[str, Vector] = field(default_factory=dict)
    objective_gap: Vector | None = None


@dataclass(frozen=True, eq=False)
class Run:
    """The result of `simulate`.

    `token` is what went round at the end (the mean of the tokens, where there are several: `tokens` has
    them all), `estimate` the solution it stands for (the same, but for a regulariser), `x` and `y` the states
    and multipliers (N, p). `outcome` says in words why it stopped; `stop` is the reason as one word, `hops`
    and `units` how far it came. `engine` tells which engine ran, and why.
    """

    algorithm: Any
    seed: int
    engine: str
    engine_reason: str
    outcome: str
    stop: StopKind
    hops: int
    units: int
    tokens: Matrix
    estimate: Vector
    x: Matrix
    y: Matrix
    optimum: Vector
    record: Record
    visits: NDArray[np.int64]
    tour: str
    received: Matrix
    reader: int
    lap_is_fixed: bool
    token_scale: float
    transcript: Transcript | None = None
    problem: Problem | None = None
    regulariser: Regulariser | None = None

    def __repr__(self) -> str:
        described = self.algorithm.get("class") if isinstance(self.algorithm, dict) else None
        name = described or getattr(self.algorithm, "name", type(self.algorithm).__name__)
        return f"Run({name}, seed {self.seed}, {self.engine} engine: {self.outcome})"

    @property
    def token(self) -> Vector:
        """The token at the end; the mean where there are several."""
        return self.tokens[0] if len(self.tokens) == 1 else self.tokens.mean(axis=0)

    @cached_property
    def history(self) -> pd.DataFrame:
        """One row a recorded hop.

        `hop` and `units` (messages sent), `bytes`; `accuracy` is the paper's (1/N)Σ‖x_i − x*‖/‖x_i⁰ − x*‖, `error`
        the common (1/N)Σ‖x_i − x*‖/‖x*‖; `token_error` is ‖z − x*‖/‖x*‖; `consensus` is the root mean square of
        ‖x_i − z‖/‖x*‖; `objective_gap` is Σf_i(z) + r(z) minus its minimum. Then the columns of the monitors.
        """
        import pandas as pd  # late: a run need not wait for it

        record, scale = self.record, _scale(self.optimum)
        columns: dict[str, Any] = {
            "hop": record.hop,
            "units": record.units,
            "bytes": record.units * bytes_a_message(len(self.optimum)),
            "accuracy": record.accuracy,
            "error": record.error / scale,
            "token_error": np.linalg.norm(self._solutions(record.tokens) - self.optimum, axis=1) / scale,
            "consensus": record.consensus / scale,
            "objective_gap": self._objective_gap(),
        }
        return pd.DataFrame(columns | record.monitors)

    def units_to(self, error: float, column: str = "error") -> float:
        """How many units it took until the error stayed at or below this value; infinite where it never did."""
        values, units = self.history[column].to_numpy(), self.history["units"].to_numpy(np.float64)
        above = np.flatnonzero(~(values <= error))
        last = int(above[-1]) if len(above) else -1
        if last == len(values) - 1:
            return float("inf")
        if last < 0:
            return float(units[0])
        # Between two rows the logarithm of the error is taken as a straight line.
        start, end = np.log(values[last]), np.log(max(values[last + 1], 1e-300))
        part = (start - np.log(error)) / (start - end) if np.isfinite(start) else 1.0
        return float(units[last] + part * (units[last + 1] - units[last]))

    def readout(self, agent: int | None = None) -> Readout:
        """The best estimate that one agent can make of the tokens it received: see `Readout`."""
        received = self.received
        if agent is not None and agent != self.reader:
            if not 0 <= agent < len(self.x):
                raise ValueError(f"There is no agent {agent}: the agents are numbered from 0 to {len(self.x) - 1}.")
            if self.transcript is None:
                raise ValueError(
                    f"The tokens that agent {agent} received were not kept: simulate with transcript=True, or with reader={agent}."
                )
            received = self.transcript.worked_on_by(agent)
        readout = read_out(received, self.token, self.lap_is_fixed)
        return replace(readout, estimate=self._solutions(readout.estimate[None])[0])

    def save(self, path: str | Path) -> Path:
        """Save the run to one file, which `roundelay.load_run` reads again."""
        from roundelay.engine.storage import save_run

        return save_run(self, Path(path))

    def _solutions(self, tokens: Matrix) -> Matrix:
        """What tokens stand for: their prox, where they carry a regulariser."""
        if self.regulariser is None:
            return tokens
        return np.array([self.regulariser.prox(token, self.token_scale) for token in tokens])

    def _objective_gap(self) -> Vector:
        if self.record.objective_gap is not None:
            return self.record.objective_gap
        tokens = self.record.tokens
        if self.problem is None or self.regulariser is None:
            return np.full(len(tokens), np.nan)
        finite = np.isfinite(tokens).all(axis=1)
        gaps = np.full(len(tokens), np.inf)
        points = self._solutions(tokens[finite])
        regulariser, problem = self.regulariser, self.problem
        added = np.array([regulariser.value(point) for point in points]) - regulariser.value(self.optimum)
        smooth = problem.objective_gaps(points) - problem.objective_gaps(self.optimum[None])
        gaps[finite] = np.maximum(smooth + added, 0.0)
        return gaps


def _scale(optimum: Vector) -> float:
    """‖x*‖, or 1 where the optimum is the origin."""
    size = float(np.linalg.norm(optimum))
    return size if size > 0.0 else 1.0
