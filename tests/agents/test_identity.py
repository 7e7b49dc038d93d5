import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, strategies as st

from roundelay.agents.agreement.identity import (
    check_certificate,
    expiry,
    fingerprint,
    identities,
    is_signed_by,
    load_identity,
    make_identity,
    renew_identity,
    save_identity,
    server_name,
    sign,
)
from roundelay.agents.agreement.names import check_address, check_site_name
from tests.agents.conftest import expired, site
from tests.agents.fuzzing import patient


def test_the_certificate_is_what_the_links_need() -> None:
    identity = make_identity("New York", days=30)
    certificate = x509.load_pem_x509_certificate(identity.certificate.encode())
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name == "secp256r1"
    assert certificate.version is x509.Version.v3 and certificate.issuer == certificate.subject
    assert constraints.critical and not constraints.value.ca
    assert names.get_values_for_type(x509.DNSName) == [server_name(identity.certificate)]
    assert certificate.not_valid_before_utc < datetime.now(UTC) - timedelta(hours=23)
    assert certificate.not_valid_after_utc - certificate.not_valid_before_utc == timedelta(days=31)
    assert expiry(identity.certificate) == certificate.not_valid_after_utc
    certificate.verify_directly_issued_by(certificate)


def test_the_server_name_is_a_label_of_its_own() -> None:
    names = {server_name(site("Oslo", turn).certificate) for turn in range(3)}
    assert len(names) == 3
    assert all(len(name) == 26 and name.replace("-", "").isalnum() and name.islower() for name in names)


def test_the_fingerprint_can_be_read_aloud() -> None:
    certificate = site("Oslo").certificate
    groups = fingerprint(certificate).split()
    digest = x509.load_pem_x509_certificate(certificate.encode()).fingerprint(x509.base.hashes.SHA256())  # type: ignore[attr-defined]
    assert [len(group) for group in groups] == [4] * 16
    assert "".join(groups) == digest.hex()


def test_no_secret_is_shown() -> None:
    identity = site("Oslo")
    assert "PRIVATE" not in repr(identity) and repr(identity.key)[2:-1] not in repr(identity)


def test_a_signature_fits_its_data_and_its_key_only() -> None:
    oslo, bergen = site("Oslo"), site("Bergen")
    signature = sign(oslo, b"data")
    assert is_signed_by(oslo.certificate, b"data", signature)
    assert not is_signed_by(oslo.certificate, b"Data", signature)
    assert not is_signed_by(bergen.certificate, b"data", signature)
    assert not is_signed_by(oslo.certificate, b"data", b"")
    assert not is_signed_by(oslo.certificate, b"data", signature[:-1])


def test_an_identity_comes_back_from_its_folder(tmp_path: Path) -> None:
    identity, folder = site("Oslo"), tmp_path / "deep" / "oslo"
    save_identity(folder, identity)
    again = load_identity(folder)
    assert again == identity
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) & 0o077 for path in folder.iterdir()} == {
        "key.pem": 0,
        "certificate.pem": 0o044,
    }


def test_an_empty_folder_is_closed_and_one_with_files_is_not(tmp_path: Path) -> None:
    empty, full = tmp_path / "empty", tmp_path / "full"
    for folder in (empty, full):
        folder.mkdir()
        folder.chmod(0o755)
    (full / "data.csv").write_text("x")
    save_identity(empty, site("Oslo"))
    assert stat.S_IMODE(empty.stat().st_mode) == 0o700
    with pytest.raises(ValueError, match="has other files and is open to other users: choose a new folder"):
        save_identity(full, site("Oslo"))
    assert stat.S_IMODE(full.stat().st_mode) == 0o755
    full.chmod(0o700)
    save_identity(full, site("Oslo"))


@pytest.mark.parametrize("file", ["key.pem", "certificate.pem"])
def test_an_identity_is_never_overwritten(tmp_path: Path, file: str) -> None:
    save_identity(tmp_path / "a", site("Oslo"))
    kept = tmp_path / "b"
    kept.mkdir(mode=0o700)
    (kept / file).write_bytes((tmp_path / "a" / file).read_bytes())
    with pytest.raises(ValueError, match="has an identity already, and it is never overwritten"):
        save_identity(kept, site("Bergen"))
    assert [path.name for path in kept.iterdir()] == [file]


