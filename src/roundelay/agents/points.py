"""The points of the protocol at which an agent may die without anything being lost or done twice."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class Point(Enum):
    """Where an agent is in the handling of one baton, in this order; long work is acknowledged before it is done."""

    AFTER_RECEIVE = "after receive"
    BEFORE_SYNC = "before sync"
    AFTER_SYNC = "after sync"
    BEFORE_SEND = "before send"
    AFTER_SEND = "after send"
    BEFORE_ACK = "before ack"
    AFTER_ACK = "after ack"


Reached = Callable[[Point], None]


def nothing_happens(point: Point) -> None:
    """What an agent does at these points, unless a test of crashes says otherwise."""
