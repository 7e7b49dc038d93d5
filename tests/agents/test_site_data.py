"""A site's file as a regression takes it: however it is written it is the same table, or it is refused in a sentence that shows no cell."""

import csv
import io
import tempfile
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from pyarrow import parquet

from roundelay.agents.data.csv_files import read_csv_table
from roundelay.agents.data.reading import read_frame, read_site_rows
from roundelay.agents.data.table import Texts
from roundelay.regression.columns import Column, Conversion
from roundelay.regression.regression import Regression

AGE = Column("age", "years")
WEIGHT = Column("weight", "kg", conversions=(Conversion("lb", 0.45359237),))
HEAT = Column("heat", "°C", conversions=(Conversion("°F", 5.0 / 9.0, -160.0 / 9.0),))
SEX = Column("sex", values="levels", levels=("female", "male"))
SMOKER = Column("smoker", values="levels", levels=("no", "yes"))
STAGE = Column("stage", values="levels", levels=("1", "2", "3"))
SEEN = Column("seen", values="date")
DEAD = Column("dead")
ALL = (AGE, WEIGHT, SEX, SMOKER, STAGE, SEEN, DEAD)
EPOCH = date(1970, 1, 1)


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "oslo.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal(tmp_path: Path, text: str | bytes, *columns: Column) -> str:
    with pytest.raises(ValueError) as refused:
        read_frame(written(tmp_path, text), columns)
    return str(refused.value)


# ---------------------------------------------------------------- the same table, however it is written


@dataclass(frozen=True)
class Dialect:
    separator: str
    comma: bool
    mark: bytes
    end: str
    quoting: int
    order: tuple[int, ...]
    truth: tuple[str, str]
    dates: str
    pounds: bool
    padding: str
    missing: str


DIALECTS = st.builds(
    Dialect,
    st.sampled_from([",", ";", "\t"]),
    st.booleans(),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.permutations(range(len(ALL) + 1)).map(tuple),
    st.sampled_from([("no", "yes"), ("FALSE", "TRUE"), ("False", "true"), ("0", "1"), ("No", "Yes")]),
    st.sampled_from(["%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%d.%m.%Y", "%d %b %Y", "%B %d, %Y", "%d/%m/%Y", "%m-%d-%Y", "%Y-%m-%dT00:00:00"]),
    st.booleans(),
    st.sampled_from(["", " ", "\u00a0"]),
    st.sampled_from(["", "NA", "n/a", "NaN", "null", ".", "-", "#N/A"]),
)  # fmt: skip
NUMBERS = st.floats(-1e12, 1e12, allow_subnormal=False)
ROWS = st.lists(
    st.tuples(
        NUMBERS,
        NUMBERS,
        st.sampled_from([*SEX.levels, None]),
        st.sampled_from([0, 1]),
        st.sampled_from(STAGE.levels),
        st.integers(-30_000, 40_000),
        st.sampled_from([0, 1]),
    ),
    max_size=12,
)
# These say which number is the day, and that a comma or a point is no mark between thousands.
FIRST = (0.5, 1.25, "male", 1, "1", (date(2024, 1, 31) - EPOCH).days, 1)


def as_csv(rows: list[tuple[object, ...]], dialect: Dialect) -> bytes:
    def number(value: float) -> str:
        return repr(value).replace(".", ",") if dialect.comma else repr(value)

    headings = ["age [years]", f"weight [{'lb' if dialect.pounds else 'kg'}]", "sex", "smoker", "stage", "seen", "dead"]
    table = [[*headings, "who, and where"]]
    for age, weight, sex, smokes, stage, seen, dead in rows:
        day = (EPOCH + timedelta(days=int(seen))).strftime(dialect.dates)  # type: ignore[call-overload]
        mass = float(weight) / 0.45359237 if dialect.pounds else float(weight)  # type: ignore[arg-type]
        cells = [number(float(age)), number(mass), sex or dialect.missing, dialect.truth[smokes], stage, day]  # type: ignore[arg-type, index]
        padded = [f"{dialect.padding}{cell}{dialect.padding}" for cell in [*cells, dialect.truth[dead]]]  # type: ignore[index]
        table.append([*padded, 'Anna "the\ngreat"'])
    text = io.StringIO()
    writer = csv.writer(text, delimiter=dialect.separator, lineterminator="\n", quoting=dialect.quoting)  # type: ignore[arg-type]
    writer.writerows([[row[place] for place in dialect.order] for row in table])
    return dialect.mark + text.getvalue().replace("\n", dialect.end).encode()


