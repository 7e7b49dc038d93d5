"""simulate and compare on a file of rows, and tables that go to a pipe."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import roundelay as rl
from tests.cli.conftest import Invoke

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
        (("--target", "days"), "belong together"),
    ],
)
def test_a_file_that_can_not_be_used_is_refused_in_words(
    invoke: Invoke, file: Path, words: tuple[str], why: str
) -> None:
    said = invoke("simulate", "iadmm", "--data", file, *words)
    assert said.exit_code != 0 and why in " ".join(said.output.split()) and "Oslo" not in said.output


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
