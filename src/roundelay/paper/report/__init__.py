"""The report as one interactive page and as files beside it."""

from roundelay.paper.report.files import write_figure, write_files
from roundelay.paper.report.page import write_report

__all__ = ["write_figure", "write_files", "write_report"]
