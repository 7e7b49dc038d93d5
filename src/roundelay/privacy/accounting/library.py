"""dp-accounting, imported only when a number is asked for."""

from __future__ import annotations

from typing import Any


def dp_accounting() -> Any:
    """The module; a sentence that names the remedy where it is missing."""
    try:
        import dp_accounting as library
    except ImportError as error:
        raise ModuleNotFoundError(
            "The privacy loss is reckoned by dp-accounting, which is not installed: run pip install 'roundelay[privacy]'."
        ) from error
    return library
