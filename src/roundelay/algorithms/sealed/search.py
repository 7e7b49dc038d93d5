"""SciPy's L-BFGS-B as somebody who asks: it runs in a thread of its own, and is never told but totals."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from roundelay.algorithms.sealed.questions import Total
from roundelay.kernels import Vector
from roundelay.problems.regularisers import simple_shape

if TYPE_CHECKING:
    from roundelay.algorithms.sealed.optimisers import Goal

# A difference of two values that is smaller than this part of them is taken from the slopes instead.
BELOW_ROUNDING = 1e-9


class EndedError(Exception):
    """Nobody asks any more."""


class Search:
    """SciPy's optimiser in a thread of its own, which waits whenever it wants to know a value.

    Its first step is one of length 1, so it is given units in which the gradient has the length 1 and a likely step too. Values are
    told relative to that at the start, or the last steps would be lost beside them.
    """

    def __init__(self, goal: Goal, start: Vector, first: Total, length: float) -> None:
        self.goal, self.start, self.length, self.asked = goal, start, length, 0
        self._shape = simple_shape(goal.regulariser)
        self._height = length * float(np.linalg.norm(first.gradient)) or 1.0
        self._last: tuple[Vector, float, Total] = (start, 0.0, first)
        self._bend, self._begun = 0.0, False
        self._questions: queue.SimpleQueue[Vector | BaseException | None] = queue.SimpleQueue()
        self._totals: queue.SimpleQueue[Total | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def started(self) -> Vector | None:
        """The first point that it asks for; None where there is none."""
        self._thread.start()
        return self._next()

    def told(self, total: Total) -> Vector | None:
        """The next point, after the total at the one before."""
        self._totals.put(total)
        return self._next()

    def close(self) -> None:
        """Let the thread end."""
        self._totals.put(None)

    def usual_length(self, gradient: Vector) -> float:
        """How long a step along the gradient is likely to be right, by the last curvature that was seen."""
        size = float(np.linalg.norm(gradient))
        return size / self._bend if self._bend > 0.0 and size > 0.0 else self.length

    def _next(self) -> Vector | None:
        following = self._questions.get()
        if isinstance(following, BaseException):
            raise following
        self.asked += following is not None
        return following

    def _run(self) -> None:
        from scipy.optimize import minimize  # late: it takes half a second

        shape, dim, start, length = self._shape, self.goal.dim, self.start, self.length
        split = bool(np.any(np.asarray(shape.weight) > 0.0))
        bounds: Any = None
        if split:
            first = np.concatenate([np.maximum(start, 0.0), np.maximum(-start, 0.0)]) / length
            bounds = [(0.0, None)] * (2 * dim)
        else:
            first = np.zeros(dim)
            if np.isfinite([shape.lower, shape.upper]).any():
                bounds = np.column_stack([(shape.lower - start) / length, (shape.upper - start) / length])
        most = self.goal.most
        # A workspace of 2m + 5 vectors: with a million unknowns a few of them must do.
        options: Any = {
            "maxcor": 10 if dim <= 100_000 else 4,
            "ftol": 0.0,
            "gtol": 0.0,
            "maxiter": most,
            "maxfun": most,
        }
        try:
            function: Any = self._of_parts if split else self._of_offset
            minimize(function, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
            self._questions.put(None)
        except EndedError:
            pass
        except BaseException as error:
            self._questions.put(error)

    def _of_offset(self, offset: Vector) -> tuple[float, Vector]:
        value, gradient = self._at(self.start + self.length * offset)
        return value / self._height, (self.length / self._height) * gradient

    def _of_parts(self, both: Vector) -> tuple[float, Vector]:
        upper, lower = np.split(self.length * both, 2)
        value, gradient = self._at(upper - lower)
        weight, unit = self._shape.weight, self.length / self._height
        whole = value + float(np.sum(weight * (upper + lower - np.abs(self.start))))
        return whole / self._height, unit * np.concatenate([gradient + weight, weight - gradient])

    def _at(self, x: Vector) -> tuple[float, Vector]:
        """Value and gradient, as soon as they are known."""
        before, value, last = self._last
        if not self._begun:  # the start has been asked for
            self._begun = True
            return value, last.gradient
        if np.array_equal(x, before):
            return value, last.gradient
        self._questions.put(x)
        total = self._totals.get()
        if total is None:
            raise EndedError
        apart, change = x - before, total.value - last.value
        if not self.goal.values or abs(change) <= BELOW_ROUNDING * max(abs(total.value), abs(last.value)):
            change = 0.5 * float((last.gradient + total.gradient) @ apart)
        self._bend = float((total.gradient - last.gradient) @ apart) / float(apart @ apart)
        self._last = (x, value + change, total)
        return value + change, total.gradient
