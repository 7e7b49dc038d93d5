"""Data files: what is read, what is refused, and that any bytes at all end in rows or in a sentence."""

import io
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from pyarrow import parquet

from roundelay.agents.agreement.plan import Column, Task
from roundelay.agents.data.offering import offer
from roundelay.agents.data.parquet import claimed
from roundelay.agents.data.reading import OwnRows, read_own_rows

AGE, DOSE, Y = Column("age", "years"), Column("dose", "mg"), Column("y")
LINE = Task("least_squares", (AGE, DOSE), Y)
DROP = Task("least_squares", (AGE, DOSE), Y, missing="drop")
LABELS = Task("logistic", (AGE, DOSE), Y)
GOOD = "dose [mg],who,age [years],y\n1.5,anna,30,7\n-2e3,bert,40.25,8\n"


def from_text(tmp_path: Path, text: str | bytes, task: Task = LINE) -> OwnRows:
    path = tmp_path / "site.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_own_rows(path, task)


def from_columns(tmp_path: Path, columns: dict[str, object], task: Task = LINE, **options: object) -> OwnRows:
    path = tmp_path / "site.parquet"
    parquet.write_table(pa.table(columns), path, **options)
    return read_own_rows(path, task)


def test_columns_are_found_by_name_whichever_order_they_stand_in(tmp_path: Path) -> None:
    rows = from_text(tmp_path, GOOD)
    assert rows.features.tolist() == [[30.0, 1.5], [40.25, -2000.0]]
    assert rows.target.tolist() == [7.0, 8.0]
    assert rows.dropped == 0 and rows.count == 2


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD + "\n\n  \n",
        GOOD.replace("anna", '"an\n,na"'),
        GOOD.replace("age [years]", " age[years] "),
        GOOD.replace("7\n", " 7.0 \n"),
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        GOOD.replace(",", ";").replace(".", ","),
        GOOD.replace("1.5", '"1,5"').replace("40.25", '"40,25"'),
    ],
)
def test_the_same_table_however_it_is_written(tmp_path: Path, text: str) -> None:
    assert from_text(tmp_path, text).features.tolist() == [[30.0, 1.5], [40.25, -2000.0]]


def test_a_name_may_have_brackets_itself(tmp_path: Path) -> None:
    task = Task("least_squares", (Column("x[0]"),), Column("y"))
    assert from_text(tmp_path, "y,x[0]\n1,2\n", task).features.tolist() == [[2.0]]


def test_numbers_are_read_to_the_last_digit(tmp_path: Path) -> None:
    numbers = np.random.default_rng(3).normal(size=(50, 3)) * 10.0 ** np.arange(-3, 47)[:, None]
    lines = "".join(f"{a!r},{b!r},{c!r}\n" for a, b, c in numbers.tolist())
    rows = from_text(tmp_path, "age [years],dose [mg],y\n" + lines)
    np.testing.assert_array_equal(np.column_stack([rows.features, rows.target]), numbers)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["is empty", "names the columns"]),
        ("\n\n", ["is empty"]),
        ("dose [mg],age [years],y\n", ["has no rows", "at least one"]),
        (GOOD.replace("age [years]", "height"), ['no column "age [years]"', "add it"]),
        (GOOD.replace("age [years]", "age [months]"), ['"age" in "months"', 'in "years"', "convert"]),
        (GOOD.replace("age [years]", "age"), ["without a unit", 'in "years"']),
        (GOOD.replace("who", "age [days]"), ['"age" 2 times', "rename"]),
        (GOOD.replace("who", "[years]"), ["header", "column 2", "no name"]),
        (GOOD.replace("40.25", "old"), ["Line 3", '"age [years]"', "text", "leave a cell empty"]),
        (GOOD.replace("40.25", "4_0"), ["Line 3", "text"]),
        (GOOD.replace("40.25", "-true"), ["Line 3", "text"]),
        (GOOD.replace("40.25", "0x10"), ["Line 3", "text"]),
        (GOOD.replace("40.25", "1e5kg"), ["Line 3", "text"]),
        (GOOD.replace("40.25", "٤٠"), ["Line 3", "text"]),
        (GOOD.replace("anna", '"an\nna"').replace("40.25", "old"), ["Line 4", "text"]),
        (GOOD.replace("40.25", "-inf"), ["Line 3", '"age [years]"', "not finite"]),
        (GOOD.replace("40.25", "1e999"), ["Line 3", "not finite"]),
        (GOOD.replace("40.25", "1e150"), ["Line 3", "beyond 1e+100", "unit"]),
        (GOOD.replace("40.25", "40,25"), ["Line 3", "has 5 cells", "header has 4", "point"]),
        (GOOD[:-4], ["Line 3", "has 3 cells"]),
        (GOOD.replace("bert", '"bert'), ["from line 3 on", "quotation mark"]),
        (GOOD.replace("40.25", "40;25"), ["Line 3", "text"]),
        (GOOD.encode("utf-16"), ["not UTF-8", "save it again"]),
        (GOOD.replace("anna", "anná").encode("latin-1"), ["not UTF-8"]),
        (GOOD.replace("40.25", ""), ["1 empty cell", '"age [years]" in line 3', 'missing = "drop"']),
        (GOOD.replace("40.25", "NaN").replace("1.5", ""), ["2 empty cells in 2 rows", '"dose [mg]" in line 2']),
    ],
)
def test_what_does_not_fit_is_refused_in_words(tmp_path: Path, text: str | bytes, words: list[str]) -> None:
    with pytest.raises(ValueError, match=r"site\.csv") as refusal:
        from_text(tmp_path, text)
    for word in words:
        assert word in str(refusal.value)


