"""What is printed: words and tables for people, JSON for machines. Progress goes to stderr, results to stdout."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


def stdout_console() -> Console:
    """Where results go. Nothing in them is markup."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False, soft_wrap=False)


def stderr_console() -> Console:
    """Where progress goes."""
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def print_json(content: Mapping[str, Any]) -> None:
    """Print strict JSON: a number that is infinite or not a number becomes null."""
    typer.echo(json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """The value made of what JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Sequence):
        return [plain(entry) for entry in value]
    return str(value)
