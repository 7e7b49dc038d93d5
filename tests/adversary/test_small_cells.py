"""What may be published must not have the cells of few rows that its tables hide: neither in the model's file, nor between the lines of a picture."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner

from roundelay.agents.agreement.ringfile import SignedPlan, read_ring
from roundelay.agents.data.loaded import LoadedModel
from roundelay.agents.data.models import load_model, load_sums, sums_beside, text_of_model
from roundelay.agents.site.verification import verify_as_far_as_known, verify_model
from roundelay.cli.app import app
from roundelay.kernels import Vector
from roundelay.regression.few_rows import hidden_bins, joined
from roundelay.regression.pooled import glm
from roundelay.regression.study import Study
from roundelay.regression.sums import FIRST_LOOK
from tests.agents.hospitals import QUIET
from tests.agents.regression_rings import Drawn
from tests.agents.wards import Wards


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """A model that sites have written, of a yes or no by which Table 1 is grouped, and the ring file."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("wards")
        wards = Wards(folder, patch)
        for frame in wards.frames.values():
            frame["sick"] = np.where(frame["ill"] == 1, "yes", "no")
        ring = wards.accept(wards.planned("sick ~ age + dose", "binomial", by="sick"))
        ended = wards.run(ring, {"Oslo": replace(QUIET, model=folder / "model.json")})
        assert not [one for one in ended.values() if isinstance(one, BaseException)]
        (folder / "ring.toml").write_bytes(ring.text)
        yield folder / "model.json", folder / "ring.toml"


def numbers_in(content: Any) -> list[float]:
    """All numbers of a file, in their order."""
    if isinstance(content, dict | list):
        inner = content.values() if isinstance(content, dict) else content
        return [number for one in inner for number in numbers_in(one)]
    return [float(content)] if isinstance(content, int | float) else []


def stands_in(wanted: Vector, content: Any) -> bool:
    """Whether these numbers stand one behind another in a file."""
    found = np.array(numbers_in(content))
    if len(found) < len(wanted):
        return False
    return bool((np.lib.stride_tricks.sliding_window_view(found, len(wanted)) == wanted).all(axis=1).any())


def told_to_members(model: Path) -> list[Vector]:
    """The bins of age by outcome, and the predicted chances by outcome, as the members were told them."""
    sums, regression = load_sums(sums_beside(model)), load_model(model).regression
    assert regression is not None
    known = Study(regression).known(tuple(np.array(one)[1:] for one in sums.told), 4)
    return [known.told("bins")["age"], FIRST_LOOK.parts(regression, np.array(sums.looks[0]))["chances"]]


def test_the_file_that_one_publishes_has_no_small_cells(fitted: tuple[Path, Path]) -> None:
    """Every sum as it was told stood in it, for its verification: single patients with their age and outcome."""
    model, _ = fitted
    for told in told_to_members(model):
        assert ((told > 0) & (told < 5)).sum() > 3  # there is something to hide
        assert stands_in(told, json.loads(sums_beside(model).read_text()))
        assert not stands_in(told, json.loads(model.read_text()))
    assert stat.S_IMODE(sums_beside(model).stat().st_mode) == 0o600


# ---------------------------------------------------------------- pictures


def test_no_step_of_the_curve_is_a_patient_and_its_outcome(fitted: tuple[Path, Path]) -> None:
    """Of counts that are cumulated, each is the difference of two: a bin with one row told its outcome to whoever knows what is predicted for it."""
    result, (_, chances) = load_model(fitted[0]).result, told_to_members(fitted[0])
    assert result is not None and result.roc is not None and result.events is not None
    fine = chances.reshape(2, -1)
    assert (fine.sum(axis=0) == 1).sum() > 3  # the whole curve was these
    false = np.diff(result.roc.false_positive) * (result.rows - result.events)
    true = np.diff(result.roc.true_positive) * result.events
    assert len(true) > 2 and min(false.min(), true.min()) > 5 - 1e-9
    # Nor is it the difference of the curve and the calibration: every group ends where a step does.
    ends = np.cumsum(
        [[one.rows * (1.0 - one.observed), one.rows * one.observed] for one in reversed(result.calibration)], axis=0
    )  # type: ignore[operator]
    steps = np.cumsum(np.column_stack([false, true]), axis=0)
    assert len(ends) > 1 and all(np.isclose(steps, end).all(axis=1).any() for end in ends)
    for group in result.calibration:
        assert group.rows is not None and group.observed is not None
        assert min(group.observed, 1.0 - group.observed) * group.rows > 5 - 1e-9


