"""The ledger as a file: what was tampered with is noticed, what was torn is mended, and nothing is written twice or lost."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundelay.agents.agreement import ledger as ledger_module
from roundelay.agents.agreement.identity import make_identity, renew_identity, save_identity
from roundelay.agents.agreement.ledger import (
    LEDGER,
    Added,
    Data,
    Entry,
    Finding,
    Ledger,
    LedgerError,
    Overruled,
    Told,
    read_ledger,
    spent,
    write_entry,
)
from roundelay.agents.data.marks import Marked, keep_marks, mark_rows, marking_key, rows_in
from tests.agents.conftest import site

RING = "cd" * 32
FINDING = Finding("site", "Bergen", "Bergen takes part no more.", ("age",), True)


def entry(number: int, rho: float | None = None, digest: str = "d") -> Added:
    return Added(
        datetime(2026, 3, 1 + number, 12, tzinfo=UTC), f"{number:032x}", 0, RING, (("Oslo", "ab"), ("Bergen", "cd")), "least_squares", ("age",),
        "outcome", "a fit", "sealed laps", 200, Data(digest, 30, {"age": "x", "outcome": "y"}, "z"), rho,
    )  # fmt: skip


def once(one: Added) -> Callable[[Ledger], Entry | None]:
    return lambda ledger: None if ledger.of(one.run, one.epoch) else one


@pytest.fixture
def oslo(tmp_path: Path) -> Path:
    """A folder with three sums in its ledger."""
    save_identity(tmp_path / "oslo", site("Oslo"))
    for number in range(3):
        write_entry(tmp_path / "oslo", once(entry(number)))
    return tmp_path / "oslo"


def lines_of(folder: Path) -> list[bytes]:
    return (folder / LEDGER).read_bytes().splitlines(keepends=True)


def test_what_was_written_is_read(oslo: Path) -> None:
    told = Told(datetime(2026, 3, 9, tzinfo=UTC), entry(1).run, 0, 160)
    passed = Overruled(datetime(2026, 3, 9, tzinfo=UTC), entry(1).run, 0, RING, (FINDING,))
    for one in (told, passed):
        write_entry(oslo, lambda ledger, one=one: one)  # type: ignore[misc]
    read = read_ledger(oslo)
    assert read.entries == (entry(0), entry(1), entry(2), told, passed)
    assert read.rows_told(entry(1)) == 160 and read.rows_told(entry(0)) is None
    assert read.before(entry(1).run, 0) == (entry(0),) and read.before("new", 0) == read.added
    assert read.overruled(RING) == (FINDING,) and read.overruled("other") == ()
    assert not read.not_overruled(RING, [FINDING]) and read.not_overruled("other", [FINDING]) == (FINDING,)
    assert (oslo / LEDGER).stat().st_mode & 0o077 == 0


def test_a_line_is_json_of_its_own(oslo: Path) -> None:
    for number, line in enumerate(lines_of(oslo)):
        told = json.loads(line)
        assert told["number"] == number and told["entry"]["run"] == entry(number).run and told["signature"]
        before = lines_of(oslo)[number - 1].rstrip(b"\n") if number else None
        assert told["before"] == ("" if before is None else hashlib.sha256(before).hexdigest())


def test_nothing_is_written_twice(oslo: Path) -> None:
    before = (oslo / LEDGER).read_bytes()
    write_entry(oslo, once(entry(1)))
    assert (oslo / LEDGER).read_bytes() == before


def test_what_is_refused_writes_nothing(oslo: Path) -> None:
    before = (oslo / LEDGER).read_bytes()

    def refuses(ledger: Ledger) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        write_entry(oslo, refuses)
    assert (oslo / LEDGER).read_bytes() == before


# ---------------------------------------------------------------- attacks


def _changed(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b'"Bergen"', b'"Tromso"'), lines[2]]


def _other_signature(lines: list[bytes]) -> list[bytes]:
    head, mark, _ = lines[1].partition(b',"signature":')
    return [lines[0], head + mark + lines[2].partition(b',"signature":')[2], lines[2]]


ATTACKS: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "changed": (_changed, r"Line 2 of the ledger .* was changed after it was written"),
    "another line's signature": (_other_signature, r"Line 2 of the ledger .* was changed after it was written"),
    "first removed": (lambda lines: lines[1:], "Line 1 of the ledger .* lines were removed, or moved"),
    "one removed": (lambda lines: [lines[0], lines[2]], "Line 2 of the ledger .* lines were removed, or moved"),
    "reordered": (lambda lines: [lines[1], lines[0], lines[2]], "Line 1 of the ledger .* lines were removed, or moved"),
    "twice": (lambda lines: [*lines, lines[2]], "Line 4 of the ledger .* lines were removed, or moved"),
    "cut in the middle": (lambda lines: [lines[0], lines[1][:90] + b"\n", lines[2]], "Line 2 of the ledger .* can't be read"),
    "something else": (lambda lines: [*lines, b"hello\n"], "Line 4 of the ledger .* can't be read"),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_was_tampered_with_is_noticed_and_named(attack: str, oslo: Path) -> None:
    change, words = ATTACKS[attack]
    (oslo / LEDGER).write_bytes(b"".join(change(lines_of(oslo))))
    before = (oslo / LEDGER).read_bytes()
    with pytest.raises(LedgerError, match=words):
        read_ledger(oslo)
    with pytest.raises(LedgerError, match=words):
        write_entry(oslo, once(entry(7)))
    assert (oslo / LEDGER).read_bytes() == before


@settings(deadline=None, max_examples=60, derandomize=True)
@given(place=st.floats(0.0, 1.0, exclude_max=True), add=st.integers(1, 255))
def test_any_changed_byte_is_noticed(place: float, add: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """But for one in the last line that makes it a line that was never finished, which the journals know of."""
    folder = _three_lines(tmp_path_factory)
    text = bytearray((folder / LEDGER).read_bytes())
    where = int(place * len(text))
    text[where] = (text[where] + add) % 256
    (folder / LEDGER).write_bytes(bytes(text))
    try:
        read = read_ledger(folder)
    except LedgerError:
        return
    assert where == len(text) - 1 and read.torn and len(read.added) == 2


def _three_lines(factory: pytest.TempPathFactory) -> Path:
    folder = factory.mktemp("ledger") / "oslo"
    save_identity(folder, site("Oslo"))
    for number in range(3):
        write_entry(folder, once(entry(number)))
    return folder


def test_a_ledger_that_another_key_has_signed_is_refused(oslo: Path, tmp_path: Path) -> None:
    """A thief of the file who writes it anew with a key of his own, under the same name."""
    save_identity(tmp_path / "thief", make_identity("Oslo"))
    write_entry(tmp_path / "thief", once(entry(0)))
    (oslo / LEDGER).write_bytes((tmp_path / "thief" / LEDGER).read_bytes())
    with pytest.raises(LedgerError, match=r"Line 1 of the ledger .* is signed by a key that is not one of this site's"):
        read_ledger(oslo)
    # And with the name of this site's key, which he can't sign with.
    key = json.loads((tmp_path / "thief" / LEDGER).read_bytes())["key"].encode()
    own = ledger_module._digits_of(site("Oslo").certificate).encode()
    (oslo / LEDGER).write_bytes((tmp_path / "thief" / LEDGER).read_bytes().replace(key, own))
    with pytest.raises(LedgerError, match="does not fit its signature"):
        read_ledger(oslo)


def test_new_keys_of_the_site_leave_the_old_lines_good(oslo: Path) -> None:
    renew_identity(oslo, make_identity("Oslo"))
    write_entry(oslo, once(entry(3)))
    assert len(read_ledger(oslo).added) == 4
    keys = {json.loads(line)["key"] for line in lines_of(oslo)}
    assert len(keys) == 2


# ---------------------------------------------------------------- crashes


def test_a_line_that_was_torn_at_any_place_is_mended(oslo: Path) -> None:
    """Whatever part of a line is on disk: the whole ones stay, a whole one counts, and it is there once in the end."""
    write_entry(oslo, once(entry(3)))
    *whole, last = lines_of(oslo)
    head = b"".join(whole)
    places = [*range(0, len(last), 29), len(last) - 2, len(last) - 1, len(last)]
    for place in places:
        (oslo / LEDGER).write_bytes(head + last[:place])
        read = read_ledger(oslo)
        complete = place >= len(last) - 1
        assert len(read.added) == 3 + complete and read.torn == (0 if complete else place)
        write_entry(oslo, once(entry(3)))
        write_entry(oslo, once(entry(4)))
        mended = read_ledger(oslo)
        assert mended.added == tuple(entry(number) for number in range(5)) and not mended.torn
        assert [json.loads(line)["torn"] for line in lines_of(oslo)[3:]] == [0 if complete else place, 0]
        assert b"".join(lines_of(oslo)).startswith(head)


def test_a_process_that_dies_before_the_sync_writes_it_once_in_the_end(oslo: Path) -> None:
    child = os.fork()
    if not child:
        os.fsync = lambda handle: os._exit(9)  # type: ignore[assignment]
        write_entry(oslo, once(entry(3)))
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    write_entry(oslo, once(entry(3)))  # the lock went with the process
    assert read_ledger(oslo).added == tuple(entry(number) for number in range(4))


def test_two_processes_write_one_after_the_other(oslo: Path) -> None:
    children = []
    for number in range(3, 9):
        child = os.fork()
        if not child:
            write_entry(oslo, once(entry(number)))
            os._exit(0)
        children.append(child)
    assert all(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 for child in children)
    assert {one.run for one in read_ledger(oslo).added} == {entry(number).run for number in range(9)}


def test_a_full_disk_is_said_in_a_sentence(oslo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LedgerError, match=r"can't be written .*, so nothing was sent: make room"):
        write_entry(oslo, once(entry(3)))


def test_the_entry_is_on_disk_when_the_call_returns(oslo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last sync of the file comes after its last byte."""
    sizes: list[int] = []
    sync = os.fsync

    def watched(handle: int) -> None:
        sizes.append((oslo / LEDGER).stat().st_size)
        sync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    write_entry(oslo, once(entry(3)))
    assert sizes and sizes[0] == (oslo / LEDGER).stat().st_size


