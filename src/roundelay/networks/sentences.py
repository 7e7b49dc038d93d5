"""Lists of names as they read in a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def join_names(names: Sequence[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def shorten_names(first_names: Sequence[str], total: int, most: int = 8) -> str:
    """Return names between commas, the first `most` of them where there are more, and how many are left."""
    if total <= most:
        return ", ".join(first_names[:total])
    return f"{', '.join(first_names[:most])} and {total - most} more"
