"""Figures of runs. Matplotlib is imported when one is drawn, not before."""

from roundelay.plots.convergence import plot_convergence
from roundelay.plots.saving import check_figure_path, save_figure

__all__ = ["check_figure_path", "plot_convergence", "save_figure"]
