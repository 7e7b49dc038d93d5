"""Members of a ring of real processes come, go, die and change their keys while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.epochs import plan_renewed, plan_with, plan_without
from roundelay.agents.agreement.folder import accept_ring
from roundelay.agents.agreement.identity import load_identity, make_identity, renew_identity, save_identity
from roundelay.agents.agreement.invitations import read_invitation, write_invitation
from roundelay.agents.agreement.plan import RingPlan, Stopping
from roundelay.agents.agreement.policy import ANYTHING, write_policy
from roundelay.agents.agreement.ringfile import read_ring, write_ring
from roundelay.agents.data.models import load_model
from tests.agents.processes import ProcessRing, free_ports, make_ring, wait_until
from tests.agents.world import least_squares

DIM = 3
STARTS = (rl.SealedStart(), rl.ZeroSumStart())


class Consortium:
    """A ring whose members change."""

    def __init__(self, folder: Path, sites: int, algorithm: object, tolerance: float = 1e-10) -> None:
        self.functions = {f"site{number}": least_squares(number, DIM) for number in range(sites)}
        functions = list(self.functions.values())
        self.ring = make_ring(folder, functions, algorithm, Stopping(tolerance), seed=None)
        self.text = (folder / "ring.toml").read_bytes()
        self.rings = dict.fromkeys(self.functions, self.ring)

    @property
    def plan(self) -> RingPlan:
        return read_ring(self.text, "the ring file").plan

    def start(self, name: str) -> None:
        """Start a site's process, with the newest plan that it has accepted."""
        plan = self.plan
        functions = [self.functions[member.name] for member in plan.members]
        ring = ProcessRing(self.ring.folder, plan, functions, seed=None)
        ring.start(plan.number_of(name))
        self.rings[name] = ring

    def start_all(self) -> None:
        for name in self.functions:
            self.start(name)

    def wait_until_busy(self) -> None:
        """Until all members of the newest epoch take part."""
        plan = self.plan
        ProcessRing(self.ring.folder, plan, [self.functions[member.name] for member in plan.members]).wait_until_busy()

    def wait_until_up(self, name: str) -> None:
        ring = self.rings[name]
        number = ring.plan.number_of(name)
        wait_until(lambda: "epoch" in ring.log_of(number), f"{name} runs")

    def kill(self, name: str) -> None:
        ring = self.rings[name]
        ring.kill(next(iter(ring.children)))
        ring.stop()

    def decide(self, plan: RingPlan, signer: str, despite_difference: bool = False) -> None:
        """One member signs the next epoch, and the operators accept it, one after another."""
        self.text = write_ring(plan, load_identity(self.ring.folder / signer))
        for member in plan.members:
            accept_ring(self.ring.folder / member.name, self.text, despite_difference)
            time.sleep(0.05)

    @property
    def digest(self) -> str:
        return read_ring(self.text, "the ring file").digest

    def wait(self) -> None:
        for ring in self.rings.values():
            ring.wait()

    def stop(self) -> None:
        for ring in self.rings.values():
            ring.stop()

    def check_minimiser(self) -> None:
        """Every member has the minimiser of those who are there, to 1e-8."""
        functions = [self.functions[member.name] for member in self.plan.members]
        pooled = rl.LeastSquares([f.features[0] for f in functions], [f.targets[0] for f in functions])
        for member in self.plan.members:
            stored = load_model(self.ring.folder / member.name / "model.json")
            assert stored.about.epoch == self.plan.epoch
            found = np.array([value for _, value in stored.model.coefficients])
            assert np.allclose(found, pooled.optimum, rtol=0.0, atol=1e-8), member.name


def slowly(algorithm: Callable[..., object], start: object) -> object:
    """So large a ρ that there is time for changes."""
    return algorithm(rho=150.0, start=start)


@pytest.mark.parametrize("start", STARTS, ids=["sealed", "zero-sum"])
def test_a_member_dies_and_is_dropped_and_another_joins(start: object, tmp_path: Path) -> None:
    ring = Consortium(tmp_path, 5, slowly(rl.PIADMM1, start))
    try:
        ring.start_all()
        ring.wait_until_busy()
        ring.kill("site2")
        ring.decide(plan_without(ring.plan, ["site2"], previous=ring.digest), "site0", despite_difference=True)
        ring.wait_until_busy()
        name = "newcomer"
        save_identity(tmp_path / name, make_identity(name))
        write_policy(tmp_path / name, ANYTHING)
        address = f"127.0.0.1:{free_ports(1)[0]}"
        invitation = read_invitation(write_invitation(load_identity(tmp_path / name), address), name)
        ring.functions[name] = least_squares(77, DIM)
        everybody = [
            (one.name, other.name) for one in ring.plan.members for other in ring.plan.members if one.name < other.name
        ]
        links = [*everybody, *((one.name, name) for one in ring.plan.members)]
        ring.decide(plan_with(ring.plan, [invitation], links, previous=ring.digest), "site3", despite_difference=True)
        ring.start(name)
        ring.wait()
        ring.check_minimiser()
    finally:
        ring.stop()


def test_two_die_before_the_first_visit(tmp_path: Path) -> None:
    ring = Consortium(tmp_path, 5, slowly(rl.IADMM, rl.SealedStart()))
    try:
        for name in ("site1", "site2", "site4"):
            ring.start(name)
        for name in ("site1", "site2", "site4"):  # nothing can have begun: the first member never came
            ring.wait_until_up(name)
        links = [("site1", "site2"), ("site2", "site4"), ("site1", "site4")]
        ring.decide(plan_without(ring.plan, ["site0", "site3"], links, previous=ring.digest), "site1")
        ring.wait()
        ring.check_minimiser()
    finally:
        ring.stop()


def test_a_key_is_renewed_while_all_run_and_the_old_one_is_not_let_in(tmp_path: Path) -> None:
    ring = Consortium(tmp_path, 4, slowly(rl.PIADMM1, rl.SealedStart()))
    try:
        ring.start_all()
        ring.wait_until_busy()
        before, folder = ring.plan.members[1], tmp_path / "site1"
        renew_identity(folder, make_identity("site1"))
        ring.wait_until_busy()  # the ring goes on with the old keys
        invitation = read_invitation(write_invitation(load_identity(folder), before.address), "site1")
        ring.decide(plan_renewed(ring.plan, invitation, previous=ring.digest), "site2")
        member = ring.plan.members[ring.plan.number_of("site1")]
        assert before.certificate != member.certificate == load_identity(folder).certificate
        ring.wait()
        ring.check_minimiser()
    finally:
        ring.stop()
