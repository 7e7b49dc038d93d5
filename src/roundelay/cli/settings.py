"""`--set name=value`: an algorithm's options from words, each read by the type of its field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from roundelay.algorithms.algorithm import Algorithm
from roundelay.registry import alternatives, registered
from roundelay.tables import options_of


def algorithm_named(name: str) -> type[Any]:
    """The class of the algorithm with this name, be it the class's own or the paper's: piadmm1, PI-ADMM1 and pi_admm1 are one."""
    known = registered(Algorithm)
    spoken = {_bare(kind.name): kind for kind in known.values()} | {_bare(word): kind for word, kind in known.items()}
    if _bare(name) in spoken:
        return spoken[_bare(name)]
    close = get_close_matches(_bare(name), spoken, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise ValueError(f"There is no algorithm called {name!r}.{hint} The algorithms are {', '.join(sorted(known))}.")


def _bare(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def parts_for(wanted: Any) -> dict[str, Any]:
    """The parts that a field of this type takes, by their words.

    A slot of one class, such as a channel that censors, has parts of its own, and is made in Python.
    """
    slots = alternatives(wanted)
    return {word: part for slot in slots for word, part in registered(slot).items() if part is not slot}


TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def configured(kind: type[Any], words: Sequence[str]) -> Any:
    """The algorithm with these options, each given as name=value; the others keep the paper's defaults."""
    types, values = options_of(kind), {}
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
    name, _, settings = text.partition(":")
    return configured(algorithm_named(name), [word for word in settings.split(",") if word.strip()])


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
    if get_origin(wanted) is tuple:
        return tuple(read_value(what, get_args(wanted)[0], number) for number in text.split(","))
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
    choices = parts_for(wanted)
    if not choices:
        return _read_number_of_several(what, wanted, text)
    name, *values = text.split(":")
    if name not in choices:
        raise ValueError(f"{what} can't be {name!r}: use {', '.join(choices)}.")
    kind, types = choices[name], options_of(choices[name])
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
