"""Later."""

from typing import Any

Identity = Any


def expiry(c: str) -> Any: ...
def server_name(c: str) -> str: ...
