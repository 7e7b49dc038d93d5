"""What the sites agree on of each column before a regression: its unit, what kind of values it has, its levels in their order.

It follows from the invitations and from what whoever plans says, and stands in the plan: so no site can have levels in another order, or
numbers in another unit, without being refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from roundelay.agents.agreement.invitations import MOST_LEVELS, Invitation
from roundelay.kernels.checks import finite_number
from roundelay.networks.network_checks import join_names
from roundelay.regression.columns import TRUTH, Column, Conversion, Values, in_order

KINDS: Mapping[Values, str] = {"number": "numbers", "levels": "words", "date": "dates"}
# So many sites are named in a sentence.
NAMED = 3


class UnitChange(NamedTuple):
    """A column in another unit, which is converted to the one that is agreed on."""

    column: str
    conversion: Conversion
    agreed: str


_CHANGE = re.compile(
    r"(?P<column>.+?)\s*:\s*(?P<unit>[^:]*?)\s*->\s*(?P<agreed>[^:*]*?)\s*\*\s*(?P<factor>[^\s*]+)(?:\s*(?P<sign>[+-])\s*(?P<offset>[^\s+-]\S*))?\s*"
)


def unit_change(text: str) -> UnitChange:
    """What a text such as "weight: lb -> kg * 0.45359237" or "heat: K -> °C * 1 - 273.15" says."""
    found = _CHANGE.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        factor = finite_number("the factor", float(found["factor"]))
        offset = float((found["sign"] or "+") + (found["offset"] or "0"))
        finite_number("the offset", offset)
        if factor == 0.0 or found["unit"] == found["agreed"]:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"The conversion {text!r} can't be read: write the column, its unit, the agreed one, and by what numbers are multiplied, as in "
            '"weight: lb -> kg * 0.45359237" or "heat: K -> °C * 1 - 273.15".'
        ) from None
    return UnitChange(found["column"].strip(), Conversion(found["unit"], factor, offset), found["agreed"])


def agreed_columns(
    invitations: Sequence[Invitation],
    names: Collection[str],
    *,
    factors: Collection[str] = (),
    references: Mapping[str, str] | None = None,
    levels: Mapping[str, Sequence[str]] | None = None,
    conversions: Sequence[UnitChange] = (),
) -> tuple[Column, ...]:
    """The columns of these names, in the order in which the first site has them, as all sites are to give them.

    A column of words has the levels that any site tells of, or those that `levels` gives it: numbers by their value, then words by the
    alphabet; the one in `references` comes first. The `factors`, and all that `levels` names, are columns of levels where sites have numbers, too.
    """
    references, levels = references or {}, levels or {}
    _check_named(names, (*factors, *references, *levels, *(one.column for one in conversions)))
    offers = [_Offers.of(invitations, name) for name in _in_first_order(invitations, names)]
    found = []
    for one in offers:
        column = one.in_one_unit([change for change in conversions if change.column == one.name])
        given = tuple(levels.get(one.name, ()))
        kind = one.kind(one.name in factors or one.name in levels)
        if kind == "levels":
            told = one.checked_levels(given) if given else one.all_levels()
            column = replace(column, values=kind, levels=_reference_first(one.name, told, references.get(one.name)))
        elif one.name in references:
            raise ValueError(
                f"The column {one.name!r} has {KINDS[kind]} and no levels, so that none of them can be the reference: leave it out, or plan the "
                "column with its levels."
            )
        found.append(replace(column, values=kind))
    return tuple(found)


def lone_levels(invitations: Sequence[Invitation], columns: Sequence[Column]) -> tuple[str, ...]:
    """The levels that one site alone tells of, in sentences for whoever plans: what is told of them is that site's own."""
    found = []
    for column in columns:
        told = _Offers.of(invitations, column.name)
        for level in column.levels if not _as_truths(column.levels) else ():
            having = [site for site, offered in told.by_site if level in offered.levels]
            if len(having) == 1:
                found.append(
                    f"Only {having[0]} tells of the level {level!r} of {column.name}. Where no other site has it, {having[0]} takes no part unless its "
                    "policy allows that (lone_levels), since what is told of the level is then its own."
                )
    return tuple(found)


def _check_named(names: Collection[str], said: Sequence[str]) -> None:
    other = next((name for name in said if name not in names), None)
    if other is not None:
        raise ValueError(
            f"Something is said of the column {other!r}, which is not fitted: the columns are {', '.join(names)}. Leave it out, or name another."
        )


def _in_first_order(invitations: Sequence[Invitation], names: Collection[str]) -> list[str]:
    lacking = {
        one.name: [name for name in names if name not in {column.name for column in one.columns}] for one in invitations
    }
    some = [f"{site} lacks {join_names(columns)}" for site, columns in lacking.items() if columns]
    if some:
        raise ValueError(
            f"{'; '.join(some)}: let the sites name the same columns, and offer them by roundelay ring offer --data, or leave them out of the "
            "formula."
        )
    return [column.name for column in invitations[0].columns if column.name in names]


