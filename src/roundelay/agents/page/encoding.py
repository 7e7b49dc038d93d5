"""A status as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import is_dataclass
from numbers import Integral, Real
from typing import Any

from roundelay.agents.status import Status


def status_json(status: Status) -> str:
    """One line of JSON with the names of the fields; what is no finite number is null."""
    return json.dumps(_plain(status), allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is float:  # most of a status; asked first, since this runs ten times a second beside the agent
        return value if math.isfinite(value) else None
    if kind is int or kind is str or kind is bool or value is None:
        return value
    if kind is tuple:
        return [_plain(each) for each in value]
    if is_dataclass(value):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return _plain(float(value))
    raise TypeError(f"A status has a {kind.__name__}, which the page can't show: use numbers, words and tuples.")
