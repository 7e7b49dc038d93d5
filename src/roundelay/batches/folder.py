"""A folder of Parquet files, cut into parts that are read one after another: where they begin and end follows from the files alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

PARQUET = (".parquet", ".pq")
# A part is as many row groups as it takes to have so many rows: what one core works on, and what is begun again where a worker dies.
ROWS_A_PART = 2**18
# So many rows are decoded at a time, from a buffer of so many bytes, which stays close to the core: a row group may be as large as it likes.
ROWS_A_BATCH, BUFFER = 2**16, 2**16


class PassError(RuntimeError):
    """A pass over the rows can't be made or ended, for the reason that the sentence gives; nothing is lost."""


@dataclass(frozen=True)
class Part:
    """Some row groups of a file as it was: so large, last changed then (in nanoseconds).

    `first` is the number of its first row, from 0, and `batch` how many rows are decoded at a time: all that decides how a sum is rounded.
    """

    path: str
    groups: tuple[int, ...]
    first: int
    rows: int
    size: int
    changed: int
    batch: int

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Record batches of these columns; a file that is no longer what it was is refused, also while it is read."""
        parquet = needed_parquet(self.path)
        self._check()
        metadata = _metadata(self.path, self.size, self.changed)
        try:
            with parquet.ParquetFile(
                self.path, metadata=metadata, pre_buffer=False, buffer_size=BUFFER, page_checksum_verification=True
            ) as file:
                yield from file.iter_batches(self.batch, self.groups, list(columns), use_threads=False)
        except (OSError, ArithmeticError, LookupError) as error:
            raise PassError(
                f"{self.path} can't be read ({_in_a_line(error)}): mend the file, or write it anew."
            ) from None
        self._check()

    def _check(self) -> None:
        size, changed = _state(self.path)
        if (size, changed) != (self.size, self.changed):
            raise PassError(
                f"{self.path} has changed since its rows were first read, and sums over rows that change are of no rows at all: put the file "
                "back, or begin anew with the files as they are."
            )


@dataclass(frozen=True)
class Folder:
    """All rows of the Parquet files of a folder, in the order of the files' names. Printing one shows its size."""

    path: str
    names: tuple[str, ...]
    parts: tuple[Part, ...]

    @cached_property
    def rows(self) -> int:
        """How many there are."""
        return sum(part.rows for part in self.parts)

    @property
    def files(self) -> tuple[str, ...]:
        """The files, in order."""
        return tuple(dict.fromkeys(part.path for part in self.parts))

    def __repr__(self) -> str:
        return f"Folder({self.path!r}, {len(self.files)} files, {self.rows:,} rows)"


def open_folder(path: str | Path) -> Folder:
    """The Parquet files of a folder and of the folders in it, or one file; names that begin with "." or "_" are left alone."""
    path = Path(path).absolute()  # workers of a cluster stand elsewhere
    parquet = needed_parquet(str(path))
    files = [path] if path.is_file() else _files_in(path)
    if not files:
        raise ValueError(f"There is no Parquet file in {path}: give a folder that has some, called NAME.parquet.")
    names: tuple[str, ...] = ()
    parts: list[Part] = []
    for file in files:
        size, changed = _state(str(file))
        try:
            metadata = _metadata(str(file), size, changed)
            here = tuple(str(name) for name in parquet.ParquetFile(file, metadata=metadata).schema_arrow.names)
        except Exception as error:  # pyarrow has many kinds of them for bytes that are wrong
            raise ValueError(
                f"{file} can't be read as Parquet ({_in_a_line(error)}): write it anew, or move it out of the folder."
            ) from None
        names = tuple(name for name in names if name in here) if parts else here
        parts += _parts_of(str(file), metadata, size, changed)
    if not parts:
        raise ValueError(f"The files in {path} have no rows: give at least one.")
    return Folder(str(path), names, tuple(parts))