class _Offers(NamedTuple):
    """What each site says of one column."""

    name: str
    by_site: tuple[tuple[str, Column], ...]

    @classmethod
    def of(cls, invitations: Sequence[Invitation], name: str) -> _Offers:
        pairs = ((one.name, next(column for column in one.columns if column.name == name)) for one in invitations)
        return cls(name, tuple(pairs))

    def sites(self, which: Collection[Column]) -> str:
        """The sites that have it so, by name."""
        names = [site for site, column in self.by_site if any(column is one for one in which)]
        return (
            join_names(names) if len(names) <= NAMED else f"{', '.join(names[:NAMED])} and {len(names) - NAMED} others"
        )

    # ------------------------------------------------------------ units

    def in_one_unit(self, changes: Sequence[UnitChange]) -> Column:
        units = dict.fromkeys(column.unit for _, column in self.by_site)
        if changes:
            agreed = changes[0].agreed
            froms = [change.conversion.unit for change in changes]
            if any(change.agreed != agreed for change in changes) or len(set(froms)) < len(froms):
                raise ValueError(
                    f"The column {self.name!r} is converted to two units, or twice from one: agree on one unit, and say once how others become it."
                )
            if any(column.values != "number" for _, column in self.by_site):
                raise ValueError(
                    f"The column {self.name!r} is not one of numbers at all sites: only numbers are converted."
                )
        else:
            agreed = next(iter(units))
        column = Column(self.name, agreed, conversions=tuple(change.conversion for change in changes))
        if not all(column.takes(unit) for unit in units):
            have = [
                f"{_in_unit(unit)} at {self.sites([c for _, c in self.by_site if c.unit == unit])}" for unit in units
            ]
            raise ValueError(
                f"The column {self.name!r} is {' and '.join(have)}: let one of them convert its numbers and offer them anew, or plan with "
                f'--convert "{self.name}: {next(reversed(units)) or "lb"} -> {agreed or "kg"} * FACTOR".'
            )
        return column

    # ------------------------------------------------------------ kinds and levels

    def kind(self, as_levels: bool) -> Values:
        kinds = dict.fromkeys(column.values for _, column in self.by_site)
        if len(kinds) == 1 and not as_levels:
            return next(iter(kinds))
        if as_levels and "date" not in kinds:
            return "levels"
        if len(kinds) == 1:
            raise ValueError(f"The column {self.name!r} has dates at all sites, which are no levels: use it as it is.")
        have = [f"{KINDS[kind]} at {self.sites([c for _, c in self.by_site if c.values == kind])}" for kind in kinds]
        levels = f", or plan with --levels {self._example}" if "date" not in kinds else ""
        raise ValueError(
            f"The column {self.name!r} has {' and '.join(have)}: let all sites write it alike and offer it anew{levels}."
        )

    @property
    def _example(self) -> str:
        told = {level for _, column in self.by_site for level in column.levels}
        words = _as_truths(told) or (in_order(told)[:2] if len(told) > 1 else ("no", "yes"))
        return f"{self.name}={','.join(words)}"

    def all_levels(self) -> tuple[str, ...]:
        """The levels of all sites in order; yes and no are the same as true and false."""
        told = {level for _, column in self.by_site for level in column.levels}
        truths = _as_truths(told)
        if truths:
            return truths
        self._check_spelling(told)
        if not 2 <= len(told) <= MOST_LEVELS:
            raise ValueError(
                f"The sites tell of {len(told)} level{'s' * (len(told) != 1)} of the column {self.name!r}: a site tells of those that are not rare, "
                f"and of none where there are more than a few. Plan with --levels {self._example}, or leave it out."
            )
        return in_order(told)

    def _check_spelling(self, told: Collection[str]) -> None:
        alike: dict[str, str] = {}
        for level in in_order(told):
            other = alike.setdefault(level.casefold(), level)
            if other != level:
                raise ValueError(
                    f"The column {self.name!r} has the level {other!r} at {self._where(other)} and {level!r} at {self._where(level)}: let all sites "
                    "spell it alike and offer it anew, or plan the column with its levels where these are two."
                )

    def _where(self, level: str) -> str:
        return self.sites([column for _, column in self.by_site if level in column.levels])

    def checked_levels(self, given: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(given)) < len(given) or not 2 <= len(given) <= MOST_LEVELS:
            raise ValueError(
                f"The column {self.name!r} is given the levels {', '.join(given)}: name from 2 to {MOST_LEVELS}, each once."
            )
        truths = {TRUTH.get(level.lower()) for level in given} == {0.0, 1.0} and len(given) == 2
        for site, column in self.by_site:
            for level in column.levels:
                if level not in given and not (truths and (level.lower() in TRUTH or level in ("0", "1"))):
                    raise ValueError(
                        f"{site} has the level {level!r} in the column {self.name!r}, which is not among those given, {', '.join(given)}: add it, "
                        f"or let {site} change its data and offer them anew."
                    )
        return given


def _as_truths(told: Collection[str]) -> tuple[str, ...]:
    """The two words for all of these, where they say yes or no; 1 and 0 do so beside such words."""
    words = {level.lower() for level in told} - {"0", "1"}
    if not words or not words <= TRUTH.keys():
        return ()
    return ("no", "yes") if words & {"no", "yes"} else ("false", "true")


def _reference_first(name: str, levels: tuple[str, ...], reference: str | None) -> tuple[str, ...]:
    if reference is None:
        return levels
    if reference not in levels:
        raise ValueError(
            f"The column {name!r} has no level {reference!r}, which is to be its reference: the levels are {', '.join(levels)}."
        )
    return (reference, *(level for level in levels if level != reference))


def _in_unit(unit: str) -> str:
    return f'in "{unit}"' if unit else "without a unit"
