"""The picture of an agent's page in the README: a real ring of five sites, with the privacy meter's numbers.

PYTHONPATH=. python scripts/page_picture.py docs/figures/page.png
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.browser import open_browser

from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.site.rehearsal import fit_by_all_others, prepare_ring, uneven_parts
from roundelay.cli.ring.demo import diabetes
from roundelay.cli.ring.planning import algorithm_for, usual_tolerance
from roundelay.cli.ring.up import NAMES


def main(path: str) -> None:
    """Let the ring fit its model, wait until the meter has measured, and take the picture."""
    header, rows = diabetes()
    parts = [[rows[row] for row in part] for part in uneven_parts(len(rows), 5, seed=0)]
    task = fit_by_all_others(header, "progression", "least_squares")
    with tempfile.TemporaryDirectory() as folder:
        sites = dict(zip(NAMES, parts, strict=False))
        method = algorithm_for(task, len(sites), "SealedLaps", None, ())
        stopping = Stopping(usual_tolerance(method))
        ring = prepare_ring(Path(folder) / "ring", header, sites, task, method, stopping)
        try:
            for seat in ring.seats:
                ring.start(seat, "--stay")  # so that all links are up while the picture is taken
            first = ring.seats[0]
            while not (ring.status_of(first).get("outcome") and ring.status_of(first)["privacy"]):
                time.sleep(0.2)
            with open_browser(Path(folder) / "profile") as browser:
                browser.set_window_size(1185, 1500)
                browser.get(ring.page_of(first))
                time.sleep(3.0)
                height = browser.execute_script("return document.documentElement.scrollHeight")
                browser.set_window_size(1185, height + 300)
                time.sleep(1.0)
                browser.find_element("tag name", "body").screenshot(path)
        finally:
            ring.stop()


if __name__ == "__main__":
    main(sys.argv[1])