def _files_in(path: Path) -> list[Path]:
    if not path.is_dir():
        raise ValueError(f"There is no folder {path}: check the path.")
    found = (file for file in path.rglob("*") if file.suffix.lower() in PARQUET and file.is_file())
    hidden = (".", "_")
    return sorted(
        (file for file in found if not any(part.startswith(hidden) for part in file.relative_to(path).parts)),
        key=lambda file: file.relative_to(path).parts,
    )


def _parts_of(path: str, metadata: Any, size: int, changed: int) -> Iterator[Part]:
    groups: list[int] = []
    first = rows = 0
    for number in range(metadata.num_row_groups):
        groups.append(number)
        rows += int(metadata.row_group(number).num_rows)
        last = number == metadata.num_row_groups - 1
        if rows and (rows >= ROWS_A_PART or last):
            yield Part(path, tuple(groups), first, rows, size, changed, ROWS_A_BATCH)
            groups, first, rows = [], first + rows, 0


def _state(path: str) -> tuple[int, int]:
    try:
        state = os.stat(path)
    except OSError as error:
        raise PassError(
            f"{path} can't be opened ({error.strerror}): put the file back, or check who may read it."
        ) from None
    return state.st_size, state.st_mtime_ns


@lru_cache(maxsize=256)
def _metadata(path: str, size: int, changed: int) -> Any:
    """What the end of a file says of it: read once, as long as the file is what it was."""
    return needed_parquet(path).read_metadata(path)


def needed_parquet(path: str) -> Any:
    """pyarrow's module for Parquet."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError(f"To read {path} by batches pyarrow is needed: pip install 'roundelay[batches]'.") from None
    return parquet


def _in_a_line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


# ---------------------------------------------------------------- rows of a query


# What DuckDB keeps in memory, whatever the query; beyond, it goes to disk beside the rows.
MEMORY = "512MB"


def rows_of_query(query: str, keep: str | Path, database: str | Path | None = None) -> Folder:
    """Ask DuckDB, of a database file or of the files that the query names, and keep the rows in the folder `keep`; what is kept already is not asked again.

    A query need not give its rows in the same order twice, nor the same rows. So what it gave is what is fitted, until somebody deletes
    the folder.
    """
    keep = Path(keep)
    rows, asked = keep / "rows.parquet", keep / "query.sql"
    wanted = query if database is None else f"-- of {database}\n{query}"
    if not rows.exists():
        for folder in (*reversed(keep.parents), keep):  # whatever is new is for nobody else
            folder.mkdir(mode=0o700, exist_ok=True)
        asked.write_text(wanted, encoding="utf-8")
        try:
            _ask(query, rows, database)
        except BaseException:
            asked.unlink()
            raise
    elif not asked.exists() or asked.read_text(encoding="utf-8") != wanted:
        raise ValueError(f"The folder {keep} has the rows of another query: delete it, or keep these rows elsewhere.")
    return open_folder(keep)


def _ask(query: str, rows: Path, database: str | Path | None) -> None:
    try:
        import duckdb
    except ImportError:
        raise ImportError("A query needs DuckDB: pip install 'roundelay[batches]'.") from None
    if database is not None and not Path(database).is_file():
        raise ValueError(f"There is no database {database}: check the path.")
    beside = rows.with_name(".rows.parquet.new")
    try:
        with duckdb.connect(
            ":memory:" if database is None else str(database), read_only=database is not None,
            config={"memory_limit": MEMORY, "temp_directory": str(rows.parent / ".spilled")},
        ) as connection:  # fmt: skip
            connection.sql(query.strip().rstrip(";")).write_parquet(str(beside))
    except duckdb.Error as error:
        beside.unlink(missing_ok=True)
        said = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"DuckDB can't answer the query ({said}): correct it.") from None
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    os.chmod(beside, 0o600)
    with open(beside, "rb") as file:
        os.fsync(file.fileno())
    beside.replace(rows)
