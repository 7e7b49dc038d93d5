"""The report as one interactive page and as files beside it."""

from roundelay.paper.report.page import write_report
from roundelay.paper.report.writing import write_figure, write_files

__all__ = ["write_figure", "write_files", "write_report"]
