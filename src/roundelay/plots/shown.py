"""A figure that a notebook shows as a picture, and that can be drawn again for a paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from roundelay.plots.style import PaperStyle


class ShownFigure(Figure):
    """A figure that is drawn wherever it is the value of a notebook's cell, whether or not pyplot was ever imported.

    `again` draws it in a style for print; `made` says from which seeds and parameters it came.
    """

    again: Callable[[PaperStyle], Figure] | None = None
    made: Mapping[str, Any] = {}

    def save(self, path: str | Path, style: str | PaperStyle | None = None) -> Path:
        """Write it as PNG, SVG or PDF; with a style, such as "ieee", "ieee-wide" or "neurips", as wide as a column there."""
        from roundelay.plots.saving import save_figure

        return save_figure(self, path, style)

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        self.savefig(picture, format="png", dpi=100, facecolor="white")
        return picture.getvalue()
