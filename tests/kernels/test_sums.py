"""Both engines add up in the same order: Python's sums are those of the text that is compiled, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundelay.kernels import primitives, sums

# Every length modulo 8, on both sides of where eight partial sums begin, and the last that is not left to a BLAS.
LENGTHS = [*range(1, 34), 255, primitives.LEFT_TO_BLAS - 1]


@settings(max_examples=60)
@given(st.sampled_from(LENGTHS), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 8.0]))
def test_sums_are_formed_in_the_order_of_compiled_code(length: int, seed: int, spread: float) -> None:
    generator = np.random.default_rng(seed)
    a, b = generator.normal(size=(2, length)) * np.exp(spread * generator.normal(size=(2, length)))
    wide = np.zeros((length, 3))  # as rows of larger arrays may stand
    wide[:, 1] = b
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "DIM", length)
        for name in ("dot", "distance"):
            expected = float(getattr(sums, name)(a, b))
            assert getattr(primitives, name)(a, b) == getattr(primitives, name)(a, wide[:, 1]) == expected
        assert primitives.norm(a) == sums.norm(a)


def test_signs_of_zeros_are_those_of_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    for length in (1, 9, 16, 19):
        monkeypatch.setattr(sums, "DIM", length)
        a, b = np.zeros(length), -np.ones(length)
        assert np.signbit(primitives.dot(a, b)) == np.signbit(sums.dot(a, b))
