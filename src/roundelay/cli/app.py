"""The commands put together."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Protocol

import typer

import roundelay
from roundelay.cli.agent import agent
from roundelay.cli.audit import audit
from roundelay.cli.bench import bench
from roundelay.cli.compare import compare
from roundelay.cli.demo import demo
from roundelay.cli.disclose import disclose
from roundelay.cli.doctor import doctor
from roundelay.cli.exits import BAD_INPUT, CommandOfARing, CommandsThatExplain
from roundelay.cli.field import field
from roundelay.cli.model import model, predict
from roundelay.cli.relay import relay
from roundelay.cli.reproduce import reproduce
from roundelay.cli.ring.app import ring
from roundelay.cli.simulate import simulate
from roundelay.cli.sweep import sweep
from roundelay.cli.tune import tune
from roundelay.registry import registered

app = typer.Typer(
    name="roundelay",
    cls=CommandsThatExplain,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class Command(Protocol):
    """The slot of a command: a function whose arguments typer reads as options, and whose docstring is its help."""

    def __call__(self, *arguments: Any, **options: Any) -> None:
        """Do what the command says."""


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"roundelay {roundelay.__version__}")
        raise typer.Exit


@app.callback()
def roundelay_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version and stop.")
    ] = False,
) -> None:
    """Decentralised optimisation by a token that goes round a ring of agents.

    \b
    Example:
      roundelay demo
      roundelay simulate piadmm1 --rho 10 --figure run.png
      roundelay compare iadmm extra coca --tune --out out/compare

    \b
    Exit codes:
      0    it went well
      2    the input can't be used; a sentence on stderr says why
      3    the method diverged
      130  it was interrupted
    """


app.command(short_help="Compare four methods on the paper's least squares.")(demo)
app.command(short_help="Run one algorithm and say what came of it.")(simulate)
app.command(short_help="Compare algorithms by what they cost.")(compare)
app.command(short_help="Find good parameters for an algorithm.")(tune)
app.command(short_help="Run every point of a plan: algorithms, problems, networks, seeds.")(sweep)
app.command(short_help="Make every figure of the paper and judge its claims.")(reproduce)
app.command(short_help="Say what an observer learned about an agent.")(audit)
app.command(short_help="Every method of the field in one table.")(field)
app.command(short_help="Take part in a ring of real sites.", cls=CommandOfARing)(agent)
app.command(short_help="Say what may keep a site's agent from running.", cls=CommandOfARing)(doctor)
app.command(short_help="Say what a run will disclose of a site: for a privacy officer.", cls=CommandOfARing)(disclose)
app.add_typer(ring, short_help="Set up a ring of real sites: keys, invitations, the ring file.")
app.add_typer(model, short_help="Read a model of a ring, report it, and check who has signed it.")
app.command(short_help="Say what a model of a ring predicts for other rows.", cls=CommandOfARing)(predict)
app.command(short_help="Let sites meet that can only dial out.", cls=CommandOfARing)(relay)
app.command(short_help="Measure the engine against a plain C loop.")(bench)


def main() -> None:
    """The entry point of the console command, with the commands that installed packages add."""
    try:
        _add_commands()
    except ValueError as error:
        typer.echo(str(error), err=True)
        sys.exit(BAD_INPUT)
    app()


def _add_commands() -> None:
    """Those of installed packages; none takes the place of another."""
    known = {one.name or getattr(one.callback, "__name__", "") for one in app.registered_commands} | {"ring", "model"}
    for word, command in registered(Command).items():
        if word in known:
            raise ValueError(
                f"{command.__module__} adds the command {word!r}, which there is already: let it have another word, or uninstall it."
            )
        app.command(word)(command)
