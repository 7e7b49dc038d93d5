"""A status as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import Any

from roundelay.agents.status import Status


def status_json(status: Status) -> str:
    """One line of JSON with the names of the fields; what is no finite number is null."""
    return json.dumps(_plain(status), allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    raise TypeError(f"A status has a {type(value).__name__}, which the page can't show: use numbers, words and tuples.")
