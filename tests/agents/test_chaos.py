"""Whoever dies, wherever in the protocol, and comes back: nothing is lost, nothing is done twice."""

from __future__ import annotations

from pathlib import Path

from roundelay.agents.protocol.station import Point
from tests.agents.chaos import EARLY, SHORT, chaos


def test_death_at_every_point_changes_nothing(tmp_path: Path) -> None:
    """The ring ends as if nothing had been, and enough was killed to say so."""
    kills = chaos(tmp_path, SHORT, seed=1)
    print(f"\n{kills.table()}")
    assert all(kills.at[point] >= SHORT.at_each for point in Point)
    assert kills.outside >= SHORT.at_random
    assert all(kills.early[point] >= SHORT.early_each for point in EARLY)
