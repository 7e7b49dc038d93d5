"""Marks of a site's rows, by which it can later count how many rows have changed, without keeping the rows.

A mark is a keyed hash: without the key, which never leaves the folder, nobody can try which row gave it.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

from roundelay.agents.agreement.disk import sync_folder, write_new, write_whole
from roundelay.agents.agreement.ledger import Data
from roundelay.kernels import Matrix
from roundelay.kernels.random import Words
from roundelay.regression.columns import column_of

KEY_FILE, FOLDER = "rows.key", "marks"
KEY_BYTES, MARK_BYTES = 32, 8
_NO_MARKS: Words = np.zeros(0, np.uint64)


@dataclass(frozen=True, eq=False)
class Marked:
    """The data as the ledger knows them, and the marks of their rows, in order of size."""

    data: Data
    marks: Words = field(default_factory=lambda: _NO_MARKS)


def marking_key(folder: Path) -> bytes:
    """The key of a site's marks: from the operating system, once and for all."""
    path = Path(folder) / KEY_FILE
    if not path.exists():
        write_new(path, secrets.token_bytes(KEY_BYTES))
        sync_folder(path.parent)
    return path.read_bytes()


def mark_rows(columns: Sequence[str], cells: Matrix, digest: str, key: bytes) -> Marked:
    """Marks of rows, and digests of columns, neither of which depend on the order of the rows or of the columns, or on the units agreed on."""
    order = sorted(range(len(columns)), key=lambda place: column_of(columns[place]).name)
    table = np.column_stack([_plain(cells[:, place]) for place in order]).astype("<f8")
    marks = np.array(
        [int.from_bytes(hashlib.blake2b(row, digest_size=MARK_BYTES, key=key).digest()) for row in table], np.uint64
    )
    marks.sort()
    values = {columns[place]: _digest(key, np.sort(table[:, number])) for number, place in enumerate(order)}
    return Marked(Data(digest, len(table), values, hashlib.sha256(_bytes(marks)).hexdigest()), marks)


def _plain(column: Matrix) -> Matrix:
    """Labels are the same whether they are 0 and 1 or −1 and 1, and so are the two zeros."""
    labels = np.isin(column, (-1.0, 0.0, 1.0)).all() and not ((column == 0.0).any() and (column == -1.0).any())
    return np.where(column == -1.0, 0.0, column) if labels else column + 0.0


def _digest(key: bytes, values: Matrix) -> str:
    return hashlib.blake2b(values.tobytes(), digest_size=16, key=key).hexdigest()


def _bytes(marks: Words) -> bytes:
    return marks.astype("<u8").tobytes()


def keep_marks(folder: Path, marked: Marked) -> None:
    """Have the marks in a file that the ledger names by its digest."""
    place = Path(folder) / FOLDER
    if marked.data.marks and not (place / marked.data.marks).exists():
        place.mkdir(mode=0o700, exist_ok=True)
        write_whole(place / marked.data.marks, _bytes(marked.marks))
        sync_folder(place.parent)


def _kept_marks(folder: Path, data: Data) -> Words | None:
    """The marks of rows as they were; None where they are not there, or not those of the ledger."""
    try:
        content = (Path(folder) / FOLDER / data.marks).read_bytes() if data.marks else b""
    except OSError:
        return None
    return np.frombuffer(content, "<u8") if hashlib.sha256(content).hexdigest() == data.marks else None


def rows_in(folder: Path, now: Marked, parts: Sequence[tuple[Data, Fraction]]) -> int:
    """How many rows at least make up a combination of this site's data as they are now and as they were.

    A row counts by how often it is left over. Where rows can't be told apart, since other columns were fitted, it is known at least that
    the counts of the rows differ.
    """
    largest = max(abs(times) for _, times in parts)
    marks = [now.marks if data == now.data else _kept_marks(folder, data) for data, _ in parts]
    if any(one is None for one in marks) or len({frozenset(data.columns) for data, _ in parts}) > 1:
        return math.floor(abs(sum((times * data.rows for data, times in parts), Fraction(0))) / largest)
    whole = math.lcm(*(times.denominator for _, times in parts))
    weights = [np.full(data.rows, int(times * whole), np.int64) for data, times in parts]
    _, place = np.unique(np.concatenate([one for one in marks if one is not None]), return_inverse=True)
    left = np.zeros(len(place), np.int64)
    np.add.at(left, place, np.concatenate(weights))
    return math.floor(int(np.abs(left).sum()) / (largest * whole))
