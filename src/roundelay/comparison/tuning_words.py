"""What a tuning reports, in a few sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roundelay.comparison.naming import value_in_words
from roundelay.comparison.numbers import brief, in_words, short
from roundelay.comparison.trials import DIVERGED, REACHED, SHORT, Trial


def what_was_tuned(name: str, first: Trial, best: Trial, evaluations: int, seeds: Sequence[int]) -> str:
    """Which parameters, on which seeds, by how many evaluations, from what to what."""
    changes = [
        f"{parameter} from {value_in_words(first.values[parameter])} to {value_in_words(value)}"
        if value != first.values[parameter]
        else f"{parameter} stayed at {value_in_words(value)}"
        for parameter, value in best.values.items()
    ]
    names = in_words(list(best.values))
    times = "1 evaluation" if evaluations == 1 else f"{evaluations} evaluations"
    return f"{names} of {name} {_were(len(best.values))} tuned on {seeds_in_words(seeds)} with {times}: {', '.join(changes)}."


def what_it_gained(first: Trial, best: Trial, level: float, units: float) -> str:
    """The cost before and after, or why there is none."""
    goal = short(level)
    if best.score.rank == REACHED and first.score.rank == REACHED:
        return f"The median cost to {goal} went from {first.units:,.0f} to {best.units:,.0f} units."
    if best.score.rank == REACHED:
        return f"The start did not come to {goal} ({first.outcome}); the tuned setting needs {best.units:,.0f} units."
    if best.score.rank == SHORT:
        return f"No setting came to {goal} within {units:,.0f} units; taken is the one with the least error, {brief(best.error)}."
    if best.score.rank == DIVERGED:
        return "Every setting diverged; taken is the one that did so last."
    return "No setting could be run."


def what_was_kept(kept: Mapping[str, Any]) -> str:
    """The parameters that were left as they were."""
    return f"As given: {', '.join(f'{name}={value_in_words(value)}' for name, value in kept.items())}." if kept else ""


def how_it_ended(extended: int, open_edges: Sequence[str], fewer: bool, interrupted: bool) -> str:
    """What is unusual about the search."""
    sentences = []
    if extended:
        sentences.append(
            f"{extended} of these evaluations came on top, since the best value was at the edge of what had been tried."
        )
    if open_edges:
        sentences.append(f"The best {in_words(list(open_edges))} is still at the edge of what was tried.")
    if fewer:
        sentences.append("Fewer than allowed were needed: the factor from one value to the next had become 1.05.")
    if interrupted:
        sentences.append("The search was interrupted; this is the best so far.")
    return " ".join(sentences)


def seeds_in_words(seeds: Sequence[int]) -> str:
    """Which seeds: one, a range, or a list."""
    if len(seeds) == 1:
        return f"the seed {seeds[0]}"
    if list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"the seeds {seeds[0]} to {seeds[-1]}"
    return f"the seeds {in_words([str(seed) for seed in seeds])}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
