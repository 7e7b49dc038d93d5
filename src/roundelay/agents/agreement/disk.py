"""Files that are on the disk when they have been written, and are either the old one or the new one, whatever happens."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # other systems than POSIX
    fcntl = None  # type: ignore[assignment]

# For the user alone; for all to read; and as the user has it for new files.
PRIVATE, PUBLIC, USUAL = 0o600, 0o644, 0o666


def write_new(path: Path, content: bytes | memoryview, mode: int = PRIVATE) -> None:
    """Write a file that must not exist yet, and wait until it is on the disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_whole(path: Path, content: bytes | memoryview, mode: int = PRIVATE) -> None:
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


def make_private(folder: Path) -> None:
    """Make a folder for the user alone, with those that it is in, and wait until each is on the disk."""
    if not folder.parent.is_dir():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)  # also where it is there: whoever made it may have died before this


def read_at_most(path: Path, most: int) -> bytes:
    """The content of a file up to one byte more than `most`, which tells that there is too much of it."""
    with open(path, "rb") as file:
        return file.read(most + 1)


@contextmanager
def _locked(path: Path, exclusive: bool) -> Iterator[None]:
    """A lock on an empty file; one that dies lets go of it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def in_use(path: Path) -> AbstractContextManager[None]:
    """Show others that something is in use."""
    return _locked(path, exclusive=False)


def is_in_use(path: Path) -> bool:
    """Whether somebody shows that; whoever begins at this moment is not kept from it."""
    if fcntl is None or not path.exists():
        return False
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def one_at_a_time(path: Path) -> AbstractContextManager[None]:
    """Let one process at a time do something."""
    return _locked(path, exclusive=True)
