"""simulate and compare on a file of rows, and tables that go to a pipe."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import roundelay as rl
from tests.cli.conftest import SMALL, Invoke

GENERATOR = np.random.default_rng(0)
FRAME = pd.DataFrame(GENERATOR.normal(size=(30, 3)), columns=["age", "dose", "days"])
FRAME.insert(1, "hospital", np.repeat(["Oslo", "Bergen", "Tromsø", "Bodø", "Narvik"], 6))
FRAME["cured"] = GENERATOR.integers(0, 2, 30)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    FRAME.to_csv(tmp_path / "rows.csv", index=False, sep=";")
    return tmp_path / "rows.csv"


def test_a_file_of_rows_is_simulated(invoke: Invoke, file: Path) -> None:
    said = invoke("simulate", "onepass", "--data", file, "--target", "days", "--site", "hospital", "--json")
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    features = FRAME[["age", "dose", "cured"]].to_numpy()
    np.testing.assert_allclose(told["token"], np.linalg.lstsq(features, FRAME["days"].to_numpy())[0], rtol=1e-9)
    assert told["problem"] == {"kind": "least-squares", "agents": 5, "samples": 6, "dim": 3, "file": str(file)}
    words = ("--problem", "logistic", "--data", file, "--target", "cured", "--site", "hospital", "--engine", "python")
    said = invoke("compare", "sealed-laps", "iadmm", "--seeds", "1", "--units", "300", *words)
    assert said.exit_code == 0 and "5 agents, 6 rows each, dimension 3" in said.stdout, said.output


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--target", "weeks", "--site", "hospital"), "no column 'weeks'"),
        (("--target", "hospital", "--site", "age"), "line 2 of the column 'hospital'"),
        (("--target", "days"), "one of two ways"),
        (("--target", "days", "--site", "hospital", "--split", "even"), "one of two ways"),
        (("--split", "even", "--agents", "5"), "say by --target which of its columns"),
        (("--target", "weeks", "--split", "even", "--agents", "5"), "no column 'weeks'"),
        (("--target", "days", "--split", "even", "--agents", "5"), "line 2 of the column 'hospital'"),
        (("--target", "days", "--split", "sizes:1,x"), "can't be 'x'"),
        (("--target", "days", "--split", "anyhow"), "use even, sizes, label, dirichlet"),
    ],
)
def test_a_file_that_can_not_be_used_is_refused_in_words(
    invoke: Invoke, file: Path, words: tuple[str], why: str
) -> None:
    said = invoke("simulate", "iadmm", "--data", file, *words)
    assert said.exit_code != 0 and why in " ".join(said.output.split()) and "Oslo" not in said.output


def test_rows_are_divided_by_each_seed_anew(invoke: Invoke, tmp_path: Path) -> None:
    numbers = FRAME.drop(columns="hospital")
    numbers.assign(cured=np.where(numbers.cured > 0, "yes", "no")).to_csv(tmp_path / "rows.csv", index=False)
    words = ("--data", tmp_path / "rows.csv", "--target", "cured", "--problem", "logistic", "--ridge", "0.1", "--json")
    shared = ("--split", "dirichlet:2", "--positive", "yes", "--agents", "3", "--seed", "4")
    said = invoke("simulate", "sealed-laps", *words, *shared)
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    divided = rl.split(numbers.drop(columns="cured"), numbers.cured, agents=3, how=rl.Dirichlet(2), seed=4, positive=1)
    np.testing.assert_allclose(told["token"], rl.Logistic(*divided, ridge=0.1).optimum, rtol=1e-6)
    assert told["data"] == "rows, 30 rows, 3 agents, Dirichlet(2), seed 4"
    assert told["problem"]["split"] == "Dirichlet(2)" and told["problem"]["rows"] == 30
    lines = [f"{row.days} 1:{row.age} 2:{row.dose}" for row in numbers.itertuples()]
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    words = (
        "--data",
        tmp_path / "rows.svm",
        "--split",
        "sizes:1,2,3",
        "--seeds",
        "2",
        "--units",
        "60",
        "--engine",
        "python",
    )
    said = invoke("compare", "sealed-laps", "iadmm", *words)
    assert said.exit_code == 0 and "least-squares: rows, 30 rows, 3 agents, sizes 1:2:3, dimension 2" in said.stdout, (
        said.output
    )
    said = invoke("simulate", "onepass", "--data", "sklearn:diabetes", "--split", "label", "--agents", "4")
    assert said.exit_code == 0 and "diabetes, 442 rows, 4 agents, by label, seed 0" in " ".join(said.stdout.split())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--split", "even"), "give it by --data"),
        (("--ridge", "1"), "give it by --data"),
        (("--data", "sklearn:moon", "--split", "even"), "There is no sklearn:moon: use sklearn:breast_cancer"),
        (("--data", "sklearn:iris", "--split", "even", "--target", "x"), "leave --target out"),
        (
            ("--data", "sklearn:iris", "--split", "even", "--problem", "logistic"),
            "3 different targets: say by --positive",
        ),
        (("--data", "sklearn:iris", "--split", "even", "--positive", "7"), "No row has the target '7'"),
        (("--data", "nowhere.svm", "--split", "even"), "There is no file nowhere.svm"),
        (("--data", "sklearn:iris", "--split", "even", "--agents", "151"), "150 rows can't be divided over 151 agents"),
    ],
)
def test_what_can_not_be_divided_is_refused_in_words(invoke: Invoke, words: tuple[str, ...], why: str) -> None:
    said = invoke("simulate", "iadmm", *words)
    assert said.exit_code != 0 and why in " ".join(said.output.split()), said.output


def test_who_reads_the_first_lines_alone_is_not_told_of_a_file(shell: Invoke) -> None:
    """As in `roundelay simulate … | head -1`."""
    words = [sys.executable, "-m", "roundelay.cli", "simulate", "iadmm", *map(str, SMALL), "--json"]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        said = subprocess.run(words, stdout=gone, stderr=subprocess.PIPE, text=True, check=False)
    assert said.returncode == 141 and "Broken pipe" not in said.stderr and "can't be used" not in said.stderr
    whole = shell(*words[3:])
    made = json.loads(whole.stdout)["provenance"]
    assert made["command"] == f"python -m roundelay.cli {' '.join(words[3:])}" and "/" not in str(made)


@pytest.mark.parametrize("columns", [None, "80"], ids=["pipe", "narrow"])
def test_a_table_cuts_no_exponent(
    invoke: Invoke, tmp_path: Path, columns: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False) if columns is None else monkeypatch.setenv("COLUMNS", columns)
    problem, network = rl.paper_least_squares(5, 6, 2), rl.ring(5)
    run = rl.simulate(rl.PIADMM1(), problem, network, 200, transcript=True, engine="python", progress=False)
    said = invoke("audit", run.save(tmp_path / "run.npz"))
    assert said.exit_code == 0, said.output
    leaks = rl.audit(rl.load_run(tmp_path / "run.npz")).leaks
    lines = [line for line in said.stdout.splitlines() if "│" in line]
    assert columns is not None or len(lines) == len(leaks)
    for leak in leaks:
        for number in (leak.at_end, leak.guess, leak.residual):
            assert not np.isfinite(number) or any(f"{number:.1e}" in line for line in lines)
