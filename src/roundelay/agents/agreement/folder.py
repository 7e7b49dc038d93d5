"""An agent's folder: its identity, and the ring files that its operator has accepted. An agent runs no other."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from roundelay.agents.agreement.differencing import OwnRows, findings, refusal
from roundelay.agents.agreement.disk import write_whole
from roundelay.agents.agreement.epochs import fits_the_same
from roundelay.agents.agreement.identity import Identity, expiry, identities
from roundelay.agents.agreement.ledger import Data, Finding, Ledger, added_by, overruling, read_ledger, write_entry
from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.agreement.policy import check_policy, read_policy
from roundelay.agents.agreement.ringfile import SignedPlan, read_ring

ACCEPTED = "accepted"
PREFIX = 16  # digits of the digest in a file's name


def accept_ring(folder: Path, text: bytes, despite_difference: bool = False) -> SignedPlan:
    """Check a ring file for this site and keep it; the same file may be accepted again.

    Where its sums would tell too much together with the old ones it is refused, unless the operator overrules that. So is a plan that
    does not keep to the site's policy, which the operator may change.
    """
    folder = Path(folder)
    signed = read_ring(text, "the ring file")
    check_acceptable(folder, signed)
    check_policy(folder, read_policy(folder), signed.plan, identity_for(folder, signed.plan).name)
    write_entry(folder, lambda ledger: overruling(signed, _refused(folder, ledger, signed, despite_difference)))
    if not is_accepted(folder, signed.digest):
        (folder / ACCEPTED).mkdir(mode=0o700, exist_ok=True)
        write_whole(folder / ACCEPTED / f"epoch-{signed.plan.epoch}-{signed.digest[:PREFIX]}.toml", text)
    return signed


def check_difference(folder: Path, signed: SignedPlan, despite_difference: bool = False) -> None:
    """Refuse a ring file whose sums would tell too much together with the old ones, unless the operator overrules that."""
    _refused(folder, read_ledger(folder), signed, despite_difference)


def _refused(folder: Path, ledger: Ledger, signed: SignedPlan, despite_difference: bool) -> tuple[Finding, ...]:
    """What is refused of what a ring file's sums would tell, where the operator overrules that now."""
    refused = ledger.not_overruled(signed.digest, what_follows(folder, ledger, signed))
    if refused and not despite_difference:
        raise refusal(refused, "the ring file is not accepted")
    return refused


def what_follows(
    folder: Path, ledger: Ledger, signed: SignedPlan, data: Data | None = None, own: OwnRows | None = None
) -> tuple[Finding, ...]:
    """What the sums of a ring file tell together with those that this site has added to before.

    Without `data` and `own` it is what can be said before this site's data are known.
    """
    plan, me = signed.plan, identities(folder)[-1].name
    newcomer = plan.epoch > 0 and all(one.plan.epoch >= plan.epoch for one in accepted_plans(folder, plan.run))
    earlier = ledger.before(plan.run, plan.epoch)
    least_change = read_policy(folder).least_change
    return findings(me, earlier, added_by(signed, data or Data()), own, newcomer, least_change)


def accepted_plans(folder: Path, run: str | None = None) -> tuple[SignedPlan, ...]:
    """The accepted ring files, of one run or of all, by epoch."""
    paths = sorted((Path(folder) / ACCEPTED).glob("epoch-*.toml"))
    plans = [read_ring(path.read_bytes(), str(path)) for path in paths]
    return tuple(
        sorted((one for one in plans if run in (None, one.plan.run)), key=lambda one: (one.plan.epoch, one.plan.run))
    )


def is_accepted(folder: Path, digest: str) -> bool:
    """Whether the ring file with this digest is accepted here."""
    if not re.fullmatch("[0-9a-f]{64}", digest):
        return False
    paths = (Path(folder) / ACCEPTED).glob(f"epoch-*-{digest[:PREFIX]}.toml")
    return any(read_ring(path.read_bytes(), str(path)).digest == digest for path in paths)


