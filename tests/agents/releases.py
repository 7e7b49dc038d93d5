"""Rings in the middle of a run as a release has left them on disk, for whatever comes later to go on with.

    python -m tests.agents.releases        keeps those of this release, whose formats no kept ones have yet

Two rings of three sites each were killed, every agent by −9: one with a token, one of sealed laps over rows. What is kept of them are the
sites' folders as they lay there: keys, policy, ledger, the ring file that was accepted, the journal with what it had to send.
"""

from __future__ import annotations

import re
import tarfile
import tempfile
from pathlib import Path

import numpy as np

import roundelay as rl
from roundelay.agents.agreement.plan import Column, Stopping, Task
from roundelay.agents.agreement.ringfile import read_ring
from roundelay.agents.data.fitting import RowsFit
from roundelay.agents.data.reading import OwnRows
from roundelay.agents.links.ways import Ways
from roundelay.agents.protocol import journal, wire
from roundelay.agents.protocol.station import Point
from roundelay.agents.site.taking_part import Site
from tests.agents.processes import ProcessRing, free_ports, make_ring, wait_until
from tests.agents.world import least_squares

KEPT = Path(__file__).parent / "kept"
SITES, A_LIFETIME = 3, 36_000
TASK = Task("logistic", (Column("age", "years"), Column("length", "cm")), Column("outcome"))
TOKEN, LAPS = "token", "sealed laps"
# By name: the algorithm, when it stops, and at which of its batons one site dies; then nothing moves, and all are killed.
RINGS = {
    TOKEN: (rl.PIADMM1(rho=3.0, start=rl.SealedStart()), Stopping(1e-9), 25),
    LAPS: (rl.SealedLaps(rl.LBFGS()), Stopping(1e-9), 14),
}


def formats() -> str:
    """What the folders of a run depend on, as this release has it."""
    return f"journal {journal.FORMAT}, wire {wire.VERSION}"


def kept() -> dict[str, Path]:
    """The folders that are kept, by what they were written in."""
    return {path.name.removesuffix(".tar.xz").replace("-", " ").replace("_", ", "): path for path in KEPT.glob("*.xz")}


def rows_of(number: int) -> OwnRows:
    """What a site has measured."""
    rng = np.random.default_rng(number)
    features = rng.normal(size=(60, 2)) * [12.0, 9.0] + [50.0, 170.0]
    chance = 1.0 / (1.0 + np.exp(-(features - [50.0, 170.0]) @ [0.08, -0.1]))
    return OwnRows(features, np.where(rng.random(60) < chance, 1.0, -1.0))


def functions_of(name: str) -> list[rl.LeastSquares | RowsFit]:
    """What the sites of a ring bring, the same whenever they are asked."""
    if name == LAPS:
        return [RowsFit(TASK, rows_of(number)) for number in range(SITES)]
    return [least_squares(number + 1, 3) for number in range(SITES)]


def at_home(ring: ProcessRing) -> ProcessRing:
    """The sites' addresses are names; here they are ports of this machine, which are others each time."""
    ports = free_ports(SITES)
    ring.listen = {number: f"127.0.0.1:{port}" for number, port in enumerate(ports)}

    def wrap(site: Site, number: int) -> None:
        async def to(self: Ways, peer: int) -> str:
            return f"127.0.0.1:{ports[peer]}"

        Ways.to = to  # type: ignore[method-assign]

    ring.wrap = wrap
    return ring


def unpacked(path: Path, folder: Path) -> dict[str, ProcessRing]:
    """The rings of a release, ready to go on."""
    with tarfile.open(path) as content:
        content.extractall(folder, filter="data")
    return {
        name: at_home(
            ProcessRing(
                folder / name,
                read_ring((folder / name / "ring.toml").read_bytes(), "ring.toml").plan,
                functions_of(name),
                seed=None,
            )
        )
        for name in RINGS
    }


def leave(folder: Path, name: str) -> None:
    """Begin a ring, and kill it in the middle."""
    algorithm, stopping, turns = RINGS[name]
    addresses = [f"site{number}.example.org:7443" for number in range(SITES)]
    task = TASK if name == LAPS else None
    ring = make_ring(
        folder / name, functions_of(name), algorithm, stopping, addresses=addresses, task=task, days=A_LIFETIME, seed=None
    )  # fmt: skip
    at_home(ring)
    try:
        for number in range(SITES):
            ring.start(number, kill_at=(Point.BEFORE_SYNC, turns) if number == 1 else None)
        wait_until(lambda: 1 in ring.reap(), "a site dies in the middle of the run")
    finally:
        ring.stop()
    for rest in folder.rglob("*.log"):
        rest.unlink()


def keep() -> Path:
    """Leave both rings, and pack what is on disk."""
    path = KEPT / (re.sub(r"[ ]", "-", formats().replace(", ", "_")) + ".tar.xz")
    KEPT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        for name in RINGS:
            leave(Path(place), name)
        with tarfile.open(path, "w:xz") as content:
            for name in RINGS:
                content.add(Path(place) / name, name)
    return path


if __name__ == "__main__":
    if formats() in kept():
        print(f"Folders of {formats()} are kept already: what was written by a release is not written anew.")
    else:
        print(keep())
