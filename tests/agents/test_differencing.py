"""What follows from sums over overlapping sets of members: linear algebra against brute force, and the sentences."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from itertools import combinations
from typing import NoReturn

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundelay.agents.agreement.differencing import OwnRows, Total, findings, follows, unnoticed
from roundelay.agents.agreement.ledger import Added, Data, Finding

ME = "me"
OTHERS = tuple("abcde")
quick = settings(deadline=None, max_examples=150, derandomize=True)


def totals(sites: Sequence[str] = OTHERS, most: int = 5) -> st.SearchStrategy[list[Total]]:
    """Sums over any of the sites and this one, which has had one of two tables."""
    one = st.builds(Total, st.frozensets(st.sampled_from(sites)), st.sampled_from(["old", "new"]))
    return st.lists(one, min_size=1, max_size=most)


def columns_of(sums: Sequence[Total]) -> list[tuple[str, str]]:
    return [*sorted({(ME, total.own) for total in sums}), *((site, "") for site in OTHERS)]


def vectors(sums: Sequence[Total]) -> np.ndarray:
    """A row a sum, a column for each version of this site's data and for each other site."""
    columns = columns_of(sums)
    return np.array([[float(c[0] in t.others or c == (ME, t.own)) for c in columns] for t in sums])


def is_in_span(sums: Sequence[Total], wanted: np.ndarray) -> bool:
    rows = vectors(sums)
    return int(np.linalg.matrix_rank(np.vstack([rows, wanted]))) == int(np.linalg.matrix_rank(rows))


def unit(sums: Sequence[Total], site: str, version: str = "") -> np.ndarray:
    return np.array([float(column == (site, version)) for column in columns_of(sums)])


@quick
@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.lists(st.integers(-3, 3), min_size=n, max_size=n), max_size=5)))
def test_the_unnoticed_changes_are_the_whole_complement(rows: list[list[int]]) -> None:
    width = len(rows[0]) if rows else 3
    basis = unnoticed(rows, width)
    assert all(sum(a * b for a, b in zip(row, vector, strict=True)) == 0 for row in rows for vector in basis)
    rank = int(np.linalg.matrix_rank(np.array(rows, float))) if rows else 0
    assert len(basis) == width - rank
    if basis:
        assert int(np.linalg.matrix_rank(np.array(basis, float))) == len(basis)


@quick
@given(totals())
def test_a_site_is_known_exactly_where_it_is_in_the_span(sums: list[Total]) -> None:
    known = follows(ME, sums).known
    for site in OTHERS:
        assert (site in known) == is_in_span(sums, unit(sums, site)), site


@quick
@given(totals())
def test_what_is_known_of_ones_own_data_is_what_the_span_holds(sums: list[Total]) -> None:
    """Every combination that is said to be known is in the span, and there are as many as the span holds."""
    knowledge = follows(ME, sums)
    for combination in knowledge.own:
        wanted = sum(float(times) * unit(sums, ME, str(version)) for version, times in combination.items())
        assert is_in_span(sums, wanted) and knowledge.holds(combination)
    rows, own = vectors(sums), len({total.own for total in sums})
    held = int(np.linalg.matrix_rank(rows)) - int(np.linalg.matrix_rank(rows[:, own:]))
    assert len(knowledge.own) == held
    assert (ME in knowledge.known) == any(sum(one.values()) for one in knowledge.own)
    if own == 2:
        difference = {"old": Fraction(1), "new": Fraction(-1)}
        wanted = unit(sums, ME, "old") - unit(sums, ME, "new")
        assert knowledge.holds(difference) == is_in_span(sums, wanted)


@quick
@given(totals())
def test_sites_are_tied_exactly_where_one_gives_the_other(sums: list[Total]) -> None:
    knowledge = follows(ME, sums)
    together = {frozenset(pair) for group in knowledge.tied for pair in combinations(group - {ME}, 2)}
    for one, other in combinations(sorted(set(OTHERS) - knowledge.known), 2):
        told = np.vstack([vectors(sums), unit(sums, one)])
        with_it = np.vstack([told, unit(sums, other)])
        gives = int(np.linalg.matrix_rank(with_it)) == int(np.linalg.matrix_rank(told))
        assert (frozenset((one, other)) in together) == gives, (one, other)


