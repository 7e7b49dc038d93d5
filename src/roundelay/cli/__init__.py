"""The command line: `roundelay demo | simulate | compare | tune | bench`."""

from roundelay.cli.app import main

__all__ = ["main"]
