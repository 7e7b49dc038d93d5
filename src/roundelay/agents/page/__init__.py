"""The page on which an operator watches his own agent."""

from roundelay.agents.page.server import PageError, PageServer

__all__ = ["PageError", "PageServer"]
