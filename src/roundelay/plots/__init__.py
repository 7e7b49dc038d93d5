"""Figures of runs. Matplotlib is imported when one is drawn, not before."""

from roundelay.plots.convergence import (
    plot_convergence as plot_convergence,
)
from roundelay.plots.saving import (
    check_figure_path as check_figure_path,
    save_figure as save_figure,
)
from roundelay.plots.style import (
    PaperStyle as PaperStyle,
)
