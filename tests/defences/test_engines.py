"""Both engines agree to the last bit in every new part, and what is not asked for changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from tests.defences.support import quick

NOISE = rl.ContributionNoise(scale=2.0, decay=0.8)
CASES = {
    "zero-sum": rl.IADMM(start=rl.ZeroSumStart()),
    "sealed": rl.IADMM(start=rl.SealedStart()),
    "sealed walk": rl.WADMM(start=rl.SealedStart()),
    "noise": rl.PIADMM1(defence=NOISE),
    "noise, first order": rl.IADMM(rho=30.0, first_order=True, defence=NOISE),
    "masked": rl.IADMM(defence=rl.MaskedLinks()),
    "all": rl.PIADMM2(start=rl.SealedStart(), defence=rl.MaskedLinks(noise=NOISE)),
    "vector": rl.PIADMM1(gamma_is="vector"),
    "vector, first order, noise": rl.PIADMM1(rho=30.0, gamma_is="vector", first_order=True, defence=NOISE),
}


@pytest.mark.parametrize("name", CASES)
def test_the_engines_agree_bit_for_bit(name):
    problem, network = rl.paper_least_squares(7, samples=6, seed=1), rl.random_network(7, 0.6, 1)
    runs = [
        quick(CASES[name], problem, 200, seed=5, network=network, engine=engine) for engine in ("python", "compiled")
    ]
    for column in ("token", "x", "y"):
        np.testing.assert_array_equal(getattr(runs[0], column), getattr(runs[1], column))
    np.testing.assert_array_equal(runs[0].transcript.tokens, runs[1].transcript.tokens)
    assert runs[0].units == runs[1].units
    if runs[0].transcript.sealed is not None:
        np.testing.assert_array_equal(runs[0].transcript.sealed.words, runs[1].transcript.sealed.words)
