"""The model as the page shows it: the tables and pictures of the report, as JSON, and the report itself."""

from __future__ import annotations

from typing import Any

import msgspec

from roundelay.agents.data.loaded import LoadedModel
from roundelay.agents.data.models import StoredModel
from roundelay.regression.shown.drawing import Picture
from roundelay.regression.shown.pictures import forest_of, pictures_of
from roundelay.regression.shown.tables import coefficients, facts, plain_coefficients
from roundelay.shown.numbers import FIGURE_SPACE, POINT_SPACE
from roundelay.shown.table import Table


def model_json(stored: StoredModel) -> bytes:
    """What there is to see of a model."""
    model, result = LoadedModel(stored), stored.result
    if result is None:
        picture = forest_of(model.terms)
        return _encoded((), plain_coefficients(model.pairs), () if picture is None else (picture,), ())
    return _encoded(facts(result), coefficients(result), pictures_of(result), result.notes, has_report=True)


def _encoded(
    pairs: tuple[tuple[str, str], ...],
    table: Table,
    pictures: tuple[Picture, ...],
    notes: tuple[str, ...],
    has_report: bool = False,
) -> bytes:
    shown: dict[str, Any] = {
        "facts": pairs,
        "table": {"header": table.header, "rows": table.aligned(FIGURE_SPACE, POINT_SPACE), "words": table.words, "caption": table.caption},
        "pictures": pictures,
        "notes": notes,
        "has_report": has_report,
    }  # fmt: skip
    return msgspec.json.encode(shown, enc_hook=str)
