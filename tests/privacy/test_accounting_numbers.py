"""ε and σ against formulas that are written down and solved here, and against dp-accounting itself."""

from __future__ import annotations

import dp_accounting
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import roundelay as rl
from roundelay.privacy import Guarantee, epsilon, sigma_for, sigma_for_problem
from roundelay.privacy.accounting.composition import composed_epsilon, multiplier_for

GENERATOR = np.random.default_rng(0)
SQUARES = rl.LeastSquares(
    [GENERATOR.random((30, 2)) for _ in range(3)], [GENERATOR.random(30) for _ in range(3)], scale="mean"
)


def private(**options: object) -> rl.PIADMM2:
    return rl.PIADMM2(**{"first_order": True, "clip": 1.0, **options})


def spent(algorithm: rl.PIADMM2, problem: object, visits: int, **options: object) -> float:
    found = epsilon(algorithm, problem, visits, **options)
    assert isinstance(found, Guarantee)
    return found.epsilon


def by_hand(sigma: float, moved: float, visits: int, delta: float) -> float:
    """The ε of one visit: the smallest with δ ≥ P(loss > ε) − e^ε P'(loss > ε), by bisection in 60 digits.

    Whether x⁺ comes from N(0, σ²I) or from N(v, σ²I) with ‖v‖ = Δ, the log-likelihood ratio is N(±Δ²/(2σ²), Δ²/σ²). With
    μ = Δ/σ the chances of exceeding ε are Φ(μ/2 − ε/μ) and Φ(−μ/2 − ε/μ). R visits with public x in between add up R
    independent such ratios: the same with μ = √R Δ/σ.
    """
    with mpmath.workdps(60):
        mu = mpmath.sqrt(visits) * mpmath.mpf(moved) / mpmath.mpf(sigma)

        def excess(level: mpmath.mpf) -> mpmath.mpf:
            return mpmath.ncdf(mu / 2 - level / mu) - mpmath.exp(level) * mpmath.ncdf(-mu / 2 - level / mu)

        if excess(mpmath.mpf(0)) <= delta:
            return 0.0
        low, high = mpmath.mpf(0), mpmath.mpf(1)
        while excess(high) > delta:
            high *= 2
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > delta else (low, middle)
        return float(high)


def test_the_papers_noise() -> None:
    """σ = 1e-3, ρ = 10, b = 30, mean loss, 20 visits, C = 1: a record moves x by 2/(30·10), so m = 0.15 and μ = √20/0.15."""
    found = epsilon(private(), SQUARES, 20)
    assert isinstance(found, Guarantee)
    assert found.noise_multiplier == pytest.approx(1e-3 * 300 / 2)
    assert found.epsilon == pytest.approx(by_hand(1e-3, 2 / 300, 20, 1e-5), rel=1e-9)
    assert found.epsilon == pytest.approx(571.0, rel=0.01)
    assert spent(private(), SQUARES, 20, bound="rdp") == pytest.approx(585.0, rel=0.01)
    assert sigma_for(1.0, 1e-5, 20, clip=1.0, rho=10.0, records=30) == pytest.approx(0.11, rel=0.02)


@pytest.mark.parametrize("sigma", [1e-3, 0.02, 0.5])
@pytest.mark.parametrize("visits", [1, 7])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.05])
def test_the_formula_solved_by_hand(sigma: float, visits: int, delta: float) -> None:
    expected = by_hand(sigma, 2 / 300, visits, delta)
    assert spent(private(sigma=sigma), SQUARES, visits, delta=delta) == pytest.approx(expected, rel=1e-9, abs=1e-11)


def test_a_huge_epsilon_does_not_overflow() -> None:
    assert spent(private(sigma=1e-6), SQUARES, 20) == pytest.approx(by_hand(1e-6, 2 / 300, 20, 1e-5), rel=1e-9)


@pytest.mark.parametrize(("multiplier", "visits"), [(1.0, 10), (3.0, 50), (20.0, 4)])
def test_dp_accounting_composes_to_the_same(multiplier: float, visits: int) -> None:
    """Its privacy loss distributions, visit after visit, know nothing of our closed form."""
    one = dp_accounting.pld.privacy_loss_distribution.from_gaussian_mechanism(multiplier)
    together = one.self_compose(visits).get_epsilon_for_delta(1e-5)
    assert composed_epsilon(multiplier, None, visits, 1e-5) == pytest.approx(together, rel=1e-3)
    accountant = dp_accounting.pld.PLDAccountant()
    accountant.compose(dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(multiplier), visits))
    assert composed_epsilon(multiplier, None, visits, 1e-5) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-3)


