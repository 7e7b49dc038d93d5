"""What a program reads: JSON alone where it was asked for, and colours where, and only where, they are wanted."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from roundelay.cli.app import app
from tests.cli.conftest import Invoke

# Commands without --json, and why they need none.
NO_TABLE = {
    "model report": "it writes a page, and prints where",
    "predict": "what it prints is CSV",
    "ring pause": "it prints a sentence",
    "ring resume": "it prints a sentence",
    "ring stop": "it prints a sentence",
}
TINY = ("--agents", "6", "--density", "0.6", "--samples", "8", "--engine", "python")
COMPARE = ("compare", "iadmm", "wadmm", "--seeds", "1", "--units", "40", *TINY)


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """The commands that do something, by their words."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield " ".join(words), command
    for name, one in (inner or {}).items():
        yield from commands(one, (*words, name))


def test_every_command_that_prints_a_table_prints_json_too() -> None:
    found = dict(commands(typer.main.get_command(app)))
    without = {words for words, one in found.items() if not any("--json" in option.opts for option in one.params)}
    assert without == set(NO_TABLE)
    assert len(found) > 30


def numbers_as_words(content: Any, where: str = "") -> list[str]:
    """Where a number stands as a string."""
    if isinstance(content, dict):
        return [found for key, value in content.items() for found in numbers_as_words(value, f"{where}.{key}")]
    if isinstance(content, list):
        return [found for value in content for found in numbers_as_words(value, where)]
    return (
        [where] if isinstance(content, str) and re.fullmatch(r"-?[\d,]+(\.\d+)?(e[-+]?\d+)?|inf|nan", content) else []
    )


def answer(invoke: Invoke, *words: str | Path) -> Any:
    """What a command prints with --json: all of stdout."""
    done = invoke(*words, "--json")
    assert done.exit_code == 0, done.stderr
    content = json.loads(done.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    found = numbers_as_words(content)
    # Digests, fingerprints and runs are digits of names, levels are words of a column, and so is what says how it was made.
    assert not [one for one in found if not re.search(r"digest|fingerprint|run$|previous|levels$|\.provenance", one)], (
        found
    )
    return content


def test_what_is_simulated_is_json_with_numbers(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = answer(invoke, "simulate", "iadmm", "--hops", "40", "--transcript", "--save", "run.npz", *TINY)
    assert ran["provenance"]
    assert answer(invoke, "audit", "run.npz", "--agent", "1", "--seconds", "5")
    assert len(answer(invoke, *COMPARE)["methods"]) == 2
    assert answer(invoke, "tune", "iadmm", "--evaluations", "2", "--seeds", "1", "--units", "60", *TINY)


def test_what_a_ring_says_is_json_with_numbers(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the keys to the ledger: everything that needs no running agent."""
    pytest.importorskip("grpc", reason="a ring needs the packages of roundelay[ring]")
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("age,outcome\n" + "".join(f"{40 + row % 17},{row % 2}\n" for row in range(60)))
    names = ("Oslo", "Bergen", "Molde", "Alta")
    for port, name in enumerate(names, 7443):
        folder = name.lower()
        site = ("--folder", folder, "--name", name, "--address", f"127.0.0.1:{port}", "--data", "rows.csv")
        assert answer(invoke, "ring", "init", *site)
        Path(folder).chmod(0o700)
    assert answer(invoke, "ring", "identity", "--folder", "oslo")["name"] == "Oslo"
    assert answer(invoke, "ring", "offer", "--folder", "oslo", "--data", "rows.csv")
    invitations = sorted(map(str, Path().rglob("*.invitation.toml")))
    assert len(invitations) == len(names)
    plan = answer(
        invoke, "ring", "plan", *invitations, "--folder", "oslo", "--formula", "outcome ~ age", "--family", "binomial", "--out", "ring.toml"
    )  # fmt: skip
    assert answer(invoke, "ring", "show", "ring.toml")["digest"] == plan["digest"]
    assert answer(invoke, "ring", "accept", "ring.toml", "--folder", "oslo", "--yes")["digest"] == plan["digest"]
    assert answer(invoke, "ring", "ledger", "--folder", "oslo")
    looked = invoke("doctor", "--folder", "oslo", "--json")
    assert looked.exit_code in (0, 1) and json.loads(looked.stdout)["findings"]


# ---------------------------------------------------------------- colours


def surroundings(**more: str) -> dict[str, str]:
    return {**os.environ, "TERM": "xterm-256color", **more}


def on_a_terminal(*words: str, **more: str) -> str:
    """What a command prints where somebody watches: stdout and stderr are one terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "roundelay", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=surroundings(**more),
    )
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 65536):
            said += piece
    except OSError:  # Linux's way of saying that nobody holds the other end any more
        pass
    finally:
        os.close(ours)
    assert process.wait() == 0, said
    return said.decode()


def colours(said: str) -> list[str]:
    """The escape codes that set a colour, of the letters or behind them."""
    codes = re.findall(r"\x1b\[([\d;:]*)m", said)
    return [
        code
        for code in codes
        if any(30 <= int(one or 0) <= 49 or 90 <= int(one or 0) <= 107 for one in re.split("[;:]", code))
    ]


def test_no_color_means_none() -> None:
    assert colours(on_a_terminal(*COMPARE))  # otherwise nothing is shown by what follows
    plain = on_a_terminal(*COMPARE, NO_COLOR="1")
    assert "W-ADMM" in plain and not colours(plain)
    assert not colours(on_a_terminal("simulate", "--help", NO_COLOR="1"))


def test_forced_colours_spoil_no_file() -> None:
    """FORCE_COLOR asks for colours, and not for a terminal's width, nor for bars that move."""
    done = subprocess.run(
        [sys.executable, "-m", "roundelay", *COMPARE],
        capture_output=True,
        text=True,
        check=True,
        env=surroundings(FORCE_COLOR="1"),
    )
    assert not re.findall(r"\x1b\[[^m]*[A-LN-Za-ln-z]", done.stdout + done.stderr)
    unforced = subprocess.run(
        [sys.executable, "-m", "roundelay", *COMPARE], capture_output=True, text=True, check=True, env=surroundings()
    )
    stripped = re.sub(r"\x1b\[[\d;]*m", "", done.stdout)
    assert [len(line) for line in stripped.splitlines()] == [len(line) for line in unforced.stdout.splitlines()]
    told = subprocess.run(
        [sys.executable, "-m", "roundelay", *COMPARE, "--json"], capture_output=True, text=True, check=True,
        env=surroundings(FORCE_COLOR="1"),
    )  # fmt: skip
    assert json.loads(told.stdout) and "\x1b" not in told.stdout
