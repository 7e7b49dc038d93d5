import json
import subprocess
import sys
from pathlib import Path

import roundelay as rl

# Ctrl-C arrives after the first piece of the run, whatever the machine's speed.
CODE = """
import os, signal, sys
import roundelay
from roundelay.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)
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


def test_an_interrupted_run_is_shown_saved_and_exits_with_130(tmp_path: Path) -> None:
    saved = tmp_path / "run.npz"
    size = ("--agents", "8", "--density", "0.6", "--engine", "python", "--hops", "1000000")
    said = interrupted("simulate", "iadmm", *size, "--save", str(saved), "--json")
    assert said.returncode == 130, said.stderr
    told = json.loads(said.stdout)
    assert told["stop"] == "interrupted"
    assert 0 < told["hops"] < 1_000_000
    assert rl.load_run(saved).hops == told["hops"]


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
