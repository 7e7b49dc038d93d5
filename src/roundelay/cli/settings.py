"""`--set name=value`: an algorithm's options from words, each read by the type of its field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from roundelay.algorithms import (
    ContributionNoise,
    Defence,
    MaskedLinks,
    NoDefence,
    SealedStart,
    Start,
    UniformStart,
    ZeroStart,
    ZeroSumStart,
)
from roundelay.links import Channel, Compressor, Plain, Quantised, RandomK, Rounded, Signs, TopK, TopShare
from roundelay.networks.walks import ClosedUniformWalk, Cycle, LeastVisitedWalk, MetropolisWalk, UniformWalk, Walk
from roundelay.problems import L1, Box, NonNegative, NoRegulariser, Regulariser


def algorithm_named(name: str) -> type[Any]:
    """The class of the algorithm with this name, be it the class's own or the paper's."""
    known = algorithms()
    spoken = {_bare(kind.name): kind for kind in known.values()} | known
    if _bare(name) in spoken:
        return spoken[_bare(name)]
    close = get_close_matches(_bare(name), spoken, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise ValueError(f"There is no algorithm called {name!r}.{hint} The algorithms are {', '.join(known)}.")


def algorithms() -> dict[str, type[Any]]:
    """Every algorithm of the package by its name in small letters."""
    import roundelay.algorithms as family

    kinds = [getattr(family, name) for name in sorted(set(family.__all__))]
    return {_bare(kind.__name__): kind for kind in kinds if hasattr(kind, "parts") and hasattr(kind, "conditions")}


def _bare(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


COMPRESSORS: dict[str, Any] = {
    "plain": Plain,
    "rounded": Rounded,
    "quantised": Quantised,
    "signs": Signs,
    "topk": TopK,
    "topshare": TopShare,
    "randomk": RandomK,
}

PARTS: dict[Any, dict[str, Any]] = {
    Walk: {
        "cycle": Cycle,
        "metropolis": MetropolisWalk,
        "uniform": UniformWalk,
        "closed-uniform": ClosedUniformWalk,
        "least-visited": LeastVisitedWalk,
    },
    Start: {"zero": ZeroStart, "uniform": UniformStart, "zero-sum": ZeroSumStart, "sealed": SealedStart},
    Defence: {"none": NoDefence, "contribution-noise": ContributionNoise, "masked-links": MaskedLinks},
    Regulariser: {"none": NoRegulariser, "l1": L1, "box": Box, "non-negative": NonNegative},
    Compressor: COMPRESSORS,
    # A channel that censors or sends differences has parts of its own, and is made in Python.
    Channel | Compressor: COMPRESSORS,
}


TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def configured(kind: type[Any], words: Sequence[str]) -> Any:
    """The algorithm with these options, each given as name=value; the others keep the paper's defaults."""
    types, values = field_types(kind), {}
    for word in words:
        name, equals, value = word.partition("=")
        name = name.strip().replace("-", "_")
        if not types:
            raise ValueError(f"{kind.name} has no options, so {word!r} can't be set: leave it out.")
        if not equals:
            raise ValueError(
                f"The setting {word!r} has no value: write name=value, for example --set {_example(kind)}."
            )
        if name not in types:
            raise ValueError(f"{kind.name} has no option {name!r}: its options are {', '.join(types)}.")
        if name in values:
            raise ValueError(f"The option {name!r} is set twice: give it once.")
        values[name] = read_value(f"{name} of {kind.name}", types[name], value.strip())
    return kind(**values)


def algorithm_from(text: str) -> Any:
    """An algorithm in one word: its name, with options after a colon, as in coca:c=0.2,alpha=1."""
    from roundelay.cli.settings import algorithm_named

    name, _, settings = text.partition(":")
    return configured(algorithm_named(name), [word for word in settings.split(",") if word.strip()])


def field_types(kind: type[Any]) -> dict[str, Any]:
    """The options of a dataclass, and the type of each."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}


def read_value(what: str, wanted: Any, text: str) -> Any:
    """The text as a value of the wanted type."""
    if wanted is bool:
        return _read_bool(what, text)
    if wanted is int or wanted is float:
        try:
            return wanted(text)
        except ValueError:
            words = "a whole number" if wanted is int else "a number"
            raise ValueError(f"{what} can't be {text!r}: give {words}.") from None
    if get_origin(wanted) is Literal:
        if text not in get_args(wanted):
            raise ValueError(f"{what} can't be {text!r}: use {' or '.join(map(str, get_args(wanted)))}.")
        return text
    return _read_part(what, wanted, text)


def _read_bool(what: str, text: str) -> bool:
    if text.lower() not in TRUE + FALSE:
        raise ValueError(f"{what} can't be {text!r}: use true or false.")
    return text.lower() in TRUE


def _read_part(what: str, wanted: Any, text: str) -> Any:
    """A walk, a start, a regulariser or a compressor by name, with its own options after colons, as in l1:0.1."""
    from roundelay.cli.settings import PARTS

    if wanted not in PARTS:
        return _read_number_of_several(what, wanted, text)
    choices = PARTS[wanted]
    name, *values = text.split(":")
    if name not in choices:
        raise ValueError(f"{what} can't be {name!r}: use {', '.join(choices)}.")
    kind, types = choices[name], field_types(choices[name])
    if len(values) > len(types):
        takes = f"takes {':'.join(types)}" if types else "takes no values"
        raise ValueError(f"{what} can't be {text!r}: {name} {takes} after its name.")
    try:
        return kind(
            *(
                read_value(f"{field} of {name}", types[field], value)
                for field, value in zip(types, values, strict=False)
            )
        )
    except TypeError:
        raise ValueError(f"{what} can't be {text!r}: write {':'.join([name, *types])}, with numbers.") from None


def _read_number_of_several(what: str, wanted: Any, text: str) -> Any:
    """Where several types will do, the number among them; none, where it may be left open."""
    several = get_args(wanted) if get_origin(wanted) in (Union, UnionType) else ()
    number = next((kind for kind in several if kind in (int, float)), None)
    if number is None:
        raise ValueError(f"{what} can't be set from the command line: use Python for that.")
    if NoneType in several and text.lower() == "none":
        return None
    return read_value(what, number, text)


def _example(kind: type[Any]) -> str:
    first = fields(kind)[0]
    return f"{first.name}={first.default if first.default is not None else 0.1}"
