"""Exit codes, and errors as sentences instead of tracebacks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

IN_PART = 1
BAD_INPUT = 2
DIVERGED = 3
INTERRUPTED = 130
CUT_OFF = 141


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


def _missing(error: ImportError) -> str:
    """What a command of a ring lacks, and how to install it; what is none of a ring's packages is not ours to explain."""
    if "pip install" in str(error):
        return str(error)
    from importlib.metadata import requires

    from packaging.requirements import Requirement

    asked = [Requirement(line) for line in requires("roundelay") or ()]
    named = {one.name.replace("-", "_") for one in asked if one.marker and one.marker.evaluate({"extra": "ring"})}
    package = (error.name or "").partition(".")[0]
    if package not in named:
        raise error
    return f"A ring needs the package {package}: install it by pip install 'roundelay[ring]'."


class CommandOfARing(TyperCommand):
    """A command that says in a sentence which package it lacks."""

    def invoke(self, ctx: Any) -> Any:
        """Do what the command says."""
        try:
            return super().invoke(ctx)
        except ImportError as error:
            raise ValueError(_missing(error)) from None


class CommandsOfARing(TyperGroup):
    """Commands that say in a sentence which package they lack."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except ImportError as error:
            raise ValueError(_missing(error)) from None


class CommandsThatExplain(TyperGroup):
    """Commands whose refusals reach the user as a sentence on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except ValueError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(BAD_INPUT) from None
        except BrokenPipeError:  # whoever read it, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(CUT_OFF) from None
        except OSError as error:
            if error.errno is None and isinstance(error, ConnectionError):  # a sentence of ours
                typer.echo(str(error), err=True)
                raise typer.Exit(BAD_INPUT) from None
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
