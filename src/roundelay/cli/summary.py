"""What came of a run: once as data, and in words made from that data."""

from __future__ import annotations

import math
import shutil
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from roundelay.cli.options import AnyScene, conditions_in_words
from roundelay.comparison.costs import brief
from roundelay.engine import Run

LEVELS = (1e-3, 1e-6, 1e-9)
ERRORS = ("accuracy", "error", "token_error", "mean_error", "consensus", "objective_gap")


def summary_of(
    run: Run, scene: AnyScene, saved: Path | None, figure: Path | None, delta: float = 1e-5
) -> dict[str, Any]:
    """The summary as data."""
    algorithm, last = run.algorithm, run.history.iloc[-1]
    return {
        "algorithm": algorithm.name,
        "family": run.family,
        "options": {field.name: getattr(algorithm, field.name) for field in fields(algorithm)},
        **scene.described(),
        "data": run.data_in_words,
        "network": conditions_in_words(run.conditions),
        "seed": run.seed,
        "outcome": run.outcome,
        "stop": run.stop,
        "iterations" if run.family == "gossip" else "hops": run.steps,
        "units": run.units,
        "bytes": int(last["bytes"]),
        **({"seconds": float(last["seconds"])} if "seconds" in last else {}),
        "engine": run.engine,
        "engine_reason": run.engine_reason,
        "units_to": {brief(level, digits=1): run.units_to(level) for level in LEVELS},
        "final": {name: float(last[name]) for name in ERRORS if name in last},
        **({"mean": run.estimate} if run.family == "gossip" else _token(run)),
        **privacy_of(run, delta),
        "conditions": [
            {"source": c.source, "requirement": c.requirement, "numbers": c.numbers, "holds": c.holds, "words": str(c)}
            for c in algorithm.conditions(run.problem)
        ],
        "saved": None if saved is None else str(saved),
        "figure": None if figure is None else str(figure),
    }


def privacy_of(run: Run, delta: float) -> dict[str, Any]:
    """The guarantee as data, or why there is none; nothing for a method that does not claim to be private in this way."""
    method = run.algorithm.parts()
    facts = getattr(method, "facts", None)
    if getattr(method, "noisy_step", None) is None and (facts is None or facts.perturbation.noise != "x"):
        return {}
    from roundelay.privacy.accounting.budget import ledger_of
    from roundelay.privacy.accounting.guarantee import check_delta
    from roundelay.privacy.accounting.sensitivities import NoGuarantee, why_no_guarantee

    reason = why_no_guarantee(method, run.problem)
    if reason:
        return {"privacy": {"epsilon": None, "delta": None, "words": NoGuarantee(reason).words}}
    check_delta(delta)
    try:
        spent = ledger_of(method, run.problem, delta).spent(run.visits)
    except ImportError as error:  # the run itself did not need the package
        return {"privacy": {"epsilon": None, "delta": delta, "words": str(error)}}
    return {"privacy": {"epsilon": spent.epsilon, "delta": delta, "words": spent.words}}


def _token(run: Run) -> dict[str, Any]:
    """Where the token went, where it is, and what one agent can make of those that it saw."""
    readout = run.readout() if run.stop != "diverged" else None
    return {
        "tour": run.tour,
        "token": run.token,
        "readout": None if readout is None else {
            "estimate": readout.estimate,
            "extrapolated": readout.extrapolated,
            "residual": readout.residual,
            "plain_residual": readout.plain_residual,
            "words": readout.words,
        },
    }  # fmt: skip


def print_summary(summary: dict[str, Any]) -> None:
    """The summary in words."""
    lines = _lines(summary)
    indent = max(len(name) for name, _ in lines) + 2
    width = max(shutil.get_terminal_size((100, 24)).columns - indent, 40)
    for name, words in lines:
        wrapped = [piece for line in words.splitlines() for piece in textwrap.wrap(line, width)]
        typer.echo(typer.style(f"{name:<{indent}}", bold=True) + f"\n{' ' * indent}".join(wrapped))


def _lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    problem, final = summary["problem"], summary["final"]
    options = ", ".join(f"{name}={value}" for name, value in summary["options"].items())
    conditions = [entry["words"] for entry in summary["conditions"]]
    seconds = f", {summary['seconds']:,.4g} simulated seconds" if "seconds" in summary else ""
    return [
        (summary["algorithm"], options or "It has no options."),
        ("problem", f"{problem['kind']}: {problem['agents']} agents, {problem['samples']} samples each, dimension {problem['dim']}"),
        *([("data", summary["data"])] if summary["data"] else []),
        *([("network", summary["network"])] if summary["network"] else []),
        ("outcome", summary["outcome"]),
        ("engine", f"{summary['engine']}: {summary['engine_reason']}"),
        *([("tour", summary["tour"] or "None: the token walks at random.")] if "tour" in summary else []),
        ("cost", f"{_whole(summary['units'])} units, {summary['bytes']:,} bytes{seconds}"),
        *((f"to {level}", _units(units)) for level, units in summary["units_to"].items()),
        ("error", f"{final['error']:.3g} (common), accuracy {final['accuracy']:.3g}"),
        *(_token_lines(summary) if "token" in summary else [("mean x", _vector(summary["mean"]))]),
        *([("privacy", summary["privacy"]["words"])] if "privacy" in summary else []),
        ("theory", "\n".join(conditions) or "No theorem is known for this method."),
        *((name, summary[name]) for name in ("saved", "figure") if summary[name] is not None),
    ]  # fmt: skip


def _token_lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    readout, nothing = summary["readout"], "None: there is nothing to read out of a run that diverged."
    words = f"{_vector(readout['estimate'])}\n{readout['words']}" if readout else nothing
    return [("token", _vector(summary["token"])), ("readout", words)]


def _whole(units: float) -> str:
    return f"{units:,}" if isinstance(units, int) else f"{units:,.1f}"


def _units(units: float) -> str:
    return f"{units:,.0f} units" if math.isfinite(units) else "not reached"


def _vector(values: Any, shown: int = 6) -> str:
    more = f" … ({len(values)} in all)" if len(values) > shown else ""
    return " ".join(f"{value:.12g}" for value in values[:shown]) + more
