"""Regressions by real sites: the model's file, what stands in the ledger, and what the sums of two runs tell together."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from roundelay.agents.agreement.differencing import DifferenceError
from roundelay.agents.agreement.folder import accept_ring
from roundelay.agents.agreement.ledger import Added, read_ledger
from roundelay.agents.agreement.policy import POLICY, Policy, PolicyError, write_policy
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data.models import load_model, sums_beside
from roundelay.agents.site.taking_part import Ending, NoMinimumError
from roundelay.agents.site.verification import verify_model
from roundelay.cli.app import app
from roundelay.regression.pooled import glm
from roundelay.regression.sums import sums_of
from tests.agents.hospitals import LAX, NAMES, QUIET
from tests.agents.wards import Wards

FORMULA = "ill ~ age + C(sex)"


@pytest.fixture
def wards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wards:
    return Wards(tmp_path, monkeypatch)


# ---------------------------------------------------------------- the file of a model


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, Wards]]:
    """The model's file of one of the sites, the ring file, and the sites."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("wards")
        wards = Wards(folder, patch)
        ring = wards.accept(wards.planned(FORMULA, "binomial", by="sex", errors="hc0"))
        paths = {name: folder / f"{name}.json" for name in NAMES}
        ended = wards.run(ring, {name: replace(QUIET, model=path) for name, path in paths.items()})
        assert all(isinstance(one, Ending) for one in ended.values()), ended
        (folder / "ring.toml").write_bytes(ring.text)
        texts = {json.dumps(json.loads(path.read_text()) | {"about": None}) for path in paths.values()}
        assert len(texts) == 1  # every site has the same
        yield paths["Bergen"], folder / "ring.toml", wards


def test_the_file_has_the_result_that_the_pooled_rows_give(fitted: tuple[Path, Path, Wards]) -> None:
    model, ring, wards = fitted
    stored = load_model(model)
    pooled = glm(FORMULA, wards.frames, "binomial", by="sex", errors="hc0").result
    assert stored.result is not None and stored.regression is not None and stored.format == 7
    assert stored.result.table_one == pooled.table_one and stored.result.sites == NAMES
    for one, other in zip(stored.result.terms, pooled.terms, strict=True):
        assert (one.estimate, one.std_error) == pytest.approx((other.estimate, other.std_error), rel=1e-9)
    said = CliRunner().invoke(app, ["model", "verify", str(model), "--ring", str(ring)])
    assert said.exit_code == 0 and "All 4 sites have signed this model" in said.output


def _forged(place: tuple[Any, ...], change: Any) -> Any:
    return pytest.param(place, change, id=".".join(map(str, place)))


