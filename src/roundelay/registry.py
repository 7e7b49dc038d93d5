"""The register: what can be named, on the command line, in a file and in a list, is entered where it is defined and nowhere else.

    @register(Start, "zero-sum")
    @dataclass(frozen=True)
    class ZeroSumStart: ...

`Start` is the slot that it fills, the type of the fields that take one; "zero-sum" is its word on the command line. In files
it stands under the name of its class, and only what is entered here is ever built from a file. A package of somebody
else's enters its own parts in the same way, in a module that it names as an entry point of the group "roundelay".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType, NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

GROUP = "roundelay"

Entry = TypeVar("Entry", bound=Callable[..., Any])

_ENTRIES: dict[Any, dict[str, Any]] = {}


def register(slot: Any = None, word: str = "") -> Callable[[Entry], Entry]:
    """Enter what follows as a choice for a slot: itself, where no slot is named, under its name, where no word is given."""

    def enter(entry: Entry) -> Entry:
        choices, name = _ENTRIES.setdefault(entry if slot is None else slot, {}), word or entry.__name__.lower()
        other = choices.get(name, entry)
        if (other.__module__, other.__qualname__) != (entry.__module__, entry.__qualname__):
            raise ValueError(
                f"{entry.__module__}.{entry.__qualname__} can't be called {name!r}, which is the name of "
                f"{other.__module__}.{other.__qualname__}: give it another word."
            )
        for known, taken in choices.items():
            if known != name and set(names_of(entry)) & set(names_of(taken)):
                raise ValueError(
                    f"{entry.__module__}.{entry.__qualname__} has the name of {taken.__module__}.{taken.__qualname__}, under "
                    "which that stands in files: give it another name."
                )
        choices[name] = entry
        return entry

    return enter


def names_of(entry: Any) -> tuple[str, ...]:
    """The names under which a class stands in files: its own, and the one that it once had."""
    former = getattr(entry, "former_name", None)
    return (entry.__name__,) if former is None else (entry.__name__, former)


def registered(slot: Any) -> Mapping[str, Any]:
    """The choices for a slot by their words, in the order in which they were entered."""
    _enter_others()
    return MappingProxyType(_ENTRIES.get(slot, {}))


def alternatives(wanted: Any) -> tuple[Any, ...]:
    """The types that will do where a union of several is asked for, None apart."""
    several = get_args(wanted) if get_origin(wanted) in (Union, UnionType) else (wanted,)
    return tuple(choice for choice in several if choice is not NoneType)


def classes_for(wanted: Any) -> tuple[type[Any], ...]:
    """The classes that may stand where a field of this type asks for one; none where it asks for plain values."""
    _enter_others()
    choices = alternatives(wanted)
    entries = ((slot, entry) for slot, words in _ENTRIES.items() for entry in words.values() if isinstance(entry, type))
    return tuple(entry for slot, entry in entries if slot in choices or entry in choices)


@cache
def _enter_others() -> None:
    """Import the modules that installed packages name, once."""
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except (Exception, SystemExit) as error:
            raise ValueError(
                f"The installed package {point.dist.name if point.dist else point.value} adds parts to roundelay, but can't be loaded "
                f"({type(error).__name__}: {error}): mend it, or uninstall it."
            ) from error
