"""Death by kill −9 at a named point, noted on disk just before, so that every one of them is counted."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

from roundelay.agents.protocol.station import Point

KILLS = "kills"
AFTERWARDS = (Point.BEFORE_SYNC, Point.AFTER_SYNC, Point.BEFORE_SEND, Point.AFTER_SEND)


class Killer:
    """Kills its own process when it reaches a point for the given time."""

    def __init__(self, folder: Path, kill_at: tuple[Point, int] | None) -> None:
        self.folder, self.kill_at = folder, kill_at
        self.left = 0 if kill_at is None else kill_at[1]
        self._since: set[Point] = set()

    def __call__(self, point: Point) -> None:
        if point is Point.AFTER_RECEIVE:
            self._since.clear()
        if self.kill_at is not None and point is self.kill_at[0]:
            self.left -= 1
            if self.left == 0:
                self._die(point)
        self._since.add(point)

    def _die(self, point: Point) -> None:
        # Long work is journalled and acknowledged before it is done, so that the points come in another order.
        early = Point.AFTER_ACK in self._since if point in AFTERWARDS else Point.BEFORE_SEND not in self._since
        note = os.open(self.folder / KILLS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(note, f"{point.name} {int(early and point is not Point.AFTER_RECEIVE)}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def kills_in(folder: Path) -> tuple[Counter[Point], Counter[Point]]:
    """How many died at each point, and how many of them while the work was acknowledged but not done."""
    path = folder / KILLS
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    every = Counter(Point[name] for name, _ in lines)
    return every, Counter(Point[name] for name, early in lines if early == "1")
