"""A damaged journal: the right state or a sentence, never a wrong state."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from roundelay.agents.protocol.journal import Journal, JournalError, Passage, Record, Standing
from tests.agents.world import RUN

TIMES = 6
Known = tuple[int, int, int, int, int, bytes, bytes, bytes]


def standing_at(turn: int, dim: int) -> Standing:
    rng = np.random.default_rng(turn)
    state = Record(turn.to_bytes(8, "little"), tuple(rng.normal(size=dim) for _ in range(3)))
    outgoing, earlier = rng.bytes(40 + 8 * dim), rng.bytes(turn % 2 * 48)
    return Standing(0, 3 * turn, 77 * turn, turn % 3, 3 * turn + 1, outgoing, earlier, state)


def as_known(standing: Standing) -> Known:
    assert standing.state is not None
    return (
        standing.epoch, standing.k, standing.taken, standing.receiver, standing.sent_k, bytes(standing.outgoing),
        bytes(standing.earlier), b"".join(standing.state.pieces()),
    )  # fmt: skip


def write(folder: Path, dim: int) -> Journal:
    journal = Journal(folder, RUN, "site0")
    for turn in range(1, TIMES + 1):
        made = standing_at(turn, dim)
        visit = Passage(0, made.k, made.sent_k, 2, 2, turn, 1, 2, made.taken, b"r" * 8 * min(dim, 50), b"s" * 16)
        journal.keep_inbox(0, made.k, 1, random.Random(turn).randbytes(8 * dim))
        journal.settle(made, [visit])
    return journal


def read(folder: Path) -> Known | None:
    """The state that an agent would go on from; None where it says that it can't."""
    try:
        journal = Journal(folder, RUN, "site0")
        try:
            standing = journal.standing()
            journal.inbox()
        finally:
            journal.close()
    except JournalError as error:
        assert str(error).endswith(".")
        return None
    return None if standing is None else as_known(standing)


def harmed(data: bytes, rng: random.Random) -> bytes:
    """A bit, a byte, a block of zeros, or the end of a file."""
    place = rng.randrange(len(data))
    how = rng.randrange(4)
    if how == 0:
        return data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
    if how == 1:
        return data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]
    if how == 2:
        block = place // 512 * 512
        return data[:block] + bytes(len(data[block : block + 512])) + data[block + 512 :]
    return data[:place]


@pytest.mark.parametrize("dim", [2, 12_000])
def test_a_closed_journal_is_read_right_or_not_at_all(dim: int, tmp_path: Path) -> None:
    write(tmp_path / "whole", dim).close()
    last = as_known(standing_at(TIMES, dim))
    assert read(shutil.copytree(tmp_path / "whole", tmp_path / "copy")) == last
    files = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert (len(files) > 1) == (dim > 1000)  # long states stand beside the database
    rng, outcomes = random.Random(dim), []
    for turn in range(400 if dim < 1000 else 150):
        folder = tmp_path / f"harmed{turn}"
        shutil.copytree(tmp_path / "whole", folder)
        path = folder / rng.choice(files)
        path.write_bytes(harmed(path.read_bytes(), rng))
        found = read(folder)
        # A journal cut to nothing is a new one; the ring notices by its counters.
        assert found in (None, last), f"{path.name}: another state"
        outcomes.append(found is None)
        shutil.rmtree(folder)
    assert any(outcomes) and not all(outcomes)


def test_of_a_journal_that_was_not_closed_only_the_end_can_get_lost(tmp_path: Path) -> None:
    """After kill −9 the last states stand in the log of SQLite, whose own checksums cut it off at what is damaged."""
    open_one = write(tmp_path / "whole", 2)
    states = [as_known(standing_at(turn, 2)) for turn in range(1, TIMES + 1)]
    rng = random.Random(3)
    assert (
        read(shutil.copytree(tmp_path / "whole", tmp_path / "copy", ignore=shutil.ignore_patterns("*-shm")))
        == states[-1]
    )
    for turn in range(200):
        folder = tmp_path / f"harmed{turn}"
        shutil.copytree(tmp_path / "whole", folder, ignore=shutil.ignore_patterns("*-shm"))
        path = folder / "journal.db-wal"
        path.write_bytes(harmed(path.read_bytes(), rng))
        found = read(folder)
        assert found is None or found in states
        shutil.rmtree(folder)
    open_one.close()
