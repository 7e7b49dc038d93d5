"""The command line: `roundelay demo | simulate | bench`."""

from roundelay.cli.app import main

__all__ = ["main"]
