"""Every family and link in one table: all that a file of a family says must follow from its deviance, mean and variance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from roundelay.registry import registered
from roundelay.regression.families import Family, family_named

# Responses of each family, and predictors at which each link is itself (a risk is below 1).
RESPONSES = {
    "gaussian": [-3.0, 0.0, 0.4, 7.5],
    "binomial": [0.0, 1.0, 0.25, 0.9],
    "poisson": [0.0, 1.0, 4.0, 2.5],
    "gamma": [0.01, 1.0, 3.5, 40.0],
}
PREDICTORS = {"log": [-4.0, -1.5, -0.3, -0.01], "other": [-6.0, -1.0, 0.0, 0.7, 5.0]}
KINDS = [(word, link) for word, kind in registered(Family).items() for link in kind.links]


def at(family: Family, word: str) -> tuple[np.ndarray, np.ndarray]:
    eta = PREDICTORS["log" if (word, family.link) == ("binomial", "log") else "other"]
    grid = np.array([(one, y) for one in eta for y in RESPONSES[word]])
    return grid[:, 0], grid[:, 1]


def slope_of(function, eta: np.ndarray, step: float = 1e-5) -> np.ndarray:
    return (function(eta + step) - function(eta - step)) / (2.0 * step)


def test_every_family_is_in_the_table():
    assert set(registered(Family)) == set(RESPONSES)


@pytest.mark.parametrize(("word", "link"), KINDS)
def test_slopes_and_curvatures_are_those_of_the_deviance(word, link):
    family = family_named(word, link)
    eta, y = at(family, word)
    slope, curvature = family.slope(eta, y), family.curvature(eta, y)
    assert slope == pytest.approx(slope_of(lambda one: family.half_deviance(one, y), eta), rel=1e-5, abs=1e-6)
    assert curvature == pytest.approx(slope_of(lambda one: family.slope(one, y), eta), rel=1e-5, abs=1e-6)
    assert (curvature >= 0.0).all()


@pytest.mark.parametrize(("word", "link"), KINDS)
def test_the_slope_is_the_distance_to_the_mean_and_the_weight_what_the_curvature_is_expected_to_be(word, link):
    family = family_named(word, link)
    eta, y = at(family, word)
    mean, mean_slope = family.mean(eta), family.mean_slope(eta)
    assert mean_slope == pytest.approx(slope_of(family.mean, eta), rel=1e-5, abs=1e-8)
    assert family.slope(eta, y) == pytest.approx(-(y - mean) * mean_slope / family.variance(mean), rel=1e-9, abs=1e-12)
    assert family.weight(eta) == pytest.approx(mean_slope**2 / family.variance(mean), rel=1e-9)
    # The curvature is linear in y, so that its expectation is the curvature at the mean.
    assert family.weight(eta) == pytest.approx(family.curvature(eta, mean), rel=1e-7)


@pytest.mark.parametrize(("word", "link"), KINDS)
def test_the_deviance_is_0_where_the_mean_is_what_was_seen_and_more_elsewhere(word, link):
    family = family_named(word, link)
    for y in RESPONSES[word]:
        if y not in (0.0, 1.0) or word == "gaussian":
            best = family.predictor(y)
            assert family.mean(np.array([best])) == pytest.approx([y], rel=1e-12)
            assert family.half_deviance(np.array([best]), np.array([y])) == pytest.approx([0.0], abs=1e-12)
            beside = np.array([best - 0.01, best + (0.005 if link == "log" and word == "binomial" else 0.01)])
            assert (family.half_deviance(beside, np.array([y, y])) > 0.0).all()


@pytest.mark.parametrize(("word", "link"), KINDS)
def test_half_of_the_deviance_is_what_the_likelihood_falls_short_of_its_best(word, link):
    family = family_named(word, link)
    eta, y = at(family, word)
    inside = (y > 0.0) & (y < 1.0) if word == "binomial" else y > (0.0 if word != "gaussian" else -np.inf)
    eta, y = eta[inside], y[inside]
    ones = np.ones(len(y))
    best = np.array([family.mean(np.array([family.predictor(one)]))[0] for one in y])
    short = family.log_likelihood(y, best, ones, 1.0) - family.log_likelihood(y, family.mean(eta), ones, 1.0)
    assert family.half_deviance(eta, y) == pytest.approx(short, rel=1e-8, abs=1e-10)


def test_likelihoods_are_those_of_scipy():
    half, one = np.array([0.5]), np.array([1.0])
    normal = family_named("gaussian").log_likelihood(np.array([0.3]), half, np.array([2.0]), 3.0)
    assert normal == pytest.approx(stats.norm(0.5, np.sqrt(1.5)).logpdf([0.3]))
    poisson = family_named("poisson").log_likelihood(np.array([4.0]), np.array([2.5]), one, 1.0)
    assert poisson == pytest.approx(stats.poisson(2.5).logpmf([4]))
    binomial = family_named("binomial").log_likelihood(np.array([0.25]), np.array([0.4]), np.array([8.0]), 1.0)
    assert binomial == pytest.approx(stats.binom(8, 0.4).logpmf([2]))
    gamma = family_named("gamma").log_likelihood(np.array([1.7]), np.array([2.0]), np.array([3.0]), 0.5)
    assert gamma == pytest.approx(stats.gamma(6.0, scale=2.0 / 6.0).logpdf([1.7]))
    assert quad(lambda y: np.exp(family_named("gamma").log_likelihood(np.array([y]), one, one, 0.3)[0]), 0, 20)[
        0
    ] == pytest.approx(1.0)


@pytest.mark.parametrize("eta", [-800.0, -40.0, 40.0, 800.0])
@pytest.mark.parametrize(("word", "link"), KINDS)
def test_a_step_that_goes_much_too_far_stays_finite(word, link, eta):
    family = family_named(word, link)
    y = np.array(RESPONSES[word])
    for numbers in (family.half_deviance, family.slope, family.curvature):
        assert np.isfinite(numbers(np.full(len(y), eta), y)).all()


def test_what_a_family_does_not_explain_is_refused():
    assert family_named("poisson").refusal(np.array([1.0, -1.0]))[0] == 1
    assert family_named("gamma").refusal(np.array([0.0]))[0] == 0
    assert family_named("binomial").refusal(np.array([0.0, 1.0, 2.0]))[0] == 2
    assert family_named("gaussian").refusal(np.array([-1e9])) is None
    with pytest.raises(ValueError, match="There is no family 'normal': use binomial, gamma, gaussian, poisson"):
        family_named("normal")
    with pytest.raises(ValueError, match="has no link 'cloglog': use logit or log or probit"):
        family_named("binomial", "cloglog")
