"""What a new sum tells together with the old ones.

A sum over some sites is a vector over (site, its data) of zeros and ones, and whoever has seen the totals knows the span of their
vectors. Its orthogonal complement holds the changes of the sites' parts that nobody would notice. So a site's part is known exactly where no
unnoticed change touches it, and two parts follow from each other where every unnoticed change moves both in one proportion. All
arithmetic is rational. Two sums that differ by one site are the simplest case; {a, b, me}, {c, d, me} and {a, b, c, d, me} are another.

Sums tell of the same thing where they have columns in common: every fit to rows tells, or may tell, the sums, squares and products of its
columns; fits of one kind to one target tell of one function. Of other sites it is assumed that they always had the same data, which is
the worst case; of its own a site knows better.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from roundelay.agents.agreement.ledger import Added, Data, Finding
from roundelay.agents.agreement.plan import REGRESSION
from roundelay.networks.network_checks import join_names
from roundelay.problems.row_problem import problem_named

# So many columns are named in a sentence; the others are counted.
NAMED = 6
# The kind of a regression whose loss is a sum of squares.
LINEAR = f"{REGRESSION} gaussian"
Version: TypeAlias = Hashable
Combination: TypeAlias = Mapping[Version, Fraction]
# How many rows at least make up a combination of this site's data as they were in some sums, each with its coefficient, by some columns.
CountRows: TypeAlias = Callable[[Sequence[tuple[Data, Fraction]], frozenset[str]], int]
# How often each row stood in the data of some sums, a line for each row, by some columns; None where rows can't be told apart.
CountCopies: TypeAlias = Callable[[Sequence[Data], frozenset[str]], Sequence[Sequence[int]] | None]
_Vector: TypeAlias = list[Fraction]


class DifferenceError(ValueError):
    """A new sum would tell, together with the old ones, what the site does not tell by itself."""


# ---------------------------------------------------------------- linear algebra


def unnoticed(rows: Iterable[Sequence[int | Fraction]], width: int) -> list[_Vector]:
    """A basis of all vectors that are orthogonal to every row."""
    reduced, pivots = echelon(rows)
    basis = []
    for free in sorted(set(range(width)) - set(pivots)):
        vector = [Fraction(0)] * width
        vector[free] = Fraction(1)
        for pivot, known in zip(pivots, reduced, strict=True):
            vector[pivot] = -known[free]
        basis.append(vector)
    return basis


def echelon(rows: Iterable[Sequence[int | Fraction]]) -> tuple[list[_Vector], list[int]]:
    """The reduced echelon form, and where each of its rows has the 1 that no other row touches."""
    reduced: list[_Vector] = []
    pivots: list[int] = []
    for row in rows:
        rest = [Fraction(number) for number in row]
        for pivot, known in zip(pivots, reduced, strict=True):
            rest = _less(rest, known, rest[pivot])
        pivot = next((place for place, number in enumerate(rest) if number), -1)
        if pivot < 0:
            continue
        rest = [number / rest[pivot] for number in rest]
        reduced = [_less(known, rest, known[pivot]) for known in reduced]
        reduced.append(rest)
        pivots.append(pivot)
    return reduced, pivots


def _less(vector: _Vector, other: _Vector, times: Fraction) -> _Vector:
    return [a - times * b for a, b in zip(vector, other, strict=True)] if times else vector


class Total(NamedTuple):
    """A sum as its total is seen: the other sites in it, and which data this site had."""

    others: frozenset[str]
    own: Version


@dataclass(frozen=True)
class Knowledge:
    """What follows from totals: the sites whose part is `known`, and the groups that are `tied`, all known where one of them is.

    `own` is a basis of the combinations of this site's data, as they were in the sums, whose part is known.
    """

    me: str
    known: frozenset[str]
    tied: frozenset[frozenset[str]]
    own: tuple[Combination, ...]
    unnoticed: Mapping[Version, tuple[Fraction, ...]]

    def holds(self, combination: Combination) -> bool:
        """Whether the part of a combination of this site's data is known."""
        combination = {version: times for version, times in combination.items() if times}
        if not combination.keys() <= self.unnoticed.keys():
            return False
        touched = [[times * number for number in self.unnoticed[version]] for version, times in combination.items()]
        return not any(sum(numbers) for numbers in zip(*touched, strict=True))

    def differences(self) -> Iterator[Combination]:
        """The differences between this site's data at two times that are known, and the rest of what is known of it."""
        for one, other in combinations(self.unnoticed, 2):
            if self.unnoticed[one] == self.unnoticed[other]:
                yield {one: Fraction(1), other: Fraction(-1)}
        yield from (combination for combination in self.own if sum(combination.values()) == 0)