def check_same(rows: list[tuple[object, ...]], path: Path, close: bool) -> pd.DataFrame:
    frame, gaps = read_frame(path, ALL, "drop")
    complete = [row for row in rows if row[2] is not None]
    assert gaps[:2] == (len(rows) - len(complete), (0, 0, len(rows) - len(complete), 0, 0, 0, 0))
    assert list(frame) == [column.name for column in ALL]
    np.testing.assert_array_equal(frame["age"], [row[0] for row in complete])
    np.testing.assert_allclose(frame["weight"], [row[1] for row in complete], rtol=1e-14 if close else 0.0)
    assert frame["sex"].tolist() == [row[2] for row in complete]
    assert list(frame["sex"].cat.categories) == list(SEX.levels)
    assert frame["smoker"].cat.codes.tolist() == [row[3] for row in complete]
    assert list(frame["stage"]) == [row[4] for row in complete]
    assert frame["seen"].tolist() == [float(row[5]) for row in complete]  # type: ignore[arg-type]
    assert frame["dead"].tolist() == [float(row[6]) for row in complete]  # type: ignore[arg-type]
    assert all(frame[name].dtype == np.float64 for name in ("age", "weight", "seen", "dead"))
    return frame


@settings(max_examples=150, deadline=None)
@given(ROWS, DIALECTS)
def test_a_table_is_the_same_however_it_is_written(rows: list[tuple[object, ...]], dialect: Dialect) -> None:
    rows = [FIRST, *rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "oslo.csv"
        path.write_bytes(as_csv(rows, dialect))
        frame = check_same(rows, path, dialect.pounds)
    # The text of each row has a line end in it.
    assert frame.index.tolist() == [2 + 2 * number for number, row in enumerate(rows) if row[2] is not None]


@settings(max_examples=30, deadline=None)
@given(ROWS, st.booleans())
def test_a_parquet_file_is_the_same_table(rows: list[tuple[object, ...]], typed: bool) -> None:
    rows = [FIRST, *rows]
    age, weight, sex, smokes, stage, seen, dead = map(list, zip(*rows, strict=True))
    days = [EPOCH + timedelta(days=int(day)) for day in seen]  # type: ignore[call-overload]
    columns = {
        "sex": pa.array(sex, pa.string()).dictionary_encode() if typed else sex,
        "dead": [bool(one) for one in dead] if typed else dead,
        "smoker": [bool(one) for one in smokes] if typed else smokes,
        "seen": pa.array(days, pa.date32()) if typed else pa.array(days, pa.date32()).cast(pa.timestamp("ns", "UTC")),
        "weight [kg]": weight,
        "stage": [float(one) for one in stage] if typed else stage,  # type: ignore[arg-type]
        "age [years]": age,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "oslo.parquet"
        parquet.write_table(pa.table(columns), path)
        frame = check_same(rows, path, False)
    assert frame.index.tolist() == [number for number, row in enumerate(rows, 1) if row[2] is not None]


def test_units_are_converted_where_the_plan_says_so_and_else_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "weight [lb],heat [°F],age [years]\n100,32,30\n220,212,40\n")
    frame, left = read_frame(path, (AGE, WEIGHT, HEAT))
    assert left.converted == ("weight [kg] from lb by 0.453592·x", "heat [°C] from °F by 0.555556·x -17.7778")
    np.testing.assert_allclose(frame["weight"], [45.359237, 99.7903214], rtol=1e-14)
    np.testing.assert_allclose(frame["heat"], [0.0, 100.0], atol=1e-12)
    said = refusal(tmp_path, "weight [st]\n12\n", WEIGHT)
    assert (
        'in "st"' in said
        and 'agreed to have it in "kg" (and converts it from "lb")' in said
        and "convert the numbers" in said
    )
    assert 'in "months"' in refusal(tmp_path, "age [months]\n12\n", AGE)
    assert "without a unit" in refusal(tmp_path, "age\n12\n", AGE)


def test_letters_may_be_spelled_in_two_ways(tmp_path: Path) -> None:
    composed, apart = "kön", "ko\u0308n"
    column = Column(composed, values="levels", levels=("män", "kvinna"))
    frame, _ = read_frame(written(tmp_path, f"{apart}\nma\u0308n\nkvinna\n"), (column,))
    assert frame[composed].tolist() == ["män", "kvinna"]


def test_a_level_may_be_a_word_that_else_means_that_there_is_nothing(tmp_path: Path) -> None:
    rhesus = Column("rhesus", values="levels", levels=("-", "+"))
    frame, gaps = read_frame(written(tmp_path, "rhesus,a\n-,1\n+,1\nNA,1\n"), (rhesus,), "drop")
    assert frame["rhesus"].tolist() == ["-", "+"] and gaps.rows == 1


def test_rows_that_lack_a_cell_are_counted_by_column(tmp_path: Path) -> None:
    path = written(tmp_path, "age [years],sex,dead\n1,female,0\n,NA,1\n3,-,null\n4,male,NaN\n5,male,1\n")
    frame, gaps = read_frame(path, (DEAD, AGE, SEX), "drop")
    assert frame.index.tolist() == [2, 6] and gaps[:2] == (3, (2, 1, 2))
    said = refusal(tmp_path, path.read_bytes(), DEAD, AGE, SEX)
    assert '5 empty cells in 3 rows: "age [years]" in line 3, "sex" in line 3, "dead" in line 4, and so on' in said
    assert 'missing = "drop"' in said


def test_the_rows_of_a_regression_know_their_lines(tmp_path: Path) -> None:
    regression = Regression("dead ~ age + C(sex)", (DEAD, SEX, AGE), "binomial")
    text = "sex;dead;age [years]\n\nmale;yes;30,5\nfemale;no;40\nmale;NA;50\n"
    rows = read_site_rows(written(tmp_path, text), regression, "drop")
    assert rows.response.tolist() == [1.0, 0.0] and rows.dropped == 1 and rows.dropped_by == (1, 0, 0)
    np.testing.assert_array_equal(rows.design({}), [[1.0, 30.5, 1.0], [1.0, 40.0, 0.0]])
    with pytest.raises(ValueError, match="The row on line 4 of this site's data"):
        read_site_rows(written(tmp_path, "sex,dead,age [years]\n\nmale,0,3\nmale,2,3\n"), regression)


# ---------------------------------------------------------------- what is refused

NUMBERS_OF = {
    "1,5;2.5": "same mark",
    "1.234,5;2": "text",
    "1,234.5;2": "text",
    "1 234;2": "text",
    "1'234;2": "text",
    "1,234,567;2": "text",
    "1,234;5,678": "may be a fraction or thousands",
    "1.234;-5.678": "may be a fraction or thousands",
    "12 kg;2": "text",
    "1_000;2": "text",
    "yes;2": "numbers other than 0 and 1",
    "inf;2": "not finite",
    "1e200;2": "larger unit",
}


@pytest.mark.parametrize("cells", NUMBERS_OF)
def test_numbers_that_can_be_read_in_two_ways_or_in_none_are_refused(tmp_path: Path, cells: str) -> None:
    said = refusal(tmp_path, f"dead;age [years]\n3;4\n{cells}\n", AGE, DEAD)
    assert NUMBERS_OF[cells] in said and "ine 3 of " in said and ("dead" in said or "age [years]" in said)
    assert ": " in said and not any(cell in said for cell in cells.split(";") if len(cell) > 1 and cell != "yes")


def test_one_number_tells_what_the_mark_of_all_others_is(tmp_path: Path) -> None:
    for text, values in (("1,234;0,5", [1.234, 0.5]), ("1.234;12.5", [1.234, 12.5]), ("1,234;,25", [1.234, 0.25])):
        frame, _ = read_frame(written(tmp_path, f"age [years];dead\n{text}\n"), (AGE, DEAD))
        assert frame.iloc[0].tolist() == values
    # A point between commas is a point.
    frame, _ = read_frame(written(tmp_path, "age [years],dead\n1.234,5.678\n"), (AGE, DEAD))
    assert frame.iloc[0].tolist() == [1.234, 5.678]
    # Columns that were not agreed on tell nothing, and are not looked at.
    frame, _ = read_frame(written(tmp_path, 'age [years];note\n1,5;"3.5 and 4,5"\n'), (AGE,))
    assert frame["age"].tolist() == [1.5]


def test_a_level_that_the_plan_does_not_know_is_refused_without_showing_it(tmp_path: Path) -> None:
    said = refusal(tmp_path, "id,sex\n1,male\n\n2,secret7\n3,female\n4,secret7\n", SEX)
    assert "Line 4 of " in said and 'the column "sex" (and 1 more such row)' in said and "it knows female, male" in said
    assert "plan" in said and "secret7" not in said
    for cell in ("Male", "m", "MALE", "0"):
        assert "a level in" in refusal(tmp_path, f"sex\n{cell}\n", SEX)
    for cell in ("4", "1.5", "one", "true"):
        assert "a level in" in refusal(tmp_path, f"stage\n{cell}\n", STAGE)
    for cell in ("2", "maybe"):
        assert "a level in" in refusal(tmp_path, f"smoker\n{cell}\n", SMOKER)
    assert "a level in" in refusal(tmp_path, "sex\ntrue\n", Column("sex", values="levels", levels=("yes", "no", "1")))


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ("03/04/2024;05/06/2024", "the day and what the month"),
        ("31/12/2024;12/31/2024", "something else than a date"),
        ("2024-02-30;2024-01-01", "something else than a date"),
        ("02.13.2024;01.01.2024", "something else than a date"),
        ("13/04/24;2024-01-01", "something else than a date"),
        ("2024111;20240101", "something else than a date"),
        ("45000;45001", "something else than a date"),
        ("3 Mai 2024;3 May 2024", "something else than a date"),
        ("2024-01-01T25:00;2024-01-01", "something else than a date"),
        ("1024-01-01;2024-01-01", "something else than a date"),
    ],
)
def test_dates_that_can_be_read_in_two_ways_or_in_none_are_refused(tmp_path: Path, cells: str, words: str) -> None:
    first, second = cells.split(";")
    said = refusal(tmp_path, f"seen\n{first}\n{second}\n", SEEN)
    assert words in said and "Line 2 of " in said and '"seen"' in said and "2024-02-01" in said
    assert first not in said


