"""A folder that is put back to an older copy in the middle of a random walk: the fit ended "confirmed", with coefficients off by 38."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import RingPlan, Stopping
from roundelay.agents.protocol.baton import Baton, BatonError, Phase, Reason
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.station import Station, Verdict
from roundelay.agents.protocol.wire import Kind, pack_frame, unpack_frame
from tests.adversary.signed_rings import RING, members_of, pooled_optimum, signed_plan
from tests.agents.world import MemoryJournal

RESTORED = 2
EVERYWHERE = tuple((a, b) for a in range(4) for b in range(a + 1, 4))


def walk() -> RingPlan:
    """The token goes to any neighbour."""
    return replace(signed_plan(rl.WADMM(rho=2.0, start=rl.SealedStart()), Stopping(1e-8)), links=EVERYWHERE)


class Sites:
    """Stations with journals that outlive them; every hand-over arrives."""

    def __init__(self, plan: RingPlan) -> None:
        self.plan = plan
        self.journals = [MemoryJournal() for _ in range(plan.agents)]
        self.stations = [Station(one, journal) for one, journal in zip(members_of(plan), self.journals, strict=True)]  # type: ignore[arg-type]
        self.stations[plan.order[0]].start()

    def hand_over(self) -> bool:
        """The next one; False where there is none."""
        for sender, station in enumerate(self.stations):
            if station.outgoing is None:
                continue
            receiver, data = station.outgoing
            frame = unpack_frame(data, self.plan.run_bytes)
            other = self.stations[receiver]
            if other.judge(sender, frame) is Verdict.NEW:
                other.work(sender, frame, other.read(frame))
                other.secure()
            station.acknowledge(frame.epoch, frame.k)
            return True
        return False

    def hops(self, hop: int, at: Sequence[int] = (0, 1, 3)) -> None:
        """Until so many hops are made, and the token is with one of these."""
        while self.hand_over():
            holding = [me for me, station in enumerate(self.stations) if station.outgoing is not None]
            if max(one.holder.held.hop for one in self.stations) >= hop and holding and holding[0] in at:
                return

    def restore(self, copy: MemoryJournal) -> Station:
        """The site starts from an older copy of its folder."""
        old = self.stations[RESTORED].holder
        again = Holder(
            self.plan, RESTORED, old.local, old.seed, old._key or old.secrets, signer=old.signer, ring=RING
        )  # fmt: skip
        self.journals[RESTORED] = copy
        self.stations[RESTORED] = Station(again, copy)  # type: ignore[arg-type]
        return self.stations[RESTORED]


def put_back() -> Sites:
    """Site 2 has an older copy of its folder, and the token is elsewhere."""
    sites = Sites(walk())
    sites.hops(24)
    copy = deepcopy(sites.journals[RESTORED])
    sites.hops(60)
    assert sites.stations[RESTORED].holder.held.visits > copy_visits(sites, copy)
    sites.restore(copy)
    return sites


def copy_visits(sites: Sites, copy: MemoryJournal) -> int:
    return sum(row.hop > 0 for row in copy.rows)


def greeted(one: Station, other: Station) -> None:
    """One station hears what another says of their link."""
    data = pack_frame(Kind.HELLO, one.plan.run_bytes, one.plan.epoch, 0, other.greeting(one.me))
    one.check_greeting(other.me, unpack_frame(data, one.plan.run_bytes))


def test_both_ends_of_a_link_remember_what_crossed_it() -> None:
    """No neighbour of three is left out in so many hops."""
    sites = put_back()
    for me in (0, 1, 3):
        with pytest.raises(
            BatonError, match="Tromso does not remember all that crossed the link to this site: its folder"
        ):
            greeted(sites.stations[me], sites.stations[RESTORED])


def test_who_has_lost_nothing_is_greeted() -> None:
    sites = Sites(walk())
    sites.hops(60)
    for one in sites.stations:
        for other in sites.stations:
            if one is not other:
                greeted(one, other)
    latest = deepcopy(sites.journals[RESTORED])
    again = sites.restore(latest)
    for me in (0, 1, 3):
        greeted(sites.stations[me], again)
        greeted(again, sites.stations[me])


def test_what_does_not_add_up_is_no_end() -> None:
    """Had nobody greeted, the sum of what all have in the token says so before the end: under masks, nobody shows its own."""
    sites = put_back()
    with pytest.raises(BatonError, match="What all sites have in the token does not add up to it"):
        sites.hops(10**6)
    assert not any(one.holder.finished for one in sites.stations)


def test_without_the_sum_the_end_is_wrong_and_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control."""
    monkeypatch.setattr(Holder, "_check_balance", lambda *_: None)
    sites = put_back()
    sites.hops(10**6)
    assert all(one.holder.finished for one in sites.stations)
    found = sites.stations[0].holder.held.estimate
    assert found is not None and np.abs(found - pooled_optimum(sites.plan)).max() > 1e-3


def test_an_honest_walk_ends_at_the_minimiser() -> None:
    sites = Sites(walk())
    sites.hops(10**6)
    for one in sites.stations:
        np.testing.assert_allclose(one.holder.held.estimate, pooled_optimum(sites.plan), atol=1e-6)  # type: ignore[arg-type]


def test_a_mask_of_the_shares_is_not_used_for_two_of_them() -> None:
    """A token that is frozen ahead of its time, worked on behind that, and frozen there once more: the difference would be the site's own."""
    sites = Sites(walk())
    sites.hops(40)
    member = sites.stations[1].holder
    z = np.zeros(sites.plan.dim)
    freezer = sites.stations[0].holder
    hop = max(one.holder.held.hop for one in sites.stations) + 50
    frozen = freezer.freeze(Reason.ASKED, hop, z).baton
    member.check(frozen._replace(step=1), None)
    member.act(frozen._replace(step=1))
    for earlier in (hop - 2, hop - 1):
        with pytest.raises(BatonError, match="would go back to hop"):
            member.check(Baton(Phase.ITERATE, earlier, member.me, 0, 0, 0, z), None)