# ---------------------------------------------------------------- what it cost, and which rows


def test_what_was_spent_is_summed_over_all_runs_on_the_same_data() -> None:
    entries = [entry(0, 0.25), entry(1, 0.5), entry(2, 0.125, "other"), entry(3, None, "other")]
    told = Told(datetime(2026, 3, 9, tzinfo=UTC), entry(1).run, 0, 160)
    assert spent([*entries, told], "d") == (0.75, 0) and spent(entries, "d").loss == 0.75
    assert spent(entries, "other") == (0.125, 1) and math.isinf(spent(entries, "other").loss)
    assert spent(entries) == (0.875, 1) and spent([], "d") == (0.0, 0) and spent(entries, "nothing").loss == 0.0


@settings(deadline=None, max_examples=60, derandomize=True)
@given(one=st.lists(st.integers(0, 4), max_size=12), other=st.lists(st.integers(0, 4), max_size=12))
def test_changed_rows_are_counted(one: list[int], other: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    """As multisets: a row that is there once more counts once, and the order does not count."""
    key, folder = bytes(32), tmp_path_factory.mktemp("marks")

    def marked(rows: list[int], digest: str) -> Marked:
        cells = np.array([[float(row), 2.0 * row] for row in rows]).reshape(-1, 2)
        return mark_rows(["a", "b"], cells, digest, key)

    old, new = marked(one, "old"), marked(other, "new")
    keep_marks(folder, old)
    parts = [(old.data, Fraction(1)), (new.data, Fraction(-1))]
    expected = sum(abs(Counter(one)[row] - Counter(other)[row]) for row in range(5))
    assert rows_in(folder, new, parts, "ab") == expected
    assert (old.data.marks == new.data.marks) == (expected == 0)


def test_rows_that_can_not_be_told_apart_count_as_few_as_they_may_be(tmp_path: Path) -> None:
    cells = np.arange(20.0).reshape(10, 2)
    key = marking_key(tmp_path)
    assert marking_key(tmp_path) == key and (tmp_path / "rows.key").stat().st_mode & 0o077 == 0
    old, new = mark_rows(["a", "b"], cells, "old", key), mark_rows(["a", "b"], cells[:7] + 1.0, "new", key)
    parts = [(old.data, Fraction(1)), (new.data, Fraction(-1))]
    assert rows_in(tmp_path, new, parts, "ab") == 3  # nothing was kept of the old ones
    keep_marks(tmp_path, old)
    assert rows_in(tmp_path, new, parts, "ab") == 17
    (tmp_path / "marks" / old.data.cells).write_bytes(b"12345678")
    assert rows_in(tmp_path, new, parts, "ab") == 17  # the rows as a whole are still known
    (tmp_path / "marks" / old.data.marks).write_bytes(b"12345678")
    assert rows_in(tmp_path, new, parts, "ab") == 3


def test_marks_do_not_depend_on_the_order_of_columns_nor_on_how_labels_are_written() -> None:
    cells = np.array([[1.5, 0.0], [2.5, 1.0], [-0.0, 1.0]])
    one = mark_rows(["x", "label"], cells, "", b"k")
    other = mark_rows(["label", "x"], np.column_stack([2.0 * cells[:, 1] - 1.0, cells[:, 0] + 0.0])[::-1], "", b"k")
    assert one.data == other.data
    assert one.data != mark_rows(["x", "label"], cells, "", b"another").data
