"""Rings over bad links, short for the tests and long for a soak: what was done to the links, after all came out right."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from tests.agents.bad_frames import bad_frames, harm_in
from tests.agents.likeness import check_every_hand_over_once, check_same, simulated
from tests.agents.processes import PATIENCE, ProcessRing, free_ports, make_ring, own_functions
from tests.agents.proxies import Mischief, start_proxies, stop_proxies


@dataclass(frozen=True)
class Length:
    """How many sites and hops; how many pieces of a stream may be harmed, and what share of frames; when it hangs."""

    agents: int
    hops: int
    pieces_harmed: int
    frames_harmed: float
    seconds: float


SHORT = Length(agents=4, hops=100, pieces_harmed=120, frames_harmed=0.25, seconds=PATIENCE)
LONG = Length(agents=8, hops=1500, pieces_harmed=3000, frames_harmed=0.25, seconds=1500.0)
ALGORITHM = rl.PIADMM1(start=rl.SealedStart())
ANY = Mischief()


def over_bad_bytes(folder: Path, length: Length, seed: int, mischief: Mischief = ANY) -> Counter[str]:
    """Under TLS a byte that was changed breaks the link; the agents dial again, and send again."""
    problem = _problem(length, seed)
    ports = free_ports(2 * length.agents)
    addresses = [f"127.0.0.1:{port}" for port in ports[: length.agents]]
    listen = {number: f"127.0.0.1:{port}" for number, port in enumerate(ports[length.agents :])}
    ring = make_ring(
        folder, own_functions(problem), ALGORITHM, Stopping(None, length.hops), addresses=addresses, seed=seed, listen=listen
    )  # fmt: skip
    routes = dict(zip(ports[: length.agents], ports[length.agents :], strict=True))
    mischief = replace(mischief, pieces=min(mischief.pieces, length.pieces_harmed))
    proxies = start_proxies(folder, routes, mischief, seed)
    try:
        run_to_the_end(ring, length.seconds)
    finally:
        done = stop_proxies(folder, proxies)
    _check(ring, length, seed)
    return done


def over_bad_frames(folder: Path, length: Length, seed: int) -> Counter[str]:
    """Frames are lost, repeated, late, in another order, and damaged."""
    wrap = bad_frames(folder, length.frames_harmed, seed)
    ring = make_ring(
        folder, own_functions(_problem(length, seed)), ALGORITHM, Stopping(None, length.hops), seed=seed, wrap=wrap
    )  # fmt: skip
    run_to_the_end(ring, length.seconds)
    _check(ring, length, seed)
    return harm_in(folder)


def run_to_the_end(ring: ProcessRing, seconds: float) -> None:
    """Until all have ended. Who has is started again, as its operator would: the last word may have got lost."""
    deadline = again = time.monotonic()
    deadline += seconds
    ended: set[int] = set()
    try:
        for number in range(ring.plan.agents):
            ring.start(number)
        while len(ended) < ring.plan.agents:
            for number, code in ring.reap().items():
                assert code == 0, f"site {number} ended with {code}: {ring.log_of(number)[-2000:]}"
                ended.add(number)
                again = time.monotonic() + 3.0
            if time.monotonic() > again:
                again += 3.0
                for number in ended - set(ring.children):
                    ring.start(number)
            assert time.monotonic() < deadline, [ring.log_of(number)[-800:] for number in ring.children]
            time.sleep(0.01)
    finally:
        ring.stop()


def _problem(length: Length, seed: int) -> rl.LeastSquares:
    return rl.paper_least_squares(agents=length.agents, samples=6, dim=3, seed=seed)


def _check(ring: ProcessRing, length: Length, seed: int) -> None:
    check_same(ring, simulated(ALGORITHM, _problem(length, seed), rl.ring(length.agents), length.hops, seed))
    check_every_hand_over_once(ring)