def follows(me: str, totals: Sequence[Total]) -> Knowledge:
    """What somebody knows who has seen these totals."""
    versions = list(dict.fromkeys(total.own for total in totals))
    classes: dict[tuple[bool, ...], list[str]] = defaultdict(list)  # sites that are always summed together
    for site in sorted(set().union(*(total.others for total in totals))):
        classes[tuple(site in total.others for total in totals)].append(site)
    rows = [
        [*(int(version == total.own) for version in versions), *(int(pattern[number]) for pattern in classes)]
        for number, total in enumerate(totals)
    ]
    changes = unnoticed(rows, len(versions) + len(classes))
    touching = list(zip(*changes, strict=True)) if changes else [()] * (len(versions) + len(classes))
    own = dict(zip(versions, touching, strict=False))
    combinations_known = tuple(
        dict(zip(versions, vector, strict=True)) for vector in unnoticed(zip(*own.values(), strict=True), len(versions))
    )
    known = {me} if any(sum(one.values()) for one in combinations_known) else set()
    directions: dict[tuple[Fraction, ...], set[str]] = defaultdict(set)
    for touched in own.values():
        if any(touched):
            directions[_direction(touched)].add(me)
    tied = []
    for sites, touched in zip(classes.values(), touching[len(versions) :], strict=True):
        if len(sites) == 1 and any(touched):
            directions[_direction(touched)].add(sites[0])
        elif len(sites) == 1:
            known.add(sites[0])
        elif len(sites) == 2 and not any(touched):
            tied.append(frozenset(sites))
    tied += [frozenset(sites - known) for sites in directions.values()]
    return Knowledge(me, frozenset(known), frozenset(one for one in tied if len(one) > 1), combinations_known, own)


def _direction(vector: Sequence[Fraction]) -> tuple[Fraction, ...]:
    first = next(number for number in vector if number)
    return tuple(number / first for number in vector)


# ---------------------------------------------------------------- which sums tell of one thing


@dataclass(frozen=True)
class Thing:
    """Something that the new sum tells of, and the earlier sums that told of it too; `version` is what it saw of this site's data.

    `whole` where it is the very fit; else sums over `columns`, or where there are none the number of rows.
    """

    columns: frozenset[str]
    whole: bool
    earlier: tuple[Added, ...]
    version: Callable[[Data], Version]


def things(new: Added, earlier: Sequence[Added]) -> Iterator[Thing]:
    """All that a new sum tells of and that earlier ones may have told of."""
    if not new.columns:
        yield Thing(frozenset(), True, tuple(one for one in earlier if not one.columns), lambda data: data.digest)
        return
    fits = [one for one in earlier if one.columns]
    alike = [one for one in fits if (one.kind, one.target) == (new.kind, new.target)]
    same = tuple(one for one in alike if one.columns == new.columns)
    yield Thing(frozenset(), False, tuple(fits), lambda data: data.rows)
    yield Thing(new.columns, True, same, lambda data: data.marks or data.digest)
    yield from _products(new.columns, fits, new)
    yield from _products(frozenset(new.features), alike, new)


def _products(columns: frozenset[str], sums: Sequence[Added], new: Added) -> Iterator[Thing]:
    """The products of two columns, those together of which the same sums told, on data that changed at the same times."""
    classes: dict[tuple[tuple[int, str], ...], list[str]] = defaultdict(list)
    for column in sorted(columns):
        had = [(number, one.data) for number, one in enumerate(sums) if column in one.columns]
        classes[tuple((number, data.columns.get(column, "")) for number, data in (*had, (-1, new.data)))].append(column)
    told: dict[tuple[int, ...], list[frozenset[str]]] = defaultdict(list)
    for one, other in combinations_with_replacement(classes, 2):
        shared = dict(one).keys() & dict(other).keys() - {-1}
        told[tuple(sorted(shared))].append(frozenset((*classes[one], *classes[other])))
    for numbers, pairs in told.items():
        earlier = tuple(sums[number] for number in numbers)
        alike: dict[tuple[int, ...], set[str]] = defaultdict(set)  # by when this site's data were the same
        for pair in pairs if earlier else ():
            alike[_numbered(map(_values_of(pair), (*(one.data for one in earlier), new.data)))] |= pair
        yield from (Thing(frozenset(pair), False, earlier, _values_of(pair)) for pair in alike.values())


