"""Who a site is: a key, and a self-signed certificate, for its links and for all that it signs. The key never leaves it."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from roundelay.agents.agreement.disk import PUBLIC, sync_folder, write_new
from roundelay.agents.agreement.names import check_site_name
from roundelay.agents.agreement.passphrase import passphrase
from roundelay.kernels.checks import whole_number
from roundelay.tables import in_short

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
        load_pem_private_key,
    )
except ImportError:
    raise ImportError(
        "The keys of a ring need the package cryptography: install it by pip install 'roundelay[ring]'."
    ) from None

LONGEST_CERTIFICATE = 4096
KEY_FILE, CERTIFICATE_FILE = "key.pem", "certificate.pem"
MOST_DAYS = 36_500
CLOSED = b"ENCRYPTED PRIVATE KEY"  # in the first line of a key that needs a passphrase


@dataclass(frozen=True)
class Identity:
    """A site's own: its name, its key (PEM, PKCS8), and its certificate (PEM)."""

    name: str
    key: bytes = field(repr=False)
    certificate: str


def make_identity(name: str, days: int = 730) -> Identity:
    """New keys from the operating system, and a certificate that is good for so many days."""
    if whole_number("days", days, least=1) > MOST_DAYS:
        raise ValueError(f"days is {days}: use at most {MOST_DAYS}, a hundred years.")
    now = datetime.now(UTC)
    return _identity_between(name, now - timedelta(days=1), now + timedelta(days=days))  # clocks differ


