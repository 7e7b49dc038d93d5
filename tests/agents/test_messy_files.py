"""From raw files, each written in another way and each with a fault, to the fit: every fault is first refused in a sentence, at the step where
it can be seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from roundelay.agents.agreement.plan import Task
from roundelay.agents.agreement.policy import POLICY, Policy, PolicyError, text_of
from roundelay.agents.agreement.ringfile import SignedPlan, read_ring
from roundelay.agents.data.reading import read_site_rows
from roundelay.agents.data.regressing import RegressionFit
from roundelay.cli.app import app
from tests.agents.hospitals import NAMES, Hospitals

FORMULA = "ill ~ age + weight + C(sex) * smoker + C(stage) + seen"
POUND = 0.45359237


def people() -> dict[str, pd.DataFrame]:
    """What the files would say if everybody wrote alike; nobody at Tromso is in stage 3, and all in Narvik's three rows are ill."""
    rng, found = np.random.default_rng(20), {}
    for name in NAMES:
        count = 3 if name == "Narvik" else 90
        age, weight = rng.integers(30, 80, count), rng.normal(75.0, 12.0, count).round(1)
        sex, smoker = rng.choice(["female", "male"], count), rng.choice(["no", "yes"], count)
        stage = rng.integers(1, 3 if name == "Tromso" else 4, count)
        seen = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 300, count), unit="D")
        chance = 1.0 / (1.0 + np.exp(4.0 - 0.05 * age - 0.6 * (sex == "male") - 0.7 * (smoker == "yes")))
        ill = np.where((rng.random(count) < chance) | (name == "Narvik"), "yes", "no")
        found[name] = pd.DataFrame(
            {"patient": [f"{name}-{row:04d}" for row in range(count)], "age [years]": age, "weight [kg]": weight, "sex": sex,
             "smoker": smoker, "stage": stage, "seen": seen, "ill": ill}
        )  # fmt: skip
    return found


def write_files(folder: Path) -> None:
    """Oslo: commas. Bergen: a mark, semicolons, decimal commas, all in quotes, other order. Tromso: tabs, pounds, true and false. Narvik: Parquet."""
    frames = people()
    frames["Oslo"].to_csv(folder / "Oslo.csv", index=False)
    bergen = frames["Bergen"].assign(seen=frames["Bergen"]["seen"].dt.strftime("%d.%m.%Y"))[
        frames["Bergen"].columns[::-1]
    ]
    bergen.loc[3, "weight [kg]"] = None
    bergen.to_csv(
        folder / "Bergen.csv", index=False, sep=";", decimal=",", encoding="utf-8-sig", na_rep="NA", lineterminator="\r\n", quoting=2
    )  # fmt: skip
    tromso = frames["Tromso"].assign(
        ill=frames["Tromso"]["ill"] == "yes", seen=frames["Tromso"]["seen"].dt.strftime("%d %b %Y")
    )
    tromso["weight [lb]"] = tromso.pop("weight [kg]") / POUND
    tromso.to_csv(folder / "Tromso.csv", index=False, sep="\t")
    frames["Narvik"].assign(smoker=frames["Narvik"]["smoker"] == "yes").to_parquet(folder / "Narvik.csv", index=False)


class MessyHospitals(Hospitals):
    """Sites whose rows are in the files of a folder."""

    def local(self, name: str, task: Task) -> RegressionFit:  # type: ignore[override]
        """What an agent reads at its start."""
        assert task.regression is not None
        return RegressionFit(task, read_site_rows(self.folder / f"{name}.csv", task.regression, task.missing))


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MessyHospitals:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    found = MessyHospitals(tmp_path, monkeypatch)
    for name in NAMES:
        (tmp_path / name / POLICY).write_text(text_of(Policy()))
    return found


def ring(*words: str) -> Any:
    return CliRunner().invoke(app, ["ring", *words])


def offered(name: str) -> str:
    said = ring("offer", "--folder", name, "--data", f"{name}.csv", "--address", f"{name.lower()}.example.org:7443")
    assert said.exit_code == 0, said.output
    return str(said.stdout)


def planned(*more: str) -> Any:
    invitations = [f"{name}/{name}.invitation.toml" for name in NAMES]
    return ring("plan", *invitations, "--folder", "Oslo", "--formula", FORMULA, "--out", "ring.toml", *more)


