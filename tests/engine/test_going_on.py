"""A run that goes on, one that is ended early, many runs in a folder; and what is asked wrongly is said in words."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import roundelay as rl
from roundelay.kernels import Part

NETWORK, PROBLEM = rl.random_network(5, 0.7, 1), rl.paper_least_squares(5, 6, 2, seed=1)
NOISY = rl.NetworkConditions(loss=rl.BernoulliLoss(0.1), noise=1e-3, latency=0.01)
CASES: list[tuple[Any, str, dict[str, Any]]] = [
    (rl.PIADMM2(sigma=0.1), "hops", {"transcript": True}),
    (rl.PWADMM(walks=2), "hops", {}),
    (rl.IADMM(start=rl.SealedStart()), "hops", {}),
    (rl.WADMM(), "hops", {"x0": [1.0, 2.0]}),
    (rl.MCSAG(gamma=0.01), "hops", {"conditions": NOISY}),
    (rl.LEAD(), "iterations", {}),
    (rl.DADMM(0.7), "iterations", {"conditions": NOISY}),
]


@pytest.mark.parametrize(("algorithm", "noun", "options"), CASES, ids=lambda value: type(value).__name__)
def test_a_run_that_goes_on_is_the_one_that_never_stopped(algorithm: Any, noun: str, options: dict[str, Any]) -> None:
    def made(steps: int) -> rl.Run:
        return rl.simulate(
            algorithm, PROBLEM, NETWORK, seed=3, engine="python", progress=False, **{noun: steps}, **options
        )

    whole, first = made(61), made(20)
    kept = first.x.copy(), first.history.copy()
    again = first.extend(30).extend(11)
    for name in ("x", "y", "estimate", "units", "steps", "stop", "outcome"):
        np.testing.assert_array_equal(getattr(again, name), getattr(whole, name))
    np.testing.assert_array_equal(first.x, kept[0])  # what came before is as it was
    np.testing.assert_array_equal(first.history, kept[1])
    rows = whole.history
    same = rows[rows.iloc[:, 0].isin(again.history.iloc[:, 0])]
    np.testing.assert_allclose(again.history, same, rtol=1e-9, atol=1e-12)
    assert len(again.history) == 62
    if whole.transcript is not None:
        assert again.transcript is not None
        np.testing.assert_array_equal(again.transcript.tokens, whole.transcript.tokens)


def test_what_can_not_go_on_says_so() -> None:
    for run in (
        rl.simulate(rl.SealedLaps(), PROBLEM, NETWORK),
        pickle.loads(pickle.dumps(rl.simulate(rl.IADMM(), PROBLEM, NETWORK, 5, engine="python"))),
    ):
        with pytest.raises(ValueError, match="can be continued"):
            run.extend(5)


def test_a_long_run_that_is_ended_early_has_a_history(interruptible: None) -> None:
    """A billion hops have a row every million, and the run is ended after some ten."""

    def interrupt(done: int, total: int) -> None:
        import signal

        signal.raise_signal(signal.SIGINT)

    run = rl.simulate(rl.IADMM(), PROBLEM, NETWORK, 10**9, engine="python", progress=interrupt)
    assert run.stop == "interrupted" and run.hops == 10 and len(run.history) >= 10


def test_many_runs_in_a_folder(tmp_path: Path) -> None:
    runs = rl.simulate(rl.IADMM(), PROBLEM, NETWORK, 20, seeds=[11, 2], engine="python", progress=False)
    again = rl.load_ensemble(runs.save(tmp_path / "runs"))
    assert [run.seed for run in again] == [2, 11]
    np.testing.assert_array_equal(again[1].x, runs[0].x)
    assert [run.hops for run in runs.extend(5)] == [25, 25]
    with pytest.raises(ValueError, match="no saved runs"):
        rl.load_ensemble(tmp_path)


def test_what_is_asked_wrongly_is_said_in_words() -> None:
    with pytest.raises(ValueError, match="give one of the two"):
        rl.simulate(rl.IADMM(), PROBLEM, NETWORK, 5, seed=1, seeds=[1, 2])
    with pytest.raises(ValueError, match=r"hops is 1e\+30"):
        rl.simulate(rl.IADMM(), PROBLEM, NETWORK, 10**30)
    with pytest.raises(ValueError, match=r"from_numpy_array"):
        rl.from_networkx(networkx.to_numpy_array(networkx.cycle_graph(3)))  # type: ignore[arg-type]


def test_a_lambda_is_not_told_that_its_file_has_changed() -> None:
    class Doubtful(rl.LeastSquares):
        def kernel(self) -> Part:
            part = super().kernel()
            gradient = lambda problem, i, x, out: None  # noqa: E731
            others = [(name, function) for name, function in part.functions if name != "gradient"]
            return Part((("gradient", gradient), *others), part.numbers, part.literals)

    with pytest.raises(ValueError, match=r"lambda.*define it by def"):
        rl.simulate(rl.WPG(), Doubtful(PROBLEM.features, PROBLEM.targets), NETWORK, 5)
