"""What the defences do to the attacks, on the paper's least squares; each attack has its positive control beside it."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
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