def test_sums_that_differ_by_two_sites_each_can_still_tell_one() -> None:
    """No two of the three differ by fewer than two sites: comparing pairs is not enough."""
    sums = [frozenset("ab"), frozenset("cd"), frozenset("abcd")]
    assert all(len(one ^ other) >= 2 for one, other in combinations(sums, 2))
    seen = [Total(one, "") for one in sums]
    assert all(not follows(ME, list(pair)).known for pair in combinations(seen, 2))
    assert follows(ME, seen).known == {ME}


# ---------------------------------------------------------------- in words


def added(
    names: str, day: int = 3, features: Sequence[str] = ("age", "length"), target: str = "outcome",
    kind: str = "least_squares", version: str = "v1", rows: int = 100, run: str = "",
) -> Added:  # fmt: skip
    """A sum over sites of one letter, besides this one; for "custom" without columns."""
    columns = () if kind == "custom" else tuple(features)
    values = {column: f"{version} {column}" for column in (*columns, target)} if columns else {}
    data = Data(version, rows, values, version if columns else "")
    return Added(
        datetime(2026, 3, day, tzinfo=UTC), run or f"{day:032x}", 0, "ab" * 32, tuple((name, name) for name in (ME, *names)), kind, columns,
        target if columns else "", "a fit", "sealed laps", 200, data,
    )  # fmt: skip


def unchanged(*asked: object) -> NoReturn:
    raise AssertionError("no rows have changed")


SAME = OwnRows(unchanged, unchanged, 10)


def each_apart(times: Sequence[Data], columns: frozenset[str]) -> list[list[int]]:
    """A hundred rows each time, none of which was there at another."""
    return [[int(time == one) for time in range(len(times))] for one in range(len(times)) for _ in range(100)]


def refused(found: Sequence[Finding]) -> list[Finding]:
    return [one for one in found if one.refuses]


@pytest.mark.parametrize("own", [None, SAME], ids=["at accept", "at the start"])
def test_one_site_fewer_is_told_in_words(own: OwnRows | None) -> None:
    (found,) = refused(findings(ME, [added("abc")], added("ab", 4), own))
    assert found.sentence == (
        "c takes part no more. Together with the sum of 3 March 2026, in which it did, the new sum tells every member what c's data "
        "alone gave: its X'X and X't, as if it had been handed over."
    )
    assert (found.what, found.subject, found.whole) == ("site", "c", True)
    assert found.columns == ("age", "length", "outcome")


def test_one_site_more_two_and_the_same() -> None:
    (found,) = refused(findings(ME, [added("ab")], added("abc", 4), SAME))
    assert found.sentence.startswith("c is new. Together with the sum of 3 March 2026, in which it did not take part")
    assert not refused(findings(ME, [added("abcd")], added("ab", 4), SAME))
    assert not refused(findings(ME, [added("abc")], added("abc", 4), SAME))
    assert not refused(findings(ME, [], added("abc", 4), SAME))


def test_what_was_told_before_is_not_refused_again() -> None:
    earlier = [added("abc", 3), added("ab", 4)]
    assert not refused(findings(ME, earlier, added("ab", 5), SAME))
    assert [one.subject for one in refused(findings(ME, earlier, added("a", 5), SAME))] == ["b"]


def test_this_site_itself_may_be_what_is_told() -> None:
    (found,) = refused(findings(ME, [added("ab"), added("cd", 4)], added("abcd", 5), SAME))
    assert found.subject == ME and "what me's, this site's own, data alone gave" in found.sentence
    assert "the sums of 3 March 2026 and 4 March 2026" in found.sentence


def test_other_fits_of_the_same_columns_count() -> None:
    """A logistic fit tells the same products at its first question as least squares: X'X where all coefficients are 0."""
    (found,) = refused(findings(ME, [added("abc", kind="logistic")], added("ab", 4), SAME))
    assert not found.whole and "the sums, squares and products of age, length and outcome" in found.sentence
    (found,) = refused(findings(ME, [added("abc", features=("age", "weight"), target="x")], added("ab", 4), SAME))
    assert found.columns == ("age",)
    (word,) = findings(ME, [added("abc", features=("weight",), target="x")], added("ab", 4), SAME)
    assert not word.refuses and word.sentence.endswith("the new sum tells every member how many rows c has.")
    assert not findings(ME, [added("abc", kind="custom")], added("ab", 4), SAME)


def test_products_of_columns_are_told_though_each_column_was() -> None:
    """Of c the squares of age and of length are known already, but not their product."""
    one, other = ("age",), ("length",)
    told = [added("abc", 1, one), added("ab", 2, one), added("abc", 3, other), added("ab", 4, other)]
    assert not refused(findings(ME, told, added("abc", 5), SAME))
    (found,) = refused(findings(ME, [*told, added("abc", 5)], added("ab", 6), SAME))
    assert found.subject == "c" and found.columns >= ("age", "length")


