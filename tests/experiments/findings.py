"""The pieces of the quick report, computed once for all test processes."""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from pathlib import Path

import pytest

from roundelay.paper.pieces import QUICK, Measured, Piece, code_fingerprint, run_pieces, write_measured
from roundelay.paper.reproduction import all_pieces


def shared_folder(factory: pytest.TempPathFactory, worker: str) -> Path:
    """A folder that all test processes of one session have in common."""
    base = factory.getbasetemp()
    return base if worker == "master" else base.parent


def quick_findings(factory: pytest.TempPathFactory, worker: str) -> Mapping[str, Measured]:
    """Every test process that comes takes the pieces that no other is at, then waits for the others.

    They are computed here and not in processes of their own, which would have to compile anew what this one has.
    """
    folder = shared_folder(factory, worker) / "findings"
    kept = folder / f"{QUICK.name}-{code_fingerprint()}"
    kept.mkdir(parents=True, exist_ok=True)
    for wait in (fcntl.LOCK_NB, 0):
        for piece in all_pieces():
            compute(piece, kept, wait)
    return run_pieces(all_pieces(), QUICK, folder)


def compute(piece: Piece, kept: Path, wait: int) -> None:
    """The piece, unless it is there, or another process is at it and need not be waited for."""
    file = piece.file(kept)
    with file.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | wait)
        except BlockingIOError:
            return
        if not file.exists():
            write_measured(piece.work(QUICK, *piece.arguments), file)
