"""The invariant holds at every hop, over random problems, graphs and options."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import roundelay as rl
from tests.engine.support import invariant_gap, trace

rhos = st.floats(0.5, 50.0)
starts = st.one_of(st.just(rl.ZeroStart()), st.builds(rl.UniformStart, st.just(-5.0), st.floats(0.0, 100.0)))
walks = st.sampled_from([rl.MetropolisWalk(), rl.UniformWalk(), rl.ClosedUniformWalk(), rl.LeastVisitedWalk()])
regularisers = st.one_of(st.builds(rl.L1, st.floats(0.0, 5.0)), st.just(rl.NonNegative()), st.just(rl.Box(-0.2, 0.4)))


@st.composite
def problems(draw: Any) -> Any:
    """Ragged data of either kind, weighted or not."""
    agents, dim = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = [draw(st.integers(1, 2 * dim)) for _ in range(agents)]
    features = [generator.normal(size=(count, dim)) for count in counts]
    weights = draw(st.sampled_from(["equal", "rows"]))
    if draw(st.booleans()):
        targets = [generator.normal(size=count) for count in counts]
        scale = draw(st.sampled_from(["half_sum", "mean"]))
        return rl.LeastSquares(features, targets, scale, ridge=draw(st.sampled_from([0.0, 0.3])), weights=weights)
    labels = [generator.choice([-1.0, 1.0], size=count) for count in counts]
    return rl.Logistic(features, labels, ridge=0.2, weights=weights)


@st.composite
def networks(draw: Any, agents: int) -> rl.Network:
    """Any connected graph: a random tree and some more links."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    graph = networkx.empty_graph(agents)
    graph.add_edges_from((i, int(generator.integers(0, i))) for i in range(1, agents))
    for _ in range(draw(st.integers(0, 2 * agents))):
        i, j = generator.integers(0, agents, 2)
        if i != j:
            graph.add_edge(int(i), int(j))
    return rl.from_networkx(graph)


@st.composite
def algorithms(draw: Any, agents: int) -> Any:
    """Any method that keeps an invariant, with any options."""
    rho, first_order, start = draw(rhos), draw(st.booleans()), draw(starts)
    return draw(
        st.one_of(
            st.just(rl.IADMM(rho, first_order, start)),
            st.builds(lambda r: rl.IADMM(rho, regulariser=r), regularisers),
            st.just(rl.RandomStart(rho, first_order)),
            st.builds(lambda s: rl.PIADMM1(rho, s, start, first_order), st.floats(0.0, 0.9)),
            st.builds(lambda s: rl.PIADMM2(rho, s, start, first_order), st.floats(0.0, 1.0)),
            st.builds(lambda w: rl.WADMM(rho, w, first_order, start), walks),
            st.builds(lambda w, r: rl.WADMM(rho, w, regulariser=r), walks, regularisers),
            st.builds(lambda m, t, w: rl.PWADMM(rho, t, m, first_order, w), st.integers(1, agents), st.floats(0.0, 3.0), walks),
            st.builds(lambda m, t: rl.IPWADMM(rho, t, m, first_order), st.integers(1, agents), st.floats(0.0, 3.0)),
            st.builds(lambda a, w: rl.WPG(a, w), st.floats(0.01, 1.0), walks),
            st.builds(lambda a, r: rl.WPG(a, regulariser=r), st.floats(0.01, 1.0), regularisers),
            st.builds(lambda c: rl.SIADMM(rho, c, batch=2), st.floats(0.1, 10.0)),
        )
    )  # fmt: skip


@given(st.data())
@settings(max_examples=120, deadline=None)
def test_the_invariant_holds_at_every_hop(data: st.DataObject) -> None:
    problem = data.draw(problems())
    network = data.draw(networks(problem.agents))
    algorithm = data.draw(algorithms(problem.agents))
    seed = data.draw(st.integers(0, 2**64 - 1))
    run = trace(algorithm, problem, network, hops=4 * problem.agents + 3, seed=seed)
    assert invariant_gap(algorithm, run) < 1e-11


@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 2**64 - 1))
@settings(max_examples=40, deadline=None)
def test_the_tokens_never_lose_count_of_visits(hops: int, tokens: int, seed: int) -> None:
    problem, network = rl.paper_least_squares(agents=6), rl.complete(6)
    run = rl.simulate(rl.IPWADMM(walks=tokens), problem, network, hops, seed=seed, engine="python", transcript=True)
    assert run.visits.sum() == hops == run.units == len(run.transcript)
    assert (np.bincount(run.transcript.sender, minlength=6) == run.visits).all()
    # What a token's receiver got is what it worked on next: each message starts where the one before ended.
    for m in range(tokens):
        own = slice(m, hops, tokens)
        assert (run.transcript.receiver[own][:-1] == run.transcript.sender[own][1:]).all()


@pytest.mark.parametrize("agents", [1, 2])
@pytest.mark.parametrize("algorithm", [rl.IADMM(), rl.WADMM(), rl.PIADMM1(), rl.WPG(0.05), rl.PWADMM(walks=1)])
def test_one_and_two_agents_work(algorithm: Any, agents: int) -> None:
    problem = rl.paper_least_squares(agents=agents)
    run = rl.simulate(algorithm, problem, rl.ring(agents), 3000, engine="python", record=1000)
    assert np.linalg.norm(run.token - problem.optimum) < 1e-10
