"""A site's certificate: the one kind that a ring takes, and what is read from it."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from roundelay.agents.names import in_short

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
except ImportError:
    raise ImportError(
        "The keys of a ring need the package cryptography: install it by pip install 'roundelay[ring]'."
    ) from None

LONGEST_CERTIFICATE = 4096


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
