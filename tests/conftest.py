from __future__ import annotations

import gc

import pytest


def pytest_configure() -> None:
    """Compiling makes millions of objects that stay: looking through all of them again and again takes a tenth of it."""
    gc.set_threshold(50_000, 20, 50)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits for the whole quick study comes first, so that at the end no process waits for another at it."""
    items.sort(key=lambda item: "found" not in getattr(item, "fixturenames", ()))
