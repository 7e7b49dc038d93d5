"""How what stands in a file was made: the same words in every kind of file, and no name of a machine."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from pyarrow import parquet

import roundelay as rl
from roundelay.shown.provenance import before_csv, command, commented, provenance


@pytest.fixture(autouse=True)
def called(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "argv", ["/home/somebody/.venv/bin/roundelay", "compare", "iadmm", "--set", "a b"])
    return "roundelay compare iadmm --set 'a b'"


@pytest.fixture(scope="module")
def run() -> rl.Run:
    return rl.simulate(
        rl.IADMM(rho=7.5), rl.paper_least_squares(4, 5), rl.ring(4), 40, engine="python", progress=False, seed=3
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/usr/bin/roundelay", "field"], "roundelay field"),
        (["/home/a/mine.py", "--n", "3"], "python mine.py --n 3"),
        (["-c"], "python"),
        ([""], "python"),
        ([], "python"),
    ],
)
def test_a_command_is_one_to_repeat(monkeypatch: pytest.MonkeyPatch, words: list[str], expected: str) -> None:
    monkeypatch.setattr(sys, "argv", words)
    assert command() == expected


def test_pictures_say_how_they_were_made(run: rl.Run, tmp_path: Path, called: str) -> None:
    figure = rl.plot_convergence(run)
    with Image.open(rl.save_figure(figure, tmp_path / "a.png")) as picture:
        said = dict(picture.text)  # type: ignore[attr-defined]
    assert said["Command"] == called and "rho=7.5" in said["Parameters"] and said["Seeds"] == "3"
    assert f"numpy {np.__version__}" in said["Versions"] and said["Software"] == f"roundelay {rl.__version__}"
    pdf = rl.save_figure(figure, tmp_path / "a.pdf").read_bytes().decode("latin-1")
    assert f"/Subject ({called})" in pdf
    keywords = re.search(r"/Keywords \((.*?)(?<!\\)\)\s*/|/Keywords \((.*)\)", pdf)
    assert keywords and "rho=7.5" in keywords[0]
    svg = rl.save_figure(figure, tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "rho=7.5" in svg and "roundelay compare iadmm" in svg
    assert "somebody" not in pdf + svg + str(said) and not re.search(r"CreationDate|<dc:date>", pdf + svg)


def test_a_csv_file_says_how_it_was_made_and_how_to_read_it(tmp_path: Path, called: str) -> None:
    frame = pd.DataFrame({"name": ["a # b", "c"], "x": [1.5, 2.5]})
    path = tmp_path / "a.csv"
    path.write_text(before_csv(provenance(seeds="1, 2")) + frame.to_csv(index=False))
    comments = [line for line in path.read_text().splitlines() if line.startswith("# ")]
    assert f"# command: {called}" in comments and "# seeds: 1, 2" in comments
    (call,) = re.findall(r"# to read: pandas\.read_csv\(path, skiprows=(\d+)\)", "\n".join(comments))
    pd.testing.assert_frame_equal(pd.read_csv(path, skiprows=int(call)), frame)


def test_no_word_ends_its_comment() -> None:
    assert commented({"seeds": "1\n2\r\n\x85 3\u2028 4"}) == "# seeds: 1 2 3 4\n"


def test_saved_runs_and_rows_of_sweeps_say_it_too(run: rl.Run, tmp_path: Path, called: str) -> None:
    with np.load(run.save(tmp_path / "run.npz")) as saved:
        said = json.loads(str(saved["about"]))["provenance"]
    assert said["command"] == called and said["seeds"] == "3"
    rl.sweep(rl.IADMM(), rl.paper_least_squares(4, 5), rl.ring(4), seeds=[0], hops=9, engine="python", processes=0, folder=tmp_path / "rows", progress=False)  # fmt: skip
    (row,) = (tmp_path / "rows").iterdir()
    assert parquet.read_metadata(row).metadata[b"command"].decode() == called
    assert pd.read_parquet(row)["failed"].isna().all() or (pd.read_parquet(row)["failed"] == "").all()


@pytest.mark.usefixtures("in_a_notebook")
def test_a_notebook_s_command_is_none_that_anybody_could_repeat() -> None:
    assert command() == "a notebook"


def test_a_program_is_no_notebook_for_having_imported_its_kernel(monkeypatch: pytest.MonkeyPatch, called: str) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    assert command() == called
