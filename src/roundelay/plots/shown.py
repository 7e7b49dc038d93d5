"""A figure that a notebook shows as a picture."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A figure that is drawn wherever it is the value of a notebook's cell, whether or not pyplot was ever imported."""

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        self.savefig(picture, format="png", dpi=100, facecolor="white")
        return picture.getvalue()
