"""A file that is either the old one or the new one, whatever happens."""

from __future__ import annotations

import os
import secrets
import threading
from pathlib import Path

PRIVATE, PUBLIC = 0o600, 0o644


def write_new(path: Path, content: bytes, mode: int = PRIVATE) -> None:
    """Write a file that must not exist yet, and wait until it is on the disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_whole(path: Path, content: bytes, mode: int = PRIVATE) -> None:
    """Write a file beside its place and move it there, so that no reader ever finds a part of it."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write_new(beside, content, mode)
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the folder itself knows its new file."""
    if os.name != "posix":  # other systems have no handle on a folder
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_at_most(path: Path, most: int) -> bytes:
    """The content of a file up to one byte more than `most`, which tells that there is too much of it."""
    with open(path, "rb") as file:
        return file.read(most + 1)


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
