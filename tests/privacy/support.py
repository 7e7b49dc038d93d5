"""Runs whose states are kept after every hop: the truth that an attack never sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import roundelay as rl
from roundelay.privacy import Public
from roundelay.transcripts import Eavesdropper, Observer, Transcript, Visits

# Shorter runs are over before they would be compiled.
SHORT = 2_500


@dataclass(frozen=True)
class Keep:
    """A monitor that keeps x and y of every hop."""

    columns: tuple[str, ...] = ()
    x: list[np.ndarray] = field(default_factory=list)
    y: list[np.ndarray] = field(default_factory=list)

    def refusal(self, method: Any) -> str:
        return ""

    def measure(self, problem: Any, method: Any, snapshot: Any) -> tuple[float, ...]:
        self.x.append(snapshot.x.copy())
        self.y.append(snapshot.y.copy())
        return ()


@dataclass(frozen=True, eq=False)
class Truth:
    """What crossed the links, what is public, and all states: x[k] (N, p) after k hops."""

    transcript: Transcript
    public: Public
    x: np.ndarray
    y: np.ndarray

    def visits(self, agent: int, observer: Observer | None = None) -> Visits:
        return self.transcript.seen_by(observer or Eavesdropper()).visits_of(
            agent, self.public.algorithm.parts().tokens
        )

    def of(self, agent: int) -> tuple[np.ndarray, np.ndarray]:
        """x and y of an agent before the first and after each of its visits, (R + 1, p)."""
        after = np.concatenate([[0], self.visits(agent).hop + 1])
        return self.x[after, agent], self.y[after, agent]


def observed(algorithm: Any, problem: Any, hops: int, seed: int = 0, network: rl.Network | None = None) -> Truth:
    """Simulate, and keep the transcript and every state."""
    keep = Keep()
    network = network or rl.ring(problem.agents)
    run = rl.simulate(
        algorithm, problem, network, hops=hops, seed=seed, record=1, transcript=True, monitors=[keep], progress=False,
        engine="python" if hops <= SHORT else "auto",
    )  # fmt: skip
    assert run.transcript is not None
    public = Public(algorithm, problem.agents, problem.dim)
    return Truth(run.transcript, public, np.array(keep.x), np.array(keep.y))


def relative(estimate: np.ndarray, truth: np.ndarray) -> float:
    """The error of an estimate against the size of the truth."""
    return float(np.linalg.norm(estimate - truth) / np.linalg.norm(truth))
