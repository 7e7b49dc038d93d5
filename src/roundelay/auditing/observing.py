"""Observers by name, and in words."""

from __future__ import annotations

from typing import Literal

from roundelay.transcripts import Colluders, Eavesdropper, Link, Neighbours, Observer

ObserverName = Literal["eavesdropper", "neighbours", "colluders"]


def observer_of(observer: ObserverName | Observer, agent: int) -> Observer:
    """The observer that is meant, of this agent."""
    if observer == "eavesdropper":
        return Eavesdropper()
    if observer == "neighbours":
        return Neighbours(agent)
    if observer == "colluders":
        return Colluders(agent)
    if isinstance(observer, str) or not hasattr(observer, "sees"):
        raise ValueError(
            f'There is no observer {observer!r}: use "eavesdropper", "neighbours", "colluders", or an observer such as Link(3, 4).'
        )
    return observer


def words_of(observer: Observer) -> str:
    """The observer as the subject or object of a sentence."""
    if isinstance(observer, Neighbours):
        return "its neighbours"
    if isinstance(observer, Colluders):
        return "all other agents together"
    if isinstance(observer, Link):
        return f"a tap on the link from {observer.sender} to {observer.receiver}"
    return "the eavesdropper" if isinstance(observer, Eavesdropper) else type(observer).__name__
