"""Rings over bad links, short for the tests and long for a soak: what was done to the links, after all came out right."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

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


class Tried(NamedTuple):
    """A ring that is tried: made in a folder with a length, a seed and what `make_ring` takes besides; and checked afterwards."""

    make: Callable[..., ProcessRing]
    check: Callable[[ProcessRing, Length, int], None]


def token_ring(folder: Path, length: Length, seed: int, **more: Any) -> ProcessRing:
    functions = own_functions(_problem(length, seed))
    return make_ring(folder, functions, ALGORITHM, Stopping(None, length.hops), seed=seed, **more)


def check_token_ring(ring: ProcessRing, length: Length, seed: int) -> None:
    check_same(ring, simulated(ALGORITHM, _problem(length, seed), rl.ring(length.agents), length.hops, seed))
    check_every_hand_over_once(ring)


TOKEN = Tried(token_ring, check_token_ring)


def over_bad_bytes(
    folder: Path, length: Length, seed: int, mischief: Mischief = ANY, tried: Tried = TOKEN
) -> Counter[str]:
    """Under TLS a byte that was changed breaks the link; the agents dial again, and send again."""
    ports = free_ports(2 * length.agents)
    addresses = [f"127.0.0.1:{port}" for port in ports[: length.agents]]
    listen = {number: f"127.0.0.1:{port}" for number, port in enumerate(ports[length.agents :])}
    ring = tried.make(folder, length, seed, addresses=addresses, listen=listen)
    routes = dict(zip(ports[: length.agents], ports[length.agents :], strict=True))
    mischief = replace(mischief, pieces=min(mischief.pieces, length.pieces_harmed))
    proxies = start_proxies(folder, routes, mischief, seed)
    try:
        run_to_the_end(ring, length.seconds)
    finally:
        done = stop_proxies(folder, proxies)
    tried.check(ring, length, seed)
    return done


def over_bad_frames(folder: Path, length: Length, seed: int, tried: Tried = TOKEN) -> Counter[str]:
    """Frames are lost, repeated, late, in another order, and damaged."""
    ring = tried.make(folder, length, seed, wrap=bad_frames(folder, length.frames_harmed, seed))
    run_to_the_end(ring, length.seconds)
    tried.check(ring, length, seed)
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
