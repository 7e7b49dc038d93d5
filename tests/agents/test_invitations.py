import base64
from dataclasses import replace
from typing import Any

import pytest
import tomli_w
from hypothesis import given, strategies as st

from roundelay.agents.agreement.identity import Identity, sign
from roundelay.agents.agreement.invitations import read_invitation, write_invitation
from roundelay.agents.agreement.plan import Column
from roundelay.agents.agreement.signed_text import parsed, signed_text, split_signature
from tests.agents.conftest import COLUMNS, invited, site
from tests.agents.fuzzing import changed_bytes, changed_lines, changed_values, patient, strange_toml

ONE = {"name": "a", "unit": "", "values": "levels"}


def good() -> bytes:
    return write_invitation(site("Oslo"), "oslo.example.org:7443", COLUMNS)


def tables() -> dict[str, Any]:
    return parsed(split_signature(good(), "x")[0], "x")


def test_an_invitation_comes_back() -> None:
    read = read_invitation(good(), "oslo.toml")
    identity = site("Oslo")
    assert (read.name, read.certificate) == ("Oslo", identity.certificate)
    assert (read.address, read.columns) == ("oslo.example.org:7443", COLUMNS)
    assert read.member.address == read.address


def test_it_says_what_kind_of_values_the_columns_have() -> None:
    said = (
        Column("sex", values="levels", levels=("female", "male")),
        Column("seen", values="date"),
        Column("note", values="levels"),
        Column("stage", values="number", levels=("1", "2")),
        Column("age", "years"),
    )
    read = invited(site("Oslo"), columns=said).columns
    assert [(one, one.values, one.levels) for one in read] == [(one, one.values, one.levels) for one in said]


def test_it_has_no_secret() -> None:
    text, identity = good(), site("Oslo")
    assert b"PRIVATE" not in text
    body = b"".join(identity.key.splitlines()[1:-1])
    assert body not in text.replace(b"\n", b"")


def test_a_swapped_address_is_noticed() -> None:
    text = good().replace(b"oslo.example.org", b"bergen.example.org")
    with pytest.raises(ValueError, match=r"The signature of Oslo does not fit oslo\.toml: the file was changed"):
        read_invitation(text, "oslo.toml")


def test_a_stranger_cannot_sign_for_a_site() -> None:
    text = signed_text(tables(), site("Bergen"))
    with pytest.raises(ValueError, match="The signature of Oslo does not fit"):
        read_invitation(text, "oslo.toml")


def test_windows_line_ends_are_named() -> None:
    with pytest.raises(ValueError, match="does not end with a signature"):
        read_invitation(good().replace(b"\n", b"\r\n"), "oslo.toml")
    body, _ = split_signature(good(), "x")
    with pytest.raises(ValueError, match="line ends count"):
        read_invitation(good().replace(body, body.replace(b"\n", b"\r\n")), "oslo.toml")


@pytest.mark.parametrize(
    "columns",
    [
        (Column(""),),
        (Column("a"), Column("a", "cm")),
        (Column("a\nb"),),
        (Column("a", "\x1b[2J"),),
        (Column(" a"),),
        (Column("a  b"),),
        (Column("x" * 101),),
    ],
)
def test_bad_columns_are_not_sent(columns: tuple[Column, ...]) -> None:
    with pytest.raises(ValueError, match="the invitation of Oslo"):
        write_invitation(site("Oslo"), "", columns)


def folded(text: str) -> str:
    return " ".join(text.split())


@patient
@given(st.lists(st.text("abcäπ\"'\\ #[]=.", min_size=1, max_size=100).map(folded).filter(bool), unique=True))
def test_any_printable_columns_can_be_sent(names: list[str]) -> None:
    columns = tuple(Column(name, folded(name[:3])) for name in names)
    assert invited(site("Oslo"), columns=columns).columns == columns


