"""The log of an agent: one line of JSON an event, with nothing in it that the site keeps to itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path


class JsonLog:
    """Events by name, with who and which hand-over; only whole numbers and words, never a coordinate or a residual."""

    def __init__(self, path: Path, site: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._site = site

    def __call__(self, event: str, **about: str | int) -> None:
        """Write a line."""
        for name, value in about.items():
            if not isinstance(value, (str, int)):
                raise TypeError(f"The log of {event!r} would hold {name}, which is neither a whole number nor words.")
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "site": self._site, "event": event}
        self._file.write(json.dumps(line | about, ensure_ascii=False) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
