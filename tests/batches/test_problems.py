"""A problem whose rows are read by batches is the one with the rows in memory."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

import roundelay as rl
from roundelay.algorithms.sealed.questions import Asked, Place, answers
from roundelay.batches import PassError, Passes, open_folder
from roundelay.batches.folder import Part
from roundelay.batches.problem import BatchedProblem, GramSums, LossSums, RowSums
from roundelay.kernels import Vector
from roundelay.problems.row_problem import RowProblem, problem_named
from tests.batches.folders import NAMES, Site, write_rows, written_site

WEIGHTS: list[object] = ["equal", "rows", [1.0, 2.5, 0.5]]


def near(found: object, expected: object, digits: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=digits, atol=digits)


def folders(sites: list[Site]) -> list[Path]:
    return [site.folder for site in sites]


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("scale", ["half_sum", "mean"])
def test_least_squares_is_that_of_all_rows(sites: list[Site], weights: object, scale: str) -> None:
    features, targets = [site.features for site in sites], [site.target for site in sites]
    options: dict[str, object] = {"ridge": 0.3, "weights": weights, "scale": scale}
    whole = rl.LeastSquares(features, targets, **options)  # type: ignore[arg-type]
    found = rl.by_batches(rl.LeastSquares, folders(sites), NAMES, "t", **options)
    x = np.array([0.9, 0.1, -2.0])
    for agent in range(3):
        near(found.value(agent, x) / whole.value(agent, x), 1.0)
        near(found.gradient(agent, x) / whole.gradient(agent, x), 1.0)
        near(found.hessian(agent, x) / whole.hessian(agent, x), 1.0)
        near(found.prox(agent, x, 7.0), whole.prox(agent, x, 7.0), 1e-9)
    near(found.optimum, whole.optimum, 1e-9)
    assert repr(found).startswith(f"SummedLeastSquares(3 agents, {sum(map(len, targets)):,} rows")


def test_digits_survive_columns_far_from_zero(tmp_path: Path) -> None:
    """About 0 the sums of squares would keep 16 − 2·6 = 4 digits of the slope, and the first part's mean keeps nearly all."""
    draws = np.random.default_rng(5)
    year = 1e6 + draws.standard_normal(800)
    target = 3.0 * (year - 1e6) + 1e-3 * draws.standard_normal(800)
    write_rows(tmp_path / "rows.parquet", {"year": year, "one": np.ones(800), "t": target}, 90)
    found = rl.by_batches("least_squares", [tmp_path], ["year", "one"], "t")
    best = np.polyfit(year - 1e6, target, 1)[0]
    assert abs(found.optimum[0] - best) < 1e-9


@pytest.mark.parametrize(
    ("kind", "options"), [(rl.Logistic, {}), (rl.Huber, {"delta": 0.7}), (rl.SmoothedHinge, {}), (rl.LeastSquares, {})]
)
def test_other_losses_are_those_of_all_rows(
    sites: list[Site], kind: type[RowProblem], options: dict[str, float]
) -> None:
    target = "label" if kind.needs_labels else "t"
    rows = [site.label if kind.needs_labels else site.target for site in sites]
    whole = kind([site.features for site in sites], rows, ridge=0.2, weights="rows", **options)  # type: ignore[call-arg]
    found = rl.by_batches(kind, folders(sites), NAMES, target, ridge=0.2, weights="rows", **options)
    x = np.array([1e-3, 0.02, -0.3])
    for agent in range(3):
        near(found.value(agent, x), whole.value(agent, x))
        near(found.gradient(agent, x), whole.gradient(agent, x), 1e-11)
        near(found.hessian(agent, x), whole.hessian(agent, x), 1e-11)
    place = Place(x, np.zeros(3))
    for asked in (
        Asked.GRADIENT,
        Asked.VALUE_AND_GRADIENT,
        Asked.GRADIENT_AND_HESSIAN,
        Asked.VALUE_GRADIENT_AND_HESSIAN,
    ):
        near(answers(found, asked, place), answers(whole, asked, place), 1e-11)
    turned = Place(x, np.array([0.1, -0.2, 0.3]))
    asked = Asked.HESSIAN_TIMES_DIRECTION
    near(answers(found, asked, turned), answers(whole, asked, turned), 1e-9)


@settings(max_examples=50)
@given(
    st.lists(st.floats(-800.0, 800.0), min_size=1, max_size=20),
    st.integers(0, 2**20),
)
@example([0.0, -0.0, 1e-300, -1e-300, 1e-20, -1e-20, 1e-17, -1e-17, 2e-16, -2e-16, 745.0, -745.0], 0b010101111111)
def test_the_logistic_loss_at_once_is_the_loss(predictions: list[float], signs: int) -> None:
    u = np.array(predictions)
    t = np.where((signs >> np.arange(len(u))) & 1, 1.0, -1.0)
    loss = rl.Logistic.loss
    for one, other in zip(loss.of_rows(None, u, t), (loss.value, loss.slope, loss.curvature), strict=True):
        np.testing.assert_allclose(one, other(None, u, t), rtol=1e-10, atol=1e-15)


