"""Three sites with a few rows each, set up as for a rehearsal: real processes, of which a test starts those that it wants."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.site.rehearsal import Rehearsal, fit_by_all_others, prepare_ring

NAMES = ("Oslo", "Bergen", "Tromso")
HEADER = ("age [years]", "dose", "outcome")


@contextmanager
def small_ring(folder: Path) -> Iterator[Rehearsal]:
    """The ring, whose processes are gone afterwards."""
    rng = np.random.default_rng(5)
    rows = {name: [[repr(float(cell)) for cell in row] for row in rng.normal(size=(20, 3))] for name in NAMES}
    task = fit_by_all_others(HEADER, "outcome", "least_squares")
    ring = prepare_ring(folder, HEADER, rows, task, rl.SealedLaps(wide=True), Stopping(1e-9))
    try:
        yield ring
    finally:
        ring.stop()


def roundelay(*words: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "roundelay.cli", *words],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
