"""The tutorials run as programs, from a folder that is not theirs; what they claim they check themselves, and stop where it does not hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "tutorials"
# What each leaves behind, and a sentence that it comes to.
LEAVES = {
    "plot_researcher": (("comparison.pdf", "comparison.tex", "comparison.png"), "Every single one's answers could be any others"),
    "plot_consortium": (("report.html", "coefficients.png"), "All 4 sites have signed this model"),
    "plot_officer": (("attacks.png",), "so Tromso does not take part"),
}  # fmt: skip


def test_every_tutorial_is_run() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(LEAVES)


@pytest.mark.parametrize("name", LEAVES)
def test_a_tutorial_runs_and_holds_what_it_says(name: str, tmp_path: Path) -> None:
    for package in ("grpc", "dp_accounting"):
        pytest.importorskip(package, reason="the tutorials need the extras ring and privacy")
    command = [sys.executable, "-W", "error", str(FOLDER / f"{name}.py")]
    environment = os.environ | {"MPLBACKEND": "Agg"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    left, sentence = LEAVES[name]
    assert sentence.lower() in " ".join(done.stdout.split()).lower(), done.stdout
    for file in left:
        assert (tmp_path / "out" / name.removeprefix("plot_") / file).stat().st_size > 1000
