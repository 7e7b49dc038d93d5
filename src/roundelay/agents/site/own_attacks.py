"""The attacks that a site makes on itself: what its neighbours hold, and the truth against which it holds what they would find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from roundelay.agents.site.status import CURVATURE, GRADIENT, SLOPE, MeterReading
from roundelay.kernels import Matrix, Vector
from roundelay.privacy.attacks import Attack, LapAttack, Recovered, at_rest
from roundelay.privacy.attacks.lap_sums import quadratic_in, told_in
from roundelay.privacy.public import Public
from roundelay.registry import registered
from roundelay.transcripts import LapParts, Visits


def most_visits(dim: int) -> int:
    """So many visits every attack looks at: several times what the equations need; more tell no more and take longer."""
    return 4 * (dim + 5)


@dataclass(frozen=True, eq=False)
class TokenEvidence:
    """The visits of a token as the neighbours saw them, and the truth of each quantity."""

    visits: Visits
    public: Public
    truth: Mapping[str, Matrix | Vector]

    def readings(self) -> Iterator[MeterReading]:
        """What each attack finds, against the truth; a guess of 0, which needs no message, has the error 1.

        One that fails, by what neighbours have chosen for it perhaps, does not keep the others from finding something, and is raised then.
        """
        first = self.visits.first(most_visits(self.public.dim))
        failed: Exception | None = None
        for name, attack in registered(Attack).items():
            # The one attack that gets better the longer neighbours go on has them all; it is linear.
            visits = self.visits if attack is at_rest else first
            try:
                found: Recovered = attack(visits, self.public)
            except np.linalg.LinAlgError as why:
                failed = why
                continue
            except ValueError:
                continue  # not made for this method, or for so few visits
            estimates = ((GRADIENT, found.y[-1] if visits is first else None), (CURVATURE, found.H), (SLOPE, found.g))
            for what, estimate in estimates:
                truth = self.truth.get(what)
                if truth is not None and estimate is not None and truth.any():
                    error = _relative(estimate, truth)
                    if np.isfinite(error):
                        yield MeterReading(what, error, 1.0, name)
                    else:
                        failed = ArithmeticError(f"what {name} finds is not finite")
        if failed is not None:
            raise failed


@dataclass(frozen=True, eq=False)
class LapEvidence:
    """This site's part in laps of sums as the neighbours hold it, without the masks that they know, and what it answered.

    `start` is where all stood before the first question, and `quadratic` says whether the site's function is.
    """

    parts: LapParts
    public: Public
    answers: tuple[Vector, ...]
    start: Vector | None
    quadratic: bool

    def readings(self) -> Iterator[MeterReading]:
        """What each attack finds, against the truth.

        A reading above 1, the error of a guess without any message, is shown as 1. The neighbours know the words, and so from a
        reading to more digits they would know the size of the answer: the meter itself must not tell it.
        """
        truths = dict(self._quantities(self.answers))
        for name, attack in registered(LapAttack).items():
            try:
                estimates = list(self._quantities(attack(self.parts, self.public).answers))
            except ValueError:
                continue  # not made for what the neighbours hold
            for what, estimate in estimates:
                if what in truths and truths[what].any():
                    error = _relative(estimate, truths[what])
                    yield MeterReading(what, min(error, 1.0) if np.isfinite(error) else 1.0, 1.0, name)

    def _quantities(self, answers: Sequence[Vector | None]) -> Iterator[tuple[str, Matrix | Vector]]:
        """What the answers say: the last gradient, the Hessian, and of a quadratic function the slope."""
        told = list(told_in(self.parts.laps, answers, self.public.dim, self.start))
        gradients = [one.gradient for one in told if one.gradient is not None]
        if gradients:
            yield GRADIENT, gradients[-1]
        hessian, slope = quadratic_in(iter(told), self.public.dim)
        if hessian is not None:
            yield CURVATURE, hessian
        if slope is not None and self.quadratic:
            yield SLOPE, slope


Evidence = TokenEvidence | LapEvidence


def _relative(estimate: Matrix | Vector, truth: Matrix | Vector) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.linalg.norm(estimate - truth) / np.linalg.norm(truth))
