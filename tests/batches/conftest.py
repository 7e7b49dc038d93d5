from __future__ import annotations

import pytest

from roundelay.batches import folder
from tests.batches.folders import Site, written_site


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a few row groups each, and batches that end in the middle of one."""
    monkeypatch.setattr(folder, "ROWS_A_PART", 100)
    monkeypatch.setattr(folder, "ROWS_A_BATCH", 37)


@pytest.fixture(scope="session")
def sites(tmp_path_factory: pytest.TempPathFactory) -> list[Site]:
    """Three of them, with unlike numbers of rows."""
    return [written_site(tmp_path_factory.mktemp("site"), seed, rows=300 + 100 * seed) for seed in range(3)]
