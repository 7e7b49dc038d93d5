"""Neighbours who do not follow the protocol wait until contribution noise has faded; the meter, which goes on measuring, notices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.protocol.baton import Baton, BatonError, Phase
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.site import own_attacks
from roundelay.agents.site.own_attacks import most_visits
from roundelay.agents.site.taking_part import PrivacyLimit, Site, SiteOptions
from roundelay.privacy.attacks import at_rest
from tests.adversary.endless import patient
from tests.adversary.token_rings import TokenRing, errors
from tests.agents.processes import ProcessRing, make_ring, own_functions, wait_until
from tests.agents.world import ring_plan

AGENTS, DIM, VICTIM, VISITS, RHO = 5, 2, 2, 280, 10.0
PROBLEM = rl.paper_least_squares(AGENTS, 20, DIM, seed=3)
# What the neighbours hand to their victim, each for as long: the first until the noise has faded.
PLACES = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
METHODS = [
    rl.IADMM(rho=RHO, start=rl.SealedStart(), defence=rl.ContributionNoise()),
    rl.PIADMM1(rho=RHO, start=rl.SealedStart(), defence=rl.ContributionNoise()),
]


def place_at(visit: int) -> np.ndarray:
    return PLACES[min(visit * len(PLACES) // VISITS, len(PLACES) - 1)]


def ring_of(algorithm: object) -> TokenRing:
    plan = ring_plan([f"site {number}" for number in range(AGENTS)], algorithm, DIM, Stopping(None, 10_000_000))
    return TokenRing(plan, own_functions(PROBLEM))


def honest(algorithm: object) -> TokenRing:
    """A ring whose members all follow the protocol."""
    ring = ring_of(algorithm)
    at, taken = ring.plan.order[0], None
    while ring.members[VICTIM].held.visits < VISITS:
        at, taken = ring.take(at, taken)  # type: ignore[misc]
    return ring


def held_still(algorithm: object) -> tuple[TokenRing, np.ndarray, np.ndarray]:
    """The two neighbours hand the token to their victim alone: what they gave it, and what it has added to it since."""
    ring = ring_of(algorithm)
    at, taken = ring.plan.order[0], None
    while taken is None or taken.phase == Phase.SUM:
        at, taken = ring.take(at, taken)  # type: ignore[misc]
    given, added = [], []
    for visit in range(VISITS):
        z = place_at(visit)
        move = ring.take(VICTIM, Baton(Phase.ITERATE, visit * AGENTS + VICTIM, 0, 0, 0, 0, z))
        assert move is not None and move[0] == VICTIM + 1
        given.append(z)
        added.append(AGENTS * (move[1].numbers - z))
    return ring, np.array(given), np.cumsum(added, axis=0)


def curvature(given: np.ndarray, share: np.ndarray) -> np.ndarray:
    """At rest c = z − ∇f(z)/ρ + const, so that H = ρ(I − ΔcΔz⁻¹): from the end of each stay."""
    ends = [np.flatnonzero((given == place).all(axis=1))[-1] for place in PLACES]
    moved, answered = (np.diff(rows[ends], axis=0).T for rows in (given, share))
    return RHO * (np.eye(DIM) - answered @ np.linalg.inv(moved))


@pytest.mark.parametrize("algorithm", METHODS, ids=lambda one: one.name)
def test_who_holds_the_token_still_knows_the_curvature_and_the_meter_sees_it(algorithm: object) -> None:
    ring, given, share = held_still(algorithm)
    truth = PROBLEM.hessian(VICTIM)
    assert np.linalg.norm(curvature(given, share) - truth) < 1e-10 * np.linalg.norm(truth)
    status = ring.measured(VICTIM)
    assert status.visits == VISITS and "curvature" in status.sentence
    best = min(status.leaks, key=lambda leak: leak.error)
    assert best.error < 1e-8 and best.attack == "at rest"


@pytest.mark.parametrize("algorithm", METHODS, ids=lambda one: one.name)
def test_who_only_hands_it_on_does_not_know_it(algorithm: object) -> None:
    status = honest(algorithm).measured(VICTIM)
    assert status.visits == VISITS and errors(status)["H"] > 0.05


def test_the_first_visits_alone_do_not_show_it() -> None:
    """The meter looked at so many and no more."""
    ring, _, _ = held_still(METHODS[0])
    ring.rows[VICTIM] = ring.rows[VICTIM][: most_visits(DIM)]
    assert errors(ring.measured(VICTIM))["H"] > 0.05


def huge_at_first(size: float) -> TokenRing:
    """The neighbours hand over tokens beside which any noise is nothing, at visits in which no jump is too far yet."""
    ring = ring_of(METHODS[0])
    at, taken = ring.plan.order[0], None
    while taken is None or taken.phase == Phase.SUM:
        at, taken = ring.take(at, taken)  # type: ignore[misc]
    for visit in range(12):
        z = size * place_at(visit * VISITS // 12)
        assert ring.take(VICTIM, Baton(Phase.ITERATE, visit * AGENTS + VICTIM, 0, 0, 0, 0, z)) is not None
    return ring


def test_tokens_beside_which_noise_is_nothing_are_seen() -> None:
    assert errors(huge_at_first(1e8).measured(VICTIM))["H"] < 1e-6


def test_where_they_are_beyond_all_measure_they_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the site's own update came to no numbers, or the meter's attacks to none, which count as past a limit."""
    with pytest.raises(BatonError, match="a site before this one has made it so"):
        huge_at_first(1e160)
    monkeypatch.setattr("roundelay.agents.protocol.holder.FARTHEST", float("inf"))
    status = huge_at_first(1e160).measured(VICTIM)
    assert status.unmeasured and "An attack of the privacy meter failed" in status.sentence


