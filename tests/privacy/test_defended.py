"""What the defences do to the attacks, on the paper's least squares; each attack has its positive control beside it."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.privacy.attacks import parametric_step_size
from roundelay.privacy.attacks.setting import evidence
from roundelay.transcripts import Neighbours

AGENTS, HOPS = 100, 2001
PROBLEM, NETWORK = rl.paper_least_squares(AGENTS), rl.random_network(AGENTS, 0.3)
HIDDEN = ("multipliers y", "gradient at the solution", "slope g")


def audited(algorithm):
    run = rl.simulate(algorithm, PROBLEM, NETWORK, HOPS, transcript=True, progress=False)
    return run, rl.audit_all(run, "neighbours").table


@pytest.fixture(scope="module")
def open_start():
    return audited(rl.PIADMM1())[1]


@pytest.fixture(scope="module")
def masked():
    return audited(rl.PIADMM1(start=rl.ZeroSumStart()))


def test_without_a_defence_the_same_attacks_know_all(open_start):
    for quantity in (*HIDDEN, "Hessian H"):
        best = open_start[open_start["quantity"] == quantity].nsmallest(1, "median error").iloc[0]
        assert best["median error"] < 1e-8
        assert best["agents known"] == AGENTS


def test_a_zero_sum_start_hides_the_gradient_from_every_attack(masked):
    """By a hundred times its size: the parametric attack, too, whose slope takes up the unknown constant."""
    table = masked[1]
    for quantity in HIDDEN:
        rows = table[table["quantity"] == quantity]
        assert len(rows) >= 2
        assert (rows["median error"] >= 100.0).all(), quantity
        assert (rows["agents known"] == 0).all()


def test_the_paper_s_own_attack_fails_as_well(masked):
    run, _ = masked
    audits = [rl.audit(run, "eavesdropper", agent) for agent in (0, 17)]
    for audit in audits:
        leak = next(leak for leak in audit.leaks if (leak.attack, leak.quantity) == ("the paper's least squares", "multipliers y"))  # fmt: skip
        assert not leak.known


def test_the_table_says_that_the_hessian_still_leaks(masked):
    rows = masked[1]
    row = rows[(rows["quantity"] == "Hessian H") & (rows["attack"] == "parametric, step size")].iloc[0]
    assert row["agents known"] == AGENTS
    assert row["median error"] < 1e-8


def test_the_telescope_is_off_by_the_mask(masked):
    """So the mask is really applied."""
    run, _ = masked
    public = rl.Public(run.algorithm, AGENTS, 2)
    masks = run.algorithm.parts().start_states(run.seed, PROBLEM).share
    assert np.abs(masks.sum(axis=0)).max() == 0.0
    for agent in range(AGENTS):
        visits = run.transcript.seen_by(Neighbours(agent)).visits_of(agent)
        known = evidence(visits, public)
        truth = run.x[agent] - run.y[agent] / run.algorithm.rho
        np.testing.assert_allclose(truth - known.s[-1], masks[agent], atol=1e-8 * np.abs(masks).max())


def plain_attack(algorithm, quantity):
    """What the parametric attack gives for every agent, and the truth."""
    run = rl.simulate(algorithm, PROBLEM, NETWORK, HOPS, transcript=True, progress=False)
    public, point = rl.Public(algorithm, AGENTS, 2), np.zeros(2) if quantity == "slope g" else PROBLEM.optimum
    seen = (run.transcript.seen_by(Neighbours(agent)).visits_of(agent) for agent in range(AGENTS))
    found = np.array([parametric_step_size(visits, public).gradient(point) for visits in seen])
    return found, np.array([PROBLEM.gradient(agent, point) for agent in range(AGENTS)])


def posterior_mean(found, truth, mask):
    """The best that can be made of found = g + ρm by whoever knows the law of the masks, and that of the g_i as well.

    Since Σm = 0, the mean over the agents is that of the g_i. Around it the masks have the variance (ρ·scale)²N/(N − 1),
    and the g_i a variance that the attacker is simply told. So found − mean shrinks by the one over the sum of both;
    masks much larger than the g_i leave the mean alone.
    """
    spread = truth.var(axis=0, ddof=1)
    mean = found.mean(axis=0)
    return mean + spread / (spread + mask**2 * AGENTS / (AGENTS - 1)) * (found - mean)


@pytest.mark.parametrize("quantity", ["slope g", "gradient at the solution"])
def test_who_knows_the_law_of_the_masks_does_no_better_than_a_guess(quantity):
    def errors(algorithm):
        """Of the plain attack, of the posterior mean and of the guess, which is the mean of the truth."""
        found, truth = plain_attack(algorithm, quantity)
        best = posterior_mean(found, truth, algorithm.rho * getattr(algorithm.start, "scale", 0.0))
        return tuple(
            float(np.sqrt(((estimate - truth) ** 2).sum(axis=1).mean()))
            for estimate in (found, best, truth.mean(axis=0))
        )

    plain, best, guess = errors(rl.PIADMM1(start=rl.ZeroSumStart()))
    assert plain > 100.0 * guess
    assert best == pytest.approx(guess, rel=1e-3)
    # The same estimate finds what masks that are too small leave, and all of what has none.
    plain, best, guess = errors(rl.PIADMM1(start=rl.ZeroSumStart(scale=0.1)))
    assert best < 0.8 * min(plain, guess)
    plain, best, guess = errors(rl.PIADMM1())
    assert max(plain, best) < 1e-8 * guess


def test_the_mean_over_all_agents_is_not_hidden():
    """Σm = 0: it is what the token is for, and the guess that is left."""
    found, truth = plain_attack(rl.PIADMM1(start=rl.ZeroSumStart()), "slope g")
    np.testing.assert_allclose(found.mean(axis=0), truth.mean(axis=0), rtol=1e-9)


def test_a_zero_sum_start_costs_what_a_random_start_costs():
    def units(algorithm):
        ensemble = rl.simulate(
            algorithm,
            lambda seed: rl.paper_least_squares(AGENTS, seed=seed),
            lambda seed: rl.random_network(AGENTS, 0.3, seed=seed),
            8_000,
            seeds=range(5),
            record=20,
            progress=False,
        )
        return float(np.median(ensemble.units_to(1e-6)))

    plain = units(rl.RandomStart())
    assert abs(units(rl.IADMM(start=rl.ZeroSumStart())) / plain - 1.0) < 0.2
    assert units(rl.IADMM(start=rl.SealedStart())) < plain


def test_contribution_noise_brings_the_hessian_back_to_a_guess():
    table = audited(rl.IADMM(start=rl.ZeroSumStart(), defence=rl.ContributionNoise(scale=1.0)))[1]
    rows = table[table["quantity"] == "Hessian H"]
    assert (rows["median error"] >= rows["median error of a guess"]).all()
    directions = table[table["quantity"] == "Hessian H, best-known direction"]
    assert len(directions) == len(rows)
    assert (directions["median error"].to_numpy() <= rows["median error"].to_numpy()).all()
    too_little = audited(rl.IADMM(start=rl.ZeroSumStart(), defence=rl.ContributionNoise(scale=1e-3)))[1]
    weak = too_little[too_little["quantity"] == "Hessian H"]
    assert weak["median error"].min() < 0.1 * weak["median error of a guess"].iloc[0]


@pytest.mark.parametrize(
    ("algorithm", "hidden"),
    [
        (rl.IADMM(start=rl.ZeroSumStart()), ("y", "g")),
        (rl.IADMM(start=rl.SealedStart()), ("y", "g")),
        (rl.PIADMM1(start=rl.ZeroSumStart()), ("y", "start", "g")),
        (rl.IADMM(start=rl.SealedStart(), defence=rl.ContributionNoise()), ("x", "y", "H", "g")),
    ],
    ids=repr,
)
def test_what_nobody_can_infer_by_the_rank_of_the_equations(algorithm, hidden):
    answer = rl.identifiable(algorithm, visits=20)
    assert tuple(one.quantity for one in answer.quantities if one.numbers == 0) == hidden
    assert all(one.wholly for one in answer.quantities if one.quantity not in hidden)
