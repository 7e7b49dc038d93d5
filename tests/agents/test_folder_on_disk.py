"""The entry of a run's folder in the one above it: on the disk before anything is acknowledged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from roundelay.agents.protocol.journal import Journal
from tests.agents.hospitals import Hospitals


@pytest.mark.parametrize("there", [False, True])
def test_the_folder_of_a_run_is_synced_where_it_is_listed(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without that a journal could be gone with its folder, after a neighbour has been told that a hand-over is safe."""
    home = tmp_path / "runs" / "00"
    if there:  # by an agent that was killed before it had synced anything
        home.mkdir(parents=True)
    synced: list[int] = []
    sync = os.fsync

    def noting(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        sync(handle)

    monkeypatch.setattr(os, "fsync", noting)
    Journal(home, "run", "Oslo").close()
    assert home.parent.stat().st_ino in synced
    if not there:
        assert tmp_path.stat().st_ino in synced and (home.parent.stat().st_mode & 0o077) == 0


@pytest.mark.parametrize("what", ["seed", "mask-key-0"])
def test_a_crash_while_a_secret_is_written_leaves_none(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty seed would be the number 0, and an empty key would keep the agent from starting again."""
    hospitals = Hospitals(tmp_path, monkeypatch)
    ring = hospitals.accept(hospitals.plan())
    site = hospitals.site(ring, "Oslo")
    site.home.mkdir(parents=True)
    secret = {"seed": site._seed, "mask-key-0": lambda: site._secrets(ring.plan)}[what]

    def dies(descriptor: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as crash:
        crash.setattr(os, "fsync", dies)
        with pytest.raises(KeyboardInterrupt):
            secret()
    assert not (site.home / what).exists()
    secret()
