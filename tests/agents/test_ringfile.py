from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import tomli_w
from hypothesis import given, strategies as st

from roundelay import WADMM
from roundelay.agents.agreement.plan import Column, RingPlan, Stopping, Task, digest_of
from roundelay.agents.agreement.ringfile import read_ring, write_ring
from roundelay.agents.agreement.signed_text import parsed, signed_text, split_signature
from tests.agents.conftest import TASK, ring_of, site
from tests.agents.fuzzing import changed_bytes, changed_lines, changed_values, patient, strange_toml
from tests.agents.test_invitations import with_signature

NAMES = ("Oslo", "Bergen", "New York")


@cache
def plan() -> RingPlan:
    return ring_of(*NAMES)


@cache
def good() -> bytes:
    return write_ring(plan(), site("Oslo"))


def tables() -> dict[str, Any]:
    return parsed(split_signature(good(), "x")[0], "x")


def same_plan(one: RingPlan, other: RingPlan) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in RingPlan.__dataclass_fields__)


def test_a_plan_comes_back() -> None:
    signed = read_ring(good(), "ring.toml")
    assert same_plan(signed.plan, plan())
    assert (signed.signed_by, signed.digest, signed.text) == (
        "Oslo",
        digest_of(split_signature(good(), "ring.toml")[0]),
        good(),
    )


@pytest.mark.parametrize(
    "change",
    [
        {"stopping": Stopping(None, 7)},
        {"task": Task("custom", dim=10**8)},
        {"task": replace(TASK, kind="least_squares", ridge=0.5, missing="drop", standardise=False, intercept=False)},
        {"task": replace(TASK, features=tuple(Column(f"πr² \"{n}\" 'x' [y] \\", "µg/m³") for n in "abc"))},
        {"epoch": 3, "previous": "ab" * 32},
        {"algorithm": WADMM(rho=2.0)},
        {"links": ((0, 1), (0, 2)), "order": (0, 1, 0, 2)},
    ],
)
def test_every_field_comes_back(change: dict[str, Any]) -> None:
    changed = replace(plan(), **change)
    assert same_plan(read_ring(write_ring(changed, site("Bergen")), "ring.toml").plan, changed)


def test_it_is_read_by_people() -> None:
    text = good().decode()
    order = ['    "Oslo",\n', '    "Bergen",\n', '    "New York",\n']
    assert all(line in text for line in order) and 'links = "all"\n' in text
    assert '[algorithm.start]\nkind = "SealedStart"\nbits = 40\n' in text
    assert "-----BEGIN CERTIFICATE-----\n" in text


def test_a_file_has_no_secret() -> None:
    assert b"PRIVATE" not in good()


def test_only_a_member_signs() -> None:
    for signer in (site("Tromso"), site("Oslo", 1)):
        with pytest.raises(ValueError, match=f"{signer.name} can't sign this ring file"):
            write_ring(plan(), signer)
    changed = tables()
    changed["ring"]["signed_by"] = "Tromso"
    with pytest.raises(ValueError, match=r"The field signed_by of .* is 'Tromso': let a member sign the file, one of"):
        read_ring(signed_text(changed, site("Tromso")), "ring.toml")


def test_a_wrong_signature_is_refused() -> None:
    with pytest.raises(ValueError, match=r"The signature of Oslo does not fit ring\.toml"):
        read_ring(signed_text(tables(), site("Bergen")), "ring.toml")
    with pytest.raises(ValueError, match="The signature of Oslo does not fit"):
        read_ring(good().replace(b"rho = 1.0", b"rho = 2.0"), "ring.toml")
    swapped = good().replace(site("Bergen").certificate.encode(), site("Bergen", 1).certificate.encode())
    assert swapped != good()
    with pytest.raises(ValueError, match="The signature of Oslo does not fit"):
        read_ring(swapped, "ring.toml")


