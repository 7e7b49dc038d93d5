"""How what stands in a file was made: the command, the versions, the seeds and the parameters. Every file that is written has it from here.

What sites of a ring send to each other has none of it: a command may tell of files that are nobody else's business.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from roundelay.shown.notebook import in_notebook
from roundelay.shown.numbers import printable

# On what the digits of a result may depend.
LIBRARIES = ("numpy", "scipy", "numba", "pandas", "matplotlib")


def provenance(**said: Any) -> dict[str, str]:
    """By which version and which command something was made, on which libraries; then what else is said, such as seeds and parameters.

    There is no date and no name of a machine: the same command makes the same file.
    """
    return {
        "software": _release("roundelay"),
        "command": command(),
        **{name: str(value) for name, value in said.items() if value not in (None, "")},
        "versions": _versions(),
    }


def command() -> str:
    """The command of this process as somebody would repeat it; a notebook's own is of no use to anybody."""
    called = Path(sys.argv[0]).name if sys.argv else ""
    if in_notebook():
        return "a notebook"
    if called in ("", "-c", "-m"):
        return "python"
    if called == "__main__.py":
        module = getattr(sys.modules["__main__"], "__spec__", None)
        called = f"python -m {module.parent if module is not None else Path(sys.argv[0]).parent.name}"
    return " ".join([f"python {called}" if called.endswith(".py") else called, *map(shlex.quote, sys.argv[1:])])


@cache
def _versions() -> str:
    return ", ".join([f"Python {sys.version.split()[0]}", *map(_release, LIBRARIES)])


def _release(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:  # a copy that nobody has installed
        return package


def commented(made: Mapping[str, str], mark: str = "# ") -> str:
    """As lines of comment; no word of others ends its line."""
    return "".join(f"{mark}{name}: {printable(' '.join(said.split()))}\n" for name, said in made.items())


def before_csv(made: Mapping[str, str]) -> str:
    """The comments before a CSV file, and how to read what follows them."""
    return commented({**made, "to read": f"pandas.read_csv(path, skiprows={len(made) + 1})"})


def as_json(made: Mapping[str, str]) -> str:
    """As one line."""
    return json.dumps(dict(made), ensure_ascii=True)


def in_picture(made: Mapping[str, str], suffix: str) -> dict[str, Any]:
    """As the metadata of a PNG, SVG or PDF, under the names that each of them has; without a date, so that the same figure is the same file."""
    if suffix == ".png":
        return {"Software": made["software"], **{name.capitalize(): said for name, said in made.items()}}
    if suffix == ".svg":
        return {"Creator": made["software"], "Source": made["command"], "Description": as_json(made), "Date": None}
    return {
        "Creator": made["software"],
        "Subject": made["command"],
        "Keywords": as_json(made),
        "CreationDate": None,
    }
