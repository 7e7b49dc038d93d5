"""Whoever dies, wherever in the protocol, and comes back: nothing is lost, nothing is done twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from roundelay.agents.protocol.station import Point
from tests.agents.chaos import EARLY, SHORT, Size, chaos


@pytest.mark.parametrize("seed", [1, 2])
def test_death_at_every_point_changes_nothing(seed: int, tmp_path: Path) -> None:
    check_kills(tmp_path, SHORT, seed)


def check_kills(folder: Path, size: Size, seed: int) -> None:
    """The ring ends as if nothing had been, and enough was killed to say so."""
    kills = chaos(folder, size, seed)
    print(f"\n{kills.table()}")
    assert all(kills.at[point] >= size.at_each for point in Point)
    assert kills.outside >= size.at_random
    assert all(kills.early[point] >= size.early_each for point in EARLY)
