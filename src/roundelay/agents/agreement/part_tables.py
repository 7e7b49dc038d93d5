"""An algorithm as a table that people can read, and back: only classes named here are ever made from a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from roundelay.agents.agreement.tables import Fields, in_short
from roundelay.algorithms import (
    IADMM,
    MCSAG,
    PIADMM1,
    PIADMM2,
    SIADMM,
    WADMM,
    WPG,
    ContributionNoise,
    Defence,
    IncrementalGradient,
    MaskedLinks,
    NoDefence,
    RandomStart,
    SealedStart,
    Start,
    UniformStart,
    ZeroStart,
    ZeroSumStart,
)
from roundelay.networks.walks import ClosedUniformWalk, Cycle, LeastVisitedWalk, MetropolisWalk, UniformWalk, Walk
from roundelay.problems import L1, Box, NoRegulariser, Regulariser

Kinds = tuple[type[Any], ...]

METHODS: Kinds = (IADMM, RandomStart, PIADMM1, PIADMM2, WADMM, WPG, IncrementalGradient, SIADMM, MCSAG)
# What may stand where a field asks for a start, a defence, a walk or a regulariser.
PARTS: dict[Any, Kinds] = {
    Start: (ZeroStart, UniformStart, ZeroSumStart, SealedStart),
    Defence: (NoDefence, ContributionNoise, MaskedLinks),
    Walk: (Cycle, MetropolisWalk, UniformWalk, ClosedUniformWalk, LeastVisitedWalk),
    Regulariser: (NoRegulariser, L1, Box),
    ContributionNoise: (ContributionNoise,),
}
KINDS: Kinds = tuple(dict.fromkeys((*METHODS, *(kind for kinds in PARTS.values() for kind in kinds))))
LARGEST = 2**62  # whole numbers end up in words of 64 bits


def as_table(thing: Any) -> dict[str, Any]:
    """The thing's kind and its options, with the parts in it as tables of their own. What is None is left out."""
    if type(thing) not in KINDS:
        raise ValueError(f"{thing!r} can't stand in a ring file: use one of {_names(KINDS)}.")
    table: dict[str, Any] = {"kind": type(thing).__name__}
    for name, wanted in _options(type(thing)).items():
        value = getattr(thing, name)
        if value is not None:
            table[name] = as_table(value) if _kinds_for(wanted) else _plain(wanted, value)
    return table


def from_table(table: Mapping[str, Any], where: str, among: Kinds = KINDS) -> Any:
    """The thing that a table describes, of one of these kinds; options that are left out have their defaults."""
    fields = Fields(table, where)
    chosen = fields.text("kind")
    kind = next((kind for kind in among if kind.__name__ == chosen), None)
    if kind is None:
        raise fields.refusal("kind", f"use one of {_names(among)}" if len(among) > 1 else f"use {_names(among)}")
    options = _options(kind)
    fields.only("kind", *options)
    values = {name: _read(fields, name, options[name]) for name in options if name in table}
    for field in dataclasses.fields(kind):
        if field.init and field.default is dataclasses.MISSING and field.name not in values:
            raise ValueError(f"{where} has no field {field.name}: {chosen} needs it.")
    try:
        return kind(**values)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ValueError(f"{where} can't be used: {error}") from None


def _options(kind: type[Any]) -> dict[str, Any]:
    """The options of a kind and their types, None apart."""
    hints = get_type_hints(kind)
    return {field.name: _without_none(hints[field.name]) for field in dataclasses.fields(kind) if field.init}


def _without_none(wanted: Any) -> Any:
    others = [choice for choice in get_args(wanted) if choice is not NoneType]
    return others[0] if NoneType in get_args(wanted) else wanted


def _kinds_for(wanted: Any) -> Kinds:
    return PARTS[wanted] if isinstance(wanted, type) and wanted in PARTS else ()


def _plain(wanted: Any, value: Any) -> bool | int | float | str:
    """The value as TOML knows it: a number of NumPy's, or 40.0 for a whole number, is written plainly."""
    kind = str if get_origin(wanted) is Literal else wanted
    plain: bool | int | float | str = kind(value)
    return plain


def _read(fields: Fields, name: str, wanted: Any) -> Any:
    if kinds := _kinds_for(wanted):
        inner = fields.inner(name)
        return from_table(inner.table, inner.where, kinds)
    if wanted is bool:
        return fields.flag(name)
    if wanted is int:
        return fields.whole(name, -LARGEST, LARGEST)
    if wanted is float:
        return fields.number(name)
    text = fields.text(name)
    if text not in get_args(wanted):
        raise fields.refusal(name, f"use {' or '.join(in_short(choice) for choice in get_args(wanted))}")
    return text


def _names(kinds: Kinds) -> str:
    return ", ".join(kind.__name__ for kind in kinds)
