"""A whole ring by the commands that operators use, one process a site."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from roundelay.agents.data.models import load_model
from roundelay.agents.site.rehearsal import uneven_parts
from roundelay.agents.site.taking_part import read_privacy
from roundelay.cli.app import app

RIDGE = 0.05


def roundelay(*words: str, seconds: float = 600.0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "roundelay.cli", *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False
    )


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    features = rng.normal([50.0, 1.7], [12.0, 0.1], size=(90, 2))
    chance = 1.0 / (1.0 + np.exp(-(features[:, 0] - 50.0) / 12.0))
    labels = (rng.random(90) < chance).astype(int)
    with (tmp_path / "patients.csv").open("w", newline="") as file:
        rows = [[*map(repr, map(float, row)), int(label)] for row, label in zip(features, labels, strict=True)]
        csv.writer(file).writerows([["age [years]", "length [m]", "ill"], *rows])
    return tmp_path / "patients.csv"


def test_a_ring_of_three_fits_what_the_pooled_data_give(patients: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ring"
    said = roundelay(
        "ring", "up", "--agents", "3", "--data", str(patients), "--target", "ill", "--task", "logistic",
        "--ridge", str(RIDGE), "--folder", str(folder),
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert said.stdout.count("The 3 sites have found the best fit after") == 3
    table = np.genfromtxt(patients, delimiter=",", skip_header=1)
    mean, deviation = table[:, :2].mean(axis=0), table[:, :2].std(axis=0)
    # The ring's ridge also shrinks the intercept, so that it is a column like any other.
    design = np.column_stack([(table[:, :2] - mean) / deviation, np.ones(len(table))])
    pooled = LogisticRegression(C=1.0 / (RIDGE * len(table)), fit_intercept=False, tol=1e-14, solver="newton-cholesky")
    expected = pooled.fit(design, table[:, 2]).coef_[0]
    slopes = expected[:2] / deviation
    for name in ("Oslo", "Bergen", "Tromso"):
        stored = load_model(folder / name / "model.json")
        assert [feature for feature, _ in stored.model.coefficients] == ["age [years]", "length [m]"]
        assert np.allclose([value for _, value in stored.model.coefficients], slopes, rtol=0.0, atol=1e-8)
        assert stored.model.intercept == pytest.approx(expected[2] - slopes @ mean, abs=1e-6)
    check_logs(folder, table)
    privacy = read_privacy(folder / "Oslo", stored.about.run)
    assert privacy is not None and privacy.sentence.endswith(".")
    again = roundelay("ring", "up", "--data", str(patients), "--target", "ill", "--folder", str(folder))
    assert again.returncode == 2 and "exists already" in again.stderr


def check_logs(folder: Path, table: np.ndarray) -> None:
    """Every line is JSON, and no number of the data stands in any of them."""
    for path in folder.glob("*/runs/*/agent.log"):
        text = path.read_text()
        events = [json.loads(line)["event"] for line in text.splitlines()]
        assert "epoch" in events and "link up" in events
        assert not any(repr(float(value)) in text for value in table[:, :2].ravel())


def here(*words: str) -> Result:
    """The same in this process."""
    return CliRunner().invoke(app, list(words))


def test_an_agent_refuses_a_ring_file_that_its_operator_has_not_accepted(patients: Path, tmp_path: Path) -> None:
    for name in ("Oslo", "Bergen"):
        made = here(
            "ring", "init", "--folder", str(tmp_path / name), "--name", name, "--address", "127.0.0.1:7443",
            "--data", str(patients), "--target", "ill",
        )  # fmt: skip
        assert made.exit_code == 0, made.stderr
    (tmp_path / "Oslo" / "policy.toml").write_text("least_members = 2\n")
    invitations = [str(path) for path in tmp_path.rglob("*.invitation.toml")]
    assert len(invitations) == 2
    ring = tmp_path / "ring.toml"
    planned = here(
        "ring", "plan", *invitations, "--folder", str(tmp_path / "Oslo"), "--task", "logistic", "--target", "ill",
        "--out", str(ring),
    )  # fmt: skip
    assert planned.exit_code == 0, planned.stderr
    words = ("agent", "--ring", str(ring), "--folder", str(tmp_path / "Oslo"), "--data", str(patients), "--no-page")
    refused = here(*words)
    assert refused.exit_code == 2 and "has not been accepted" in refused.stderr
    accepted = here("ring", "accept", str(ring), "--folder", str(tmp_path / "Oslo"), "--yes")
    assert accepted.exit_code == 0, accepted.stderr
    wrong = here(*words, "--target", "age")
    assert wrong.exit_code == 2 and "explains 'ill'" in wrong.stderr
    cold = here(*words, "--warm", "model.json")
    assert cold.exit_code == 2 and "leave --warm out" in cold.stderr


@pytest.mark.parametrize(("rows", "parts"), [(442, 5), (7, 5), (5, 5), (100, 2)])
def test_uneven_parts_have_every_row_once(rows: int, parts: int) -> None:
    pieces = uneven_parts(rows, parts, seed=1)
    assert all(len(piece) for piece in pieces)
    assert sorted(np.concatenate(pieces).tolist()) == list(range(rows))
    with pytest.raises(ValueError, match="use fewer sites"):
        uneven_parts(parts - 1, parts, seed=1)
