"""The passphrase by which a site's key is closed on disk: from a terminal or a file descriptor, never from a command line or a variable."""

from __future__ import annotations

import getpass
import os
import re
import sys
from functools import cache

# Names the file descriptor from which the passphrase is read up to the end of the line, such as 0 for stdin.
DESCRIPTOR = "ROUNDELAY_PASSPHRASE_FD"
SHORTEST, LONGEST = 8, 1000


@cache  # asked for once in a process: a descriptor can't be read again, and nobody wants to type it at every signature
def passphrase() -> bytes:
    """The passphrase of this process."""
    if DESCRIPTOR in os.environ:
        return _from_descriptor(os.environ[DESCRIPTOR])
    return _typed("Passphrase of the site's key: ")


def new_passphrase() -> bytes:
    """One to close a key by; typed twice where it is typed."""
    chosen = passphrase()
    if len(chosen) < SHORTEST:
        raise ValueError(f"The passphrase has less than {SHORTEST} bytes, which can be guessed: use a longer one.")
    if DESCRIPTOR not in os.environ and _typed("The same once more: ") != chosen:
        raise ValueError("The two passphrases are not the same: try again. Nothing was written.")
    return chosen


def _from_descriptor(number: str) -> bytes:
    if not re.fullmatch(r"[0-9]{1,6}", number):  # it is not repeated: it may be the passphrase itself
        raise ValueError(
            f"{DESCRIPTOR} is no number: name an open file descriptor, such as {DESCRIPTOR}=3 with 3<passphrase behind the command."
        )
    try:
        with open(int(number), "rb", closefd=False) as file:
            words = file.readline(LONGEST + 1).rstrip(b"\r\n")
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{DESCRIPTOR} is {number!r}, from which no passphrase can be read ({error}): name an open file descriptor, such as "
            f"{DESCRIPTOR}=3 with 3<passphrase behind the command."
        ) from None
    if not words or len(words) > LONGEST:
        raise ValueError(
            f"The file descriptor {number} has no passphrase of 1 to {LONGEST} bytes in its first line: write it there."
        )
    return words


def _typed(prompt: str) -> bytes:
    if not sys.stdin.isatty():
        raise ValueError(
            "The key of this site is closed by a passphrase, and there is no terminal to ask for it: let "
            f"{DESCRIPTOR} name a file descriptor that has it, such as {DESCRIPTOR}=3 with 3<passphrase behind the command."
        )
    return getpass.getpass(prompt, sys.stderr).encode()