def test_a_broken_identity_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"has no whole identity, key\.pem is missing: make one by roundelay ring init"
    ):
        load_identity(tmp_path)
    save_identity(tmp_path / "oslo", site("Oslo"))
    save_identity(tmp_path / "bergen", site("Bergen"))
    for file, bad in (
        ("key.pem", b"x"),
        ("key.pem", (tmp_path / "bergen" / "key.pem").read_bytes()),
        ("certificate.pem", b"\xff"),
    ):
        good = (tmp_path / "oslo" / file).read_bytes()
        (tmp_path / "oslo" / file).write_bytes(bad)
        with pytest.raises(ValueError, match="its key and its certificate do not belong together"):
            load_identity(tmp_path / "oslo")
        (tmp_path / "oslo" / file).write_bytes(good)
    assert load_identity(tmp_path / "oslo") == site("Oslo")


def test_new_keys_stand_beside_the_old_ones(tmp_path: Path) -> None:
    folder, names = tmp_path / "oslo", {"key.pem", "certificate.pem"}
    save_identity(folder, site("Oslo"))
    fresh = [make_identity("Oslo") for _ in range(2)]
    for number, identity in enumerate(fresh, start=2):
        renew_identity(folder, identity)
        assert load_identity(folder) == identity
        keys = folder / f"keys-{number}"
        assert stat.S_IMODE(keys.stat().st_mode) == 0o700 and {path.name for path in keys.iterdir()} == names
    assert identities(folder) == (site("Oslo"), *fresh)
    assert {path.name for path in folder.iterdir()} == {*names, "keys-2", "keys-3"}


@pytest.mark.parametrize("name", ["O", "Oslo", "New York", "a-b_c.d 9", "x" * 40])
def test_good_names(name: str) -> None:
    check_site_name(name)


@pytest.mark.parametrize("name", ["", " ", " Oslo", "Oslo ", "x" * 41, "Tromsø", "a\nb", "a/b", "a\x1b[2J", "a,b"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"A site can't be called .*: use 1 to 40 of the letters") as refused:
        make_identity(name)
    assert "\n" not in str(refused.value) and "\x1b" not in str(refused.value)


@pytest.mark.parametrize("address", ["", "oslo.example.org:7443", "10.0.0.7:1", "[::1]:65535", "localhost:80"])
def test_good_addresses(address: str) -> None:
    check_address(address)


@pytest.mark.parametrize(
    "address",
    ["oslo", "oslo:", ":80", "oslo:0", "oslo:65536", "unix:/tmp/x:1", "a b:80", "dns:///x:80", "x" * 300 + ":1"],
)
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(ValueError, match="can't be dialled: write host:port"):
        check_address(address)


@pytest.mark.parametrize("days", [0, -1, 36_501, 1.5])
def test_days_have_bounds(days: int) -> None:
    with pytest.raises(ValueError, match="days is"):
        make_identity("Oslo", days)


def test_an_expired_certificate_says_so() -> None:
    assert expiry(expired("Oslo").certificate) < datetime.now(UTC)


def test_a_certificate_is_for_one_site() -> None:
    check_certificate(site("Oslo").certificate, "Oslo", "here")
    with pytest.raises(ValueError, match="The certificate of Bergen in here is for 'Oslo'"):
        check_certificate(site("Oslo").certificate, "Bergen", "here")


@patient
@given(st.one_of(st.text(), st.integers(0, 600), st.tuples(st.integers(0, 600), st.characters())))
def test_a_certificate_has_one_spelling(change: str | int | tuple[int, str]) -> None:
    good = site("Oslo").certificate
    if isinstance(change, tuple):
        bad = good[: change[0]] + change[1] + good[change[0] + 1 :]
    else:
        bad = change if isinstance(change, str) else good[:change]
    try:
        check_certificate(bad, "Oslo", "here")
    except ValueError as refused:
        assert "can't be used" in str(refused) or "is for" in str(refused)
    else:
        # A changed serial number or signature still makes a certificate; the file's signature is over its bytes.
        assert bad.count("BEGIN CERTIFICATE") == 1 and server_name(bad) == server_name(good)