def test_methods_run_on_them(sites: list[Site]) -> None:
    network = rl.ring(3)
    target = [site.label for site in sites]
    whole = rl.Logistic([site.features for site in sites], target, ridge=0.1)
    found = rl.by_batches(rl.Logistic, folders(sites), NAMES, "label", ridge=0.1)
    laps = rl.simulate(rl.SealedLaps(wide=True), found, network, 100)
    near(laps.token, whole.optimum, 1e-9)
    near(found.optimum, whole.optimum, 1e-9)
    near(found.prox(1, np.array([0.1, 0.0, 0.2]), 3.0), whole.prox(1, np.array([0.1, 0.0, 0.2]), 3.0), 1e-9)
    squares = rl.by_batches(rl.LeastSquares, folders(sites), NAMES, "t")
    memory = rl.LeastSquares([site.features for site in sites], [site.target for site in sites])
    token, expected = (rl.simulate(rl.IADMM(), one, network, 60, engine="python").token for one in (squares, memory))
    near(token, expected, 1e-9)


def test_an_answer_is_one_pass_and_the_next_point_another(sites: list[Site], monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[Vector] = []
    once = LossSums.__call__

    def noted(self: LossSums, part: Part) -> object:
        passes.append(self.x)
        return once(self, part)

    monkeypatch.setattr(LossSums, "__call__", noted)
    found = rl.by_batches(rl.Logistic, folders(sites)[:1], NAMES, "label", threads=1)
    assert isinstance(found, BatchedProblem)
    parts = len(open_folder(sites[0].folder).parts)
    assert len(passes) == parts > 3  # the gradient at 0, when it was made
    place = Place(np.array([0.0, 0.0, 0.1]), np.zeros(3))
    answers(found, Asked.VALUE_GRADIENT_AND_HESSIAN, place)
    found.value(0, place.point), found.gradient(0, place.point), found.hessian(0, place.point)
    assert len(passes) == 2 * parts
    found.value(0, np.array([0.0, 0.0, np.nextafter(0.1, 1.0)]))
    assert len(passes) == 3 * parts
    found.hessian(0, place.point)  # where it was asked a moment ago
    assert len(passes) == 3 * parts


def sums_by(sites: list[Site], passes: Passes) -> list[Vector]:
    found = []
    for site in sites:
        problem = rl.by_batches(rl.Logistic, [site.folder], NAMES, "label", ridge=0.1)
        assert isinstance(problem, BatchedProblem)
        one = problem.sites[0]
        again = RowSums(one.parts, one.tiles, one.loss, one.own, one.scale, one.ridge, passes)
        value, gradient, hessian = again.sums(np.array([0.1, -0.2, 0.3]), True)
        found.append(np.concatenate([[value], gradient, hessian.reshape(-1)]))
    return found


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_bits_do_not_depend_on_the_number_of_cores(sites: list[Site], threads: int) -> None:
    for one, other in zip(sums_by(sites, Passes(3)), sums_by(sites, Passes(threads)), strict=True):
        assert one.tobytes() == other.tobytes()


def threads_of_algebra(part: Part) -> tuple[int]:
    return (max(int(one["num_threads"]) for one in threadpool_info() if one["user_api"] == "blas"),)


def test_linear_algebra_has_one_thread_in_a_pass_and_all_of_them_behind_it(sites: list[Site]) -> None:
    parts = open_folder(sites[0].folder).parts[:1]
    with threadpool_limits(3):
        assert Passes(2).summed(parts, threads_of_algebra) == (1,)
        assert threads_of_algebra(parts[0]) == (3,)


def late_first(part: Part) -> tuple[float]:
    """The first part takes longest."""
    time.sleep(0.05 if part.first == 0 else 0.0)
    return (float(part.first) if part.first else 1e16,)


def test_parts_are_added_in_the_order_of_the_files(sites: list[Site]) -> None:
    parts = open_folder(sites[2].folder).parts
    forwards = 0.0
    for part in parts:
        forwards += late_first(part)[0]
    assert Passes(4).summed(parts, late_first) == (forwards,)
    assert [one.path for one in Passes(4).over(parts, lambda part: part)] == [part.path for part in parts]


def test_a_separable_sum_has_no_minimiser(tmp_path: Path) -> None:
    x = np.linspace(-1.0, 1.0, 200)
    write_rows(tmp_path / "rows.parquet", {"x": x, "label": np.sign(x + 1e-3)}, 50)
    with pytest.raises(ValueError, match="can be separated by a plane"):
        _ = rl.by_batches(rl.Logistic, [tmp_path], ["x"], "label").optimum


# ---------------------------------------------------------------- refused


def test_a_file_that_has_changed_is_refused(tmp_path: Path) -> None:
    site = written_site(tmp_path, 4)
    problem = rl.by_batches(rl.Logistic, [tmp_path], NAMES, "label")
    problem.gradient(0, np.full(3, 0.01))
    file = tmp_path / "part1.parquet"
    before = os.stat(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(PassError, match=r"part1\.parquet has changed since its rows were first read"):
        problem.gradient(0, np.full(3, 0.02))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    problem.gradient(0, np.full(3, 0.02))
    file.unlink()
    with pytest.raises(PassError, match=r"part1\.parquet can't be opened"):
        problem.gradient(0, np.full(3, 0.03))
    assert len(site.target) == 1013


def test_what_is_no_number_is_refused_with_its_place(tmp_path: Path) -> None:
    features = {name: np.linspace(0.0, 1.0, 300) for name in NAMES}
    target, label = np.arange(300.0), np.where(np.arange(300) % 2, 1.0, -1.0)
    target[211], label[123] = np.nan, 0.0
    features["c"][250] = 1e200
    write_rows(tmp_path / "rows.parquet", features | {"t": target, "label": label}, 60)
    with pytest.raises(PassError, match=r'Row 212 of .* has an empty cell, .* in the column "t"'):
        rl.by_batches(rl.LeastSquares, [tmp_path], NAMES[:2], "t")
    with pytest.raises(PassError, match=r'Row 124 of .* has something that is no label in the column "label"'):
        rl.by_batches(rl.Logistic, [tmp_path], NAMES[:2], "label")
    with pytest.raises(PassError, match=r'Row 251 of .* beyond 1e\+100, in the column "c"'):
        rl.by_batches(rl.LeastSquares, [tmp_path], ["c"], "a")


def test_what_can_not_be_had_by_batches_is_said(sites: list[Site], tmp_path: Path) -> None:
    where = folders(sites)
    squares = rl.by_batches(rl.LeastSquares, where, NAMES, "t")
    with pytest.raises(ValueError, match="gradients of single data rows"):
        rl.simulate(rl.SIADMM(), squares, rl.ring(3), 10)
    with pytest.raises(ValueError, match="no records that could be clipped"):
        rl.simulate(rl.SealedLaps(clip_row=1.0), squares, rl.ring(3), 10, budget=rl.PrivacyBudget(1.0, 1e-6))
    with pytest.raises(ValueError, match="loss with corners"):
        rl.by_batches(problem_named("hinge"), where, NAMES, "label")
    with pytest.raises(ValueError, match='has a column "z": those that all have are a, b, c, t, label'):
        rl.by_batches(rl.LeastSquares, where, ["a", "z"], "t")
    with pytest.raises(ValueError, match="There is no Parquet file"):
        rl.by_batches(rl.LeastSquares, [tmp_path], NAMES, "t")
    with pytest.raises(ValueError, match="give a list"):
        rl.by_batches(rl.LeastSquares, str(where[0]), NAMES, "t")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(ValueError, match=r"rows\.parquet can't be read as Parquet"):
        open_folder(tmp_path)


def test_a_file_that_breaks_off_is_refused(tmp_path: Path) -> None:
    """Bytes of a page are overwritten, and the file has the size and the time that it had."""
    written_site(tmp_path, 6, files=1)
    problem = rl.by_batches(rl.Logistic, [tmp_path], NAMES, "label")
    file = tmp_path / "part0.parquet"
    state, content = os.stat(file), bytearray(file.read_bytes())
    content[4:400] = b"\xff" * 396
    file.write_bytes(content)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    with pytest.raises(PassError, match=r"part0\.parquet can't be read"):
        problem.gradient(0, np.full(3, 0.02))


def test_hidden_files_are_left_alone_and_folders_in_it_are_read(tmp_path: Path) -> None:
    written_site(tmp_path / "2024", 1, files=1)
    written_site(tmp_path / "2023", 2, files=1)
    written_site(tmp_path / "_old", 3, files=1)
    written_site(tmp_path / ".trash", 3, files=1)
    (tmp_path / "readme.txt").write_text("rows")
    found = open_folder(tmp_path)
    assert [Path(file).parent.name for file in found.files] == ["2023", "2024"]
    assert found.rows == 1000 and repr(found) == f"Folder({str(tmp_path)!r}, 2 files, 1,000 rows)"
    assert all(part.rows >= 100 or part is found.parts[-1] or part.first + part.rows == 500 for part in found.parts)


def test_gram_counts_every_row(sites: list[Site]) -> None:
    problem = rl.by_batches(rl.LeastSquares, folders(sites), NAMES, "t")
    assert vars(problem)["counted"] == tuple(len(site.target) for site in sites)
    assert GramSums.__call__.__doc__
