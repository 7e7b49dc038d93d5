"""Whether a model is the one that all members of a ring have signed: for whoever has its file and the ring file, and no key."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data.fitting import model_of, standard_of_all
from roundelay.agents.data.models import (
    BESIDE,
    ModelNotes,
    SignedEnd,
    StoredModel,
    load_model,
    read_vector,
    stands_beside,
    text_of_model,
)
from roundelay.agents.data.regressing import as_planned, outcome_of
from roundelay.agents.data.statistics import Standard, pack
from roundelay.agents.protocol.asking import digest_of, digest_of_totals
from roundelay.agents.protocol.baton import Reason
from roundelay.agents.protocol.signing import SIGNATURE, Certificates, End, unsigned
from roundelay.agents.site.why_it_ended import hops_of, questions_of, why_it_ended
from roundelay.kernels import Vector
from roundelay.networks.network_checks import join_names

# In parts of a number.
LIKENESS = 1e-6


def verify_model(path: Path, signed: SignedPlan) -> StoredModel:
    """The model in a file, where every member of the ring has signed the end that it comes from; else the reason why not.

    All that the file says is held against what was signed, but for what the site that wrote it has found by itself: its residuals, its
    doubt, and what noise has done to each coefficient.
    """
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
    try:
        missing = unsigned(certificates, end.statement, signatures)
    except OverflowError:
        raise ValueError(f"{path} has a number beyond all that are signed: it was changed.") from None
    if missing:
        names = join_names([plan.members[member].name for member in missing])
        raise ValueError(
            f"{names} {'has' if len(missing) == 1 else 'have'} not signed what {path} says: the file was changed, or is no model of this ring."
        )
    if _differs(path, stored, end.point, about.end, plan):
        what = "The coefficients" if plan.task.regression is None else "The coefficients or the tables"
        raise ValueError(f"{what} in {path} are not those that the members have signed: the file was changed.")
    other = _other_notes(about, about.end, plan)
    if other:
        raise ValueError(
            f"What {path} says of {join_names(other)} does not follow from what was signed: it was changed."
        )
    if path.read_bytes() != text_of_model(
        stored
    ):  # an entry that stands there twice has two values, and readers differ in which they take
        raise ValueError(
            f"{path} is not spelled as it was written: an entry stands there twice, or one that nobody has signed. It was changed."
        )
    return stored


def _end_of(path: Path, end: SignedEnd, signed: SignedPlan) -> End:
    plan = signed.plan
    # Beside the file only where it must be: else the file itself would say nothing that was signed.
    beside = stands_beside(plan.task) and not end.point
    point = read_vector(path.with_suffix(".npy"), plan.dim) if beside else np.array(end.point)
    told = digest_of(_totals(end))
    ring, asked, totals = (bytes.fromhex(digits) for digits in (signed.digest, end.asked, end.totals))
    if end.looks and digest_of_totals(bytes.fromhex(end.fitted), _looks(end)) != totals:
        raise ValueError("what was seen of all rows is not what was signed")
    return End(ring, plan.epoch, end.hop, end.reason, end.by, point, told, asked, totals)


def _totals(end: SignedEnd) -> tuple[Vector, ...]:
    return tuple(np.array(total) for total in end.told)


def _looks(end: SignedEnd) -> tuple[Vector, ...]:
    return tuple(np.array(total) for total in end.looks)


def _differs(path: Path, stored: StoredModel, point: Vector, end: SignedEnd, plan: RingPlan) -> bool:
    """Whether the model is another than the one that follows from the signed point and sums; a regression's tables are part of it."""
    estimate, model = point[: plan.dim], stored.model
    if plan.task.regression is not None:
        names, questions = tuple(member.name for member in plan.members), questions_of(plan, end.hop)
        converged = end.reason == Reason.CONTENT
        follows = outcome_of(plan.task.regression, _totals(end), _looks(end), estimate, names, questions, converged)
        # How a penalty was chosen and how the fit converged is the word of the site that wrote the file, as the doubt is.
        result = None if stored.result is None else replace(stored.result, path=(), strength=None, slopes=())
        said = (stored.model, result, as_planned(stored.regression))
        return not _alike(said, (follows.model, follows.result, as_planned(plan.task.regression)))
    if stored.result is not None or stored.regression is not None:
        return True
    if plan.choice is None:
        estimate = plan.method.regulariser.prox(estimate, float(plan.method.token_scale(plan.agents)))
    if stands_beside(plan.task):
        return model != BESIDE or not np.array_equal(read_vector(path.with_suffix(".npy"), plan.dim), estimate)
    return model_of(plan.task, standard_of_all(plan.task, _totals(end)), estimate) != model


def _alike(one: Any, other: Any) -> bool:
    """Whether two results are the same but for rounding: two computers differ in the last digits of an inverse."""
    if isinstance(one, float) and isinstance(other, float):
        return (
            one == other or math.isclose(one, other, rel_tol=LIKENESS, abs_tol=0.0) or (one != one and other != other)
        )
    if is_dataclass(one) and type(one) is type(other):
        pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)]
        return all(_alike(*pair) for pair in pairs)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(one == other)


def _other_notes(about: ModelNotes, end: SignedEnd, plan: RingPlan) -> list[str]:
    """What the file says otherwise than the ring file and the signed end do."""
    standard = standard_of_all(plan.task, _totals(end))
    said = {
        "the run": (about.run == plan.run and about.epoch == plan.epoch),
        "the members": about.members == tuple(member.name for member in plan.members),
        "the hops": about.hops == hops_of(plan, end.hop) and about.questions == questions_of(plan, end.hop),
        "why the ring stopped": about.reason == why_it_ended(plan, end.hop, Reason(end.reason), end.by),
        "all rows": _packed(about.standard) == _packed(standard),
        "the promise": _promised(about) == _promise_of(plan),
    }
    return [what for what, follows in said.items() if not follows]


def _packed(standard: Standard | None) -> list[float]:
    return [] if standard is None else pack(standard).tolist()


def _promised(about: ModelNotes) -> tuple[float, ...]:
    one = about.privacy
    return () if one is None else (one.epsilon, one.delta, one.rho, one.leave_out)


def _promise_of(plan: RingPlan) -> tuple[float, ...]:
    one, noise = plan.task.promise, plan.noise
    return () if one is None or noise is None else (one.epsilon, one.delta, noise.rho, noise.leave_out)