@pytest.mark.parametrize(
    ("multiplier", "rate", "visits"), [(1.0, 0.1, 20), (3.0, 0.3, 60), (0.7, 0.5, 3), (6.0, 0.02, 40)]
)
def test_sampling_is_as_dp_accounting_has_it(multiplier: float, rate: float, visits: int) -> None:
    accountant = dp_accounting.pld.PLDAccountant()
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(multiplier))
    accountant.compose(event, visits)
    ours = composed_epsilon(multiplier, rate, visits, 1e-5)
    assert ours == pytest.approx(accountant.get_epsilon(1e-5), rel=2e-3)
    # At the same noise multiplier sampling helps, and more where fewer are drawn.
    assert ours < composed_epsilon(multiplier, None, visits, 1e-5)
    assert composed_epsilon(multiplier, rate / 2.0, visits, 1e-5) < ours
    assert ours <= composed_epsilon(multiplier, rate, visits, 1e-5, "rdp")


def test_sampling_by_hand_in_one_visit() -> None:
    """One visit: q·N(1, m²) + (1−q)·N(0, m²) against N(0, m²), both ways; ε by integrating the densities here."""
    multiplier, rate, delta = 0.8, 0.2, 1e-3
    t = np.linspace(-12.0, 13.0, 400_001)
    plain = np.exp(-0.5 * (t / multiplier) ** 2)
    mixed = rate * np.exp(-0.5 * ((t - 1.0) / multiplier) ** 2) + (1.0 - rate) * plain
    plain, mixed = plain / plain.sum(), mixed / plain.sum()

    def excess(level: float) -> float:
        remove = np.maximum(mixed - np.exp(level) * plain, 0.0).sum()
        add = np.maximum(plain - np.exp(level) * mixed, 0.0).sum()
        return max(remove, add) - delta

    low, high = 0.0, 20.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    assert composed_epsilon(multiplier, rate, 1, delta) == pytest.approx(high, rel=1e-3)


def test_sampling_is_no_gift_at_the_same_noise_on_x() -> None:
    """The sum is divided by q, and so one record moves x by 1/q as much: the two effects all but cancel."""
    plain, rate, visits = 2.0, 0.1, 20
    alike = composed_epsilon(plain * rate, rate, visits, 1e-5)
    assert alike > composed_epsilon(plain, None, visits, 1e-5)
    gentle = composed_epsilon(100.0 * rate, rate, visits, 1e-5) / composed_epsilon(100.0, None, visits, 1e-5)
    assert 1.0 < gentle < 1.2


@settings(max_examples=40, deadline=None)
@given(
    st.floats(0.01, 50.0), st.integers(1, 400), st.floats(1e-9, 0.1),
    st.floats(0.01, 10.0), st.floats(0.1, 100.0), st.integers(1, 500), st.sampled_from(["mean", "half_sum"]),
)  # fmt: skip
def test_sigma_for_is_the_inverse(
    level: float, visits: int, delta: float, clip: float, rho: float, records: int, scale: str
) -> None:
    sigma = sigma_for(level, delta, visits, clip, rho, records, scale=scale)
    problem = rl.LeastSquares([np.ones((records, 1))], [np.zeros(records)], scale=scale)
    assert spent(private(sigma=sigma, clip=clip, rho=rho), problem, visits, delta=delta) == pytest.approx(
        level, rel=1e-6
    )
    algorithm = private(clip=clip, rho=rho)
    assert sigma_for_problem(algorithm, problem, level, visits, delta) == pytest.approx(sigma, rel=1e-12)


def test_sigma_for_is_the_inverse_with_sampling() -> None:
    sigma = sigma_for(2.0, 1e-5, 30, clip=1.0, rho=10.0, records=30, rate=0.2)
    algorithm = private(sigma=sigma, sample_rate=0.2)
    assert 2.0 - 1e-6 < spent(algorithm, SQUARES, 30) <= 2.0
    assert sigma_for_problem(algorithm, SQUARES, 2.0, 30) == pytest.approx(sigma, rel=1e-9)


