"""What an operator may want of a running agent: a pause, an early end, an earlier model, a limit to what leaks."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.disk import write_whole
from roundelay.agents.agreement.folder import accept_ring
from roundelay.agents.agreement.identity import load_identity
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.agreement.ringfile import write_ring
from roundelay.agents.data.models import load_model
from roundelay.agents.links.agent_loop import Agent
from roundelay.agents.site.taking_part import PAUSED, STOPPING, PrivacyLimit, Site, SiteOptions, ask, read_privacy
from tests.agents.processes import ProcessRing, make_ring, own_functions, wait_until

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


@pytest.mark.parametrize("action", ["stop", "noise"])
def test_past_its_limit_an_agent_stops_or_adds_noise(action: str, tmp_path: Path) -> None:
    """The curvature leaks with a sealed start: the meter sees it."""
    limit = PrivacyLimit(0.5, action)  # type: ignore[arg-type]
    ring = new_ring(tmp_path, rho=30.0, stopping=Stopping(None, 4000), options=SiteOptions(meter=True, privacy=limit))
    try:
        for number in range(SITES):
            ring.start(number)
        ended: dict[int, int] = {}

        def is_over() -> bool:
            ended.update(ring.reap())
            return not ring.children or (action == "stop" and 1 in ended.values())

        wait_until(is_over, "an agent stops, or all end")
    finally:
        ring.stop()
    if action == "stop":
        assert 1 in ended.values()
        assert any("more than the limit of 0.5 allows" in ring.log_of(number) for number in range(SITES))
    else:
        assert set(ended.values()) == {0}
        assert any("noise added" in ring.log_of(number) for number in range(SITES))
        assert np.allclose(estimate(ring, 0), PROBLEM.optimum, rtol=0.0, atol=1e-5)
    read = [read_privacy(ring.site_folder(number), ring.plan.run) for number in range(SITES)]
    assert any(privacy is not None and privacy.visits >= 3 for privacy in read)
