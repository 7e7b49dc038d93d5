"""What a shell offers at TAB: the words of the register, the options of the algorithm that was named, the ring files that lie there.

Somebody waits for each of these: nothing here may load the compiler, tables or anything else that takes its time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import typer

from roundelay.registry import registered

# A folder may be full of large files: so many are looked into, at so many of their first bytes.
MOST_FILES, FIRST_BYTES = 200, 4096
# A name that is one word in every shell, and no option.
PLAIN = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.+@-]*")


def algorithms() -> list[str]:
    """The words of all algorithms."""
    from roundelay.algorithms.algorithm import Algorithm

    return sorted(registered(Algorithm))


def problems() -> list[str]:
    """The words of all problems, as `--problem` has them."""
    return [word.replace("_", "-") for word in tasks()]


def tasks() -> list[str]:
    """The words of all problems, as they stand in ring files."""
    from roundelay.problems.row_problem import RowProblem

    return list(registered(RowProblem))


def families() -> list[str]:
    """The words of all families of regressions."""
    from roundelay.regression.regression import families

    return list(families())


def splits() -> list[str]:
    """The ways to divide rows; most go on after a colon."""
    from roundelay.problems.splitting import Split

    return list(registered(Split))


def settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """What the algorithm before it can be set to: name=, and name=part where it takes a part such as a start."""
    from roundelay.cli.settings import FALSE, TRUE, algorithm_named, parts_for
    from roundelay.tables import options_of

    types: dict[str, Any] = {}
    for word in (ctx.params.get("algorithm"), *ctx.args):  # among the latter, while the word after --set is missing
        with suppress(ValueError):
            types = types or options_of(algorithm_named(str(word)))
    name, equals, _ = incomplete.partition("=")
    if not equals:
        return [f"{option}=" for option in types]
    wanted = types.get(name.replace("-", "_"))
    words = (TRUE[0], FALSE[0]) if wanted is bool else parts_for(wanted)
    return [f"{name}={word}" for word in words]


def ring_files(incomplete: str) -> list[str]:
    """The ring files where the word points; where there are none, a shell offers what files there are.

    Not all shells quote what is offered to them, and whoever sends a ring file chooses its name: one that is more than a plain word is left to the
    shell, which quotes the files that it offers by itself.
    """
    folder = incomplete[: incomplete.rfind("/") + 1]
    return [f"{folder}{path.name}" for path in _ring_files_in(Path(folder).expanduser()) if PLAIN.fullmatch(path.name)]


def _ring_files_in(folder: Path) -> Iterator[Path]:
    try:
        for path in islice(sorted(folder.glob("*.toml")), MOST_FILES):
            if path.is_file() and _is_of_a_ring(path):
                yield path
    except OSError:  # a folder that is not there, or may not be read
        return


def _is_of_a_ring(path: Path) -> bool:
    """Whether a file begins as ring files do, whose tables are those of a plan."""
    with path.open("rb") as file:
        return b"\n[ring]\n" in b"\n" + file.read(FIRST_BYTES)
