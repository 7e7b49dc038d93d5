"""The privacy meter of sealed laps: on the words of a real ring's members, against what is proven."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import RingPlan, Stopping
from roundelay.agents.data.objectives import Known
from roundelay.agents.protocol.baton import Baton
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import Passage
from roundelay.agents.site import metering
from roundelay.agents.site.meter import measure, worst_error
from roundelay.agents.site.status import PrivacyStatus
from roundelay.agents.site.taking_part import PrivacyLimit, SiteOptions, read_privacy
from roundelay.masks import AgreedPairs, PairSecrets, new_private_key, public_key_of
from tests.agents.processes import PATIENCE, make_ring, own_functions, wait_until
from tests.agents.world import ring_plan


def plan_of(agents: int, algorithm: rl.SealedLaps, dim: int) -> RingPlan:
    return ring_plan([f"site {number}" for number in range(agents)], algorithm, dim, Stopping(1e-10, questions=60))


def secrets_of(agents: int) -> list[PairSecrets]:
    """As real members agree on them."""
    private = [new_private_key() for _ in range(agents)]
    public = tuple(map(public_key_of, private))
    return [AgreedPairs(me, key, public, "run") for me, key in enumerate(private)]


def readings(plan: RingPlan, problem: rl.LeastSquares | rl.Logistic, longest: int = 10**6) -> list[PrivacyStatus]:
    """What every site's meter shows after a run in one place, whose hand-overs are kept as a journal keeps them, if not too long."""
    secrets = secrets_of(plan.agents)
    functions = own_functions(problem)
    holders = [Holder(plan, me, Known(functions[me]), me, secrets[me]) for me in range(plan.agents)]
    rows: list[list[Passage]] = [[] for _ in holders]
    at, taken, move, k = plan.order[0], None, holders[plan.order[0]].first(), 0
    while True:
        sent = None if move is None else move.baton
        rows[at].append(
            Passage(
                plan.epoch, k, k + 1, _phase(taken), _phase(sent), holders[at].held.hop, 0, 0, 0, _bytes(taken, longest), _bytes(sent, longest)
            )
        )  # fmt: skip
        if move is None:
            break
        at, taken, k = move.receiver, move.baton, k + 1
        move = holders[at].act(taken)
    return [measure(holder, rows[me], secrets[me]) for me, holder in enumerate(holders)]


def _phase(baton: Baton | None) -> int:
    return -1 if baton is None else int(baton.phase)


def _bytes(baton: Baton | None, longest: int) -> bytes | None:
    return None if baton is None or len(baton.numbers) > longest else np.ascontiguousarray(baton.numbers).tobytes()


METHODS = [
    rl.SealedLaps(rl.NormalEquations(), wide=True),
    rl.SealedLaps(rl.NormalEquations()),
    rl.SealedLaps(rl.ConjugateGradients()),
    rl.SealedLaps(rl.LBFGS()),
]


@pytest.mark.parametrize("algorithm", METHODS, ids=lambda one: f"{one.optimiser.name}, {one.grid}")
@pytest.mark.parametrize("agents", [2, 3, 4, 6])
def test_neighbours_who_are_all_the_others_know_everything_and_else_nothing(agents, algorithm):
    problem = rl.paper_least_squares(agents, 20, 2, seed=agents)
    for status in readings(plan_of(agents, algorithm, 2), problem):
        errors = {reading.quantity[-3:]: reading.error for reading in status.leaks}
        assert set(errors) == {"(y)", "(H)", "(g)"}
        if agents <= 3:
            assert max(errors.values()) < 1e-6
        else:
            assert set(errors.values()) == {1.0}
        assert status.visits > 1


def test_a_function_that_is_not_quadratic_has_no_slope():
    problem = replace(rl.paper_logistic(3, 20, 2, seed=1), ridge=0.1)
    for status in readings(plan_of(3, rl.SealedLaps(rl.Newton()), 2), problem):
        assert {reading.quantity[-3:] for reading in status.leaks} == {"(y)", "(H)"}
        assert worst_error(status) < 1e-9


