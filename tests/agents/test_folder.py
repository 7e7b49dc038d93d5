import stat
from dataclasses import replace
from pathlib import Path

import pytest

from roundelay.agents.agreement.epochs import plan_renewed, plan_with, plan_without
from roundelay.agents.agreement.folder import accept_ring, accepted_plans, is_accepted
from roundelay.agents.agreement.identity import Identity, save_identity
from roundelay.agents.agreement.plan import Member, RingPlan, digest_of
from roundelay.agents.agreement.policy import ANYTHING, write_policy
from roundelay.agents.agreement.ringfile import read_ring, write_ring
from tests.agents.conftest import expired, invited, ring_of, site

NAMES = ("Oslo", "Bergen", "New York")


def folder_of(identity: Identity, place: Path) -> Path:
    folder = place / f"{identity.name}-{digest_of(identity.key)[:6]}"
    save_identity(folder, identity)
    write_policy(folder, ANYTHING)
    return folder


@pytest.fixture
def oslo(tmp_path: Path) -> Path:
    return folder_of(site("Oslo"), tmp_path)


@pytest.fixture
def bergen(tmp_path: Path) -> Path:
    return folder_of(site("Bergen"), tmp_path)


def with_member(plan: RingPlan, name: str, **change: object) -> RingPlan:
    members = [replace(one, **change) if one.name == name else one for one in plan.members]  # type: ignore[arg-type]
    return replace(plan, members=tuple(members))


def test_an_accepted_file_is_kept_as_it_came(bergen: Path) -> None:
    text = write_ring(ring_of(*NAMES), site("Oslo"))
    assert accepted_plans(bergen) == () and not is_accepted(bergen, read_ring(text, "x").digest)
    signed = accept_ring(bergen, text)
    again = accept_ring(bergen, text)
    assert signed.digest == again.digest == read_ring(text, "x").digest and signed.signed_by == "Oslo"
    (path,) = (bergen / "accepted").iterdir()
    assert path.name == f"epoch-0-{signed.digest[:16]}.toml" and path.read_bytes() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert is_accepted(bergen, signed.digest)
    assert [one.digest for one in accepted_plans(bergen, signed.plan.run)] == [signed.digest]
    assert accepted_plans(bergen, "0" * 32) == ()


@pytest.mark.parametrize("digest", ["", "*", "0" * 64, "../" * 20])
def test_no_other_digest_is_accepted(bergen: Path, digest: str) -> None:
    accept_ring(bergen, write_ring(ring_of(*NAMES), site("Oslo")))
    assert not is_accepted(bergen, digest)


def test_a_digest_counts_whole(bergen: Path) -> None:
    signed = accept_ring(bergen, write_ring(ring_of(*NAMES), site("Oslo")))
    assert not is_accepted(bergen, signed.digest[:16] + "0" * 48)


def test_a_site_that_is_no_member_accepts_nothing(tmp_path: Path) -> None:
    folder = folder_of(site("Tromso"), tmp_path)
    with pytest.raises(ValueError, match="Tromso is not a member of this ring"):
        accept_ring(folder, write_ring(ring_of(*NAMES), site("Oslo")))
    assert not (folder / "accepted").exists()


def test_a_swapped_key_is_noticed_by_the_site_itself(bergen: Path) -> None:
    plan = ring_of(*NAMES)
    swapped = with_member(plan, "Bergen", certificate=site("Bergen", 1).certificate)
    with pytest.raises(ValueError, match="The certificate of Bergen in the ring file is not the one"):
        accept_ring(bergen, write_ring(swapped, site("Oslo")))


def test_a_changed_file_is_refused(bergen: Path) -> None:
    text = write_ring(ring_of(*NAMES), site("Oslo"))
    with pytest.raises(ValueError, match="The signature of Oslo does not fit the ring file"):
        accept_ring(bergen, text.replace(b"rho = 1.0", b"rho = 9.0"))


def test_an_expired_certificate_is_refused(bergen: Path) -> None:
    old = expired("Oslo")
    plan = with_member(ring_of(*NAMES), "Oslo", certificate=old.certificate)
    with pytest.raises(
        ValueError, match=r"The certificate of Oslo has expired on .*: let Oslo make new keys by roundelay ring rekey"
    ):
        accept_ring(bergen, write_ring(plan, site("Bergen")))


