"""Folders of Parquet files to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow
from pyarrow import parquet

from roundelay.kernels import Matrix, Vector

NAMES = ("a", "b", "c")


class Site(NamedTuple):
    """A folder, and what is in it."""

    folder: Path
    features: Matrix
    target: Vector
    label: Vector


def write_rows(file: Path, columns: dict[str, Vector], rows_a_group: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table(columns), file, row_group_size=rows_a_group)


def written_site(folder: Path, seed: int, files: int = 2, rows: int = 500, rows_a_group: int = 70) -> Site:
    """Columns in units of their own, one of them far from 0; files of unlike lengths, and row groups that do not divide them."""
    draws = np.random.default_rng(seed)
    blocks = []
    for number in range(files):
        plain = draws.standard_normal((rows + 13 * number, 3))
        features = plain * [1.0, 30.0, 0.1] + [1000.0, 5.0, 0.0]
        target = features @ [1.0, 0.2, 3.0] + draws.standard_normal(len(plain))
        label = np.where(draws.random(len(plain)) < 1.0 / (1.0 + np.exp(-plain @ [1.0, 2.0, -1.0])), 1.0, -1.0)
        columns = dict(zip(NAMES, features.T, strict=True)) | {"t": target, "label": label}
        write_rows(folder / f"part{number}.parquet", columns, rows_a_group)
        blocks.append((features, target, label))
    return Site(folder, *(np.concatenate(block) for block in zip(*blocks, strict=True)))
