"""The pictures of an agent's page and of a report, in the README and in docs: a real ring of five sites that fits a regression.

PYTHONPATH=. python scripts/page_picture.py docs/figures/page.png docs/figures/report.png
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from selenium.webdriver import Chrome
from tests.browser import open_browser

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping, Task
from roundelay.agents.agreement.ringfile import read_ring
from roundelay.agents.data.loaded import LoadedModel
from roundelay.agents.site.rehearsal import prepare_ring, uneven_parts
from roundelay.agents.site.verification import verify_model
from roundelay.cli.ring.demo import diabetes
from roundelay.cli.ring.planning import usual_tolerance
from roundelay.cli.ring.up import NAMES
from roundelay.regression.columns import columns_in
from roundelay.regression.regression import Regression

FORMULA = "progression ~ age + C(sex) * bmi + bp + s5"


def main(page: str, report: str) -> None:
    """Let the ring fit its model, wait until the meter has measured, and take the pictures."""
    header, rows = diabetes()
    place = header.index("sex")
    rows = [
        [("female", "male")[float(cell) == 2.0] if at == place else cell for at, cell in enumerate(row)] for row in rows
    ]
    parts = [[rows[row] for row in part] for part in uneven_parts(len(rows), 5, seed=0)]
    with tempfile.TemporaryDirectory() as folder:
        sites = dict(zip(NAMES, parts, strict=False))
        method = rl.SealedLaps(wide=True)
        ring = prepare_ring(
            Path(folder) / "ring", header, sites, task_of(header), method, Stopping(usual_tolerance(method))
        )
        try:
            for seat in ring.seats:
                ring.start(seat, "--stay")
            first = ring.seats[0]
            while not (ring.status_of(first).get("has_model") and ring.status_of(first)["privacy"]):
                time.sleep(0.2)
            with open_browser(Path(folder) / "profile") as browser:
                take(browser, ring.page_of(first), page)
                document = Path(folder) / "report.html"
                signed = read_ring((Path(folder) / "ring" / "ring.toml").read_bytes(), "the ring file")
                document.write_text(LoadedModel(verify_model(first.model, signed)).report("verified"), encoding="utf-8")
                take(browser, document.as_uri(), report)
        finally:
            ring.stop()


def task_of(header: list[str]) -> Task:
    """The regression, over the columns that it names."""
    named = ("age", "sex", "bmi", "bp", "s5", "progression")
    levels = {"sex": ("levels", ("female", "male"))}
    found = [column for column in columns_in(header, "the data") if column.name in named]
    columns = tuple(type(one)(one.name, one.unit, *levels.get(one.name, ())) for one in found)  # type: ignore[arg-type]
    return Task("regression", regression=Regression(FORMULA, columns, by="sex"))


def take(browser: Chrome, address: str, path: str) -> None:
    """The whole page as a picture."""
    browser.set_window_size(1185, 1500)
    browser.get(address)
    time.sleep(3.0)
    height = browser.execute_script("return document.documentElement.scrollHeight")
    browser.set_window_size(1185, height + 300)
    time.sleep(1.0)
    browser.find_element("tag name", "body").screenshot(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
