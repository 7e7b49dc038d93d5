"""A file that is either the old one or the new one, whatever happens."""

from __future__ import annotations

import os
import threading
from pathlib import Path


def write_synced(path: Path, content: bytes | memoryview) -> None:
    """Write beside the target, have it on the disk, and move it into place; the move is on the disk too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        with open(beside, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # elsewhere a folder can't be opened
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
