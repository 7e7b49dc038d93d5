"""What the methods of a comparison are called, and what their parameters are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from roundelay.engine.checks import name_of


def named(algorithms: Iterable[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Each algorithm by a name of its own: that of the papers, with what tells it from others of that name."""
    if isinstance(algorithms, Mapping):
        chosen = {str(name): algorithm for name, algorithm in algorithms.items()}
    elif isinstance(algorithms, str) or not isinstance(algorithms, Iterable):
        raise ValueError(
            f"algorithms is {algorithms!r}: give a list, for instance [roundelay.IADMM(), roundelay.EXTRA()]."
        )
    else:
        chosen = _told_apart(list(algorithms))
    if not chosen:
        raise ValueError("There is no algorithm to compare: give at least one.")
    for algorithm in chosen.values():
        if isinstance(algorithm, type) or not hasattr(algorithm, "parts"):
            raise ValueError(f"{algorithm!r} is not an algorithm: use an object such as roundelay.IADMM(rho=10.0).")
    return chosen


def parameters(algorithm: Any) -> dict[str, Any]:
    """The parameters of an algorithm by name."""
    if is_dataclass(algorithm):
        return {field.name: getattr(algorithm, field.name) for field in fields(algorithm) if field.init}
    return {name: value for name, value in vars(algorithm).items() if not name.startswith("_")}


def parameters_in_words(algorithms: Sequence[Any]) -> str:
    """The parameters of one method; a number that follows from each seed's problem is given as a range."""
    every = [parameters(algorithm) for algorithm in algorithms]
    words = (f"{name}={_range([own[name] for own in every])}" for name in every[0])
    return ", ".join(words) or "none"


def value_in_words(value: Any) -> str:
    """A number in few digits; anything else as Python writes it."""
    if isinstance(value, float) and math.isfinite(value):
        return repr(value) if len(repr(value)) <= 10 else f"{value:.6g}"
    return repr(value)


def _range(values: Sequence[Any]) -> str:
    if all(value == values[0] for value in values):
        return value_in_words(values[0])
    if all(isinstance(value, (int, float)) for value in values):
        return f"{value_in_words(min(values))}…{value_in_words(max(values))}"
    return " or ".join(sorted({value_in_words(value) for value in values}))


def _told_apart(algorithms: Sequence[Any]) -> dict[str, Any]:
    """Names that say by which parameters the methods of one name differ."""
    names = [name_of(algorithm) for algorithm in algorithms]
    alike = {name: [other for other in algorithms if name_of(other) == name] for name in set(names)}
    full = [
        name if not (what := _differences(algorithm, alike[name])) else f"{name} ({what})"
        for name, algorithm in zip(names, algorithms, strict=True)
    ]
    for name, times in Counter(full).items():
        if times > 1:
            raise ValueError(
                f"{name} is given {times} times with the same parameters: leave the others out, or give names, as in {{'one': …, 'two': …}}."
            )
    return dict(zip(full, algorithms, strict=True))


def _differences(algorithm: Any, others: Sequence[Any]) -> str:
    own, every = parameters(algorithm), [parameters(other) for other in others]
    differing = [name for name in own if any(name not in other or other[name] != own[name] for other in every)]
    words = [f"{name}={value_in_words(own[name])}" for name in differing]
    if len({type(other) for other in others}) > 1:
        words.insert(0, type(algorithm).__name__)
    return ", ".join(words)
