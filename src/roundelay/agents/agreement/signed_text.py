"""TOML with a signature below it, over the very bytes that stand above it."""

from __future__ import annotations

import base64
import binascii
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from roundelay.agents.agreement.identity import Identity, sign
from roundelay.tables import Fields, in_short

try:
    import tomli_w
except ImportError:
    raise ImportError(
        "The files of a ring need the package tomli-w: install it by pip install 'roundelay[ring]'."
    ) from None

MOST_BYTES = 4 * 2**20
# What keeps the parser busy, and no file of ours has: keys with many dots, tables deep inside others, and millions of small pieces.
LONGEST_LINE, MOST_DOTS, DEEPEST_TABLE, MOST_PIECES = 500, 100, 4, 200_000
_PIECES = (b"\n", b".", b",", b"=", b"[", b"{")

HEAD = b"[signature]\n"
_TAIL = re.compile(rb'\[signature\]\nvalue = "([A-Za-z0-9+/]{1,200}={0,2})"\n')


def signed_text(tables: Mapping[str, Any], signer: Identity) -> bytes:
    """The tables as TOML, signed."""
    body = tomli_w.dumps(tables, multiline_strings=True).encode() + b"\n"
    value = base64.b64encode(sign(signer, body))
    return body + HEAD + b'value = "' + value + b'"\n'


def split_signature(text: bytes, where: str) -> tuple[bytes, bytes]:
    """The bytes that were signed, and the signature."""
    if len(text) > MOST_BYTES:
        raise ValueError(f"{where} has more than {MOST_BYTES} bytes: it is not a file of a ring.")
    place = text.rfind(b"\n" + HEAD) + 1
    tail = _TAIL.fullmatch(text[place:]) if place and len(text) - place < 300 else None
    try:
        signature = base64.b64decode(tail.group(1), validate=True) if tail else b""
    except binascii.Error:
        signature = b""
    # The last letter of base64 has bits to spare: there must be one spelling only.
    if tail is None or not signature or base64.b64encode(signature) != tail.group(1):
        raise ValueError(f"{where} does not end with a signature: it is not whole, so ask for the file again.")
    return text[:place], signature


def parsed(body: bytes, where: str) -> dict[str, Any]:
    """The tables of the text."""
    lines = body.split(b"\n")
    if any(len(line) > LONGEST_LINE or line.count(b".") > MOST_DOTS for line in lines):
        raise ValueError(
            f"{where} has a line of more than {LONGEST_LINE} bytes or {MOST_DOTS} dots: it is not a file of a ring."
        )
    if any(line.lstrip().startswith(b"[") and line.count(b".") > DEEPEST_TABLE for line in lines):
        raise ValueError(f"{where} has a table inside more than {DEEPEST_TABLE} others: it is not a file of a ring.")
    if sum(map(body.count, _PIECES)) > MOST_PIECES:
        raise ValueError(
            f"{where} has more than {MOST_PIECES} lines, keys, commas and brackets: it is not a file of a ring."
        )
    try:
        return tomllib.loads(body.decode("utf-8"))
    except RecursionError:
        raise ValueError(f"{where} can't be read: it is nested too deeply, so ask for the file again.") from None
    except ValueError as error:  # not UTF-8, not TOML, or a number of thousands of digits
        raise ValueError(
            f"{where} can't be read as TOML: {in_short(str(error))}. Ask for the file again, or mend it by hand."
        ) from None


def table_of(tables: Mapping[str, Any], name: str, where: str) -> Fields:
    """One of the tables."""
    value = tables.get(name)
    if not isinstance(value, dict):
        raise ValueError(f"{where} has no table [{name}]: ask for the file again.")
    return Fields(value, f"[{name}] in {where}")


def refuse_other_tables(tables: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    """Refuse what this version does not know, rather than leave out what the others go by."""
    for name in tables:
        if name not in known:
            raise ValueError(f"{where} has {in_short(name)}, which is not known: it may have {', '.join(known)}.")


def changed_since(where: str, signer: str) -> ValueError:
    """The sentence for a signature that does not fit."""
    return ValueError(
        f"The signature of {signer} does not fit {where}: the file was changed after it was signed, and line ends count. "
        "Ask for the file again, and do not edit it."
    )
