"""How long to wait, from how long it took before: no time-outs to guess."""

from __future__ import annotations

import random
from dataclasses import dataclass

# Seconds. Below the first nothing is gained by asking again; beyond the second a person has to look anyway.
SHORTEST, LONGEST = 0.05, 30.0


@dataclass
class Patience:
    """When to send again: the usual time of an answer plus four times its spread, doubled each time in vain.

    The estimate is that of TCP (Jacobson and Karels 1988): answers to what was sent twice are not counted, since nobody
    knows which one they answer.
    """

    usual: float = 0.0
    spread: float = 0.0
    in_vain: int = 0

    def answered(self, seconds: float) -> None:
        """An answer came after so long."""
        if self.usual == 0.0:
            self.usual, self.spread = seconds, seconds / 2
        else:
            self.spread += (abs(seconds - self.usual) - self.spread) / 4
            self.usual += (seconds - self.usual) / 8
        self.in_vain = 0

    def deadline(self) -> float:
        """How long to wait for the next answer."""
        first = max(self.usual + 4.0 * self.spread, SHORTEST) if self.usual else 1.0
        return min(first * 2.0**self.in_vain, LONGEST)


@dataclass
class BackOff:
    """How long to wait before dialling again: longer each time, and never all at the same moment."""

    tries: int = 0

    def next(self) -> float:
        """Seconds until the next try."""
        self.tries += 1
        longest = min(SHORTEST * 2.0 ** min(self.tries, 20), LONGEST / 3)
        return random.uniform(longest / 2, longest)

    def succeeded(self) -> None:
        """Start anew."""
        self.tries = 0
