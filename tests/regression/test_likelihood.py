"""What a site's rows say: derivatives against differences, own constants against indicators of the sites, Cox against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize

from roundelay.regression.families import family_named
from roundelay.regression.likelihood import Absorbed, Cox, FamilyLosses, Linear, SoftmaxLosses, binned_survival


def draw(seed: int, rows: int = 40, columns: int = 3) -> tuple[np.random.Generator, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(rows, columns))


def losses_of(kind: str, rng: np.random.Generator, rows: int):
    weight = rng.uniform(0.5, 2.0, rows)
    if kind == "multinomial":
        return SoftmaxLosses(rng.integers(0, 4, rows), 4, weight)
    responses = {
        "gaussian": rng.normal(size=rows), "binomial": rng.integers(0, 2, rows).astype(float),
        "poisson": rng.poisson(2.0, rows).astype(float), "gamma": rng.gamma(2.0, size=rows),
    }  # fmt: skip
    word, _, link = kind.partition("-")
    return FamilyLosses(family_named(word, link), responses[word], weight, rng.normal(size=rows) * 0.1)


def made(kind: str, seed: int):
    """A likelihood, and a point for it."""
    rng, design = draw(seed)
    if kind == "cox":
        time = rng.integers(1, 9, len(design)).astype(float)
        likelihood = Cox(
            design,
            time,
            rng.integers(0, 2, len(design)).astype(float),
            rng.uniform(0.5, 2.0, len(design)),
            rng.normal(size=len(design)),
        )
    else:
        own, _, kind = kind.rpartition(" ")
        likelihood = Linear(design, losses_of(kind, rng, len(design)))
        likelihood = Absorbed(likelihood) if own else likelihood
    return likelihood, rng.normal(size=likelihood.dim) * 0.5


KINDS = ("gaussian", "binomial", "binomial-probit", "poisson", "gamma", "multinomial")
ALL = (*KINDS, *(f"own {kind}" for kind in KINDS), "cox")


@pytest.mark.parametrize("kind", ALL)
def test_gradients_and_hessians_are_those_of_the_value(kind):
    likelihood, w = made(kind, 3)
    step = 1e-5 * np.eye(likelihood.dim)
    slopes = [(likelihood.value(w + one) - likelihood.value(w - one)) / 2e-5 for one in step]
    bends = [(likelihood.gradient(w + one) - likelihood.gradient(w - one)) / 2e-5 for one in step]
    assert likelihood.gradient(w) == pytest.approx(np.array(slopes), rel=1e-5, abs=1e-5)
    assert likelihood.hessian(w) == pytest.approx(np.array(bends), rel=1e-5, abs=1e-5)
    assert likelihood.hessian(w) == pytest.approx(likelihood.hessian(w).T, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("kind", ALL)
def test_scores_add_up_to_the_gradient(kind):
    likelihood, w = made(kind, 4)
    assert likelihood.scores(w).sum(axis=0) == pytest.approx(likelihood.gradient(w), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_own_constants_are_what_indicators_of_the_sites_would_be(kind):
    """Two sites: all of it must follow from the likelihood with a column of ones for each, by taking those columns out again."""
    rng, design = draw(5, 60)
    site = np.arange(60) % 2
    losses = losses_of(kind, rng, 60)

    def part(rows: np.ndarray) -> object:
        if isinstance(losses, SoftmaxLosses):
            return SoftmaxLosses(losses.levels[rows], 4, losses.weight[rows])
        return FamilyLosses(losses.family, losses.response[rows], losses.weight[rows], losses.offset[rows])

    own = [Absorbed(Linear(design[site == number], part(site == number))) for number in (0, 1)]
    ones = (site[:, None] == [0, 1]).astype(float)
    whole = Linear(np.column_stack([design, ones]), losses)
    equations = losses.equations
    w = rng.normal(size=(equations, 3)) * 0.3

    def with_constants(constants: np.ndarray) -> np.ndarray:
        return np.column_stack([w, constants.reshape(equations, 2)]).reshape(-1)

    best = minimize(
        lambda constants: whole.value(with_constants(constants)), np.zeros(2 * equations), method="trust-exact",
        jac=lambda constants: whole.gradient(with_constants(constants)).reshape(equations, -1)[:, 3:].reshape(-1),
        hess=lambda constants: whole.hessian(with_constants(constants)).reshape(equations, 5, equations, 5)[:, 3:, :, 3:].reshape(2 * equations, -1),
        options={"gtol": 1e-12},
    )  # fmt: skip
    at, flat = with_constants(best.x), w.reshape(-1)
    assert sum(one.value(flat) for one in own) == pytest.approx(whole.value(at), rel=1e-12)
    slopes = np.tile([True, True, True, False, False], equations)
    assert sum(one.gradient(flat) for one in own) == pytest.approx(whole.gradient(at)[slopes], rel=1e-7, abs=1e-7)
    for name in ("hessian", "information"):
        matrix = getattr(whole, name)(at)
        rest = matrix[np.ix_(slopes, slopes)] - matrix[np.ix_(slopes, ~slopes)] @ np.linalg.solve(
            matrix[np.ix_(~slopes, ~slopes)], matrix[np.ix_(~slopes, slopes)]
        )
        assert sum(getattr(one, name)(flat) for one in own) == pytest.approx(rest, rel=1e-6, abs=1e-8)
    if equations == 1:
        inverse = np.linalg.inv(whole.information(at))
        leverages = np.zeros(60)
        for number in (0, 1):
            leverages[site == number] = own[number].leverages(flat, inverse[:3, :3])
        assert leverages == pytest.approx(whole.leverages(at, inverse), rel=1e-7)
        assert leverages.sum() == pytest.approx(5.0)


@pytest.mark.parametrize(("kind", "response"), [("binomial", 0.0), ("binomial", 1.0), ("poisson", 0.0)])
def test_a_site_with_one_outcome_and_a_constant_of_its_own_says_nothing(kind, response):
    _, design = draw(6)
    losses = FamilyLosses(family_named(kind), np.full(40, response), np.ones(40), np.zeros(40))
    own, w = Absorbed(Linear(design, losses)), np.array([0.3, -1.0, 2.0])
    assert own.value(w) == 0.0 and not own.gradient(w).any() and not own.hessian(w).any() and not own.scores(w).any()
    assert losses.family.mean(own.predictors(w)[:, 0]) == pytest.approx(np.full(40, response))
    # The limit of what it would be with ever larger constants.
    far = np.full((40, 1), -35.0 if response == 0.0 else 35.0) + design @ w[:, None]
    assert losses.each(far).sum() < 1e-10


def test_a_level_that_a_site_lacks_has_no_say_there():
    rng, design = draw(7)
    levels = rng.choice([1, 3], 40)
    own = Absorbed(Linear(design, SoftmaxLosses(levels, 4, np.ones(40))))
    w = rng.normal(size=9)
    two = Absorbed(
        Linear(design, FamilyLosses(family_named("binomial"), (levels == 3).astype(float), np.ones(40), np.zeros(40)))
    )
    apart = w.reshape(3, 3)[2] - w.reshape(3, 3)[0]
    assert own.value(w) == pytest.approx(two.value(apart))
    gradient = own.gradient(w).reshape(3, 3)
    assert (
        gradient[2] == pytest.approx(two.gradient(apart))
        and gradient[0] == pytest.approx(-gradient[2])
        and not gradient[1].any()
    )


def _partial_likelihood(likelihood: Cox, w: np.ndarray) -> float:
    """As Efron has it, one death after another."""
    eta = likelihood.design @ w + likelihood.offset
    value = 0.0
    for time in np.unique(likelihood.time[(likelihood.event > 0) & (likelihood.weight > 0)]):
        dead = (likelihood.time == time) & (likelihood.event > 0) & (likelihood.weight > 0)
        risk = likelihood.weight * np.exp(eta)
        for already in range(dead.sum()):
            left = risk[likelihood.time >= time].sum() - already / dead.sum() * risk[dead].sum()
            value += likelihood.weight[dead].mean() * np.log(left)
        value -= likelihood.weight[dead] @ eta[dead]
    return value


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 6))
def test_cox_is_the_partial_likelihood_with_the_ties_of_efron(seed, rows, times):
    rng = np.random.default_rng(seed)
    likelihood = Cox(
        rng.normal(size=(rows, 2)), rng.integers(1, times + 1, rows).astype(float), rng.integers(0, 2, rows).astype(float),
        rng.choice([0.0, 1.0, 2.5], rows), rng.normal(size=rows),
    )  # fmt: skip
    w = rng.normal(size=2)
    assert likelihood.value(w) == pytest.approx(_partial_likelihood(likelihood, w), rel=1e-10, abs=1e-10)


def test_survival_is_counted_in_bins_whose_ends_belong_to_them():
    at_risk, ended = binned_survival(
        np.array([1.0, 2.0, 2.0, 5.0]), np.array([1.0, 0.0, 1.0, 1.0]), np.ones(4), np.array([2.0, 4.0])
    )
    assert at_risk.tolist() == [4.0, 1.0] and ended.tolist() == [2.0, 0.0]
