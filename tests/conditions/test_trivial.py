"""A network on which nothing happens leaves every run bit for bit as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.algorithms.gossip import Gossip
from roundelay.kernels import DIM, Exchange, Numbers, each
from tests.conditions.support import film, simulate, squares, triangle_with_tail

NETWORK = triangle_with_tail()
PROBLEM = squares(5)

RUNS = {
    "I-ADMM": (rl.IADMM(), {"hops": 40}),
    "W-ADMM": (rl.WADMM(), {"hops": 40}),
    "PW-ADMM": (rl.PWADMM(walks=3, tau=0.7), {"hops": 40}),
    "MC-SAG": (rl.MCSAG(gamma=0.05), {"hops": 40}),
    "DGD": (rl.DGD(), {"iterations": 12}),
    "D-ADMM": (rl.DADMM(), {"iterations": 12}),
    "COCA": (rl.COCA(alpha=0.5), {"iterations": 12}),
    "gradient tracking": (rl.GradientTracking(), {"iterations": 12}),
    "gradient tracking in turn": (rl.GradientTracking(adapt_then_combine=True), {"iterations": 12}),
    "coloured D-ADMM": (rl.ColouredDADMM(), {"iterations": 12}),
    "LEAD": (rl.LEAD(), {"iterations": 12}),
    "Scaffnew": (rl.Scaffnew(), {"iterations": 12}),
    "EF-SignSGD": (rl.EFSignSGD(), {"iterations": 12}),
}

IDLE = {
    "nothing": rl.NetworkConditions(),
    "nothing said at length": rl.NetworkConditions(
        loss=rl.GilbertElliott(0.3, 0.4, loss_bad=0.0), resend=True, latency=[0.0] * 5, latency_jitter=2.0,
        compute=[0.0] * 5, compute_jitter=3.0, straggler_chance=0.5,
    ),
}  # fmt: skip


def assert_the_same(name: str, conditions: rl.NetworkConditions, engine: str) -> None:
    algorithm, length = RUNS[name]
    bare = film(algorithm, PROBLEM, NETWORK, engine=engine, **length)
    idle = film(algorithm, PROBLEM, NETWORK, conditions, engine=engine, **length)
    for ours, theirs in ((idle.x, bare.x), (idle.y, bare.y), (idle.token, bare.token)):
        np.testing.assert_array_equal(ours, theirs)
    for column in bare.run.history.columns:
        np.testing.assert_array_equal(idle.run.history[column], bare.run.history[column])
    assert np.abs(bare.x).max() > 0.0
    assert (idle.seconds == 0.0).all()


@pytest.mark.parametrize("idle", IDLE)
@pytest.mark.parametrize("name", RUNS)
def test_nothing_changes(name: str, idle: str) -> None:
    assert_the_same(name, IDLE[idle], "python")


@pytest.mark.parametrize("name", ["I-ADMM", "DGD"])
def test_nothing_changes_when_compiled(name: str) -> None:
    assert_the_same(name, IDLE["nothing said at length"], "compiled")


@pytest.mark.parametrize("idle", IDLE)
def test_nothing_changes_in_the_one_pass(idle: str) -> None:
    bare, calm = (simulate(rl.OnePass(), PROBLEM, NETWORK, conditions) for conditions in (None, IDLE[idle]))
    np.testing.assert_array_equal(calm.x, bare.x)
    np.testing.assert_array_equal(calm.record.units, bare.record.units)
    assert (calm.record.seconds == 0.0).all()


@pytest.mark.parametrize(
    "conditions", [rl.NetworkConditions(), rl.NetworkConditions(latency=1.0)], ids=["none", "time"]
)
def test_a_reader_makes_the_same_of_what_it_received(conditions: Any) -> None:
    """Nothing and latency leave the tokens as they were, so the lap is as fixed as before."""
    bare, same = (simulate(rl.IADMM(), PROBLEM, NETWORK, given, hops=200).readout() for given in (None, conditions))
    np.testing.assert_array_equal(same.estimate, bare.estimate)


# A method of two exchanges whose agents listen in the first, and go by what they heard when they speak again.


def send_what_was_heard(problem: Any, method: Any, at: Exchange, states: Any, own: Any, inbox: Any, out: Any) -> None:
    for d in each(DIM):
        if at.exchange == 0:
            states.x[at.agent, d] = inbox[0, d] + at.agent
        out[0, d] = states.x[at.agent, d] * (1 + at.exchange)


def leave_it_for_later(
    problem: Any, method: Any, at: Exchange, states: Any, own: Any, inbox: Any, talked: bool
) -> None:
    pass


def listens_at_first(method: Any, i: int, exchange: int) -> bool:
    return exchange == 0


class Latecomers:
    name = "latecomers"

    def parts(self) -> Gossip:
        functions = (("send", send_what_was_heard), ("receive", leave_it_for_later), ("listens", listens_at_first))
        return Gossip(functions, lambda network: Numbers(), needs=(), exchange_count=lambda network: 2)


def test_an_inbox_stays_until_its_owner_listens_again() -> None:
    bare, idle = (film(Latecomers(), PROBLEM, NETWORK, given, iterations=5).x for given in (None, IDLE["nothing"]))
    np.testing.assert_array_equal(idle, bare)


# A method whose agents count how often they were told to update; they listen in the first of two exchanges.


def send_count(problem: Any, method: Any, at: Exchange, states: Any, own: Any, inbox: Any, out: Any) -> None:
    for d in each(DIM):
        out[0, d] = states.x[at.agent, d]


def count_once_more(problem: Any, method: Any, at: Exchange, states: Any, own: Any, inbox: Any, talked: bool) -> None:
    for d in each(DIM):
        states.x[at.agent, d] += 1.0


class Counters:
    name = "counters"

    def parts(self) -> Gossip:
        functions = (("send", send_count), ("receive", count_once_more), ("listens", listens_at_first))
        return Gossip(functions, lambda network: Numbers(), needs=(), exchange_count=lambda network: 2)


def test_loss_calls_nobody_to_update_who_does_not_listen() -> None:
    lossy = rl.NetworkConditions(loss=rl.BernoulliLoss(0.3))
    for conditions in (None, rl.NetworkConditions(), lossy):
        assert (simulate(Counters(), PROBLEM, NETWORK, conditions, iterations=6).x == 6.0).all()
