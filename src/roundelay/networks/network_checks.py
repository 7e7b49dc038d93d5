"""What a network is given must make sense; where it does not, an error says what, where, and what to do, in these words."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import index
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Number = TypeVar("_Number", bound=np.generic)


def checked_agents(agents: int) -> int:
    """Return the number of agents as an int of at least one."""
    try:
        count = index(agents)
    except TypeError:
        raise TypeError(f"The number of agents must be a whole number, not {agents!r}.") from None
    if count < 1:
        raise ValueError(f"A network needs at least one agent, and {count} were asked for.")
    return count


def checked_edges(edges: ArrayLike, agents: int) -> NDArray[np.int64]:
    """Return the links as an (E, 2) array of agents that exist, each row with the smaller number first."""
    given = np.asarray(edges)
    if given.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2:
        raise ValueError(
            f"The edges must be an array of shape (links, 2), one row (i, j) a link; they have shape {given.shape}."
        )
    if not np.issubdtype(given.dtype, np.integer):
        raise TypeError(f"The edges must be whole numbers, the agents at either end, and are of type {given.dtype}.")
    outside = np.flatnonzero(((given < 0) | (given >= agents)).any(axis=1))
    if len(outside):
        row = int(outside[0])
        raise ValueError(
            f"The link {_pair(given[row])} in row {row} names an agent that does not exist. "
            f"A network of {agents} has agents 0 to {agents - 1}."
        )
    loops = np.flatnonzero(given[:, 0] == given[:, 1])
    if len(loops):
        row = int(loops[0])
        raise ValueError(
            f"The link {_pair(given[row])} in row {row} joins an agent to itself. Leave such links out: "
            "an agent needs none to keep what it has."
        )
    return np.sort(given.astype(np.int64), axis=1)


def refuse_duplicates(sorted_edges: NDArray[np.int64]) -> None:
    """Raise where two neighbouring rows are the same link."""
    again = np.flatnonzero((sorted_edges[1:] == sorted_edges[:-1]).all(axis=1))
    if len(again):
        raise ValueError(
            f"The link {_pair(sorted_edges[again[0]])} is given more than once. Give each link once, in one direction."
        )


def checked_costs(costs: ArrayLike, links: int) -> NDArray[np.float64]:
    """Return the costs as positive, finite numbers, one a link."""
    given = np.asarray(costs, dtype=np.float64)
    if given.shape != (links,):
        raise ValueError(
            f"There must be one cost for each of the {links} links, in the order of the edges; "
            f"the costs have shape {given.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(given) & (given > 0)))
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"The cost of the link in row {row} is {given[row]:g}, and costs must be positive and finite. "
            "Leave a link that can't be used out of the edges."
        )
    return given


def checked_labels(labels: tuple[Hashable, ...] | None, agents: int) -> tuple[Hashable, ...] | None:
    """Return the labels as a tuple, a different one for each agent."""
    if labels is None:
        return None
    given = tuple(labels)
    if len(given) != agents:
        raise ValueError(f"There are {len(given)} labels for {agents} agents. Give one label an agent.")
    if len(set(given)) != agents:
        twice = next(label for place, label in enumerate(given) if label in given[:place])
        raise ValueError(f"The label {twice!r} is given to more than one agent. Give each its own.")
    return given


def checked_time_limit(time_limit: float) -> float:
    """Return the time limit as a number of seconds, none or more."""
    seconds = float(time_limit)
    if not seconds >= 0:
        raise ValueError(f"The time limit is {seconds:g} seconds, and must be zero or more.")
    return seconds


def read_only(array: NDArray[_Number]) -> NDArray[_Number]:
    """Return the array, no longer writable."""
    array.flags.writeable = False
    return array


def join_names(names: Sequence[str]) -> str:
    """Return "a", "a and b" or "a, b and c"; nothing for none."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def shorten_names(first_names: Sequence[str], total: int, most: int = 8) -> str:
    """Return names between commas, the first `most` of them where there are more, and how many are left."""
    if total <= most:
        return ", ".join(first_names[:total])
    return f"{', '.join(first_names[:most])} and {total - most} more"


def _pair(row: NDArray[np.integer]) -> str:
    return f"({int(row[0])}, {int(row[1])})"
