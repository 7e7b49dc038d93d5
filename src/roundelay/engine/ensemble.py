"""Many seeds at once, and the bands they give."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roundelay.engine.checks import the_seeds
from roundelay.engine.drive import Interrupt
from roundelay.engine.result import Run
from roundelay.kernels import Vector
from roundelay.shown.notebook import View
from roundelay.shown.numbers import plural
from roundelay.shown.show import Shown
from roundelay.shown.table import table_of
from roundelay.shown.watched import Report, reporting

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Ensemble(Shown):
    """One run for each seed, in the order of the seeds; fewer where it was interrupted."""

    runs: tuple[Run, ...]

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(run.name for run in self.runs))
        return f"Ensemble({plural(len(self), 'run')} of {names or 'nothing'})"

    def view(self) -> View:
        """A row for each seed."""
        import pandas as pd

        rows = [
            {"seed": run.seed, "ended by": run.stop, "steps": run.steps} | dict(run.history.iloc[-1, 1:])
            for run in self.runs
        ]
        curves = tuple(run.curve(f"seed {run.seed}") for run in self.runs[:5])
        return View(repr(self), (table_of(pd.DataFrame(rows), "ensemble"),) if rows else (), curves)

    def made(self) -> dict[str, Any]:
        """Its methods with all parameters, and its seeds."""
        return {
            "parameters": "; ".join(dict.fromkeys(str(run.algorithm) for run in self.runs)),
            "seeds": ", ".join(str(run.seed) for run in self.runs),
            "data": "; ".join(dict.fromkeys(filter(None, (run.data_in_words for run in self.runs)))),
        }

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        """The runs in the order of the seeds."""
        return iter(self.runs)

    def __getitem__(self, index: int) -> Run:
        """One run."""
        return self.runs[index]

    def bands(self, column: str = "error", low: float = 0.1, high: float = 0.9, over: str = "units") -> pd.DataFrame:
        """The median of a history column over the seeds, between two quantiles, over units, bytes or seconds.

        A run that has ended keeps its last value.
        """
        import pandas as pd

        cost = np.unique(np.concatenate([run.column(over) for run in self.runs]))
        curves = np.array([_curve(run, column, over, cost) for run in self.runs])
        quantiles = np.quantile(curves, [low, 0.5, high], axis=0)
        return pd.DataFrame({over: cost, "low": quantiles[0], "median": quantiles[1], "high": quantiles[2]})

    def extend(self, steps: int) -> Ensemble:
        """Every run with so many more hops or iterations."""
        return Ensemble(tuple(run.extend(steps) for run in self.runs))

    def save(self, folder: str | Path) -> Path:
        """Save every run to a file of its own, run-SEED.npz, in a folder, which `roundelay.load_ensemble` reads again."""
        folder = Path(folder)
        for run in self.runs:
            run.save(folder / f"run-{run.seed}.npz")
        return folder

    def units_to(self, error: float, column: str = "error") -> Vector:
        """For each seed, how many units it took until the error stayed at or below this value."""
        return np.array([run.units_to(error, column) for run in self.runs])


def load_ensemble(folder: str | Path) -> Ensemble:
    """Read the runs that `ensemble.save` wrote, in the order of their seeds."""
    from roundelay.engine.storage import load_run

    runs = [load_run(path) for path in Path(folder).glob("run-*.npz")]
    if not runs:
        raise ValueError(f"There are no saved runs in {folder}: give the folder of a saved ensemble.")
    return Ensemble(tuple(sorted(runs, key=lambda run: run.seed)))


def _curve(run: Run, column: str, over: str, cost: Vector) -> Vector:
    """A history column on a common axis: the last value that was recorded at or before each point."""
    rows = np.clip(np.searchsorted(run.column(over), cost, side="right") - 1, 0, None)
    return run.column(column)[rows]


def run_seeds(
    one: Callable[[int], Run], seeds: Sequence[int], name: str, progress: Report | bool, interrupt: Interrupt
) -> Ensemble:
    """One run for each seed, side by side in threads, since compiled code frees the interpreter.

    Runs of the Python engine take turns on one core. An interrupt ends the runs that are under way, drops those
    that had not begun, and what there is comes back.
    """
    keys = the_seeds(seeds)
    runs: list[Run] = []
    with (
        reporting(progress, f"{name}, {len(keys)} seeds") as report,
        ThreadPoolExecutor(max_workers=os.cpu_count()) as pool,
    ):
        futures = [pool.submit(one, seed) for seed in keys]
        for future in futures:
            while not interrupt.asked and not future.done():
                wait([future], timeout=0.1)
            if interrupt.asked:
                for other in futures:
                    other.cancel()
            if not future.cancelled():
                runs.append(future.result())
                report(len(runs), len(keys))
    return Ensemble(tuple(runs))
