import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import roundelay as rl
from roundelay.paper.pieces import read_measured
from tests.cli.conftest import Invoke

# Ctrl-C arrives after the first piece of the run, whatever the machine's speed.
CODE = """
import os, signal, sys
import roundelay
from roundelay.cli import main

plain, sent = roundelay.simulate, []

def press(done, total):
    if not sent:
        sent.append(done)
        os.kill(os.getpid(), signal.SIGINT)

roundelay.simulate = lambda *a, **k: plain(*a, **{**k, "progress": press})
sys.argv = ["roundelay", *sys.argv[1:]]
main()
"""


def interrupted(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", CODE, *words], capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_run_is_shown_saved_and_exits_with_130(tmp_path: Path) -> None:
    saved = tmp_path / "run.npz"
    size = ("--agents", "8", "--density", "0.6", "--engine", "python", "--hops", "1000000")
    said = interrupted("simulate", "iadmm", *size, "--save", str(saved), "--json")
    assert said.returncode == 130, said.stderr
    told = json.loads(said.stdout)
    assert told["stop"] == "interrupted"
    assert 0 < told["hops"] < 1_000_000
    assert rl.load_run(saved).hops == told["hops"]


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_demo_exits_with_130_and_draws_nothing(tmp_path: Path) -> None:
    size = ("--seeds", "1", "--hops", "1000000", "--engine", "python")
    code_for_ensembles = CODE.replace('plain(*a, **{**k, "progress": press})', "one_seed(*a, **k)").replace(
        "def press", "def one_seed(method, problem, network, hops, seeds, engine, progress):\n"
        "    run = plain(method, problem(0), network(0), hops, engine=engine, progress=press)\n"
        "    return roundelay.Ensemble((run,))\n\ndef press"
    )  # fmt: skip
    words = ("demo", *size, "--out", str(tmp_path / "out"), "--json")
    said = subprocess.run(
        [sys.executable, "-c", code_for_ensembles, *words], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout) == (130, ""), said.stderr
    assert "interrupted" in said.stderr and "Traceback" not in said.stderr
    assert not (tmp_path / "out").exists()


def press_after(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C once so many ensembles have been run."""
    from roundelay.comparison import ground

    plain, made = ground.simulate, []

    def simulate(*words: object, **options: object) -> object:
        if len(made) == runs:
            raise KeyboardInterrupt
        made.append(words)
        return plain(*words, **options)

    monkeypatch.setattr(ground, "simulate", simulate)


SCENE = ("--agents", "8", "--density", "0.6", "--samples", "10", "--seeds", "1", "--units", "900", "--engine", "python")


def test_an_interrupted_comparison_shows_what_there_is(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    press_after(1, monkeypatch)
    said = invoke("compare", "iadmm", "wpg", "onepass", *SCENE, "--json")
    assert said.exit_code == 130
    told = json.loads(said.stdout)
    assert told["interrupted"]
    words = [method["costs"]["units"]["1e-3"]["words"] for method in told["methods"]]
    assert words[1:] == ["interrupted", "interrupted"] and words[0] != "interrupted"


def test_an_interrupted_tuning_shows_the_best_so_far(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    press_after(2, monkeypatch)
    said = invoke("tune", "wpg:alpha=0.01", "--level", "1e-2", *SCENE)
    assert said.exit_code == 130
    assert "interrupted; this is the best so far" in said.stdout and "alpha from 0.01 to 0.04" in said.stdout


def test_a_tuning_interrupted_at_once_has_nothing_to_show(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    press_after(0, monkeypatch)
    said = invoke("tune", "wpg:alpha=0.01", *SCENE)
    assert (said.exit_code, said.stdout) == (130, "")
    assert "interrupted before there was anything to show" in said.stderr


def pieces_in(folder: Path) -> list[Path]:
    return list((folder / "pieces").rglob("*.json"))


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("moment", "least"),
    [(lambda folder: bool(pieces_in(folder)), 1), (lambda folder: (folder / "pieces").is_dir(), 0)],
    ids=["after the first piece", "while the workers start"],
)
def test_an_interrupted_reproduction_keeps_its_pieces_and_says_so(
    tmp_path: Path, moment: Callable[[Path], bool], least: int
) -> None:
    """As in a terminal: every process gets the signal, and only the first one answers."""
    command = [sys.executable, "-m", "roundelay.cli", "reproduce", "fig3", "--quick", "--out", str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        while not moment(tmp_path) and running.poll() is None:
            time.sleep(0.01)
        os.killpg(running.pid, signal.SIGINT)
        out, said = running.communicate()
    assert (running.returncode, out) == (130, "")
    assert said == (
        f"Interrupted: the pieces that were finished are kept in {tmp_path / 'pieces'}, and the same command goes on from there.\n"
    )
    assert least <= len(pieces_in(tmp_path)) < 18
    assert all(read_measured(path).numbers for path in pieces_in(tmp_path))
    assert not (tmp_path / "figures").exists()
