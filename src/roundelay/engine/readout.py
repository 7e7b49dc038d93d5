"""The extrapolated estimate that one agent makes of the tokens it has seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roundelay.kernels import Matrix, Vector

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
