from __future__ import annotations

from collections.abc import Mapping

import pytest

from roundelay.paper.pieces import Measured
from tests.experiments.findings import quick_findings


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Mapping[str, Measured]:
    return quick_findings(tmp_path_factory, worker_id)
