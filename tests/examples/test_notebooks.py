"""The notebooks run from their first cell to their last, and show what is stored in them."""

from __future__ import annotations

import getpass
import importlib.util
import re
import socket
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))

# Jupyter's own, about its event loop and its ports.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::RuntimeWarning", "ignore::ResourceWarning"
)


def runner() -> Any:
    specification = importlib.util.spec_from_file_location("notebooks", ROOT / "scripts" / "notebooks.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def shown(notebook: Any) -> list[list[str]]:
    """What each cell shows, by its kinds, with the words but without the digits of what is text."""
    cells = []
    for cell in (each for each in notebook.cells if each.cell_type == "code"):
        kinds = [sorted(output.get("data", {output.output_type: ""})) for output in cell.outputs]
        words = "".join(
            str(output.get("text", output.get("data", {}).get("text/plain", ""))) for output in cell.outputs
        )
        words = re.sub(r"(compiled|python) engine", "engine", words)  # which of them was sooner
        cells.append([str(kinds), re.sub(r"[\d.,e+\-−]+|\s+", " ", words)])
    return cells


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["comparing_and_sweeping", "own_method", "what_neighbours_learn"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_formulas_have_one_backslash(path: Path) -> None:
    """Two end a line in LaTeX, and what follows is words."""
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"]
    assert not [cell for cell in cells if "\\\\" in cell]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_is_stored(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "MPLCONFIGDIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    (tmp_path / "here").mkdir()
    stored = nbformat.read(path, as_version=4)
    assert shown(runner().executed(path, tmp_path / "here")) == shown(stored)
    numbers = [cell.execution_count for cell in stored.cells if cell.cell_type == "code"]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nothing_of_the_machine_is_stored(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for word in (str(ROOT), sys.prefix, str(Path.home()) + "/", socket.gethostname(), "/home/", "/tmp/", "/Users/"):
        assert len(word) < 4 or word not in text, word
    assert f'"{getpass.getuser()}"' not in text and "Error" not in text and '"stderr"' not in text
