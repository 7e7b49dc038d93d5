"""Tables from Parquet files, which may not claim more than a file of its size can hold."""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from roundelay.agents.data.table import Choose, Plain, Table, Texts
from roundelay.kernels import Vector
from roundelay.regression.columns import Column, columns_in

# Constant columns shrink without a limit, but what is fitted varies: a file that claims more is broken, or made to
# exhaust the memory. Beside that every file may claim a little.
GROWTH, ALWAYS = 1000, 2**26
MICROSECONDS_A_DAY = 86_400e6

# Wire types of the compact protocol, in which page headers are written.
STOP, TRUE, FALSE, BYTE, SHORT, INT, LONG, DOUBLE, BINARY, STRUCT = 0, 1, 2, 3, 4, 5, 6, 7, 8, 12
# Entries of a page header, and the kinds of pages whose values count.
KIND, UNCOMPRESSED, COMPRESSED, DATA, DICTIONARY, DATA_V2 = 1, 2, 3, 5, 7, 8
DATA_PAGES = (0, 3)
DEEPEST = 8


def read_parquet_table(path: Path, choose: Choose) -> Table:
    """The chosen columns of a Parquet file.

    By pyarrow alone: pandas would take a column away as the index where the file's notes say so.
    """
    file, headings, chosen = _opened(path, choose)
    import pyarrow
    from pyarrow import parquet

    with file:
        sought = [str(file.schema_arrow.names[number]) for number in chosen]
        try:
            # A text that many rows have is held once: each of its pages was counted once.
            texts = [name for name in sought if _is_text(pyarrow, file.schema_arrow.field(name).type)]
            coded = parquet.ParquetFile(path, page_checksum_verification=True, read_dictionary=texts)
            with coded:
                table = coded.read(columns=sought, use_threads=False)
            columns = tuple(_column(pyarrow, table.column(name)) for name in sought)
        except Exception:
            raise ValueError(_broken(path)) from None
    places = np.arange(1, table.num_rows + 1)
    return Table(str(path), tuple(headings[number] for number in chosen), columns, places, "row")


def _opened(path: Path, choose: Choose) -> tuple[Any, tuple[Column, ...], Sequence[int]]:
    """A file, what its header says, and which columns are chosen; one that claims what it can't hold is refused."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            f"{path} is a Parquet file, for which pyarrow is needed: run pip install 'roundelay[parquet]', or save it as CSV."
        ) from None
    try:
        file = parquet.ParquetFile(path, page_checksum_verification=True)  # of files that have checksums
        names, rows = [str(name) for name in file.schema_arrow.names], int(file.metadata.num_rows)
    except Exception:  # pyarrow has many kinds of them for bytes that are wrong
        raise ValueError(_broken(path)) from None
    try:
        headings = columns_in(names, str(path))
        chosen = choose(headings)
        for number in chosen:
            if _kind(pyarrow, file.schema_arrow.field(number).type) is None:
                raise ValueError(
                    f'{path} has neither numbers, texts nor dates in the column "{headings[number]}": convert it.'
                )
        sought = [names[number] for number in chosen]
        try:
            claim = max(8 * rows * len(chosen), claimed(path, file.metadata, sought))
        except Exception:
            raise ValueError(_broken(path)) from None
        if not 0 <= claim <= ALWAYS + GROWTH * path.stat().st_size:
            raise ValueError(
                f"{path} claims to hold more than a file of its size can well do: write it anew, or save it as CSV."
            )
    except BaseException:
        file.close()
        raise
    return file, headings, chosen


def table_of_batch(batch: Any, file: str, headings: tuple[Column, ...], first: int) -> Table:
    """The columns of a record batch, as they stand in it; its first row is the file's row `first`, counted from 0."""
    import pyarrow

    columns = tuple(_column(pyarrow, pyarrow.chunked_array([column])) for column in batch.columns)
    return Table(file, headings, columns, np.arange(first + 1, first + 1 + batch.num_rows), "row")


def headings_of(path: Path, choose: Choose) -> tuple[tuple[str, ...], tuple[Column, ...], tuple[str, ...]]:
    """Of the chosen columns of a file: what they are called in it, what that says, and what each holds. Its pages are looked at, too."""
    file, headings, chosen = _opened(path, choose)
    with file:
        sought = tuple(str(file.schema_arrow.names[number]) for number in chosen)
        fields = [file.schema_arrow.field(number).type for number in chosen]
    import pyarrow

    holds = tuple("truths" if pyarrow.types.is_boolean(one) else _kind(pyarrow, one) or "" for one in fields)
    return sought, tuple(headings[number] for number in chosen), holds


