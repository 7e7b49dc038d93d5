"""Exit codes, and errors as sentences instead of tracebacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

BAD_INPUT = 2
DIVERGED = 3
INTERRUPTED = 130


@contextmanager
def kept_if_interrupted(what: str, folder: Path) -> Iterator[None]:
    """For work that is kept piece by piece: Ctrl-C says that nothing finished is lost, and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(
            f"Interrupted: the {what} that were finished are kept in {folder}, and the same command goes on from there.",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None


class CommandsThatExplain(TyperGroup):
    """Commands whose refusals reach the user as a sentence on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except ValueError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(BAD_INPUT) from None
        except OSError as error:
            where = f" {error.filename}" if error.filename else ""
            typer.echo(f"The file{where} can't be used: {error.strerror or error}. Choose another path.", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except ImportError as error:
            if "pip install" not in str(error):  # not one of ours
                raise
            typer.echo(str(error), err=True)
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            typer.echo("It was interrupted before there was anything to show.", err=True)
            raise typer.Exit(INTERRUPTED) from None
