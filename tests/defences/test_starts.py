"""The starts that hide: shares are the masks, nothing is lost, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.algorithms.parts.perturbations import Unperturbed
from roundelay.algorithms.parts.starts import OneAgent
from roundelay.algorithms.parts.xsteps import Exact
from roundelay.algorithms.token_method import TokenADMM
from roundelay.engine.checks import check_balance
from roundelay.masks import FixedPoint, SeededPairs, zero_sum_masks
from tests.defences.support import quick, slopes

PROBLEM = rl.paper_least_squares(agents=8, samples=6, seed=1)


def test_a_zero_sum_start_has_the_masks_as_its_shares():
    start = rl.ZeroSumStart(scale=20.0)
    method = rl.IADMM(rho=3.0, start=start).parts()
    initial = method.start_states(4, PROBLEM)
    masks = zero_sum_masks(SeededPairs(4), 8, 2, 20.0)
    np.testing.assert_array_equal(initial.share, masks)
    np.testing.assert_allclose(initial.x - initial.y / 3.0, masks, atol=1e-12)
    assert (initial.share.sum(axis=0) == 0.0).all()
    assert initial.token is None
    assert (initial.x >= 0.0).all() and (initial.x <= 100.0).all()


@pytest.mark.parametrize(
    "start",
    [
        rl.ZeroStart(),
        rl.UniformStart(-3.0, 8.0),
        rl.UniformStart(printed_sign=True),
        rl.ZeroSumStart(),
        rl.SealedStart(),
    ],
    ids=repr,
)
def test_an_agent_alone_finds_its_own_row_of_the_start(start):
    """From its own function and its own secrets, bit for bit; what is summed is rounded on the way."""
    everyone = start.draw(9, PROBLEM, 3.0)
    for me in range(8):
        alone = rl.LeastSquares([PROBLEM.features[me]], [PROBLEM.targets[me]])
        own = start.own(OneAgent(me, 8, 9, SeededPairs(9)), alone, 3.0)
        np.testing.assert_array_equal(own.x, everyone.x[me])
        np.testing.assert_array_equal(own.y, everyone.y[me])
        grid = getattr(start, "sum_grid", None)
        assert (grid is None) == (everyone.token is None)
        share = np.zeros(2) if everyone.share is None else everyone.share[me]
        np.testing.assert_array_equal(grid.rounded(own.share) if grid else own.share, share)


def test_a_mask_that_is_not_applied_is_noticed():
    """Shares that start at 0 converge all the same, which is why the first increment is looked at."""

    class Unapplied(rl.ZeroSumStart):
        def draw(self, seed, problem, rho):
            whole = super().draw(seed, problem, rho)
            return whole._replace(share=np.zeros_like(whole.share))

    first = {}
    for kind in (rl.ZeroSumStart, Unapplied):
        run = quick(rl.IADMM(start=kind(scale=50.0)), PROBLEM, 8 * 400)
        assert np.linalg.norm(run.token - PROBLEM.optimum) < 1e-9
        first[kind] = run.transcript.tokens[0] * 8
        # s_1 = N·z_1 + m_0, whoever knows the mask of agent 0 can check it.
        x, y = (
            quick(rl.IADMM(start=kind(scale=50.0)), PROBLEM, 1).x[0],
            quick(rl.IADMM(start=kind(scale=50.0)), PROBLEM, 1).y[0],
        )
        mask = zero_sum_masks(SeededPairs(0), 8, 2, 50.0)[0]
        applied = np.abs(x - y / 10.0 - (first[kind] + mask)).max() < 1e-9
        assert applied == (kind is rl.ZeroSumStart)


def test_a_sealed_start_sums_the_gradients_and_the_token_starts_at_their_mean():
    initial = rl.PIADMM1(rho=3.0, start=rl.SealedStart(bits=44)).parts().start_states(4, PROBLEM)
    expected = -slopes(PROBLEM) / 3.0
    np.testing.assert_array_equal(initial.y, slopes(PROBLEM))
    assert (initial.x == 0.0).all()
    np.testing.assert_array_equal(initial.share, FixedPoint(44).rounded(expected))
    np.testing.assert_allclose(initial.token, expected.mean(axis=0), atol=2.0**-44)
    np.testing.assert_allclose(initial.share.sum(axis=0), 8 * initial.token, rtol=1e-15)
    total = initial.sealed.contributions.sum(axis=0, dtype=np.uint64)
    np.testing.assert_array_equal(FixedPoint(44).decode(total) / 8, initial.token)


@pytest.mark.parametrize("start", [rl.ZeroSumStart(), rl.SealedStart()], ids=["zero-sum", "sealed"])
@pytest.mark.parametrize(
    "algorithm",
    [
        rl.IADMM(),
        rl.RandomStart(),
        rl.PIADMM1(),
        rl.PIADMM2(sigma=0.0),
        rl.WADMM(),
        rl.IADMM(rho=30.0, first_order=True),
        rl.PIADMM1(rho=30.0, first_order=True),
        rl.IADMM(regulariser=rl.L1(0.5)),
    ],
    ids=lambda algorithm: algorithm.name,
)
def test_every_named_algorithm_converges_from_it(start, algorithm):
    from dataclasses import replace

    network = rl.random_network(8, 0.6, 1)
    run = quick(
        replace(algorithm, start=start), PROBLEM, 8 * 1500, network=network, monitors=[rl.Invariant()], record=40
    )
    assert run.history["token_error"].iloc[-1] < 1e-9
    assert run.history["invariant"].max() < 1e-10 * (1.0 + np.abs(run.transcript.tokens).max())


@pytest.mark.parametrize("start", [rl.ZeroSumStart(), rl.SealedStart()], ids=["zero-sum", "sealed"])
def test_the_agents_own_stopping_rule_works_and_is_right(start):
    run = quick(rl.IADMM(start=start), PROBLEM, 20_000, content=1e-6)
    assert run.stop == "content"
    mean_slope = PROBLEM.gradients(np.tile(run.token, (8, 1))).mean(axis=0)
    assert np.linalg.norm(mean_slope) <= 1e-6


def test_an_unbalanced_start_is_still_refused():
    with pytest.raises(ValueError, match="at a wrong point"):
        quick(rl.IADMM(start=rl.UniformStart(0.0, 100.0, printed_sign=True)), PROBLEM, 100, content=1e-3)
    check_balance(np.ones((4, 2)), np.ones(2), "it")
    with pytest.raises(ValueError, match="Nz"):
        check_balance(np.ones((4, 2)), np.zeros(2), "it")


def test_several_tokens_and_overflow_are_refused_in_words():
    with pytest.raises(ValueError, match="SealedStart sets one token to the sum of its lap, but 3 tokens"):
        TokenADMM(1.0, rl.Cycle(), Exact(), Unperturbed(), rl.SealedStart(), tokens=3)
    with pytest.raises(ValueError, match="fixed point with 62 bits"):
        quick(rl.IADMM(start=rl.SealedStart(bits=62)), PROBLEM, 10)
    with pytest.raises(ValueError, match="bits is 64"):
        rl.SealedStart(bits=64)
    with pytest.raises(ValueError, match="scale is 0"):
        rl.ZeroSumStart(scale=0.0)


def test_a_zero_sum_start_costs_about_what_the_start_of_algorithm_2_costs():
    units = {"zero sum": [], "Algorithm 2": []}
    for seed in range(5):
        problem, network = rl.paper_least_squares(100, seed=seed), rl.ring(100)
        for name, start in (("zero sum", rl.ZeroSumStart()), ("Algorithm 2", rl.UniformStart())):
            run = rl.simulate(rl.IADMM(start=start), problem, network, 12_000, seed=seed, record=100, progress=False)
            units[name].append(run.units_to(1e-6))
    assert np.median(units["zero sum"]) < 1.2 * np.median(units["Algorithm 2"])
