"""CONTRIBUTING.md is followed to the letter, in a package outside the project: what it adds runs everywhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "CONTRIBUTING.md"

METHODS = {
    "RestlessADMM(start=parts.ConstantStart(0.5), defence=parts.BlurredContribution(0.1))": "hops",
    "PlainStep()": "hops",
    "PlainGossip()": "iterations",
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with somebody's package as pip would have put it there: the module of the page, and its entry point."""
    folder = tmp_path_factory.mktemp("elsewhere")
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    (folder / "hospital_parts.py").write_text("\n\n".join(blocks), encoding="utf-8")
    about = folder / "hospital_parts-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hospital-parts\nVersion: 1.0\n")
    table = re.findall(r"```toml\n\[project\.entry-points\.(\w+)\]\n(.*?)```", page, re.S)
    assert len(table) == 1
    (about / "entry_points.txt").write_text(f"[{table[0][0]}]\n" + table[0][1].replace('"', ""))
    return folder


def run(package: Path, *command: str, folder: Path | None = None) -> str:
    """What a fresh interpreter that has the package says."""
    settings = os.environ | {"PYTHONPATH": str(package)}
    said = subprocess.run(
        [sys.executable, *command], env=settings, cwd=folder or package, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


def test_methods_run_in_both_engines_save_load_and_tune(package: Path, tmp_path: Path) -> None:
    script = f"""
import numpy as np
import roundelay as rl, hospital_parts as parts
problem, network = rl.paper_least_squares(agents=5, samples=10), rl.ring(5)
for text, noun in {METHODS!r}.items():
    method = eval("parts." + text)
    python, compiled = (
        rl.simulate(method, problem, network, engine=engine, progress=False, **{{noun: 400}})
        for engine in ("python", "compiled")
    )
    assert compiled.engine == "compiled" and np.abs(python.x - compiled.x).max() < 1e-12, text
    assert python.history["error"].iloc[-1] < 0.05, (text, python.history["error"].iloc[-1])
    path = compiled.save("run.npz")
    assert rl.load_run(path).algorithm == method, text
    tuned = rl.tune(method, problem, network, seeds=[0], units=2_000, evaluations=3, engine="python", progress=False)
    assert type(tuned.algorithm) is type(method)
"""
    run(package, "-c", script, folder=tmp_path)


def test_a_problem_runs_in_both_engines_and_its_slope_is_that_of_its_loss(package: Path) -> None:
    script = """
import numpy as np
import roundelay as rl, hospital_parts as parts
generator = np.random.default_rng(0)
features, targets = generator.normal(size=(5, 12, 2)), generator.normal(size=(5, 12))
problem, network = parts.PseudoHuber(features, targets), rl.ring(5)
x, step = generator.normal(size=2), 1e-6 * np.eye(2)
slope = [(problem.value(0, x + d) - problem.value(0, x - d)) / 2e-6 for d in step]
assert np.allclose(slope, problem.gradient(0, x), atol=1e-8)
for engine in ("python", "compiled"):
    run = rl.simulate(rl.IADMM(rho=0.3), problem, network, hops=1_000, engine=engine, progress=False)
    assert run.engine == engine and np.abs(run.x - problem.optimum).max() < 1e-9
"""
    run(package, "-c", script)


def test_an_audit_runs_the_attack_of_the_package(package: Path) -> None:
    script = """
import roundelay as rl, hospital_parts as parts
problem, network = rl.paper_least_squares(agents=5, samples=10), rl.ring(5)
method = parts.RestlessADMM()
run = rl.simulate(method, problem, network, hops=101, transcript=True, engine="python", progress=False)
found = rl.audit(run, observer="neighbours", agent=1)
assert "last token" in str(found.table["attack"].tolist()), found
"""
    run(package, "-c", script)


def test_its_words_are_known_on_the_command_line(package: Path) -> None:
    said = run(
        package, "-m", "roundelay.cli", "simulate", "restlessadmm", "--set", "start=constant:0.5", "--set",
        "defence=blur:0.1", "--agents", "8", "--density", "0.6", "--hops", "300", "--engine", "python",
    )  # fmt: skip
    assert "restless ADMM" in said
    assert "takes 80 bytes" in run(package, "-m", "roundelay.cli", "hop-cost", "--dim", "10")


def test_a_ring_of_sites_runs_it(package: Path, tmp_path: Path) -> None:
    script = """
from pathlib import Path
import numpy as np
import roundelay as rl, hospital_parts as parts
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.site.rehearsal import fit_by_all_others, prepare_ring
from roundelay.cli.ring.up import run_all

if __name__ == "__main__":
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(60, 3))
    rows[:, 2] += rows[:, :2] @ [1.0, -2.0]
    header, texts = ["age", "dose", "effect"], [[repr(float(cell)) for cell in row] for row in rows]
    method = parts.RestlessADMM(rho=0.3, start=parts.ConstantStart(0.5), defence=parts.BlurredContribution(0.01))
    sites = {"Oslo": texts[:10], "Bergen": texts[10:30], "Narvik": texts[30:]}
    fit = fit_by_all_others(header, "effect", "pseudo_huber")
    ring = prepare_ring(Path("ring"), header, sites, fit, method, Stopping(1e-8))
    run_all(ring)
    features = np.column_stack([rows[:, :2], np.ones(60)])
    pooled = parts.PseudoHuber([features], [rows[:, 2]]).optimum
    for stored in ring.models():
        model = [*(value for _, value in stored.model.coefficients), stored.model.intercept]
        assert np.abs(np.array(model) - pooled).max() < 1e-6, (model, pooled)
"""
    (tmp_path / "ring.py").write_text(script)
    run(package, "ring.py", folder=tmp_path)