def test_dates_may_have_a_time(tmp_path: Path) -> None:
    frame, _ = read_frame(
        written(tmp_path, "seen\n1970-01-02 06:00\n1970-01-01T12:00:00Z\n31/12/1969 18:00:00.0\n"), (SEEN,)
    )
    assert frame["seen"].tolist() == [1.25, 0.5, -0.25]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a;b,c\n1;2,3\n", "commas and semicolons"),
        ("dead\n1,2\n", "has 2 cells, but its header has 1"),
        ('dead,b\n1,5"2\n', "from line 2 on"),
        ('dead,b\n1,"a"b\n', "from line 2 on"),
        ('dead,b\n1,"a\n2,3\n', "from line 2 on"),
        ("1,2\n3,4\n", 'no column "dead"'),
        ("dead,dead\n3,4\n", "2 times"),
        ("dead,\n3,4\n", "column 2"),
        ("dead,b\n3\n", "Line 2"),
        ("dead,b\n", "has no rows"),
        ("\n \n", "is empty"),
        ("a" * 200_000 + "\n", "The header"),
        ("dead\n1\0\n", "UTF-8"),
    ],
)
def test_files_that_are_not_whole_are_refused(tmp_path: Path, text: str, words: str) -> None:
    said = refusal(tmp_path, text, DEAD)
    assert words in said and "oslo.csv" in said and said.endswith(".")