@pytest.mark.parametrize("fails", [True, False])
def test_an_attack_that_fails_is_not_one_that_is_not_made_for_the_method(
    fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others go on; whether it would have found more nobody can say. One that refuses the method says so in a ValueError."""
    ring = honest(METHODS[0])

    def attack(*_: object) -> object:
        raise np.linalg.LinAlgError("SVD did not converge") if fails else ValueError("not for this method")

    monkeypatch.setattr(own_attacks, "registered", lambda slot: {"one": attack, "at rest": at_rest})
    status = ring.measured(VICTIM)
    assert status.unmeasured is fails and {one.attack for one in status.leaks} == {"at rest"}


# ---------------------------------------------------------------- real processes


def hand_on_what_one_likes(site: Site, number: int) -> None:
    """The site before the victim hands it one place for a while, and then another."""
    patient(site, number)
    if number == VICTIM - 1:
        visit = Holder.visit

        def instead(self: Holder, baton: Baton) -> tuple[Baton, int]:
            after, content = visit(self, baton)
            return after._replace(numbers=place_at(self.held.visits).copy()), content

        Holder.visit = instead  # type: ignore[method-assign]


@pytest.mark.parametrize("active", [True, False])
def test_a_real_agent_stops_though_it_has_added_noise(active: bool, tmp_path: Path) -> None:
    limit = PrivacyLimit(1e-3, "noise")
    options = SiteOptions(meter=True, privacy=limit)
    ring: ProcessRing = make_ring(
        tmp_path, own_functions(PROBLEM), rl.PIADMM1(rho=RHO, start=rl.SealedStart()), Stopping(None, 400 * AGENTS),
        seed=None, options=options, wrap=hand_on_what_one_likes if active else patient,
    )  # fmt: skip
    if not active:
        ring.run()
        assert "noise added" in ring.log_of(VICTIM)
        return
    ended: dict[int, int] = {}
    try:
        for number in range(AGENTS):
            ring.start(number)
        wait_until(lambda: bool(ended.update(ring.reap()) or VICTIM in ended), "the victim stops")
    finally:
        ring.stop()
    said = ring.log_of(VICTIM)
    assert ended[VICTIM] == 1 and "noise added" in said
    assert "can know the curvature of this site's data (H) to" in said and "so the agent stops here" in said
