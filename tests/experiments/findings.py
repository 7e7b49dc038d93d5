"""The pieces of the quick report, computed once for all test processes."""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from pathlib import Path

import pytest

from roundelay.experiments.reproduce.catalogue import all_pieces
from roundelay.experiments.reproduce.effort import QUICK
from roundelay.experiments.reproduce.measured import Measured
from roundelay.experiments.reproduce.pieces import run_pieces


def shared_folder(factory: pytest.TempPathFactory, worker: str) -> Path:
    """A folder that all test processes of one session have in common."""
    base = factory.getbasetemp()
    return base if worker == "master" else base.parent


def quick_findings(factory: pytest.TempPathFactory, worker: str) -> Mapping[str, Measured]:
    """Whoever comes first computes; the others wait and read."""
    folder = shared_folder(factory, worker)
    with (folder / "findings.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return run_pieces(all_pieces(), QUICK, folder / "findings")