def test_parquet_of_another_kind_than_agreed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "oslo.parquet"
    for column, values, words in (
        (SEEN, [1, 2], "has numbers in the column"),
        (DEAD, pa.array([1, 2], pa.date32()), "has dates in the column"),
        (DEAD, ["a", "1"], "Row 1 of "),
        (SEX, [1, 2], "a level in"),
        (SEX, pa.array([1, 2], pa.date32()), "a level in"),
        (DEAD, [[1], [2]], "neither numbers, texts nor dates"),
    ):
        parquet.write_table(pa.table({column.name: values}), path)
        with pytest.raises(ValueError, match=words):
            read_frame(path, (column,))


def table_or_sentence(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "oslo.csv"
        path.write_bytes(content)
        try:
            frame, gaps = read_frame(path, (AGE, SEX, SEEN), "drop")
        except ValueError as refused:
            said = str(refused)
            assert "oslo.csv" in said and said.endswith(".") and (": " in said or ". " in said)
        else:
            assert len(frame) and not frame.isna().to_numpy().any() and gaps.rows >= max(gaps.by_column)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(st.text(alphabet='0123456789.,;/-:"\n\r\t MaleNA°ä', max_size=12), max_size=4), max_size=6),
    st.sampled_from(",;\t"),
)
def test_odd_cells_end_in_a_table_or_a_sentence(rows: list[list[str]], separator: str) -> None:
    lines = [["age [years]", "sex", "seen"], *rows]
    table_or_sentence("\n".join(separator.join(line) for line in lines).encode())


