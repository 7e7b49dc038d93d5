"""A transcript as named arrays and back, as it stands in the files of transcripts and of runs."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roundelay.transcripts.sealed import SealedLap
from roundelay.transcripts.transcript import Transcript

COLUMNS = ("hop", "sender", "receiver", "relayed", "tokens")
SEALED = ("place", "sender", "receiver", "words")
# What reading a file raises that is none of ours, or damaged. What they say is about NumPy, zip and pickle, and
# part of it is advice to load the file unsafely: it is not passed on.
DAMAGED = (
    ValueError, KeyError, EOFError, TypeError, AttributeError, NotImplementedError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def packed(transcript: Transcript) -> dict[str, NDArray[Any]]:
    """Every array under its name; those of a sealed lap and of masked links only where there are any."""
    arrays: dict[str, NDArray[Any]] = {name: getattr(transcript, name) for name in COLUMNS}
    if transcript.wire is not None:
        arrays |= {"wire": transcript.wire, "wire_bits": np.array(transcript.wire_bits)}
    lap = transcript.sealed
    if lap is not None:
        arrays |= {f"sealed_{name}": getattr(lap, name) for name in SEALED}
        arrays["sealed_about"] = np.array([lap.bits, lap.length, lap.agents])
        if lap.wire is not None:
            arrays["sealed_wire"] = lap.wire
    return arrays


def unpacked(arrays: Mapping[str, NDArray[Any]]) -> Transcript:
    """The transcript again."""
    hop, sender, receiver = (arrays[name].astype(np.int64) for name in COLUMNS[:3])
    wire = arrays["wire"].astype(np.uint64) if "wire" in arrays else None
    return Transcript(
        hop,
        sender,
        receiver,
        arrays["relayed"].astype(bool),
        arrays["tokens"].astype(np.float64),
        sealed=_sealed(arrays) if "sealed_words" in arrays else None,
        wire=wire,
        wire_bits=0 if wire is None else int(arrays["wire_bits"]),
    )


def _sealed(arrays: Mapping[str, NDArray[Any]]) -> SealedLap:
    place, sender, receiver = (arrays[f"sealed_{name}"].astype(np.int64) for name in SEALED[:3])
    bits, length, agents = (int(number) for number in arrays["sealed_about"])
    wire = arrays["sealed_wire"].astype(np.uint64) if "sealed_wire" in arrays else None
    return SealedLap(place, sender, receiver, arrays["sealed_words"].astype(np.uint64), bits, length, agents, wire)