def test_a_run_has_one_file_an_epoch(bergen: Path) -> None:
    plan = ring_of(*NAMES)
    accept_ring(bergen, write_ring(plan, site("Oslo")))
    for other in (write_ring(plan, site("Bergen")), write_ring(with_member(plan, "Oslo", address=""), site("Oslo"))):
        with pytest.raises(ValueError, match="Another ring file of epoch 0 of this run is accepted here already"):
            accept_ring(bergen, other)
    another_run = accept_ring(bergen, write_ring(ring_of(*NAMES), site("Oslo")))
    assert len(accepted_plans(bergen)) == 2 and len(accepted_plans(bergen, another_run.plan.run)) == 1


def test_epochs_follow_each_other(oslo: Path, bergen: Path, tmp_path: Path) -> None:
    first = accept_ring(oslo, write_ring(ring_of(*NAMES), site("Oslo")))
    accept_ring(bergen, first.text)
    second = write_ring(plan_without(first.plan, ["New York"], previous=first.digest), site("Bergen"))
    accept_ring(oslo, second)
    third = write_ring(
        plan_with(read_ring(second, "x").plan, [invited(site("Tromso"))], previous=read_ring(second, "x").digest),
        site("Oslo"),
    )
    with pytest.raises(ValueError, match="is of epoch 2, and the one of epoch 1 is not accepted here: accept that one"):
        accept_ring(bergen, third)
    newcomer = folder_of(site("Tromso"), tmp_path)
    with pytest.raises(ValueError, match="Whoever was in it then may know the sum without Tromso"):
        accept_ring(newcomer, third)
    assert accepted_plans(newcomer) == ()
    accept_ring(newcomer, third, despite_difference=True)
    accept_ring(bergen, second)
    accept_ring(bergen, third)
    assert [one.plan.epoch for one in accepted_plans(bergen)] == [0, 1, 2]
    assert [one.plan.epoch for one in accepted_plans(newcomer)] == [2]


def test_a_change_follows_the_file_that_is_accepted(oslo: Path) -> None:
    first = accept_ring(oslo, write_ring(ring_of(*NAMES), site("Oslo")))
    other = write_ring(plan_without(first.plan, ["New York"], previous="ab" * 32), site("Oslo"))
    with pytest.raises(ValueError, match="follows another file of epoch 0 than the one accepted here"):
        accept_ring(oslo, other)


def test_nobody_signs_their_own_way_in(oslo: Path, tmp_path: Path) -> None:
    first = accept_ring(oslo, write_ring(ring_of(*NAMES), site("Oslo")))
    taken = plan_with(first.plan, [invited(site("Tromso"))], previous=first.digest)
    with pytest.raises(ValueError, match="signed by Tromso with a certificate that no member had in epoch 0"):
        accept_ring(oslo, write_ring(taken, site("Tromso")))
    fresh = plan_renewed(first.plan, invited(site("Bergen", 1)), previous=first.digest)
    with pytest.raises(ValueError, match="signed by Bergen with a certificate that no member had in epoch 0"):
        accept_ring(oslo, write_ring(fresh, site("Bergen", 1)))
    accept_ring(oslo, text := write_ring(fresh, site("New York")))
    accept_ring(folder_of(site("Bergen", 1), tmp_path), text, despite_difference=True)
    with pytest.raises(ValueError, match="The certificate of Bergen in the ring file is not the one in its folder"):
        accept_ring(folder_of(site("Bergen"), tmp_path), text)


def test_a_broken_accepted_file_is_named(bergen: Path) -> None:
    accept_ring(bergen, write_ring(ring_of(*NAMES), site("Oslo")))
    (path,) = (bergen / "accepted").iterdir()
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=path.name):
        accepted_plans(bergen)


def test_what_was_left_half_written_is_not_accepted(bergen: Path) -> None:
    text = write_ring(ring_of(*NAMES), site("Oslo"))
    (bergen / "accepted").mkdir()
    (bergen / "accepted" / f".epoch-0-{read_ring(text, 'x').digest[:16]}.toml.0a1b2c3d").write_bytes(text[:100])
    assert accepted_plans(bergen) == () and not is_accepted(bergen, read_ring(text, "x").digest)
    accept_ring(bergen, text)
    assert is_accepted(bergen, read_ring(text, "x").digest)


def test_a_failed_write_leaves_nothing(bergen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", no_space)
    with pytest.raises(OSError, match="No space"):
        accept_ring(bergen, write_ring(ring_of(*NAMES), site("Oslo")))
    assert list((bergen / "accepted").iterdir()) == []


def test_members_are_what_the_invitations_said() -> None:
    plan = ring_of(*NAMES)
    assert {one.name: one for one in plan.members} == {name: invited(site(name)).member for name in NAMES}
    assert all(isinstance(one, Member) for one in plan.members)
