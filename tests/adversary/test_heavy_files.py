"""A file of a ring from a stranger, made to keep the parser busy for as long as it can: refused before it is parsed."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from roundelay.agents.agreement import signed_text
from roundelay.agents.agreement.epochs import plan_ring
from roundelay.agents.agreement.invitations import read_invitation, write_invitation
from roundelay.agents.agreement.plan import Column, Stopping
from roundelay.agents.agreement.ringfile import read_ring, write_ring
from roundelay.agents.agreement.signed_text import MOST_BYTES, parsed
from roundelay.agents.data.parquet import read_parquet_table
from roundelay.agents.data.table import Texts
from roundelay.regression import formula
from roundelay.regression.columns import Column as RegressionColumn
from roundelay.regression.formula import Formula
from tests.agents.conftest import ALGORITHM, TASK, invited, site
from tests.agents.test_invitations import with_signature

DEEP = ".".join("a" * 99)
# What a line of each costs grows with the depth of all above it, or there are as many as go into a file.
HEAVY: dict[str, Callable[[int], str]] = {
    "deep keys in a deep table": lambda lines: f"[{DEEP}]\n" + "".join(f"{DEEP}.b{i}=1\n" for i in range(lines)),
    "many keys in a deep table": lambda lines: f"[{DEEP}]\n" + "".join(f"b{i}=1\n" for i in range(20 * lines)),
    "deep keys in many tables": lambda lines: f"[[a]]\n{DEEP}=1\n" * lines,
    "deep tables": lambda lines: "".join(f"[{DEEP}.b{i}]\n" for i in range(lines)),
    "deep keys": lambda lines: "".join(f"{DEEP}.b{i}=1\n" for i in range(lines)),
    "tables": lambda lines: "".join(f"[t{i}]\n" for i in range(20 * lines)),
    "inline tables": lambda lines: "".join(f"a{i}={{{'b.' * 30}c=1}}\n" for i in range(3 * lines)),
    "nested arrays": lambda lines: "".join(f"a{i}={'[' * 99}{']' * 99}\n" for i in range(lines)),
    "numbers": lambda lines: "a=[\n" + ("1e5," * 99 + "\n") * (lines // 2) + "]\n",
    "comments": lambda lines: "#\n" * (100 * lines),
}
WHOLE = 18_000  # lines of 200 bytes, near the length that a file may have


@pytest.mark.parametrize("heavy", HEAVY)
def test_a_file_that_keeps_the_parser_busy_is_refused_before_it_is_parsed(
    heavy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = HEAVY[heavy](WHOLE).encode()
    assert len(text) < 1.2 * MOST_BYTES
    assert tomllib.loads(HEAVY[heavy](20)) or heavy == "comments"  # nothing else is wrong with it
    parsings: list[str] = []
    monkeypatch.setattr(signed_text.tomllib, "loads", parsings.append)
    with pytest.raises(ValueError, match=r"the file has .*: it is not a file of a ring\."):
        parsed(text, "the file")
    assert not parsings
    for read in (read_ring, read_invitation):
        with pytest.raises(ValueError, match="it is not a file of a ring"):
            read(with_signature(text[: text.rindex(b"\n", 0, MOST_BYTES - 1000) + 1], site("Oslo")), "the file")
    assert not parsings


@pytest.mark.parametrize("heavy", HEAVY)
def test_without_the_limits_it_is_parsed(heavy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("DEEPEST_TABLE", "MOST_PIECES"):
        monkeypatch.setattr(signed_text, limit, 10**9)
    parsings: list[str] = []
    monkeypatch.setattr(signed_text.tomllib, "loads", parsings.append)
    parsed(HEAVY[heavy](WHOLE).encode(), "the file")
    assert len(parsings) == 1


def test_large_rings_and_wide_tables_are_far_below_the_limits() -> None:
    columns = (*(Column(f"marker {i}", "mmol/l") for i in range(3_000)), *TASK.features, Column("outcome"))
    text = write_invitation(site("Oslo"), "a." * 100 + "org:7443", columns)
    assert read_invitation(text, "the invitation").columns == columns
    members = [invited(site(name)) for name in ("Oslo", *(f"site {i}" for i in range(200)))]
    plan = plan_ring(members, None, ALGORITHM, TASK, Stopping())
    assert read_ring(write_ring(plan, site("Oslo")), "the ring file").plan.agents == 201


# ---------------------------------------------------------------- formulas

LETTERS = "abcdefghijklmnopqrstuvwxyz"
ALL = f"({'+'.join(LETTERS)})"
NUMBERS = tuple(RegressionColumn(letter) for letter in LETTERS)
LEVELS = tuple(RegressionColumn(letter, values="levels", levels=tuple(map(str, range(1000)))) for letter in "abc")
FORMULAS = {
    "colons": (":".join([ALL] * 6), NUMBERS, "it may have 20,000 terms"),
    "powers of powers": (f"({ALL}**3)**3", NUMBERS, "it may have 20,000 terms"),
    "powers without brackets": (f"{ALL}^3^3", NUMBERS, "it may have 20,000 terms"),
    "stars of sums": ("*".join([ALL] * 5), NUMBERS, "it may have 20,000 terms"),
    "nested": ("/".join([ALL] * 5), NUMBERS, "it may have 20,000 terms"),
    "levels": ("a:b", LEVELS, "at least 998,002 coefficients"),
    "levels of three columns": ("a:C(b):c", LEVELS, "at least 997,003,000 coefficients"),
    "splines": ("bs(a, df=50):bs(b, df=50):bs(c, df=50)", NUMBERS, "at least 125,001 coefficients"),
    "factors": (":".join(LETTERS[:12]), NUMBERS, "multiplies 12 factors, and there may be 10"),
    "digits": ("I(9**9**9*a)", NUMBERS, "'9 \\*\\* 9 \\*\\* 9', a power of numbers alone"),
    "digits in an exponent": ("I(a**9**9**9)", NUMBERS, "a power of numbers alone"),
    "digits in weights": ("a + weights(9**9**9*a)", NUMBERS, "a power of numbers alone"),
}


@pytest.mark.parametrize("heavy", FORMULAS)
def test_a_formula_that_would_be_multiplied_out_for_hours_is_refused_before(heavy: str) -> None:
    """It took a minute, or all memory, to accept a ring file with one."""
    terms, columns, words = FORMULAS[heavy]
    with pytest.raises(ValueError, match=words):
        Formula(f"length ~ {terms}", (*columns, RegressionColumn("length")))


def test_without_the_limit_it_is_multiplied_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control, with fewer columns."""
    few = f"({'+'.join(LETTERS[:6])})"
    monkeypatch.setattr(formula, "MOST_TERMS", 10**9)
    monkeypatch.setattr(formula, "MOST_COEFFICIENTS", 10**9)
    found = Formula(f"length ~ {':'.join([few] * 6)}", (*NUMBERS, RegressionColumn("length")))
    assert len(found.terms) == 2**6  # each product of some of them, and the constant


