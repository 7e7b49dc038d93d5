"""Whatever the links do, the states at the end are those of an undisturbed run, bit for bit."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.protocol.baton import Baton
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.site.taking_part import Site
from tests.agents.bad_frames import HARMS
from tests.agents.bad_links import ALGORITHM, SHORT, over_bad_bytes, over_bad_frames
from tests.agents.likeness import check_every_hand_over_once, check_same, simulated
from tests.agents.namespaces import hosts, why_not
from tests.agents.processes import make_ring, own_functions, wait_until
from tests.agents.proxies import Mischief


def test_bytes_that_are_cut_delayed_repeated_and_flipped_change_nothing(tmp_path: Path) -> None:
    done = over_bad_bytes(tmp_path, SHORT, 1)
    print(f"\n{dict(done)}")
    assert done["delay"] and done.total() > done["delay"]


def test_frames_that_are_lost_repeated_reordered_and_damaged_change_nothing(tmp_path: Path) -> None:
    done = over_bad_frames(tmp_path, SHORT, 1)
    print(f"\n{dict(done)}")
    assert all(done[harm] for harm in HARMS)


def test_a_link_that_falls_silent_is_opened_anew(tmp_path: Path) -> None:
    """Nothing arrives and nobody says so: the agents find out by asking."""
    only_stalls = Mischief(cut=0.0, stall=0.02, delay=0.0, truncate=0.0, repeat=0.0, flip=0.0, pieces=50)
    done = over_bad_bytes(tmp_path, SHORT, 2, only_stalls)
    assert done["stall"]


def test_hosts_whose_cable_is_pulled_and_plugged_in_again(tmp_path: Path) -> None:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    problem = rl.paper_least_squares(agents=3, samples=6, dim=2, seed=4)
    begun, pulled = tmp_path / "begun", tmp_path / "pulled"
    with hosts(3) as net:

        def enter(site: Site, number: int) -> None:
            net.enter(number)
            if number == 1:
                wait_at_a_visit(20, begun, pulled)

        addresses = [f"{net.address(number)}:7443" for number in range(3)]
        ring = make_ring(
            tmp_path, own_functions(problem), ALGORITHM, Stopping(None, 150), addresses=addresses, seed=4, wrap=enter
        )  # fmt: skip
        try:
            for number in range(3):
                ring.start(number)
            wait_until(begun.exists, "site 1 is in the middle of the run")
            net.cable(1, plugged=False)
            pulled.touch()
            time.sleep(1.5)
            assert not ring.reap()  # nobody can have ended without it
            net.cable(1, plugged=True)
            ring.wait()
        finally:
            ring.stop()
    check_same(ring, simulated(ALGORITHM, problem, rl.ring(3), 150, 4))
    check_every_hand_over_once(ring)


def wait_at_a_visit(number: int, begun: Path, go_on: Path) -> None:
    """So that the run is still going on when something happens to the links."""
    visit = Holder.visit

    def waiting(self: Holder, baton: Baton) -> object:
        if self.held.visits == number:
            begun.touch()
            wait_until(go_on.exists, "the visit may go on")
        return visit(self, baton)

    Holder.visit = waiting  # type: ignore[assignment,method-assign]