def identity_for(folder: Path, plan: RingPlan) -> Identity:
    """The identity with which the site is in a ring, which need not be its newest; that one where it is in with none."""
    held = identities(folder)
    return held[_place_of(held, plan)]


def _place_of(held: tuple[Identity, ...], plan: RingPlan) -> int:
    listed = {member.certificate for member in plan.members}
    return next((place for place, one in enumerate(held) if one.certificate in listed), len(held) - 1)


def check_acceptable(folder: Path, signed: SignedPlan) -> None:
    """Refuse a ring file that this site must not accept."""
    accepted = accepted_plans(folder, signed.plan.run)
    held = identities(folder)
    # Keys that were replaced must not come back: in a run none older than before, in a new run the newest.
    oldest = max((_place_of(held, other.plan) for other in accepted), default=len(held) - 1)
    if not is_accepted(folder, signed.digest):
        _check_own_entry(held[max(_place_of(held, signed.plan), oldest)], signed.plan)
    _check_expiry(signed.plan, datetime.now(UTC))
    for other in accepted:
        if other.plan.epoch == signed.plan.epoch and other.digest != signed.digest:
            raise ValueError(
                f"Another ring file of epoch {other.plan.epoch} of this run is accepted here already, with the digest "
                f"{other.digest[:PREFIX]}: there can be one only, so ask {signed.signed_by} and {other.signed_by} which it is."
            )
    # A newcomer knows nothing of the epochs before; its operator compares the fingerprints.
    if signed.plan.epoch > 0 and accepted:
        _check_succession(signed, accepted)


def check_signer(before: RingPlan, name: str, certificate: str) -> None:
    """A change is signed by a member of the epoch before, with the certificate that it had then."""
    if (name, certificate) not in {(member.name, member.certificate) for member in before.members}:
        raise ValueError(
            f"The change is signed by {name} with a certificate that no member had in epoch {before.epoch}: a newcomer, or "
            "a site with a new key, can't sign its own change, so let another member sign it."
        )


def _check_own_entry(identity: Identity, plan: RingPlan) -> None:
    own = next((member for member in plan.members if member.name == identity.name), None)
    if own is None:
        raise ValueError(
            f"{identity.name} is not a member of this ring: ask whoever planned it to take in its invitation."
        )
    if own.certificate != identity.certificate:
        raise ValueError(
            f"The certificate of {identity.name} in the ring file is not the one in its folder: somebody has replaced it, "
            "or it is from an old invitation. Send the invitation again, and let the ring be planned with it."
        )


def _check_expiry(plan: RingPlan, now: datetime) -> None:
    for member in plan.members:
        end = expiry(member.certificate)
        if end <= now:
            raise ValueError(
                f"The certificate of {member.name} has expired on {end:%Y-%m-%d}: let {member.name} make new keys by "
                "roundelay ring rekey, and take in its new invitation."
            )


def _check_succession(signed: SignedPlan, accepted: tuple[SignedPlan, ...]) -> None:
    """The file must follow the one of the epoch before, and be signed by a member of that epoch."""
    epoch = signed.plan.epoch
    before = next((other for other in accepted if other.plan.epoch == epoch - 1), None)
    if before is None:
        raise ValueError(
            f"The ring file is of epoch {epoch}, and the one of epoch {epoch - 1} is not accepted here: accept that one "
            "first. A site that comes back after it had left joins with a new folder."
        )
    if signed.plan.previous != before.digest:
        raise ValueError(
            f"The ring file follows another file of epoch {epoch - 1} than the one accepted here, which has the digest "
            f"{before.digest[:PREFIX]}: let {signed.signed_by} make the change from that one."
        )
    if not fits_the_same(before.plan, signed.plan):
        raise ValueError(
            f"The change by {signed.signed_by} also changes what is fitted, or how: running agents would go on with the data of the fit before, "
            "and the ledger would note those of another. Plan a new run for another fit."
        )
    check_signer(
        before.plan, signed.signed_by, signed.plan.members[signed.plan.number_of(signed.signed_by)].certificate
    )
