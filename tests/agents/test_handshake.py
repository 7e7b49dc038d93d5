"""Who may speak at all: the handshake of a link lets nobody in but the neighbour itself."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import roundelay as rl
from roundelay.agents.agreement.identity import Identity
from roundelay.agents.agreement.plan import Member, RingPlan, Stopping, Task
from roundelay.agents.links.grpc_transport import GrpcTransport
from roundelay.agents.protocol.wire import Kind, pack_frame
from tests.agents.apart import apart
from tests.agents.conftest import expired, site
from tests.agents.likeness import check_same, simulated
from tests.agents.processes import RUN, free_ports, make_ring, own_functions

NAMES = ("site0", "site1", "site2", "site3")
LARGEST = 1000


@dataclass
class Heard:
    """What came in over the links of one member."""

    frames: list[tuple[int, bytes]] = field(default_factory=list)
    up: list[int] = field(default_factory=list)

    async def deliver(self, peer: int, data: bytes) -> None:
        self.frames.append((peer, data))

    async def connected(self, peer: int, up: bool) -> None:
        if up:
            self.up.append(peer)


def plan_of(identities: list[Identity]) -> RingPlan:
    """A ring of four: 0 and 2 are neighbours of 3, and 1 is not."""
    ports = free_ports(4)
    members = tuple(
        Member(one.name, one.certificate, f"127.0.0.1:{port}") for one, port in zip(identities, ports, strict=True)
    )
    links = ((0, 1), (1, 2), (2, 3), (0, 3))
    return RingPlan(RUN, 0, members, (0, 1, 2, 3), links, rl.IADMM(), Task("custom", dim=2), Stopping())


def with_member(plan: RingPlan, number: int, **changes: str) -> RingPlan:
    members = list(plan.members)
    members[number] = replace(members[number], **changes)
    return replace(plan, members=tuple(members))


async def meet(
    plan: RingPlan, server: Identity, dialler_plan: RingPlan, dialler: tuple[int, Identity], wanted: int
) -> tuple[Heard, str]:
    """Member 3 listens, another dials and tries to send; what 3 heard, and what trouble the other has with `wanted`."""
    heard, own = Heard(), Heard()
    listening = GrpcTransport(plan, 3, server, LARGEST)
    dialling = GrpcTransport(dialler_plan, dialler[0], dialler[1], LARGEST)
    frame = pack_frame(Kind.HELLO, plan.run_bytes, 0, 0)
    await listening.start(heard.deliver, heard.connected)
    await dialling.start(own.deliver, own.connected)
    trouble = ""
    for turn in range(2000):
        await dialling.send(wanted, frame)
        await asyncio.sleep(0.05)
        trouble = dialling.trouble(wanted) or trouble
        if heard.frames or (trouble and turn > 20):
            break
    await dialling.stop()
    await listening.stop()
    return heard, trouble


def identities() -> list[Identity]:
    return [site(name) for name in NAMES]


def test_a_neighbour_is_heard(tmp_path: Path) -> None:
    plan = plan_of(identities())
    heard, trouble = apart(tmp_path, lambda: meet(plan, site("site3"), plan, (0, site("site0")), 3))
    assert heard.frames and heard.frames[0][0] == 0
    assert heard.up[0] == 0
    assert not trouble


def test_a_stranger_is_not_heard(tmp_path: Path) -> None:
    """It knows all about the ring but has no member's key."""
    plan, stranger = plan_of(identities()), site("site0", turn=1)
    believed = with_member(plan, 0, certificate=stranger.certificate)
    heard, trouble = apart(tmp_path, lambda: meet(plan, site("site3"), believed, (0, stranger), 3))
    assert not heard.frames and not heard.up
    assert "site3" in trouble


def test_a_member_that_is_no_neighbour_is_not_heard(tmp_path: Path) -> None:
    """Its certificate is in the ring file, but not among those whom member 3 has a link with."""
    plan = plan_of(identities())
    believed = replace(plan, order=(0, 2, 1, 3), links=((0, 2), (1, 2), (1, 3), (0, 3)))
    heard, trouble = apart(tmp_path, lambda: meet(plan, site("site3"), believed, (1, site("site1")), 3))
    assert not heard.frames and not heard.up
    assert "site3" in trouble


def test_a_member_at_the_address_of_another_is_found_out(tmp_path: Path) -> None:
    """Member 3 answers where member 1 should be."""
    plan = plan_of(identities())
    believed = with_member(plan, 1, address=plan.members[3].address)
    believed = with_member(believed, 3, address=plan.members[1].address)
    heard, trouble = apart(tmp_path, lambda: meet(plan, site("site3"), believed, (0, site("site0")), 1))
    assert not heard.frames and not heard.up
    assert "is not site1" in trouble and plan.members[3].address in trouble


def test_a_frame_longer_than_any_that_can_be_right_is_not_read(tmp_path: Path) -> None:
    """Even from a neighbour; the link breaks, is opened anew, and what is short enough arrives."""
    plan = plan_of(identities())
    long, short = bytes(5_000_000), pack_frame(Kind.HELLO, plan.run_bytes, 0, 0)

    async def meet_twice() -> Heard:
        heard, own = Heard(), Heard()
        listening = GrpcTransport(plan, 3, site("site3"), LARGEST)
        dialling = GrpcTransport(plan, 0, site("site0"), 2 * len(long))
        await listening.start(heard.deliver, heard.connected)
        await dialling.start(own.deliver, own.connected)
        for data in (long, short):
            links = len(heard.up)
            for _ in range(2000):
                await dialling.send(3, data)
                await asyncio.sleep(0.05)
                if heard.frames or (data is long and len(heard.up) > max(links, 1)):
                    break
        await dialling.stop()
        await listening.stop()
        return heard

    heard = apart(tmp_path, meet_twice)
    assert heard.frames and {data for _, data in heard.frames} == {short}
    assert len(heard.up) > 1


@pytest.mark.parametrize("whose", [0, 3])
def test_an_expired_certificate_is_named(whose: int, tmp_path: Path) -> None:
    those = identities()
    those[whose] = expired(NAMES[whose])
    plan = plan_of(those)
    heard, trouble = apart(tmp_path, lambda: meet(plan, those[3], plan, (0, those[0]), 3))
    assert not heard.frames
    assert ("This site" if whose == 0 else "site3") in trouble and "expired on" in trouble and "rekey" in trouble


def test_either_end_may_dial(tmp_path: Path) -> None:
    """Members behind a firewall have no address; they dial all their neighbours."""
    problem = rl.paper_least_squares(agents=4, samples=6, dim=2, seed=1)
    ports = free_ports(2)
    addresses = ["", f"127.0.0.1:{ports[0]}", "", f"127.0.0.1:{ports[1]}"]
    ring = make_ring(tmp_path, own_functions(problem), rl.IADMM(), Stopping(None, 40), addresses=addresses, seed=1)
    ring.run()
    check_same(ring, simulated(rl.IADMM(), problem, rl.ring(4), 40, 1))