def _numbered(versions: Iterable[Version]) -> tuple[int, ...]:
    """Numbers instead of versions, the same for the same."""
    numbers: dict[Version, int] = {}
    return tuple(numbers.setdefault(version, len(numbers)) for version in versions)


def _values_of(columns: Iterable[str]) -> Callable[[Data], Version]:
    ordered = tuple(sorted(columns))
    return lambda data: tuple(data.columns.get(column, "") for column in ordered)


def _told_apart_by_rows(thing: Thing, new: Added, own: OwnRows) -> Thing:
    """The same, where values that have changed places between rows are other data."""
    data = {_rows_of(one): one for one in (*(one.data for one in thing.earlier), new.data)}
    asked = thing.columns and not thing.whole and len({thing.version(one) for one in data.values()}) < len(data)
    stood = own.copies(list(data.values()), thing.columns) if asked else None
    if stood is None:
        return thing
    rows = dict(zip(data, (column.tobytes() for column in np.array(stood, np.int64).T), strict=True))
    return replace(thing, version=lambda one: (thing.version(one), rows[_rows_of(one)]))


def _rows_of(data: Data) -> str:
    """What is the same where the rows are, in whatever units and order."""
    return data.cells or data.digest


# ---------------------------------------------------------------- in words


@dataclass
class _Learned:
    """What is learned of a site: from which earlier sums, about which columns, whether about the very fit."""

    sums: set[int]
    columns: set[str]
    whole: bool = False


@dataclass(frozen=True)
class OwnRows:
    """What a site knows of its own rows: how many at least make up a difference, in which sums each stood, and how few may be told of."""

    count: CountRows
    copies: CountCopies
    least: int


def findings(
    me: str,
    earlier: Sequence[Added],
    new: Added,
    own: OwnRows | None = None,
    newcomer: bool = False,
    least_change: int = 2,
) -> tuple[Finding, ...]:
    """What the new sum tells together with the earlier ones, in words; those that refuse are what a site does not do by itself.

    Without `own` the data of the new sum are not known yet, and may be those of any earlier sum. A `newcomer` to a run that has
    begun does not know what was summed before it came. Sums that differ by fewer sites than `least_change` tell what those gave
    together, which may be too few also where they are more than one.
    """
    if new.rho is not None:
        return ()  # what sums with noise tell together is reckoned in ε
    earlier = [one.in_units_of(new) for one in earlier if one.rho is None]
    learned: dict[str, _Learned] = {}
    said: dict[Finding, None] = {}
    for thing in things(new, earlier):
        thing = thing if own is None else _told_apart_by_rows(thing, new, own)
        totals = [Total(one.names - {me}, thing.version(one.data)) for one in thing.earlier]
        before = follows(me, totals)
        versions = {total.own for total in totals} if own is None else {thing.version(new.data)}
        for version in versions if totals else ():
            after = follows(me, [*totals, Total(new.names - {me}, version)])
            for site in after.known - before.known:
                one = learned.setdefault(site, _Learned(set(), set()))
                one.sums |= {earlier.index(added) for added in thing.earlier}
                one.columns |= thing.columns
                one.whole |= thing.whole
            if thing.whole and len(new.names) > 2:
                said |= {_about_tied(group): None for group in after.tied - before.tied}
            if own is not None and (thing.columns or thing.whole):
                said |= dict.fromkeys(_own_changes(thing, before, after, new, own))
    found = [_about_site(me, site, learned[site], earlier, new) for site in sorted(learned)]
    found += _about_few(comparable(new, earlier), new, least_change)
    if newcomer:
        found.append(_about_newcomer(me, new))
    if len(new.names) == 2:
        said[_about_two(new)] = None
    return (*found, *said)


def comparable(new: Added, earlier: Sequence[Added]) -> tuple[Added, ...]:
    """The earlier sums that told of something that the new one tells of too."""
    return tuple(
        one
        for one in (added.in_units_of(new) for added in earlier)
        if one.rho is None and (one.columns & new.columns if new.columns else not one.columns)
    )