@pytest.mark.parametrize(
    ("place", "change"),
    [
        _forged(("result", "terms", 1, "std_error"), lambda number: number * 0.9),
        _forged(("result", "terms", 1, "p_value"), lambda number: number * 1.01),
        _forged(("result", "terms", 2, "estimate"), lambda number: number + 1e-5),
        _forged(("result", "table_one", "lines", 0, "cells", 0, "mean"), lambda number: number + 0.1),
        _forged(("result", "table_one", "lines", 1, "cells", 1, "count"), lambda _: 7),
        _forged(("result", "rows"), lambda number: number + 1),
        _forged(("result", "notes"), lambda _: ["All is well."]),
        _forged(("result", "roc", "area"), lambda _: 0.99),
        _forged(("result", "converged"), lambda _: False),
        _forged(("result", "sites", 0), lambda _: "Paris"),
        _forged(("result",), lambda _: None),
        _forged(("regression", "least"), lambda _: 1),
        _forged(("regression", "columns", 1, "levels"), lambda levels: levels[::-1]),
        _forged(("regression",), lambda _: None),
        _forged(("model", "coefficients", 0, 1), lambda number: number * 1.00001),
        _forged(("sums", "looks", 0, 0), lambda number: number * 1.1),
        _forged(("sums", "looks"), lambda _: []),
        _forged(("about", "end", "fitted"), lambda digits: "00" * (len(digits) // 2)),
        _forged(("sums", "told", 0, 1), lambda number: number + 1.0),
        _forged(("about", "questions"), lambda number: number - 1),
    ],
)  # fmt: skip
def test_whatever_is_forged_in_the_file_is_refused(
    fitted: tuple[Path, Path, Wards], tmp_path: Path, place: tuple[Any, ...], change: Any
) -> None:
    model, ring, _ = fitted
    content: Any = json.loads(model.read_text()) | {"sums": json.loads(sums_beside(model).read_text())}
    inner = content
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = change(inner[place[-1]])
    forged = tmp_path / "forged.json"
    sums_beside(forged).write_text(json.dumps(content.pop("sums")))
    forged.write_text(json.dumps(content))
    said = CliRunner().invoke(app, ["model", "verify", str(forged), "--ring", str(ring)])
    assert said.exit_code == 2 and any(
        words in said.output for words in ("not signed", "not those that the members", "was changed", "what was signed")
    ), said.output


def test_rounding_of_another_computer_is_no_forgery(fitted: tuple[Path, Path, Wards], tmp_path: Path) -> None:
    from roundelay.agents.agreement.ringfile import read_ring
    from roundelay.agents.data.models import text_of_model

    model, ring, _ = fitted
    stored = load_model(model)
    assert stored.result is not None
    terms = tuple(replace(one, std_error=float(np.nextafter(one.std_error or 0.0, 1.0))) for one in stored.result.terms)
    other = tmp_path / "other.json"
    sums_beside(other).write_bytes(sums_beside(model).read_bytes())
    other.write_bytes(text_of_model(replace(stored, result=replace(stored.result, terms=terms))))
    verify_model(other, read_ring(ring.read_bytes(), "ring.toml"))


# ---------------------------------------------------------------- what can't be fitted


def test_a_fit_that_can_not_be_is_ended_everywhere_by_one_sentence(wards: Wards) -> None:
    for frame in wards.frames.values():
        frame["twice"] = 2.0 * frame["age"]
    ring = wards.accept(wards.planned("length ~ age + twice", "gaussian"))
    ended = wards.run(ring, until=asyncio.ALL_COMPLETED)
    assert len(ended) == 4 and all(isinstance(one, NoMinimumError) for one in ended.values()), ended
    assert {str(one) for one in ended.values()} == {
        "In all rows of all sites twice follows from age: leave it out of the formula, or plan with a --ridge."
    }
    again = wards.run(ring, until=asyncio.ALL_COMPLETED)  # an agent that is started once more says the same
    assert {str(one) for one in again.values()} == {str(one) for one in ended.values()}


def test_a_site_takes_no_part_with_a_level_that_few_of_its_rows_have(wards: Wards) -> None:
    (wards.folder / "Oslo" / POLICY).unlink()
    write_policy(wards.folder / "Oslo", replace(LAX, least_rows_a_level=5))
    wards.frames["Oslo"]["sex"] = ["f"] * 2 + ["m"] * (len(wards.frames["Oslo"]) - 2)
    ended = wards.run(wards.accept(wards.planned(FORMULA, "binomial")))
    assert list(ended) == ["Oslo"] and isinstance(ended["Oslo"], PolicyError)
    assert "2 rows with the level 'f' of sex" in str(ended["Oslo"])
    assert not read_ledger(wards.folder / "Oslo").entries


def test_a_site_goes_no_further_where_all_rows_are_too_few_for_its_policy(wards: Wards) -> None:
    (wards.folder / "Tromso" / POLICY).unlink()
    write_policy(wards.folder / "Tromso", replace(Policy(), most_parameters_per_row=0.01))
    ended = wards.run(wards.accept(wards.planned(FORMULA, "binomial")))
    assert isinstance(ended["Tromso"], PolicyError) and "3 unknowns and all sites together 282 rows" in str(
        ended["Tromso"]
    )


# ---------------------------------------------------------------- the ledger, and what two runs tell together


def added(wards: Wards, name: str = "Oslo") -> tuple[Added, ...]:
    return read_ledger(wards.folder / name).added


def finish(wards: Wards, ring: SignedPlan) -> dict[str, Ending]:
    return wards.finish(wards.accept(ring))


def test_all_that_was_told_stands_in_the_ledger(wards: Wards) -> None:
    ring = wards.planned(FORMULA, "binomial", by="sex")
    finish(wards, ring)
    (one,) = added(wards)
    regression = ring.plan.task.regression
    assert regression is not None
    assert [what for what in one.told if what.startswith(("for each model", "the model"))] == [
        one.told[-4],
        one.told[-1],
    ]
    assert {*one.told} > {each.tells for each in sums_of(regression)}
    assert (one.kind, one.target, set(one.features)) == ("regression binomial", "ill", {"age", "sex"})
    assert one.fit == ring.plan.task.in_words and set(one.data.columns) == {"ill", "age", "sex"}
    finish(wards, wards.planned("length ~ dose", "gaussian", table_one=False, diagnostics=False))
    assert not set(added(wards)[1].told) >= set(one.told)
    said = CliRunner().invoke(app, ["ring", "ledger", "--folder", str(wards.folder / "Oslo")])
    assert said.exit_code == 0 and "how many rows have each level" in said.output


def cells(ending: Ending) -> dict[str, np.ndarray[Any, Any]]:
    """The counts of Table 1, as they were told."""
    from roundelay.agents.data.regressing import known_of
    from roundelay.regression.study import Study

    assert ending.sums is not None and ending.result is not None
    regression = ending_regression(ending)
    told = [np.array(total) for total in ending.sums.told]
    return dict(known_of(Study(regression), told).told("counts"))


REGRESSIONS: dict[str, Any] = {}


def ending_regression(ending: Ending) -> Any:
    return REGRESSIONS[ending.notes.ring_digest]


def planned(wards: Wards, *names: str, **planned: Any) -> SignedPlan:
    ring = wards.planned(FORMULA, "binomial", *names, **planned)
    REGRESSIONS[ring.digest] = ring.plan.task.regression
    return ring


def test_the_cells_of_one_site_by_difference_are_refused(wards: Wards) -> None:
    """The attack itself: two Tables 1, one without Narvik, whose cells their difference is; by default it can't be run."""
    before = finish(wards, planned(wards, by="sex"))["Oslo"]
    fewer = planned(wards, *NAMES[:3], by="sex")
    for name in NAMES[:3]:
        with pytest.raises(DifferenceError, match="Narvik takes part no more"):
            accept_ring(wards.folder / name, fewer.text)
    wards.accept(fewer, despite_difference=True)
    after = wards.finish(fewer)["Oslo"]
    sexes = wards.frames["Narvik"].sex.value_counts()
    np.testing.assert_array_equal(cells(before)["groups"] - cells(after)["groups"], [sexes["f"], sexes["m"]])
    assert "the counts of Table 1" in added(wards)[-1].overruled[0]


def test_another_formula_over_a_column_that_is_shared_is_no_way_round(wards: Wards) -> None:
    finish(wards, planned(wards))
    for formula, family in (
        ("length ~ age", "gaussian"),
        ("visits ~ sex", "poisson"),
        ("ill ~ I(age > 60)", "binomial"),
        ("ill ~ 1", "binomial"),
    ):
        with pytest.raises(DifferenceError, match="Narvik takes part no more"):
            accept_ring(wards.folder / "Oslo", wards.planned(formula, family, *NAMES[:3], by="").text)
    accept_ring(wards.folder / "Oslo", wards.planned("length ~ dose", "gaussian", *NAMES[:3]).text)  # nothing is shared


def stopped(wards: Wards, ring: SignedPlan) -> dict[str, BaseException]:
    """Who does not go on, and why."""
    return {name: one for name, one in wards.run(wards.accept(ring)).items() if isinstance(one, BaseException)}


def test_a_level_that_is_merged_for_few_rows_is_seen_by_their_site(wards: Wards) -> None:
    """The same members, as many rows: but a second Table 1 without a rare level tells what the rows of that level gave."""
    frame = wards.frames["Bergen"]
    frame.loc[frame.index[:3], "grade"] = "rare"
    finish(wards, wards.planned("ill ~ age + C(grade)", "binomial"))
    frame.loc[frame.index[:3], "grade"] = "low"
    found = stopped(wards, wards.planned("ill ~ age + C(grade)", "binomial"))
    assert isinstance(found["Bergen"], DifferenceError)
    assert "This site's data have changed since" in str(found["Bergen"])
    assert len(added(wards, "Bergen")) == 1


def test_levels_in_another_order_are_the_same_rows(wards: Wards) -> None:
    """Nothing new is told of rows by another reference level, so that nothing is refused."""
    finish(wards, wards.planned("ill ~ age + C(grade)", "binomial"))
    turned = wards.planned("ill ~ age + C(grade)", "binomial")
    regression = turned.plan.task.regression
    assert regression is not None
    columns = tuple(replace(one, levels=one.levels[::-1]) for one in regression.columns)
    task = replace(turned.plan.task, regression=replace(regression, columns=columns))
    finish(wards, wards.signed(replace(turned.plan, task=task), "Oslo"))
    one, other = (entry.data for entry in added(wards))
    assert one == other


def test_a_filter_by_a_column_with_few_gaps_is_seen(wards: Wards) -> None:
    """Rows without a cell are dropped: one column more, and the difference of all sums is what a few rows gave."""
    for frame in wards.frames.values():
        frame["lab"] = 1.0 + np.arange(len(frame)) % 5
    wards.frames["Bergen"].loc[wards.frames["Bergen"].index[:3], "lab"] = np.nan
    finish(wards, wards.planned("ill ~ age + sex", "binomial"))
    found = stopped(wards, wards.planned("ill ~ age + sex + lab", "binomial"))
    assert isinstance(found["Bergen"], DifferenceError) and "by 3 rows as far as can be told" in str(found["Bergen"])


def test_others_see_by_the_number_of_all_rows_that_a_site_has_let_it_pass(wards: Wards) -> None:
    finish(wards, wards.planned("ill ~ age + sex", "binomial"))
    wards.frames["Bergen"] = wards.frames["Bergen"].iloc[3:]
    ring = wards.accept(wards.planned("ill ~ age + sex", "binomial"))
    ended = wards.run(ring, {"Bergen": replace(QUIET, despite_difference=True)})
    refusals = [one for one in ended.values() if isinstance(one, DifferenceError)]
    assert refusals and "All sites together have 279 rows, and had 282" in str(refusals[0])


def test_the_frames_of_the_sites_are_those_that_were_drawn(wards: Wards) -> None:
    assert isinstance(wards.frames["Oslo"], pd.DataFrame) and sum(map(len, wards.frames.values())) == 282
