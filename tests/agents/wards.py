"""Sites that fit regressions within this process: real folders, keys, journals and ledgers, links in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from roundelay.agents.agreement.epochs import plan_ring
from roundelay.agents.agreement.plan import Stopping, Task
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data.regressing import RegressionFit
from roundelay.regression.pooled import rows_of
from tests.agents.conftest import invited, site
from tests.agents.hospitals import NAMES, SEALED, Hospitals
from tests.agents.regression_rings import Drawn, regression_of


class Wards(Hospitals):
    """The sites by name, each with a folder and a frame."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch)
        self.frames: dict[str, pd.DataFrame] = dict(zip(NAMES, Drawn().frames().values(), strict=True))

    def planned(self, formula: str, family: str, *names: str, **planned: Any) -> SignedPlan:
        """A new run of these sites, signed by the first."""
        task = Task("regression", missing="drop", regression=regression_of(self.frames, formula, family, **planned))
        members = [invited(site(name), columns=()) for name in names or self.names]
        return self.signed(plan_ring(members, None, SEALED, task, Stopping(1e-11)), (names or self.names)[0])

    def local(self, name: str, task: Task) -> RegressionFit:  # type: ignore[override]
        """What a site brings to a regression."""
        assert task.regression is not None
        return RegressionFit(task, rows_of(task.regression, self.frames[name], name, task.missing))
