"""Figures to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from roundelay.plots.style import PaperStyle, paper_style
from roundelay.shown.provenance import in_picture, provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH, IN_PRINT = 180, 300
SUFFIXES = (".png", ".svg", ".pdf")


def save_figure(figure: Figure, path: str | Path, style: str | PaperStyle | None = None) -> Path:
    """Write the figure as PNG, SVG or PDF, which the file's suffix chooses; missing folders are made.

    With a `style` it is drawn anew, as wide as a column of that paper. In the file's metadata stand the command, the versions, and the
    seeds and parameters of what is drawn.
    """
    import matplotlib

    path = check_figure_path(path)
    paper = None if style is None else paper_style(style)
    with matplotlib.rc_context({"svg.hashsalt": "roundelay"} | ({} if paper is None else paper.settings)):
        metadata = in_picture(provenance(**getattr(figure, "made", {})), path.suffix.lower())
        drawn = figure if paper is None else _drawn_again(figure, paper)
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn.savefig(path, dpi=DOTS_PER_INCH if paper is None else IN_PRINT, facecolor="white", metadata=metadata)
    return path


def _drawn_again(figure: Figure, paper: PaperStyle) -> Figure:
    again = getattr(figure, "again", None)
    if again is None:
        raise ValueError(
            "A figure that was drawn into an axis of your own has the size that you gave it: leave the style out, or let the axis out."
        )
    return again(paper)


def check_figure_path(path: str | Path, style: str | PaperStyle | None = None) -> Path:
    """Refuse a path whose suffix is none that can be written, and a style that there is not; ask before long work rather than after it."""
    path = Path(path)
    if style is not None:
        paper_style(style)
    if path.suffix.lower() not in SUFFIXES:
        given = f"ends in {path.suffix!r}" if path.suffix else "has no suffix"
        raise ValueError(f"The figure's file name {path.name!r} {given}: end it in .png, .svg or .pdf.")
    return path
