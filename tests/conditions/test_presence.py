"""Links that come and go, and agents that sleep: what both families make of it, and what stays exact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import roundelay as rl
from roundelay.algorithms.gossip import Gossip
from roundelay.engine import assemble
from roundelay.kernels import AWAKE, DIM, LINKS, Exchange, Numbers, each, uniform
from tests.conditions.support import (
    SEED,
    Hiss,
    adjacency,
    assert_white,
    film,
    simulate,
    squares,
    triangle_with_tail,
    weights_of,
    within,
)
from tests.engine.support import dense_agents
from tests.reference.gossip import metropolis

AGENTS = 6
PROBLEM, NETWORK = squares(AGENTS), rl.random_network(AGENTS, 0.6, 3)
HALVES = rl.PeriodicLinks([NETWORK.edges[::2], NETWORK.edges[1::2]], rounds=2)
CHANGING: dict[str, rl.NetworkConditions] = {
    "links at random": rl.NetworkConditions(links=rl.RandomLinks(0.5)),
    "links in turn": rl.NetworkConditions(links=HALVES),
    "awake at random": rl.NetworkConditions(waking=rl.AwakeAtRandom(0.6)),
    "asleep in turns": rl.NetworkConditions(waking=rl.SleepsInTurns(0.2, 0.3)),
    "all of it": rl.NetworkConditions(links=rl.RandomLinks(0.7), waking=rl.SleepsInTurns(0.3, 0.5)),
}
EVERY = pytest.mark.parametrize("name", CHANGING)


# ---------------------------------------------------------------- the weights of the moment, and who is awake


class RowStates(NamedTuple):
    """What an agent heard last, and how often it took part."""

    x: Any
    y: Any


def send_own_unit(problem: Any, method: Any, at: Exchange, states: Any, own: Any, inbox: Any, out: Any) -> None:
    """The message of agent i is 1 in coordinate i."""
    for d in each(DIM):
        out[0, d] = 0.0
    out[0, at.agent] = 1.0


def keep_row(problem: Any, method: Any, at: Exchange, states: Any, own: Any, inbox: Any, talked: bool) -> None:
    """x_i = Σ_j w_ij·(message of j) is row i of W."""
    for d in each(DIM):
        states.x[at.agent, d] = inbox[0, d]
        states.y[at.agent, d] += 1.0


class Rows:
    """A gossip method that solves nothing, but whose states are the rows of W."""

    name = "rows"

    def __init__(self, weights: Any = None) -> None:
        self.weights = weights or rl.Metropolis()

    def parts(self) -> Gossip:
        return Gossip(
            (("send", send_own_unit), ("receive", keep_row)),
            lambda network: Numbers(),
            RowStates,
            self.weights,
            needs=(),
        )


def weights_and_waking(
    network: rl.Network, conditions: rl.NetworkConditions, iterations: int, weights: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """W_k, with the row of 1 of an agent that sleeps, and who is awake: (K, N, N) and (K, N)."""
    shown = film(Rows(weights), squares(network.agents, network.agents), network, conditions, iterations=iterations)
    awake = np.diff(shown.y[:, :, 0], axis=0) == 1.0
    rows = np.where(awake[:, :, None], shown.x[1:], np.eye(network.agents))
    return rows, awake


@EVERY
def test_the_weights_are_metropolis_on_the_links_that_are_there(name: str) -> None:
    matrices, awake = weights_and_waking(NETWORK, CHANGING[name], 40)
    links = adjacency(NETWORK) > 0.0
    kinds = set()
    for W, up in zip(matrices, awake, strict=True):
        there = (W != 0.0) & links
        assert (there == there.T).all()
        assert not there[~up].any() and not there[:, ~up].any()
        np.testing.assert_allclose(W, metropolis(there.astype(float)), atol=1e-15)
        kinds.add(there.tobytes())
    assert len(kinds) > 1  # they do come and go


MUTATIONS = [
    ("1.0 + max(", "2.0 + max("),
    ("+ max(links.degrees[i]", "+ min(links.degrees[i]"),
    ("conditions.turns[turn, link] * both", "conditions.turns[turn, link]"),
    ("1.0 - kept if", "1.0 - 0.5 * kept if"),
    ("kept += links.weights[a]", "kept += mixing.weights[a]"),
]


@pytest.mark.parametrize(("old", "new"), MUTATIONS)
def test_one_changed_symbol_is_noticed(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = assemble.python_module

    def changed(recipe: Any, dim: int) -> Any:
        functions = dict(recipe.functions)
        assert functions["begin_iteration"].count(old) == 1
        functions["begin_iteration"] = functions["begin_iteration"].replace(old, new)
        return made(replace(recipe, functions=tuple(functions.items())), dim)

    monkeypatch.setattr(assemble, "python_module", changed)
    with pytest.raises(AssertionError):
        test_the_weights_are_metropolis_on_the_links_that_are_there("all of it")


@pytest.mark.parametrize("weights", [rl.Lazy(), rl.Laplacian(), rl.BestConstant()], ids=repr)
def test_all_weights_stay_symmetric_with_rows_that_sum_to_one(weights: Any) -> None:
    matrices, _ = weights_and_waking(NETWORK, CHANGING["all of it"], 20, weights)
    np.testing.assert_allclose(matrices, matrices.transpose(0, 2, 1), atol=1e-15)
    np.testing.assert_allclose(matrices.sum(axis=2), 1.0, atol=1e-14)
    usual = weights.numbers(NETWORK)
    if not isinstance(weights, rl.Lazy):  # a link has the weight that it always has, or none
        off = matrices[:, ~np.eye(AGENTS, dtype=bool)]
        assert np.isin(off, [0.0, *usual.weights]).all() and len(np.unique(off)) == 2


def test_links_in_turn_keep_their_turns() -> None:
    matrices, _ = weights_and_waking(NETWORK, CHANGING["links in turn"], 9)
    graphs = [NETWORK.edges[::2], NETWORK.edges[1::2]]
    for k, W in enumerate(matrices):
        expected = weights_of(rl.Network(AGENTS, NETWORK.edges))
        there = np.zeros_like(expected)
        i, j = graphs[(k // 2) % 2].T
        there[i, j] = there[j, i] = 1.0
        np.testing.assert_allclose(W, metropolis(there), atol=1e-15)


def test_links_and_agents_follow_their_laws() -> None:
    count = 6000
    matrices, awake = weights_and_waking(NETWORK, rl.NetworkConditions(links=rl.RandomLinks(0.3)), count)
    i, j = NETWORK.edges.T
    there = matrices[:, i, j] > 0.0
    assert awake.all()
    assert within(there.mean(), 0.3, np.sqrt(0.21 / there.size))
    assert np.abs(np.corrcoef(there.T) - np.eye(len(i))).max() < 5.0 / np.sqrt(count)
    assert abs(np.corrcoef(there[1:].ravel(), there[:-1].ravel())[0, 1]) < 5.0 / np.sqrt(there.size)
    _, awake = weights_and_waking(NETWORK, rl.NetworkConditions(waking=rl.SleepsInTurns(0.1, 0.3)), count)
    before, after = awake[:-1].ravel(), awake[1:].ravel()
    assert within((~after[before]).mean(), 0.1, np.sqrt(0.09 / before.sum()))
    assert within(after[~before].mean(), 0.3, np.sqrt(0.21 / (~before).sum()))


def test_who_is_not_there_is_not_paid_for() -> None:
    for conditions in CHANGING.values():
        matrices, _ = weights_and_waking(NETWORK, conditions, 20)
        there = ((matrices != 0.0) & (adjacency(NETWORK) > 0.0)).sum(axis=(1, 2))
        for algorithm, vectors in ((rl.DGD(0.02), 1), (rl.GradientTracking(0.02), 2)):
            run = simulate(algorithm, PROBLEM, NETWORK, conditions, iterations=20, record=1)
            np.testing.assert_array_equal(np.diff(run.record.units), vectors * there)


# ---------------------------------------------------------------- the recursions, on those weights


def gradients(problem: Any, x: np.ndarray) -> np.ndarray:
    return np.array([agent.gradient(own) for agent, own in zip(dense_agents(problem), x, strict=True)])


def tracked(matrices: np.ndarray, awake: np.ndarray, alpha: float) -> np.ndarray:
    """x⁺ = Wx − αs, s⁺ = Ws + ∇F(x⁺) − ∇F(x); who sleeps has x⁺ = x, s⁺ = s."""
    x = np.zeros((AGENTS, PROBLEM.dim))
    s = gradients(PROBLEM, x)
    states = [x]
    for W, up in zip(matrices, awake, strict=True):
        step = up[:, None] * alpha
        new = W @ x - step * s
        s = W @ s + gradients(PROBLEM, new) - gradients(PROBLEM, x)
        x = new
        states.append(x)
    return np.array(states)


def descended(matrices: np.ndarray, awake: np.ndarray, alpha: float) -> np.ndarray:
    """x⁺ = Wx − α∇F(x); who sleeps has x⁺ = x."""
    x = np.zeros((AGENTS, PROBLEM.dim))
    states = [x]
    for W, up in zip(matrices, awake, strict=True):
        x = W @ x - up[:, None] * alpha * gradients(PROBLEM, x)
        states.append(x)
    return np.array(states)


@EVERY
@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_methods_follow_their_recursions_on_the_weights_of_the_moment(name: str, engine: str) -> None:
    matrices, awake = weights_and_waking(NETWORK, CHANGING[name], 25)
    for algorithm, recursion in ((rl.GradientTracking(0.02), tracked), (rl.DGD(0.02), descended)):
        ours = film(algorithm, PROBLEM, NETWORK, CHANGING[name], engine=engine, iterations=25).x
        np.testing.assert_allclose(ours, recursion(matrices, awake, 0.02), atol=1e-13)


@EVERY
@pytest.mark.parametrize("adapts", [False, True], ids=["combine then adapt", "adapt then combine"])
def test_the_tracked_sum_is_the_sum_of_the_gradients(name: str, adapts: bool) -> None:
    """What makes tracking exact, whoever sleeps: x̄⁺ − x̄ = −(α/N)Σ s_i over those awake, and all s_i vanish at the end."""
    algorithm = rl.GradientTracking(0.1 / PROBLEM.L, adapts)
    run = simulate(algorithm, PROBLEM, NETWORK, CHANGING[name], "compiled", iterations=6000, tolerance=1e-10)
    assert run.stop == "tolerance"


# ---------------------------------------------------------------- what is not guaranteed


def switching() -> tuple[Any, rl.Network, rl.PeriodicLinks]:
    """Five agents with functions h_i x²/2 − x of one unknown, and three graphs of three or four links that take turns."""
    curvatures = [1.0, 0.15808532, 0.0175101, 0.07316736, 0.0229403]
    problem = rl.LeastSquares([[[np.sqrt(h)]] for h in curvatures], [[1.0 / np.sqrt(h)] for h in curvatures])
    graphs = [[(1, 0), (2, 1)], [(1, 0), (3, 0), (4, 1), (4, 3)], [(3, 2), (4, 2), (4, 3)]]
    every = sorted({link for graph in graphs for link in graph})
    return problem, rl.Network(5, np.array(every)), rl.PeriodicLinks(graphs, rounds=2)


def test_extra_is_exact_on_the_network_and_diverges_where_it_changes_but_tracking_does_not() -> None:
    problem, network, links = switching()
    conditions = rl.NetworkConditions(links=links)
    still = simulate(rl.EXTRA(), problem, network, iterations=3000, tolerance=1e-9)
    assert still.stop == "tolerance"
    moving = simulate(rl.EXTRA(), problem, network, conditions, iterations=3000, tolerance=1e-9)
    assert moving.stop == "diverged"
    tracking = simulate(rl.GradientTracking(), problem, network, conditions, iterations=3000, tolerance=1e-9)
    assert tracking.stop == "tolerance"


# ---------------------------------------------------------------- tokens wait


TAIL = triangle_with_tail()
TOKENS = {
    "I-ADMM with relays": (rl.IADMM(), 1),
    "W-ADMM": (rl.WADMM(), 1),
    "PW-ADMM": (rl.PWADMM(walks=3, tau=0.7), 3),
}


def rounds_waited(run: rl.Run, conditions: rl.NetworkConditions, network: rl.Network, tokens: int) -> int:
    """How many rounds tokens waited, recomputed from the messages: each needs its link up and its receiver awake."""
    generator = np.random.Generator(np.random.Philox(key=np.array([SEED, 0xA3A4E], np.uint64)))
    falls, wakes = conditions.waking.turning()
    awake = generator.random(network.agents) < wakes / (falls + wakes) if falls > 0.0 else np.ones(network.agents, bool)
    looked, number, waited = np.full(network.agents, -1), 0, np.zeros(tokens)
    turns, long = conditions.links.turns(network)
    busy = np.zeros(network.agents)
    messages = list(zip(run.transcript.sender, run.transcript.receiver, strict=True))[
        : len(run.transcript.sender) - tokens
    ]
    for n, (sender, receiver) in enumerate(messages):
        while sender != receiver:
            row = int(network.edge_rows(np.array([sender]), np.array([receiver]))[0])
            now, number = number, number + 1
            there = turns[now // long % len(turns), row] == 1
            if there and conditions.links.chance_up() < 1.0:
                there = uniform(SEED, row, now, LINKS, 0) < conditions.links.chance_up()
            if there and falls > 0.0:
                still = (1.0 - falls - wakes) ** (now - looked[receiver])
                usual = wakes / (falls + wakes)
                awake[receiver] = (
                    uniform(SEED, int(receiver), now, AWAKE, 0) < usual + (awake[receiver] - usual) * still
                )
                looked[receiver] = now
                there = awake[receiver]
            if there:
                break
            waited[n % tokens] += 1
        if not run.transcript.relayed[n + tokens]:  # an agent that had another token later has not had this one before
            waited[n % tokens] = busy[receiver] = max(waited[n % tokens], busy[receiver])
    return int(waited.max())


@pytest.mark.parametrize("method", TOKENS)
@EVERY
def test_a_token_waits_and_nothing_else_changes(name: str, method: str) -> None:
    algorithm, tokens = TOKENS[method]
    network = TAIL if name != "links in turn" else NETWORK
    problem, hops = squares(network.agents), 90
    bare, ours = (
        simulate(algorithm, problem, network, conditions, hops=hops, transcript=True, record=1)
        for conditions in (None, CHANGING[name])
    )
    np.testing.assert_array_equal(ours.x, bare.x)
    np.testing.assert_array_equal(ours.record.units, bare.record.units)
    assert ours.record.seconds[-1] == rounds_waited(ours, CHANGING[name], network, tokens) > 0


def test_the_rounds_waited_follow_the_law_of_the_chain() -> None:
    """Against a chain that is turned round by round, on a ring of three."""
    falls, wakes, hops = 0.3, 0.2, 6000
    conditions = rl.NetworkConditions(waking=rl.SleepsInTurns(falls, wakes))
    run = simulate(rl.IADMM(), squares(3), rl.ring(3), conditions, "compiled", hops=hops)
    generator = np.random.default_rng(0)
    awake, waited = generator.random(3) < wakes / (falls + wakes), []
    for hop in range(1, hops):
        rounds = 0
        while True:
            awake = np.where(awake, generator.random(3) >= falls, generator.random(3) < wakes)
            if awake[hop % 3]:
                break
            rounds += 1
        waited.append(rounds)
    # A wait depends on the one before: batches of a hundred do hardly.
    batches = np.reshape(waited[: (hops - 1) // 100 * 100], (-1, 100)).mean(axis=1)
    error = np.sqrt(2.0) * batches.std(ddof=1) / np.sqrt(len(batches))
    assert within(run.record.seconds[-1] / (hops - 1), np.mean(waited), error)


def test_waiting_has_its_price_in_seconds() -> None:
    conditions = rl.NetworkConditions(links=rl.RandomLinks(0.5), waiting=2.5, latency=1.0)
    plain = rl.NetworkConditions(links=rl.RandomLinks(0.5))
    ours, rounds = (simulate(rl.IADMM(), PROBLEM, rl.ring(AGENTS), given, hops=50) for given in (conditions, plain))
    assert ours.record.seconds[-1] == 49.0 + 2.5 * rounds.record.seconds[-1]


@pytest.mark.parametrize(
    ("algorithm", "length"),
    [(rl.OnePass(), {}), (rl.SealedLaps(), {}), (rl.IADMM(), {"hops": 5000, "content": 1e-6})],
    ids=["one pass", "sealed laps", "the lap of a frozen token"],
)
def test_laps_wait_too(algorithm: Any, length: dict[str, Any]) -> None:
    bare, ours = (
        simulate(algorithm, PROBLEM, NETWORK, conditions, **length)
        for conditions in (None, rl.NetworkConditions(links=rl.RandomLinks(0.5), detours=True))
    )
    np.testing.assert_array_equal(ours.x, bare.x)
    assert ours.units == bare.units
    waited = ours.record.seconds[-1] / ours.units * (1 if algorithm.name != "one pass" else 3)
    assert ours.record.seconds[-1] > 0.0 and waited < 10.0


# ---------------------------------------------------------------- or look elsewhere


@EVERY
def test_a_token_that_looks_elsewhere_stays_for_a_hop_and_pays_nothing(name: str) -> None:
    conditions = rl.NetworkConditions(links=CHANGING[name].links, waking=CHANGING[name].waking, detours=True)
    algorithm, hops = rl.WADMM(walk=rl.UniformWalk()), 400  # which never stays by itself
    plain, fast = (
        simulate(algorithm, PROBLEM, NETWORK, conditions, engine, hops=hops, record=1)
        for engine in ("python", "compiled")
    )
    np.testing.assert_array_equal(plain.record.units, fast.record.units)
    np.testing.assert_array_equal(plain.record.seconds, fast.record.seconds)
    assert np.abs(plain.x - fast.x).max() < 1e-12
    paid, waited = np.diff(plain.record.units), np.diff(plain.record.seconds)
    np.testing.assert_array_equal(paid + waited, 1.0)
    stayed = np.flatnonzero(paid == 0.0)
    assert len(stayed) > 0
    np.testing.assert_array_equal(plain.record.tokens[stayed + 1], plain.record.tokens[stayed])


def test_looking_elsewhere_is_exact_and_waits_less_for_those_who_sleep_long() -> None:
    waking, seconds = rl.SleepsInTurns(0.02, 0.02), []
    for detours in (False, True):
        conditions = rl.NetworkConditions(waking=waking, detours=detours)
        run = simulate(rl.WADMM(), PROBLEM, NETWORK, conditions, "compiled", hops=200_000, tolerance=1e-9)
        assert run.stop == "tolerance"
        seconds.append(run.record.seconds[-1] + run.record.units[-1])
    assert seconds[1] < 0.8 * seconds[0]


# ---------------------------------------------------------------- together with everything else


@pytest.mark.parametrize("algorithm", [rl.DGD(0.05), rl.GradientTracking(0.02, True)], ids=lambda one: one.name)
def test_the_engines_agree_whatever_else_happens(algorithm: Any) -> None:
    for seed in range(4):
        conditions = rl.NetworkConditions(
            loss=rl.GilbertElliott(0.3, 0.3), resend=True, noise=0.1, latency=np.linspace(1.0, 2.0, len(NETWORK.edges)),
            compute=np.linspace(0.3, 0.9, AGENTS), straggler_chance=0.3, links=rl.RandomLinks(0.6), waking=rl.SleepsInTurns(0.3, 0.4),
        )  # fmt: skip
        plain, fast = (
            simulate(algorithm, PROBLEM, NETWORK, conditions, engine, record=1, seed=seed, iterations=20)
            for engine in ("python", "compiled")
        )
        np.testing.assert_array_equal(fast.record.units, plain.record.units)
        np.testing.assert_array_equal(fast.record.seconds, plain.record.seconds)
        assert np.abs(fast.x - plain.x).max() <= 1e-12 * np.abs(plain.x).max()


def test_messages_are_sent_again_only_where_they_were_sent() -> None:
    matrices, _ = weights_and_waking(NETWORK, CHANGING["all of it"], 300)
    there = ((matrices != 0.0) & (adjacency(NETWORK) > 0.0)).sum(axis=(1, 2))
    given = CHANGING["all of it"]
    conditions = rl.NetworkConditions(links=given.links, waking=given.waking, loss=rl.BernoulliLoss(0.5), resend=True)
    sent = np.diff(simulate(rl.DGD(0.02), PROBLEM, NETWORK, conditions, iterations=300, record=1).record.units)
    assert (sent >= there).all() and (sent[there == 0] == 0).all()
    assert within(sent.sum() / there.sum(), 2.0, np.sqrt(2.0 / there.sum()))


def test_noise_is_that_of_the_links_that_are_there() -> None:
    given = CHANGING["all of it"]
    conditions = rl.NetworkConditions(links=given.links, waking=given.waking, noise=0.5)
    matrices, awake = weights_and_waking(NETWORK, given, 800)
    heard = film(Hiss(), squares(AGENTS), NETWORK, conditions, iterations=800).x[1:]
    spread = 0.5 * np.sqrt(((matrices * (1.0 - np.eye(AGENTS))) ** 2).sum(axis=2))
    assert (heard[awake & (spread == 0.0)] == 0.0).all()
    some = awake & (spread > 0.0)
    assert_white(heard[some] / spread[some][:, None])


def test_in_gossip_nobody_waits_for_who_is_not_there() -> None:
    """t_i⁺ = max(t_i, t_j + latency over the neighbours j that are there), after work of those who are awake."""
    given = CHANGING["all of it"]
    conditions = rl.NetworkConditions(links=given.links, waking=given.waking, latency=1.0, compute=0.25)
    matrices, awake = weights_and_waking(NETWORK, given, 30)
    clocks, last = np.zeros(AGENTS), [0.0]
    for W, up in zip(matrices, awake, strict=True):
        done = clocks + 0.25 * up
        there = (W != 0.0) & (adjacency(NETWORK) > 0.0)
        clocks = np.maximum(done, np.where(there, done[None, :] + 1.0, 0.0).max(axis=1))
        last.append(clocks.max())
    run = simulate(rl.DGD(0.02), PROBLEM, NETWORK, conditions, iterations=30, record=1)
    np.testing.assert_allclose(run.record.seconds, last, rtol=1e-14)


# ---------------------------------------------------------------- nothing changes


@pytest.mark.parametrize(
    ("algorithm", "length"),
    [
        (rl.DGD(0.02), {"iterations": 20}),
        (rl.GradientTracking(0.02, weights=rl.BestConstant()), {"iterations": 20}),
        (rl.WADMM(), {"hops": 60}),
    ],
    ids=["DGD", "gradient tracking", "W-ADMM"],
)
def test_links_that_are_always_there_change_nothing(algorithm: Any, length: dict[str, int]) -> None:
    always = rl.NetworkConditions(links=rl.RandomLinks(1.0), waking=rl.AwakeAtRandom(1.0), detours=True)
    assert always.changes
    bare, ours = (simulate(algorithm, PROBLEM, NETWORK, given, record=1, **length) for given in (None, always))
    np.testing.assert_array_equal(ours.x, bare.x)
    np.testing.assert_array_equal(ours.record.units, bare.record.units)


def test_they_are_saved_with_a_run_and_a_run_goes_on(tmp_path: Path) -> None:
    given = rl.NetworkConditions(links=HALVES, waking=rl.SleepsInTurns(0.1, 0.2), waiting=0.5)
    run = simulate(rl.GradientTracking(0.02), PROBLEM, NETWORK, given, iterations=40, record=1)
    assert rl.load_run(run.save(tmp_path / "run.npz")).conditions == given
    half = simulate(rl.GradientTracking(0.02), PROBLEM, NETWORK, given, iterations=20, record=1).extend(20)
    np.testing.assert_array_equal(half.x, run.x)


# ---------------------------------------------------------------- refusals


REFUSED: dict[str, tuple[Any, str]] = {
    "a link that is never up": (lambda: rl.RandomLinks(0.0), "waits for ever"),
    "who never wakes up": (lambda: rl.SleepsInTurns(0.1, 0.0), "wakes_up is 0.0"),
    "more than surely asleep": (lambda: rl.SleepsInTurns(1.5, 0.5), "falls_asleep is 1.5"),
    "never awake": (lambda: rl.AwakeAtRandom(0.0), "chance is 0.0"),
    "no graphs": (lambda: rl.PeriodicLinks([]), "at least one link"),
    "graphs in words": (lambda: rl.PeriodicLinks(["ring", "star"]), "lists of links"),
    "half a link": (lambda: rl.PeriodicLinks([[(0,)]]), "lists of links"),
    "an agent and a half": (lambda: rl.PeriodicLinks([[(0, 1.5)]]), "lists of links"),
    "no rounds": (lambda: rl.PeriodicLinks([[(0, 1)]], rounds=0), "rounds"),
    "links as a number": (lambda: rl.NetworkConditions(links=0.5), r"such as RandomLinks\(0.5\)"),
    "waking as a class": (lambda: rl.NetworkConditions(waking=rl.AlwaysAwake), r"such as AwakeAtRandom\(0.5\)"),
    "waiting backwards": (lambda: rl.NetworkConditions(waiting=-1.0), "waiting is -1.0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_means_nothing_is_refused_in_a_sentence(case: str) -> None:
    make, words = REFUSED[case]
    with pytest.raises(ValueError, match=words) as caught:
        make()
    assert str(caught.value).endswith(".")


RANDOM = CHANGING["links at random"]
CANNOT: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "ADMM with penalties": (rl.DADMM(), RANDOM, {"iterations": 5}, "does not average over the links"),
    "everyone to everyone": (rl.EFSignSGD(0.01), RANDOM, {"iterations": 5}, "does not average over the links"),
    "increments": (rl.LEAD(0.01), RANDOM, {"iterations": 5}, "remember of earlier messages"),
    "differences": (
        rl.DGD(0.01, channel=rl.Channel(rl.TopK(1), differences=True)), RANDOM, {"iterations": 5}, "remember of earlier messages",
    ),
    "loss": (
        rl.DGD(0.01), rl.NetworkConditions(links=rl.RandomLinks(0.5), loss=rl.BernoulliLoss(0.1)), {"iterations": 5}, "resend=True",
    ),
    "a link of nobody's": (
        rl.IADMM(), rl.NetworkConditions(links=rl.PeriodicLinks([[(0, 1)], [(0, 4)]])), {"hops": 5}, "0 and 4, which the network does not",
    ),
    "a link that is in no graph": (
        rl.IADMM(), rl.NetworkConditions(links=rl.PeriodicLinks([[(0, 1), (1, 2)]])), {"hops": 5}, "in none of the graphs",
    ),
    "an agent too many": (
        rl.IADMM(), rl.NetworkConditions(links=rl.PeriodicLinks([[(0, 9)]])), {"hops": 5}, "none of the 5",
    ),
    "a transcript of detours": (
        rl.WADMM(), rl.NetworkConditions(links=rl.RandomLinks(0.5), detours=True), {"hops": 5, "transcript": True}, "leave `detours` out",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CANNOT)
def test_what_cannot_go_on_there_is_refused_in_a_sentence(case: str) -> None:
    algorithm, conditions, length, words = CANNOT[case]
    with pytest.raises(ValueError, match=words) as caught:
        simulate(algorithm, squares(5), TAIL, conditions, **length)
    assert str(caught.value).endswith(".")


def test_the_command_line_says_the_same() -> None:
    from roundelay.cli.options import conditions_in_words, conditions_of

    given = conditions_of(None, None, None, None, links=0.5, awake=0.7)
    assert given == rl.NetworkConditions(links=rl.RandomLinks(0.5), waking=rl.AwakeAtRandom(0.7))
    assert conditions_in_words(given).endswith("links up 0.5, agents awake 0.7")
    bare = conditions_of(0.1, None, None, None)
    assert bare == rl.NetworkConditions(rl.BernoulliLoss(0.1)) and "awake" not in conditions_in_words(bare)