def test_ratios_of_the_survival_curve_are_no_small_counts() -> None:
    """1 − S(t)/S(before) is events by rows at risk, in lowest terms: hidden counts followed from the curve."""
    fit = glm("Surv(time, died) ~ age", Drawn().frames(), "cox")
    risk, ended = (fit.known.told("first look")[name] for name in ("at risk", "ended"))
    few = [(int(d), int(n)) for d, n in zip(ended, risk, strict=True) if 0 < d < 5]
    assert len(few) > 1
    left = np.cumprod(1.0 - np.divide(ended, risk, out=np.zeros_like(ended), where=risk > 0))
    by_ratio = [
        Fraction(1.0 - after / before).limit_denominator(500) for before, after in pairwise([1.0, *left]) if before
    ]
    assert all(Fraction(d, n) in by_ratio for d, n in few)  # as the curve was
    points = fit.result.survival
    assert len(points) > 2 and sum(point.events or 0.0 for point in points) == ended.sum()
    before = 1.0
    for point in points:
        assert point.at_risk is not None and point.events is not None
        assert point.at_risk >= 5 and not 0 < point.events < 5
        # What follows from the curve is what stands beside it.
        assert 1.0 - point.survival / before == pytest.approx(point.events / point.at_risk, rel=1e-9)
        before = point.survival


counts = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=30)


@given(counts, st.integers(1, 6))
def test_joined_bins_have_enough_of_all_and_nothing_is_left_over(rows: list[tuple[int, int]], least: int) -> None:
    bins = np.array(rows, float).T
    parts = joined(bins, least)
    if not parts:
        assert bins.sum(axis=1).min() < least
        return
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])] and parts[-1].stop == len(rows)
    assert min(bins[:, part].sum(axis=1).min() for part in parts) >= least


@given(st.lists(st.integers(0, 12), min_size=1, max_size=12), st.integers(1, 6))
def test_a_hidden_bin_is_not_all_rows_less_the_others(rows: list[int], least: int) -> None:
    bins = np.array(rows, float)
    hidden = hidden_bins(bins, least)
    assert hidden[(bins > 0) & (bins < least)].all()
    if hidden.any() and not hidden.all():
        assert hidden.sum() > 1 and bins[hidden].sum() >= 2 * least


def test_the_only_small_bar_of_residuals_takes_another_with_it() -> None:
    assert hidden_bins(np.array([3.0, 40.0, 9.0, 0.0]), 5).tolist() == [True, False, True, False]
    assert hidden_bins(np.array([1.0, 40.0, 9.0, 1.0]), 5).tolist() == [
        True,
        False,
        True,
        True,
    ]  # two of which 2 are known
    assert not hidden_bins(np.array([40.0, 9.0, 0.0]), 5).any()


# ---------------------------------------------------------------- the file is verified all the same


def said(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["model", *map(str, words)])
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture
def published(fitted: tuple[Path, Path], tmp_path: Path) -> Path:
    """The model alone, as a reader has it."""
    path = tmp_path / "published.json"
    path.write_bytes(fitted[0].read_bytes())
    return path


def ring_of(fitted: tuple[Path, Path]) -> SignedPlan:
    return read_ring(fitted[1].read_bytes(), "ring.toml")


