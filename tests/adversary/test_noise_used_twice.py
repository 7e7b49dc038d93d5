"""A folder that is put back with all others against it: asked the same lap elsewhere, its noise must not be there twice.

All others together lift its masks. That may cost the ε of another lap; with one noise in two answers it would cost all of it.
"""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.algorithms.sealed.shared_noise import SHARE_BITS, SharedNoise
from roundelay.kernels import Vector
from roundelay.masks import discrete_gaussian, own_words
from tests.adversary.token_rings import secrets_of

ME, LAP, AGENTS = 1, 1, 4
NOISE = SharedNoise(2, AGENTS, 1.5, 0.8, 1.0, 4.0, (0.25, 0.75), 0.3, leave_out=AGENTS - 1)
ROWS = np.random.default_rng(0).normal(size=(40, 2))
PROBLEM = rl.LeastSquares([ROWS], [ROWS @ [0.3, -0.2]])
SECRETS = secrets_of(AGENTS)[ME]
HERE, ELSEWHERE = np.array([0.1, 0.2]), np.array([0.3, -0.1])


def answered(point: Vector) -> Vector:
    """What it adds in a lap, without the masks, in steps of a share's deviation."""
    return NOISE.words(PROBLEM, 0, LAP, point, SECRETS, ME).view(np.int64) / 2.0**SHARE_BITS


def without_noise(point: Vector) -> Vector:
    return NOISE.steps(PROBLEM, 0, LAP, point) / 2.0**SHARE_BITS


def test_two_answers_of_a_lap_have_noises_of_their_own() -> None:
    left = answered(ELSEWHERE) - answered(HERE) - (without_noise(ELSEWHERE) - without_noise(HERE))
    assert (np.abs(left) > 1e-3).all()
    np.testing.assert_array_equal(answered(HERE), answered(HERE))  # made again after a crash it is the same


def test_one_noise_for_a_lap_had_the_difference_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control: it was keyed by the number of the lap alone."""

    def by_number(self: SharedNoise, lap: int, secrets: object, me: int, point: Vector) -> object:
        return discrete_gaussian(own_words(secrets, me, lap), self.numbers, SHARE_BITS)  # type: ignore[arg-type]

    monkeypatch.setattr(SharedNoise, "noise", by_number)
    np.testing.assert_array_equal(answered(ELSEWHERE) - answered(HERE), without_noise(ELSEWHERE) - without_noise(HERE))
