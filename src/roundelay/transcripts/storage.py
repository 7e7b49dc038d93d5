"""A transcript in one file: .npz, exact and compact, or .csv, which any program can write."""

from __future__ import annotations

import csv
import os
import threading
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Matrix
from roundelay.transcripts.transcript import SealedLap, Transcript

ARRAYS = ("hop", "sender", "receiver", "relayed", "tokens")
SEALED = ("place", "sender", "receiver", "words")
# What reading a file raises that is none of ours, or damaged. What they say is about NumPy, zip and pickle, and
# part of it is advice to load the file unsafely: it is not passed on.
DAMAGED = (
    ValueError, KeyError, EOFError, TypeError, AttributeError, NotImplementedError, zipfile.BadZipFile, zlib.error,
    MemoryError,  # it claims more than there is
)  # fmt: skip


def packed(transcript: Transcript) -> dict[str, NDArray[Any]]:
    """Every array under its name; those of a sealed lap and of masked links only where there are any."""
    arrays: dict[str, NDArray[Any]] = {name: getattr(transcript, name) for name in ARRAYS}
    if transcript.wire is not None:
        arrays |= {"wire": transcript.wire, "wire_bits": np.array(transcript.wire_bits)}
    for prefix, lap in _prefixed(transcript):
        arrays |= {f"{prefix}_{name}": getattr(lap, name) for name in SEALED}
        arrays[f"{prefix}_about"] = np.array([lap.bits, lap.length, lap.agents, lap.wide, lap.kind, lap.masked])
        arrays[f"{prefix}_told"] = lap.told
        if lap.wire is not None:
            arrays[f"{prefix}_wire"] = lap.wire
    return arrays


def _prefixed(transcript: Transcript) -> list[tuple[str, SealedLap]]:
    """Every sealed lap, after what its arrays' names begin with."""
    laps = [(f"lap{number}", lap) for number, lap in enumerate(transcript.laps)]
    return laps if transcript.sealed is None else [("sealed", transcript.sealed), *laps]


def unpacked(arrays: Mapping[str, NDArray[Any]]) -> Transcript:
    """The transcript again."""
    hop, sender, receiver = (arrays[name].astype(np.int64) for name in ARRAYS[:3])
    wire = arrays["wire"].astype(np.uint64) if "wire" in arrays else None
    return Transcript(
        hop,
        sender,
        receiver,
        arrays["relayed"].astype(bool),
        arrays["tokens"].astype(np.float64),
        sealed=_sealed(arrays, "sealed") if "sealed_words" in arrays else None,
        wire=wire,
        wire_bits=0 if wire is None else int(arrays["wire_bits"]),
        laps=tuple(_sealed(arrays, f"lap{number}") for number in range(_laps_in(arrays))),
    )


def _laps_in(arrays: Mapping[str, NDArray[Any]]) -> int:
    count = 0
    while f"lap{count}_words" in arrays:
        count += 1
    return count


def _sealed(arrays: Mapping[str, NDArray[Any]], prefix: str) -> SealedLap:
    place, sender, receiver = (arrays[f"{prefix}_{name}"].astype(np.int64) for name in SEALED[:3])
    bits, length, agents, wide, kind, masked = (int(number) for number in arrays[f"{prefix}_about"])
    wire = arrays[f"{prefix}_wire"].astype(np.uint64) if f"{prefix}_wire" in arrays else None
    return SealedLap(
        place, sender, receiver, arrays[f"{prefix}_words"].astype(np.uint64), bits, length, agents, wire, bool(wide), kind,
        arrays[f"{prefix}_told"].astype(np.float64), bool(masked),
    )  # fmt: skip


FORMAT = 2
# A lazy walk stays where it is for some hops, in which no message is sent.
MOST_HOPS_BETWEEN = 100_000
COLUMNS = ("hop", "sender", "receiver", "relayed")
TRUTHS = {"0": False, "1": True, "false": False, "true": True}


def save_transcript(transcript: Transcript, path: str | Path) -> Path:
    """Write it to `path`, as text where the name ends in .csv; a crash leaves no half a file."""
    target = Path(path)
    if target.suffix.lower() == ".csv" and (
        transcript.sealed is not None or transcript.laps or transcript.wire is not None
    ):
        raise ValueError(
            f"{target} would hold plain tokens only, but this transcript has sealed or masked words: save it as .npz."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f"{target.name}.{os.getpid()}-{threading.get_ident()}.part")
    write = _write_csv if target.suffix.lower() == ".csv" else _write_npz
    try:
        with open(beside, "xb") as file:
            write(transcript, file)
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return target


def load_transcript(path: str | Path) -> Transcript:
    """Read a transcript that `save_transcript` or another program wrote: .npz, or .csv with a header.

    A .csv has the columns hop, sender, receiver, optionally relayed (0 or 1), and the token's coordinates z0, z1, …
    """
    source = Path(path)
    if not source.is_file():
        raise ValueError(f"There is no file {source}: give the path of a saved transcript.")
    read: Callable[[Path], Transcript] = _read_csv if source.suffix.lower() == ".csv" else _read_npz
    transcript = read(source)
    _check(source, transcript)
    return transcript


def _write_npz(transcript: Transcript, file: IO[bytes]) -> None:
    arrays: dict[str, Any] = {"transcript_format": np.array(FORMAT), **packed(transcript)}
    np.savez_compressed(file, **arrays)


