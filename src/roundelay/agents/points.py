"""The points of the protocol at which an agent may die without anything being lost or done twice."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class Point(Enum):
    """Where an agent is in the handling of one baton.

    A hop on a cycle is sent, synced and acknowledged in this order. What can't be made again is synced before it is sent,
    and long work is synced and acknowledged while it is done.
    """

    AFTER_RECEIVE = "after receive"
    BEFORE_SEND = "before send"
    AFTER_SEND = "after send"
    BEFORE_SYNC = "before sync"
    AFTER_SYNC = "after sync"
    BEFORE_ACK = "before ack"
    AFTER_ACK = "after ack"


Reached = Callable[[Point], None]


def nothing_happens(point: Point) -> None:
    """What an agent does at these points, unless a test of crashes says otherwise."""
