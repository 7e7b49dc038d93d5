"""Figures to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 180

# Without a date the same figure gives the same file.
METADATA: dict[str, dict[str, Any]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write the figure as PNG, SVG or PDF, which the file's suffix chooses; missing folders are made."""
    import matplotlib

    path = check_figure_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "roundelay"}):
        figure.savefig(path, dpi=DOTS_PER_INCH, facecolor="white", metadata=METADATA[path.suffix.lower()])
    return path


def check_figure_path(path: str | Path) -> Path:
    """Refuse a path whose suffix is none that can be written; ask before long work rather than after it."""
    path = Path(path)
    if path.suffix.lower() not in METADATA:
        given = f"ends in {path.suffix!r}" if path.suffix else "has no suffix"
        raise ValueError(f"The figure's file name {path.name!r} {given}: end it in .png, .svg or .pdf.")
    return path
