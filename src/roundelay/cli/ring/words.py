"""What a ring file says, for people and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from roundelay.cli.output import print_json

if TYPE_CHECKING:
    from roundelay.agents.agreement.ledger import Finding
    from roundelay.agents.agreement.plan import RingPlan
    from roundelay.agents.agreement.ringfile import SignedPlan
    from roundelay.agents.data.models import Model, PrivacyNotes


def print_plan(signed: SignedPlan, new: Sequence[str] = ()) -> None:
    """The members with their fingerprints, what is fitted and how, and what is new."""
    from roundelay.agents.agreement.identity import expiry, fingerprint

    plan = signed.plan
    typer.echo(f"Run {plan.run}, epoch {plan.epoch}, signed by {signed.signed_by}.")
    typer.echo(f"Digest {signed.digest}")
    typer.echo(f"\n{plan.agents} members:")
    for member in plan.members:
        typer.echo(f"  {member.name}, {member.address or 'no address, it dials the others'}")
        typer.echo(f"    fingerprint {fingerprint(member.certificate)}")
        typer.echo(f"    good until {expiry(member.certificate):%Y-%m-%d}")
    typer.echo(f"\nThe baton goes {_way(plan)}.")
    typer.echo(f"It fits {plan.task.in_words}.")
    typer.echo(_method_in_words(plan))
    if plan.noise is not None:
        typer.echo(_promise_in_words(plan))
    typer.echo(_stop_in_words(plan))
    if new:
        typer.echo(f"\nNew against epoch {plan.epoch - 1}:")
        for sentence in new:
            typer.echo(f"  {sentence}")


def what_new_sums_tell(signed: SignedPlan, folder: Path) -> tuple[Finding, ...]:
    """What the sums of a ring file tell together with those that the site in a folder has added to before."""
    from roundelay.agents.agreement.folder import what_follows
    from roundelay.agents.agreement.ledger import read_ledger

    return what_follows(folder, read_ledger(folder), signed)


def print_findings(found: Sequence[Finding]) -> None:
    """What is to be known before the ring file is accepted."""
    if found:
        typer.echo("\nWhat the new sums tell together with the old ones:")
    for one in found:
        typer.echo(f"  {one.sentence}")


def plan_content(signed: SignedPlan) -> dict[str, Any]:
    """The same for machines."""
    from roundelay.agents.agreement.identity import expiry, fingerprint
    from roundelay.algorithms.algorithm import Algorithm
    from roundelay.tables import as_table

    plan = signed.plan
    names = [member.name for member in plan.members]
    return {
        "run": plan.run,
        "epoch": plan.epoch,
        "previous": plan.previous,
        "digest": signed.digest,
        "signed_by": signed.signed_by,
        "members": [
            {
                "name": member.name,
                "address": member.address,
                "fingerprint": fingerprint(member.certificate),
                "expiry": expiry(member.certificate).isoformat(),
            }
            for member in plan.members
        ],
        "order": [names[number] for number in plan.order],
        "links": [[names[first], names[second]] for first, second in plan.links],
        "algorithm": as_table(plan.algorithm, Algorithm),
        "task": dataclasses.asdict(plan.task),
        "stopping": dataclasses.asdict(plan.stopping),
    }


def print_written(signed: SignedPlan, out: Path, folder: Path, as_json: bool) -> None:
    """What was written, what its sums will tell as far as the signer's ledger knows, and what comes next."""
    follows = what_new_sums_tell(signed, folder)
    if as_json:
        print_json({**plan_content(signed), "follows": [one.sentence for one in follows]})
        return
    print_plan(signed)
    print_findings(follows)
    if any(one.refuses for one in follows):
        typer.echo("  Sites refuse this by default: each operator has to add --despite-difference.")
    typer.echo(f"\nThe ring file is {out}. Send it to every member: each accepts it by")
    typer.echo(f"  roundelay ring accept {out.name} --folder …")


def print_coefficients(model: Model, privacy: PrivacyNotes | None = None) -> None:
    """A model, a line a coefficient; under a promise of ε with the standard deviation that noise has given it."""
    lines = [*model.coefficients, *([] if model.kind == "custom" else [("intercept", model.intercept)])]
    noise = {} if privacy is None else dict(privacy.noise)
    if privacy is not None and privacy.of_intercept is not None:
        noise["intercept"] = privacy.of_intercept
    for name, value in lines:
        typer.echo(f"  {name:<24} {value: .6g}" + (f"  ± {noise[name]:.2g} by noise" if name in noise else ""))
    if privacy is not None:
        typer.echo(f"The model keeps {privacy.words}")


def _promise_in_words(plan: RingPlan) -> str:
    """What is promised, and against whom."""
    promise, noise = plan.task.promise, plan.noise
    assert promise is not None and noise is not None
    return (
        f"Every record is promised ε = {promise.epsilon:g} at δ = {promise.delta:g}, where neighbouring means one record more or less "
        f"(ρ = {noise.rho:.4g}): a row counts up to the length {noise.clip_row:g}, every site adds its share of the noise under the masks, and "
        f"no other sums are formed. It holds against everybody as long as no more than {noise.leave_out} of the {plan.agents} sites leave "
        f"their noise out or work together; against the {plan.agents - 1} others together a site has its own share alone."
    )


def _way(plan: RingPlan) -> str:
    if not plan.on_cycle:
        return f"on a random walk over {len(plan.links)} links"
    names = [plan.members[number].name for number in plan.order]
    return f"{' – '.join((*names, names[0]))}"


def _method_in_words(plan: RingPlan) -> str:
    """How it is fitted, and what that shows to whom."""
    if plan.choice is None:
        return f"The algorithm is {plan.algorithm!r}. A site's two neighbours see the token before and after its visit."
    regulariser = plan.algorithm.regulariser
    with_it = "" if regulariser.is_zero else f" The model is subject to {regulariser!r}."
    return (
        f"In each lap all sites add up one answer, each under masks that cancel; nobody sees anything but the sum over all sites. "
        f"{plan.choice.words}{with_it}"
    )


def _stop_in_words(plan: RingPlan) -> str:
    if plan.noise is not None:
        return f"It stops after {plan.noise.laps_in_words}, and one that tells the model."
    if plan.choice is not None:
        return f"It stops at the best fit, or after {plan.stopping.questions} questions at the latest."
    if plan.stopping.tolerance is None:
        return f"It stops after {plan.stopping.hops} hops."
    return (
        f"It stops when every site is content within {plan.stopping.tolerance:g}, or after {plan.stopping.hops} hops."
    )
