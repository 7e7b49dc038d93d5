import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import roundelay as rl
from tests.cli.conftest import Invoke

PLAN = """
hops = 300
iterations = 30
seeds = 2
levels = [1e-2]
engine = "python"

[[algorithm]]
name = "iadmm"
rho = [2.0, 20.0]

[[algorithm]]
name = "extra"
label = "mine"

[[problem]]
agents = 8
samples = 10

[[problem]]
data = "patients.csv"
target = "days"
site = "hospital"

[[network]]
name = "random"
density = 0.6

[[network]]
name = "grid"
rows = 2
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    generator = np.random.default_rng(5)
    rows = pd.DataFrame({"age": generator.standard_normal(24), "days": generator.standard_normal(24)})
    rows.assign(hospital=[f"h{number % 8}" for number in range(24)]).to_csv(tmp_path / "patients.csv", index=False)
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def test_a_plan_is_the_same_sweep_as_in_python(invoke: Invoke, plan: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = invoke("sweep", plan, "--out", out, "--processes", "0", "--json")
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    table = pd.read_csv(out / "table.csv", float_precision="round_trip", comment="#")
    assert told["failed"] == 0 and len(told["rows"]) == len(table) == 3 * 2 * 2 * 2
    drawn = table[table.problem == "least-squares, N=8, b=10, p=2"]
    same = rl.sweep(
        {"I-ADMM": rl.IADMM(), "mine": rl.EXTRA()},
        lambda seed: rl.paper_least_squares(8, 10, 2, seed=seed),
        {"random, density 0.6": lambda seed: rl.random_network(8, 0.6, seed=seed), "grid, rows 2": rl.grid(2, 4)},
        seeds=range(2), parameters={"rho": [2.0, 20.0]}, hops=300, iterations=30, levels=[1e-2], engine="python", processes=0, progress=False,
    )  # fmt: skip
    for column in ("algorithm", "network", "seed", "key", "error", "units_to_1e-2"):
        assert list(drawn[column]) == list(same[column]), column
    again = invoke("sweep", plan, "--out", out, "--processes", "0")
    assert again.exit_code == 0 and "The median of 2 seeds." in again.stdout
    assert "sweep: 24 of 24 tasks done" in again.stderr


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seeds = 2", "sedes = 2", "has the field 'sedes', which is not known: it may have hops, iterations"),
        ('name = "iadmm"', 'name = "iadm"', "There is no algorithm called 'iadm'. Did you mean iadmm?"),
        (
            "rho = [2.0, 20.0]",
            "roh = 2.0",
            "[[algorithm]] number 1 in {plan} can't be used: I-ADMM has no option 'roh'",
        ),
        ("rho = [2.0, 20.0]", "rho = []", "give a value as on the command line, or a list of values"),
        ('label = "mine"', 'label = "I-ADMM"', "2 entries [[algorithm]] that are called 'I-ADMM': give each a label"),
        ("agents = 8", 'kind = "square"', "There is no problem 'square'"),
        ('target = "days"', 'target = "day"', "has no column 'day'"),
        (
            'site = "hospital"',
            'split = "anyhow"',
            "split of [[problem]] number 2 in {plan} can't be 'anyhow': use even",
        ),
        ('target = "days"\nsite = "hospital"', 'split = "even"', "say by --target which of its columns"),
        ('site = "hospital"', 'site = "hospital"\nsplit = "even"', "has the field 'split', which is not known"),
        ('name = "grid"', 'name = "gird"', "use random, grid, barbell, ring, complete, path, star"),
        ("rows = 2", "rows = 2.5", "use a whole number"),
        ("density = 0.6", "rows = 2", "has the field 'rows', which is not known: it may have name, label, density"),
        ('engine = "python"', 'engine = "fast"', "use auto or compiled or python"),
        ("seeds = 2", "seeds = [1, 1]", "A seed is given twice"),
        ("seeds = 2", 'seeds = 2\nx0 = "elsewhere"', "use a list of numbers"),
        ("hops = 300", "hops = ", "can't be read as TOML"),
    ],
)
def test_what_a_plan_does_not_mean_is_refused_in_a_sentence(
    invoke: Invoke, plan: Path, old: str, new: str, words: str
) -> None:
    plan.write_text(PLAN.replace(old, new, 1))
    said = invoke("sweep", plan, "--out", plan.parent / "out")
    assert said.exit_code == 2 and words.replace("{plan}", str(plan)) in said.stderr, said.stderr
    assert not (plan.parent / "out").exists()


def test_rows_of_a_plan_are_divided_by_each_seed_anew(invoke: Invoke, plan: Path, tmp_path: Path) -> None:
    divided = 'split = "dirichlet:4"\nagents = 4\npositive = 3\nridge = 0.1\nkind = "logistic"\n[[problem]]\ndata = "sklearn:iris"\nsplit = "sizes:1,3"'
    plan.write_text(PLAN.replace('site = "hospital"', divided).replace("agents = 8\nsamples = 10", "agents = 4"))
    rows = pd.read_csv(tmp_path / "patients.csv")
    rows["days"] = np.arange(24) % 4
    rows.drop(columns="hospital").to_csv(tmp_path / "patients.csv", index=False)
    said = invoke("sweep", plan, "--out", tmp_path / "out", "--processes", "0")
    assert said.exit_code == 0, said.output
    table = pd.read_csv(tmp_path / "out" / "table.csv", float_precision="round_trip", comment="#")
    assert set(table.problem) >= {"logistic, patients, N=4, Dirichlet(4)", "least-squares, iris, N=2, sizes 1:3"}
    own = table[(table.problem == "logistic, patients, N=4, Dirichlet(4)") & (table.network == "grid, rows 2")]
    same = rl.sweep(
        {"I-ADMM": rl.IADMM(), "mine": rl.EXTRA()},
        lambda seed: rl.Logistic(
            *rl.split(rows[["age"]], rows.days, agents=4, how=rl.Dirichlet(4), seed=seed, positive=3), ridge=0.1
        ),
        rl.grid(2, 2),
        seeds=range(2), parameters={"rho": [2.0, 20.0]}, hops=300, iterations=30, levels=[1e-2], engine="python", processes=0, progress=False,
    )  # fmt: skip
    assert list(own.key) == list(same.key) and len(set(own.key)) == 6
    assert list(own.error) == list(same.error)


def test_failed_tasks_are_told_with_their_reason(invoke: Invoke, plan: Path, tmp_path: Path) -> None:
    plan.write_text(PLAN.replace("rows = 2", "rows = 3"))
    said = invoke("sweep", plan, "--out", tmp_path / "out", "--processes", "0")
    assert said.exit_code == 0
    assert "12 of 24 tasks failed: A grid of 3 rows can't have 8 agents" in said.stdout
