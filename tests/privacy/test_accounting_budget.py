"""ε in the history, and runs that end before any agent exceeds a budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

import roundelay as rl
from roundelay.algorithms import ClippedGradient, PrimalNoise, TokenADMM
from roundelay.networks.walks import Walk
from roundelay.privacy import epsilon, sigma_for_problem
from roundelay.privacy.accounting.budget import _largest

AGENTS = 5
EVEN = rl.paper_logistic(agents=AGENTS, samples=8, seed=1)
GENERATOR = np.random.default_rng(0)
COUNTS = (8, 2, 5, 8, 3)
UNEVEN = rl.LeastSquares(
    [GENERATOR.random((count, 2)) for count in COUNTS], [GENERATOR.random(count) for count in COUNTS], scale="mean"
)
DELTA = 1e-5


@dataclass(frozen=True)
class Wandering:
    """PI-ADMM2 on any walk, with any number of tokens."""

    name: ClassVar[str] = "wandering PI-ADMM2"
    walk: Walk = rl.MetropolisWalk()
    sigma: float = 0.5
    tokens: int = 1

    def parts(self) -> TokenADMM:
        return TokenADMM(
            10.0, self.walk, ClippedGradient(1.0), PrimalNoise(self.sigma), rl.ZeroStart(), tokens=self.tokens
        )


@dataclass(frozen=True)
class KeepVisits:
    """A monitor that keeps how often each agent was visited."""

    columns: tuple[str, ...] = ()
    seen: list[np.ndarray] = field(default_factory=list)

    def refusal(self, method: Any) -> str:
        return ""

    def measure(self, problem: Any, method: Any, snapshot: Any) -> tuple[float, ...]:
        self.seen.append(snapshot.visits.copy())
        return ()


def private(**options: Any) -> rl.PIADMM2:
    return rl.PIADMM2(**{"first_order": True, "clip": 1.0, "sigma": 0.5, "start": rl.ZeroStart(), **options})


def simulate(algorithm: Any, problem: Any, network: rl.Network, hops: int, **options: Any) -> rl.Run:
    return rl.simulate(algorithm, problem, network, hops, engine="python", progress=False, **options)


def worst(algorithm: Any, problem: Any, visits: np.ndarray) -> float:
    """The largest ε of any agent, one by one."""
    return max(epsilon(algorithm, problem, int(count), DELTA, agent=i).epsilon for i, count in enumerate(visits))


@pytest.mark.parametrize("visits", [1, 4, 13])
def test_on_a_cycle_it_ends_after_exactly_as_many_laps_as_the_budget_allows(visits: int) -> None:
    sigma = sigma_for_problem(private(), EVEN, 1.0, visits)
    run = simulate(private(sigma=sigma), EVEN, rl.ring(AGENTS), 1000, budget=rl.PrivacyBudget(1.0))
    assert run.stop == "budget" and run.hops == visits * AGENTS and (run.visits == visits).all()
    assert run.outcome == (
        f"It stopped after {visits * AGENTS} hops to stay within its budget: visit {visits + 1} of agent 0, which is next, "
        "would exceed ε = 1 at δ = 1e-05."
    )
    assert run.history["hop"].iloc[-1] == run.hops


def test_a_little_less_noise_costs_a_lap() -> None:
    sigma = sigma_for_problem(private(), EVEN, 1.0, 4) * (1.0 - 1e-6)
    run = simulate(private(sigma=sigma), EVEN, rl.ring(AGENTS), 1000, budget=rl.PrivacyBudget(1.0))
    assert run.hops == 3 * AGENTS


def test_up_to_there_the_run_is_the_same() -> None:
    kept = simulate(private(), EVEN, rl.ring(AGENTS), 1000, budget=rl.PrivacyBudget(1.0))
    plain = simulate(private(), EVEN, rl.ring(AGENTS), kept.hops)
    assert (kept.x == plain.x).all() and (kept.token == plain.token).all()
    compiled = rl.simulate(
        private(), EVEN, rl.ring(AGENTS), 1000, budget=rl.PrivacyBudget(1.0), engine="compiled", progress=False
    )
    assert compiled.hops == kept.hops and (compiled.x == kept.x).all()


def test_a_budget_that_is_not_used_up_changes_nothing() -> None:
    run = simulate(private(), EVEN, rl.ring(AGENTS), 7, budget=rl.PrivacyBudget(100.0))
    assert run.stop == "hops" and run.hops == 7


def test_a_budget_that_does_not_allow_one_visit_ends_before_the_first() -> None:
    run = simulate(private(sigma=1e-4), EVEN, rl.ring(AGENTS), 100, budget=rl.PrivacyBudget(0.1))
    assert run.stop == "budget" and run.hops == 0 and (run.x == 0.0).all()


def test_the_agent_with_the_fewest_records_ends_it() -> None:
    algorithm, budget = private(sigma=0.6), rl.PrivacyBudget(1.0, DELTA)
    run = simulate(algorithm, UNEVEN, rl.ring(AGENTS), 1000, budget=budget)
    laps, rest = divmod(run.hops, AGENTS)
    assert rest == int(np.flatnonzero(rl.ring(AGENTS).tour().order == 1)[0])  # the next would be agent 1
    assert worst(algorithm, UNEVEN, run.visits) <= 1.0 < epsilon(algorithm, UNEVEN, laps + 1, DELTA, agent=1).epsilon


@pytest.mark.parametrize("walk", [rl.MetropolisWalk(), rl.UniformWalk(), rl.LeastVisitedWalk(), rl.Cycle()])
@pytest.mark.parametrize("tokens", [1, 2])
def test_on_a_random_walk_the_visits_of_each_agent_are_counted(walk: Walk, tokens: int) -> None:
    algorithm, network = Wandering(walk, tokens=tokens), rl.random_network(AGENTS, 0.7, 2)
    for seed in range(3):
        run = simulate(algorithm, UNEVEN, network, 2000, seed=seed, budget=rl.PrivacyBudget(1.0))
        assert run.stop == "budget"
        assert worst(algorithm, UNEVEN, run.visits) <= 1.0
        beyond = simulate(algorithm, UNEVEN, network, run.hops + 1, seed=seed)
        assert worst(algorithm, UNEVEN, beyond.visits) > 1.0


def test_on_a_path_an_agent_that_only_relays_spends_nothing() -> None:
    sigma = sigma_for_problem(private(), EVEN, 1.0, 2)
    run = simulate(private(sigma=sigma), EVEN, rl.path(AGENTS), 1000, budget=rl.PrivacyBudget(1.0))
    assert (run.visits == 2).all() and run.hops >= 2 * (2 * AGENTS - 2) - AGENTS


def test_with_sampling_too() -> None:
    algorithm = private(sample_rate=0.3, sigma=0.2)
    run = simulate(algorithm, EVEN, rl.ring(AGENTS), 200, budget=rl.PrivacyBudget(1.0))
    visits = run.hops // AGENTS
    assert run.hops % AGENTS == 0
    assert epsilon(algorithm, EVEN, visits).epsilon <= 1.0 < epsilon(algorithm, EVEN, visits + 1).epsilon


def test_with_seeds_every_run_keeps_to_it() -> None:
    runs = rl.simulate(
        Wandering(), UNEVEN, rl.complete(AGENTS), 2000, seeds=range(4), budget=rl.PrivacyBudget(1.0), engine="python",
        progress=False,
    )  # fmt: skip
    assert all(run.stop == "budget" for run in runs) and len({run.hops for run in runs}) > 1


def test_epsilon_is_a_column() -> None:
    algorithm, keep = private(), KeepVisits()
    run = simulate(algorithm, UNEVEN, rl.ring(AGENTS), 23, monitors=[rl.PrivacyLoss(DELTA), keep], record=1)
    expected = [worst(algorithm, UNEVEN, visits) for visits in keep.seen]
    np.testing.assert_allclose(run.column("epsilon"), expected, rtol=1e-12)
    assert expected[0] == 0.0 and (np.diff(expected) >= 0.0).all()
    loose = simulate(algorithm, UNEVEN, rl.ring(AGENTS), 23, monitors=[rl.PrivacyLoss(DELTA, bound="rdp")])
    assert (loose.column("epsilon") >= expected).all()


def test_the_column_never_exceeds_the_budget_and_comes_near_it() -> None:
    run = simulate(private(), EVEN, rl.ring(AGENTS), 1000, budget=rl.PrivacyBudget(2.0), monitors=[rl.PrivacyLoss()])
    assert 1.5 < run.column("epsilon")[-1] <= 2.0


def test_the_rows_that_were_asked_for_are_kept_up_to_the_end() -> None:
    run = simulate(
        private(), EVEN, rl.ring(AGENTS), 1000, budget=rl.PrivacyBudget(1.0), record=[0, 3, 900], transcript=True
    )
    assert list(run.history["hop"]) == [0, 3, run.hops] and len(run.transcript) == run.hops


def test_a_tolerance_would_tell_something_of_the_data() -> None:
    with pytest.raises(ValueError, match="leave `tolerance` out"):
        simulate(private(), EVEN, rl.ring(AGENTS), 100, budget=rl.PrivacyBudget(1.0), tolerance=1e-3)


@pytest.mark.parametrize("budget", [1.0, rl.PrivacyBudget])
def test_what_is_no_budget_is_refused(budget: Any) -> None:
    with pytest.raises(ValueError, match=r"use an object such as roundelay\.PrivacyBudget"):
        simulate(private(), EVEN, rl.ring(AGENTS), 100, budget=budget)


@pytest.mark.parametrize("options", [{"epsilon": 0.0}, {"epsilon": 1.0, "delta": 0.0}, {"epsilon": float("nan")}])
def test_a_budget_is_checked(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="use a"):
        rl.PrivacyBudget(**options)


@pytest.mark.parametrize("most", [0, 1, 2, 7, 100])
def test_the_search_finds_the_largest(most: int) -> None:
    for answer in range(12):
        assert _largest(answer.__ge__, most) == min(answer, most)