def test_objectives_of_the_sites_own_are_compared_with_each_other() -> None:
    (found,) = refused(findings(ME, [added("abc", kind="custom")], added("ab", 4, kind="custom"), SAME))
    assert "c's data alone gave: its own objective at the points that were asked" in found.sentence


def test_other_data_of_ones_own_hide_another_site() -> None:
    """With other data of this site the difference is no single site's; at accept they may still be the old ones."""
    new = added("ab", 4, version="v2", rows=200)
    assert refused(findings(ME, [added("abc")], new))
    assert not refused(findings(ME, [added("abc")], new, OwnRows(lambda parts, columns: 100, each_apart, 10)))


def test_an_overrule_at_accept_holds_for_what_is_found_with_the_data() -> None:
    """What can be said without the data is never less than what is said with them, but for this site's own rows."""
    versions = st.sampled_from(["v1", "v2"])
    sums = st.builds(
        lambda names, day, version, features, kind: added(
            "".join(sorted(names)), day, features, kind=kind, version=version
        ),
        st.frozensets(st.sampled_from("abcd"), min_size=1), st.integers(1, 28), versions,
        st.sampled_from([("age",), ("age", "length"), ("length", "weight")]), st.sampled_from(["least_squares", "logistic"]),
    )  # fmt: skip

    @settings(deadline=None, max_examples=100, derandomize=True)
    @given(st.lists(sums, max_size=4), sums)
    def check(earlier: list[Added], new: Added) -> None:
        before = refused(findings(ME, earlier, new))
        for one in refused(findings(ME, earlier, new, OwnRows(lambda parts, columns: 100, each_apart, 10))):
            assert any(other.covers(one) for other in before), (one, before)

    check()


@pytest.mark.parametrize(("rows", "stops"), [(0, True), (9, True), (10, False)])
def test_few_changed_rows_of_ones_own_are_refused(rows: int, stops: bool) -> None:
    asked: list[list[Fraction]] = []

    def count(parts: Sequence[tuple[Data, Fraction]], columns: frozenset[str]) -> int:
        asked.append([times for _, times in parts])
        assert {data.digest for data, _ in parts} == {"v1", "v2"}
        return rows

    found = findings(ME, [added("abc")], added("abc", 4, version="v2"), OwnRows(count, each_apart, 10))
    assert asked and all(sorted(times) == [-1, 1] for times in asked)
    assert bool(refused(found)) == stops
    assert all(one.what == "own rows" and "This site's data have changed" in one.sentence for one in refused(found))
    if not stops:
        assert "what the 10 rows that make the difference gave" in found[0].sentence


def test_a_change_is_hidden_by_sites_that_come_or_go_with_it() -> None:
    assert not refused(findings(ME, [added("ab")], added("abcd", 4, version="v2"), SAME))


def test_a_sum_of_two_and_a_swap_are_said_and_not_refused() -> None:
    (word,) = findings(ME, [], added("a"), SAME)
    assert word.sentence.startswith("Only a and me take part. A sum of two hides nothing between them")
    (word,) = findings(ME, [added("abc")], added("abd", 4), SAME)
    assert not word.refuses and "the data of c and d follow from each other" in word.sentence


def test_a_newcomer_is_told_what_it_can_not_know() -> None:
    (found,) = refused(findings(ME, [], added("abc"), newcomer=True))
    assert found.subject == ME and found.sentence.startswith("This ring has run before me came.")


def test_many_sites_and_columns_take_no_time_to_speak_of() -> None:
    """Sites that are always summed together, and columns that are always fitted together, count as one."""
    many = [f"site{number}" for number in range(3000)]
    columns = [f"c{number}" for number in range(400)]

    def large(names: Sequence[str], day: int) -> Added:
        one = added("", day, columns)
        return Added(
            one.time, one.run, 0, one.ring, tuple((name, name) for name in (ME, *names)), one.kind, one.features, one.target, one.fit,
            one.how, one.questions, one.data,
        )  # fmt: skip

    (found,) = refused(findings(ME, [large(many, 3), large(many[:2000], 4)], large(many[1:], 5), SAME))
    assert found.subject == "site0" and "age" not in found.sentence and "its X'X and X't" in found.sentence
