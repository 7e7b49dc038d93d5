import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.comparison import reached
from roundelay.comparison.costs import brief
from roundelay.paper import DEMO_METHODS, run_demo
from tests.cli.conftest import Invoke

QUICK = ("--seeds", "2", "--hops", "300", "--engine", "python")
NAMES = ["I-ADMM", "W-ADMM", "PI-ADMM1", "PI-ADMM2"]


def test_json_has_a_row_for_each_method_and_the_figure_is_there(shell: Invoke, tmp_path: Path) -> None:
    said = shell("demo", *QUICK, "--out", tmp_path / "out", "--json")
    assert said.returncode == 0, said.stderr
    told = json.loads(said.stdout)
    assert [row["method"] for row in told["methods"]] == NAMES
    assert told["figure"] == str(tmp_path / "out" / "demo.png")
    assert (tmp_path / "out" / "demo.png").read_bytes().startswith(b"\x89PNG")
    for name in NAMES:
        assert f"{name}: 2 of 2 seeds done" in said.stderr


def test_the_table_says_what_run_demo_found(invoke: Invoke, tmp_path: Path) -> None:
    said = invoke("demo", *QUICK, "--out", tmp_path)
    assert said.exit_code == 0, said.output
    demo = run_demo(range(2), 300, engine="python")
    rows = {line.split("│")[1].strip(): line for line in said.stdout.splitlines() if line.startswith("│")}
    for row in demo.rows:
        assert brief(row.final_error) in rows[row.method]
        assert "not in 300" in rows[row.method]
    assert str(tmp_path / "demo.png") in said.stdout.replace("\n", "")


def test_rows_are_medians_over_seeds_with_their_own_data() -> None:
    demo = run_demo(range(3), 400, engine="python", methods=DEMO_METHODS[:1])
    (row,) = demo.rows
    runs = [
        rl.simulate(
            rl.IADMM(rho=10.0), rl.paper_least_squares(seed=seed), rl.random_network(100, 0.3, seed=seed), 400,
            seed=seed, engine="python",
        )
        for seed in range(3)
    ]  # fmt: skip
    assert row.final_error == np.median([run.history["error"].iloc[-1] for run in runs])
    cost = reached(demo.ensembles["I-ADMM"], 0.05)
    assert cost.cost == np.median([run.units_to(0.05) for run in runs])
    assert cost.words == f"{cost.cost:,.0f}"


def test_progress_is_told_from_the_first_method_on() -> None:
    told: list[tuple[str, int, int]] = []
    run_demo(range(2), 10, lambda *words: told.append(words), engine="python")
    for name in NAMES:
        own = [(done, total) for method, done, total in told if method == name]
        assert own[0] == (0, 2) and own[-1] == (2, 2)


def test_compiling_alone_leaves_the_code_on_disk(tmp_path: Path) -> None:
    code = (
        "from roundelay.paper import DEMO_METHODS, compile_methods\n"
        "if __name__ == '__main__':\n    compile_methods(DEMO_METHODS[:1], print)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    folder = tmp_path / "cache"
    environment = {**os.environ, "ROUNDELAY_CACHE": str(folder)}
    said = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout == "I-ADMM\n"
    assert list(folder.rglob("*.nbc")), "numba left no compiled code"


def test_compile_only_compiles_the_four_and_runs_nothing(shell: Invoke, tmp_path: Path) -> None:
    said = shell("demo", "--compile-only", "--out", tmp_path / "out", "--json")
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout) == {"compiled": NAMES}
    assert "Compiling: 4 of 4 methods done" in said.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--seeds", "--hops"])
def test_none_is_too_few(invoke: Invoke, option: str) -> None:
    said = invoke("demo", option, "0")
    assert said.exit_code == 2
    assert said.stdout == "" and option in said.stderr
