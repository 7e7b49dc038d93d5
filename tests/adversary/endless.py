"""Evidence on which the attacks never end: what the meter must not make its agent pay for. A process finds it by the name of this module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from roundelay.agents.site import meter, metering
from roundelay.agents.site.own_attacks import TokenEvidence
from roundelay.agents.site.status import CURVATURE, MeterReading
from roundelay.agents.site.taking_part import Site
from tests.agents.processes import PATIENCE

FIRST = MeterReading(CURVATURE, 0.75, 1.0, "the first")


@dataclass(frozen=True, eq=False)
class EndlessEvidence(TokenEvidence):
    """One attack that is quick, and one that takes all the time there is."""

    def readings(self) -> Iterator[MeterReading]:
        yield FIRST
        while True:
            sum(range(10_000))


@dataclass(frozen=True, eq=False)
class FailingEvidence(TokenEvidence):
    """An attack that somebody wrote badly."""

    def readings(self) -> Iterator[MeterReading]:
        yield FIRST
        raise MemoryError


@dataclass(frozen=True, eq=False)
class LyingEvidence(TokenEvidence):
    """An attack that writes what is no reading."""

    def readings(self) -> Iterator[MeterReading]:
        yield FIRST
        yield {"quantity": 1}  # type: ignore[misc]


def endless(site: Site, number: int) -> None:
    """What a site's attacks are is such, and its agent waits for them for no time at the end."""
    meter.TokenEvidence = EndlessEvidence  # type: ignore[misc]
    metering.LAST_LOOK = 0.01


def patient(site: Site, number: int) -> None:
    """On a loaded machine the meter may take long."""
    metering.LAST_LOOK = PATIENCE
