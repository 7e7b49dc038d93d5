"""What a task depends on, as a key; and a folder in which the row of each key is kept as soon as it is there.

A row is a Parquet file of plain columns under the name of its key: nothing in it is ever run. It appears wholly or not at all, so that
several may work into one folder.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from roundelay.networks import Network
from roundelay.problems import Problem
from roundelay.problems.row_problem import RowProblem
from roundelay.shown.provenance import provenance

# Whoever changes what a run computes, or what stands in a row, raises it: nothing that was kept before counts then.
FORMAT = 2

NUMBERS = ("units", "bytes", "seconds", "error", "accuracy", "consensus", "objective_gap", "gradient_norm", "objective")
WORDS = ("failed", "stop", "outcome", "engine", "roundelay")


# ---------------------------------------------------------------- the key


def key_of(described: Mapping[str, Any]) -> str:
    """The digest of what a task depends on, given as plain values."""
    words = json.dumps({"format": FORMAT, **described}, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(words.encode()).hexdigest()[:32]


class NoDigestError(ValueError):
    """Something of which nobody can tell whether it is the same again."""


def problem_digest(problem: Problem) -> str:
    """The digest of a problem's kind and of all its data; the same rows in lists or in one array are the same data."""
    if isinstance(problem, RowProblem):
        given = {"features", "targets", "weights"}
        options = {entry.name: getattr(problem, entry.name) for entry in fields(problem) if entry.name not in given}  # type: ignore[arg-type]
        rows = problem.rows
        content: Any = (rows.features, rows.targets, rows.starts, problem.scales, options)
    elif is_dataclass(problem):
        content = {entry.name: getattr(problem, entry.name) for entry in fields(problem) if entry.init}
    else:
        kind = type(problem)
        content = {
            name: value
            for name, value in vars(problem).items()
            if not isinstance(getattr(kind, name, None), cached_property)
        }
    known = getattr(problem, "given_optimum", None)
    words = type(problem).__module__, type(problem).__qualname__
    return _digest((*words, content, known), f"A {type(problem).__name__}")


def network_digest(network: Network) -> str:
    """The digest of a network's links, their costs, and the cycle that is known of it."""
    return _digest((network.agents, network.edges, network.costs, network.planted_cycle), "A network")


def _digest(content: Any, what: str) -> str:
    sum_ = hashlib.sha256()
    for piece in _pieces(content, what):
        sum_.update(len(piece).to_bytes(8, "little"))
        sum_.update(piece)
    return sum_.hexdigest()[:32]


def _pieces(value: Any, what: str) -> Any:
    """The value as bytes, piece by piece, with its structure."""
    if value is None or isinstance(value, bool | int | float | str | np.number | np.bool_):
        plain = value.item() if isinstance(value, np.generic) else value
        yield f"{type(plain).__name__} {plain!r}".encode()
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield f"array {value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif hasattr(value, "tocsr"):  # a sparse matrix
        rows = value.tocsr()
        rows.sum_duplicates()
        yield f"sparse {rows.shape}".encode()
        yield from _pieces((rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)), what)
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)}".encode()
        for name in sorted(value):
            yield from _pieces((name, value[name]), what)
    elif isinstance(value, Sequence | np.ndarray):
        yield f"sequence {len(value)}".encode()
        for entry in value:
            yield from _pieces(entry, what)
    elif is_dataclass(value) and not isinstance(value, type):
        yield type(value).__qualname__.encode()
        yield from _pieces({entry.name: getattr(value, entry.name) for entry in fields(value) if entry.init}, what)
    else:
        raise NoDigestError(
            f"{what} holds a {type(value).__name__}, of which nobody can say from its text alone whether it is the same one again: a sweep takes "
            "problems of numbers, such as roundelay.LeastSquares, or one of a class of your own whose fields are numbers and arrays, and any other in this process "
            "alone (processes=0) and without a folder."
        )


# ---------------------------------------------------------------- the folder


@dataclass(frozen=True)
class Kept:
    """A folder of rows, KEY.parquet each."""

    folder: Path

    def path(self, key: str) -> Path:
        """Where the row of this key is."""
        return self.folder / f"{key}.parquet"

    def keys(self) -> set[str]:
        """The keys of which there are rows, as of now."""
        return {path.stem for path in self.folder.glob("*.parquet")}

    def write(self, key: str, described: Mapping[str, Any], row: Mapping[str, Any]) -> None:
        """Write a row beside its place and move it there."""
        arrow, parquet = _pyarrow()
        content = {"key": key, "format": FORMAT, "task": json.dumps(described, sort_keys=True), **row}
        table = arrow.Table.from_pydict({name: [content.get(name)] for name in self._schema.names}, schema=self._schema)
        beside = self.folder / f".{key}.{uuid4().hex}.part"
        try:
            made = {name: said.encode() for name, said in provenance().items()}
            parquet.write_table(table.replace_schema_metadata(made), beside)
            os.replace(beside, self.path(key))
        finally:
            beside.unlink(missing_ok=True)

    def read(self, key: str) -> dict[str, Any] | None:
        """The row of this key; None where there is none that can be read, so that it is computed."""
        arrow, parquet = _pyarrow()
        with suppress(OSError, ValueError, KeyError, arrow.ArrowException):
            with parquet.ParquetFile(self.path(key)) as file:
                if file.metadata.num_rows != 1:
                    return None
                row: dict[str, Any] = file.read(columns=self._schema.names).cast(self._schema).to_pylist()[0]
            if row["key"] == key and row["format"] == FORMAT:
                return row
        return None

    @cached_property
    def _schema(self) -> Any:
        arrow, _ = _pyarrow()
        words = [(name, arrow.string()) for name in ("key", "task", *WORDS)]
        numbers = [(name, arrow.float64()) for name in NUMBERS]
        return arrow.schema(
            [
                *words,
                ("format", arrow.int64()),
                ("steps", arrow.int64()),
                *numbers,
                ("costs", arrow.list_(arrow.float64())),
            ]
        )


def opened(folder: Path) -> Kept:
    """The folder, made where there is none; what is missing for that is said before the work begins."""
    _pyarrow()
    folder.mkdir(parents=True, exist_ok=True)
    return Kept(folder)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            "A folder of results needs the package pyarrow: install it by pip install 'roundelay[cluster]', or leave `folder` out."
        ) from None
    return pyarrow, parquet
