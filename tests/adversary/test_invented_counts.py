"""Counts of the first look that somebody adds to: so that the second is of one site alone, or of a group of rows that is one patient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from roundelay.agents.data.regressing import RegressionFit, known_of
from roundelay.agents.protocol.baton import Reason
from roundelay.agents.protocol.holder import DeceivedError, Holder
from roundelay.kernels import Vector
from roundelay.regression.regression import Regression
from roundelay.regression.study import Study
from roundelay.regression.sums import AFTER, CHANCES, GROUPS, Known, quantiles
from tests.agents.regression_rings import Drawn, hand_overs, holders, regression_of

LIAR = 3
Parts = dict[str, Any]


class Lying:
    """A site's part of a regression, but for what it adds to the looks."""

    def __init__(
        self, own: RegressionFit, first: Callable[[Parts, Known], Parts], second: Callable[[Parts, Known], Parts]
    ) -> None:
        self.own, self.changed = own, (first, second)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def look(self, told: tuple[Vector, ...], seen: tuple[Vector, ...], point: Vector) -> Vector:
        study, number = self.own.study, len(seen)
        look, known = AFTER[number], known_of(study, told, seen=seen, point=point)
        parts = self.changed[number](dict(look.parts(study.regression, self.own.look(told, seen, point))), known)
        return look.packed(study.regression, parts)


def as_it_is(parts: Parts, known: Known) -> Parts:
    return parts


def lied_to(
    frames: dict[str, pd.DataFrame], regression: Regression, first: Callable[[Parts, Known], Parts],
    second: Callable[[Parts, Known], Parts] = as_it_is,
) -> list[Holder]:  # fmt: skip
    ring = holders(frames, regression)
    ring[LIAR].local = Lying(ring[LIAR].local, first, second)  # type: ignore[arg-type,assignment]
    return ring


def seen_by(ring: list[Holder], number: int) -> Parts:
    """What the liar was told of a look."""
    asking, regression = ring[LIAR].asking, ring[LIAR].plan.task.regression
    assert asking is not None and regression is not None
    return dict(AFTER[number].parts(regression, asking.seen[number]))


# ---------------------------------------------------------------- how many sites can fit their rows alone


def counts_for_three(parts: Parts, known: Known) -> Parts:
    return parts | {"able": np.array([3.0])}


def adds_nothing(parts: Parts, known: Known) -> Parts:
    return parts | {"own estimates": np.zeros_like(parts["own estimates"])}


def one_with_events() -> tuple[dict[str, pd.DataFrame], Regression]:
    """Of the others, one site alone has both outcomes."""
    frames = Drawn().frames()
    for name in ("site0", "site1"):
        frames[name]["ill"] = 0.0
    return frames, regression_of(frames, "ill ~ age + dose", "binomial", heterogeneity=True)


def test_one_that_counts_for_three_is_told_what_one_site_finds_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control: where four that can fit their rows were enough."""
    monkeypatch.setattr(
        Known, "sites_compared", property(lambda known: float(known.told("first look")["able"][0]) >= 4)
    )
    monkeypatch.setattr(RegressionFit, "check_seen", lambda *_: None)
    frames, regression = one_with_events()
    ring = lied_to(frames, regression, counts_for_three, adds_nothing)
    list(hand_overs(ring))
    assert not any(one.asking.held.doubt for one in ring)  # type: ignore[union-attr]
    count, precision, apart, _ = seen_by(ring, 1)["own estimates"].reshape(4, -1)
    asking = ring[LIAR].asking
    assert asking is not None and count[0] == 1.0
    known = known_of(Study(regression), ring[LIAR].held.told)
    found = Study(regression).raw(known, asking.place.point + apart / precision)[0]
    site = frames["site2"]
    design = np.column_stack([np.ones(len(site)), site["age"], site["dose"]])
    slope = design.T @ (1.0 / (1.0 + np.exp(-design @ found)) - site["ill"])
    np.testing.assert_allclose(slope, 0.0, atol=1e-5)  # the best fit to that site's rows by themselves


@pytest.mark.parametrize("claimed", [2.0, 3.0])
def test_sites_are_compared_where_all_can_fit_their_rows(claimed: float) -> None:
    """Short of all, nothing is told; a site that can't fit its rows knows that not all can."""
    frames, regression = one_with_events()
    ring = lied_to(frames, regression, lambda parts, _: parts | {"able": np.array([claimed])}, adds_nothing)
    if claimed == 3.0:  # with the one that can: four of four
        with pytest.raises(DeceivedError, match="More sites can fit their rows alone than there are beside this one"):
            list(hand_overs(ring))
        return
    list(hand_overs(ring))
    assert not seen_by(ring, 1)["own estimates"].any()


# ---------------------------------------------------------------- groups of the calibration


def chances_of(frame: pd.DataFrame, known: Known) -> Vector:
    """What the fit says of each row."""
    shift, scale = known.scaling
    rows = (np.column_stack([np.ones(len(frame)), frame[["age", "dose"]]]) - shift) / scale
    assert known.point is not None
    return np.asarray(1.0 / (1.0 + np.exp(-rows @ known.point)))


def group_around() -> tuple[float, int, bool]:
    """How wide the group is that is laid around a patient of site2, how many rows it has, and whether its outcomes are that patient's."""
    frames, at = Drawn().frames(), {}
    frame = frames["site2"]

    def crowded(parts: Parts, known: Known) -> Parts:
        all_chances = np.concatenate([chances_of(one, known) for one in frames.values()])
        own = chances_of(frame, known)
        apart = [np.sort(np.abs(all_chances - one))[1] for one in own]
        at["place"] = int(np.argmax(apart))  # whoever is farthest from the next
        at["chance"] = own[at["place"]]
        counts = np.zeros((2, CHANCES))
        counts[0, int(at["chance"] * CHANCES)] = 1e7
        return parts | {"chances": parts["chances"] + counts.reshape(-1)}

    ring = lied_to(frames, regression_of(frames, "ill ~ age + dose", "binomial"), crowded)
    list(hand_overs(ring))
    assert ring[0].held.reason == Reason.CONTENT and not any(one.asking.held.doubt for one in ring)  # type: ignore[union-attr]
    asking = ring[LIAR].asking
    assert asking is not None
    edges = known_of(Study(ring[0].plan.task.regression), ring[LIAR].held.told, seen=asking.seen).chance_edges  # type: ignore[arg-type]
    number = int(np.clip(np.searchsorted(edges, at["chance"], side="right") - 1, 0, GROUPS - 1))
    count, _, _, outcomes = seen_by(ring, 1)["calibration"].reshape(4, -1)[:, number]
    return float(edges[number + 1] - edges[number]), round(count), bool(outcomes == frame["ill"].iloc[at["place"]])


def narrow(known: Known) -> Vector:
    """As it was: within a bin, too."""
    counted = known.told("first look")["chances"].reshape(2, -1).sum(axis=0)
    edges = np.linspace(0.0, 1.0, CHANCES + 1)
    inside = quantiles(edges, np.concatenate([[0.0], counted, [0.0]]), np.linspace(0.0, 1.0, GROUPS + 1)[1:-1])
    return np.concatenate([[0.0], inside, [1.0]])


def test_a_group_can_be_laid_around_one_patient_whose_outcome_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Known, "chance_edges", property(narrow))
    width, count, told = group_around()
    assert width < 0.5 / CHANCES and count == 1 and told


def test_no_group_is_finer_than_what_the_first_look_counts() -> None:
    width, _, _ = group_around()
    assert width > 0.99 / CHANCES
