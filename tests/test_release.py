"""What is released: built twice it has the same bytes, it is whole, it runs with what it asks for alone, and what stands beside it says the same."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import roundelay

PROJECT = Path(__file__).parent.parent
TABLE = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


class Built(NamedTuple):
    wheel: Path
    sdist: Path
    again: Path


def build(source: Path, out: Path, umask: int) -> None:
    """By the backend itself: nothing is downloaded."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", str(out)],
        cwd=source, check=True, capture_output=True, umask=umask, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """From this tree, and again from the sdist of it: at another path, with files of another time, that nobody else may read."""
    first, other = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("somewhere") / "else"
    build(PROJECT, first, 0o022)
    (sdist,) = first.glob("*.tar.gz")
    with tarfile.open(sdist) as content:
        content.extractall(other, filter="data")
    (source,) = other.iterdir()
    for path in source.rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)
        os.utime(path, (1e9, 1e9))
    build(source, other / "dist", 0o077)
    (wheel,) = first.glob("*.whl")
    return Built(wheel, sdist, other / "dist")


def test_two_builds_have_the_same_bytes(built: Built) -> None:
    """Also: the sdist has all that a build needs."""
    for one in (built.wheel, built.sdist):
        assert (built.again / one.name).read_bytes() == one.read_bytes(), one.name


def test_the_wheel_is_the_package_and_nothing_else(built: Built) -> None:
    about = f"roundelay-{roundelay.__version__}.dist-info"
    source = PROJECT / "src" / "roundelay"
    with zipfile.ZipFile(built.wheel) as wheel:
        names = set(wheel.namelist())
        assert wheel.read(f"{about}/licenses/LICENSE") == (PROJECT / "LICENSE").read_bytes()
        said = wheel.read(f"{about}/METADATA").decode()
    assert "Typing :: Typed" in said and "roundelay/py.typed" in names
    ours = {f"roundelay/{path.relative_to(source).as_posix()}" for path in source.rglob("*") if path.is_file()}
    ours = {name for name in ours if "__pycache__" not in name}
    assert {name for name in names if not name.startswith(f"{about}/")} == ours


def test_the_sdist_has_every_file_of_the_project(built: Built) -> None:
    """Tests, what they read, and what writes the lock files among them."""
    if not (PROJECT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("there is no clone of git here that could say which files are the project's")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, check=True, capture_output=True, text=True).stdout
    ours = {name for name in listed.split("\0") if name and (PROJECT / name).is_file()}
    with tarfile.open(built.sdist) as content:
        held = {name.partition("/")[2] for name in content.getnames()}
    assert not ours - held
    assert {"tests/test_release.py", "requirements/ring.lock", "src/roundelay/agents/page/page.html"} <= held


# ---------------------------------------------------------------- alone


def closure(name: str) -> dict[str, importlib.metadata.Distribution]:
    """The packages that a package without extras asks for here, and what these ask for."""
    found: dict[str, importlib.metadata.Distribution] = {}
    wanted: list[tuple[str, frozenset[str]]] = [(name, frozenset())]
    seen = set(wanted)
    while wanted:
        package, extras = wanted.pop()
        found[canonicalize_name(package)] = importlib.metadata.distribution(package)
        for line in found[canonicalize_name(package)].requires or ():
            one = Requirement(line)
            holds = one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras or {""})
            asked = (one.name, frozenset(one.extras))
            if holds and asked not in seen:
                seen.add(asked)
                wanted.append(asked)
    return found


