"""Run the notebooks of the examples and store what they show: `python scripts/notebooks.py`, with `pip install nbclient ipykernel`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"


def executed(path: Path, folder: Path) -> Any:
    """The notebook with all its cells run anew, in a folder of its own; a cell that fails is raised."""
    notebook = nbformat.read(path, as_version=4)
    here = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=here).execute()
    for cell in notebook.cells:
        cell.metadata = {}  # when each cell began and ended is of no use to anybody
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(executed(path, Path(folder)), path)
        print(path.name)
