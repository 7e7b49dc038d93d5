"""Recorded messages of other federated protocols: a file that others can write easily, and that is believed in nothing.

A file is JSON, line by line. The first line says what was run, every further one is what one site sent in one iteration,
under the names that the protocol itself has for it:

    {"roundelay": "protocol messages", "format": 1, "protocol": "ds.glm", "family": "binomial", "columns": ["constant", "age"]}
    {"site": "Oslo", "iteration": 1, "beta": [0, 0], "score.vect": [-1.5, 3.2], "info.matrix": [[2, 9], [9, 48]], "dev": 11.1, "numsubs": 8}

`columns` are those of the design matrix X, the first of which is the constant 1. A protocol with numbers of its own, such as
the learning rate of federated averaging, has them in the first line, too.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.privacy.protocols.known import Known
from roundelay.registry import registered
from roundelay.tables import harmless, in_short

MARK, FORMAT = "protocol messages", 1
FAMILIES = ("binomial", "gaussian")
# What a file may be made of: whoever sent it may want to fill the memory of who reads it.
MOST_BYTES, MOST_MESSAGES, MOST_COLUMNS, MOST_NUMBERS, MOST_LETTERS = 2**26, 20_000, 100, 4_000_000, 200

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Message:
    """What one site sent in one iteration, and to what: numbers under the protocol's own names."""

    site: str
    iteration: int
    values: Mapping[str, Array]

    def get(self, name: str) -> Array:
        """A value that the protocol can't do without."""
        if name not in self.values:
            raise ValueError(
                f"The message of {self.site} in iteration {self.iteration} has no {name!r}: record it, too."
            )
        return self.values[name]

    def number(self, name: str) -> float:
        """A value that is one number."""
        return float(self.get(name))

    def rows(self, name: str) -> int:
        """A value that counts rows."""
        count = self.number(name)
        if not (1 <= count <= 1e9 and count == int(count)):
            raise ValueError(f"{self.site} says that {name!r} is {count:g}: it counts rows, and there is one at least.")
        return int(count)


class FederatedProtocol(Protocol):
    """The slot of another protocol: a frozen dataclass that says what a site sends, and what that makes known.

    Its fields are numbers that all know, such as a learning rate. `values` has the name of everything that stands in a message and
    its shape, in p columns and n rows: "" for a number, "p", "p p", "n".
    """

    title: ClassVar[str]
    seen_by: ClassVar[str]
    source: ClassVar[str]
    values: ClassVar[Mapping[str, str]]

    def known(self, recorded: RecordedMessages, site: str) -> Known:
        """What the messages of a site say of its rows."""


@dataclass(frozen=True, eq=False)
class RecordedMessages:
    """All messages of one fit: the protocol, the family of the model, the columns of X, and what every site sent."""

    protocol: Any
    family: str
    columns: tuple[str, ...]
    messages: tuple[Message, ...]

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ValueError(f"The family is {in_short(self.family)}: use {' or '.join(FAMILIES)}.")
        if not 1 <= len(self.columns) <= MOST_COLUMNS or len(set(self.columns)) < len(self.columns):
            raise ValueError(f"There are 1 to {MOST_COLUMNS} columns, each with a name of its own, the constant first.")
        for one in self.messages:
            self._check(one)

    @property
    def sites(self) -> tuple[str, ...]:
        """Who sent anything, in the order in which they first did."""
        return tuple(dict.fromkeys(one.site for one in self.messages))

    def of_site(self, site: str) -> tuple[Message, ...]:
        """The messages of a site, in the order of their iterations."""
        found = sorted((one for one in self.messages if one.site == site), key=lambda one: one.iteration)
        if not found:
            raise ValueError(
                f"No message is of {in_short(site)}: there are those of {', '.join(self.sites) or 'nobody'}."
            )
        return tuple(found)

    def _check(self, one: Message) -> None:
        for name, value in one.values.items():
            shape = self.protocol.values.get(name)
            where = f"{name!r} in the message of {one.site} in iteration {one.iteration}"
            if shape is None:
                known = ", ".join(self.protocol.values)
                raise ValueError(f"There is no {where} under {self.protocol.title}: it has {known}.")
            wanted = tuple(len(self.columns) if letter == "p" else -1 for letter in shape.split())
            if len(wanted) != value.ndim or any(w not in (-1, h) for w, h in zip(wanted, value.shape, strict=True)):
                words = " by ".join("any number" if w < 0 else str(w) for w in wanted) or "one number"
                had = " by ".join(map(str, value.shape)) or "one number"
                raise ValueError(f"{where[0].upper()}{where[1:]} has the shape {had}: it should be {words}.")
            if not np.isfinite(value).all():
                raise ValueError(
                    f"{where[0].upper()}{where[1:]} is not finite: a site that sent no number sent nothing."
                )


# ---------------------------------------------------------------- files


