"""The long forms of the chaos tests: `python -m tests.agents.soak [chaos] [sealed] [fits] [regressions] [links] [schedules] [sweep] [messy]`, by default all of them."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

from roundelay.agents.protocol.station import Point
from tests.agents import bad_links, chaos, regression_fits, sealed_fits, sealed_rings
from tests.agents.test_schedules import crashes_change_nothing, epochs_hold, the_minimiser_is_reached
from tests.agents.test_sealed_chaos import crashes_change_no_word
from tests.comparison import sweep_soak
from tests.examples.test_examples import example
from tests.regression.studies import SPLITS, STUDIES

SEED = 2024


def soak_chaos(folder: Path) -> None:
    """Death at every point, and from outside."""
    kills = chaos.chaos(folder, chaos.LONG, SEED)
    print(kills.table())
    assert all(kills.at[point] >= 10 for point in Point) and kills.total >= 200


def soak_sealed(folder: Path) -> None:
    """The same for sealed laps, and over bad links."""
    kills = sealed_rings.killed(folder / "kills", chaos.LONG, SEED)
    print(kills.table())
    assert all(kills.at[point] >= 10 for point in Point) and kills.total >= 200
    tried = sealed_rings.SEALED
    _tell("frames", bad_links.over_bad_frames(folder / "frames", bad_links.LONG, SEED, tried))
    _tell("bytes", bad_links.over_bad_bytes(folder / "bytes", bad_links.LONG, SEED, tried=tried))


def soak_fits(folder: Path) -> None:
    """Tables of every kind, each by five processes, against the fit on the pooled rows."""
    for number, case in enumerate(sealed_fits.cases()):
        difference, laps = sealed_fits.fitted(folder / str(number), case)
        print(f"{case.name:>40} {laps:3} laps, largest difference {difference:.0e}", flush=True)


def soak_regressions(folder: Path) -> None:
    """Every data set that ships with the libraries, split in every way, by a ring of processes against that library's fit."""
    worst: Counter[str] = Counter()
    for number, (case, how) in enumerate(product(STUDIES, SPLITS)):
        found, laps = regression_fits.compared(folder / str(number), case, how)
        worst |= Counter({what: apart for what, apart in found.items() if apart})
        told = ", ".join(f"{what} {apart:.0e}" for what, apart in found.items())
        print(f"{case.name:>16}, {how:>8} {laps:3} laps: {told}", flush=True)
        assert max(found.values()) < 1e-6, (case.name, how)
    print("farthest of all: " + ", ".join(f"{what} {apart:.0e}" for what, apart in worst.items()))


def soak_links(folder: Path) -> None:
    """Bytes and frames that do not arrive as they were sent."""
    _tell("bytes", bad_links.over_bad_bytes(folder / "bytes", bad_links.LONG, SEED))
    _tell("frames", bad_links.over_bad_frames(folder / "frames", bad_links.LONG, SEED))


def soak_schedules(folder: Path) -> None:
    """Random orders of events, thousands of them."""
    with ProcessPoolExecutor() as pool:
        counts = (
            (crashes_change_nothing, 200), (crashes_change_no_word, 400), (epochs_hold, 5000), (the_minimiser_is_reached, 100),
        )  # fmt: skip
        for check, count in counts:
            done = sum(1 for _ in pool.map(check, range(count), chunksize=10))
            print(f"{check.__name__:>25} {done:6} schedules")


def soak_sweep(folder: Path) -> None:
    """2,000 tasks on a Dask cluster whose workers, scheduler and caller are killed."""
    sweep_soak.killed(folder, lambda words: print(words, flush=True))


def soak_messy(folder: Path) -> None:
    """Four hospitals from raw files to a signed report; the script stops where a fault is not refused in words, or a command fails."""
    page = example("messy_hospitals").main(folder).read_text("utf-8")
    assert "over 3" in page and "C(smoker)[T.current]" in page and "Narvik" in page


def _tell(what: str, done: Counter[str]) -> None:
    print(f"harm done to {what}: " + ", ".join(f"{name} {count}" for name, count in sorted(done.items())))


PARTS: dict[str, Callable[[Path], None]] = {
    "chaos": soak_chaos,
    "sealed": soak_sealed,
    "fits": soak_fits,
    "regressions": soak_regressions,
    "links": soak_links,
    "schedules": soak_schedules,
    "sweep": soak_sweep,
    "messy": soak_messy,
}


def main(names: list[str]) -> None:
    """Run the parts that are named; the first thing that is wrong ends it."""
    for name in names or list(PARTS):
        with tempfile.TemporaryDirectory(prefix="roundelay-soak-") as folder:
            began = time.monotonic()
            print(f"== {name}", flush=True)
            PARTS[name](Path(folder))
            print(f"   {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
