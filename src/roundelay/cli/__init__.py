"""The command line, one file a command."""

from roundelay.cli.app import main as main
