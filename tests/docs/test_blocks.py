"""Every block of code in the documentation is run, or it is said here why not."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from roundelay.cli.app import app
from roundelay.cli.sweep import read_plan
from tests.docs.pages import ROOT, Block, blocks, code_words

LANGUAGES = {"python", "sh", "toml", "text"}

# What is not run, and why. An entry that fits no block, or one that could be run after all, fails.
NOT_HERE = {
    "CONTRIBUTING.md": "tests/test_contributing.py runs its blocks, in a package of their own",
}
ELSEWHERE = {
    "torch": "PyTorch is no part of what developers must have",
    "dask_jobqueue": "it needs a queue of a cluster",
    "dask_kubernetes": "it needs Kubernetes",
}
NOT_RUN = {
    "make demo": "tests/agents/test_rehearsal.py has the demo; here only the target is looked up",
    "make test": "this is part of it",
    "make docs": "tests/docs/test_site.py builds the same site",
    "python3 -m venv .ring": "it needs the network",
    '.ring/bin/pip install ".[ring]"': "it needs the network",
    '.ring/bin/roundelay ring up --data patients.csv --formula "outcome ~ age + C(sex)"': "tests/agents/test_ring_cli.py runs it: five processes",
    ".ring/bin/roundelay model report out/ring/Oslo/model.json --out report.html": "it reports what the line before has fitted",
    "roundelay agent --ring ring.toml --folder oslo --data patients.csv": "it waits for the other sites; tests/agents has rings of agents",
    "roundelay sweep plan.toml --out /shared/sweep --dask tcp://192.0.2.7:8786": "it needs the cluster",
    "roundelay audit messages.jsonl --protocol ds.glm": "tests/privacy/test_other_protocols.py runs it, on messages that it makes",
    "roundelay audit messages.jsonl --protocol fedavg --site Oslo --known-record patient.csv --truth rows.csv --json": "the same",
    "dask scheduler --port 8786": "it needs the cluster",
    "dask worker tcp://192.0.2.7:8786 --nworkers 16 --nthreads 1": "it needs the cluster",
    "helm install --repo https://helm.dask.org --create-namespace -n dask-operator --generate-name dask-kubernetes-operator": "it needs Kubernetes",
}

# The same with less of it: so many processor seconds would show nothing more.
LESS = {
    ("docs/cluster.md", "seeds=range(20),"): "seeds=range(1),",
    ("docs/cluster.md", "hops=20_000,"): "hops=200,",
    ("docs/cluster.md", "iterations=1_000,"): "iterations=20,",
    ("docs/cluster.md", "dask=None,"): 'processes=0, engine="python",',
    ("README.md", "seeds=range(10)"): "seeds=range(2)",
    ("docs/methods.md", "seeds=range(10)"): "seeds=range(2)",
}

# What a reader of a page has at hand, before the first block or before the one that begins so.
SCENE = """
import roundelay as rl
problem = rl.paper_least_squares(agents=100, dim=2, seed=0)
network = rl.random_network(agents=100, density=0.3, seed=0)
"""
ROWS = """
import numpy as np
import roundelay as rl
generator = np.random.default_rng(0)
features = np.clip(generator.normal(0.0, 0.3, size=(100, 30, 2)), -1.0, 1.0)
targets = np.clip(features.sum(axis=2), -1.0, 1.0)
labels = np.sign(targets + generator.normal(size=(100, 30)))
network = rl.random_network(agents=100, density=0.3, seed=0)
"""
AT_HAND = {
    ("docs/methods.md", "from roundelay.estimators"): """
import numpy as np
generator = np.random.default_rng(0)
X = generator.normal(size=(60, 2))
y = X[:, 0] + generator.normal(size=60) > 0.0
hospital = np.repeat(["Oslo", "Bergen", "Narvik"], 20)
""",
    ("docs/methods.md", "from sklearn.datasets"): """
import gzip
import pandas as pd
frame = pd.DataFrame({"age": generator.normal(size=140), "days": generator.normal(size=140)})
with gzip.open("news.svm.gz", "wt") as file:
    file.writelines(f"{(-1) ** row} 3:0.5 {row + 10}:1\\n" for row in range(80))
""",
    ("docs/methods.md", "# blocks: a list"): """
import scipy.sparse
blocks = [scipy.sparse.random_array((20, 6), density=0.5, rng=generator) for agent in range(4)]
targets = [generator.normal(size=20) for agent in range(4)]
""",
    ("docs/methods.md", "import torch"): """
