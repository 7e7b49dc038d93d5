"""Ways in which rows are divided among sites."""

from __future__ import annotations

import numpy as np

from roundelay.kernels import Vector

SPLITS = ("evenly", "by label", "90/10", "one row", "one site", "everybody alone")


def split(name: str, target: Vector) -> Vector:
    """The label of each row's site."""
    rows, order = len(target), np.argsort(target, kind="stable")
    if name == "evenly":
        return np.arange(rows) % 5
    if name == "by label":  # each site has outcomes of one kind, or of one size
        sites = np.empty(rows, np.int64)
        sites[order] = np.arange(rows) * 4 // rows
        classes = np.unique(target)
        return np.searchsorted(classes, target) if len(classes) < 10 else sites
    if name == "90/10":
        return (np.arange(rows) >= 0.9 * rows).astype(np.int64)
    if name == "one row":
        return np.array(["Oslo", *["Bergen", "Hamar"] * rows], object)[:rows]
    if name == "one site":
        return np.zeros(rows, np.int64)
    return np.arange(rows)