def test_a_lap_that_meets_a_site_twice_is_read_where_it_worked():
    """On a path the middle ones are met again, and only relay: all the same their part is what they added."""
    plan = plan_of(4, rl.SealedLaps(rl.NormalEquations()), 2)
    path = replace(plan, order=(0, 1, 2, 3, 2, 1), links=((0, 1), (1, 2), (2, 3)))
    assert [sorted(beside) for beside in path.neighbours] == [[1], [0, 2], [1, 3], [2]]
    for status in readings(path, rl.paper_least_squares(4, 20, 2)):
        assert {reading.error for reading in status.leaks} == {1.0}
    short = replace(plan_of(3, rl.SealedLaps(rl.NormalEquations()), 2), order=(0, 1, 2, 1), links=((0, 1), (1, 2)))
    ends, middle = [], []
    for me, status in enumerate(readings(short, rl.paper_least_squares(3, 20, 2))):
        (middle if me == 1 else ends).append(worst_error(status))
    assert max(middle) < 1e-9  # both others are its neighbours
    assert min(ends) == 1.0


def test_the_meter_shows_no_more_than_that_it_is_a_guess():
    """The neighbours know the words under masks: from an error to more digits they would know the size of the answers."""
    for scale in (1.0, 1e3):
        problem = rl.paper_least_squares(4, 20, 2)
        scaled = rl.LeastSquares(scale * problem.features, scale * problem.targets)
        for status in readings(plan_of(4, rl.SealedLaps(wide=True), 2), scaled):
            assert all(reading.error == reading.guess == 1.0 for reading in status.leaks)


@pytest.mark.parametrize(
    ("agents", "words"),
    [
        (2, "hide nothing between two sites"),
        (3, "Both together know all that your site answered"),
        (4, "any 2 of the other 3 sites"),
        (9, "any 7 of the other 8 sites"),
    ],
)
def test_the_sentences(agents, words):
    status = readings(plan_of(agents, rl.SealedLaps(), 2), rl.paper_least_squares(agents, 20, 2))[0]
    assert words in status.sentence


def test_what_was_too_long_to_be_kept_is_not_measured():
    """The first lap has 5 numbers of an answer and the count, the second 2, the count and the point: what is left is a gradient."""
    plan, problem = plan_of(3, rl.SealedLaps(rl.NormalEquations()), 2), rl.paper_least_squares(3, 20, 2)
    for longest, quantities in ((6, 3), (5, 1), (4, 0)):
        assert {len(status.leaks) for status in readings(plan, problem, longest)} == {quantities}


def patient(site, number):
    """On a loaded machine the meter may take long."""
    metering.LAST_LOOK = PATIENCE


@pytest.mark.parametrize(("dim", "measured"), [(2, True), (61, False)])
def test_a_real_ring_measures_beside_the_fit_but_not_where_that_would_be_long(dim, measured, tmp_path):
    problem = rl.paper_least_squares(4, 70, dim)
    ring = make_ring(
        tmp_path, own_functions(problem), rl.SealedLaps(wide=True), Stopping(1e-9), seed=None,
        options=SiteOptions(meter=True, privacy=PrivacyLimit(0.9, "stop")), wrap=patient,
    )  # fmt: skip
    ring.run()
    for number in range(4):
        status = read_privacy(ring.site_folder(number), ring.plan.run)
        assert status is not None and "any 2 of the other 3 sites" in status.sentence
        assert [reading.error for reading in status.leaks] == [1.0] * (3 * measured)


def test_with_two_sites_a_limit_stops_the_agent(tmp_path):
    ring = make_ring(
        tmp_path, own_functions(rl.paper_least_squares(2, 20, 2)), rl.SealedLaps(wide=True), Stopping(1e-9), seed=None,
        options=SiteOptions(meter=True, privacy=PrivacyLimit(0.5, "stop")),
    )  # fmt: skip
    try:
        for number in range(2):
            ring.start(number)
        ended: dict[int, int] = {}
        wait_until(lambda: bool(ended.update(ring.reap()) or 1 in ended.values()), "an agent stops")
    finally:
        ring.stop()
    assert any("more than the limit of 0.5 allows" in ring.log_of(number) for number in range(2))
