"""What is told of the first look weighs the rows of the second: whoever lies about it can give all the weight to one patient's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from roundelay.agents.agreement.policy import Policy
from roundelay.agents.data.regressing import RegressionFit, known_of
from roundelay.agents.protocol.baton import Reason
from roundelay.agents.protocol.holder import DeceivedError, Holder
from roundelay.kernels import Matrix, Vector
from roundelay.regression.study import Study
from roundelay.regression.sums import AFTER, Known, full, triangle
from tests.agents.regression_rings import Drawn, hand_overs, holders, regression_of

SITE, LIAR, LEAST = "site2", 3, Policy().least_rows_a_level
# How far the leverage of the patient's row is from 1, and how large all other information is made.
GAP, LARGE = 1e-4, 1e10
AGE = 130.0


def ring_of(least: int) -> tuple[list[Holder], dict[str, Any]]:
    """A ring in which the age of one patient is known, as the highest of all."""
    frames = Drawn().frames()
    frames[SITE].loc[7, "age"] = AGE
    regression = regression_of(frames, "length ~ age + dose", errors="hc3")
    return holders(frames, regression, least_carriers=least), frames


def wanted(known: Known) -> Matrix:
    """Positive, and more than what any site has added, but for one direction: in that one the row of whoever is so old is nearly all there is."""
    shift, scale = known.scaling
    along, across = np.array([0.6, 0.8, 0.0]), np.array([-0.8, 0.6, 0.0])
    size = float(along @ [1.0, (AGE - shift[1]) / scale[1], 0.0]) ** 2 / (1.0 - GAP)
    return LARGE * (np.diag([0.0, 0.0, 1.0]) + np.outer(across, across)) + size * np.outer(along, along)


class Lying:
    """A site's part of a regression, but for the information that it adds: so much that the total is what is wanted."""

    def __init__(self, own: RegressionFit) -> None:
        self.own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def look(self, told: tuple[Vector, ...], seen: tuple[Vector, ...], point: Vector) -> Vector:
        """That of a sum of squares is known: everybody was told all products before the fit."""
        honest = self.own.look(told, seen, point)
        if seen:
            return honest
        regression, known = self.own.study.regression, known_of(self.own.study, told)
        total = np.zeros((regression.dim, regression.dim))
        widths = known.sizes[1:] / known.scaling.scale[1:]
        total[0, 0], total[1:, 1:] = known.weight, known.products * np.outer(widths, widths)
        parts = dict(AFTER[0].parts(regression, honest))
        parts["information"] = parts["information"] + triangle(wanted(known) - total)
        return AFTER[0].packed(regression, parts)


def lied_to(least: int) -> tuple[list[Holder], dict[str, Any]]:
    ring, frames = ring_of(least)
    ring[LIAR].local = Lying(ring[LIAR].local)  # type: ignore[arg-type,assignment]
    return ring, frames


def test_robust_errors_can_be_made_of_one_patients_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control, where no site holds what is told against its own rows: all end with a model, and no replay finds anything."""
    monkeypatch.setattr(RegressionFit, "check_seen", lambda *_: None)
    ring, frames = lied_to(least=1)
    list(hand_overs(ring))
    asking = ring[LIAR].asking
    assert asking is not None and ring[0].held.reason == Reason.CONTENT
    assert not any(one.asking.held.doubt for one in ring)  # type: ignore[union-attr]
    regression = ring[LIAR].plan.task.regression
    assert regression is not None
    scores = full(AFTER[1].parts(regression, asking.seen[1])["scores"], regression.dim)
    shift, scale = known_of(Study(regression), ring[LIAR].held.told).scaling
    patient = frames[SITE].loc[7]
    np.testing.assert_allclose((scores[0] / scores[0, 0] * scale + shift)[1:], [AGE, patient["dose"]], rtol=1e-3)
    residual = GAP * np.sqrt(scores[0, 0])
    mean = asking.place.point @ (([1.0, AGE, patient["dose"]] - shift) / scale)
    assert min(abs(mean + residual - patient["length"]), abs(mean - residual - patient["length"])) < 1e-3


def test_less_information_than_a_site_has_added_is_refused_in_every_direction() -> None:
    """Of each coefficient by itself there is more, but not of the two together in which the patient is far out."""
    ring, _ = lied_to(LEAST)
    with pytest.raises(
        DeceivedError, match=r"What is told of the first look can't be right\. .* less than this site has added"
    ):
        list(hand_overs(ring))


def test_it_is_not_hidden_beside_what_is_far_larger() -> None:
    """Where another direction has 1e15 times as much, less in one is lost in rounding: so each row's pull is held against that among the site's own."""
    ring, _ = ring_of(least=1)
    list(hand_overs(ring))
    own, asking = ring[2].local, ring[2].asking
    assert asking is not None and isinstance(own, RegressionFit)
    regression, told, point = own.study.regression, ring[2].held.told, asking.place.point
    mine = full(AFTER[0].parts(regression, own.look(told, (), point))["information"], regression.dim)
    row = (
        own.rows.without(own.rows.frame["age"].to_numpy() != AGE)
        .likelihood({}, known_of(own.study, told).scaling)
        .design[0]
    )  # type: ignore[attr-defined]
    along = row / np.linalg.norm(row)
    for large in (1e4, 1e13, 1e16):
        told_instead = large * (np.eye(3) - np.outer(along, along)) + 0.5 * float(along @ mine @ along) * np.outer(
            along, along
        )
        parts = dict(AFTER[0].parts(regression, asking.seen[0])) | {"information": triangle(told_instead)}
        with pytest.raises(ValueError, match="less than this site has added"):
            own.check_seen(told, AFTER[0].packed(regression, parts), point, LEAST)


def test_an_honest_look_goes_on() -> None:
    """Though one row is far from all others."""
    ring, _ = ring_of(LEAST)
    list(hand_overs(ring))
    assert all(one.held.reason == Reason.CONTENT for one in ring)


def test_no_errors_are_made_of_few_rows_of_a_site() -> None:
    """Told hardly more than what it has added, a site with one row far from all others would add that row's product alone."""
    ring, frames = ring_of(least=1)
    frames[SITE].loc[7, "age"] = 5000.0
    ring = holders(frames, regression_of(frames, "length ~ age + dose", errors="hc3"))
    list(hand_overs(ring))
    own, asking = ring[2].local, ring[2].asking
    assert asking is not None and isinstance(own, RegressionFit)
    regression, told, point = own.study.regression, ring[2].held.told, asking.place.point
    mine = AFTER[0].parts(regression, own.look(told, (), point))["information"]
    parts = dict(AFTER[0].parts(regression, asking.seen[0])) | {"information": 1.001 * mine}
    own.check_seen(told, AFTER[0].packed(regression, parts), point, 1)
    with pytest.raises(ValueError, match=r"so few rows of this site .* \(least_rows_a_level\)"):
        own.check_seen(told, AFTER[0].packed(regression, parts), point, LEAST)
    with pytest.raises(ValueError, match="less than this site has added"):
        own.check_seen(told, AFTER[0].packed(regression, parts | {"information": 0.999 * mine}), point, 1)
