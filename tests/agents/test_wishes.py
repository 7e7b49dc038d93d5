"""What an operator may want of a running agent: a pause, an early end, an earlier model, a limit to what leaks."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import numpy as np

import roundelay as rl
from roundelay.agents.agreement.disk import write_whole
from roundelay.agents.agreement.folder import accept_ring
from roundelay.agents.agreement.identity import load_identity
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.agreement.ringfile import write_ring
from roundelay.agents.data.models import load_model
from roundelay.agents.links.agent_loop import Agent
from roundelay.agents.site import metering
from roundelay.agents.site.taking_part import PAUSED, STOPPING, PrivacyLimit, Site, SiteOptions, ask, read_privacy
from tests.agents.processes import PATIENCE, ProcessRing, make_ring, own_functions, wait_until

SITES = 3
USUAL = Stopping(1e-9)
PROBLEM = rl.paper_least_squares(agents=SITES, samples=8, dim=2, seed=5)


def new_ring(folder: Path, rho: float, stopping: Stopping = USUAL, **more: object) -> ProcessRing:
    algorithm = rl.PIADMM1(rho=rho, start=rl.SealedStart())
    return make_ring(folder, own_functions(PROBLEM), algorithm, stopping, seed=None, **more)  # type: ignore[arg-type]


def estimate(ring: ProcessRing, number: int) -> np.ndarray:
    stored = load_model(ring.site_folder(number) / "model.json")
    return np.array([value for _, value in stored.model.coefficients])


def test_a_pause_holds_the_ring_and_loses_nothing(tmp_path: Path) -> None:
    waits = tmp_path / "waits"

    def tell(site: Site, number: int) -> None:
        resumed = Agent._resumed

        async def telling(self: Agent) -> bool:
            if self.paused:
                waits.touch()
            return await resumed(self)

        Agent._resumed = telling  # type: ignore[method-assign]

    ring = new_ring(tmp_path, rho=60.0, wrap=tell)
    try:
        for number in range(SITES):
            ring.start(number)
        ring.wait_until_busy()
        ask(ring.site_folder(1), ring.plan.run, PAUSED)
        wait_until(waits.exists, "the token waits at site 1")
        ring.kill(1)
        ended: dict[int, int] = {}
        wait_until(lambda: bool(ended.update(ring.reap()) or ended), "site 1 is dead")
        assert ended == {1: -signal.SIGKILL}
        waits.unlink()
        ring.start(1)
        wait_until(waits.exists, "the token waits at site 1 again")
        assert not ring.reap()
        ask(ring.site_folder(1), ring.plan.run, PAUSED, wanted=False)
        ring.wait()
    finally:
        ring.stop()
    assert np.allclose(estimate(ring, 0), PROBLEM.optimum, rtol=0.0, atol=1e-7)


def test_a_ring_that_is_asked_to_stop_ends_with_the_model_so_far(tmp_path: Path) -> None:
    ring = new_ring(tmp_path, rho=1e5)
    try:
        for number in range(SITES):
            ring.start(number)
        ring.wait_until_busy()
        ask(ring.site_folder(2), ring.plan.run, STOPPING)
        ring.wait()
    finally:
        ring.stop()
    found = [estimate(ring, number) for number in range(SITES)]
    assert all(np.array_equal(one, found[0]) for one in found)
    assert "The operator of site2 asked the ring to stop" in load_model(tmp_path / "site0" / "model.json").about.reason


def test_a_warm_start_needs_fewer_hops(tmp_path: Path) -> None:
    ring = new_ring(tmp_path / "first", rho=60.0)
    ring.run()
    cold = load_model(ring.site_folder(0) / "model.json").about.hops
    warm = new_ring(tmp_path / "second", rho=60.0)
    plan = replace(warm.plan, warm=True)
    text = write_ring(plan, load_identity(warm.site_folder(0)))
    write_whole(tmp_path / "second" / "ring.toml", text)
    for number in range(SITES):
        for path in (warm.site_folder(number) / "accepted").iterdir():
            path.unlink()
        accept_ring(warm.site_folder(number), text)
    again = ProcessRing(
        warm.folder, plan, warm.functions, seed=None,
        options=SiteOptions(meter=False, warm=ring.site_folder(0) / "model.json"),
    )  # fmt: skip
    again.run()
    assert load_model(again.site_folder(0) / "model.json").about.hops < cold / 2
    assert np.allclose(estimate(again, 0), PROBLEM.optimum, rtol=0.0, atol=1e-7)


def test_a_limit_that_the_plan_will_pass_stops_the_agent_before_it_sends_anything(tmp_path: Path) -> None:
    """The curvature leaks with a sealed start, and where two neighbours are all the others everything."""
    limit = PrivacyLimit(0.5, "stop")
    ring = new_ring(tmp_path, rho=30.0, stopping=Stopping(None, 4000), options=SiteOptions(meter=True, privacy=limit))
    try:
        for number in range(SITES):
            ring.start(number)
        ended: dict[int, int] = {}
        wait_until(lambda: bool(ended.update(ring.reap()) or not ring.children), "all agents stop")
    finally:
        ring.stop()
    assert set(ended.values()) == {1}
    for number in range(SITES):
        assert "more than the limit of 0.5 allows, so the agent stops before anything has left" in ring.log_of(number)
        assert not ring.visits(number)


def test_with_noise_from_the_first_visit_a_ring_stays_within_its_limit(tmp_path: Path) -> None:
    problem = rl.paper_least_squares(agents=5, samples=8, dim=2, seed=5)
    algorithm = rl.PIADMM1(rho=30.0, start=rl.SealedStart())
    options = SiteOptions(meter=True, privacy=PrivacyLimit(0.01, "noise"))
    ring = make_ring(
        tmp_path, own_functions(problem), algorithm, Stopping(None, 4000), seed=None, options=options, wrap=patient
    )
    ring.run()
    for number in range(5):
        assert "noise added {'visits': 0}" in ring.log_of(number)
        read = read_privacy(ring.site_folder(number), ring.plan.run)
        assert read is not None and read.visits == 800 and not read.unmeasured
        assert min(leak.error for leak in read.leaks) > 0.01
    assert np.allclose(estimate(ring, 0), problem.optimum, rtol=0.0, atol=1e-5)


def patient(site: Site, number: int) -> None:
    """On a loaded machine the meter may take long."""
    metering.LAST_LOOK = PATIENCE
