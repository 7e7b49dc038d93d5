"""The last acknowledgement never comes: whoever has the end has the model at once, does not wait for ever, and tells it again."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.data.models import load_model
from roundelay.agents.links import agent_loop
from roundelay.agents.links.agent_loop import Agent
from roundelay.agents.protocol.station import Point
from roundelay.agents.protocol.wire import Frame
from roundelay.agents.site.taking_part import Ending, Site
from tests.agents.likeness import check_same, simulated
from tests.agents.processes import ProcessRing, make_ring, own_functions, wait_until

SITES, HOPS, SEED = 4, 40, 3
# The end goes round from where the last hop was made; the last one to hear of it has it from the one before.
FIRST = (HOPS - 1) % SITES
TELLS, HEARS = (FIRST + SITES - 2) % SITES, (FIRST + SITES - 1) % SITES


def new_ring(folder: Path, wrap: object) -> tuple[ProcessRing, rl.Run]:
    problem = rl.paper_least_squares(agents=SITES, samples=6, dim=2, seed=SEED)
    ring = make_ring(folder, own_functions(problem), rl.IADMM(), Stopping(None, HOPS), seed=SEED, wrap=wrap)
    return ring, simulated(rl.IADMM(), problem, rl.ring(SITES), HOPS, SEED)


def never_say_that_the_end_came(site: Site, number: int) -> None:
    """Its acknowledgement of the end is lost, every time."""
    acknowledge = Agent._acknowledge

    async def lost(agent: Agent, peer: int, frame: Frame) -> None:
        if not agent.station.holder.finished:
            await acknowledge(agent, peer, frame)

    async def send(agent: Agent, *frame: object) -> None:
        if not agent.station.holder.finished:
            await sent(agent, *frame)  # type: ignore[arg-type]

    if number == HEARS:
        sent = Agent._send
        Agent._acknowledge, Agent._send = lost, send  # type: ignore[method-assign]


def note_who_is_unconfirmed(site: Site) -> None:
    run = site.run

    async def noted() -> Ending:
        ending = await run()
        (site.folder / "unconfirmed").write_text(ending.unconfirmed)
        return ending

    site.run = noted  # type: ignore[method-assign]


def wait_until_only(ring: ProcessRing, left: set[int]) -> None:
    """Until all others have ended well."""

    def so() -> bool:
        ended = ring.reap()
        assert not any(ended.values()), {number: ring.log_of(number)[-600:] for number in ended}
        return set(ring.children) <= left

    wait_until(so, f"all have ended but {left}")


def test_the_model_is_there_before_anybody_has_confirmed_the_end(tmp_path: Path) -> None:
    ring, _ = new_ring(tmp_path, never_say_that_the_end_came)
    try:
        for number in range(SITES):
            ring.start(number)
        wait_until_only(ring, {TELLS})
        model = ring.site_folder(TELLS) / "model.json"
        wait_until(model.exists, "the one that waits in vain writes its model")
        assert load_model(model).about.hops == HOPS
        assert not ring.reap()  # it still waits, in case that the other one comes back
    finally:
        ring.stop()


def test_nobody_waits_for_ever(tmp_path: Path) -> None:
    def wrap(site: Site, number: int) -> None:
        never_say_that_the_end_came(site, number)
        note_who_is_unconfirmed(site)
        agent_loop.FAREWELL = 1.0

    ring, run = new_ring(tmp_path, wrap)
    ring.run()
    check_same(ring, run)
    said = [(ring.site_folder(number) / "unconfirmed").read_text() for number in range(SITES)]
    assert said == [f"site{HEARS}" if number == TELLS else "" for number in range(SITES)]


def test_who_was_away_at_the_end_is_told_by_the_same_command(tmp_path: Path) -> None:
    """The one that had the end gave up; started once more, it hands over what is in its journal, and nobody has missed it."""

    def wrap(site: Site, number: int) -> None:
        note_who_is_unconfirmed(site)
        if not (tmp_path / "again").exists():
            agent_loop.FAREWELL = 1.0

    def die_before_the_end(site: Site, number: int) -> None:
        wrap(site, number)
        reached, laps = site.reached, []

        def dying(point: Point) -> None:
            assert site.watch is not None
            if point is Point.AFTER_RECEIVE and site.watch.agent.station.holder.held.hop >= HOPS - SITES:
                laps.append(point)
            if len(laps) == 2:  # the lap in which all sign, and the one that tells that all have
                (tmp_path / "died").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            reached(point)

        if number == HEARS and not (tmp_path / "died").exists():
            site.reached = dying

    ring, run = new_ring(tmp_path, die_before_the_end)
    try:
        for number in range(SITES):
            ring.start(number)
        raise_unless_killed(ring)
        assert (ring.site_folder(TELLS) / "unconfirmed").read_text() == f"site{HEARS}"
        assert not (ring.site_folder(HEARS) / "model.json").exists()
        (tmp_path / "again").touch()
        ring.start(HEARS)
        ring.start(TELLS)
        ring.wait()
    finally:
        ring.stop()
    check_same(ring, run)
    assert (ring.site_folder(HEARS) / "model.json").exists()
    assert (ring.site_folder(TELLS) / "unconfirmed").read_text() == ""


def raise_unless_killed(ring: ProcessRing) -> None:
    """Until all have gone: one was killed, and the others have ended well."""

    def gone() -> bool:
        for number, code in ring.reap().items():
            assert code == (-signal.SIGKILL if number == HEARS else 0), ring.log_of(number)[-600:]
        return not ring.children

    wait_until(gone, "all have gone")
