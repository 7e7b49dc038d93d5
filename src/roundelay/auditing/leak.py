"""One line of an audit: what an attack knows of a quantity, against the truth and against a guess."""

from __future__ import annotations

import math
from dataclasses import dataclass

# An error this near to that of a guess is no knowledge.
NO_BETTER = 0.5
# Beyond these digits it is rounding that is counted.
MOST_DIGITS = 15


@dataclass(frozen=True)
class Leak:
    """What an attack knows of a quantity of an agent.

    Errors are relative: `over_run` is the root mean square over the agent's visits against that of the truth, `at_end`
    that of the last visit, `guess` that of the best guess without the transcript, the mean over all agents. Where the
    truth is not known they are not numbers, and `residual` is all there is. `words` is the verdict.
    """

    quantity: str
    attack: str
    over_run: float
    at_end: float
    guess: float
    residual: float
    converged: bool
    words: str

    @property
    def known(self) -> bool:
        """Whether the attack knows more than a guess does."""
        return self.at_end < NO_BETTER * min(self.guess, 1.0)

    @property
    def digits(self) -> int:
        """How many digits are known at the end."""
        return digits_of(self.at_end)


def digits_of(error: float) -> int:
    """How many digits a relative error leaves."""
    if error <= 0.0:
        return MOST_DIGITS
    return int(min(max(math.floor(-math.log10(error)), 0), MOST_DIGITS)) if math.isfinite(error) else 0


# Those of which an agent has several.
SEVERAL = ("states x", "multipliers y", "records")


def verdict(agent: int, quantity: str, observer: str, at_end: float, guess: float) -> str:
    """The verdict in plain words."""
    verb, past = ("are", "were") if quantity in SEVERAL else ("is", "was")
    whose = f"agent {agent}'s {quantity}"
    if math.isnan(at_end):
        return f"{whose} {past} estimated; how well can't be said without the truth"
    if not at_end < NO_BETTER * min(guess, 1.0):
        return f"{whose} {verb} not known to {observer}: no better than a guess"
    digits = digits_of(at_end)
    if digits == 0:
        return f"{whose} {verb} known to {observer} within {100.0 * at_end:.0f} %"
    return f"{whose} {verb} known to {observer} to {digits} {'digit' if digits == 1 else 'digits'}"
