"""Runs of which no two differ by few rows, and which together tell of one: by inclusion and exclusion, with the columns that patients lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import MappingProxyType

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st

from roundelay.agents.agreement import differencing
from roundelay.agents.agreement.differencing import OwnRows, Thing, Total, _few_together, findings, follows
from roundelay.agents.agreement.ledger import Added, Data, Finding
from roundelay.agents.data.marks import Marked, copies, keep_marks, mark_rows, rows_in

ME, KEY, ROWS = "me", b"k" * 32, 90
COLUMNS = ("age", "crp", "length")


def files() -> dict[str, np.ndarray]:
    """Whole columns of a site, and those of which some rows have none: twelve lack b, others c, one lacks both."""
    rng = np.random.default_rng(4)
    whole = {name: rng.normal(size=ROWS) for name in (*COLUMNS, "b", "c")}
    whole["b"][:12] = np.nan
    whole["c"][11:24] = np.nan
    return whole


def marked(names: Sequence[str], files: Mapping[str, np.ndarray]) -> Marked:
    cells = np.column_stack([files[name] for name in names])
    kept = cells[~np.isnan(cells).any(axis=1)]
    return mark_rows(names, kept, str((names, len(kept))), KEY)


def added(number: int, names: Sequence[str], data: Data) -> Added:
    members = tuple((name, name) for name in (ME, "a", "b", "c"))
    features = tuple(name for name in names if name != "length")
    return Added(
        datetime(2026, 3, number + 1, tzinfo=UTC), f"{number:032x}", 0, "ab" * 32, members, "regression gaussian", features, "length", "a fit",
        "sealed laps", 200, data,
    )  # fmt: skip


def refused(
    folder: Path, runs: Sequence[Sequence[str]], least: int = 10, read: Mapping[int, str] = MappingProxyType({})
) -> tuple[Finding, ...]:
    """What a site finds before the last of these runs, of which some read a column otherwise."""
    kept = []
    for number, names in enumerate(runs):
        of_site = files()
        if number in read:
            of_site[read[number]] = of_site[read[number]] * 365.25
        kept.append(marked(names, of_site))
    for one in kept:
        keep_marks(folder, one)
    entries = [added(number, names, one.data) for number, (names, one) in enumerate(zip(runs, kept, strict=True))]

    def stood(times: Sequence[Data], columns: frozenset[str]) -> list[list[int]] | None:
        found = copies(folder, kept[-1], times, columns)
        return None if found is None else found.tolist()

    own = OwnRows(lambda parts, columns: rows_in(folder, kept[-1], parts, columns), stood, least)
    return tuple(one for one in findings(ME, entries[:-1], entries[-1], own) if one.refuses)


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("columns", [COLUMNS, (*COLUMNS, "b"), COLUMNS[1:]])
def test_values_that_changed_places_are_other_data(
    columns: tuple[str, ...], apart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two patients' outcomes were mixed up, and put right between two runs: each column has the same values, but the difference is theirs alone."""
    if not apart:  # the control
        monkeypatch.setattr(differencing, "_told_apart_by_rows", lambda thing, new, own: thing)
    before = {name: column[24:] for name, column in files().items()}
    after = {name: column.copy() for name, column in before.items()}
    after["length"][[3, 5]] = before["length"][[5, 3]]
    kept = [marked(COLUMNS, before), marked(columns, after)]
    kept[1] = replace(kept[1], data=msgspec.structs.replace(kept[1].data, digest="after"))
    for one in kept:
        keep_marks(tmp_path, one)
    entries = [
        added(number, names, one.data) for number, (names, one) in enumerate(zip((COLUMNS, columns), kept, strict=True))
    ]

    def stood(times: Sequence[Data], shared: frozenset[str]) -> list[list[int]] | None:
        found = copies(tmp_path, kept[1], times, shared)
        return None if found is None else found.tolist()

    own = OwnRows(lambda parts, shared: rows_in(tmp_path, kept[1], parts, shared), stood, 10)
    found = [one for one in findings(ME, entries[:1], entries[1], own) if one.refuses]
    # The very same columns are held against each other row by row in any case.
    assert bool(found) == (apart or columns == COLUMNS) and all("4 rows" in one.sentence for one in found)


FOUR = [COLUMNS, (*COLUMNS, "b"), (*COLUMNS, "c"), (*COLUMNS, "b", "c")]


def test_four_runs_tell_the_row_of_one_patient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: where differences are looked at one by one nothing is found, and the sum of two sums less two others is a patient's row."""
    of_site = files()
    totals = []
    for names in FOUR:
        kept = ~np.isnan(np.column_stack([of_site[name] for name in names])).any(axis=1)
        totals.append(np.array([kept.sum(), *(of_site[name][kept].sum() for name in COLUMNS)]))
    told = totals[0] - totals[1] - totals[2] + totals[3]
    np.testing.assert_allclose(told, [1.0, *(of_site[name][11] for name in COLUMNS)])
    monkeypatch.setattr(differencing, "_few_together", lambda *asked: [])
    assert not refused(tmp_path, FOUR)


