"""The token: the only thing that travels, and so the only thing that can be serialised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roundelay.kernels import Vector


@dataclass(frozen=True, eq=False)
class Token:
    """What one agent hands to the next: z, a vector of p numbers."""

    z: Vector

    def serialise(self) -> bytes:
        """Little-endian doubles, eight bytes a coordinate. Costs in bytes are counted from this."""
        return np.ascontiguousarray(self.z, "<f8").tobytes()


def bytes_a_message(dim: int) -> int:
    """What one token of dimension p weighs on the wire."""
    return len(Token(np.zeros(dim)).serialise())
