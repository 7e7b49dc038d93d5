"""What a site sends to the others before there is a ring: who it is and where, and no secret.

It is signed by the site's own key, so that nobody can put another mask key beside its certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roundelay.agents.certificates import is_signed_by
from roundelay.agents.identity import Identity
from roundelay.agents.plan import Column, Member
from roundelay.agents.signed_text import (
    changed_since,
    parsed,
    refuse_other_tables,
    signed_text,
    split_signature,
    table_of,
)
from roundelay.agents.site_tables import column_table, columns_from, member_from, member_table

FORMAT = 1


@dataclass(frozen=True)
class Invitation:
    """A site's name, certificate (PEM), public mask key, address ("" where it can't be dialled) and columns."""

    name: str
    certificate: str
    mask_key: bytes
    address: str = ""
    columns: tuple[Column, ...] = ()

    @property
    def member(self) -> Member:
        """The site as a member of a ring."""
        return Member(self.name, self.certificate, self.mask_key, self.address)


def write_invitation(identity: Identity, address: str = "", columns: Sequence[Column] = ()) -> bytes:
    """The text of a site's invitation."""
    member = Member(identity.name, identity.certificate, identity.public_mask_key, address)
    table = {"format": FORMAT, **member_table(member), "columns": [column_table(column) for column in columns]}
    text = signed_text({"invitation": table}, identity)
    read_invitation(text, f"the invitation of {identity.name}")  # nothing is sent that the others refuse
    return text


def read_invitation(text: bytes, where: str) -> Invitation:
    """The invitation in a text; `where` is how a sentence calls it, such as its path."""
    body, signature = split_signature(text, where)
    tables = parsed(body, where)
    refuse_other_tables(tables, ("invitation",), where)
    fields = table_of(tables, "invitation", where)
    fields.only("format", "name", "address", "mask_key", "certificate", "columns")
    fields.whole("format", FORMAT, FORMAT)
    member = member_from(fields, where)
    if not is_signed_by(member.certificate, body, signature):
        raise changed_since(where, member.name)
    return Invitation(member.name, member.certificate, member.mask_key, member.address, columns_from(fields, "columns"))
