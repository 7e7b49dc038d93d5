"""Marks of a site's rows, by which it can later count how many rows have changed, without keeping the rows.

A mark is a keyed hash: without the key, which never leaves the folder, nobody can try which row gave it. There is one of each row, and
one of each of its cells, so that rows are known again in a run that has other columns besides.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

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
    """The data as the ledger knows them, and the marks of their rows and cells, in order of size.

    `cells` has a row of marks for each row of the data, its columns in the order of their names, and `order` says which row of the data each is.
    """

    data: Data
    marks: Words = field(default_factory=lambda: _NO_MARKS)
    cells: Words = field(default_factory=lambda: _NO_MARKS)
    order: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


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
    names = [column_of(columns[place]).name for place in order]
    table = np.column_stack([_plain(cells[:, place]) for place in order]).astype("<f8")
    marks = np.array(
        [int.from_bytes(hashlib.blake2b(row, digest_size=MARK_BYTES, key=key).digest()) for row in table], np.uint64
    )
    marks.sort()
    each: Words = np.zeros(table.shape, np.uint64)
    for number, name in enumerate(names):
        each[:, number] = _marks_of_cells(key, name, table[:, number])
    placed: NDArray[np.int64] = np.lexsort(each.T) if names else np.arange(len(table))
    each = each[placed]
    values = {columns[place]: _digest(key, np.sort(table[:, number])) for number, place in enumerate(order)}
    digests = (hashlib.sha256(_bytes(one)).hexdigest() for one in (marks, each))
    return Marked(Data(digest, len(table), values, *digests), marks, each, placed)


def _marks_of_cells(key: bytes, name: str, column: Matrix) -> Words:
    """A mark of each number of a column: AES of the number beside a digest of the column's name, which nobody can make without the key."""
    blocks = np.empty((len(column), 2), "<u8")
    blocks[:, 0] = np.ascontiguousarray(column, "<f8").view("<u8")
    blocks[:, 1] = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    own = hashlib.blake2b(b"cells", digest_size=KEY_BYTES, key=key).digest()
    marked = Cipher(algorithms.AES256(own), modes.ECB()).encryptor().update(blocks.tobytes())
    return np.frombuffer(marked, "<u8").reshape(-1, 2)[:, 0]


def _plain(column: Matrix) -> Matrix:
    """Labels are the same whether they are 0 and 1 or −1 and 1, and so are the two zeros."""
    labels = np.isin(column, (-1.0, 0.0, 1.0)).all() and not ((column == 0.0).any() and (column == -1.0).any())
    return np.where(column == -1.0, 0.0, column) if labels else column + 0.0


def _digest(key: bytes, values: Matrix) -> str:
    return hashlib.blake2b(values.tobytes(), digest_size=16, key=key).hexdigest()


def _bytes(marks: Words) -> bytes:
    return marks.astype("<u8").tobytes()


def keep_marks(folder: Path, marked: Marked) -> None:
    """Have the marks in files that the ledger names by their digests."""
    place = Path(folder) / FOLDER
    for digest, marks in ((marked.data.marks, marked.marks), (marked.data.cells, marked.cells)):
        if digest and not (place / digest).exists():
            place.mkdir(mode=0o700, exist_ok=True)
            write_whole(place / digest, _bytes(marks))
            sync_folder(place.parent)


def _kept(folder: Path, digest: str) -> Words | None:
    """The marks as they were; None where they are not there, or not those of the ledger."""
    try:
        content = (Path(folder) / FOLDER / digest).read_bytes() if digest else b""
    except OSError:
        return None
    return np.frombuffer(content, "<u8") if hashlib.sha256(content).hexdigest() == digest else None


def copies(folder: Path, now: Marked, times: Sequence[Data], columns: Iterable[str]) -> NDArray[np.int64] | None:
    """How often each row stood in this site's data at several times: a line for each row, a column for each time.

    Rows are told apart by some columns, as far as these are the same in most rows. None where that can't be said.
    """
    wanted = {column_of(heading).name for heading in columns}
    there = now.data if now.data.marks else None  # of rows that are read by batches there are no marks
    cells = [_cells_by(wanted, data, now.cells if data == there else _kept(folder, data.cells)) for data in times]
    known = [one for one in cells if one is not None]
    if known and len(known) == len(times):
        count = _counted(_steady(known))
        # Where no row came or went it is the others that have changed.
        return count if (count != count[:, :1]).any() else _counted(known)
    if len({frozenset(data.columns) for data in times}) > 1:
        return None
    marks = [now.marks if data == there else _kept(folder, data.marks) for data in times]
    known = [one[:, None] for one in marks if one is not None]
    return _counted(known) if known and len(known) == len(times) else None


def _cells_by(wanted: set[str], data: Data, cells: Words | None) -> Words | None:
    """The marks of the cells in some columns."""
    names = sorted(column_of(heading).name for heading in data.columns)
    if cells is None or not wanted or not wanted <= set(names):
        return None
    return cells.reshape(-1, len(names))[:, [place for place, name in enumerate(names) if name in wanted]]


def alike(folder: Path, now: Marked, then: Data) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Of which kind each row is now and was then, both in the order of marks, by the columns of both that are the same in most rows; None where none is known."""
    common = {column_of(heading).name for heading in now.data.columns} & {
        column_of(heading).name for heading in then.columns
    }
    cells = [_cells_by(common, now.data, now.cells), _cells_by(common, then, _kept(folder, then.cells))]
    known = [one for one in cells if one is not None]
    if len(known) < len(cells):
        return None
    steady = _steady(known)
    _, place = np.unique(np.concatenate(steady), return_inverse=True, axis=0)
    here, there = np.split(place.reshape(-1), [len(steady[0])])
    return here, there


def _counted(marks: Sequence[Words]) -> NDArray[np.int64]:
    """How often each row of marks is there at each time."""
    rows, place = np.unique(np.concatenate(marks), return_inverse=True, axis=0)
    count = np.zeros((len(rows), len(marks)), np.int64)
    np.add.at(count, (place.reshape(-1), np.repeat(np.arange(len(marks)), [len(one) for one in marks])), 1)
    return count


def _steady(cells: Sequence[Words]) -> list[Words]:
    """Without the columns that are others in half of the rows: by an age as of today, or by dates that were numbers, no row would be known again."""
    steady = []
    for column in range(cells[0].shape[1]):
        count = _counted([one[:, column : column + 1] for one in cells])
        apart = np.abs(count - count[:, :1]).sum(axis=0)
        steady.append(bool((apart <= (count.sum(axis=0) + count[:, 0].sum()) / 2).all()))
    return [one[:, steady] if any(steady) else one for one in cells]


def rows_in(folder: Path, now: Marked, parts: Sequence[tuple[Data, Fraction]], columns: Iterable[str]) -> int:
    """How many rows at least make up a combination of this site's data as they are now and as they were, told apart by some columns.

    A row counts by how often it is left over. Where rows can't be told apart it is known at least that the counts of the rows differ.
    """
    largest = max(abs(times) for _, times in parts)
    count = copies(folder, now, [data for data, _ in parts], columns)
    if count is None:
        return math.floor(abs(sum((times * data.rows for data, times in parts), Fraction(0))) / largest)
    whole = math.lcm(*(times.denominator for _, times in parts))
    left = count @ np.array([int(times * whole) for _, times in parts], np.int64)
    return math.floor(int(np.abs(left).sum()) / (largest * whole))
