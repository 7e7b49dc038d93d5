"""What came of a run: once as data, and in words made from that data."""

from __future__ import annotations

import math
import shutil
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from roundelay.engine import Run
from roundelay.experiments.numbers import brief

LEVELS = (1e-3, 1e-6, 1e-9)


def summary_of(
    run: Run, problem: str, samples: int, density: float, saved: Path | None, figure: Path | None
) -> dict[str, Any]:
    """The summary as data."""
    algorithm, (agents, dim) = run.algorithm, run.x.shape
    last = run.history.iloc[-1]
    readout = run.readout() if run.stop != "diverged" else None
    return {
        "algorithm": algorithm.name,
        "options": {field.name: getattr(algorithm, field.name) for field in fields(algorithm)},
        "problem": {"kind": problem, "agents": agents, "samples": samples, "dim": dim},
        "density": density,
        "seed": run.seed,
        "outcome": run.outcome,
        "stop": run.stop,
        "hops": run.hops,
        "units": run.units,
        "bytes": int(last["bytes"]),
        "engine": run.engine,
        "engine_reason": run.engine_reason,
        "tour": run.tour,
        "units_to": {brief(level, digits=1): run.units_to(level) for level in LEVELS},
        "final": {name: float(last[name]) for name in ("accuracy", "error", "token_error", "consensus", "objective_gap")},
        "token": run.token,
        "readout": None if readout is None else {
            "estimate": readout.estimate,
            "extrapolated": readout.extrapolated,
            "residual": readout.residual,
            "plain_residual": readout.plain_residual,
            "words": readout.words,
        },
        "conditions": [
            {"source": c.source, "requirement": c.requirement, "numbers": c.numbers, "holds": c.holds, "words": str(c)}
            for c in algorithm.conditions(run.problem)
        ],
        "saved": None if saved is None else str(saved),
        "figure": None if figure is None else str(figure),
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
    problem, final, readout = summary["problem"], summary["final"], summary["readout"]
    options = ", ".join(f"{name}={value}" for name, value in summary["options"].items())
    conditions = [entry["words"] for entry in summary["conditions"]]
    return [
        (summary["algorithm"], options),
        ("problem", f"{problem['kind']}: {problem['agents']} agents, {problem['samples']} samples each, dimension {problem['dim']}"),
        ("outcome", summary["outcome"]),
        ("engine", f"{summary['engine']}: {summary['engine_reason']}"),
        ("tour", summary["tour"] or "None: the token walks at random."),
        ("cost", f"{summary['units']:,} units, {summary['bytes']:,} bytes"),
        *((f"to {level}", _units(units)) for level, units in summary["units_to"].items()),
        ("error", f"{final['error']:.3g} (common), accuracy {final['accuracy']:.3g}"),
        ("token", _vector(summary["token"])),
        ("readout", f"{_vector(readout['estimate'])}\n{readout['words']}" if readout else "None: there is nothing to read out of a run that diverged."),
        ("theory", "\n".join(conditions) or "No theorem is known for this method."),
        *((name, summary[name]) for name in ("saved", "figure") if summary[name] is not None),
    ]  # fmt: skip


def _units(units: float) -> str:
    return f"{units:,.0f} units" if math.isfinite(units) else "not reached"


def _vector(values: Any, shown: int = 6) -> str:
    more = f" … ({len(values)} in all)" if len(values) > shown else ""
    return " ".join(f"{value:.12g}" for value in values[:shown]) + more