def save_messages(recorded: RecordedMessages, path: str | Path) -> Path:
    """Write recorded messages, a line each; numbers to their last digit."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    word = next(word for word, kind in registered(FederatedProtocol).items() if kind is type(recorded.protocol))
    about = {"roundelay": MARK, "format": FORMAT, "protocol": word, **dataclasses.asdict(recorded.protocol)}
    lines = [about | {"family": recorded.family, "columns": list(recorded.columns)}]
    for one in recorded.messages:
        numbers = {name: value.tolist() for name, value in one.values.items()}
        lines.append({"site": one.site, "iteration": one.iteration, **numbers})
    target.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return target


def load_messages(path: str | Path, protocol: str | None = None) -> RecordedMessages:
    """Read recorded messages; whatever does not fit is refused by a sentence that names the line."""
    source = Path(path)
    if not source.is_file():
        raise ValueError(f"There is no file {source}: give recorded messages, as docs/protocols.md describes them.")
    if source.stat().st_size > MOST_BYTES:
        raise ValueError(f"{source} has more than {MOST_BYTES // 2**20} MB: record fewer iterations or fewer columns.")
    try:
        lines = [line for line in source.read_bytes().decode("utf-8").split("\n") if line.strip()]
    except UnicodeDecodeError:
        raise ValueError(f"{source} is no text in UTF-8: recorded messages are JSON, line by line.") from None
    if not 2 <= len(lines) <= MOST_MESSAGES + 1:
        raise ValueError(
            f"{source} has {len(lines)} lines: one that says what was run, and 1 to {MOST_MESSAGES} messages."
        )
    tables = [_table(line, place, source) for place, line in enumerate(lines, 1)]
    head = tables[0]
    if head.pop("roundelay", None) != MARK or head.pop("format", None) != FORMAT:
        raise ValueError(f'Line 1 of {source} must begin with "roundelay": "{MARK}", "format": {FORMAT}.')
    kind = _kind(head.pop("protocol", None), protocol, source)
    family, columns = head.pop("family", None), head.pop("columns", None)
    if not isinstance(columns, list) or not all(_is_name(one) for one in columns):
        raise ValueError(
            f'Line 1 of {source} has no "columns": a list of the names of the columns of X, the constant first.'
        )
    made = _of_head(kind, head, source)
    messages = tuple(_message(table, place, source) for place, table in enumerate(tables[1:], 2))
    return RecordedMessages(made, family if isinstance(family, str) else repr(family), tuple(columns), messages)


def _kind(word: object, wanted: str | None, source: Path) -> Any:
    known = registered(FederatedProtocol)
    if wanted is not None and wanted not in known:
        raise ValueError(f"There is no protocol {in_short(wanted)}: use {', '.join(known)}.")
    if not isinstance(word, str) or word not in known:
        raise ValueError(f"{source} is of the protocol {in_short(word)}: known are {', '.join(known)}.")
    if wanted not in (None, word):
        raise ValueError(f"{source} has messages of {word}, not of {wanted}: name the protocol that was run.")
    return known[word]


def _of_head(kind: Any, head: Mapping[str, Any], source: Path) -> Any:
    names = {field.name for field in dataclasses.fields(kind)}
    if set(head) != names:
        odd = ", ".join(in_short(name) for name in sorted(set(head) ^ names))
        raise ValueError(f"Line 1 of {source} should have exactly the numbers of {kind.title}; look at {odd}.")
    for name, value in head.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not _fits(value):
            raise ValueError(f"{name!r} in line 1 of {source} is {in_short(value)}: it is a number.")
    return kind(**head)


def _table(line: str, place: int, source: Path) -> dict[str, Any]:
    def refuse(word: str) -> float:
        raise ValueError(f"{word} is no number")

    try:
        table = json.loads(line, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"Line {place} of {source} is no JSON ({type(error).__name__}): one object stands in each line."
        ) from None
    if not isinstance(table, dict):
        raise ValueError(f"Line {place} of {source} is {in_short(table)}: one object stands in each line.")
    return table


def _message(table: dict[str, Any], place: int, source: Path) -> Message:
    site, iteration = table.pop("site", None), table.pop("iteration", None)
    if not _is_name(site):
        raise ValueError(
            f'Line {place} of {source} has no "site": the name of who sent it, in up to {MOST_LETTERS} letters.'
        )
    if isinstance(iteration, bool) or not isinstance(iteration, int) or not 0 <= iteration <= 10**9:
        raise ValueError(f'Line {place} of {source} has no "iteration": a whole number from 0.')
    return Message(str(site), iteration, {name: _array(value, name, place, source) for name, value in table.items()})


def _array(value: object, name: str, place: int, source: Path) -> Array:
    def numbers(part: object, depth: int) -> bool:
        if isinstance(part, list):
            return depth < 2 and all(numbers(one, depth + 1) for one in part)
        return isinstance(part, int | float) and not isinstance(part, bool) and _fits(part)

    if numbers(value, 0):
        try:
            found = np.array(value, dtype=np.float64)
        except ValueError:
            found = np.full(MOST_NUMBERS + 1, np.nan)
        if found.size <= MOST_NUMBERS:
            return found
    raise ValueError(
        f"{in_short(name)} in line {place} of {source} is no number, no list and no matrix of finite numbers."
    )


def _fits(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MOST_LETTERS and harmless(value) == value


def several(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
