"""The wire of a rehearsal: what somebody who taps it can read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roundelay.agents.rehearsal import Rehearsal

# So many tokens are looked for; each takes a search through the whole capture.
SAMPLE = 300


@contextmanager
def tap(ports: list[int], path: Path) -> Iterator[Path | None]:
    """Capture what crosses these ports of this machine; nothing where that is not allowed."""
    from roundelay.agents.capture import Sniffer

    try:
        sniffer = Sniffer(ports, path)
        sniffer.__enter__()
    except PermissionError:
        yield None
        return
    try:
        yield path
    finally:
        sniffer.__exit__(None, None, None)


def words_of(rehearsal: Rehearsal, captured: Path | None) -> str:
    """Whether any token, or any frame, can be found in what was captured."""
    from roundelay.agents.journal import Journal
    from roundelay.agents.wire import MAGIC

    if captured is None:
        return "The wire was not tapped: that needs the rights of an administrator on Linux."
    content = captured.read_bytes()
    tokens: list[bytes] = []
    for seat in rehearsal.seats:
        journal = Journal(seat.folder / "runs" / rehearsal.plan.run, rehearsal.plan.run, seat.name)
        tokens += [row.sent[:8] for row in journal.visits() if row.sent]
        journal.close()
    sample = tokens[:: max(len(tokens) // SAMPLE, 1)]
    found = sum(token in content for token in sample)
    plain = content.count(MAGIC)
    if found or plain:
        return f"The wire was tapped ({len(content):,} bytes): {found} of {len(sample)} tokens STAND THERE IN THE OPEN."
    return (
        f"The wire was tapped ({len(content):,} bytes): of {len(sample)} tokens that crossed it none can be found there, "
        "and no frame."
    )
