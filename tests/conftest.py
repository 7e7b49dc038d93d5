from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits for the whole quick study comes first, so that at the end no process waits for another at it."""
    items.sort(key=lambda item: "found" not in getattr(item, "fixturenames", ()))
