"""A model's file in use: printed, reported, predicted with, handed to scikit-learn; by the commands and in Python."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from typer.testing import CliRunner

import roundelay as rl
from roundelay.agents.agreement.plan import Task
from roundelay.agents.data.models import FinalResiduals, Model, ModelNotes, write_model
from roundelay.agents.data.regressing import RegressionFit
from roundelay.cli.app import app
from roundelay.regression.columns import Column
from roundelay.regression.pooled import fit, rows_of
from roundelay.regression.regression import Regression
from roundelay.regression.sums import sums_of
from tests.agents.conftest import COLUMNS
from tests.agents.hospitals import QUIET, Hospitals
from tests.shown.examples import rossi

SITES = ("Oslo", "Bergen", "Tromsø", "Bodø")
NOTES = ModelNotes(
    "ab" * 16, 0, 8, SITES, "The 4 sites have found the best fit.", FinalResiduals(0.0, 0.0), None, "c0ffee" * 10
)
HEADER = "prio;race;age [years]\n"


@pytest.fixture(scope="module")
def fitted() -> rl.Fit:
    frame = rossi().assign(race=np.where(rossi()["race"] == 1, "black", "other"))
    columns = (
        Column("arrest"),
        Column("age", "years"),
        Column("race", values="levels", levels=("other", "black")),
        Column("prio"),
    )
    regression = Regression("arrest ~ age + race + bs(prio, df=3)", columns, "binomial")
    return fit({name: rows_of(regression, frame[number::4]) for number, name in enumerate(SITES)}, regression)


@pytest.fixture
def model(tmp_path: Path, fitted: rl.Fit) -> Path:
    path = tmp_path / "model.json"
    write_model(
        path,
        Model(tuple(fitted.coefficients.items()), 0.0, "regression", "arrest"),
        NOTES,
        fitted.result,
        fitted.study.regression,
    )
    return path


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.json"
    write_model(path, Model((("age [years]", 0.5), ("prio", -2.0)), 1.5, "logistic", "arrest"), NOTES)
    return path


def said(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 2 and not isinstance(result.exception, AssertionError)
    return " ".join(result.stderr.split())


def test_what_was_written_is_shown(model: Path, fitted: rl.Fit) -> None:
    assert said("model", "show", model) == fitted.summary()
    rows = list(csv.DictReader(io.StringIO(said("model", "show", model, "--csv"))))
    assert {row["term"]: float(row["estimate"]) for row in rows} == fitted.coefficients
    (whole,) = csv.DictReader(io.StringIO(said("model", "show", model, "--csv", "--glance")))
    assert float(whole["AIC"]) == fitted.result.aic and whole["nobs"] == "432"
    told = json.loads(said("model", "show", model, "--json"))
    assert told["result"]["knots"][0][0] == "bs(prio, df=3)" and told["glance"]["nobs"] == 432
    assert "give both" in refused("model", "show", model, "--glance")
    assert "give one" in refused("model", "show", model, "--csv", "--json")


def test_a_model_without_a_formula_shows_its_coefficients_and_has_no_report(plain: Path, tmp_path: Path) -> None:
    assert "age [years]" in said("model", "show", plain) and "4 sites: Oslo" in said("model", "show", plain)
    assert said("model", "show", plain, "--csv").splitlines() == [
        "term,estimate",
        "age [years],0.5",
        "prio,-2.0",
        "Intercept,1.5",
    ]
    assert "without a formula" in refused("model", "report", plain, "--out", tmp_path / "report.html")


def test_the_report_says_that_nobody_has_looked_at_signatures(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "report.html"
    assert str(out) in "".join(said("model", "report", model, "--out", out).split("\n"))
    document, regression = unescape(out.read_text(encoding="utf-8")), rl.load_model(model).regression
    assert document.startswith("<!DOCTYPE html>") and "The file of the model has no signatures." in document
    assert "has signed, verified" not in document
    assert regression is not None and all(one.tells[1:] in document for one in sums_of(regression))


def test_tables_that_no_fit_comes_to_end_in_a_sentence(model: Path, tmp_path: Path) -> None:
    content = json.loads(model.read_text())
    for place, value in (("residuals", {"edges": [1.0, 1.0, 1.0], "counts": [7]}), ("level", 1e308)):
        content["result"][place] = value
    content["result"]["terms"][1] |= {"ratio": 0.0, "ratio_low": -1.0}
    model.write_text(json.dumps(content))
    assert "none that a fit comes to" in refused("model", "report", model, "--out", tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("part", ["terms", "knots", "covariance"])
def test_a_result_that_lacks_a_part_predicts_nothing(model: Path, tmp_path: Path, part: str) -> None:
    content, rows = json.loads(model.read_text()), tmp_path / "new.csv"
    content["result"][part] = content["result"][part][:-1]
    model.write_text(json.dumps(content))
    rows.write_text(HEADER + "0;other;20\n")
    assert "none that a fit comes to" in refused("predict", model, rows)


def test_rows_of_a_file_are_predicted_as_those_of_a_frame(model: Path, fitted: rl.Fit, tmp_path: Path) -> None:
    rows, out = tmp_path / "new.csv", tmp_path / "predictions.csv"
    rows.write_text(HEADER + "0;other;20\n3;black;31,5\n9;other;44\n", encoding="utf-8-sig")
    frame = pd.DataFrame({"age": [20.0, 31.5, 44.0], "race": ["other", "black", "other"], "prio": [0.0, 3.0, 9.0]})
    for options in ((), ("--link",)):
        found = pd.read_csv(io.StringIO(said("predict", model, rows, *options)), index_col=0)
        expected = fitted.predict(frame, link=bool(options))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert list(found.index) == [2, 3, 4] and list(found) == ["predicted", "low", "high"]
    assert "3 rows" in said("predict", model, rows, "--out", out)
    assert out.read_text().splitlines()[0].endswith(",predicted,low,high")
    chances = rl.load_model(model).to_sklearn().predict_proba(frame)[:, 1]
    np.testing.assert_allclose(chances, fitted.predict(frame)["predicted"], rtol=1e-9)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (HEADER + "0;secret;20\n", "Line 2"), (HEADER + "0;other;\n", '"age [years]" in line 2'),
        ("prio;race;age [months]\n0;other;20\n", "age"), ("prio;race\n0;other\n", "age [years]"),
        (HEADER + "0;other;secret\n", "Line 2"),
    ],
)  # fmt: skip
def test_rows_that_the_model_does_not_know_are_refused_with_their_place(
    model: Path, tmp_path: Path, content: str, words: str
) -> None:
    rows = tmp_path / "new.csv"
    rows.write_text(content, encoding="utf-8")
    sentence = refused("predict", model, rows)
    assert words in sentence and "secret" not in sentence


def test_a_model_of_features_predicts_too(plain: Path, tmp_path: Path) -> None:
    rows = tmp_path / "new.csv"
    rows.write_text("prio,age [years],else\n1,3,x\n2,8,y\n")
    found = pd.read_csv(io.StringIO(said("predict", plain, rows)))["predicted"]
    np.testing.assert_allclose(found, 1.0 / (1.0 + np.exp(-np.array([1.0, 1.5]))), rtol=1e-12)
    model = rl.load_model(plain).to_sklearn()
    frame = pd.DataFrame({"prio": [1.0, 2.0], "age": [3.0, 8.0]})
    np.testing.assert_allclose(model.predict_proba(frame)[:, 1], found, rtol=1e-9)
    assert model.predict(frame).tolist() == [1, 1]


def test_an_objective_of_one_s_own_predicts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    write_model(path, Model((("1", 0.5),), 0.0, "custom", ""), NOTES)
    rows = tmp_path / "new.csv"
    rows.write_text("a\n1\n")
    assert "sites' own" in refused("predict", path, rows)
    assert "can't be opened" in refused("model", "show", tmp_path / "nothing.json")


class Clinics(Hospitals):
    """Sites that bring their rows to a regression."""

    def local(self, name: str, task: Task) -> Any:
        assert task.regression is not None
        frame = pd.DataFrame(self.tables[name], columns=[column.name for column in COLUMNS])
        return RegressionFit(task, rows_of(task.regression, frame, name))


def test_with_the_ring_file_the_report_says_who_has_signed_and_is_not_made_of_a_model_that_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clinics, file = Clinics(tmp_path, monkeypatch), tmp_path / "model.json"
    regression = Regression("outcome ~ age + length", COLUMNS, heterogeneity=True)
    ring = clinics.accept(clinics.plan(task=Task("regression", regression=regression)))
    (tmp_path / "ring.toml").write_bytes(ring.text)
    clinics.run(ring, {"Oslo": replace(QUIET, model=file)})
    out = tmp_path / "report.html"
    said("model", "report", file, "--ring", tmp_path / "ring.toml", "--out", out)
    document = out.read_text(encoding="utf-8")
    assert document.count("has signed, verified") == 4 and ring.digest in document and "Not as agreed" not in document
    everybody = pd.DataFrame(np.concatenate(list(clinics.tables.values())), columns=[column.name for column in COLUMNS])
    known = smf.ols("outcome ~ age + length", everybody).fit()
    found = pd.read_csv(io.StringIO(said("model", "show", file, "--csv")), index_col="term")
    np.testing.assert_allclose(found["std.error"], known.bse, rtol=1e-6)
    result = rl.load_model(file).result
    assert result is not None and len(result.slopes) == 2 and result.slopes[1] < 1e-9 * result.slopes[0]
    content = json.loads(file.read_text())
    content["result"]["terms"][1]["p_value"] = 0.04
    file.write_text(json.dumps(content))
    out.unlink()
    refused("model", "report", file, "--ring", tmp_path / "ring.toml", "--out", out)
    assert not out.exists()
