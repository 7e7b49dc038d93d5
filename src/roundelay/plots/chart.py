"""A figure as data: what the PNG, the SVG, the interactive page and the CSV file are all made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from roundelay.kernels import Vector

if TYPE_CHECKING:
    import pandas as pd

Mode = Literal["line", "dashed", "points", "labelled points"]

# The place of what is no method: the links of a network, a level to compare with. It is drawn thin, grey and behind.
BACKGROUND = -1


@dataclass(frozen=True, eq=False)
class Series:
    """One curve, or one cloud of points: `y` over `x`, with a band from `low` to `high` where there is one.

    `place` is its place in the palette (see `style.py`), so that a method looks the same in every figure, or
    `BACKGROUND`. `names` are the labels of labelled points. Where `y` is not a number there is a gap. A series that is
    not `shown` can be switched on in the interactive page and is left out elsewhere; one without a label is in no legend.
    """

    label: str
    x: Vector
    y: Vector
    place: int = 0
    mode: Mode = "line"
    low: Vector | None = None
    high: Vector | None = None
    names: tuple[str, ...] = ()
    shown: bool = True
    thick: bool = False


@dataclass(frozen=True, eq=False)
class Chart:
    """One panel. Labels are plain text with the paper's symbols in Unicode; `bare` hides the axes, for a drawing."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    bare: bool = False


@dataclass(frozen=True, eq=False)
class ChartFigure:
    """Panels side by side in so many columns, with what a reader must know to make them again.

    `name` is what the command and the files are called by, `command` makes it, `seeds` says in words which were used.
    """

    name: str
    title: str
    caption: str
    charts: tuple[Chart, ...]
    columns: int = 1
    command: str = ""
    seeds: str = ""
    notes: tuple[str, ...] = field(default=())


def chart_numbers(figure: ChartFigure) -> pd.DataFrame:
    """The numbers behind a figure in long form: panel, series, x, y, low, high, name."""
    import pandas as pd

    frames = []
    for chart in figure.charts:
        for series in chart.series:
            absent = np.full(len(series.x), np.nan)
            frames.append(
                pd.DataFrame(
                    {
                        "panel": chart.title,
                        "series": series.label,
                        "x": series.x,
                        "y": series.y,
                        "low": absent if series.low is None else series.low,
                        "high": absent if series.high is None else series.high,
                        "name": series.names or "",
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)