def test_the_fourth_is_refused_and_no_earlier_one(tmp_path: Path) -> None:
    for runs in (FOUR[:2], FOUR[:3]):
        assert not refused(tmp_path, runs)
    found = refused(tmp_path, FOUR)
    assert found and "by 1 row as far as can be told" in found[0].sentence


def test_a_site_whose_floor_is_lower_lets_it_pass(tmp_path: Path) -> None:
    assert not refused(tmp_path, FOUR, least=1)


def test_a_third_run_over_other_rows_of_the_same_columns_is_no_accident(tmp_path: Path) -> None:
    """It ended in a KeyError at every site."""
    runs = [COLUMNS, (*COLUMNS, "b"), (*COLUMNS, "c")]
    assert not refused(tmp_path, runs)


def test_rows_are_known_again_by_the_columns_that_there_were_each_time(tmp_path: Path) -> None:
    of_site = files()
    first, second = marked(FOUR[1], of_site), marked(FOUR[3], of_site)
    keep_marks(tmp_path, first)
    stood = copies(tmp_path, second, [first.data, second.data], COLUMNS)
    assert stood is not None
    both = ~np.isnan(of_site["b"]) & ~np.isnan(of_site["c"])
    assert sorted(map(tuple, stood.tolist())).count((1, 1)) == both.sum()
    assert stood.sum(axis=0).tolist() == [ROWS - 12, both.sum()]
    (tmp_path / "marks" / first.data.cells).write_bytes(b"something else")
    assert copies(tmp_path, second, [first.data, second.data], COLUMNS) is None


def test_what_is_read_otherwise_in_one_run_does_not_hide_that_a_row_is_missing(tmp_path: Path) -> None:
    """A date in one plan and a number in the next, or days since a visit: that column is another in all rows, and the others are not."""
    of_site = files()
    of_site["b"][1:12] = 0.0  # one patient alone has none
    runs = [(*COLUMNS, "born"), (*COLUMNS, "born", "b")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            globals(),
            "files",
            lambda: {name: column.copy() for name, column in (of_site | {"born": of_site["age"]}).items()},
        )
        for read in ({}, {1: "born"}):
            found = refused(tmp_path, runs, read=read)
            assert found and "by 1 row" in found[0].sentence, read


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=7))
def test_a_row_that_follows_is_found(stood: list[list[bool]]) -> None:
    """Of few rows with any past: one that some combination of the four sums tells by itself, by trying many, is found."""
    sums = [Total(frozenset("ab"), version) for version in range(4)]
    after = follows(ME, sums)
    own = OwnRows(lambda parts, columns: 0, lambda times, columns: [list(map(int, row)) for row in stood], 2)
    thing = Thing(frozenset(COLUMNS), True, (), lambda data: data.digest)
    data = {version: Data(str(version)) for version in range(4)}
    found = list(_few_together(thing, data, follows(ME, []), after, own))
    rows = np.array(stood, int)
    alone = any(
        np.abs(rows @ times).astype(bool).sum() == 1
        for times in map(np.array, product(range(-2, 3), repeat=4))
        if times.sum() == 0 and times.any()
    )
    if alone:
        assert 1 in found
    assert all(count < 2 for count in found)
    if 1 in found:  # and it is no invention: by whole numbers, perhaps larger ones, it follows
        basis = np.array([[1, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]]) @ rows.T
        ranks = [np.linalg.matrix_rank(np.delete(basis, row, 1)) for row in range(len(rows))]
        assert min(ranks) < np.linalg.matrix_rank(basis)


def test_fractions_are_exact() -> None:
    after = follows(ME, [Total(frozenset("ab"), version) for version in range(3)])
    assert after.holds({0: Fraction(1, 3), 1: Fraction(-1, 3)}) and not after.holds({0: Fraction(1)})
    assert not after.holds({"never seen": Fraction(1)}) and after.holds({"never seen": Fraction(0)})


def test_what_has_changed_in_all_rows_is_no_difference_of_a_few(tmp_path: Path) -> None:
    """An age as of today, of the same patients."""
    assert not refused(tmp_path, [COLUMNS, COLUMNS], read={1: "age"})


@given(st.lists(st.lists(st.integers(-3, 3), min_size=5, max_size=5), min_size=1, max_size=5))
def test_the_echelon_form_modulo_a_prime_is_that_of_fractions(rows: list[list[int]]) -> None:
    exact, pivots = differencing.echelon(rows)
    order = np.argsort(pivots)
    found, places = differencing._echelon_modulo(np.array(rows) % differencing.PRIME)
    assert places == sorted(pivots)
    for one, other in zip(found, order, strict=True):
        assert one.tolist() == [differencing._modulo(number) for number in exact[other]]
