"""Differential privacy of sealed sums: ε by hand, what one record can change, what noise does, and an attack that it stops."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import roundelay as rl
from roundelay.algorithms.sealed.noisy_newton import covariance_of
from roundelay.algorithms.sealed.questions import Asked, total_of
from roundelay.algorithms.sealed.shared_noise import SHARE_BITS, SharedNoise, epsilon_of_gaussian, gaussian_delta
from roundelay.masks import SeededPairs, discrete_gaussian, own_words
from roundelay.privacy.accounting.budget import RESERVE, sum_multiplier
from roundelay.privacy.accounting.composition import composed_epsilon


def delta_by_hand(mu: Any, epsilon: float) -> Any:
    """δ of N(0, 1) against N(μ, 1), in 40 digits: the integral of what the ratio of densities exceeds e^ε by."""
    with mpmath.workdps(40):
        cut = mpmath.mpf(epsilon) / mu + mu / 2  # where the densities have the ratio e^ε
        return mpmath.ncdf(mu - cut) - mpmath.exp(epsilon) * mpmath.ncdf(-cut)


def epsilon_by_hand(mu: float, delta: float) -> float:
    with mpmath.workdps(40):
        low, high = mpmath.mpf(0), mpmath.mpf(60)
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if delta_by_hand(mpmath.mpf(mu), middle) > delta else (low, middle)
        return float(low)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-5), (5.0, 1e-8)])
def test_epsilon_is_that_of_a_calculation_by_hand(epsilon: float, delta: float) -> None:
    multiplier = sum_multiplier(epsilon, delta)
    assert epsilon_by_hand(1.0 / multiplier, (1.0 - RESERVE) * delta) == pytest.approx(epsilon, abs=1e-8)
    assert epsilon - 1e-5 < epsilon_by_hand(1.0 / multiplier, delta) < epsilon
    assert gaussian_delta(multiplier, epsilon) == pytest.approx(
        float(delta_by_hand(mpmath.mpf(1) / multiplier, epsilon)), rel=1e-6
    )
    assert epsilon_of_gaussian(multiplier, (1.0 - RESERVE) * delta) == pytest.approx(epsilon, abs=1e-9)


def noise_for(dim: int = 3, agents: int = 4, **more: Any) -> SharedNoise:
    usual = {
        "clip_row": 1.5,
        "clip_slope": 0.8,
        "most_curvature": 1.0,
        "multiplier": 4.0,
        "laps": (0.25, 0.75),
        "of_curvature": 0.3,
    }
    return SharedNoise(dim, agents, **usual | more)  # type: ignore[arg-type]


# ---------------------------------------------------------------- what one record can change


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from(["squares", "logistic"]))
def test_one_record_moves_the_sum_by_no_more_than_is_reckoned(seed: int, dim: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(6, dim)) * 10.0 ** rng.uniform(-2, 3)
    problem = rl.LeastSquares if kind == "squares" else rl.Logistic
    more = {} if kind == "squares" else {"separable": True}
    targets = rng.normal(size=6) * 5.0 if kind == "squares" else np.sign(rng.normal(size=6))
    noise = noise_for(dim, most_curvature=problem.most_curvature)
    point = rng.normal(size=dim)
    for lap in (0, 1):
        whole = noise.steps(problem([rows], [targets], **more), 0, lap, point)
        without = noise.steps(problem([rows[:-1]], [targets[:-1]], **more), 0, lap, point)
        moved = float(np.linalg.norm((whole - without).astype(float)))
        promised = math.sqrt(noise.laps[lap]) / noise.multiplier * math.sqrt(noise.honest) * 2.0**SHARE_BITS
        assert moved <= promised, "μ is larger than was reckoned"


def test_the_bound_is_attained() -> None:
    """A record along an axis at both bounds: with less noise the promise would be broken."""
    noise = noise_for(laps=(1.0,))
    problem = rl.LeastSquares([np.array([[2.0, 0.0, 0.0]])], [np.array([3.0])])
    moved = np.linalg.norm(noise.steps(problem, 0, 0, np.zeros(3)).astype(float))
    assert moved == pytest.approx(math.sqrt(noise.honest) * 2.0**SHARE_BITS / noise.multiplier, rel=1e-7)


def test_what_a_record_counts_is_what_the_problem_says_where_nothing_is_clipped() -> None:
    rng = np.random.default_rng(2)
    problem = rl.LeastSquares(rng.uniform(-1, 1, size=(2, 30, 3)), rng.uniform(-1, 1, size=(2, 30)), weights="rows")
    noise = replace(noise_for(3, 2, clip_row=2.0, clip_slope=1.0), laps=(1.0,))
    words = sum(noise.steps(problem, agent, 0, np.zeros(3)) for agent in (0, 1)).view(np.uint64)
    total = total_of(Asked.GRADIENT_AND_HESSIAN, noise.decoded(0, words), 3)
    np.testing.assert_allclose(total.gradient, problem.total_gradient(np.zeros(3)), atol=1e-6)
    np.testing.assert_allclose(total.hessian, problem.total_hessian(np.zeros(3)), atol=1e-6)


# ---------------------------------------------------------------- noise that some leave out


def totals_of_noise(members: int, count: int, seed: int) -> np.ndarray:
    """Draws of the sum of so many members' shares, in units of a share's deviation."""
    shares = (discrete_gaussian(own_words(SeededPairs(seed), me, 0), count, SHARE_BITS) for me in range(members))
    return np.sum([share / 2.0**SHARE_BITS for share in shares], axis=0)


@pytest.mark.parametrize(("agents", "leave_out"), [(5, 0), (5, 1), (4, 3)])
def test_what_is_promised_is_there_where_members_leave_their_noise_out(agents: int, leave_out: int) -> None:
    multiplier, count = sum_multiplier(1.0, 1e-6), 200_000
    noise = noise_for(2, agents, multiplier=multiplier, leave_out=leave_out)
    variance = totals_of_noise(agents - leave_out, count, 1).var() / noise.honest
    error = math.sqrt(2.0 / count)
    assert abs(variance - 1.0) < 4.0 * error
    assert composed_epsilon(multiplier * math.sqrt(variance + 4.0 * error), None, 1, 1e-6) <= 1.0
    if agents - leave_out > 1:  # one more who leaves it out breaks it
        less = totals_of_noise(agents - leave_out - 1, count, 2).var() / noise.honest
        assert composed_epsilon(multiplier * math.sqrt(less), None, 1, 1e-6) > 1.05


def test_the_noise_of_a_run_has_the_deviations_that_it_says() -> None:
    noise, laps = noise_for(3, 4), 400
    drawn = np.array(
        [sum(noise.noise(1, SeededPairs(seed), me, np.zeros(noise.dim)) for me in range(4)) for seed in range(laps)]
    ) * noise.shares(1) / 2.0**SHARE_BITS  # fmt: skip
    of_gradient, of_hessian = noise.added(1)
    said = np.concatenate(
        [
            [of_gradient] * 3,
            [of_hessian if i == j else of_hessian / math.sqrt(2.0) for i in range(3) for j in range(i, 3)],
        ]
    )
    np.testing.assert_allclose(drawn.std(axis=0), said, rtol=4.0 / math.sqrt(2.0 * laps))


# ---------------------------------------------------------------- an attack


def advantages(noise: SharedNoise, members: int, epsilon: float, count: int, seed: int) -> tuple[float, float]:
    """The best P(says "in" | in) − e^ε P(says "in" | out) of a likelihood ratio on the total, and its standard error.

    The attacker knows every other record and where the record in question would move the total; `members` add their noise.
    """
    problem = rl.LeastSquares([np.array([[1.5, 0.0]])], [np.array([0.8])])
    step = noise.steps(problem, 0, 0, np.zeros(2)) / 2.0**SHARE_BITS
    if members:
        drawn = totals_of_noise(members, 2 * count * noise.numbers, seed).reshape(2, count, noise.numbers)
    else:
        drawn = np.zeros((2, count, noise.numbers))
    out, inside = drawn[0] @ step, (drawn[1] + step) @ step
    half = count // 2  # the threshold is chosen on other draws than those that count
    thresholds = np.quantile(np.concatenate([out[:half], inside[:half]]), np.linspace(0.0, 1.0, 200))
    gains = [np.mean(inside[:half] > cut) - math.exp(epsilon) * np.mean(out[:half] > cut) for cut in thresholds]
    cut = thresholds[int(np.argmax(gains))]
    hit, false = np.mean(inside[half:] > cut), np.mean(out[half:] > cut)
    error = math.sqrt((hit * (1 - hit) + math.exp(2 * epsilon) * false * (1 - false)) / (count - half))
    return float(hit - math.exp(epsilon) * false), error


def test_membership_can_be_inferred_no_better_than_epsilon_and_delta_allow() -> None:
    """δ is large, so that an attack comes near it: the bound is not merely far away."""
    epsilon, delta, count = 0.5, 0.05, 40_000
    noise = noise_for(2, 4, multiplier=sum_multiplier(epsilon, delta), laps=(1.0,), leave_out=1)
    gain, error = advantages(noise, 3, epsilon, count, 1)  # one leaves its noise out, as was allowed
    assert gain <= delta + 4.0 * error
    assert gain >= delta - 6.0 * error, "the attack is too weak to show anything"
    everybody, error = advantages(noise, 4, epsilon, count, 2)
    assert everybody <= delta + 4.0 * error
    without, error = advantages(noise, 0, epsilon, count, 3)
    assert without > 0.99, "without noise it must succeed"
    one_left, error = advantages(noise, 1, epsilon, count, 4)
    assert one_left > delta + 6.0 * error, "more than was allowed leave it out"


# ---------------------------------------------------------------- fits


def rows(agents: int, count: int, dim: int, seed: int) -> tuple[list[np.ndarray], np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    features = np.clip(0.4 * rng.normal(size=(count, dim)), -1.0, 1.0)
    features[:, -1] = 1.0
    return np.array_split(features, agents), rng.normal(size=dim), rng


def fit(kind: str, agents: int) -> Any:
    blocks, truth, rng = rows(agents, 10_000, 4, 3)
    if kind == "squares":
        return rl.LeastSquares(
            blocks, [np.clip(0.3 * b @ truth + 0.2 * rng.normal(size=len(b)), -1, 1) for b in blocks]
        )
    return rl.Logistic(blocks, [np.where(rng.random(len(b)) < 1 / (1 + np.exp(-b @ truth)), 1.0, -1.0) for b in blocks])


BUDGET = rl.PrivacyBudget(1.0, 1e-6)


def errors(kind: str, agents: int, leave_out: int, seeds: range) -> tuple[np.ndarray, np.ndarray]:
    problem, algorithm = fit(kind, agents), rl.SealedLaps(clip_row=2.0, leave_out=leave_out)
    runs = [
        rl.simulate(algorithm, problem, rl.complete(agents), seed=seed, budget=BUDGET, progress=False) for seed in seeds
    ]
    return np.array([run.estimate - problem.optimum for run in runs]), np.array(
        [run.privacy.deviations for run in runs]
    )


@pytest.mark.parametrize("kind", ["squares", "logistic"])
def test_the_error_is_that_of_a_curator_and_far_below_that_of_own_noise(kind: str) -> None:
    agents, seeds = 10, range(80)
    curator, _ = errors(kind, 1, 0, seeds)
    sealed, said = errors(kind, agents, 1, seeds)
    own, _ = errors(kind, agents, agents - 1, seeds)
    of_curator, of_sealed, of_own = (np.median(np.linalg.norm(one, axis=1)) for one in (curator, sealed, own))
    assert of_sealed <= 1.2 * of_curator
    assert of_own >= math.sqrt(agents) / 2.0 * of_sealed
    scores = sealed / said  # what a run says of its own error
    assert 0.8 < np.sqrt((scores**2).mean()) < 1.25


def test_the_covariance_is_that_of_drawn_noise() -> None:
    rng = np.random.default_rng(4)
    hessian, gradient = np.diag([50.0, 80.0, 120.0]) + 5.0, rng.normal(size=3) * 40.0
    of_gradient, of_hessian = 0.7, 1.1
    step, moved = -np.linalg.solve(hessian, gradient), []
    for _ in range(4000):
        beside = np.triu(rng.normal(size=(3, 3)), 1) * of_hessian / math.sqrt(2.0)
        error = beside + beside.T + np.diag(of_hessian * rng.normal(size=3))
        moved.append(-np.linalg.solve(hessian + error, gradient + of_gradient * rng.normal(size=3)))
    expected = covariance_of(np.linalg.inv(hessian), step, of_gradient, of_hessian)
    np.testing.assert_allclose(np.cov(np.array(moved).T), expected, atol=0.1 * np.abs(np.diag(expected)).max())


def test_little_data_do_not_blow_up() -> None:
    """Where all is noise the answer stays near 0, instead of being divided by noise."""
    problem = rl.LeastSquares(np.ones((3, 4, 5)), np.ones((3, 4)))
    for seed in range(10):
        run = rl.simulate(rl.SealedLaps(clip_row=2.0), problem, rl.ring(3), seed=seed, budget=BUDGET, progress=False)
        assert np.linalg.norm(run.estimate) < 5.0


def test_a_ridge_is_added_in_public() -> None:
    blocks, truth, _ = rows(3, 30_000, 4, 5)
    problem = rl.Logistic(blocks, [np.sign(block @ truth + 0.1) for block in blocks], ridge=0.3)
    generous = rl.PrivacyBudget(10.0, 1e-3)
    run = rl.simulate(rl.SealedLaps(rl.NoisyNewton(9), clip_row=2.0), problem, rl.ring(3), budget=generous)
    np.testing.assert_allclose(run.estimate, problem.optimum, atol=5.0 * run.privacy.deviations.max())
    assert run.privacy.deviations.max() < 0.02


def test_the_run_says_its_epsilon_and_is_saved_with_it(tmp_path: Any) -> None:
    run = rl.simulate(rl.SealedLaps(clip_row=2.0), fit("squares", 4), rl.ring(4), budget=BUDGET, transcript=True)
    assert run.privacy is not None and run.privacy.epsilon == pytest.approx(1.0, abs=1e-6)
    assert "ε = 1 at δ = 1e-06" in run.outcome
    again = rl.load_run(run.save(tmp_path / "run.npz")).privacy
    assert (
        again is not None and np.array_equal(again.deviations, run.privacy.deviations) and again.rho == run.privacy.rho
    )
    same = rl.simulate(rl.SealedLaps(clip_row=2.0), fit("squares", 4), rl.ring(4), budget=BUDGET)
    assert np.array_equal(run.estimate, same.estimate)


def refused(words: str, algorithm: Any, problem: Any, **more: Any) -> None:
    with pytest.raises(ValueError, match=words):
        rl.simulate(algorithm, problem, rl.ring(problem.agents), budget=BUDGET, **more)


def test_what_can_not_be_promised_is_refused_in_a_sentence() -> None:
    squares, clip = fit("squares", 3), 2.0
    refused("one record may count any amount", rl.SealedLaps(), squares)
    refused("no regulariser", rl.SealedLaps(clip_row=clip, regulariser=rl.L1(1.0)), squares)
    refused("each answer costs privacy", rl.SealedLaps(rl.Newton(), clip_row=clip), squares)
    refused("leave `tolerance` out", rl.SealedLaps(clip_row=clip), squares, tolerance=1e-3)
    refused("there are 3 members", rl.SealedLaps(clip_row=clip, leave_out=3), squares)
    uneven = rl.Logistic([np.eye(2)[[0, 0, 1, 1]], np.eye(2)], [[1, -1, 1, -1], [1, -1]], ridge=0.1)
    refused("every record must count the same", rl.SealedLaps(clip_row=clip), uneven)
    functions = rl.CallableProblem([lambda x: x, lambda x: x - 1.0], 2)
    refused("no records that could be clipped", rl.SealedLaps(clip_row=clip), functions)
    with pytest.raises(ValueError, match="next to nothing is promised"):
        _ = rl.PrivacyBudget(1000.0).noise_multiplier
