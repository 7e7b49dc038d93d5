"""Vectors of megabytes without a trip to the operating system for each."""

from __future__ import annotations

import ctypes

# Of glibc's malloc.h.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
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
    mallopt(MMAP_THRESHOLD, KEEP)
    mallopt(TRIM_THRESHOLD, KEEP)