def test_with_the_sums_all_is_checked_and_without_them_it_is_said_what_was_not(
    fitted: tuple[Path, Path], published: Path, tmp_path: Path
) -> None:
    model, ring = fitted
    code, words = said("verify", model, "--ring", ring)
    assert code == 0 and "signed this model" in words and "follow from the sums in" in words
    code, words = said("verify", published, "--ring", ring)
    assert code == 1 and "NOT CHECKED" in words and "published.sums.json" in words
    assert "signed this model" not in words and "signed the end of the run" in words
    code, words = said("verify", published, "--ring", ring, "--json")
    assert code == 1 and json.loads(words)["checked"] == ["signatures", "point"]
    code, words = said("verify", published, "--ring", ring, "--sums", sums_beside(model), "--json")
    assert code == 0 and json.loads(words)["checked"] == ["signatures", "point", "coefficients", "tables"]
    with pytest.raises(ValueError, match=r"were not checked.*published\.sums\.json"):
        verify_model(published, ring_of(fitted))
    for options, expected in ((("--sums", sums_beside(model)), "has signed, verified"), ((), "has signed the end")):
        out = tmp_path / "report.html"
        assert said("report", published, "--ring", ring, "--out", out, *options)[0] == 0
        assert expected in out.read_text(encoding="utf-8")
    assert "has signed, verified" not in out.read_text(encoding="utf-8")


def test_a_sums_file_that_is_named_must_be_there_and_be_one(fitted: tuple[Path, Path], published: Path) -> None:
    _, ring = fitted
    code, words = said("verify", published, "--ring", ring, "--sums", published.with_name("none.json"))
    assert code == 2 and "can't be opened" in words
    code, words = said("verify", published, "--ring", ring, "--sums", published)
    assert code == 2 and "has no sums of a model" in words


@pytest.mark.parametrize(
    "forge",
    [
        lambda about, content: about["end"]["point"].reverse(),
        lambda about, content: about["end"].update(sums="00" * 32),
        lambda about, content: about["end"].update(totals="00" * 32),
        lambda about, content: about["end"].update(hop=about["end"]["hop"] + 1),
        lambda about, content: about["end"]["signatures"].reverse(),
        lambda about, content: about.update(reason="All were content."),
        lambda about, content: content["result"].update(formula="sick ~ age"),
        lambda about, content: content["result"]["sites"].reverse(),
        lambda about, content: content["regression"].update(least=1),
        lambda about, content: content["model"]["coefficients"][0].__setitem__(1, 5.0),
        lambda about, content: about["end"].update(told=[[1.0]]),
    ],
    ids=["point", "sums", "totals", "hop", "signatures", "reason", "formula", "sites", "plan", "one of two", "both"],
)
def test_without_the_sums_signatures_point_and_plan_are_checked(
    fitted: tuple[Path, Path], published: Path, forge: Any
) -> None:
    assert not verify_as_far_as_known(published, ring_of(fitted)).whole
    content = json.loads(published.read_text())
    forge(content["about"], content)
    published.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"not signed|not those that the members|was changed|does not follow"):
        verify_as_far_as_known(published, ring_of(fitted))


def test_sums_of_no_run_make_no_tables(fitted: tuple[Path, Path], published: Path) -> None:
    """Others than were signed, before the fit or where it stands."""
    for place in ("told", "looks"):
        content = json.loads(sums_beside(fitted[0]).read_text())
        content[place][0][1] += 1.0
        sums_beside(published).write_text(json.dumps(content))
        with pytest.raises(ValueError, match=r"not those of which it has the digest|not what was signed"):
            verify_as_far_as_known(published, ring_of(fitted))


def test_a_file_of_the_release_before_has_them_and_is_verified(fitted: tuple[Path, Path], published: Path) -> None:
    """Its readers should know: it is no file to publish."""
    stored, sums = load_model(fitted[0]), load_sums(sums_beside(fitted[0]))
    assert stored.about.end is not None
    end = replace(stored.about.end, told=sums.told, looks=sums.looks, sums="")
    for written in (5, 6):
        published.write_bytes(text_of_model(replace(stored, format=written, about=replace(stored.about, end=end))))
        assert '"sums"' not in published.read_text()
        assert verify_as_far_as_known(published, ring_of(fitted)).whole
        assert said("verify", published, "--ring", fitted[1])[0] == 0
        assert all(stands_in(told, json.loads(published.read_text())) for told in told_to_members(fitted[0]))
    assert LoadedModel(load_model(published)).summary()