def _own_changes(thing: Thing, before: Knowledge, after: Knowledge, new: Added, own: OwnRows) -> Iterator[Finding]:
    """What is told of rows that this site has added or taken out since."""
    data = {thing.version(one.data): one.data for one in (*thing.earlier, new)}
    changes = [one for one in after.differences() if not before.holds(one)]
    parts = [[(data[version], times) for version, times in one.items() if times] for one in changes]
    counts = [own.count(one, thing.columns) for one in parts]
    if not counts:
        return
    if len(after.own) > 1:  # what no single difference tells, several may together
        counts += _few_together(thing, data, before, after, own)
    fewest, changed = min(counts), f"This site's data have changed since {_dates(thing.earlier)}"
    if fewest < own.least:
        by = f"by {_rows(fewest)} as far as can be told" if fewest else "by how many rows can't be told"
        sentence = (
            f"{changed}, {by}. The difference of the sums tells every member what these rows gave, and this site's floor is {own.least} "
            "rows: wait until more rows have changed, or take the old data."
        )
        yield Finding("own rows", new.data.digest, sentence, tuple(sorted(thing.columns)), thing.whole)
    elif thing.whole:
        yield _word(
            f"{changed}. The difference of the sums tells every member what the {_rows(fewest)} that make the difference gave together."
        )


def _few_together(
    thing: Thing, data: Mapping[Version, Data], before: Knowledge, after: Knowledge, own: OwnRows
) -> Iterator[int]:
    """How many rows are told of together, where they are few, by all that is known now and was not before; 0 where that can't be said.

    Rows that stood in the same sums are told of as one class or not at all. A known combination of the data is one of classes, and those
    without the classes of many rows are the last of the echelon form in which these come first; a class that is known by itself is one of
    its rows.
    """
    versions = list(after.unnoticed)
    stood = own.copies([data[version] for version in versions], thing.columns)
    if stood is None:
        yield 0
        return
    classes, count = np.unique(np.array(stood), axis=0, return_counts=True)
    order = np.argsort(count < own.least, kind="stable")
    classes, count = classes[order], count[order]
    many = int((count >= own.least).sum())

    def told(knowledge: Knowledge) -> NDArray[np.int64]:
        known = [[_modulo(one.get(version, Fraction(0))) for version in versions] for one in knowledge.own]
        return np.array(known, np.int64).reshape(len(known), len(versions)) @ classes.T % PRIME

    known, pivots = _echelon_modulo(told(before))
    for row, pivot in zip(*_echelon_modulo(told(after)), strict=True):
        rest = (
            row - sum((row[place] * other % PRIME for place, other in zip(pivots, known, strict=True)), 0 * row)
        ) % PRIME
        rows = int(count[row != 0].sum())
        if pivot >= many and rows < own.least and rest.any():
            yield rows


# Classes of rows are many, and fractions slow: what is 0 modulo this prime and is not 0 is one number in two thousand million.
PRIME = 2**31 - 1


def _modulo(number: Fraction) -> int:
    return number.numerator * pow(number.denominator, -1, PRIME) % PRIME


def _echelon_modulo(rows: NDArray[np.int64]) -> tuple[list[NDArray[np.int64]], list[int]]:
    """The reduced echelon form modulo the prime, as `echelon` has it in fractions."""
    left, pivots = rows.copy(), []
    for number in range(len(left)):
        found = np.flatnonzero(left[number:].any(axis=1))
        if not len(found):
            break
        first = np.array([np.flatnonzero(left[number + one])[0] for one in found])
        swap = number + found[int(np.argmin(first))]
        left[[number, swap]] = left[[swap, number]]
        pivot = int(first.min())
        left[number] = left[number] * pow(int(left[number, pivot]), -1, PRIME) % PRIME
        for other in range(len(left)):
            if other != number and left[other, pivot]:
                left[other] = (left[other] - left[other, pivot] * left[number]) % PRIME
        pivots.append(pivot)
    return list(left[: len(pivots)]), pivots