@pytest.mark.parametrize("secret", ["3141592e999", "-2718281e140", "314159265x", "secret-314159265"])
def test_a_refusal_does_not_show_the_value(tmp_path: Path, secret: str) -> None:
    with pytest.raises(ValueError) as refusal:
        from_text(tmp_path, GOOD.replace("40.25", secret))
    assert secret not in str(refusal.value) and "314159" not in str(refusal.value)
    assert "271828" not in str(refusal.value)


def test_what_init_reads_of_a_header_is_found_in_the_data(tmp_path: Path) -> None:
    path = tmp_path / "site.csv"
    path.write_text("blood  pressure [mm Hg],age[ years ],y\n120,30,7\n130,40,8\n")
    *features, target = offer(path, 5).columns
    assert read_own_rows(path, Task("least_squares", tuple(features), target)).features[:, 0].tolist() == [120.0, 130.0]


def test_a_forgotten_header_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no column") as refusal:
        from_text(tmp_path, GOOD.split("\n", 1)[1])
    assert "anna" not in str(refusal.value) and "1.5" not in str(refusal.value)


def test_rows_with_an_empty_cell_are_left_out_and_counted_where_the_ring_agreed_to(tmp_path: Path) -> None:
    text = GOOD + ",carl,1,2\n3,,4,5\n6,dora,7,\n"
    rows = from_text(tmp_path, text, DROP)
    assert rows.target.tolist() == [7.0, 8.0, 5.0]
    assert rows.dropped == 2
    with pytest.raises(ValueError, match="all 1 were dropped"):
        from_text(tmp_path, GOOD.split("\n")[0] + "\n,,,\n", DROP)


@pytest.mark.parametrize("pair", ["01", ("-1", "1"), ("False", "true"), ("0.0", "1e0"), ("-1.0", "+1")])
def test_labels_become_minus_one_and_one(tmp_path: Path, pair: tuple[str, str]) -> None:
    text = f"age [years],dose [mg],y\n1,2,{pair[1]}\n3,4,{pair[0]}\n5,6,{pair[1]}\n"
    assert from_text(tmp_path, text, LABELS).target.tolist() == [1.0, -1.0, 1.0]


@pytest.mark.parametrize(
    ("labels", "words"),
    [(("1", "2", "0"), ["Line 3", '"y"', "not a label"]), (("1", "0", "-1"), ["Line 4", "not both"])],
)
def test_what_is_no_label_is_refused(tmp_path: Path, labels: tuple[str, ...], words: list[str]) -> None:
    with pytest.raises(ValueError) as refusal:
        from_text(tmp_path, "age [years],dose [mg],y\n" + "".join(f"1,2,{label}\n" for label in labels), LABELS)
    for word in words:
        assert word in str(refusal.value)


