"""The lap of the token through sites that can reach each other, and the sites' numbers along it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from roundelay.agents.names import in_short
from roundelay.agents.plan import Member
from roundelay.networks import Network
from roundelay.networks.sentences import join_names, shorten_names


@dataclass(frozen=True)
class Lap:
    """The members, numbered as the token first meets them; the lap, which starts at 0; and the links."""

    members: tuple[Member, ...]
    order: tuple[int, ...]
    links: tuple[tuple[int, int], ...]


def plan_lap(members: Sequence[Member], links: Iterable[tuple[str, str]] | None, first: str) -> Lap:
    """A Hamiltonian cycle of the links where there is one, else a closed walk; it starts at the site called `first`.

    Either end of a link may dial the other, but one of them must have an address: links without one do not count.
    """
    names = [member.name for member in members]
    numbers = {name: number for number, name in enumerate(names)}
    given = set(combinations(range(len(members)), 2)) if links is None else _numbered(links, numbers)
    usable = sorted((a, b) for a, b in given if members[a].address or members[b].address)
    tour = _network(members, usable, given).tour().order.tolist()
    start = tour.index(_number(first, numbers))
    walk = [*tour[start:], *tour[:start]]
    met = list(dict.fromkeys(walk))  # as the token first meets them
    place = {old: new for new, old in enumerate(met)}
    pairs = sorted((min(place[a], place[b]), max(place[a], place[b])) for a, b in usable)
    return Lap(tuple(members[old] for old in met), tuple(place[old] for old in walk), tuple(pairs))


def _network(members: Sequence[Member], usable: list[tuple[int, int]], given: set[tuple[int, int]]) -> Network:
    names = tuple(member.name for member in members)
    try:
        return Network(len(members), np.array(usable, np.int64).reshape(-1, 2), labels=names)
    except ValueError as error:
        unreachable = [(names[a], names[b]) for a, b in sorted(given - set(usable))]
        if not unreachable:
            raise ValueError(f"The sites can't make a ring. {error}") from None
    silent = sorted({name for pair in unreachable for name in pair})
    pairs = shorten_names([f"{a} and {b}" for a, b in unreachable], len(unreachable), most=3)
    raise ValueError(
        f"The sites can't make a ring: neither end of the link between {pairs} has an address, so that neither can dial the "
        f"other. Give {silent[0] if len(silent) == 1 else 'some of ' + join_names(silent[:20])} an address by --address, "
        "and make new invitations."
    )


def _numbered(links: Iterable[tuple[str, str]], numbers: dict[str, int]) -> set[tuple[int, int]]:
    pairs: set[tuple[int, int]] = set()
    for a, b in links:
        first, second = sorted((_number(a, numbers), _number(b, numbers)))
        if first == second:
            raise ValueError(f"A link joins {in_short(a)} to itself: leave it out.")
        pairs.add((first, second))
    return pairs


def _number(name: str, numbers: dict[str, int]) -> int:
    if name not in numbers:
        raise ValueError(
            f"There is no site {in_short(name)} among the members: they are {shorten_names(list(numbers)[:20], len(numbers), 20)}."
        )
    return numbers[name]
