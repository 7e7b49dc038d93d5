"""A frozen dataclass as plain data and back, as it stands in the file of a run: its place and its fields."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np

# Only these hold what a method is described by; a file can't have anything else imported.
OWN = (
    "roundelay.algorithms.",
    "roundelay.links.",
    "roundelay.networks.walks",
    "roundelay.links.conditions",
    "roundelay.problems.regularisers",
)


def describe(thing: Any) -> Any:
    """A dataclass as its place and its fields; plain values as they are."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        fields = {field.name: describe(getattr(thing, field.name)) for field in dataclasses.fields(thing) if field.init}
        return {"module": type(thing).__module__, "class": type(thing).__qualname__, "fields": fields}
    if isinstance(thing, (tuple, list)):
        return [describe(part) for part in thing]
    if isinstance(thing, np.generic | np.ndarray):
        return thing.tolist()
    return thing if thing is None or isinstance(thing, (bool, int, float, str)) else repr(thing)


def restore(described: Any) -> Any:
    """The object again, where it is roundelay's own; otherwise its description, since a file must not run code."""
    if isinstance(described, list):
        return tuple(restore(part) for part in described)
    if not isinstance(described, dict) or not str(described.get("module")).startswith(OWN):
        return described
    try:
        maker = getattr(importlib.import_module(described["module"]), str(described.get("class")), None)
    except ImportError:
        return described
    if not (isinstance(maker, type) and dataclasses.is_dataclass(maker)):
        return described
    return maker(**{name: restore(value) for name, value in described["fields"].items()})
