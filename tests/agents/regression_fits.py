"""Rings of real processes that fit regressions to data files, against another library on the pooled rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from roundelay.agents.agreement.plan import RingPlan, Stopping, Task
from roundelay.agents.data.models import StoredModel
from roundelay.agents.data.reading import read_site_rows
from roundelay.agents.data.regressing import RegressionFit
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.site.rehearsal import prepare_ring
from roundelay.agents.site.verification import verify_model
from roundelay.masks import SeededPairs
from tests.agents.hospitals import SEALED
from tests.agents.likeness import check_every_hand_over_once
from tests.agents.processes import ProcessRing
from tests.agents.regression_rings import regression_of
from tests.regression.studies import StudyCase, farthest, pooled_fit, split


def ring_of(
    folder: Path,
    frames: Mapping[str, pd.DataFrame],
    formula: str,
    family: str = "gaussian",
    seed: int | None = None,
    **planned: Any,
) -> ProcessRing:
    """Keys, ring file and data files of the sites, as their operators' commands make them; columns that are not named are there too."""
    regression = regression_of(frames, formula, family, **planned)
    task = Task("regression", missing="drop", regression=regression)
    header = [str(column) for column in next(iter(frames.values())).columns]
    rows = {
        name: [[_cell(cell) for cell in row] for row in frame.itertuples(index=False)] for name, frame in frames.items()
    }
    rehearsal = prepare_ring(folder, header, rows, task, SEALED, Stopping(1e-11))
    own = [RegressionFit(task, read_site_rows(seat.data, regression, "drop")) for seat in rehearsal.seats]
    return ProcessRing(folder, rehearsal.plan, own, seed=seed)


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else repr(float(value))
    return "NA" if value is None else str(value)


def stored_at(ring: ProcessRing) -> list[StoredModel]:
    """What every site has in its file, which follows from what all have signed; without a doubt, and everywhere the same."""
    from roundelay.agents.agreement.ringfile import read_ring

    signed = read_ring((ring.folder / "ring.toml").read_bytes(), "ring.toml")
    found = [verify_model(ring.site_folder(number) / "model.json", signed) for number in range(ring.plan.agents)]
    for one in found:
        assert not one.about.doubt and one.about.end == found[0].about.end
        assert (one.model, one.result) == (found[0].model, found[0].result)
    return found


def compared(folder: Path, case: StudyCase, how: str) -> tuple[dict[str, float], int]:
    """How far the result of a ring of processes is from that of another library, and how many laps it took."""
    frames = {
        name: frame.reset_index(drop=True) for name, frame in split(case.rows(), how, case.label, case.sites).items()
    }
    ring = ring_of(folder, frames, case.formula, **case.planned)
    ring.run()
    stored = stored_at(ring)[0]
    assert stored.result is not None and stored.result.converged
    return farthest(stored.result, pooled_fit(case, frames)), stored.about.questions


# ---------------------------------------------------------------- the same words, whoever dies


def undisturbed(plan: RingPlan, own: list[RegressionFit], seed: int) -> list[tuple[int, int, bytes]]:
    """Every hand-over of the ring in one place: the sender, the phase and the numbers."""
    holders = [Holder(plan, me, one, seed, SeededPairs(seed)) for me, one in enumerate(own)]
    sender, move, sent = plan.order[0], holders[plan.order[0]].first(), []
    while move is not None:
        sent.append((sender, int(move.baton.phase), np.ascontiguousarray(move.baton.numbers).tobytes()))
        sender, move = move.receiver, holders[move.receiver].act(move.baton)
    return sent


def check_same_words(ring: ProcessRing, seed: int) -> None:
    """What crossed the links is, bit for bit, what crosses them where nothing happens: no mask was ever used for other words."""
    expected = undisturbed(ring.plan, list(ring.functions), seed)  # type: ignore[arg-type]
    found = {
        row.sent_k: (number, row.sent_phase, row.sent)
        for number in range(ring.plan.agents)
        for row in ring.visits(number)
        if row.sent_k >= 0
    }
    assert sorted(found) == list(range(1, len(expected) + 1))
    for k, one in enumerate(expected, start=1):
        assert found[k] == one, f"hand-over {k}"
    check_every_hand_over_once(ring)


__all__ = ["check_same_words", "compared", "ring_of", "stored_at", "undisturbed"]