def refused(said: Any, *words: str) -> None:
    assert said.exit_code == 2, said.output
    for word in words:
        assert word in said.stderr, said.stderr


def accepted() -> SignedPlan:
    for name in NAMES:
        said = ring("accept", "ring.toml", "--folder", name, "--yes")
        assert said.exit_code == 0, said.output
    return read_ring(Path("ring.toml").read_bytes(), "ring.toml")


def change(path: str, old: str, new: str) -> None:
    text = Path(path).read_bytes().decode()
    assert old in text
    Path(path).write_bytes(text.replace(old, new, 1).encode())


def test_each_fault_is_refused_in_words_and_then_the_fit_is_that_of_the_pooled_rows(sites: MessyHospitals) -> None:
    # A slip of the pen makes a column of numbers one of words: the site hears of it, and so does whoever plans.
    good = Path("Oslo.csv").read_bytes()
    lines = good.decode().splitlines(keepends=True)
    cells = lines[4].split(",")
    Path("Oslo.csv").write_text("".join([*lines[:4], ",".join([cells[0], "about 60", *cells[2:]]), *lines[5:]]))
    said = offered("Oslo")
    assert '! The column "age [years]" has numbers, but for line 5: so it is offered as words.' in said
    assert "about" not in said and "Oslo-0" not in said
    assert all("-0" not in offered(name) for name in NAMES[1:])
    refused(planned(), "'age' has words at Oslo and numbers at Bergen, Tromso and Narvik", "offer it anew")
    Path("Oslo.csv").write_bytes(good)
    offered("Oslo")
    # Another unit at one site.
    refused(
        planned(), 'in "kg" at Oslo, Bergen and Narvik and in "lb" at Tromso', '--convert "weight: lb -> kg * FACTOR"'
    )
    convert = ("--convert", f"weight: lb -> kg * {POUND}")
    said = planned(*convert)
    assert said.exit_code == 0, said.output
    assert "sex: female (the reference), male" in said.stdout and "stage: 1 (the reference), 2, 3" in said.stdout
    plan = accepted()
    # An empty cell, and a level that the plan does not know, in the file of a site that has accepted.
    regression = plan.plan.task.regression
    assert regression is not None
    with pytest.raises(
        ValueError, match=r'Bergen\.csv has 1 empty cell: "weight \[kg\]" in line 5\. .* missing = "drop"'
    ):
        read_site_rows("Bergen.csv", regression)
    change("Oslo.csv", ",female,", ",unknown,")
    with pytest.raises(
        ValueError,
        match=r'of Oslo\.csv has a level in the column "sex", which the plan does not know: it knows female, male',
    ):
        read_site_rows("Oslo.csv", regression)
    Path("Oslo.csv").write_bytes(good)
    # What each site's policy says: three rows; and nobody has looked at the factor yet.
    assert planned(*convert, "--missing", "drop").exit_code == 0
    plan = accepted()
    assert any(isinstance(one, PolicyError) for one in sites.run(plan).values())
    for name, lax, words in (
        ("Tromso", "conversions = true", "converts weight [kg] from lb by 0.453592·x"),
        ("Narvik", "least_rows = 3\nleast_rows_a_level = 1", "This site has 3 rows"),
    ):
        with pytest.raises(PolicyError) as why:
            sites.site(plan, name)._books(plan).check_policy()
        assert words in str(why.value) and f"{name}/{POLICY}" in str(why.value)
        Path(name, POLICY).write_text(lax + "\n")
    # Then it is what a fit to all rows gives.
    import statsmodels.formula.api as smf

    results = sites.finish(plan)
    whole = pd.concat(people().values(), ignore_index=True).rename(
        columns={"age [years]": "age", "weight [kg]": "weight"}
    )
    whole = whole.drop(index=len(people()["Oslo"]) + 3)  # Bergen's empty cell
    days = (whole["seen"] - pd.Timestamp(0)).dt.days.astype(float)
    table = whole.assign(ill=(whole["ill"] == "yes").astype(float), seen=days)
    expected = smf.logit(FORMULA, table).fit(disp=0, tol=1e-12).params
    found = {**dict(results["Oslo"].model.coefficients), "Intercept": results["Oslo"].model.intercept}
    assert set(found) == set(expected.index)
    for name, value in expected.items():
        assert found[str(name)] == pytest.approx(value, rel=1e-6, abs=1e-9), name
    assert replace(results["Narvik"].model) == results["Oslo"].model
