"""No guarantee: a type of its own, so that nobody can take it for a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn


@dataclass(frozen=True)
class NoGuarantee:
    """There is no guarantee of differential privacy; `reason` says why. It has no ε, not even an infinite one."""

    reason: str

    @property
    def words(self) -> str:
        """The reason as a sentence."""
        return f"There is no guarantee of differential privacy: {self.reason}."

    @property
    def epsilon(self) -> NoReturn:
        """There is none."""
        raise AttributeError(f"There is no epsilon to read. {self.words}")

    @property
    def x(self) -> NoReturn:
        """There is no sensitivity either."""
        raise AttributeError(f"There is no sensitivity to read. {self.words}")
