"""What a run under conditions leaves behind, what is refused, and the one pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from tests.conditions.support import matrix_of, simulate, squares, triangle_with_tail, within

NETWORK = triangle_with_tail()
PROBLEM = squares(5)
LINKS = [1.0, 2.5, 0.5, 4.0, 3.25]
WORKING = [0.25, 2.0, 0.0, 1.5, 7.0]
HARSH = rl.NetworkConditions(
    loss=rl.GilbertElliott(0.2, 0.4), noise=0.01, latency=LINKS, latency_jitter=0.5, compute=np.array(WORKING),
    compute_jitter=0.5, straggler_chance=0.2,
)  # fmt: skip

RUNS: dict[str, tuple[Any, dict[str, int]]] = {
    "I-ADMM": (rl.IADMM(), {"hops": 60}),
    "PW-ADMM": (rl.PWADMM(walks=3), {"hops": 60}),
    "DGD": (rl.DGD(), {"iterations": 15}),
    "coloured D-ADMM": (rl.ColouredDADMM(), {"iterations": 15}),
    "one pass": (rl.OnePass(), {}),
}
EVERY_RUN = pytest.mark.parametrize("name", RUNS)


# ---------------------------------------------------------------- the history


@EVERY_RUN
def test_seconds_stand_in_the_history_only_with_conditions(name: str) -> None:
    algorithm, length = RUNS[name]
    bare = simulate(algorithm, PROBLEM, NETWORK, record=1, **length)
    harsh = simulate(algorithm, PROBLEM, NETWORK, HARSH, record=1, **length)
    assert "seconds" not in bare.history
    with pytest.raises(ValueError, match="give the network's conditions"):
        bare.cost_to(0.5, "seconds")
    seconds = harsh.history["seconds"].to_numpy()
    assert seconds[0] == 0.0 and seconds[-1] > 0.0
    assert (np.diff(seconds) >= 0.0).all()
    assert (np.diff(harsh.history["units"]) >= 0.0).all()
    assert bare.conditions is None and harsh.conditions is HARSH


def test_the_cost_of_an_error_can_be_told_in_seconds() -> None:
    run = simulate(rl.IADMM(), PROBLEM, rl.ring(5), rl.NetworkConditions(latency=2.0), hops=600, record=1)
    hops = run.cost_to(1e-3, "hop")
    assert run.cost_to(1e-3, "seconds") == pytest.approx(2.0 * (hops - 1.0))


def test_a_run_that_stops_early_tells_the_time_at_which_it_did() -> None:
    conditions = rl.NetworkConditions(latency=1.0, compute=0.5)
    run = simulate(rl.IADMM(), PROBLEM, rl.ring(5), conditions, hops=5000, tolerance=1e-3, record=1000)
    assert run.stop == "tolerance"
    assert run.record.seconds[-1] == 1.5 * run.hops - 1.0
    gossip = simulate(rl.DADMM(), PROBLEM, rl.ring(5), conditions, iterations=5000, tolerance=1e-3, record=1000)
    assert gossip.stop == "tolerance"
    assert gossip.record.seconds[-1] == 1.5 * gossip.iterations


EVERY_RECORD = pytest.mark.parametrize("record", [1, 5000], ids=["every row", "the last row"])


@EVERY_RECORD
def test_the_lap_of_the_frozen_token_takes_its_time(record: int) -> None:
    """When all agents are content the token goes round once more, over the same links."""
    conditions = rl.NetworkConditions(latency=1.0)
    run = simulate(rl.IADMM(), PROBLEM, rl.ring(5), conditions, hops=5000, content=1e-6, record=record)
    assert run.stop == "content"
    assert run.record.seconds[-1] == run.units - 1.0


@EVERY_RECORD
def test_the_lap_of_the_frozen_token_is_sent_again_where_it_is_lost(record: int) -> None:
    conditions, laps = rl.NetworkConditions(loss=rl.BernoulliLoss(0.5), latency=1.0), []
    for seed in range(12):
        run = simulate(rl.IADMM(), PROBLEM, rl.ring(5), conditions, hops=5000, content=1e-1, record=record, seed=seed)
        bare = simulate(rl.IADMM(), PROBLEM, rl.ring(5), conditions, hops=run.hops, record=record, seed=seed)
        assert run.stop == "content"
        lap = run.units - bare.units
        assert run.record.seconds[-1] - bare.record.seconds[-1] == 2.0 * lap - 5.0
        laps.append(lap)
    assert min(laps) >= 5 and 7.0 < np.mean(laps) < 13.0  # ten in the mean


@EVERY_RUN
@pytest.mark.parametrize("engine", ["python"])
def test_the_same_seed_is_the_same_run_and_another_seed_another(name: str, engine: str) -> None:
    algorithm, length = RUNS[name]
    first, same, other = (
        simulate(algorithm, PROBLEM, NETWORK, HARSH, engine, record=1, seed=seed, **length) for seed in (3, 3, 4)
    )
    for column in ("units", "seconds", "error"):
        np.testing.assert_array_equal(getattr(first.record, column), getattr(same.record, column))
        assert (getattr(first.record, column) != getattr(other.record, column)).any() or column == "units"
    np.testing.assert_array_equal(first.x, same.x)


def test_seeds_side_by_side_are_the_single_runs() -> None:
    runs = simulate(rl.IADMM(), PROBLEM, NETWORK, HARSH, hops=40, seed=0, seeds=[1, 2, 3])
    for seed, run in zip((1, 2, 3), runs, strict=True):
        alone = simulate(rl.IADMM(), PROBLEM, NETWORK, HARSH, hops=40, seed=seed)
        np.testing.assert_array_equal(run.record.seconds, alone.record.seconds)
        np.testing.assert_array_equal(run.record.units, alone.record.units)


# ---------------------------------------------------------------- saved and loaded


@EVERY_RUN
def test_conditions_are_saved_with_a_run(name: str, tmp_path: Path) -> None:
    algorithm, length = RUNS[name]
    run = simulate(algorithm, PROBLEM, NETWORK, HARSH, record=1, **length)
    loaded = rl.load_run(run.save(tmp_path / "run.npz"))
    assert isinstance(loaded.conditions, rl.NetworkConditions)
    assert loaded.conditions.loss == rl.GilbertElliott(0.2, 0.4)
    assert (loaded.conditions.noise, loaded.conditions.straggler_chance) == (0.01, 0.2)
    np.testing.assert_array_equal(loaded.conditions.latency, LINKS)
    np.testing.assert_array_equal(loaded.conditions.compute, WORKING)
    np.testing.assert_array_equal(loaded.history["seconds"], run.history["seconds"])
    again = simulate(algorithm, PROBLEM, NETWORK, loaded.conditions, record=1, **length)
    np.testing.assert_array_equal(again.record.seconds, run.record.seconds)
    np.testing.assert_array_equal(again.x, run.x)


def test_a_run_without_conditions_is_loaded_without(tmp_path: Path) -> None:
    loaded = rl.load_run(simulate(rl.IADMM(), PROBLEM, NETWORK, hops=10).save(tmp_path / "run.npz"))
    assert loaded.conditions is None and "seconds" not in loaded.history


# ---------------------------------------------------------------- refusals


NEVER, SECONDS = "Nothing would ever arrive", "use seconds, one number or a list of numbers, none of them negative"
REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "certain loss": (rl.BernoulliLoss, {"chance": 1.0}, "not including, 1"),
    "negative loss": (rl.BernoulliLoss, {"chance": -0.1}, "from 0 up to"),
    "no number for loss": (rl.BernoulliLoss, {"chance": float("nan")}, "finite"),
    "turns too surely": (rl.GilbertElliott, {"turns_bad": 1.1, "turns_good": 0.5}, "turns_bad is 1.1: a chance"),
    "turns too seldom": (rl.GilbertElliott, {"turns_bad": 0.5, "turns_good": -0.5}, "turns_good is -0.5: a chance"),
    "never turns": (rl.GilbertElliott, {"turns_bad": 0.0, "turns_good": 0.0}, "use BernoulliLoss"),
    "stays bad": (rl.GilbertElliott, {"turns_bad": 0.1, "turns_good": 0.0}, NEVER),
    "good is bad": (rl.GilbertElliott, {"turns_bad": 0.1, "turns_good": 0.1, "loss_good": 1.0}, NEVER),
    "loss as a number": (rl.NetworkConditions, {"loss": 0.1}, r"such as BernoulliLoss\(0.1\)"),
    "loss as a class": (rl.NetworkConditions, {"loss": rl.BernoulliLoss}, r"such as BernoulliLoss\(0.1\)"),
    "negative noise": (rl.NetworkConditions, {"noise": -1.0}, "noise is -1.0: use a number that is not negative"),
    "negative latency": (rl.NetworkConditions, {"latency": -1.0}, SECONDS),
    "one negative latency": (rl.NetworkConditions, {"latency": [1.0, -1.0]}, SECONDS),
    "latency as a table": (rl.NetworkConditions, {"latency": [[1.0]]}, SECONDS),
    "latency in words": (rl.NetworkConditions, {"latency": "soon"}, SECONDS),
    "endless work": (rl.NetworkConditions, {"compute": float("inf")}, SECONDS),
    "latency jitter": (rl.NetworkConditions, {"latency_jitter": -0.1}, "latency_jitter is -0.1"),
    "compute jitter": (rl.NetworkConditions, {"compute_jitter": -0.1}, "compute_jitter is -0.1"),
    "stragglers for sure": (rl.NetworkConditions, {"straggler_chance": 1.5}, "straggler_chance is 1.5: a chance"),
    "stragglers that hurry": (rl.NetworkConditions, {"straggler_factor": 0.5}, "straggler_factor is 0.5"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_conditions_that_mean_nothing_are_refused_in_a_sentence(case: str) -> None:
    maker, arguments, words = REFUSED[case]
    with pytest.raises(ValueError, match=words) as caught:
        maker(**arguments)
    assert str(caught.value).endswith(".")


@EVERY_RUN
@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        (rl.NetworkConditions(latency=[1.0, 2.0]), "latency has 2 numbers but there are 5 links"),
        (rl.NetworkConditions(compute=[1.0] * 6), "compute has 6 numbers but there are 5 agents"),
    ],
    ids=["latency", "compute"],
)
def test_lists_of_the_wrong_length_are_refused(name: str, conditions: Any, words: str) -> None:
    algorithm, length = RUNS[name]
    with pytest.raises(ValueError, match=words):
        simulate(algorithm, PROBLEM, NETWORK, conditions, **length)


@EVERY_RUN
@pytest.mark.parametrize("given", [0.1, rl.BernoulliLoss(0.1), rl.NetworkConditions], ids=["number", "loss", "class"])
def test_what_is_no_conditions_is_refused(name: str, given: Any) -> None:
    algorithm, length = RUNS[name]
    with pytest.raises(ValueError, match=r"use roundelay.NetworkConditions"):
        simulate(algorithm, PROBLEM, NETWORK, given, **length)


def test_conditions_can_be_compared_and_do_not_change_with_the_list_they_came_from() -> None:
    seconds = [1.0, 2.0]
    conditions = rl.NetworkConditions(latency=seconds, compute=np.array([1.0, 3.0]))
    seconds[0] = -5.0
    assert conditions == rl.NetworkConditions(latency=(1.0, 2.0), compute=[1.0, 3.0])
    assert conditions != rl.NetworkConditions(latency=(1.0, 2.0), compute=[1.0, 4.0])
    assert hash(conditions) == hash(rl.NetworkConditions(latency=(1.0, 2.0), compute=[1.0, 3.0]))


def test_differences_can_not_lose_messages_but_can_repeat_them() -> None:
    algorithm = rl.DGD(channel=rl.Channel(rl.TopK(1), differences=True))
    lossy = rl.BernoulliLoss(0.1)
    with pytest.raises(ValueError, match="use resend=True"):
        simulate(algorithm, PROBLEM, NETWORK, rl.NetworkConditions(loss=lossy), iterations=5)
    for conditions in (rl.NetworkConditions(loss=lossy, resend=True), rl.NetworkConditions(noise=0.1, latency=1.0)):
        assert simulate(algorithm, PROBLEM, NETWORK, conditions, iterations=5).iterations == 5


def test_agents_can_not_be_content_with_noise_but_with_loss() -> None:
    with pytest.raises(ValueError, match="noise adds up in the token"):
        simulate(rl.IADMM(), PROBLEM, NETWORK, rl.NetworkConditions(noise=1e-6), hops=100, content=1e-3)
    lossy = rl.NetworkConditions(loss=rl.BernoulliLoss(0.3))
    bare, ours = (
        simulate(rl.IADMM(), PROBLEM, NETWORK, conditions, hops=5000, content=1e-3) for conditions in (None, lossy)
    )
    assert bare.stop == ours.stop == "content" and bare.hops == ours.hops and ours.units > bare.units


def test_one_agent_alone_has_no_link_to_lose_on() -> None:
    problem, alone = squares(1), rl.Network(1, np.zeros((0, 2), int))
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(0.9), latency=1.0, compute=2.0)
    run = simulate(rl.IADMM(), problem, alone, conditions, hops=10)
    assert run.units == 10 and run.record.seconds[-1] == 20.0


def test_one_agent_alone_may_give_its_no_links_no_latency() -> None:
    problem, alone = squares(1), rl.Network(1, np.zeros((0, 2), int))
    run = simulate(rl.IADMM(), problem, alone, rl.NetworkConditions(latency=[], compute=2.0), hops=10)
    assert run.record.seconds[-1] == 20.0


# ---------------------------------------------------------------- the one pass


LOSSES = {"Bernoulli": rl.BernoulliLoss(0.5), "bursts": rl.GilbertElliott(0.3, 0.3)}


@pytest.mark.parametrize("loss", LOSSES)
def test_the_one_pass_pays_more_and_stays_exact(loss: str) -> None:
    bare = simulate(rl.OnePass(), PROBLEM, NETWORK)
    lossy = simulate(rl.OnePass(), PROBLEM, NETWORK, rl.NetworkConditions(loss=LOSSES[loss]))
    np.testing.assert_array_equal(lossy.x, bare.x)
    np.testing.assert_allclose(lossy.x, np.tile(PROBLEM.optimum, (5, 1)), rtol=1e-9)
    assert lossy.units > bare.units
    assert lossy.steps == bare.steps


def test_the_one_pass_pays_each_hop_as_often_as_it_is_sent() -> None:
    """A hop of the first lap holds p(p + 3)/2 numbers, one of the second p."""
    chance, paid = 0.5, []
    lap = len(NETWORK.tour().order)
    for seed in range(150):
        run = simulate(rl.OnePass(), PROBLEM, NETWORK, rl.NetworkConditions(loss=rl.BernoulliLoss(chance)), seed=seed)
        attempts = np.diff(run.record.units) / np.where(np.arange(2 * lap - 1) < lap, 2.5, 1.0)
        np.testing.assert_array_equal(attempts, np.rint(attempts))
        paid.append(attempts)
    attempts = np.array(paid)
    assert attempts.min() == 1.0
    assert within(attempts.mean(), 2.0, np.sqrt(2.0 / attempts.size))


def test_the_one_pass_takes_the_time_of_two_laps() -> None:
    """Who works takes its time, every hop its latency: 2·attempts − 1 times."""
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(0.4), latency=LINKS, compute=WORKING)
    run = simulate(rl.OnePass(), PROBLEM, NETWORK, conditions)
    tour, latency, seconds = NETWORK.tour(), matrix_of(NETWORK, LINKS), [0.0]
    lap = len(tour.order)
    sent = np.diff(run.record.units) / np.where(np.arange(2 * lap - 1) < lap, 2.5, 1.0)
    for hop in range(2 * lap - 1):
        agent, following = tour.order[hop % lap], tour.order[(hop + 1) % lap]
        work = WORKING[agent] if tour.works[hop % lap] else 0.0
        seconds.append(seconds[-1] + work + latency[agent, following] * (2.0 * sent[hop] - 1.0))
    np.testing.assert_allclose(run.record.seconds, seconds, rtol=1e-12)
    assert sent.max() > 1.0


def test_noise_spoils_the_one_pass_in_proportion() -> None:
    """For small noise the solution is linear in it."""
    errors = [
        [
            simulate(rl.OnePass(), PROBLEM, NETWORK, rl.NetworkConditions(noise=noise), seed=seed).record.error[-1]
            for noise in (1e-6, 1e-5)
        ]
        for seed in range(6)
    ]
    small, large = np.array(errors).T
    assert small.min() > 0.0
    np.testing.assert_allclose(large / small, 10.0, rtol=1e-3)


def test_the_noise_of_the_one_pass_is_that_of_one_triangle() -> None:
    """To first order (ΣH_i)δ = e − Ex after a lap of L hops, E symmetric: Cov = Lσ²((1 + ‖x‖²)I + x_1x_2 off the diagonal)."""
    generator = np.random.default_rng(2)
    rows = [generator.standard_normal((6, 2)) for _ in range(5)]
    problem = rl.LeastSquares(rows, [own @ [5.0, 4.0] for own in rows])
    first, lap, noise, seeds = int(NETWORK.tour().order[0]), len(NETWORK.tour().order), 1e-6, 400
    runs = [
        simulate(rl.OnePass(), problem, NETWORK, rl.NetworkConditions(noise=noise), seed=seed) for seed in range(seeds)
    ]
    moved = np.array([run.x[first] - problem.optimum for run in runs]) @ sum(problem.hessian(i) for i in range(5))
    square = moved**2 / (lap * noise**2)
    assert within(square.mean(), 1.0 + 25.0 + 16.0, square.std() / np.sqrt(2.0 * seeds))
    product = moved[:, 0] * moved[:, 1] / (lap * noise**2)
    assert within(product.mean(), 20.0, product.std() / np.sqrt(seeds))
    assert product.mean() > 5.0 * product.std() / np.sqrt(seeds)


def test_the_one_pass_has_no_estimate_before_it_has_solved() -> None:
    """In the first lap the token holds no solution, so noise can't move it."""
    run = simulate(rl.OnePass(), PROBLEM, NETWORK, rl.NetworkConditions(noise=1.0))
    lap = len(NETWORK.tour().order)
    assert (run.record.tokens[:lap] == 0.0).all()