inputs, classes = list(generator.normal(size=(3, 20, 4))), list(generator.integers(0, 3, size=(3, 20)))
""",
    ("docs/methods.md", "graphs = "): SCENE,
    ("docs/differential-privacy.md", "problem = rl.LeastSquares"): ROWS,
    ("docs/differential-privacy.md", "from roundelay.privacy"): SCENE,
    ("docs/privacy.md", "run = rl.simulate"): SCENE,
    ("docs/cluster.md", "import roundelay as rl  # pip install 'roundelay[cluster]'"): ROWS,
    ("docs/cluster.md", "import roundelay as rl  # pip install 'roundelay[batches]'"): """
import duckdb
import numpy as np
import pandas as pd
generator = np.random.default_rng(0)
for site in ("oslo", "bergen", "tromso"):
    Path(site).mkdir()
    visits = pd.DataFrame({"age": generator.normal(size=50), "dose": generator.normal(size=50), "year": 2024})
    visits["label"] = np.sign(visits["age"] + generator.normal(size=50))
    visits.to_parquet(f"{site}/rows.parquet")
with duckdb.connect("site.duckdb") as base:
    base.execute("create table visits as select * from visits")
""",
}

# What is done before the commands of a page.
BEFORE = {
    "docs/privacy.md": [
        'roundelay ring plan *.invitation.toml --folder oslo --formula "outcome ~ age + C(sex)" --out ring.toml'
    ],
}
# Columns that the data of a page don't have.
NO_SUCH_COLUMN = {"docs/differential-privacy.md": ["sex"]}


def find(language: str) -> list[Block]:
    return [block for block in blocks() if block.language == language]


def test_every_block_says_what_it_is() -> None:
    """An indented one is a formula, which the site sets; tests/docs/test_notation.py looks at those."""
    unknown = [str(block) for block in blocks() if block.language is not None and block.language not in LANGUAGES]
    assert unknown == [], f"These fences name none of {sorted(LANGUAGES)}: {unknown}"


@pytest.mark.parametrize("page", sorted({block.page for block in find("python")} - set(NOT_HERE)))
def test_python_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page is a module: its blocks share their names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, Any] = {"__name__": "__main__", "Path": Path}
    for block in find("python"):
        if block.page != page:
            continue
        code = compile(less(block), str(block), "exec")
        missing = [package for package in imported(block) if package in ELSEWHERE and not has(package)]
        if missing:
            required = os.environ.get("ROUNDELAY_REQUIRE_TORCH") == "1" and "torch" in missing
            assert not required, f"{block} needs PyTorch, which is to be there."
            continue
        for (where, beginning), before in AT_HAND.items():
            if where == page and block.text.startswith(beginning):
                exec(before, names)
        exec(code, names)


def less(block: Block) -> str:
    """The text of a block, shortened as LESS says."""
    text = block.text
    for (page, long), short in LESS.items():
        if page == block.page:
            text = text.replace(long, short)
    return text


def imported(block: Block) -> list[str]:
    return re.findall(r"^(?:import|from) (\w+)", block.text, re.M)


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def test_what_is_listed_here_is_needed() -> None:
    """Nothing stands in the lists above that no page has, or that the page would not miss."""
    texts = find("python")
    for where, beginning in AT_HAND:
        assert sum(block.page == where and block.text.startswith(beginning) for block in texts) == 1, (where, beginning)
    for where, long in LESS:
        assert any(block.page == where and long in block.text for block in texts), (where, long)
    assert {package for block in texts for package in imported(block)} >= set(ELSEWHERE)
    assert {block.page for block in texts} >= set(NOT_HERE)
    assert {command for block in find("sh") for command in commands(block)} >= set(NOT_RUN)


def commands(block: Block) -> Iterator[str]:
    """The commands of a block as somebody types them: comments apart, lines joined that go on."""
    for line in block.text.replace("\\\n", " ").splitlines():
        for command in re.sub(r"(^|\s+)#.*", "", line).split(" && "):
            if command.strip():
                yield " ".join(command.split())


@pytest.mark.parametrize("page", sorted({block.page for block in find("sh")}))
def test_commands_are_right_and_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sites = ("Oslo", "Bergen", "Narvik", "Tromso")
    written = [command for block in find("sh") if block.page == page for command in commands(block)]
    for name in sites:  # those that the page doesn't set up itself
        draw_patients(sites.index(name)).drop(columns=NO_SUCH_COLUMN.get(page, [])).to_csv("patients.csv", index=False)
        if not any(command.startswith(f"roundelay ring init --folder {name.lower()}") for command in written):
            setting = f"--folder {name.lower()} --name {name} --address {name.lower()}.example.org:7443"
            run(f"roundelay ring init {setting} --data patients.csv")
    for command in [*BEFORE.get(page, []), *written]:
        for invitation in Path().glob("*/*.invitation.toml"):  # the sites send them to each other
            shutil.copy(invitation, ".")
        check(command)
        if command not in NOT_RUN:
            run(command)


def draw_patients(seed: int, rows: int = 60) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    columns = {
        "age": generator.integers(30, 80, rows),
        "bmi": generator.uniform(20.0, 35.0, rows).round(1),
        "sex": generator.choice(["female", "male"], rows),
        "outcome": generator.integers(0, 2, rows),
    }
    return pd.DataFrame(columns)


def run(command: str) -> None:
    """A command of roundelay, in this process."""
    program, *words = shlex.split(command)
    assert Path(program).name == "roundelay", f"{command!r} is not run here: say in NOT_RUN why."
    words = [part for word in words for part in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]
    result = CliRunner().invoke(app, words, input="y\n")
    assert result.exit_code == 0, f"{command}\n{result.output}"


def check(command: str) -> None:
    """What is typed is there: the command with its options and arguments, the target, the script, the extra."""
    program, *words = shlex.split(command)
    if Path(program).name == "roundelay":
        name, found, rest = command_named(words)
        with suppress(typer.Exit):  # --help, --version
            found.make_context(name, rest)
    elif program == "make":
        assert set(targets_of(words)) <= targets(), f"The Makefile has no such target: {command}"
    elif program.startswith("python"):
        there = has(words[1]) if words[0] == "-m" else (ROOT / words[0]).is_file()
        assert there, f"There is no such script or module: {command}"
    elif Path(program).name == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert set(",".join(re.findall(r"\[(.*?)\]", command)).split(",")) <= set(extras), (
            f"There is no such extra: {command}"
        )
    else:
        assert command in NOT_RUN, f"{command!r} is a program of others: say in NOT_RUN why it is not run."


def targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))


def targets_of(words: list[str]) -> list[str]:
    return [word for word in words if "=" not in word]


def command_named(words: list[str]) -> tuple[str, Any, list[str]]:
    """The command that the first words name, and the words that are left."""
    name, command, rest = "roundelay", get_command(app), list(words)
    while isinstance(command, TyperGroup) and rest and not rest[0].startswith("-"):
        assert rest[0] in command.commands, f"There is no command {name} {rest[0]}."
        name, command, rest = f"{name} {rest[0]}", command.commands[rest[0]], rest[1:]
    return name, command, rest


def test_commands_in_sentences_are_there_with_their_options() -> None:
    """In backquotes stands often a part of a command; what of it is there must be right."""
    looked_at = 0
    for page, text in code_words():
        program, *words = text.split(" | ")[0].replace("…", "").split() or [""]
        if program == "make" and words:
            assert set(targets_of(shlex.split(text)[1:])) <= targets(), (page, text)
        elif program == "python" and words and words[0].endswith(".py"):
            assert (ROOT / words[0]).is_file(), (page, text)
        elif program == "roundelay" and words:
            _, command, rest = command_named(words)
            known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
            options = {word.split("=")[0] for word in rest if word.startswith("--")} - {"--help"}
            assert options <= known, (page, text)
        else:
            continue
        looked_at += 1
    assert looked_at > 50


@pytest.mark.parametrize("block", find("toml"), ids=str)
def test_tables_are_read_by_what_reads_such_files(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = tomllib.loads(block.text)
    if "algorithm" in table:
        draw_patients(0).assign(days=1.0, hospital="Oslo").drop(columns="sex").to_csv("patients.csv", index=False)
        (tmp_path / "plan.toml").write_text(block.text)
        plan = read_plan(tmp_path / "plan.toml")
        assert len(plan.points) > 1
    else:
        assert set(table) == {"project"}, f"{block} is no file that is known here: read it by what reads such files."
        # tests/test_contributing.py installs it.
        assert block.page in NOT_HERE
