"""Measures everything and writes docs/performance.md: `make bench`.

    python benchmarks/page.py [--render] [--before OTHER/src] [PART …]

A part is one or more of the scripts in this folder, which print what they measured as JSON. What is measured is kept below
out/performance as soon as it is there, so that a run that was interrupted goes on where it was. In the end all of it goes to docs/performance.json,
from which alone the page and its figure are made; --render makes them again from what is kept. With the names of parts only these are measured
anew, and the others stay as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

import roundelay as rl
from roundelay.plots import save_figure
from roundelay.plots.chart import Chart, ChartFigure, Series
from roundelay.plots.chart_figure import draw_chart_figure

HERE = Path(__file__).resolve().parent
TOP = HERE.parent
KEPT, PAGE, FIGURE = TOP / "docs/performance.json", TOP / "docs/performance.md", TOP / "docs/figures/growth.png"
UNFINISHED = TOP / "out" / "performance"
# Memory in sizes of the data is only told of where there are so many MB of them.
ENOUGH_DATA = 20.0
MOST_MEMORY = 1.5


@dataclass(frozen=True)
class Part:
    """A section: its name, the scripts that measure it with their arguments, and what is written of their results."""

    name: str
    scripts: tuple[tuple[str, ...], ...]
    section: Callable[[Any], str]


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table in Markdown; numbers stand on the right."""
    numeric = [
        all(str(row[column])[:1].isdigit() or row[column] == "–" for row in rows) and column > 0
        for column in range(len(head))
    ]
    lines = [head, ["---:" if right else "---" for right in numeric], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def three(value: float) -> str:
    """Three digits, without an exponent."""
    if value == 0.0 or abs(value) >= 100.0:
        return f"{value:,.0f}" if abs(value) < 1000 else f"{float(f'{value:.3g}'):,.0f}"
    return f"{float(f'{value:.3g}'):g}"


# ---------------------------------------------------------------- sections


def against_c(results: Any) -> str:
    """Engine and C, hop by hop."""
    (lines,) = results
    rows = [
        (line["what"], f"{line['engine_ns']:.1f}", f"{line['c_ns']:.1f}", f"{line['ratio']:.2f}",
         f"{line['bare_ns']:.1f}", f"{line['bare_ratio']:.2f}", f"{line['difference']:.0e}")
        for line in lines
    ]  # fmt: skip
    head = ("one hop", "engine, ns", "C, ns", "ratio", "C without a history, ns", "ratio", "tokens differ by")
    return f"""## A hop, against plain C

`benchmarks/against_c.py` builds a C loop of the same work (`hop.c`) with the machine's compiler, -O3 -march=native, and lets both take turns; the
fastest of {AGAINST_C_ROUNDS} rounds of each counts. Both record the same history, a row every thousand hops; C without a history records nothing.

{table(head, rows)}

With 100,000 agents in random order a hop waits for memory; the engine asks for it six hops ahead, the plain C loop does not."""


def many_seeds(results: Any) -> str:
    """256 seeds, against lanes."""
    (found,) = results
    return f"""## {found["seeds"]} seeds at once, against a C loop over lanes

`rl.simulate(rl.PIADMM1(…), …, seeds=range({found["seeds"]}))`, N = 100, p = 2, {found["hops"]:,} hops of each seed, against a C loop whose lanes are the same
seeds with the same draws and history, on {found["threads"]} threads of OpenMP (`benchmarks/many_seeds.py`, the faster of {found["rounds"]} rounds in turns):
{found["roundelay_busy_s"]:.2f} s against {found["c_busy_s"]:.2f} s of the processor, **{found["busy_ratio"]:.2f} times**, and {found["roundelay_s"]:.2f} s against {found["c_s"]:.2f} s by the clock, {found["ratio"]:.2f} times. The tokens of all seeds differ by {found["difference"]:.0e}."""


def gossip_rounds(results: Any) -> str:
    """A round, against loops by hand."""
    (found,) = results
    rows, by_hand = [], None
    for method in found["methods"]:
        best = method["microseconds"]
        numpy_best = min(value for label, value in best.items() if label.startswith("NumPy"))
        fastest, rough = method["fastest_by_hand"], best["roundelay, 10 % loss and noise"]
        by_hand = best.get("by hand, 10 % loss and noise", by_hand)
        rows.append((
            method["method"], f"{best['roundelay']:.2f}", f"{best['compiled by hand']:.2f}", f"{numpy_best:.1f}",
            f"{best['roundelay'] / fastest:.2f}", f"{rough:.2f}", f"{rough / fastest:.2f}",
        ))  # fmt: skip
    head = (
        "one round", "Roundelay, µs", "compiled by hand", "NumPy", "Roundelay to the faster of these",
        "Roundelay with 10 % loss and noise", "to the clean round by hand",
    )  # fmt: skip
    links, sizes = found["methods"][0]["links"], found["sizes"]
    most = max(size["bytes_a_link"] for size in sizes)
    return f"""## A round of gossip, against loops by hand

N = 100, {links} links, p = 2, the fastest of {found["repeats"]} runs in turns (`benchmarks/gossip_rounds.py`); all end at the same points.

{table(head, rows)}

A DGD loop by hand with the same loss and noise, a draw for each arc, takes {by_hand:.0f} µs. Up to {sizes[-1]["agents"]:,} agents of degree 10 take
at most {most:.0f} bytes a link."""


def against_peers(results: Any) -> str:
    """Other packages and a NumPy loop."""
    (found,) = results
    text = [f"""## Against other packages and a NumPy loop

Least squares with the same rows, network, Metropolis weights and steps (`benchmarks/against_peers.py`). Each peer is in an environment of its own and is driven through what it
offers to everybody, by a script in `benchmarks/peers/`; each method is a new process each time, all take turns, and the best of {found["turns"]} turns counts. Before that the points of all agents are
held against those of the NumPy loop: the last column is by how much they differ, in parts of the largest coordinate. An agent-update is one agent's part of one round. *Ratio* is Roundelay's rate over the peer's. Rates and times to
1e-6 (mean distance to x*, in lengths of x*) begin after a first call, for all; *the first answer* is from the start of the process to the end of that first call, for Roundelay with an
empty cache, compiling, and again when that is filled. DGD with a constant step never comes to 1e-6. Roundelay keeps histories all the while, the others keep none. Memory is what the process takes at most, and what it
took of that before the run."""]  # fmt: skip
    for ground in found["grounds"]:
        rows = [row for row in found["rows"] if (row["agents"], row["dim"]) == (ground["agents"], ground["dim"])]
        ours = {row["method"]: row for row in rows if row["peer"] == "Roundelay"}
        lines = []
        for method in ground["rounds"]:
            for row in (row for row in rows if row["method"] == method):
                own = ours.get(method)
                ratio = "–" if own is None or row is own else three(own["updates_per_s"] / row["updates_per_s"])
                to_goal = f"{1e3 * row['goal_s']:.1f}" if method in ("EXTRA", "D-ADMM") else "–"
                again = f"{row['answer_again_s']:.1f}"
                lines.append((
                    method, row["peer"], three(row["updates_per_s"]), ratio, to_goal, f"{row['answer_s']:.1f}", again,
                    f"{row['peak_mb']:,.0f}", f"{row['rest_mb']:,.0f}", f"{row['difference']:.0e}",
                ))  # fmt: skip
        rounds = ", ".join(f"{name} {ground['rounds'][name]:,}" for name in ("EXTRA", "D-ADMM"))
        head = (
            "", "by", "agent-updates a second", "ratio", "to 1e-6, ms", "first answer, s", "again, s", "memory, MB",
            "before, MB", "points differ by",
        )  # fmt: skip
        text.append(f"""N = {ground["agents"]}, p = {ground["dim"]}, {ground["links"]} links; rounds to 1e-6: {rounds}.

{table(head, lines)}""")
    absent = [f"**{name}** could not be measured: {reason}." for name, reason in found["missing"].items()]
    notes = """tvopt and decent-bench have the three methods under these names; their relaxed ADMM with α = ½ and ρ = 2c is D-ADMM. disropt, in which an agent is a process of MPI, has no EXTRA, an
ADMM that is another one (with a centre at each agent), and a subgradient method that takes its gradient after averaging; so it is measured on that one, which for Roundelay is a method of one's own
(`benchmarks/peers/with_roundelay.py`), and on gradient tracking, with as few agents as there can be processes."""
    versions = "; ".join(f"{name}: {what}" for name, what in found["versions"].items())
    return "\n\n".join([*text, *absent, notes, f"{versions}."])


def growth(results: Any) -> str:
    """How hops and memory grow."""
    (rows,) = results
    large = [row for row in rows if row["data_mb"] >= ENOUGH_DATA]
    lines = []
    for row in (row for row in large if not row["with_optimum"]):
        twin = next(
            other["times_data"] for other in large
            if other["with_optimum"] and all(other[key] == row[key] for key in ("kind", "agents", "dim"))
        )  # fmt: skip
        lines.append((
            row["kind"], f"{row['agents']:,}", f"{row['dim']:,}", f"{row['data_mb']:,.0f}", f"{row['most_mb']:,.0f}",
            f"{row['times_data']:.2f}", f"{twin:.2f}",
        ))  # fmt: skip
    head = ("", "N", "p", "data, MB", "memory at most, MB", "times the data", "where x* is looked for, times the data")
    over = [line for line in lines if float(line[5]) > MOST_MEMORY]
    beyond = [line for line in lines if float(line[6]) > MOST_MEMORY]
    verdict = f"{len(lines) - len(over)} of these {len(lines)} stay below {MOST_MEMORY} times the data, and {len(lines) - len(beyond)} where x* is looked for as well."
    return f"""## How it grows

![The time of a hop and the memory of a run over N and over p](figures/growth.png)

I-ADMM on a ring, 30 rows an agent, a history of two rows: N = 10 to {max(row["agents"] for row in rows):,} at p = 2, and p = 2 to {max(row["dim"] for row in rows):,} at N = 4 (`benchmarks/growth.py`). Each point
is a process of its own; its memory counts beyond a small run of the same kind, from before the data are made. The data are part of it; they are handed over as an array that nobody writes to any more (`setflags(write=False)`), any other would be copied.

{table(head, lines)}

{verdict} Beside the data there are x_i, y_i and c_i of every agent, three vectors beside its 30 rows, and with p = 2 a row's own numbers weigh nearly as much as the row. A history keeps the token of each of
its rows: at p = 1,000,000 a thousand of them are 8 GB, so that `record=` should ask for few."""


def ring_hops(results: Any) -> str:
    """Hops of a real ring."""
    rows = [
        (f"{found['dim']:,}", f"{found['hop_ms']:.3g}", f"{found['bare_ms']:.3g}", f"{found['ratio']:.2f}",
         f"{found['update_ms']:.3g}", f"{found['ratio_without_update']:.2f}", f"{found['memory_beyond_data_mb']:.0f}")
        for found in results
    ]  # fmt: skip
    head = (
        "p",
        "a hop, ms",
        "bare stream, ms",
        "ratio",
        "of it the update, ms",
        "ratio without it",
        "an agent beyond its data, MB",
    )
    first = results[0]
    return f"""## A hop of a real ring

{first["agents"]} processes with mutual TLS and journals, against a bare gRPC stream with mutual TLS between the same processes, medians of {" and ".join(str(found["rounds"]) for found in results)} rounds in turns (`benchmarks/ring_hops.py`).

{table(head, rows)}"""


def sealed_hops(results: Any) -> str:
    """Hops of sealed laps."""
    rows = [
        (f"{found['dim']:,}", f"{found['question_ms']:.3g}", f"{found['token_ms']:.3g}", f"{found['ratio']:.2f}",
         f"{found['memory_beyond_start_mb']:.0f}")
        for found in results
    ]  # fmt: skip
    head = ("p", "a sealed hop, ms", "a token hop with as many bytes, ms", "ratio", "an agent beyond its start, MB")
    return f"""## A hop of sealed laps

The same processes, question and answers under masks against a token of as many bytes, medians of {" and ".join(str(found["rounds"]) for found in results)} rounds in turns (`benchmarks/sealed_hops.py`). The masks are drawn when the question comes, since they are bound to it.

{table(head, rows)}"""


def first_answer(results: Any) -> str:
    """What a person at a notebook waits for."""
    (figures,) = results
    compared = all(figure["before"] is not None for figure in figures)
    head = (
        "first result of",
        *(("before, s", "of the processor") if compared else ()),
        "s",
        "of the processor",
        *(("ratio",) if compared else ()),
    )
    rows = []
    for figure in figures:
        seconds, before = figure["seconds"], figure["before"] if compared else ()
        # Of the processor's seconds, which other work on the machine does not lengthen.
        ratio = (f"{seconds[1] / before[1]:.2f}",) if compared else ()
        rows.append((figure["what"], *(f"{number:.2f}" for number in (*before, *seconds)), *ratio))
    before = (
        " *Before* is an earlier state of the project, in turns with this one; the ratio is that of the processor's seconds."
        if compared
        else ""
    )
    return f"""## The first answer

From nothing compiled, in new processes, the shortest of {FIRST_ANSWER_ROUNDS} rounds, by the clock and of the processor (`benchmarks/first_answer.py`).{before}

{table(head, rows)}"""


AGAINST_C_ROUNDS, FIRST_ANSWER_ROUNDS = 7, 2
LARGE = ("--dim", "1000000", "--rounds", "3")
PARTS = (
    Part("against-c", (("against_c.py", "--rounds", str(AGAINST_C_ROUNDS)),), against_c),
    Part("many-seeds", (("many_seeds.py",),), many_seeds),
    Part("gossip-rounds", (("gossip_rounds.py",),), gossip_rounds),
    Part("against-peers", (("against_peers.py",),), against_peers),
    Part("growth", (("growth.py",),), growth),
    Part("first-answer", (("first_answer.py", "--rounds", str(FIRST_ANSWER_ROUNDS)),), first_answer),
    Part("ring-hops", (("ring_hops.py",), ("ring_hops.py", *LARGE)), ring_hops),
    Part("sealed-hops", (("sealed_hops.py",), ("sealed_hops.py", *LARGE)), sealed_hops),
)


# ---------------------------------------------------------------- measuring


def made_with() -> str:
    """The versions and the kind of processor that a part was measured with."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    first = (
        subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout if compiler else ""
    )
    names = [line.split(":")[1] for line in _processor_lines() if line.startswith("model name")]
    processor = names[0].strip() if names else platform.machine()
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy"))
    compiled = f", {first.splitlines()[0]}" if first else ""
    return f"Roundelay {rl.__version__}, Python {platform.python_version()}, {libraries}{compiled}; {os.cpu_count()} cores, {processor}"


def _processor_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def measured(part: Part) -> dict[str, Any]:
    """What a part's scripts print; where one fails, its complaint is shown and nothing is kept."""
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(TOP), os.environ.get("PYTHONPATH"))))}
    results, load = [], os.getloadavg()[0]
    for script, *arguments in part.scripts:
        command = [sys.executable, str(HERE / script), "--json", *arguments]
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=own, check=False)
        try:
            results.append(json.loads(ended.stdout))
        except ValueError:
            sys.exit(
                f"{script} ended with {ended.returncode} and printed no results: what it complains of stands above."
            )
        load = max(load, os.getloadavg()[0])
    return {"made_with": made_with(), "load": load, "results": results}


