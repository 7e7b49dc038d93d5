"""Whether a model is the one that all members of a ring have signed: for whoever has its file and the ring file, and no key."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data.fitting import model_of, standard_of_all
from roundelay.agents.data.models import (
    BESIDE,
    FORMAT,
    ModelNotes,
    SignedEnd,
    SignedSums,
    StoredModel,
    load_model,
    load_sums,
    read_vector,
    stands_beside,
    sums_beside,
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
from roundelay.regression.regression import INTERCEPT, MULTINOMIAL

# In parts of a number.
LIKENESS = 1e-6


class Verified(NamedTuple):
    """A model whose signatures are good, and the file of sums by which its coefficients and tables could be made anew.

    `sums` is None where the model's file is enough, and `whole` says whether all was checked: without that file of a regression only the
    signatures, the point, and what follows from the plan.
    """

    stored: StoredModel
    sums: Path | None
    whole: bool


def verify_model(path: Path, signed: SignedPlan, sums: Path | None = None) -> StoredModel:
    """The model in a file, where it follows as a whole from what every member of the ring has signed; else the reason why not."""
    verified = verify_as_far_as_known(path, signed, sums)
    if not verified.whole:
        raise ValueError(lacks_sums(path, verified))
    return verified.stored


def lacks_sums(path: Path, verified: Verified) -> str:
    """What was not checked, and what that takes."""
    return (
        f"The coefficients and tables in {path} were not checked: that takes the sums that the sites told each other, which are not in "
        f"{verified.sums}. Each site of the ring has that file beside its model; name it by --sums."
    )


def verify_as_far_as_known(path: Path, signed: SignedPlan, sums: Path | None = None) -> Verified:
    """A model whose end every member of the ring has signed, with what could be checked; else the reason why it is none.

    All that the file says is held against what was signed, but for what the site that wrote it has found by itself: its residuals, its
    doubt, and what noise has done to each coefficient. Coefficients and tables of a regression follow from the sums that were told, which
    are read from the file `sums`, or from the one beside where none is named.
    """
    stored = load_model(path)
    beside, there = None, None
    if stored.about.end is not None and stored.about.end.sums:
        beside = sums or sums_beside(path)
        there = load_sums(beside) if sums is not None or beside.exists() else None
    _verify(path, stored, signed, beside, there)
    return Verified(stored, beside, beside is None or there is not None)


def _verify(path: Path, stored: StoredModel, signed: SignedPlan, beside: Path | None, sums: SignedSums | None) -> None:
    """Refuse what was not signed; without the `sums` that stand `beside`, coefficients and tables are not looked at."""
    about, plan = stored.about, signed.plan
    if about.ring_digest != signed.digest:
        raise ValueError(
            f"{path} is of another ring file, with the digest {about.ring_digest[:16]}: this one has {signed.digest[:16]}."
        )
    if about.end is None:
        raise ValueError(f"{path} has no signatures: it was written by a release before them.")
    try:
        whole = _whole(about.end, beside, sums, plan)
        end = _end_of(path, about.end, whole, signed)
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
    differs = _differs(path, stored, end.point, whole, plan) if beside is None or sums is not None else False
    if differs or _planned_otherwise(stored, about.end, plan):
        what = "The coefficients" if plan.task.regression is None else "The coefficients or the tables"
        earlier = (
            ""
            if plan.task.regression is None or stored.format == FORMAT
            else (", or an earlier release wrote it and made them otherwise: verify it by that one")
        )
        raise ValueError(f"{what} in {path} are not those that the members have signed: the file was changed{earlier}.")
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


def _whole(end: SignedEnd, beside: Path | None, sums: SignedSums | None, plan: RingPlan) -> SignedEnd:
    """The end with its sums, as far as they are known."""
    if end.sums and (plan.task.regression is None or end.told or end.looks):
        raise ValueError("its sums stand in it and beside it")
    if sums is None:
        return end
    if digest_of(_vectors(sums.told)).hex() != end.sums:
        raise ValueError(f"the sums in {beside} are not those of which it has the digest")
    return replace(end, told=sums.told, looks=sums.looks)


def _end_of(path: Path, said: SignedEnd, end: SignedEnd, signed: SignedPlan) -> End:
    """What was signed, as the file has `said` it; `end` has the sums with it, where they are known."""
    plan = signed.plan
    # Beside the file only where it must be: else the file itself would say nothing that was signed.
    beside = stands_beside(plan.task) and not end.point
    point = read_vector(path.with_suffix(".npy"), plan.dim) if beside else np.array(end.point)
    told = bytes.fromhex(said.sums) if said.sums else digest_of(_totals(end))
    ring, asked, totals = (bytes.fromhex(digits) for digits in (signed.digest, end.asked, end.totals))
    if end.looks and digest_of_totals(bytes.fromhex(end.fitted), _looks(end)) != totals:
        raise ValueError("what was seen of all rows is not what was signed")
    return End(ring, plan.epoch, end.hop, end.reason, end.by, point, told, asked, totals)


def _vectors(totals: tuple[tuple[float, ...], ...]) -> tuple[Vector, ...]:
    return tuple(np.array(total) for total in totals)


def _totals(end: SignedEnd) -> tuple[Vector, ...]:
    return _vectors(end.told)


def _looks(end: SignedEnd) -> tuple[Vector, ...]:
    return _vectors(end.looks)


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


def _planned_otherwise(stored: StoredModel, end: SignedEnd, plan: RingPlan) -> bool:
    """Whether a regression is another than was planned, or its tables say another formula, other sites or another end: no sums are needed to see it."""
    regression, result = plan.task.regression, stored.result
    if regression is None:
        return stored.regression is not None or result is not None
    if as_planned(stored.regression) != as_planned(regression):
        return True
    if result is None:
        return False
    said = (result.formula, result.response, result.family, result.sites, result.converged)
    sites = tuple(member.name for member in plan.members)
    if said != (regression.formula, regression.response, regression.family, sites, end.reason == Reason.CONTENT):
        return True
    # In one file the same numbers stand twice, which readers take from either place.
    model, terms = stored.model, {one.name: one.estimate for one in result.terms}
    constant = {INTERCEPT: model.intercept} if INTERCEPT in terms and regression.family != MULTINOMIAL else {}
    return (model.kind, model.target, dict(model.coefficients) | constant) != ("regression", regression.response, terms)


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
