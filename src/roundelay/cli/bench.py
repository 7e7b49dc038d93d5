"""`roundelay bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

SCRIPT = Path("benchmarks") / "against_c.py"


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the hops.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure the compiled engine against a plain C loop of the same work.

    It needs a checkout of the source and a C compiler. The exit code is 1 where the engine takes more than
    1.5 times as long as C, or where their results differ.

    \b
    Example:
      roundelay bench --quick
    """
    script = find_script(Path(__file__).resolve().parents[3], Path.cwd())
    if script is None:
        raise ValueError(
            f"The benchmark {SCRIPT.as_posix()} is not installed with the package, and this folder has none: "
            "get the source of Roundelay, and run `roundelay bench` in its top folder."
        )
    options = ["--quick"] * quick + ["--json"] * as_json
    raise typer.Exit(subprocess.run([sys.executable, str(script), *options], check=False).returncode)


def find_script(*checkouts: Path) -> Path | None:
    """The benchmark in the first of the folders that is a checkout of Roundelay."""
    for folder in checkouts:
        if (folder / SCRIPT).is_file() and (folder / "src" / "roundelay").is_dir():
            return folder / SCRIPT
    return None
