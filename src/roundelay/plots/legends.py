"""Which panels of a figure are explained by one legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roundelay.plots.chart import Chart, ChartFigure, Series


@dataclass(frozen=True, eq=False)
class Legend:
    """What explains these panels: one series for each label that they have."""

    entries: tuple[Series, ...]
    panels: tuple[int, ...]


def legends_of(figure: ChartFigure) -> tuple[Legend, ...]:
    """One legend for panels that have a series in common and in which each label has one look; drawings apart."""
    legends: list[Legend] = []
    for bare in (False, True):
        each = [Legend(_entries(chart), (place,)) for place, chart in enumerate(figure.charts) if chart.bare == bare]
        legends += _merged(each)
    return tuple(legend for legend in legends if legend.entries)


def _merged(legends: Sequence[Legend]) -> list[Legend]:
    """Each legend joined to the first that it goes with."""
    merged: list[Legend] = []
    for legend in legends:
        for place, other in enumerate(merged):
            if _go_together(legend, other):
                merged[place] = _joined(other, legend)
                break
        else:
            merged.append(legend)
    return merged


def _go_together(one: Legend, other: Legend) -> bool:
    places, others = ({series.label: series.place for series in legend.entries} for legend in (one, other))
    common = places.keys() & others.keys()
    return bool(common) and all(places[label] == others[label] for label in common)


def _joined(one: Legend, other: Legend) -> Legend:
    labels = {series.label for series in one.entries}
    new = tuple(series for series in other.entries if series.label not in labels)
    return Legend(one.entries + new, one.panels + other.panels)


def _entries(chart: Chart) -> tuple[Series, ...]:
    """The first series of each label; without a label there is nothing to explain."""
    first: dict[str, Series] = {}
    for series in chart.series:
        if series.label:
            first.setdefault(series.label, series)
    return tuple(first.values())