def test_what_people_write_is_far_below() -> None:
    columns = (
        *NUMBERS[:8],
        RegressionColumn("area", values="levels", levels=tuple(map(str, range(40)))),
        RegressionColumn("length"),
    )
    for terms in (
        "(a + b + c + d)**3",
        "a*b*c + area*d",
        "a/b + I(c**2) + bs(d, df=5):area",
        "-1 + a:b:c:d",
        "I(2**a) + I(b**-0.5)",
    ):
        assert Formula(f"length ~ {terms}", columns).terms


# ---------------------------------------------------------------- a table of a site


def long_word(path: Path, rows: int, groups: int = 1) -> Path:
    """A file of a few kilobytes, in which all rows have one word of two million letters."""
    words = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([0] * rows, pyarrow.int32()), pyarrow.array(["m" * 2_000_000])
    )
    table = pyarrow.table({"sex": words, "age": [1.0] * rows})
    size = -(-rows // groups)
    parquet.write_table(
        table, path, compression="zstd", dictionary_pagesize_limit=2**23, row_group_size=size, store_schema=False
    )
    assert path.stat().st_size < 1000 * (1 + groups)
    return path


def test_a_word_that_all_rows_have_is_held_once(tmp_path: Path) -> None:
    """Written out for each row it would be 20 GB."""
    table = read_parquet_table(long_word(tmp_path / "site.parquet", 10_000), lambda header: [0, 1])
    column = table.columns[0]
    assert (
        isinstance(column, Texts) and len(column.words) == 1 and not column.codes.any() and len(column.codes) == 10_000
    )


def test_many_long_words_are_claimed_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = long_word(tmp_path / "site.parquet", 200, groups=100)
    with pytest.raises(ValueError, match="claims to hold more than a file of its size"):
        read_parquet_table(path, lambda header: [0, 1])
    monkeypatch.setattr("roundelay.agents.data.parquet.ALWAYS", 2**40)
    assert len(read_parquet_table(path, lambda header: [0, 1]).places) == 200