def _kind(pyarrow: Any, kind: Any) -> str | None:
    """What a column holds; None where nobody could read it."""
    types = pyarrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_date(kind) or types.is_timestamp(kind):
        return "dates"
    if types.is_boolean(kind) or _is_text(pyarrow, kind):
        return "texts"
    plain = (types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    return "numbers" if any(belongs(kind) for belongs in plain) else None


def _is_text(pyarrow: Any, kind: Any) -> bool:
    types = pyarrow.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _column(pyarrow: Any, column: Any) -> Texts | Plain:
    kind = _kind(pyarrow, column.type)
    if kind == "texts":
        coded = (
            column if pyarrow.types.is_dictionary(column.type) else column.cast(pyarrow.string()).dictionary_encode()
        )
        whole = coded.unify_dictionaries().combine_chunks()
        codes = whole.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return Texts(codes, whole.dictionary.to_pylist())
    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kind == "dates":
        micros = column.cast(pyarrow.timestamp("us"), safe=False).cast(pyarrow.int64())
        return Plain(_floats(pyarrow, micros) / MICROSECONDS_A_DAY, dates=True)
    return Plain(_floats(pyarrow, column))


def _floats(pyarrow: Any, column: Any) -> Vector:
    # Not "safe": a whole number beyond 2⁵³ is rounded, as it is where it is read from CSV.
    return np.asarray(column.cast(pyarrow.float64(), safe=False).to_numpy(), np.float64)


def _broken(path: Path) -> str:
    return f"{path} can't be read as Parquet, so it is broken or something else: write it anew, or save it as CSV."


# ---------------------------------------------------------------- what the pages claim


def claimed(path: Path, metadata: Any, names: Collection[str]) -> int:
    """How many bytes all pages of these columns claim, plain; a ValueError where the pages can't be followed."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
        claims = (claim for chunk in chunks if chunk.path_in_schema in names for claim in _claims(content, chunk))
        return sum(claims)


def _claims(content: mmap.mmap, chunk: Any) -> Iterator[int]:
    place, dictionary = int(chunk.data_page_offset), chunk.dictionary_page_offset
    if dictionary is not None and 0 < dictionary < place:
        place = int(dictionary)
    end, seen = place + int(chunk.total_compressed_size), 0
    while place < end and seen < chunk.num_values:
        header, place = _struct(content, place, DEEPEST)
        values = [
            header[entry].get(1, 0) for entry in (DATA, DICTIONARY, DATA_V2) if isinstance(header.get(entry), dict)
        ]
        sizes = [header.get(UNCOMPRESSED, 0), header.get(COMPRESSED, 0), *values]
        if not all(isinstance(size, int) and size >= 0 for size in sizes):
            raise ValueError("A page has a size that is not one.")
        yield max(sizes[0], sizes[1], 8 * max(values, default=0))
        seen += sum(values) if header.get(KIND) in DATA_PAGES else 0
        place += sizes[1]


def _struct(content: mmap.mmap, place: int, deepest: int) -> tuple[dict[int, Any], int]:
    """The entries of a struct by their number, and where it ends."""
    entries: dict[int, Any] = {}
    number = 0
    while True:
        head, place = _byte(content, place)
        kind, step = head & 15, head >> 4
        if kind == STOP:
            return entries, place
        if step:
            number += step
        else:
            number, place = _whole(content, place)
        entries[number], place = _value(content, place, kind, deepest)


def _value(content: mmap.mmap, place: int, kind: int, deepest: int) -> tuple[Any, int]:
    if kind in (TRUE, FALSE):
        return kind == TRUE, place
    if kind in (SHORT, INT, LONG):
        return _whole(content, place)
    if kind in (BYTE, DOUBLE):
        return None, place + (1 if kind == BYTE else 8)
    if kind == BINARY:
        length, place = _varint(content, place)
        return None, place + length
    if kind == STRUCT and deepest:
        return _struct(content, place, deepest - 1)
    raise ValueError("A page header has something that does not belong there.")


def _whole(content: mmap.mmap, place: int) -> tuple[int, int]:
    coded, place = _varint(content, place)
    return coded >> 1 ^ -(coded & 1), place


def _varint(content: mmap.mmap, place: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        byte, place = _byte(content, place)
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place
    raise ValueError("A page header has a number without an end.")


def _byte(content: mmap.mmap, place: int) -> tuple[int, int]:
    if not 0 <= place < len(content):
        raise ValueError("A page header lies beyond the file.")
    return content[place], place + 1
