"""Whoever carries a ring file can write its signature in another way that fits as well: sites must not take that for another agreement."""

from __future__ import annotations

import base64
from hashlib import sha256
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

import roundelay as rl
from roundelay.agents.agreement.epochs import plan_ring
from roundelay.agents.agreement.folder import accept_ring, accepted_plans
from roundelay.agents.agreement.identity import save_identity
from roundelay.agents.agreement.plan import Stopping, Task
from roundelay.agents.agreement.policy import ANYTHING, write_policy
from roundelay.agents.agreement.ringfile import read_ring, write_ring
from roundelay.agents.agreement.signed_text import HEAD, split_signature
from tests.agents.conftest import invited, site

# The order of P-256: with (r, s) the signature (r, n − s) fits too.
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
PLAN = plan_ring(
    [invited(site(name)) for name in ("Oslo", "Bergen")], None, rl.SealedLaps(), Task("custom", dim=2), Stopping()
)


def spelled_otherwise(text: bytes) -> bytes:
    """The same file with the other signature, which needs no key."""
    body, signature = split_signature(text, "the file")
    first, second = decode_dss_signature(signature)
    value = base64.b64encode(encode_dss_signature(first, ORDER - second))
    return body + HEAD + b'value = "' + value + b'"\n'


def test_a_signature_that_is_spelled_otherwise_is_of_the_same_agreement(tmp_path: Path) -> None:
    text = write_ring(PLAN, site("Oslo"))
    other = spelled_otherwise(text)
    assert sha256(text).digest() != sha256(other).digest()  # the control: by the bytes of the file it was another
    assert read_ring(text, "one").digest == read_ring(other, "other").digest
    save_identity(tmp_path / "Bergen", site("Bergen"))
    write_policy(tmp_path / "Bergen", ANYTHING)
    accept_ring(tmp_path / "Bergen", text)
    accept_ring(tmp_path / "Bergen", other)  # it was refused as another file of this epoch
    assert len(accepted_plans(tmp_path / "Bergen")) == 1


def test_nor_does_one_that_is_signed_anew_differ() -> None:
    assert (
        read_ring(write_ring(PLAN, site("Oslo")), "x").digest == read_ring(write_ring(PLAN, site("Oslo")), "x").digest
    )