@pytest.fixture(scope="module")
def alone(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has the wheel and what it asks for, by links to what is installed here."""
    home = tmp_path_factory.mktemp("alone")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip())
    with zipfile.ZipFile(built.wheel) as wheel:  # what pip does, but for the script, whose place `python -m` takes
        wheel.extractall(packages)
    for name, package in closure("roundelay").items():
        if name == "roundelay":
            continue
        for top in {path.parts[0] for path in package.files or ()} - {"..", "__pycache__"}:
            link = packages / top
            if not link.exists():
                link.symlink_to(package.locate_file(top))
    return python


SEE = """
import json, sys
import roundelay, roundelay.cli.app
import networkx, typer.main
from roundelay.networks import find_cycle
from typer.testing import CliRunner

app = roundelay.cli.app.app

def commands(command, *words):
    for name, one in getattr(command, "commands", {}).items():
        yield from commands(one, *words, name)
    yield words

def said(*words):
    done = CliRunner().invoke(app, words)
    return [done.exit_code, done.stdout, done.stderr, repr(done.exception)]

def refusal(text):
    try:
        exec(text, {"rl": roundelay})
    except Exception as error:
        return [type(error).__name__, str(error)]

given = json.load(sys.stdin)
print(json.dumps({
    "where": roundelay.__file__,
    "helps": [[words, *said(*words, "--help")] for words in commands(typer.main.get_command(app))],
    "commands": [said(*words) for words in given["commands"]],
    "calls": [refusal(text) for text in given["calls"]],
    "gave_up": find_cycle(roundelay.from_networkx(networkx.tutte_graph()), time_limit=0.1).words,
}))
"""

ROWS = "[[[0.0], [1.0]], [[1.0], [2.0]], [[0.5], [3.0]]]"
# What is asked for without the extra, on the command line and in Python. relay has no keys and reads no ring file: it needs none.
COMMANDS = [
    ("ring", ["ring", "init", "--folder", "oslo", "--name", "Oslo", "--address", "a.example.org:7443", "--data", "rows.csv"]),
    ("ring", ["ring", "show", "ring.toml"]),
    ("ring", ["ring", "accept", "ring.toml", "--folder", "oslo"]),
    ("ring", ["ring", "plan", "a.invitation.toml", "--folder", "oslo", "--out", "ring.toml", "--formula", "y ~ x"]),
    ("ring", ["ring", "up", "--data", "rows.csv", "--target", "y"]),
    ("ring", ["ring", "ledger", "--folder", "oslo"]),
    ("ring", ["ring", "status", "--folder", "oslo"]),
    ("ring", ["agent", "--ring", "ring.toml", "--folder", "oslo", "--data", "rows.csv"]),
    ("ring", ["doctor", "--folder", "oslo"]),
    ("ring", ["model", "show", "model.json"]),
    ("ring", ["predict", "model.json", "rows.csv"]),
    ("ring", ["ring", "demo"]),
    ("report", ["reproduce", "--quick", "--out", "out"]),
    ("privacy", ["simulate", "piadmm2", "--first-order", "--clip", "1", "--sigma", "0.5", "--problem", "logistic", "--budget-epsilon", "8"]),
    ("cluster", ["compare", "iadmm", "--seeds", "1", "--agents", "8", "--dask", "tcp://127.0.0.1:1"]),
    ("estimators", ["simulate", "sealed-laps", "--data", "sklearn:diabetes", "--split", "even", "--agents", "5"]),
]  # fmt: skip
CALLS = [
    ("estimators", "from roundelay.estimators import RingRidge\nRingRidge()"),
    ("torch", "rl.TorchProblem(object(), None, [1.0], [1.0])"),
    ("batches", "rl.by_batches(rl.LeastSquares, ['a', 'b', 'c'], ['x'], 'y')"),
    ("batches", "rl.rows_of_query('select 1 as x', 'kept')"),
    ("regression", "import pandas\nrows = pandas.DataFrame({'y': [1.0, 2.0, 4.0], 'x': [1.0, 3.0, 2.0]})\nrl.glm('y ~ x', {'oslo': rows, 'bergen': rows})"),
    ("parquet", "from pathlib import Path\nfrom roundelay.agents.data.parquet import read_parquet_table\nread_parquet_table(Path('a.parquet'), None)"),
    ("cluster", f"rl.sweep([rl.IADMM()], [rl.LeastSquares({ROWS}, [[1.0, 2.0]] * 3)], [rl.ring(3)], seeds=[0], folder='rows')"),
]  # fmt: skip


@pytest.fixture(scope="module")
def seen(alone: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What an environment without any extra says, all of it in one process."""
    folder = tmp_path_factory.mktemp("empty")
    (folder / "rows.csv").write_text("x,y\n" + "".join(f"{row},{2 * row + row % 3}\n" for row in range(40)))
    given = {"commands": [words for _, words in COMMANDS], "calls": [text for _, text in CALLS]}
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [alone, "-c", SEE], cwd=folder, env=clean, input=json.dumps(given), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_every_help_is_there_without_extras(seen: dict[str, Any], alone: Path) -> None:
    assert Path(seen["where"]).is_relative_to(alone.parent.parent)
    assert len(seen["helps"]) > 35
    for words, code, said, *rest in seen["helps"]:
        assert code == 0 and said.startswith("Usage:"), (words, said, *rest)


def test_what_needs_an_extra_names_it_in_a_sentence(seen: dict[str, Any]) -> None:
    wrong = []
    for (extra, words), (code, said, error, trace) in zip(COMMANDS, seen["commands"], strict=True):
        if code != 2 or said or len(error.splitlines()) != 1 or f"pip install 'roundelay[{extra}]'" not in error:
            wrong.append((words, code, said, error, trace))
    for (extra, text), refusal in zip(CALLS, seen["calls"], strict=True):
        kind, error = refusal or ("nothing", "")
        if kind not in ("ImportError", "ModuleNotFoundError") or f"pip install 'roundelay[{extra}]'" not in error:
            wrong.append((text, kind, error))
    assert not wrong, "\n".join(map(str, wrong))


def test_a_search_that_gives_up_says_what_would_settle_it(seen: dict[str, Any]) -> None:
    """That nothing was found is no error: the sentence stands in the answer."""
    assert "pip install 'roundelay[exact]'" in seen["gave_up"]


# ---------------------------------------------------------------- what stands beside


def test_the_citation_is_of_this_release() -> None:
    """Valid as Citation File Format 1.2.0: what it must have, and no field of another name."""
    said = yaml.safe_load((PROJECT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(said)
    assert set(said) <= {
        "cff-version", "message", "title", "abstract", "type", "authors", "version", "date-released", "license", "keywords", "references",
    }  # fmt: skip
    assert said["cff-version"] == "1.2.0" and said["type"] == "software"
    assert (said["version"], said["license"]) == (roundelay.__version__, TABLE["license"])
    sections = re.findall(r"^## (\d\S*) — (\S+)$", (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sections[:1] in ([], [(said["version"], said["date-released"])])  # none before the first release
    assert date.fromisoformat(said["date-released"])
    (paper,) = said["references"]
    assert paper["type"] == "article" and {"title", "authors", "journal", "year"} <= set(paper)
    assert [one["family-names"] for one in paper["authors"]] == ["Ye", "Chen", "Xiao", "Skoglund", "Poor"]


def test_the_conda_recipe_asks_for_the_same() -> None:
    recipe = yaml.safe_load((PROJECT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == roundelay.__version__
    elsewhere = {"matplotlib": "matplotlib-base"}  # without the windows of Qt
    asked = [f"python {TABLE['requires-python']}"]
    for one in map(Requirement, TABLE["dependencies"]):
        asked.append(f"{elsewhere.get(one.name, one.name)} {one.specifier}")
    assert recipe["requirements"]["run"] == asked
    assert recipe["requirements"]["host"] == [asked[0], "pip", "hatchling"]
    (script,) = TABLE["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(script)]
    assert recipe["about"]["license"] == TABLE["license"]
    assert recipe["about"]["summary"] == TABLE["description"]


def test_the_versions_that_are_named_are_those_that_are_tried() -> None:
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(TABLE["classifiers"]))
    tried = re.search(r"^pythons=\((.*)\)$", (PROJECT / "scripts" / "versions.sh").read_text(), re.MULTILINE)
    assert tried and named == tried[1].split() and f">={named[0]}" == TABLE["requires-python"]