def test_a_plan_that_the_others_refuse_is_not_written() -> None:
    with pytest.raises(ValueError, match="the new ring file"):
        write_ring(replace(plan(), task=replace(TASK, features=(Column("x" * 101),))), site("Oslo"))


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("ring", "format"), 1, "format"),
        (("ring", "run"), "x", "The run id is 'x'"),
        (("ring", "epoch"), -1, "The field epoch of .* is -1: use a whole number from 0"),
        (("ring", "epoch"), 1.0, "The field epoch"),
        (("ring", "epoch"), 1, "use the digest of the file of the epoch before"),
        (("ring", "epoch"), 10**12, "The field epoch"),
        (("ring", "previous"), "ab" * 32, "leave it empty in the first epoch"),
        (("ring", "order"), ["Oslo"], "does not meet every member"),
        (("ring", "order"), ["Oslo", "Bergen", "nobody"], "names 'nobody', which is not a member"),
        (("ring", "order"), [0, 1, 2], "use a list of names"),
        (("ring", "links"), [["Oslo", "Bergen"]], "which have no link|not connected"),
        (("ring", "links"), [["Oslo"]], "use a list of pairs of names"),
        (("ring", "links"), [["Oslo", "Oslo"]], r"ring\.toml can't be used"),
        (("ring", "links"), "some", "use a list of pairs of names"),
        (("ring", "more"), 1, "has the field 'more', which is not known"),
        (("task", "kind"), "guess", "The kind of the fit is 'guess'"),
        (("task", "kind"), "custom", "must have dim where the kind is custom"),
        (("task", "dim"), 3, "must have dim where the kind is custom, and only there"),
        (("task", "ridge"), -1.0, "ridge is -1.0"),
        (("task", "ridge"), float("inf"), "ridge is inf"),
        (("task", "missing"), "guess", "missing is 'guess'"),
        (("task", "features"), [], "at least one feature"),
        (("task", "target", "name"), "age", "The column 'age' is twice"),
        (("task", "standardise"), 1, "use true or false"),
        (("stopping", "hops"), 0, "The field hops"),
        (("stopping", "tolerance"), -1.0, "tolerance is -1.0"),
        (("stopping", "tolerance"), "x", "The field tolerance"),
        (("algorithm", "kind"), "ZeroStart", "The field kind of .*algorithm.* is 'ZeroStart'"),
        (("algorithm", "rho"), "x", "The field rho of .algorithm. in ring.toml is 'x'"),
        (("member", 0, "name"), "a/b", "A site can't be called 'a/b'"),
        (("member", 0, "address"), "x", "The address 'x' can't be dialled"),
        (("member", 0, "more"), "x", "has the field 'more'"),
        (("member", 0, "certificate"), "x", "The certificate of Oslo in ring.toml can't be used"),
        (("more",), {}, "ring.toml has 'more', which is not known"),
        (("task",), 3, "has no table .task."),
        (("member",), 3, "The field member of ring.toml is 3: use a list of tables"),
    ],
)
def test_refusals_are_sentences(place: tuple[Any, ...], value: Any, words: str) -> None:
    changed: Any = tables()
    holder = changed
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    with pytest.raises(ValueError, match=words):
        read_ring(signed_text(changed, site("Oslo")), "ring.toml")


def test_fields_can_not_be_left_out() -> None:
    for table in ("ring", "task", "stopping"):
        for name in set(tables()[table]) - {"tolerance", "target"}:
            changed = tables()
            del changed[table][name]
            with pytest.raises(ValueError, match=name):
                read_ring(signed_text(changed, site("Oslo")), "ring.toml")
    for name in tables():
        changed = tables()
        del changed[name]
        with pytest.raises(ValueError, match=name):
            read_ring(signed_text(changed, site("Oslo")), "ring.toml")


def test_two_members_are_never_one() -> None:
    changed = tables()
    changed["member"].append({**changed["member"][1], "certificate": site("Bergen", 1).certificate})
    with pytest.raises(ValueError, match="Two members have the same name"):
        read_ring(signed_text(changed, site("Oslo")), "ring.toml")


def test_absurd_sizes_are_refused() -> None:
    for text, words in (
        (b"x" * (4 * 2**20 + 1), "has more than 4194304 bytes"),
        (
            signed_text(tables() | {"member": [{}] * 10_001}, site("Oslo")),
            "has 10001 entries: it may have at most 10000",
        ),
        (
            signed_text(tables() | {"task": {**tables()["task"], "kind": "custom", "dim": 10**8 + 1}}, site("Oslo")),
            "dim",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            read_ring(text, "ring.toml")


def refused_or_read(text: bytes) -> None:
    """Nothing but a ValueError with a sentence, or a plan that can be written again."""
    try:
        signed = read_ring(text, "ring.toml")
    except ValueError as refused:
        assert str(refused).endswith(".") and "ring.toml" in str(refused), refused
    else:
        assert same_plan(read_ring(write_ring(signed.plan, site(signed.signed_by)), "ring.toml").plan, signed.plan)


@patient
@given(st.binary(max_size=300))
def test_any_bytes(text: bytes) -> None:
    refused_or_read(text)
    refused_or_read(with_signature(text + b"\n", site("Oslo")))


@patient
@given(changed_bytes(good()))
def test_one_changed_byte_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"ring\.toml"):
        read_ring(text, "ring.toml")


def test_a_changed_byte_anywhere_is_refused() -> None:
    text = good()
    for place in range(len(text)):
        with pytest.raises(ValueError):
            read_ring(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :], "ring.toml")


@patient
@given(changed_lines(good()))
def test_changed_lines(text: bytes) -> None:
    if text != good():
        with pytest.raises(ValueError, match=r"ring\.toml"):
            read_ring(text, "ring.toml")


@patient
@given(changed_values(tables()))
def test_changed_values_that_are_signed(changed: dict[str, Any]) -> None:
    refused_or_read(signed_text(changed, site("Oslo")))


@patient
@given(strange_toml())
def test_strange_toml(strange: dict[str, Any]) -> None:
    refused_or_read(with_signature(tomli_w.dumps(strange).encode() + b"\n", site("Oslo")))
