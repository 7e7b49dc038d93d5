"""Whether other users of this machine can get at a site's keys."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

SECRET = ("key.pem", "*.key")


def open_to_others(folder: Path) -> tuple[tuple[str, str], ...]:
    """What stands open to others in a site's folder, each as a sentence, with the command that closes it."""
    if os.name != "posix":
        return ()
    found = []
    if folder.stat().st_mode & 0o077:
        found.append(
            (f"The folder {folder} is open to other users of this machine.", f"chmod 700 {shlex.quote(str(folder))}")
        )
    for place in (folder, *sorted(folder.glob("keys-*"))):
        for path in sorted({path for pattern in SECRET for path in place.glob(pattern)}):
            if path.stat().st_mode & 0o077:
                found.append(
                    (f"The key {path} can be read by others than its owner.", f"chmod 600 {shlex.quote(str(path))}")
                )
    return tuple(found)
