"""A status in the text format of Prometheus."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import get_args

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric

from roundelay.agents.protocol.holder import Residuals
from roundelay.agents.site.status import Doing, LinkStatus, Status

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


def metrics_text(status: Status) -> bytes:
    """All there is to measure of one look at an agent."""
    # A registry of its own: the default one would add what it knows of the process, and others could add to it.
    registry = CollectorRegistry()
    registry.register(_Look(status))
    return generate_latest(registry)


@dataclass(frozen=True)
class _Look:
    """One look at an agent, as the registry wants it."""

    status: Status

    def collect(self) -> Iterator[Metric]:
        """The families of numbers."""
        status, journal = self.status, self.status.journal
        run = {"site": status.site, "run": status.run, "algorithm": status.algorithm}
        yield InfoMetricFamily("roundelay_run", "The site, the run and the algorithm.", run)
        yield _gauge("epoch", "How often the members of the ring have changed.", status.epoch)
        yield _gauge("hops", "The last hop of this epoch that this site knows of.", status.hop - status.first_hop)
        yield _counter("visits", "Updates that this site has made.", status.visits)
        yield _doing(status.doing)
        yield _gauge("lap_seconds", "How long the token is usually away from here.", status.lap_seconds or None)
        yield _gauge("token_here", "1 where the token is at this site.", status.token_here)
        yield _of_links("link_up", "1 where the link is up.", status, lambda link: link.up)
        yield _of_links("round_trip_seconds", "How long an answer usually takes.", status, _round_trip)
        broken = CounterMetricFamily("roundelay_link_broken", "How often the link broke.", labels=["neighbour"])
        for link in status.links:
            broken.add_metric([link.name], link.broken)
        yield broken
        yield _counter("resent", "Hand-overs that were sent again.", journal.resent)
        yield _counter("duplicates", "Hand-overs that came again.", journal.duplicates)
        yield _counter("refused", "Hand-overs that this site refused.", journal.refused)
        yield _counter("damaged", "Frames that came damaged.", journal.damaged)
        yield _gauge("journal_bytes", "What the journal takes on disk.", journal.bytes)
        last = status.residuals[-1] if status.residuals else _UNKNOWN
        yield _gauge("unrest", "How far this site is from balance with the token.", last.unrest)
        yield _gauge("primal_residual", "How far this site is from the token.", last.primal)
        yield _gauge("dual_residual", "How far this site's part last moved, times the penalty.", last.dual)
        yield _gauge("tolerance", "Below this all sites are content.", status.tolerance)


_UNKNOWN = Residuals(0, math.nan, math.nan, math.nan)


def _gauge(name: str, words: str, value: float | None) -> GaugeMetricFamily:
    """A number that goes up and down; without a sample where it is not known."""
    family = GaugeMetricFamily(f"roundelay_{name}", words)
    if value is not None and not math.isnan(value):
        family.add_metric([], value)
    return family


def _counter(name: str, words: str, value: int) -> CounterMetricFamily:
    return CounterMetricFamily(f"roundelay_{name}", words, value)


def _doing(doing: Doing) -> GaugeMetricFamily:
    family = GaugeMetricFamily("roundelay_doing", "1 for what the agent is doing.", labels=["what"])
    for what in get_args(Doing):
        family.add_metric([what], what == doing)
    return family


def _of_links(name: str, words: str, status: Status, value: Callable[[LinkStatus], float | None]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"roundelay_{name}", words, labels=["neighbour"])
    for link in status.links:
        number = value(link)
        if number is not None:
            family.add_metric([link.name], number)
    return family


def _round_trip(link: LinkStatus) -> float | None:
    """In seconds, as is the custom there; 0 stands for a neighbour that has not answered yet."""
    return link.milliseconds / 1e3 or None
