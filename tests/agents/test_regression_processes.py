"""Regressions by real processes: the result is that of another library on the pooled rows, whoever dies on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from roundelay.agents.protocol.station import Point
from roundelay.regression.pooled import glm
from tests.agents.killing import kills_in
from tests.agents.processes import wait_until
from tests.agents.regression_fits import check_same_words, compared, ring_of, stored_at
from tests.agents.regression_rings import Drawn
from tests.regression.studies import STUDIES, glm_of


@pytest.mark.parametrize(("name", "how"), [("diabetes", "90/10"), ("wine", "by label"), ("rossi", "evenly")])
def test_a_ring_finds_what_another_library_finds_in_the_pooled_rows(name: str, how: str, tmp_path: Path) -> None:
    """The long form, of every data set, split in every way, is in soak.py."""
    case = next(one for one in STUDIES if one.name == name)
    for what, apart in compared(tmp_path, case, how)[0].items():
        assert apart < 1e-6, what


def test_sites_with_constants_of_their_own_and_rows_that_lack_cells(tmp_path: Path) -> None:
    """As statsmodels has it with a dummy for each site, on the rows without a gap."""
    frames = Drawn(3).frames()
    frames["site1"].loc[[2, 9, 11], "age"] = np.nan
    frames["site2"].loc[4, "sex"] = None
    ring = ring_of(tmp_path, frames, "ill ~ age + C(sex) + site", "binomial", by="sex")
    ring.run()
    result = stored_at(ring)[0].result
    pooled = pd.concat([frame.assign(place=name) for name, frame in frames.items()]).dropna(subset=["age", "sex"])
    other = glm_of("Binomial")("ill ~ age + C(sex) + C(place)", pooled)
    assert result is not None and (result.rows, result.events) == (len(pooled), int(pooled.ill.sum()))
    assert [(one.column, one.rows) for one in result.missing] == [("age", None), ("sex", None)]
    for term in result.terms:
        assert term.estimate == pytest.approx(other.estimate[term.name], rel=1e-6)
        assert term.std_error == pytest.approx(other.std_error[term.name], rel=1e-6)
        assert term.p_value == pytest.approx(other.p_value[term.name], abs=1e-6)
    assert result.deviance == pytest.approx(other.deviance, rel=1e-6)


def test_death_on_the_way_changes_no_word(tmp_path: Path) -> None:
    """Before the fit, in it, and at a look: masks are used for the same words, and the result is the same."""
    frames = Drawn(3, 20).frames()
    ring = ring_of(tmp_path, frames, "ill ~ age + C(sex)", "binomial", seed=7, ridge=1e-3)
    deaths, again = (
        ((0, Point.AFTER_SYNC, 9), (1, Point.BEFORE_SEND, 4), (2, Point.AFTER_RECEIVE, 19)),
        (Point.AFTER_SEND, 14),
    )
    try:
        for number, point, times in deaths:
            ring.start(number, (point, times))
        died = dict[int, int]()
        wait_until(lambda: bool(died.update(ring.reap()) or 1 in died), "a site dies")
        ring.start(1, again)
        for number in died.keys() - {1}:
            ring.start(number)
        ring.wait(again=True)
    finally:
        ring.stop()
    assert kills_in(tmp_path)[0].total() == 4
    check_same_words(ring, 7)
    result = stored_at(ring)[2].result
    pooled = glm("ill ~ age + C(sex)", frames, "binomial", ridge=1e-3).result
    assert result is not None
    for one, other in zip(result.terms, pooled.terms, strict=True):
        assert one.estimate == pytest.approx(other.estimate, rel=1e-8)
