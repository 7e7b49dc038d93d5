"""Contribution noise: Σc_i = Nz at every hop, the noise is what it says, and the optimum is still exact."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.data.objectives import Known
from roundelay.agents.protocol.baton import Baton, Phase
from roundelay.agents.protocol.holder import Holder
from roundelay.kernels import CONCEAL, normals
from roundelay.masks import SeededPairs
from roundelay.transcripts import Eavesdropper
from tests.agents.world import least_squares, ring_plan
from tests.defences.support import quick
from tests.engine.support import mutated, trace

PROBLEM = rl.paper_least_squares(agents=8, samples=6, seed=1)
NOISY = rl.IADMM(defence=rl.ContributionNoise(scale=2.0, decay=0.8))


@dataclass(frozen=True)
class Shares:
    """Keeps x − y/ρ, c and z of every hop."""

    columns: tuple[str, ...] = ()
    kept: list[tuple[np.ndarray, ...]] = field(default_factory=list)

    def refusal(self, method: Any) -> str:
        return ""

    def measure(self, problem: Any, method: Any, snapshot: Any) -> tuple[float, ...]:
        s = snapshot.x - snapshot.y / method.rho
        self.kept.append((s, snapshot.share.copy(), snapshot.token.copy()))
        return ()


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_the_share_is_s_plus_the_noise_of_the_last_visit_and_the_token_is_their_mean(engine):
    shares = Shares()
    quick(NOISY, PROBLEM, 80, seed=5, record=1, monitors=[shares], engine=engine)
    for hop, (s, c, z) in enumerate(shares.kept):
        np.testing.assert_allclose(c.mean(axis=0), z, atol=1e-14)
        for agent in range(8):
            expected = np.zeros(2)
            visits = (hop - agent + 7) // 8
            if visits > 0:
                normals(5, agent, agent + 8 * (visits - 1), CONCEAL, expected)
                expected *= 2.0 * 0.8 ** (visits - 1)
            np.testing.assert_allclose(c[agent] - s[agent], expected, atol=1e-12)


@pytest.mark.parametrize(
    "algorithm", [rl.IADMM(), rl.RandomStart(), rl.PIADMM1(), rl.PIADMM2(sigma=0.0), rl.WADMM(), rl.IADMM(rho=30.0, first_order=True)]
)  # fmt: skip
@pytest.mark.parametrize("start", [None, rl.ZeroSumStart(), rl.SealedStart()])
def test_every_named_algorithm_converges_to_the_exact_optimum(algorithm, start):
    algorithm = replace(algorithm, defence=rl.ContributionNoise(), **({} if start is None else {"start": start}))
    network = rl.random_network(8, 0.6, 1)
    run = quick(algorithm, PROBLEM, 8 * 1500, network=network, monitors=[rl.Invariant()], record=80)
    assert run.history["token_error"].iloc[-1] < 1e-9
    assert run.history["invariant"].max() < 1e-12 * (1.0 + np.abs(run.transcript.tokens).max())


def test_the_stopping_rule_is_right_under_noise():
    run = quick(rl.IADMM(defence=rl.ContributionNoise()), PROBLEM, 20_000, content=1e-6)
    assert run.stop == "content"
    assert np.linalg.norm(PROBLEM.gradients(np.tile(run.token, (8, 1))).mean(axis=0)) <= 1e-6


def test_without_noise_it_is_the_plain_method_bit_for_bit():
    plain, silent = (
        quick(rl.PIADMM1(), PROBLEM, 200),
        quick(rl.PIADMM1(defence=rl.ContributionNoise(scale=0.0)), PROBLEM, 200),
    )
    np.testing.assert_array_equal(plain.transcript.tokens, silent.transcript.tokens)


def test_loss_changes_nothing_but_the_cost():
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(0.3))
    lossy, plain = quick(NOISY, PROBLEM, 200, conditions=conditions), quick(NOISY, PROBLEM, 200)
    np.testing.assert_array_equal(lossy.transcript.tokens, plain.transcript.tokens)
    assert lossy.units > plain.units


def least_error_of_H(algorithm: Any, agents: int, laps: int, agent: int) -> float:
    """What is left to an unbiased attack that knows the law of the noise: the Cramér–Rao bound, relative to ‖H‖.

    From a sealed start x⁺ = (I + Q)⁻¹(z + Qx) and c⁺ = (I − Q)x⁺ − h + e_r: a regression with known variances.
    """
    problem = rl.paper_least_squares(agents, seed=0)
    run = quick(algorithm, problem, laps * agents)
    tokens = run.transcript.seen_by(Eavesdropper()).visits_of(agent).received
    hessian, noise = problem.hessian(agent, np.zeros(2)), algorithm.defence

    def shares(theta: np.ndarray) -> np.ndarray:
        q, x, out = np.array([[theta[0], theta[1]], [theta[1], theta[2]]]), np.zeros(2), []
        for z in tokens:
            x = np.linalg.solve(np.eye(2) + q, z + q @ x)
            out.append(x - q @ x - theta[3:])
        return np.array(out).ravel()

    truth = np.array([*(hessian / algorithm.rho)[np.triu_indices(2)], 0.0, 0.0])
    jacobian = np.array([shares(truth + 1e-30j * row).imag / 1e-30 for row in np.eye(5)]).T
    deviation = np.maximum(noise.scale * noise.decay ** np.arange(len(tokens)), 1e-12)
    _, values, rows = np.linalg.svd(jacobian / np.repeat(deviation, 2)[:, None], full_matrices=False)
    variance = (rows.T**2 @ values**-2.0)[:3] * [1.0, 2.0, 1.0]
    return float(algorithm.rho * np.sqrt(variance.sum()) / np.linalg.norm(hessian))


def test_the_noise_hides_H_if_it_decays_more_slowly_than_the_method_converges_and_not_otherwise():
    problem = rl.paper_least_squares(100, seed=0)
    hessians = np.array([problem.hessian(agent, np.zeros(2)) for agent in range(100)])
    gaps = np.linalg.norm(hessians - hessians.mean(axis=0), axis=(1, 2)) / np.linalg.norm(hessians, axis=(1, 2))
    errors = {}
    for decay in (rl.ContributionNoise().decay, 0.5):
        algorithm = rl.IADMM(start=rl.SealedStart(), defence=rl.ContributionNoise(decay=decay))
        errors[decay] = np.median([least_error_of_H(algorithm, 100, 80, agent) for agent in (3, 33, 63, 93)])
    assert errors[rl.ContributionNoise().decay] > np.median(gaps)
    assert errors[0.5] < 0.05 * np.median(gaps)


MUTATIONS = [
    ("conceal", "change[d] += size * noise[d]", "change[d] += 0.0 * noise[d]"),
    ("conceal", "-defence.rate * (at.turn - defence.since)", "-defence.rate"),
    ("conceal", "defence.scale * math", "1.0 * math"),
    ("visit", "conceal(method.defence, at, change)", "pass"),
    ("visit", "share[i, d] += whole * (moved - token[d])", "share[i, d] += whole * (moved - token[d]) + 0.01"),
]


def test_one_changed_symbol_is_noticed():
    """The noise itself is compared, since all but the last of these still converge."""
    network = rl.ring(8)
    right = trace(NOISY, PROBLEM, network, 40)
    for slot, old, new in MUTATIONS:
        wrong = trace(NOISY, PROBLEM, network, 40, prepared=mutated(NOISY, PROBLEM, network, slot, old, new))
        assert np.abs(wrong.tokens - right.tokens).max() > 1e-6, (slot, new)


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_noise_may_begin_late(engine):
    late, early = (rl.ContributionNoise(2.0, 0.8, since=3), rl.ContributionNoise(2.0 * 0.8**-3, 0.8))
    tokens = [
        quick(replace(NOISY, defence=one), PROBLEM, 80, seed=5, transcript=True, engine=engine).transcript.tokens
        for one in (late, early, NOISY.defence)
    ]
    np.testing.assert_allclose(tokens[0], tokens[1], rtol=1e-10)
    assert np.abs(tokens[0] - tokens[2]).max() > 0.1


def test_a_member_that_adds_noise_after_thousands_of_visits_adds_as_much_as_at_first():
    """Decayed since its first visit it would be 1e-312, and what makes up for that is no number."""
    plan = ring_plan([f"site{me}" for me in range(4)], rl.IADMM(), 2, Stopping(None, 10**6))
    contributions = []
    for noisy in (False, True):
        member = Holder(plan, 1, Known(least_squares(1, 2)), 7, SeededPairs(7))
        member.held.visits = 2500
        if noisy:
            member.add_noise()
        move = member.act(Baton(Phase.ITERATE, 10_001, 0, 0, 0, 0, np.zeros(2)))
        contributions.append(plan.agents * move.baton.numbers)
    drawn = np.zeros(2)
    normals(7, 1, 10_001, CONCEAL, drawn)
    np.testing.assert_allclose(contributions[1] - contributions[0], drawn, rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"scale": -1.0}, "scale is -1"),
        ({"decay": 1.0}, "decay is 1.0: use a number above 0 and below 1"),
        ({"decay": 0.0}, "decay is 0.0"),
    ],
)
def test_bad_options_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        rl.ContributionNoise(**options)
    with pytest.raises(ValueError, match="The defence is 'noise': use an object such as"):
        rl.IADMM(defence="noise")
