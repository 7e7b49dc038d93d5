"""The log of an agent over months: bounded, without a torn line, and none lost but the oldest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roundelay.agents.site import status
from roundelay.agents.site.status import OLDER_LOGS, JsonLog


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def whole(folder: Path) -> list[dict[str, object]]:
    """All lines that are kept, the oldest first."""
    older = [folder / f"agent.log.{number}" for number in range(OLDER_LOGS, 0, -1)]
    return [line for path in (*older, folder / "agent.log") if path.exists() for line in lines_of(path)]


def test_a_log_is_turned_over_between_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "LARGEST_LOG", 1_000)
    log = JsonLog(tmp_path / "agent.log", "Tromsø")
    for number in range(100):
        log("link up", number=number, why="å" * (number % 40))
        kept = [line["number"] for line in whole(tmp_path)]
        assert kept == list(range(number - len(kept) + 1, number + 1))  # the newest, in order, none missing
    log.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 1 + OLDER_LOGS and all(path.stat().st_size <= 1_000 for path in files)


def test_a_line_that_was_never_finished_takes_no_other_with_it(tmp_path: Path) -> None:
    path = tmp_path / "agent.log"
    for number in range(2):
        log = JsonLog(path, "Oslo")
        log("link up", number=number)
        log.close()
    torn = path.read_bytes()[:-9]
    path.write_bytes(torn)
    log = JsonLog(path, "Oslo")
    log("link up", number=2)
    log.close()
    first, broken, last = path.read_bytes().splitlines()
    assert json.loads(first)["number"] == 0 and json.loads(last)["number"] == 2 and torn.endswith(b"\n" + broken)


def test_what_can_not_be_written_is_said(tmp_path: Path) -> None:
    log = JsonLog(tmp_path / "agent.log", "Oslo")
    log._lines.stream.close()
    with pytest.raises(ValueError, match="closed file"):
        log("link up")
    with pytest.raises(TypeError, match="neither a whole number nor words"):
        log("link up", residual=0.5)