def test_what_can_not_be_opened_is_said_in_words(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(ValueError, match="can't be opened"):
            read_own_rows(path, LINE)
    with pytest.raises(ValueError, match="custom has no columns"):
        from_text(tmp_path, GOOD, Task("custom", dim=2))


COLUMNS = {"dose [mg]": [1.5, -2000.0], "who": ["a", "b"], "age [years]": [30, 40], "y": [True, False]}


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_parquet_is_the_same_table(tmp_path: Path, compression: str, version: str) -> None:
    rows = from_columns(tmp_path, COLUMNS, compression=compression, data_page_version=version)
    assert rows.features.tolist() == [[30.0, 1.5], [40.0, -2000.0]]
    assert rows.target.tolist() == [1.0, 0.0]
    assert from_columns(tmp_path, COLUMNS, LABELS).target.tolist() == [1.0, -1.0]


def test_parquet_of_many_pages_and_groups_and_kinds_of_numbers(tmp_path: Path) -> None:
    numbers = np.random.default_rng(5).normal(size=20_000)
    columns = {
        "age [years]": pa.array(numbers.astype(np.float32)),
        "dose [mg]": pa.array(np.arange(20_000) % 7).dictionary_encode(),
        "y": pa.array(np.round(numbers, 3)).cast(pa.decimal128(12, 6), safe=False),
    }
    rows = from_columns(tmp_path, columns, row_group_size=3000, data_page_size=512)
    np.testing.assert_array_equal(rows.features[:, 0], numbers.astype(np.float32))
    np.testing.assert_array_equal(rows.features[:, 1], np.arange(20_000) % 7)
    np.testing.assert_allclose(rows.target, np.round(numbers, 3), atol=1e-6)


def test_a_column_that_pandas_took_for_the_index_is_there(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"dose [mg]": [1.0, 2.0], "y": [3.0, 4.0]}, index=pd.Index([5.0, 6.0], name="age [years]"))
    frame.to_parquet(tmp_path / "site.pq")
    assert read_own_rows(tmp_path / "site.pq", LINE).features.tolist() == [[5.0, 1.0], [6.0, 2.0]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age [years]": ["x", "y"]}, ['"age [years]"', "text in the column"]),
        ({"age [years]": [1.0, None]}, ["1 empty cell", '"age [years]" in row 2']),
        ({"age [years]": [float("nan"), 1.0]}, ['"age [years]" in row 1', "1 empty cell"]),
        ({"y": [1.0, float("inf")]}, ["Row 2", '"y"', "not finite"]),
        ({"age": [1, 2]}, ['"age" 2 times']),
    ],
)
def test_parquet_that_does_not_fit_is_refused_in_words(
    tmp_path: Path, change: dict[str, object], words: list[str]
) -> None:
    with pytest.raises(ValueError, match=r"site\.parquet") as refusal:
        from_columns(tmp_path, COLUMNS | change)
    for word in words:
        assert word in str(refusal.value)


def test_a_missing_pyarrow_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "site.parquet").write_bytes(b"PAR1")
    with pytest.raises(ImportError, match=r"roundelay\[parquet\]"):
        read_own_rows(tmp_path / "site.parquet", LINE)


def as_parquet(compression: str, version: str) -> bytes:
    numbers = np.random.default_rng(7).normal(size=40)
    columns = {"age [years]": numbers, "dose [mg]": np.round(numbers), "y": numbers > 0.0, "who": ["w"] * 40}
    content = io.BytesIO()
    parquet.write_table(pa.table(columns), content, compression=compression, data_page_version=version)
    return content.getvalue()


PARQUETS = [
    as_parquet(compression, version) for compression in ("none", "snappy", "zstd") for version in ("1.0", "2.0")
]
CHANGES = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 12), st.binary(max_size=12)), min_size=1, max_size=6
)  # where, how many bytes go, and what comes in their place


def changed(content: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for place, gone, instead in changes:
        place %= len(content) + 1
        content = content[:place] + instead + content[place + gone :]
    return content


def table_or_sentence(name: str, content: bytes, task: Task) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            rows = read_own_rows(path, task)
        except ValueError as refusal:
            said = str(refusal)
            assert name in said and said.endswith(".") and (": " in said or ". " in said)
        else:
            assert rows.features.shape == (len(rows.target), 2) and len(rows.target) > 0
            assert np.isfinite(rows.features).all() and np.isfinite(rows.target).all()


TASKS = st.sampled_from([LINE, DROP, LABELS])


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["site.csv", "site.parquet", "site"]), st.binary(max_size=300), TASKS)
def test_any_bytes_end_in_a_table_or_a_sentence(name: str, content: bytes, task: Task) -> None:
    table_or_sentence(name, content, task)