def _identity_between(name: str, begin: datetime, end: datetime) -> Identity:
    """An identity whose certificate is good from one time to another."""
    check_site_name(name)
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(dns_name(key.public_key()))]), critical=False)
        .sign(key, SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Identity(name, private, certificate.public_bytes(Encoding.PEM).decode("ascii"))


def sign(identity: Identity, data: bytes) -> bytes:
    """The site's signature (ECDSA, P-256, SHA-256) of the data."""
    key = load_pem_private_key(identity.key, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("The key of the identity is not an elliptic curve key: make another identity.")
    return key.sign(data, ec.ECDSA(SHA256()))


# ---------------------------------------------------------------- its folder


def save_identity(folder: Path, identity: Identity, words: bytes = b"") -> None:
    """Write the identity into a folder that only this user may enter; one that is there stays as it is.

    Where there are `words`, a passphrase, the key is closed by them.
    """
    folder = Path(folder)
    for file in (KEY_FILE, CERTIFICATE_FILE):
        if (folder / file).exists():
            raise ValueError(
                f"The folder {folder} has an identity already, and it is never overwritten: choose another folder."
            )
    _make_private(folder)
    _write(folder, identity, words)


def renew_identity(folder: Path, fresh: Identity) -> None:
    """Write new keys beside the old ones, with which the site is in its rings until they are planned with the new."""
    folder = Path(folder)
    held = identities(folder)
    words = passphrase() if CLOSED in (folder / KEY_FILE).read_bytes() else b""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".keys-") as place:
        whole = Path(place) / "whole"
        whole.mkdir(mode=0o700)
        _write(whole, fresh, words)
        whole.rename(_later_keys(folder, len(held)))
    sync_folder(folder)


def identities(folder: Path) -> tuple[Identity, ...]:
    """The identities of a site, from its first one to its newest."""
    folder = Path(folder)
    held = [_read(folder)]
    while _later_keys(folder, len(held)).is_dir():
        held.append(_read(_later_keys(folder, len(held))))
    return tuple(held)


def load_identity(folder: Path) -> Identity:
    """The newest identity in a folder."""
    return identities(folder)[-1]


def _later_keys(folder: Path, renewals: int) -> Path:
    return folder / f"keys-{renewals + 1}"


def _write(folder: Path, identity: Identity, words: bytes) -> None:
    write_new(folder / KEY_FILE, _closed(identity.key, words))
    write_new(folder / CERTIFICATE_FILE, identity.certificate.encode(), PUBLIC)
    sync_folder(folder)


def _read(folder: Path) -> Identity:
    try:
        key, certificate = ((folder / file).read_bytes() for file in (KEY_FILE, CERTIFICATE_FILE))
    except FileNotFoundError as missing:
        raise ValueError(
            f"The folder {folder} has no whole identity, {Path(missing.filename).name} is missing: make one by "
            "roundelay ring init, or name the folder that has it."
        ) from None
    key = _opened(key, folder / KEY_FILE)
    try:
        text = certificate.decode("ascii")
        identity = Identity(site_of(text), key, text)
        whole = is_signed_by(text, b"whose key", sign(identity, b"whose key"))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        whole = False
    if not whole:
        raise ValueError(
            f"The identity in {folder} can't be used, its key and its certificate do not belong together: "
            "restore the folder from a copy, or make another identity and let the ring renew it."
        )
    return identity


def _closed(key: bytes, words: bytes) -> bytes:
    """The key as it stands on disk: closed by a passphrase, or as it is without any."""
    if not words:
        return key
    return load_pem_private_key(key, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(words)
    )


def _opened(key: bytes, path: Path) -> bytes:
    """The key as it is used, in memory only; the passphrase is asked for where it needs one."""
    if CLOSED not in key:
        return key
    words = passphrase()
    try:
        private = load_pem_private_key(key, words)
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError(
            f"The passphrase does not open {path}, or the file is damaged: try again, or restore the folder from a copy."
        ) from None
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _make_private(folder: Path) -> None:
    """Make the folder, or close it; one with other files in it is not closed behind the user's back."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077 == 0:
        return
    if any(folder.iterdir()):
        raise ValueError(
            f"The folder {folder} has other files and is open to other users: choose a new folder for the keys, "
            f"or close it by chmod 700 {folder}."
        )
    folder.chmod(0o700)


# ---------------------------------------------------------------- what a certificate says


def server_name(certificate: str) -> str:
    """The DNS name in a certificate, by which a link asks for it; it says nothing of where the site is."""
    return dns_name(_public_key(_loaded(certificate)))


def fingerprint(certificate: str) -> str:
    """SHA-256 of a certificate in groups of four digits, to be read aloud and compared."""
    digits = _loaded(certificate).fingerprint(SHA256()).hex()
    return " ".join(digits[place : place + 4] for place in range(0, len(digits), 4))


def expiry(certificate: str) -> datetime:
    """Until when a certificate is good, in UTC."""
    return _loaded(certificate).not_valid_after_utc.astimezone(UTC)


def site_of(certificate: str) -> str:
    """The name of the site that a certificate is for."""
    return _common_name(_loaded(certificate))


def is_signed_by(certificate: str, data: bytes, signature: bytes) -> bool:
    """Whether the key of this certificate signed the data."""
    try:
        _public_key(_loaded(certificate)).verify(signature, data, ec.ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def check_certificate(certificate: str, name: str, where: str) -> None:
    """Refuse what is not a certificate as `make_identity` makes it, for the site of this name."""
    try:
        found = _common_name(_loaded(certificate))
    except ValueError as error:
        raise ValueError(f"The certificate of {name} in {where} can't be used. {error}") from None
    if found != name:
        raise ValueError(
            f"The certificate of {name} in {where} is for {in_short(found)}: let {name} send its own invitation."
        )


def dns_name(public_key: ec.EllipticCurvePublicKey) -> str:
    """The DNS name for a key: a label that is always allowed, and no other key has."""
    encoded = public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return "roundelay-" + hashlib.sha256(encoded).hexdigest()[:16]


def _loaded(text: str) -> x509.Certificate:
    """The certificate, in the one spelling that there is of it."""
    try:
        if not isinstance(text, str) or len(text) > LONGEST_CERTIFICATE:
            raise ValueError
        certificate = x509.load_pem_x509_certificate(text.encode("ascii"))
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        good = (
            certificate.public_bytes(Encoding.PEM).decode("ascii") == text
            and list(names) == [x509.DNSName(dns_name(_public_key(certificate)))]
            and bool(_common_name(certificate))
        )
    except Exception:  # a library may fail in any way on the bytes of a stranger
        good = False
    if not good:
        raise ValueError(
            "It is not a certificate that roundelay ring init made: let the site send its invitation again."
        )
    return certificate


def _public_key(certificate: x509.Certificate) -> ec.EllipticCurvePublicKey:
    key = certificate.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("The key of the certificate is not on the curve P-256.")
    return key


def _common_name(certificate: x509.Certificate) -> str:
    (entry,) = certificate.subject
    if entry.oid != x509.NameOID.COMMON_NAME or not isinstance(entry.value, str):
        raise ValueError("The certificate does not say whose it is.")
    return entry.value
