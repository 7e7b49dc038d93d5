"""Files in the format of LIBSVM and SVMlight: a line a row, its target, then index:value wherever there is one."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Integers, Vector
from roundelay.kernels.checks import whole_number

# So many bytes are read at a time.
CHUNK = 1 << 24
MOST_FEATURES = 10**9
OPENERS: Mapping[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class Read(NamedTuple):
    """Some lines as numbers: targets, how many indices each line has, these, and the values."""

    targets: Vector
    counts: Integers
    indices: Integers
    values: Vector


def read_libsvm(path: str | Path, features: int | None = None) -> tuple[Any, NDArray[np.float64]]:
    """The features, a sparse matrix, and the targets of a file, packed by gzip, bzip2 or xz or not, as `rl.split` takes them.

    Indices count from 1, or from 0 where a 0 is among them. `features` is how many there are, where those with the largest indices may
    be missing in this file. A comment begins with #.
    """
    from scipy.sparse import csr_array

    file, parts, lines = Path(path), list[Read](), 0
    with _opened(file) as opened:
        while chunk := _lines(opened, file):
            parts.append(_read(chunk, lines, file))
            lines += len(chunk)
    if not any(len(part.targets) for part in parts):
        raise ValueError(f"{file} has no rows: a row is a target, then index:value wherever there is one.")
    targets, values = (np.concatenate([getattr(part, name) for part in parts]) for name in ("targets", "values"))
    counts, indices = (np.concatenate([getattr(part, name) for part in parts]) for name in ("counts", "indices"))
    indices = indices - (0 if indices.min(initial=1) == 0 else 1)
    dim = int(indices.max(initial=-1)) + 1
    if features is not None and whole_number("features", features, least=1) < dim:
        raise ValueError(
            f"{file} has an index for feature number {dim:,}, but features is {features:,}: say at least {dim:,}."
        )
    dim = max(dim, 1) if features is None else int(features)
    spans = np.concatenate([[0], np.cumsum(counts)])
    return csr_array((values, indices, spans), shape=(len(targets), dim)), targets


def _opened(file: Path) -> IO[bytes]:
    try:
        return OPENERS.get(file.suffix.lower(), open)(file, "rb")
    except FileNotFoundError:
        raise ValueError(f"There is no file {file}: give the path of one in the format of LIBSVM.") from None
    except OSError as error:
        raise ValueError(f"{file} can't be read ({error}).") from None


def _lines(opened: IO[bytes], file: Path) -> list[bytes]:
    try:
        return opened.readlines(CHUNK)
    except (OSError, EOFError, lzma.LZMAError, ValueError) as error:
        raise ValueError(f"{file} can't be read to its end ({error}): is it whole?") from None


def _read(lines: Sequence[bytes], before: int, file: Path) -> Read:
    """The numbers of these lines; where they are none, a sentence about the first that is wrong."""
    try:
        return _numbers(lines)
    except (ValueError, OverflowError) as error:
        for number, line in enumerate(lines, before + 1):
            try:
                _numbers([line])
            except (ValueError, OverflowError) as why:
                raise ValueError(
                    f"{file} can't be read in line {number} ({why}): a line is a target, then index:value, with indices that rise."
                ) from None
        raise ValueError(f"{file} can't be read ({error}).") from None


def _numbers(lines: Sequence[bytes]) -> Read:
    rows = [words for line in lines if (words := line.partition(b"#")[0].split())]
    pairs = [pair for row in rows for pair in row[1:]]
    together = b" ".join(pairs)
    if not (together.count(b":") == len(pairs) and all(b":" in pair for pair in pairs)):
        raise ValueError("there is something that is not index:value")
    numbers = np.array(list(map(float, together.replace(b":", b" ").split())))
    if len(numbers) != 2 * len(pairs):
        raise ValueError("there is something that is not index:value")
    targets, counts = np.array([float(row[0]) for row in rows]), np.array([len(row) - 1 for row in rows], np.int64)
    if not (np.isfinite(targets).all() and np.isfinite(numbers).all()):
        raise ValueError("a number is not finite")
    places, values = numbers[::2], numbers[1::2]
    if not ((places >= 0) & (places <= MOST_FEATURES) & (places == np.floor(places))).all():
        raise ValueError(f"an index is no whole number from 0 to {MOST_FEATURES:,}")
    owners = np.repeat(np.arange(len(rows)), counts)
    if not ((np.diff(places) > 0) | (np.diff(owners) > 0)).all():
        raise ValueError("its indices don't rise")
    return Read(targets, counts, places.astype(np.int64), values)
