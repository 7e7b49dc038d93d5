"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from roundelay.cli.choices import Engine, ProblemKind

Problem = Annotated[ProblemKind, typer.Option("--problem", help="Which of the paper's problems.")]
Agents = Annotated[int, typer.Option("--agents", help="N, how many agents.")]
Density = Annotated[float, typer.Option("--density", help="The share of all pairs of agents that are linked.")]
Dim = Annotated[int, typer.Option("--dim", help="p, the dimension of x.")]
Samples = Annotated[int, typer.Option("--samples", help="b, how many samples each agent has.")]
EngineOption = Annotated[Engine, typer.Option("--engine", help="Which engine runs it.")]
Loss = Annotated[float | None, typer.Option("--loss", help="The chance that a message is lost.")]
Resend = Annotated[
    bool, typer.Option("--resend", help="A lost message of a gossip method is sent again, as tokens are.")
]
Noise = Annotated[float | None, typer.Option("--noise", help="The standard deviation of the links' noise.")]
Latency = Annotated[float | None, typer.Option("--latency", help="The seconds that a message takes.")]
Compute = Annotated[float | None, typer.Option("--compute", help="The seconds that an update takes.")]
Units = Annotated[float, typer.Option("--units", help="The budget of each run, in units of communication.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")]
