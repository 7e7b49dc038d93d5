"""Rows that commands are given: a CSV file, one in the format of LIBSVM, or what comes with scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from roundelay.problems.splitting import Table

LIBSVM = (".svm", ".svmlight", ".libsvm")
LOADER = "sklearn:"
LOADED = ("breast_cancer", "diabetes", "digits", "iris", "wine")


def read_table(path: Path, target: str | None, words_allowed: bool) -> Table:
    """The rows, the target of each, and what they are called; with `words_allowed` targets need not be numbers."""
    from roundelay.problems.libsvm import read_libsvm
    from roundelay.problems.splitting import table_of

    is_loaded, is_libsvm = str(path).startswith(LOADER), bool({*path.suffixes} & {*LIBSVM})
    if (is_loaded or is_libsvm) and target is not None:
        raise ValueError(f"{path} has no columns with names: leave --target out.")
    if is_loaded:
        return table_of(_loaded(str(path).removeprefix(LOADER)))
    if is_libsvm:
        return table_of(*read_libsvm(path), name=path.name.split(".")[0])
    if target is None:
        raise ValueError(f"{path} is taken for a CSV file: say by --target which of its columns is fitted.")
    frame = read_csv(path, {"--target": target})
    features = [column for column in frame.columns if column != target]
    check_numbers(frame, features if words_allowed else [*features, target], path)
    if words_allowed and frame[target].isna().any():
        raise ValueError(
            f"{path} has no target in line {_line(frame[target].isna())}: leave the row out, or fill it in."
        )
    return table_of(frame[features].to_numpy(np.float64), frame[target].to_numpy(), path.stem)


def read_csv(path: Path, wanted: dict[str, str]) -> pd.DataFrame:
    """A table with a header, which has the columns that these options name."""
    import pandas as pd

    try:
        frame = pd.read_csv(path, sep=None, engine="python")
    except FileNotFoundError:
        raise ValueError(f"There is no file {path}: give a CSV file by --data.") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} can't be read as CSV ({error}): give a table with a header.") from None
    for option, column in wanted.items():
        if column not in frame.columns:
            raise ValueError(
                f"{path} has no column {column!r}: {option} is one of {', '.join(map(str, frame.columns))}."
            )
    if len(frame.columns) == len(wanted):
        raise ValueError(f"{path} has no column besides {' and '.join(wanted)}: there is nothing to fit by.")
    return frame


def check_numbers(frame: pd.DataFrame, columns: Sequence[str], path: Path) -> None:
    """Refuse columns that hold anything else."""
    import pandas as pd

    for column in columns:
        bad = pd.to_numeric(frame[column], errors="coerce").isna()
        if bad.any():
            raise ValueError(
                f"{path} has no number in line {_line(bad)} of the column {column!r}: encode words as numbers, and leave out or fill in what is missing."
            )


def _line(bad: pd.Series[bool]) -> int:
    """The line of the first row that is bad, below the header."""
    return int(np.flatnonzero(bad)[0]) + 2


def _loaded(name: str) -> Any:
    if name not in LOADED:
        raise ValueError(f"There is no {LOADER}{name}: use {LOADER}{f', {LOADER}'.join(LOADED)}.")
    try:
        from sklearn import datasets
    except ImportError:
        raise ValueError(
            f"{LOADER}{name} needs scikit-learn: install it by pip install 'roundelay[estimators]'."
        ) from None
    return getattr(datasets, f"load_{name}")()
