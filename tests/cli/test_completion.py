"""What a shell offers at TAB, asked in the shells themselves, and that nobody waits for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from roundelay.algorithms.algorithm import Algorithm
from roundelay.algorithms.token.incremental import PIADMM1
from roundelay.registry import registered
from roundelay.tables import options_of

# So that a shell finds roundelay where these tests run, and nothing of whoever runs them.
SURROUNDINGS = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
}
# Each begins a line, and offers what Tab would.
BASH = """
source <(roundelay --show-completion bash)
for line in "$@"; do
    COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
    read -ra COMP_WORDS <<<"$line"
    [[ $line == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _roundelay_completion roundelay
    echo "${COMPREPLY[*]}"
done
"""
FISH = """
roundelay --show-completion fish | source
for line in $argv
    echo (complete --do-complete=$line | string replace --regex '\\t.*' '')
end
"""
# zsh completes for a terminal alone: its words are caught where they would be shown.
ZSH = """
autoload -Uz compinit && compinit -D -u
source <(roundelay --show-completion zsh)
_arguments() { reply=(${(f)${${1#*\\(\\(}%\\)\\)}}); reply=(${${reply#\\"}%%(\\"|:*)}); print -r -- ${reply//\\"/} }
_files() { print -r -- }
for line in "$@"; do
    words=(${(s: :)line})
    [[ $line == *' ' ]] && words+=('')
    CURRENT=$#words
    _roundelay_completion
done
"""
SHELLS = {
    "bash": ["bash", "--norc", "-c", BASH, "bash"],
    "zsh": ["zsh", "-f", "-c", ZSH, "zsh"],
    "fish": ["fish", "--no-config", "-c", FISH],
}


def offered(shell: str, folder: Path, *lines: str) -> list[set[str]]:
    """What a shell offers for each line; fish takes the words after its own."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} on this machine")
    done = subprocess.run(
        [*SHELLS[shell], *lines], cwd=folder, env={**SURROUNDINGS, "HOME": str(folder), "ZDOTDIR": str(folder)},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr
    return [set(line.split()) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_offers_what_the_register_knows(shell: str, tmp_path: Path) -> None:
    (tmp_path / "ring.toml").write_text("[ring]\nformat = 4\n")
    (tmp_path / "policy.toml").write_text("least_members = 4\n")
    (tmp_path / "broken.toml").write_bytes(b"\xff\xfe")
    algorithms, settings, rings = offered(
        shell, tmp_path, "roundelay simulate p", "roundelay simulate piadmm1 --set ", "roundelay ring show "
    )
    assert algorithms == {word for word in registered(Algorithm) if word.startswith("p")} and "piadmm1" in algorithms
    assert settings == {f"{name}=" for name in options_of(PIADMM1)}
    assert rings == {"ring.toml"}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_name_that_a_shell_would_run_is_not_offered(shell: str, tmp_path: Path) -> None:
    for name in (
        "plan;touch PWNED;",
        "plan$(touch PWNED)",
        "plan`touch PWNED`",
        "plan more",
        "plan\n",
        "-plan",
        "plan",
    ):
        (tmp_path / f"{name}.toml").write_text("[ring]\nformat = 4\n")
    assert offered(shell, tmp_path, "roundelay ring show ") == [{"plan.toml"}]


WEIGHED = """
import json, os, sys
import roundelay.cli
for line in json.load(sys.stdin):
    os.environ |= {"COMP_WORDS": "\\n".join(line), "COMP_CWORD": str(len(line) - 1)}
    sys.argv = ["roundelay"]
    try:
        roundelay.cli.main()
    except SystemExit as done:
        assert done.code == 0, done
    print("---")
heavy = {"matplotlib", "numba", "pandas", "networkx", "scipy.special", "scipy.linalg", "scipy.optimize", "cryptography", "grpc", "aiohttp", "formulaic", "rich"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
LINES = {
    "roundelay ag": "agent",
    "roundelay compare iadmm wa": "wadmm",
    "roundelay tune proxd": "proxdfinito",
    "roundelay simulate iadmm --problem lo": "logistic",
    "roundelay simulate lead --split di": "dirichlet",
    "roundelay simulate wadmm --set walk": "walk=",
    "roundelay simulate wadmm --set walk=le": "walk=least-visited",  # where a shell leaves the word in one piece
    "roundelay simulate nothing --set rh": "",
    "roundelay ring plan --family bi": "binomial",
    "roundelay ring plan --task lo": "logistic",
    "roundelay agent --ring oslo/": "oslo/ring.toml",
    "roundelay agent --ring bergen/": "",
}


def test_nobody_waits_for_what_is_heavy(tmp_path: Path) -> None:
    """All of it in one process, so that what any of them loads is seen."""
    (tmp_path / "oslo").mkdir()
    (tmp_path / "oslo" / "ring.toml").write_text("[ring]\nformat = 4\n")
    done = subprocess.run(
        [sys.executable, "-c", WEIGHED], cwd=tmp_path, input=json.dumps([line.split() for line in LINES]),
        env={**SURROUNDINGS, "_ROUNDELAY_COMPLETE": "complete_bash"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [part.strip() for part in done.stdout.split("---\n")[:-1]] == list(LINES.values())
