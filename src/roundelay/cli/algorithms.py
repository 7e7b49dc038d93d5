"""Algorithms by name: piadmm1, PI-ADMM1 and pi_admm1 are one."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any


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
