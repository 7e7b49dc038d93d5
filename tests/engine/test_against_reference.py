"""Compiled, Python and an independent dense reference agree hop by hop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.engine.assemble import MANY, have_same_bits, recipe_of, token_assembly
from tests.engine.cases import AGENTS, Case, cases
from tests.engine.support import by_reference, invariant_gap, largest_gap, trace
from tests.reference import dense

HOPS = 5 * AGENTS

ALL = pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)


@ALL
@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_every_hop_agrees_with_the_dense_reference(case: Case, engine: str) -> None:
    run = trace(case.algorithm, case.problem, case.network, HOPS, engine=engine)
    assert largest_gap(run, by_reference(case.algorithm, case.problem, run)) < 1e-12
    if case.algorithm.parts().mean_token(run.x[0], run.y[0]) is not None:
        assert invariant_gap(case.algorithm, run) < 1e-14


@ALL
def test_the_engines_walk_alike_and_agree_to_the_bit_where_that_is_promised(case: Case) -> None:
    ours = trace(case.algorithm, case.problem, case.network, HOPS, engine="compiled")
    plain = trace(case.algorithm, case.problem, case.network, HOPS, engine="python")
    assert (ours.order == plain.order).all()
    assembly = token_assembly(case.algorithm.parts(), case.problem, case.network)
    alike = have_same_bits(recipe_of(assembly, compiled=False), case.problem.dim)
    for a, b in ((ours.tokens, plain.tokens), (ours.x, plain.x), (ours.y, plain.y)):
        assert np.abs(a - b).max() <= 1e-13 * np.abs(b).max()
        assert a.tobytes() == b.tobytes() or not alike


def test_a_path_relays_where_an_agent_is_met_again() -> None:
    run = trace(rl.IADMM(), rl.paper_least_squares(agents=AGENTS), rl.path(AGENTS), 2 * (AGENTS - 1))
    assert (run.order == dense.RELAY).sum() == AGENTS - 2
    assert sorted(run.order[run.order >= 0]) == list(range(AGENTS))


@pytest.mark.parametrize("make", [rl.paper_least_squares, rl.paper_logistic])
def test_with_many_agents_data_are_asked_for_ahead_and_nothing_changes(make: Any) -> None:
    agents = MANY + 3
    problem, network = make(agents=agents, samples=2, seed=1), rl.random_network(agents, 3e-4, 1)
    algorithm, options = rl.PIADMM1(first_order=True), {"record": [agents - 1, agents + 5], "seed": 2}
    ours = rl.simulate(algorithm, problem, network, agents + 20, engine="compiled", **options)
    plain = rl.simulate(algorithm, problem, network, agents + 20, engine="python", **options)
    assert np.abs(ours.x - plain.x).max() <= 1e-12 * np.abs(plain.x).max()
    assert np.abs(ours.token - plain.token).max() <= 1e-12 * np.abs(plain.token).max()


@pytest.mark.parametrize("algorithm", [rl.IADMM, rl.WADMM])
def test_the_lasso_is_scikit_learns(algorithm: type) -> None:
    problem = rl.paper_least_squares(agents=AGENTS, samples=20, dim=6, seed=2)
    blocks = [problem.rows.of(agent) for agent in range(AGENTS)]
    rows, targets = problem.rows.features, problem.rows.targets
    for weight, nonzeros in ((1.0, 6), (12.0, 5)):
        lasso = dense.lasso_by_sklearn([rows[own] for own in blocks], [targets[own] for own in blocks], weight)
        assert (np.abs(lasso) > 1e-9).sum() <= nonzeros
        run = rl.simulate(algorithm(regulariser=rl.L1(weight)), problem, rl.complete(AGENTS), 60_000, tolerance=1e-12)
        assert np.abs(run.estimate - lasso).max() < 1e-9
        assert np.abs(run.optimum - lasso).max() < 1e-9
        assert ((run.estimate == 0.0) == (np.abs(lasso) < 1e-9)).all()
    wpg = rl.simulate(
        rl.WPG(1.0 / problem.L, regulariser=rl.L1(12.0)), problem, rl.ring(AGENTS), 60_000, tolerance=1e-12
    )
    assert np.abs(wpg.estimate - lasso).max() < 1e-9
