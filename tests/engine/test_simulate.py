"""What users see of a simulation: outcomes, history, engines, saving, seeds."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import roundelay as rl
from roundelay.engine import assemble
from roundelay.engine.assemble import OVER_SOON, SHORT, CannotCompileError
from tests.engine.support import dense_agents, trace
from tests.reference import dense

AGENTS = 10


@pytest.fixture(scope="module")
def problem() -> rl.LeastSquares:
    return rl.paper_least_squares(agents=AGENTS)


@pytest.fixture(scope="module")
def network() -> rl.Network:
    return rl.random_network(AGENTS, 0.5)


def by_callables(problem: rl.LeastSquares) -> rl.CallableProblem:
    return rl.CallableProblem(
        [lambda x, i=i: problem.gradient(i, x) for i in range(problem.agents)], problem.dim,
        prox_of=[lambda v, c, i=i: problem.prox(i, v, c) for i in range(problem.agents)],
    )  # fmt: skip


def test_the_history_is_what_the_states_say(problem: rl.LeastSquares, network: rl.Network) -> None:
    algorithm, hops = rl.PIADMM1(start=rl.UniformStart(0.0, 10.0)), 57
    run = rl.simulate(algorithm, problem, network, hops, seed=5, record=1)
    states, optimum = trace(algorithm, problem, network, hops, seed=5), problem.optimum
    far = np.linalg.norm(states.x - optimum, axis=2)
    scale = np.linalg.norm(optimum)
    history = run.history
    assert (history["hop"] == np.arange(hops + 1)).all()
    assert (history["units"] == history["hop"]).all()
    assert (history["bytes"] == 16 * history["units"]).all()
    close = {"rtol": 1e-12, "atol": 0.0}
    np.testing.assert_allclose(history["error"], far.mean(axis=1) / scale, **close)
    np.testing.assert_allclose(history["accuracy"], (far / far[0]).mean(axis=1), **close)
    np.testing.assert_allclose(history["token_error"], np.linalg.norm(states.tokens - optimum, axis=1) / scale, **close)
    spread = np.linalg.norm(states.x - states.tokens[:, None], axis=2)
    np.testing.assert_allclose(history["consensus"], np.sqrt((spread**2).mean(axis=1)) / scale, rtol=1e-9)
    agents = dense_agents(problem)
    totals = [sum(agent.value(z) - agent.value(optimum) for agent in agents) for z in states.tokens]
    np.testing.assert_allclose(history["objective_gap"], totals, rtol=1e-6, atol=1e-9)


def test_the_history_stays_exact_over_many_laps(problem: rl.LeastSquares, network: rl.Network) -> None:
    run = rl.simulate(rl.IADMM(), problem, network, 2000, record=7)
    far = np.linalg.norm(run.x - problem.optimum, axis=1).mean() / np.linalg.norm(problem.optimum)
    assert run.history["error"].iloc[-1] == pytest.approx(far, rel=1e-9, abs=1e-17)


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_rows_far_apart_are_formed_of_the_states_there(
    engine: Any, problem: rl.LeastSquares, network: rl.Network
) -> None:
    """To the last digits, for which sums that are kept up over the laps between are not good enough; the path is the same."""
    algorithm, marks = rl.IADMM(), [0, 95, 96, 250, 600]
    rare = rl.simulate(algorithm, problem, network, 600, record=marks, engine=engine)
    often = rl.simulate(algorithm, problem, network, 600, record=1, engine=engine)
    np.testing.assert_array_equal(rare.x, often.x)
    assert list(rare.history["hop"]) == marks
    for row, hops in enumerate(marks):
        there = rl.simulate(algorithm, problem, network, hops, engine=engine)
        far = np.linalg.norm(there.x - problem.optimum, axis=1)
        spread = np.sqrt(((there.x - there.token) ** 2).sum(axis=1).mean())
        found = rare.record.error[row], rare.record.consensus[row]
        np.testing.assert_allclose(found, (far.mean(), spread), rtol=1e-14, atol=0.0)
    np.testing.assert_allclose(rare.record.accuracy, often.record.accuracy[marks], rtol=1e-9)
    # Rows that follow close on each other after a while without any are as good.
    on = rare.extend(30)
    far = np.linalg.norm(on.x - problem.optimum, axis=1).mean()
    np.testing.assert_allclose(on.record.error[-1], far, rtol=1e-12)
    np.testing.assert_allclose(on.record.error[-31], rare.record.error[-1], rtol=1e-14)


def test_monitors_agree_with_the_reference(problem: rl.LeastSquares, network: rl.Network) -> None:
    monitors = (rl.AugmentedLagrangian(), rl.KKTResiduals(), rl.Invariant())
    algorithm, hops = rl.RandomStart(), 45
    for engine in ("python", "compiled"):
        run = rl.simulate(
            algorithm, problem, network, hops, seed=5, record=[0, 3, 17, 44], monitors=monitors, engine=engine
        )
        states, agents = trace(algorithm, problem, network, hops, seed=5), dense_agents(problem)
        assert list(run.history["hop"]) == [0, 3, 17, 44, 45]
        for _, row in run.history.iterrows():
            k = int(row["hop"])
            x, y, z = states.x[k], states.y[k], states.tokens[k]
            lagrangian = dense.augmented_lagrangian(agents, 10.0, x, y, z)
            assert row["augmented_lagrangian"] == pytest.approx(lagrangian, rel=1e-11)
            kkt = dense.kkt_residuals(agents, x, y, z)
            assert [row["kkt_gradient"], row["kkt_multipliers"], row["kkt_consensus"]] == pytest.approx(kkt, rel=1e-9)
            assert row["invariant"] < 1e-12


def test_monitors_that_mean_nothing_are_refused(problem: rl.LeastSquares, network: rl.Network) -> None:
    with pytest.raises(ValueError, match=r"AugmentedLagrangian can't watch WPG: .* incremental ADMM has\."):
        rl.simulate(rl.WPG(), problem, network, 10, monitors=[rl.AugmentedLagrangian()])
    with pytest.raises(ValueError, match="keeps no invariant"):
        rl.simulate(rl.IncrementalGradient(), problem, network, 10, monitors=[rl.Invariant()])


def test_it_stops_at_the_first_hop_within_the_tolerance(problem: rl.LeastSquares, network: rl.Network) -> None:
    run = rl.simulate(rl.IADMM(), problem, network, 100_000, tolerance=1e-6)
    assert run.stop == "tolerance"
    assert "1e-06" in run.outcome and str(run.hops) in run.outcome
    every = rl.simulate(rl.IADMM(), problem, network, run.hops, record=1).history["error"]
    assert every.iloc[-1] <= 1e-6 < every.iloc[-2]
    assert run.history["hop"].iloc[-1] == run.hops


def test_divergence_is_an_outcome_with_its_hop(problem: rl.LeastSquares, network: rl.Network) -> None:
    for engine in ("python", "compiled"):
        run = rl.simulate(rl.WPG(alpha=5.0), problem, network, 100_000, engine=engine)
        assert run.stop == "diverged"
        assert f"diverged at hop {run.hops}" in run.outcome
        assert 0 < run.hops < 100_000
        assert len(run.history) > 1
    overflow = rl.simulate(rl.WPG(alpha=1e300), problem, network, 1000)
    assert overflow.stop == "diverged"


class PressedOnTheWay:
    """Ctrl-C in the middle of a visit, once so many have been made."""

    def __init__(self, problem: rl.LeastSquares, after: int) -> None:
        self.plain, self.left = problem, after
        self.problem = rl.CallableProblem(
            [lambda x, i=i: problem.gradient(i, x) for i in range(problem.agents)], problem.dim,
            prox_of=[lambda v, c, i=i: self.prox(i, v, c) for i in range(problem.agents)],
        )  # fmt: skip

    def prox(self, agent: int, v: np.ndarray, c: float) -> np.ndarray:
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)
        return self.plain.prox(agent, v, c)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_returns_what_there_is(problem: rl.LeastSquares, network: rl.Network) -> None:
    pressed = PressedOnTheWay(problem, after=1000)
    run = rl.simulate(rl.IADMM(), pressed.problem, network, 10_000_000, record=1_000_000)
    assert run.stop == "interrupted"
    assert 1000 <= run.hops < 10_000_000
    # The state is whole: exactly what an undisturbed run has after as many hops.
    again = rl.simulate(rl.IADMM(), by_callables(problem), network, run.hops)
    assert (run.x == again.x).all() and (run.y == again.y).all() and (run.token == again.token).all()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_auto_picks_an_engine_and_says_why(problem: rl.LeastSquares, network: rl.Network) -> None:
    assemble._allowance.cache_clear()  # other tests of this process may have used up what Python makes
    run = rl.simulate(rl.IADMM(), problem, network, 10)
    assert (run.engine, run.engine_reason) == ("python", OVER_SOON)
    run = rl.simulate(rl.IADMM(), problem, network, SHORT + 1)
    assert (run.engine, run.engine_reason) == ("compiled", "every part of the run can be compiled")
    run = rl.simulate(rl.IADMM(), by_callables(problem), network, 10)
    assert run.engine == "python"
    assert "plain Python functions" in run.engine_reason
    with pytest.raises(CannotCompileError, match="plain Python functions"):
        rl.simulate(rl.IADMM(), by_callables(problem), network, 10, engine="compiled")


def test_callables_run_as_the_problem_they_came_from(problem: rl.LeastSquares, network: rl.Network) -> None:
    ours = rl.simulate(rl.PIADMM1(), by_callables(problem), network, 100, seed=3)
    theirs = rl.simulate(rl.PIADMM1(), problem, network, 100, seed=3)
    assert np.abs(ours.x - theirs.x).max() < 1e-12


def test_a_run_saves_to_one_file_and_loads_again(problem: rl.LeastSquares, network: rl.Network, tmp_path: Path) -> None:
    algorithm = rl.IADMM(start=rl.UniformStart(0.0, 3.0), regulariser=rl.L1(0.5))
    run = rl.simulate(algorithm, problem, network, 800, seed=9, transcript=True, monitors=[rl.KKTResiduals()])
    path = run.save(tmp_path / "deep" / "run.npz")
    assert list(path.parent.iterdir()) == [path]
    again = rl.load_run(path)
    assert again.algorithm == algorithm
    pd.testing.assert_frame_equal(again.history, run.history)
    for name in ("token", "estimate", "x", "y", "optimum", "visits", "outcome", "units", "engine", "seed", "stop"):
        assert np.array_equal(getattr(again, name), getattr(run, name))
    assert (again.transcript.tokens == run.transcript.tokens).all()
    assert (again.readout().estimate == run.readout().estimate).all()


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 cut off"])
def test_a_damaged_file_is_refused_in_words(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"run\.npz is not a saved run, or it is damaged: save the run again\.$"):
        rl.load_run(path)
    with pytest.raises(ValueError, match="There is no file"):
        rl.load_run(tmp_path / "nowhere.npz")
    with pytest.raises(ValueError, match="can't be read"):
        rl.load_run(tmp_path)


def test_a_file_with_a_wrong_byte_is_refused_without_a_word_about_numpy(
    problem: rl.LeastSquares, network: rl.Network, tmp_path: Path
) -> None:
    """Wherever the byte is: NumPy, zip and zlib each have words of their own for it."""
    path = rl.simulate(rl.IADMM(), problem, network, 100, engine="python").save(tmp_path / "run.npz")
    whole, refused = path.read_bytes(), 0
    for place in range(0, len(whole), len(whole) // 60):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            rl.load_run(path)
        except ValueError as error:
            refused += 1
            assert str(error).startswith(f"{path} ") and "pickle" not in str(error)
    assert refused > 30


def test_many_seeds_give_bands(network: rl.Network) -> None:
    def make(seed: int) -> rl.LeastSquares:
        return rl.paper_least_squares(agents=AGENTS, seed=seed)

    many = rl.simulate(rl.PIADMM1(), make, network, 3000, seeds=range(6), record=100)
    for seed, run in enumerate(many):
        alone = rl.simulate(rl.PIADMM1(), make(seed), network, 3000, seed=seed, record=100)
        assert (run.x == alone.x).all()
    bands = many.bands("accuracy", low=0.0, high=1.0)
    curves = np.array([run.history["accuracy"] for run in many])
    np.testing.assert_array_equal(bands["low"], curves.min(axis=0))
    np.testing.assert_array_equal(bands["high"], curves.max(axis=0))
    np.testing.assert_allclose(bands["median"], np.median(curves, axis=0))
    assert len(many.units_to(1e-6)) == 6
    with pytest.raises(ValueError, match="seeds is empty"):
        rl.simulate(rl.PIADMM1(), make, network, 10, seeds=[])


def test_units_to_waits_until_the_error_stays_below(problem: rl.LeastSquares, network: rl.Network) -> None:
    run = rl.simulate(rl.IADMM(), problem, network, 3000, record=1)
    errors = run.history["error"].to_numpy()
    for target in (1e-3, 1e-9):
        after = np.flatnonzero(errors > target)[-1] + 1
        assert after - 1 <= run.units_to(target) <= after
    assert rl.simulate(rl.PIADMM2(), problem, network, 1000).units_to(1e-9) == np.inf


def test_progress_is_reported(problem: rl.LeastSquares, network: rl.Network) -> None:
    seen: list[tuple[int, int]] = []
    rl.simulate(rl.IADMM(), problem, network, 5000, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (5000, 5000)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_an_interrupt_inside_a_thread_is_left_to_the_main_thread(problem: rl.LeastSquares, network: rl.Network) -> None:
    runs: list[Any] = []
    worker = threading.Thread(target=lambda: runs.append(rl.simulate(rl.IADMM(), problem, network, 1000)))
    worker.start()
    worker.join(timeout=300)
    assert runs[0].stop == "hops"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"hops": -1}, r"hops is -1"),
        ({"hops": 10, "seed": -1}, r"The seed is -1"),
        ({"hops": 10, "seed": 2**64}, r"from 0 to 2\*\*64 - 1"),
        ({"hops": 10, "record": 0}, r"record is 0"),
        ({"hops": 10.5}, r"hops is 10.5: use a whole number"),
        ({"hops": 10, "seed": 1.7}, r"The seed is 1.7"),
        ({"hops": 10, "seeds": [0.5]}, r"A seed is 0.5"),
        ({"hops": 10, "seeds": 5}, r"seeds is 5: give a list"),
        ({"hops": 10, "reader": 3.5}, r"reader is 3.5"),
        ({"hops": 10, "record": 2.5}, r"record is 2.5"),
        ({"hops": 10, "tolerance": "1e-3"}, r"tolerance is '1e-3': use a number"),
        ({"hops": 10, "monitors": rl.Invariant()}, r"give a list"),
        ({"hops": 10, "monitors": [rl.Invariant]}, r"is not a monitor"),
        ({"hops": 10, "record": [3, 11]}, r"asks for the steps 3 to 11"),
        ({"hops": 10, "tolerance": -1.0}, r"tolerance is -1.0"),
        ({"hops": 10, "content": float("nan")}, r"content is nan"),
        ({"hops": 10, "reader": 10}, r"reader is 10"),
        ({"hops": 10, "engine": "gpu"}, r"engine is 'gpu'"),
    ],
)
def test_bad_options_are_refused_in_sentences(
    arguments: dict[str, Any], sentence: str, problem: rl.LeastSquares, network: rl.Network
) -> None:
    with pytest.raises(ValueError, match=sentence) as refusal:
        rl.simulate(rl.IADMM(), problem, network, **arguments)
    assert str(refusal.value).endswith(".")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: rl.IADMM(rho=0.0), "rho is 0.0"),
        (lambda: rl.IADMM(rho=float("nan")), "rho is nan"),
        (lambda: rl.PIADMM1(gamma_spread=1.0), "gamma_spread is 1.0"),
        (lambda: rl.PIADMM1(gamma=0.0), "gamma is 0.0"),
        (lambda: rl.PIADMM2(sigma=-1.0), "sigma is -1.0"),
        (lambda: rl.PIADMM2(sigma_is="spread"), "sigma_is is 'spread'"),
        (lambda: rl.WPG(alpha=-0.1), "alpha is -0.1"),
        (lambda: rl.PWADMM(walks=0), "The number of walks is 0"),
        (lambda: rl.PWADMM(walks=2.5), "The number of walks is 2.5"),
        (lambda: rl.SIADMM(batch=2.5), "batch is 2.5"),
        (lambda: rl.SIADMM(c_tau=float("nan")), "c_tau is nan"),
        (lambda: rl.IncrementalGradient(decay=float("nan")), "decay is nan"),
        (lambda: rl.IADMM(rho="10"), "rho is '10': use a number"),
        (lambda: rl.IADMM(regulariser=0.1), "The regulariser is 0.1"),
        (lambda: rl.IADMM(start=0), "The start is 0"),
        (lambda: rl.WADMM(walk=rl.MetropolisWalk), "The walk is <class"),
        (lambda: rl.IADMM, "is not an algorithm"),
        (lambda: rl.PWADMM(walks=11), "11 tokens can't start at distinct agents of 10"),
        (lambda: rl.PWADMM(tau=-1.0), "tau is -1.0"),
        (lambda: rl.SIADMM(batch=0), "batch is 0"),
        (lambda: "IADMM", "is not an algorithm"),
    ],
)
def test_bad_parameters_are_refused_in_sentences(
    make: Any, sentence: str, problem: rl.LeastSquares, network: rl.Network
) -> None:
    with pytest.raises(ValueError, match=sentence):
        rl.simulate(make(), problem, network, 10, engine="python")


def test_what_a_problem_lacks_is_refused_before_the_start(problem: rl.LeastSquares, network: rl.Network) -> None:
    with pytest.raises(ValueError, match="sI-ADMM needs gradients of single data rows, which a CallableProblem"):
        rl.simulate(rl.SIADMM(), by_callables(problem), network, 10)
    with pytest.raises(ValueError, match="10 agents but the network has 11"):
        rl.simulate(rl.IADMM(), problem, rl.ring(11), 10)


def test_the_wrong_kind_of_thing_is_named(problem: rl.LeastSquares, network: rl.Network) -> None:
    with pytest.raises(ValueError, match="The network is a Graph: use for instance"):
        rl.simulate(rl.IADMM(), problem, network.to_networkx(), 10)
    with pytest.raises(ValueError, match="The problem is a list without agents, dim, kernel"):
        rl.simulate(rl.IADMM(), [1, 2], network, 10)
    run = rl.simulate(rl.IADMM(), problem, network, 20, engine="python")
    with pytest.raises(ValueError, match="There is no agent 99"):
        run.readout(99)


def test_numbers_of_other_types_are_taken_for_what_they_are(
    problem: rl.LeastSquares, network: rl.Network, tmp_path: Path
) -> None:
    algorithm = rl.PWADMM(walks=np.int64(3), rho=np.float32(1.0))
    ours = rl.simulate(
        algorithm, problem, network, 2e2, seed=np.uint64(7), reader=np.int64(3), record=1e1, engine="python"
    )
    theirs = rl.simulate(
        rl.PWADMM(walks=3, rho=1.0), problem, network, 200, seed=7, reader=3, record=10, engine="python"
    )
    assert (ours.x == theirs.x).all() and len(ours.history) == 21
    assert rl.load_run(ours.save(tmp_path / "run.npz")).algorithm == algorithm


def test_with_a_regulariser_the_history_and_readout_speak_of_the_solution(
    problem: rl.LeastSquares, network: rl.Network, tmp_path: Path
) -> None:
    algorithms = (rl.IADMM(regulariser=rl.L1(30.0)), rl.WPG(0.05, regulariser=rl.Box(-1.0, 0.3)))
    for algorithm in algorithms:
        run = rl.simulate(algorithm, problem, network, 3000, record=100)
        assert np.abs(run.token - run.estimate).max() > 1e-3
        last = run.history.iloc[-1]
        assert max(last["token_error"], last["consensus"], last["error"]) < 1e-9
        assert np.abs(run.readout().estimate - run.optimum).max() < 1e-9
        assert (rl.load_run(run.save(tmp_path / "run.npz")).readout().estimate == run.readout().estimate).all()
        stopped = rl.simulate(algorithm, problem, network, 3000, tolerance=1e-6)
        spread = np.linalg.norm(stopped.x - stopped.estimate, axis=1)
        expected = np.sqrt((spread**2).mean()) / np.linalg.norm(stopped.optimum)
        assert stopped.history["consensus"].iloc[-1] == pytest.approx(expected)


def test_tolerance_and_contentment_are_both_obeyed(problem: rl.LeastSquares, network: rl.Network) -> None:
    both = rl.simulate(rl.IADMM(), problem, network, 20_000, tolerance=1e-2, content=1e-9)
    assert (both.stop, both.hops) == (
        "tolerance",
        rl.simulate(rl.IADMM(), problem, network, 20_000, tolerance=1e-2).hops,
    )
    assert rl.simulate(rl.IADMM(), problem, network, 20_000, tolerance=1e-30, content=1e-6).stop == "content"


@pytest.mark.parametrize("tokens", [1, 3, 5])
def test_a_shorter_run_is_the_beginning_of_a_longer_one(
    tokens: int, problem: rl.LeastSquares, network: rl.Network
) -> None:
    """Also for the messages that are still under way when the shorter one ends."""
    options = {"seed": 3, "transcript": True, "engine": "python"}
    long = rl.simulate(rl.IPWADMM(walks=tokens), problem, network, 150, **options).transcript
    for hops in range(1, 90, 7):
        short = rl.simulate(rl.IPWADMM(walks=tokens), problem, network, hops, **options).transcript
        assert (short.receiver == long.receiver[:hops]).all()
        assert (short.tokens == long.tokens[:hops]).all()


def test_units_are_the_messages_of_the_transcript() -> None:
    line, small = rl.path(5), rl.paper_least_squares(agents=5)
    for hops in range(1, 40):
        walk = rl.MetropolisWalk(self_loops_free=True)
        free = rl.simulate(rl.WADMM(walk=walk), small, line, hops, transcript=True, engine="python")
        assert free.units == (free.transcript.sender != free.transcript.receiver).sum()
    for network in (line, rl.ring(5)):
        stopped = rl.simulate(rl.IADMM(), small, network, 20_000, content=1e-6, transcript=True)
        transcript = stopped.transcript
        assert stopped.stop == "content"
        assert stopped.units == len(transcript) == stopped.history["units"].iloc[-1]
        assert (transcript.receiver[:-1] == transcript.sender[1:]).all()
        lap = len(network.tour().order)
        assert (transcript.tokens[-lap:] == stopped.token).all() and transcript.relayed[-lap:].all()
        assert set(transcript.sender[-lap:]) == set(range(5))


def test_the_readout_of_any_agent_passes_over_what_it_only_relayed() -> None:
    small, line = rl.paper_least_squares(agents=8), rl.path(8)
    for agent in range(8):
        by_reader = rl.simulate(rl.IADMM(), small, line, 500, reader=agent, engine="python")
        by_transcript = rl.simulate(rl.IADMM(), small, line, 500, transcript=True, engine="python")
        received, expected = by_transcript.transcript.worked_on_by(agent), by_reader.received
        # One that has just arrived may be missing: the transcript does not say what becomes of it.
        assert any(np.array_equal(received[-15:], expected[len(expected) - 15 - late :][:15]) for late in (0, 1))


def test_a_large_cap_needs_no_room_for_what_does_not_happen(problem: rl.LeastSquares, network: rl.Network) -> None:
    run = rl.simulate(rl.IADMM(), problem, network, 10**10, transcript=True, tolerance=1e-3)
    assert run.stop == "tolerance" and len(run.transcript) == run.hops < 10_000


def test_divergence_of_python_functions_is_an_outcome_too() -> None:
    steep = [lambda x: np.sinh(x - 1.0)] * 4 + [lambda x: np.sinh(x + 3.0)]
    run = rl.simulate(rl.IncrementalGradient(alpha=30.0), rl.CallableProblem(steep, 1), rl.ring(5), 1000)
    assert run.stop == "diverged"


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_among_many_seeds_returns_what_there_is(problem: rl.LeastSquares, network: rl.Network) -> None:
    pressed = PressedOnTheWay(problem, after=1000)
    seeds = range((os.cpu_count() or 1) + 10)  # more than run side by side
    many = rl.simulate(rl.IADMM(), pressed.problem, network, 1_000_000, seeds=seeds, record=1_000_000)
    assert 0 < len(many) < len(seeds)
    assert any(run.stop == "interrupted" for run in many)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_where_interrupts_are_ignored_they_stay_so(problem: rl.LeastSquares, network: rl.Network) -> None:
    """As a shell has it for what it starts in the background."""
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run = rl.simulate(rl.IADMM(), PressedOnTheWay(problem, after=100).problem, network, 1000)
        assert (run.stop, run.hops) == ("hops", 1000)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, previous)


def test_zero_hops_are_the_start(problem: rl.LeastSquares, network: rl.Network) -> None:
    run = rl.simulate(rl.PIADMM1(), problem, network, 0, transcript=True)
    assert len(run.history) == 1 and run.units == 0 and len(run.transcript) == 0
    assert (run.token == 0.0).all()


def test_self_loops_may_be_free(problem: rl.LeastSquares) -> None:
    walk = rl.MetropolisWalk(self_loops_free=True)
    star = rl.star(AGENTS)  # a leaf mostly stays where it is
    paid = rl.simulate(rl.WADMM(), problem, star, 500, transcript=True, engine="python")
    free = rl.simulate(rl.WADMM(walk=walk), problem, star, 500, transcript=True, engine="python")
    stays = (free.transcript.sender == free.transcript.receiver)[:-1].sum()
    assert (paid.x == free.x).all()
    assert paid.units == 500 and stays > 50
    assert free.units == 500 - stays