@settings(max_examples=300, deadline=None)
@given(CHANGES, TASKS)
def test_a_damaged_csv_file_ends_in_a_table_or_a_sentence(changes: list[tuple[int, int, bytes]], task: Task) -> None:
    table_or_sentence("site.csv", changed(GOOD.encode(), changes), task)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(alphabet='0123456789.,eE+-"\n\r infatrue', max_size=30), max_size=8), TASKS)
def test_rows_of_odd_cells_end_in_a_table_or_a_sentence(rows: list[str], task: Task) -> None:
    table_or_sentence("site.csv", ("age [years],dose [mg],y\n" + "\n".join(rows)).encode(), task)


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(PARQUETS), CHANGES, TASKS)
def test_a_damaged_parquet_file_ends_in_a_table_or_a_sentence(
    content: bytes, changes: list[tuple[int, int, bytes]], task: Task
) -> None:
    table_or_sentence("site.parquet", changed(content, changes), task)
    assert pa.default_memory_pool().max_memory() < 2**28


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PARQUETS), st.integers(4, 60), st.binary(min_size=1, max_size=6))
def test_a_damaged_page_header_asks_for_no_gigabytes(content: bytes, place: int, instead: bytes) -> None:
    table_or_sentence("site.parquet", content[:place] + instead + content[place + len(instead) :], LINE)
    assert pa.default_memory_pool().max_memory() < 2**28


def varint(number: int) -> bytes:
    """A whole number that is not negative, as a Parquet page header has it."""
    coded, content = 2 * number, b""
    while coded > 127:
        content, coded = content + bytes([coded & 127 | 128]), coded >> 7
    return content + bytes([coded])


@pytest.mark.parametrize(("plain", "values"), [(2**30, 3), (100, 2**27), (100, 3)])
def test_a_page_header_tells_what_it_claims(tmp_path: Path, plain: int, values: int) -> None:
    inner = b"\x15" + varint(values) + b"\x15\x00\x00"
    header = b"\x15\x00\x15" + varint(plain) + b"\x15" + varint(10) + b"\x2c" + inner + b"\x00"
    path = tmp_path / "page"
    path.write_bytes(b"PAR1" + header + bytes(10))
    chunk = SimpleNamespace(
        path_in_schema="a", data_page_offset=4, dictionary_page_offset=None, total_compressed_size=len(header) + 10,
        num_values=values,
    )  # fmt: skip
    group = SimpleNamespace(num_columns=1, column=lambda number: chunk)
    metadata = SimpleNamespace(num_row_groups=1, row_group=lambda number: group)
    assert claimed(path, metadata, ["a"]) == max(plain, 8 * values)
    assert claimed(path, metadata, ["b"]) == 0


def test_a_page_that_claims_gigabytes_is_refused_before_they_are_asked_for(tmp_path: Path) -> None:
    content = PARQUETS[2]
    # The first page header begins with the kind, the plain size and the packed size, each after a byte of its own.
    plain = next(size for size in range(10**4) if content.startswith(b"\x15\x04\x15" + varint(size) + b"\x15", 4))
    begin = b"\x15\x04\x15" + varint(plain) + b"\x15"
    packed = next(size for size in range(10**4) if content.startswith(begin + varint(size) + b"\x4c", 4))
    longer = len(varint(2**30)) - len(varint(plain))
    header = b"\x15\x04\x15" + varint(2**30) + b"\x15" + varint(packed - longer)
    rest = content[4 + len(begin) + len(varint(packed)) :]
    # The page loses as many bytes as its header gains, so that everything else stays where it is.
    inner = rest.index(b"\x00\x00") + 2
    path = tmp_path / "site.parquet"
    path.write_bytes(content[:4] + header + rest[:inner] + rest[inner + longer :])
    assert path.stat().st_size == len(content)
    with pytest.raises(ValueError, match="claims to hold more"):
        read_own_rows(path, LINE)


def test_a_table_that_claims_too_many_rows_is_refused(tmp_path: Path) -> None:
    zeros = np.zeros(5_000_000)
    columns = {"age [years]": zeros, "dose [mg]": zeros, "y": zeros}
    with pytest.raises(ValueError, match="claims to hold more"):
        from_columns(tmp_path, columns, row_group_size=10**7, data_page_size=2**30, max_rows_per_page=10**7)
