"""Text from data as HTML, so that none of it is taken for markup."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from typing import Any

CODE = re.compile(r"`([^`]+)`")

# A number such as 1e-6, which a line must not break at its hyphen.
POWER = re.compile(r"\b\d[\d.]*e-\d+\b")


def text(words: str) -> str:
    """Words as they stand, in an element or in an attribute."""
    return escape(words, quote=True)


def prose(words: str) -> str:
    """Words with what stands between backticks as code, and numbers in one piece."""
    return POWER.sub(r'<span class="whole">\g<0></span>', CODE.sub(r"<code>\1</code>", text(words)))


def paragraphs(words: tuple[str, ...]) -> str:
    """One paragraph after another."""
    return "\n".join(f"<p>{prose(each)}</p>" for each in words)


def embedded_json(data: Any) -> str:
    """Data to stand within a script element: without a `<` nothing in it can end the element."""
    packed = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return packed.replace("<", "\\u003c")


def resource(name: str) -> str:
    """A file that lies beside this one."""
    return (files(__package__) / name).read_text(encoding="utf-8")