@pytest.mark.parametrize("letter", [".", "𝛑", '"', "\\"])
def test_the_longest_columns_can_be_sent(letter: str) -> None:
    columns = (Column(letter * 100, letter * 100), Column("x" + letter * 40, letter * 40))
    assert invited(site("Oslo"), columns=columns).columns == columns


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"format": 2},
            r"oslo\.toml is of an earlier release, in format 2 where this one has 3: .* roundelay ring offer",
        ),
        ({"format": 4}, "of a later release, .* install"),
        ({"format": "3"}, "The field format of .* is '3': use a whole number"),
        ({"name": "a/b"}, "A site can't be called 'a/b'"),
        ({"name": "Bergen"}, "The certificate of Bergen in .* is for 'Oslo'"),
        ({"address": "x"}, "The address 'x' can't be dialled"),
        ({"mask_key": "0"}, "has the field 'mask_key', which is not known"),
        ({"columns": 3}, "is 3: use a list of tables with name and unit"),
        ({"columns": [{"name": "a"}]}, "has no field unit"),
        ({"columns": [{"name": "a", "unit": "", "more": 1}]}, "has the field 'more', which is not known"),
        ({"columns": [{"name": "a", "unit": ""}]}, "has no field values"),
        ({"columns": [{**ONE, "values": "words"}]}, "use number, levels, date"),
        ({"columns": [{**ONE, "levels": ["b", "b"]}]}, "name every level once"),
        ({"columns": [{**ONE, "levels": ["b\x1b[2J"]}]}, "letters that can be printed"),
        ({"columns": [{**ONE, "levels": ["b" * 101]}]}, "at most 100 letters"),
        ({"columns": [{**ONE, "levels": [*map(str, range(51))]}]}, "may have at most 50"),
        ({"columns": [{**ONE, "levels": [""]}]}, "name every level once"),
        ({"columns": [{**ONE, "levels": [1]}]}, "a list of words"),
        ({"columns": [{**ONE, "conversions": []}]}, "has the field 'conversions', which is not known"),
        ({"more": 1}, "has the field 'more', which is not known"),
    ],
)
def test_refusals_name_the_field(change: dict[str, Any], words: str) -> None:
    table = {**tables()["invitation"], **change}
    with pytest.raises(ValueError, match=words):
        read_invitation(signed_text({"invitation": table}, site("Oslo")), "oslo.toml")


def test_fields_can_not_be_left_out() -> None:
    for name in tables()["invitation"]:
        table = {key: value for key, value in tables()["invitation"].items() if key != name}
        with pytest.raises(ValueError, match=f"has no field {name}"):
            read_invitation(signed_text({"invitation": table}, site("Oslo")), "oslo.toml")


def test_it_ends_with_its_signature() -> None:
    for text in (b"", b"[signature]\n", good()[:-1], good() + b"\n", good() + good(), b"x" * 5_000_000):
        with pytest.raises(ValueError):
            read_invitation(text, "oslo.toml")


def test_a_signature_has_one_spelling() -> None:
    text = next(text for text in iter(good, b"") if text.endswith(b'="\n'))  # most have bits to spare
    place = text.rindex(b'"\n') - 1 - text.endswith(b'=="\n')
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    other = letters[letters.index(text[place - 1]) ^ 1]
    changed = text[: place - 1] + bytes([other]) + text[place:]
    values = [base64.b64decode(one.rpartition(b"value = ")[2].strip(b'"\n')) for one in (text, changed)]
    assert changed != text and values[0] == values[1]
    with pytest.raises(ValueError, match="does not end with a signature"):
        read_invitation(changed, "oslo.toml")


def test_deep_nesting_and_long_lines_are_refused() -> None:
    for body, words in (
        (b"a = " + b"[\n" * 50_000, "nested too deeply"),
        (b"a" + b".a" * 100_000 + b" = 1\n", "a line of more than 500 bytes"),
        (b"a" + b".a" * 101 + b" = 1\n", "or 100 dots"),
        (b"a = " + b"9" * 400 + b"\n", "which is not known"),
        (b"a = 2020-99-99\n", "can't be read as TOML"),
        (b"\xff\n", "can't be read as TOML"),
    ):
        with pytest.raises(ValueError, match=words):
            read_invitation(with_signature(body + b"\n", site("Oslo")), "oslo.toml")


def with_signature(body: bytes, signer: Identity) -> bytes:
    return body + b'[signature]\nvalue = "' + base64.b64encode(sign(signer, body)) + b'"\n'


def refused_or_same(text: bytes) -> None:
    """Nothing but a ValueError with a sentence, or what was written."""
    try:
        read = read_invitation(text, "oslo.toml")
    except ValueError as refused:
        assert str(refused).endswith((".", "….")) and "oslo.toml" in str(refused), refused
    else:
        assert replace(read) == read


@patient
@given(st.binary(max_size=300))
def test_any_bytes(text: bytes) -> None:
    refused_or_same(text)
    refused_or_same(with_signature(text + b"\n", site("Oslo")))


@patient
@given(changed_bytes(good()))
def test_one_changed_byte_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"oslo\.toml"):
        read_invitation(text, "oslo.toml")


@patient
@given(changed_lines(good()))
def test_changed_lines(text: bytes) -> None:
    refused_or_same(text)


@patient
@given(changed_values(tables()))
def test_changed_values_that_are_signed(changed: dict[str, Any]) -> None:
    refused_or_same(signed_text(changed, site("Oslo")))


@patient
@given(strange_toml())
def test_strange_toml(strange: dict[str, Any]) -> None:
    refused_or_same(with_signature(tomli_w.dumps(strange).encode() + b"\n", site("Oslo")))
