"""What can be named is named once, and only that is built from a file."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

import roundelay as rl
from roundelay import registry
from roundelay.algorithms.algorithm import Algorithm
from roundelay.registry import classes_for, register, registered
from roundelay.tables import from_table


@pytest.fixture
def own_register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that a test makes are gone after it."""
    entries = {slot: dict(words) for slot, words in registry._ENTRIES.items()}
    monkeypatch.setattr(registry, "_ENTRIES", entries)


def test_every_entry_is_in_the_public_list_under_its_own_name() -> None:
    for slot in (Algorithm, rl.Start, rl.Defence, rl.Walk, rl.Regulariser, rl.Compressor):
        for entry in registered(slot).values():
            assert getattr(rl, entry.__name__) is entry


def test_the_public_list_names_nothing_twice() -> None:
    tree = ast.parse(Path(rl.__file__).read_text(encoding="utf-8"))
    names = Counter(
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    )
    assert [name for name, count in names.items() if count > 1] == []
    assert {"audit", "identifiable", "IADMM", "simulate"} <= {*dir(rl)}


@pytest.mark.usefixtures("own_register")
def test_two_things_cannot_have_one_word() -> None:
    with pytest.raises(
        ValueError, match=r"can't be called 'zero', which is the name of .*ZeroStart: give it another word"
    ):

        @register(rl.Start, "zero")
        @dataclass(frozen=True)
        class Other:
            """Somebody's own."""


@pytest.mark.usefixtures("own_register")
def test_what_is_entered_can_be_built_from_a_table_and_nothing_else() -> None:
    with pytest.raises(ValueError, match="use one of"):
        from_table({"kind": "Mine"}, "here", rl.Start)

    @register(rl.Start, "mine")
    @dataclass(frozen=True)
    class Mine:
        """Somebody's own."""

        scale: float = 1.0

    assert from_table({"kind": "Mine", "scale": 2}, "here", rl.Start) == Mine(2.0)
    with pytest.raises(ValueError, match="use one of"):
        from_table({"kind": "Mine"}, "here", rl.Walk)


def test_a_class_of_a_slot_can_be_asked_for_by_itself() -> None:
    assert classes_for(rl.ContributionNoise | None) == (rl.ContributionNoise,)
    assert classes_for(float) == () and classes_for(float | None) == ()


def test_no_file_builds_a_problem() -> None:
    """The data of a problem are a site's own: its word stands in files, never itself."""
    for slot in (Algorithm, rl.Start, rl.NetworkConditions, rl.Channel | rl.Compressor):
        assert not {*registered(rl.RowProblem).values()} & {*classes_for(slot)}


@pytest.mark.usefixtures("own_register")
def test_two_classes_cannot_have_one_name_in_files() -> None:
    with pytest.raises(ValueError, match=r"has the name of .*under which that stands in files: give it another name"):
        register(rl.Start, "ours")(type("UniformStart", (), {}))
    with pytest.raises(ValueError, match="give it another name"):
        register(rl.Algorithm, "ours")(type("RandomStart", (), {}))  # as Algorithm2 is called in older files


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        ("import nothing_like_this", "The installed package spoilt adds parts to roundelay, but can't be loaded"),
        ("raise SystemExit(0)", "can't be loaded (SystemExit: 0): mend it, or uninstall it."),
        (
            "import roundelay as rl\nfrom roundelay.cli.app import Command\n"
            "@rl.register(Command, 'simulate')\ndef theirs() -> None:\n    print('theirs')\n",
            "spoilt adds the command 'simulate', which there is already: let it have another word, or uninstall it.",
        ),
    ],
    ids=["can't be imported", "ends the process", "takes a command's place"],
)
def test_a_package_that_does_harm_is_named_in_a_sentence(tmp_path: Path, module: str, sentence: str) -> None:
    (tmp_path / "spoilt.py").write_text(module)
    about = tmp_path / "spoilt-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: spoilt\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[roundelay]\nparts = spoilt\n")
    said = subprocess.run(
        [sys.executable, "-m", "roundelay.cli", "--version"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 2 and sentence in said.stderr and "Traceback" not in said.stderr, said.stderr
