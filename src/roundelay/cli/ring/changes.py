"""`roundelay ring drop`, `join` and `renew`: the next epoch of a ring."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundelay.cli.options import AsJson
from roundelay.cli.ring.files import (
    Links,
    Out,
    RingFile,
    SignersFolder,
    read_invitations,
    read_links,
    read_plan,
    sign_plan,
)
from roundelay.cli.ring.words import print_written

if TYPE_CHECKING:
    from roundelay.agents.agreement.plan import RingPlan
    from roundelay.agents.agreement.ringfile import SignedPlan


def drop(
    ring: RingFile,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="The sites that leave, or are dropped.")],
    folder: SignersFolder,
    out: Out,
    links: Links = None,
    as_json: AsJson = False,
) -> None:
    """Plan the next epoch without some sites. A member that stays signs; every member that stays accepts.

    \b
    Example:
      roundelay ring drop ring.toml Bergen --folder oslo --out ring-1.toml
    """
    from roundelay.agents.agreement.epochs import plan_without

    signed = read_plan(ring)
    _finish(signed, plan_without(signed.plan, names, read_links(links), previous=signed.digest), folder, out, as_json)


def join(
    ring: RingFile,
    invitations: Annotated[list[Path], typer.Argument(metavar="INVITATION", help="Those of the newcomers.")],
    folder: SignersFolder,
    out: Out,
    links: Links = None,
    as_json: AsJson = False,
) -> None:
    """Plan the next epoch with new sites. An old member signs; all members, old and new, accept.

    \b
    Example:
      roundelay ring join ring.toml Tromso.invitation.toml --folder oslo --out ring-1.toml
    """
    from roundelay.agents.agreement.epochs import plan_with

    signed = read_plan(ring)
    newcomers = read_invitations(invitations)
    _finish(signed, plan_with(signed.plan, newcomers, read_links(links), previous=signed.digest), folder, out, as_json)


def renew(
    ring: RingFile,
    invitation: Annotated[Path, typer.Argument(metavar="INVITATION", help="The member's new invitation.")],
    folder: SignersFolder,
    out: Out,
    as_json: AsJson = False,
) -> None:
    """Plan the next epoch with the new key of a member. Another member signs, since nobody knows the new key yet.

    \b
    Example:
      roundelay ring renew ring.toml Bergen.invitation.toml --folder oslo --out ring-1.toml
    """
    from roundelay.agents.agreement.epochs import plan_renewed

    signed = read_plan(ring)
    (new,) = read_invitations([invitation])
    _finish(signed, plan_renewed(signed.plan, new, previous=signed.digest), folder, out, as_json)


def _finish(before: SignedPlan, planned: RingPlan, folder: Path, out: Path, as_json: bool) -> None:
    from roundelay.agents.agreement.folder import check_signer, identity_for

    signer = identity_for(folder, planned)
    check_signer(before.plan, signer.name, signer.certificate)  # the others would refuse it
    signed = sign_plan(planned, folder, out)
    print_written(signed, out, folder, as_json)