def _write_csv(transcript: Transcript, file: IO[bytes]) -> None:
    dim = transcript.tokens.shape[1]
    lines = [",".join([*COLUMNS, *(f"z{d}" for d in range(dim))])]
    for row in range(len(transcript)):
        about = [int(getattr(transcript, name)[row]) for name in COLUMNS]
        # repr of a float is the shortest text that reads back as the same number.
        lines.append(",".join([*map(str, about), *(repr(float(number)) for number in transcript.tokens[row])]))
    file.write(("\n".join(lines) + "\n").encode())


def _read_npz(path: Path) -> Transcript:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            content = dict(arrays)
        found = int(content["transcript_format"])
    except OSError as error:
        raise ValueError(
            f"{path} can't be read ({error.strerror or error}): give the path of a saved transcript."
        ) from None
    except DAMAGED:
        raise ValueError(
            f"{path} is not a saved transcript, or it is damaged: save the transcript again, or give a .csv file."
        ) from None
    if found != FORMAT:
        raise ValueError(
            f"{path} has the format {found}, but this version of roundelay reads {FORMAT}: use the version that wrote it."
        )
    missing = [name for name in (*COLUMNS, "tokens") if name not in content]
    if missing:
        raise ValueError(f"{path} has no {missing[0]!r}: save the transcript again.")
    if not all(np.issubdtype(content[name].dtype, np.number) or content[name].dtype == bool for name in content):
        raise ValueError(f"{path} holds something that is not a number: save the transcript again.")
    try:
        return unpacked(content)
    except KeyError as error:
        raise ValueError(f"{path} has no {error}: save the transcript again.") from None


def _read_csv(path: Path) -> Transcript:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a text file of comma-separated values ({error}): write it as UTF-8.") from None
    header = [name.strip() for name in rows[0]] if rows else []
    needed = ("hop", "sender", "receiver", "z0")
    for name in needed:
        if name not in header:
            raise ValueError(
                f"{path} has no column {name!r} in its first line: it needs hop, sender, receiver and the token's z0, z1, …"
            )
    dim = sum(name.startswith("z") and name[1:].isdigit() for name in header)
    known = {*COLUMNS, *(f"z{d}" for d in range(dim))}
    for name in header:
        if name not in known or header.count(name) > 1:
            raise ValueError(
                f"{path} has the column {name!r}, which is unknown, out of order or there twice: "
                "use hop, sender, receiver, relayed and z0, z1, …, each once."
            )
    body = rows[1:]
    for line, row in enumerate(body, start=2):
        if len(row) != len(header):
            raise ValueError(f"Row {line} of {path} has {len(row)} values, but the first has {len(header)}: repair it.")

    def column(name: str, read: Callable[[str], Any], kind: str) -> list[Any]:
        place, values = header.index(name), []
        for line, row in enumerate(body, start=2):
            try:
                values.append(read(row[place].strip()))
            except (ValueError, KeyError):
                raise ValueError(
                    f"Row {line} of {path} has {row[place]!r} in the column {name!r}: write {kind}."
                ) from None
        return values

    hop, sender, receiver = (np.array(column(name, int, "a whole number"), np.int64) for name in COLUMNS[:3])
    relayed = np.zeros(len(body), bool)
    if "relayed" in header:
        relayed = np.array(column("relayed", lambda text: TRUTHS[text.lower()], "0 or 1"), bool)
    tokens: Matrix = np.array([column(f"z{d}", float, "a number") for d in range(dim)], np.float64)
    return Transcript(hop, sender, receiver, relayed, np.ascontiguousarray(tokens.reshape(dim, len(body)).T))


def _check(path: Path, transcript: Transcript) -> None:
    """Refuse what can't be a transcript."""
    columns: Sequence[NDArray[Any]] = [getattr(transcript, name) for name in COLUMNS]
    if transcript.tokens.ndim != 2 or any(column.shape != (len(transcript.tokens),) for column in columns):
        raise ValueError(f"{path} has columns of different lengths: save the transcript again.")
    if not len(transcript) and transcript.laps:
        return  # no token went round, only sums
    if not len(transcript):
        raise ValueError(f"{path} has no messages: give the transcript of at least one hop.")
    for name, column in zip(COLUMNS[:3], columns, strict=False):
        if column.min(initial=0) < 0:
            row = int(np.flatnonzero(column < 0)[0])
            raise ValueError(
                f"Message {row + 1} of {path} has the {name} {column[row]}: hops and agents are counted from 0."
            )
    if (np.diff(transcript.hop) < 0).any():
        row = int(np.flatnonzero(np.diff(transcript.hop) < 0)[0]) + 1
        raise ValueError(
            f"Message {row + 1} of {path} has the hop {transcript.hop[row]}, after {transcript.hop[row - 1]}: "
            "put the messages in the order in which they were sent."
        )
    check_hops(path, transcript)
    strange = ~np.isfinite(transcript.tokens).all(axis=1)
    if strange.any():
        row = int(np.flatnonzero(strange)[0])
        raise ValueError(f"Message {row + 1} of {path} has a token that is not finite: leave out what has diverged.")


def check_hops(path: str | Path, transcript: Transcript) -> None:
    """Refuse hops that are missing by the million: whoever replays a transcript goes through all of them."""
    apart = np.diff(transcript.hop, prepend=0)
    if apart.max(initial=0) > MOST_HOPS_BETWEEN:
        raise ValueError(
            f"Message {int(apart.argmax()) + 1} of {path} comes {apart.max():,} hops after the one before it, and no token stays so long where it is: "
            "save the transcript again."
        )