def test_a_record_that_is_hardly_ever_drawn_needs_no_noise_to_speak_of() -> None:
    """One visit with q < δ is (0, δ)-private whatever it releases."""
    assert 0.0 < multiplier_for(1.0, 0.01, 1, 0.05) < 1e-3
    assert composed_epsilon(1e-3, 0.01, 1, 0.05) == 0.0


@settings(max_examples=60, deadline=None)
@given(st.floats(0.05, 30.0), st.integers(1, 200), st.floats(1e-9, 0.2), st.floats(1.01, 3.0))
def test_it_grows_and_shrinks_as_it_should(multiplier: float, visits: int, delta: float, factor: float) -> None:
    here = composed_epsilon(multiplier, None, visits, delta)
    assert here <= composed_epsilon(multiplier, None, visits + 1, delta)
    assert here >= composed_epsilon(multiplier * factor, None, visits, delta)
    assert here >= composed_epsilon(multiplier, None, visits, min(delta * factor, 0.5))
    assert here <= composed_epsilon(multiplier, None, visits, delta, "rdp") * (1.0 + 1e-9)
    # R visits with m are one with m/√R.
    assert here == pytest.approx(composed_epsilon(multiplier / visits**0.5, None, 1, delta), rel=1e-9, abs=1e-11)


def test_epsilon_grows_with_the_visits_and_is_0_before_the_first() -> None:
    values = [spent(private(sigma=0.1), SQUARES, visits) for visits in range(30)]
    assert values[0] == 0.0 and (np.diff(values) > 0.0).all()
    sampled = [spent(private(sigma=0.1, sample_rate=0.2), SQUARES, visits) for visits in (0, 1, 2, 5, 10, 20)]
    assert sampled[0] == 0.0 and (np.diff(sampled) > 0.0).all()


def test_the_variance_is_read_as_such() -> None:
    as_variance = spent(private(sigma=0.01, sigma_is="variance"), SQUARES, 20)
    assert as_variance == pytest.approx(spent(private(sigma=0.1), SQUARES, 20), rel=1e-12)


def test_without_sampling_the_multiplier_is_the_analytic_one() -> None:
    assert multiplier_for(1.0, None, 4, 1e-5) == 2.0 * multiplier_for(1.0, None, 1, 1e-5)
    assert multiplier_for(1.0, 0.1, 4, 1e-5) < multiplier_for(1.0, None, 4, 1e-5)
    assert multiplier_for(1.0, 1.0, 4, 1e-5) == multiplier_for(1.0, None, 4, 1e-5)


def test_the_words_say_what_it_rests_on() -> None:
    words = epsilon(private(sigma=0.1), SQUARES, 20).words
    for part in ("replace one record", "no amplification", "every x of every agent", "seed is secret", "20 visits"):
        assert part in words
    sampled = epsilon(private(sigma=0.1, sample_rate=0.2), SQUARES, 20).words
    assert "add or remove one record" in sampled and "chance 0.2" in sampled


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: epsilon(private(), SQUARES, 20, delta=0.0), "above 0 and below 1"),
        (lambda: epsilon(private(), SQUARES, 20, delta=1.0), "above 0 and below 1"),
        (lambda: epsilon(private(), SQUARES, -1), "visits is -1"),
        (lambda: epsilon(private(), SQUARES, 2.5), "whole number"),
        (lambda: epsilon(private(), SQUARES, 20, agent=3), "There is no agent 3"),
        (lambda: epsilon(private(), SQUARES, 20, bound="tight"), 'use "exact" or "rdp"'),
        (lambda: sigma_for(0.0, 1e-5, 20, 1.0, 10.0, 30), "epsilon is 0.0"),
        (lambda: sigma_for(1.0, 1e-5, 0, 1.0, 10.0, 30), "visits is 0"),
        (lambda: sigma_for(1.0, 1e-5, 20, 1.0, 10.0, 30, scale="sum"), 'use "mean" or "half_sum"'),
        (lambda: sigma_for(1.0, 1e-5, 20, 1.0, 10.0, 30, rate=2.0), "a chance"),
        (lambda: sigma_for_problem(rl.PIADMM2(), SQUARES, 1.0, 20), "No noise is enough here: its steps are exact"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(call: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