def _about_site(me: str, site: str, learned: _Learned, earlier: Sequence[Added], new: Added) -> Finding:
    """That the data of one site are told."""
    sums = [earlier[number] for number in sorted(learned.sums)]
    alone = [one for one in sums if one.names ^ new.names == {site}] or sums
    dates = _dates(alone)
    took_part = {site in one.names for one in alone}
    if site not in new.names:
        how = f"{site} takes part no more. Together with {dates}, in which it did, the new sum tells"
    elif took_part == {False}:
        how = f"{site} is new. Together with {dates}, in which it did not take part, the new sum tells"
    else:
        how = f"Together with {dates} the new sum tells"
    whose = f"{site}'s, this site's own," if site == me else f"{site}'s"
    if not (learned.columns or learned.whole):
        return _word(f"{how} every member how many rows {site} has.")
    what = _what(new, learned)
    sentence = f"{how} every member what {whose} data alone gave: {what}, as if it had been handed over."
    return Finding("site", site, sentence, tuple(sorted(learned.columns)), learned.whole)


def all_that_a_site_gave(new: Added) -> str:
    """What is told where the part of a single site follows, of all columns."""
    return _what(new, _Learned(set(), set(new.columns), True))


def _what(new: Added, learned: _Learned) -> str:
    if not new.columns:
        return "its own objective at the points that were asked"
    if learned.whole and new.kind == LINEAR:
        return "its X'X and X't, and its part of every other sum that is told, as the counts of Table 1"
    if learned.whole and new.kind.startswith(REGRESSION):
        return (
            "its part of every sum that is told, as the counts of Table 1, and of the fit at the points that were asked, from which a fit to "
            "its rows alone can be worked out"
        )
    if learned.whole and problem_named(new.kind).is_quadratic:
        return "its X'X and X't"
    if learned.whole:
        return "its part of the fit at the points that were asked, from which a fit to its rows alone can be worked out"
    names = sorted(learned.columns)
    more = f" and {len(names) - NAMED} columns more" if len(names) > NAMED else ""
    listed = ", ".join(names[:NAMED]) + more if more else join_names(names)
    return f"how many rows it has, and the sums, squares and products of {listed}"


def _about_few(earlier: Sequence[Added], new: Added, least: int) -> Iterator[Finding]:
    """The sums that differ from the new one by fewer sites than a site wants, and by more than one."""
    for sites in dict.fromkeys(one.names ^ new.names for one in earlier):
        if 1 < len(sites) < least:
            last = next(one for one in reversed(earlier) if one.names ^ new.names == sites)
            yield Finding(
                "sites",
                " ".join(sorted(sites)),
                f"The sites of the new sum and of {_dates([last])} differ by {join_names(sorted(sites))} alone, and this site's policy wants "
                f"{least} sites to come or go at a time (least_change): the difference of the sums is what those gave together.",
                tuple(sorted(new.columns)),
                True,
            )


def _about_newcomer(me: str, new: Added) -> Finding:
    return Finding(
        "site",
        me,
        f"This ring has run before {me} came. Whoever was in it then may know the sum without {me}: with the new sum it would know what "
        f"{me}'s data alone gave, unless other sites come or go at the same time. Ask who was in it and who comes besides you.",
        tuple(sorted(new.columns)),
        True,
    )


def _about_two(new: Added) -> Finding:
    one, other = sorted(new.names)
    return _word(
        f"Only {one} and {other} take part. A sum of two hides nothing between them: the total less its own part is the other's."
    )


def _about_tied(group: frozenset[str]) -> Finding:
    return _word(
        f"From all sums together the data of {join_names(sorted(group))} follow from each other: whoever has seen the sums, and is told "
        "by one of these sites what its data gave, knows it of the others."
    )


def _word(sentence: str) -> Finding:
    return Finding("word", "", sentence)


def _dates(sums: Sequence[Added]) -> str:
    days = list(dict.fromkeys(day_of(one.time) for one in sums))
    if len(sums) == 1:
        return f"the sum of {days[0]}"
    return f"the sums of {join_names(days[-NAMED:])}"


def refusal(refused: Sequence[Finding], what: str) -> DifferenceError:
    """What a site says where it does not go on."""
    sentences = " ".join(dict.fromkeys(one.sentence for one in refused))
    return DifferenceError(
        f"{sentences} So {what}. An operator who knows this and wants it nevertheless adds --despite-difference."
    )


def day_of(time: datetime) -> str:
    """A day as people write it."""
    return f"{time.day} {time:%B %Y}"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
