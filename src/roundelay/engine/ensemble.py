"""Many seeds at once, and the bands they give."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from roundelay.engine.progress import Bar, Report
from roundelay.engine.run import Run
from roundelay.kernels import Vector

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Ensemble:
    """One run for each seed, in the order of the seeds."""

    runs: tuple[Run, ...]

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        """The runs in the order of the seeds."""
        return iter(self.runs)

    def __getitem__(self, index: int) -> Run:
        """One run."""
        return self.runs[index]

    def bands(self, column: str = "error", low: float = 0.1, high: float = 0.9) -> pd.DataFrame:
        """The median of a history column over the seeds at each number of units, between two quantiles."""
        import pandas as pd

        units = np.unique(np.concatenate([run.history["units"].to_numpy() for run in self.runs]))
        curves = np.array([_curve(run, column, units) for run in self.runs])
        quantiles = np.quantile(curves, [low, 0.5, high], axis=0)
        return pd.DataFrame({"units": units, "low": quantiles[0], "median": quantiles[1], "high": quantiles[2]})

    def units_to(self, error: float, column: str = "error") -> Vector:
        """For each seed, how many units it took until the error stayed at or below this value."""
        return np.array([run.units_to(error, column) for run in self.runs])


def _curve(run: Run, column: str, units: Vector) -> Vector:
    """A history column on a common axis: the last value that was recorded at or before each point."""
    own = run.history["units"].to_numpy()
    rows = np.clip(np.searchsorted(own, units, side="right") - 1, 0, None)
    return run.history[column].to_numpy(np.float64)[rows]


def run_seeds(one: Callable[[int], Run], seeds: Sequence[int], name: str, progress: Report | bool) -> Ensemble:
    """One run for each seed. Compiled runs go side by side in threads, since compiled code frees the interpreter."""
    seeds = tuple(seeds)
    if not seeds:
        raise ValueError("seeds is empty: give at least one seed.")
    bar = Bar(f"{name}, {len(seeds)} seeds") if progress is True else None
    report = bar if bar is not None else (progress if callable(progress) else None)
    runs: list[Run] = [one(seeds[0])]  # alone, so that the compilation happens once
    if runs[0].stop == "interrupted":
        return Ensemble(tuple(runs))
    try:
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            for done, run in enumerate(pool.map(one, seeds[1:]), start=1):
                runs.append(run)
                if report is not None:
                    report(done + 1, len(seeds))
    finally:
        if bar is not None:
            bar.close()
    return Ensemble(tuple(runs))
