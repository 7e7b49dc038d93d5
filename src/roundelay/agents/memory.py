"""Vectors of megabytes without a trip to the operating system for each."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

from roundelay.kernels import Matrix

# Of glibc's malloc.h.
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
KEEP = 2**30


def keep_freed_memory() -> None:
    """Let large blocks that are freed be used again.

    Otherwise every vector of a few megabytes is new memory, whose pages the system clears one by one: at a million
    unknowns that takes longer than the arithmetic. Where there is no glibc nothing is changed.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(ARENA_MAX, 1)  # long work runs in a thread, which must find what the others have freed
    mallopt(MMAP_THRESHOLD, KEEP)
    mallopt(TRIM_THRESHOLD, KEEP)


def untouched_zeros(rows: int, columns: int) -> Matrix:
    """Zeros of which only those rows take memory that are ever touched, whatever was freed before."""
    return np.frombuffer(mmap.mmap(-1, max(8 * rows * columns, 1))).reshape(rows, columns)