def measure(parts: Sequence[Part], folder: Path) -> dict[str, Any]:
    """All of them, one after another; what a run before has left is taken as it is."""
    console, found = Console(stderr=True), {}
    for number, part in enumerate(parts, 1):
        path = folder / f"{part.name}.json"
        if path.exists():
            console.print(f"{part.name} ({number} of {len(parts)}): kept from the run that was interrupted")
        else:
            console.print(f"{part.name} ({number} of {len(parts)})")
            write(path, measured(part))
        found[part.name] = json.loads(path.read_text())
    return found


def write(path: Path, content: Any) -> None:
    """Write as JSON, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    unfinished.replace(path)


# ---------------------------------------------------------------- writing


def page(kept: dict[str, Any]) -> str:
    """The page, from what was measured and from nothing else."""
    there = [part for part in PARTS if part.name in kept]
    stamps: dict[str, list[str]] = {}
    for part in there:
        stamps.setdefault(kept[part.name]["made_with"], []).append(part.name)
    said = [f"{stamp}." if len(stamps) == 1 else f"{', '.join(names)}: {stamp}." for stamp, names in stamps.items()]
    introduction = """# How fast

`make bench` wrote this page from what it measured; no number was typed. Every figure is a ratio, or stands beside what it is to be compared with, measured in turns in one run, since a machine is never quiet; times by
themselves say little. What one thread does alone is measured in time of the processor, in which nobody else takes part. `python benchmarks/page.py NAME` measures one part anew."""
    loads = [f"{part.name} {kept[part.name]['load']:.1f}" for part in there]
    said.append(f"How many processes wanted the cores at the most, those of the part among them: {', '.join(loads)}.")
    absent = [part.name for part in PARTS if part.name not in kept]
    if absent:
        said.append(f"Not measured yet: {', '.join(absent)}. `make bench PARTS='{' '.join(absent)}'` does it.")
    return "\n\n".join([introduction, *said, *(part.section(kept[part.name]["results"]) for part in there)]) + "\n"


def figure(rows: Sequence[dict[str, Any]]) -> ChartFigure:
    """The time of a hop and the memory of a run, over N and over p."""
    kinds = list(dict.fromkeys(row["kind"] for row in rows))

    def chart(title: str, axis: str, fixed: tuple[str, int], value: str, label: str) -> Chart:
        asked = (row for row in rows if row[fixed[0]] == fixed[1] and not row["with_optimum"])
        chosen = sorted(asked, key=lambda row: row[axis])
        lines = [
            Series(kind, [row[axis] for row in chosen if row["kind"] == kind], [row[value] for row in chosen if row["kind"] == kind], place)  # type: ignore[arg-type]
            for place, kind in enumerate(kinds)
        ]  # fmt: skip
        if value == "most_mb":
            own = [row for row in chosen if row["kind"] == kinds[0]]
            lines.append(
                Series(
                    "1.5 times the data",
                    [row[axis] for row in own],
                    [MOST_MEMORY * row["data_mb"] for row in own],
                    len(kinds),
                    "dashed",
                )
            )  # type: ignore[arg-type]
        return Chart(title, "N" if axis == "agents" else "p", label, tuple(lines), log_x=True, log_y=True)

    over_n, over_p = ("agents", ("dim", 2)), ("dim", ("agents", 4))
    charts = (
        chart("A hop, p = 2", *over_n, "hop_ns", "nanoseconds"),
        chart("A hop, N = 4", *over_p, "hop_ns", "nanoseconds"),
        chart("Memory, p = 2", *over_n, "most_mb", "MB"),
        chart("Memory, N = 4", *over_p, "most_mb", "MB"),
    )
    return ChartFigure("growth", "How a hop and its memory grow", "", charts, columns=2)


def render(kept: dict[str, Any]) -> None:
    """Write the page and its figure."""
    PAGE.write_text(page(kept))
    if "growth" in kept:
        save_figure(draw_chart_figure(figure(kept["growth"]["results"][0])), FIGURE)


def main() -> None:
    """Measure what is asked for, keep it, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(part.name for part in PARTS))
    parser.add_argument("--render", action="store_true", help="measure nothing")
    parser.add_argument(
        "--before", type=Path, help="for first-answer, the src folder of another state to put beside this one"
    )
    options = parser.parse_args()
    unknown = set(options.parts) - {part.name for part in PARTS}
    if unknown:
        parser.error(
            f"There is no part {', '.join(sorted(unknown))}: there are {', '.join(part.name for part in PARTS)}."
        )
    found: dict[str, Any] = {}
    if not options.render:
        asked = [part for part in PARTS if not options.parts or part.name in options.parts]
        if options.before:
            other = ("--before", str(options.before.resolve()))
            asked = [
                replace(part, scripts=((*part.scripts[0], *other),)) if part.name == "first-answer" else part
                for part in asked
            ]
        found = measure(asked, UNFINISHED)
    # Read when all is measured: another run may have put its parts there meanwhile.
    kept = (json.loads(KEPT.read_text()) if KEPT.exists() else {}) | found
    if found:
        write(KEPT, kept)
    for name in found:
        (UNFINISHED / f"{name}.json").unlink()
    render(kept)


if __name__ == "__main__":
    main()