QUOTED = st.text(alphabet='ab1,;"\n\r \t.', max_size=6).map(lambda text: '"' + text.replace('"', '""') + '"')
CELLS = st.one_of(st.text(alphabet="ab12. ", max_size=4), QUOTED, st.text(alphabet='a"\n\r,;\t', max_size=4))
LINES = st.one_of(st.tuples(CELLS, CELLS), st.sampled_from([("",), ("  ",), ("\t",), ("a", "b", "c")]))
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(LINES, ENDS), max_size=6), st.sampled_from(",;\t"))
def test_what_is_read_is_what_another_reader_reads(rows: list[tuple[tuple[str, ...], str]], separator: str) -> None:
    """Python's own reader, row by row: the same cells on the same lines."""
    text = "".join(separator.join(cells) + end for cells, end in rows)
    whole = f"a{separator}b\n" + text
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "oslo.csv"
        path.write_bytes(whole.encode())
        try:
            table = read_csv_table(path, lambda header: range(len(header)))
        except ValueError as refused:
            assert str(refused).endswith(".")
            return
    reader = csv.reader(
        io.StringIO(whole.replace("\r\n", "\n").replace("\r", "\n"), newline=""), delimiter=table.separator, strict=True
    )
    next(reader)
    expected, line = [], 2
    for row in reader:
        if len(row) > 1 or "".join(row).strip(" \t"):
            expected.append((line, row))
        line = reader.line_num + 1
    assert table.places.tolist() == [number for number, _ in expected]
    columns = [[column.words[code] for code in column.codes] for column in table.columns if isinstance(column, Texts)]
    assert list(map(list, zip(*columns, strict=True))) == [row for _, row in expected]
