"""A run from x0: every method, in both engines, is where it is from 0 on data that are moved by x0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from tests.engine.cases import cases as token_cases
from tests.gossip.cases import NETWORK, SQUARES, cases as gossip_cases

X0 = np.array([3.0, -2.0])
# ½‖O(x0 + u) − t‖² = ½‖Ou − (t − Ox0)‖², whatever the method makes of it.
MOVED = rl.LeastSquares(SQUARES.features, [t - o @ X0 for o, t in zip(SQUARES.features, SQUARES.targets, strict=True)])


def algorithms() -> list[Any]:
    """One of each kind that the two families have cases of, but those with a regulariser, and those that take rows one by one, which don't move."""
    named = {}
    for case in [*token_cases(), *gossip_cases()]:
        method = case.algorithm
        resolved = method.resolved(SQUARES) if hasattr(method, "resolved") else method
        by_rows = hasattr(method, "batch") or "row_slope" in getattr(resolved.parts(), "needs", ())
        if not by_rows and getattr(method, "regulariser", rl.NoRegulariser()).is_zero:
            named.setdefault(type(method).__name__, method)
    return [*named.values(), rl.SealedLaps("newton"), rl.OnePass()]


@pytest.mark.parametrize("algorithm", algorithms(), ids=lambda algorithm: type(algorithm).__name__)
def test_every_method_starts_at_x0(algorithm: Any) -> None:
    resolved = algorithm.resolved(SQUARES) if hasattr(algorithm, "resolved") else algorithm
    length: dict[str, int] = {"iterations": 8} if hasattr(resolved.parts(), "mixing") else {"hops": 23}
    expected = rl.simulate(algorithm, MOVED, NETWORK, progress=False, **length, engine=engine_of(algorithm))
    run = rl.simulate(algorithm, SQUARES, NETWORK, x0=X0, progress=False, **length, engine=engine_of(algorithm))
    for found, there in ((run.x, expected.x), (run.estimate, expected.estimate), (run.optimum, expected.optimum)):
        np.testing.assert_allclose(found, there + X0, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(run.history["objective_gap"], expected.history["objective_gap"], rtol=1e-6, atol=1e-9)


def engine_of(algorithm: Any) -> Any:
    return "auto" if isinstance(algorithm, (rl.SealedLaps, rl.OnePass)) else "python"


def test_both_engines_start_there() -> None:
    logistic = rl.paper_logistic(7, 6, 2, seed=1, ridge=0.1)
    for algorithm, problem, length in (
        (rl.IADMM(), SQUARES, {"hops": 40}),
        (rl.DGD(0.01), logistic, {"iterations": 20}),
    ):
        compiled, python = (
            rl.simulate(algorithm, problem, NETWORK, x0=X0, engine=engine, progress=False, **length)
            for engine in ("compiled", "python")
        )
        np.testing.assert_allclose(compiled.x, python.x, rtol=1e-13)
        assert compiled.history["error"].iloc[0] == pytest.approx(
            np.linalg.norm(X0 - problem.optimum) / np.linalg.norm(problem.optimum)
        )


def test_a_tolerance_is_on_the_error_from_x0_too() -> None:
    run = rl.simulate(rl.IADMM(), SQUARES, NETWORK, 5000, x0=100.0 * X0, tolerance=1e-3, record=1, progress=False)
    assert run.stop == "tolerance" and run.history["error"].iloc[-1] <= 1e-3 < run.history["error"].iloc[-2]


def test_what_can_not_be_a_start() -> None:
    for wrong, words in ((np.zeros(3), "shape"), (["a", "b"], "numbers"), ([np.nan, 0.0], "finite")):
        with pytest.raises(ValueError, match=words):
            rl.simulate(rl.IADMM(), SQUARES, NETWORK, 5, x0=wrong)
    with pytest.raises(ValueError, match="an audit takes"):
        rl.simulate(rl.IADMM(), SQUARES, NETWORK, 5, x0=X0, transcript=True)
