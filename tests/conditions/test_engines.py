"""Both engines under all conditions at once, on random networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import roundelay as rl
from tests.conditions.support import simulate, squares

METHODS: dict[str, tuple[Any, dict[str, int], bool]] = {
    "I-ADMM": (rl.IADMM(), {"hops": 40}, False),
    "DGD": (rl.DGD(alpha=0.05), {"iterations": 8}, False),
    "DGD, sent again": (rl.DGD(alpha=0.05), {"iterations": 8}, True),
    "CHOCO": (rl.CHOCO(eta=0.05, gamma=0.5, channel=rl.Plain()), {"iterations": 8}, False),
}


@st.composite
def networks(draw: Any) -> rl.Network:
    """Two to six agents: a random tree and some more links."""
    agents = draw(st.integers(2, 6))
    links = {(draw(st.integers(0, j - 1)), j) for j in range(1, agents)}
    every = [(i, j) for j in range(agents) for i in range(j)]
    links |= set(draw(st.lists(st.sampled_from(every), max_size=6)))
    return rl.Network(agents, np.array(sorted(links)))


CHANCES = st.floats(0.02, 0.9)


@st.composite
def situations(draw: Any, resend: bool) -> tuple[rl.Network, rl.NetworkConditions, int]:
    """A network and all that can happen on it; nothing is left out, so that one compiled module does for all."""
    network = draw(networks())
    seconds = st.floats(0.1, 10.0)
    loss = rl.GilbertElliott(draw(CHANCES), draw(CHANCES), loss_bad=draw(CHANCES), loss_good=draw(st.floats(0.0, 0.5)))
    conditions = rl.NetworkConditions(
        loss=loss,
        resend=resend,
        noise=draw(st.floats(1e-4, 1.0)),
        latency=[draw(seconds) for _ in network.edges],
        latency_jitter=draw(st.floats(0.0, 2.0)),
        compute=[draw(seconds) for _ in range(network.agents)],
        compute_jitter=draw(st.floats(0.0, 2.0)),
        straggler_chance=draw(st.floats(0.0, 1.0)),
    )
    return network, conditions, draw(st.integers(0, 2**64 - 1))


@pytest.mark.parametrize("name", METHODS)
def test_the_engines_agree_whatever_happens(name: str) -> None:
    algorithm, length, resend = METHODS[name]

    @settings(max_examples=25, deadline=None)
    @given(situations(resend))
    def agree(situation: tuple[rl.Network, rl.NetworkConditions, int]) -> None:
        network, conditions, seed = situation
        problem = squares(network.agents)
        plain, fast = (
            simulate(algorithm, problem, network, conditions, engine, record=1, seed=seed, **length)
            for engine in ("python", "compiled")
        )
        assert plain.engine == "python" and fast.engine == "compiled"
        np.testing.assert_array_equal(fast.record.units, plain.record.units)
        np.testing.assert_allclose(fast.record.seconds, plain.record.seconds, rtol=1e-13)
        size = max(float(np.abs(plain.x).max()), 1e-300)
        assert np.abs(fast.x - plain.x).max() <= 1e-12 * size
        assert np.abs(fast.y - plain.y).max() <= 1e-12 * max(float(np.abs(plain.y).max()), 1e-300)

    agree()


@pytest.mark.parametrize("name", METHODS)
def test_loss_and_time_agree_to_the_last_bit(name: str) -> None:
    """What is drawn is drawn alike: units, and seconds without jitter, are equal, not just close."""
    algorithm, length, resend = METHODS[name]
    network = rl.random_network(6, 0.6, 3)
    conditions = rl.NetworkConditions(
        loss=rl.GilbertElliott(0.3, 0.3), resend=resend, noise=0.1, latency=np.linspace(1.0, 2.0, len(network.edges)),
        compute=np.linspace(0.3, 0.9, 6), straggler_chance=0.3,
    )  # fmt: skip
    for seed in range(5):
        plain, fast = (
            simulate(algorithm, squares(6), network, conditions, engine, record=1, seed=seed, **length)
            for engine in ("python", "compiled")
        )
        np.testing.assert_array_equal(fast.record.units, plain.record.units)
        np.testing.assert_array_equal(fast.record.seconds, plain.record.seconds)
