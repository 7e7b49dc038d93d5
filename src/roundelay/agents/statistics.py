"""Later."""

from typing import Any


def encode_limbs(v: Any) -> Any:
    """Later."""
    raise NotImplementedError


def decode_limbs(v: Any) -> Any:
    """Later."""
    raise NotImplementedError
