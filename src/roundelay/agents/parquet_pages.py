"""What the pages of a Parquet file claim to hold, read before memory is set aside for them.

pyarrow trusts the header of a page: a wrong bit in it, and gigabytes are asked for. A header is a struct in Thrift's
compact protocol, of which a few lines are enough here.
"""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

# Wire types of the compact protocol.
STOP, TRUE, FALSE, BYTE, SHORT, INT, LONG, DOUBLE, BINARY, STRUCT = 0, 1, 2, 3, 4, 5, 6, 7, 8, 12
# Fields of a page header, and the kinds of pages whose values count.
KIND, UNCOMPRESSED, COMPRESSED, DATA, DICTIONARY, DATA_V2 = 1, 2, 3, 5, 7, 8
DATA_PAGES = (0, 3)
DEEPEST = 8


def largest_claim(path: Path, metadata: Any, names: Collection[str]) -> int:
    """The most bytes that any page of these columns claims, plain; a ValueError where the pages can't be followed."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
        claims = (claim for chunk in chunks if chunk.path_in_schema in names for claim in _claims(content, chunk))
        return max(claims, default=0)


def _claims(content: mmap.mmap, chunk: Any) -> Iterator[int]:
    place, dictionary = int(chunk.data_page_offset), chunk.dictionary_page_offset
    if dictionary is not None and 0 < dictionary < place:
        place = int(dictionary)
    end, seen = place + int(chunk.total_compressed_size), 0
    while place < end and seen < chunk.num_values:
        header, place = _struct(content, place, DEEPEST)
        values = [
            header[field].get(1, 0) for field in (DATA, DICTIONARY, DATA_V2) if isinstance(header.get(field), dict)
        ]
        sizes = [header.get(UNCOMPRESSED, 0), header.get(COMPRESSED, 0), *values]
        if not all(isinstance(size, int) and size >= 0 for size in sizes):
            raise ValueError("A page has a size that is not one.")
        yield max(sizes[0], sizes[1], 8 * max(values, default=0))
        seen += sum(values) if header.get(KIND) in DATA_PAGES else 0
        place += sizes[1]


def _struct(content: mmap.mmap, place: int, deepest: int) -> tuple[dict[int, Any], int]:
    """The fields of a struct by their number, and where it ends."""
    fields: dict[int, Any] = {}
    number = 0
    while True:
        head, place = _byte(content, place)
        kind, step = head & 15, head >> 4
        if kind == STOP:
            return fields, place
        if step:
            number += step
        else:
            number, place = _whole(content, place)
        fields[number], place = _value(content, place, kind, deepest)


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
