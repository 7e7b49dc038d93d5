"""Whether a model is the one that all members of a ring have signed: for whoever has its file and the ring file, and no key."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data.fitting import model_of, standard_of_all
from roundelay.agents.data.models import SignedEnd, StoredModel, load_model, read_vector
from roundelay.agents.protocol.asking import digest_of
from roundelay.agents.protocol.signing import SIGNATURE, Certificates, End, unsigned
from roundelay.kernels import Vector
from roundelay.networks.network_checks import join_names


def verify_model(path: Path, signed: SignedPlan) -> StoredModel:
    """The model in a file, where every member of the ring has signed the end that it comes from; else the reason why not."""
    stored, plan = load_model(path), signed.plan
    about = stored.about
    if about.ring_digest != signed.digest:
        raise ValueError(
            f"{path} is of another ring file, with the digest {about.ring_digest[:16]}: this one has {signed.digest[:16]}."
        )
    if about.end is None:
        raise ValueError(f"{path} has no signatures: it was written by a release before them.")
    try:
        end = _end_of(path, about.end, signed)
        signatures = b"".join(map(bytes.fromhex, about.end.signatures))
    except ValueError as error:
        raise ValueError(f"{path} can't be read as it was signed ({error}): it was changed.") from None
    certificates = Certificates(tuple(member.certificate for member in plan.members))
    if len(signatures) != SIGNATURE * plan.agents:
        raise ValueError(
            f"{path} has {len(about.end.signatures)} signatures, but the ring has {plan.agents} members: the file was changed."
        )
    missing = unsigned(certificates, end.statement, signatures)
    if missing:
        names = join_names([plan.members[member].name for member in missing])
        raise ValueError(
            f"{names} {'has' if len(missing) == 1 else 'have'} not signed what {path} says: the file was changed, or is no model of this ring."
        )
    if _differs(stored, end.point, about.end, signed):
        raise ValueError(
            f"The coefficients in {path} are not those that the members have signed: the file was changed."
        )
    return stored


def _end_of(path: Path, end: SignedEnd, signed: SignedPlan) -> End:
    plan = signed.plan
    point = np.array(end.point) if end.point else read_vector(path.with_suffix(".npy"), plan.dim)
    told = digest_of(np.array(total) for total in end.told)
    ring, asked, totals = (bytes.fromhex(digits) for digits in (signed.digest, end.asked, end.totals))
    return End(ring, plan.epoch, end.hop, end.reason, end.by, point, told, asked, totals)


def _differs(stored: StoredModel, point: Vector, end: SignedEnd, signed: SignedPlan) -> bool:
    """Whether the model is another than the one that follows from the signed point and sums."""
    plan = signed.plan
    if not end.point:
        return False  # the unknowns themselves were signed
    estimate = point[: plan.dim]
    if plan.choice is None:
        estimate = plan.method.regulariser.prox(estimate, float(plan.method.token_scale(plan.agents)))
    standard = standard_of_all(plan.task, tuple(np.array(total) for total in end.told))
    return model_of(plan.task, standard, estimate) != stored.model
