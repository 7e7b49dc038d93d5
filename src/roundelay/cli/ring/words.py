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


def print_plan(signed: SignedPlan, new: Sequence[str] = (), site: str | None = None) -> None:
    """Who takes part, what is fitted and how, what others learn of a site by it, what to think of, and what is new."""
    from roundelay.agents.agreement.identity import expiry, fingerprint
    from roundelay.agents.site.verdict import verdict

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
    if plan.task.regression is not None:
        _print_list("Of the data it uses:", [column.in_words for column in plan.task.regression.columns])
        typer.echo()
    typer.echo(_method_in_words(plan))
    if plan.noise is not None:
        typer.echo(_promise_in_words(plan))
    typer.echo(_stop_in_words(plan))
    says = verdict(plan, None if site is None else plan.number_of(site))
    _print_list("What others learn of your site:", says.learned)
    _print_list("What to think of:", says.risks)
    if new:
        _print_list(f"New against epoch {plan.epoch - 1}:", new)


def print_breaches(breaches: Sequence[str]) -> None:
    """What the site's own policy does not allow."""
    _print_list("What this site's policy does not allow:", breaches)


def _print_list(heading: str, sentences: Sequence[str]) -> None:
    if sentences:
        typer.echo(f"\n{heading}")
    for sentence in sentences:
        typer.echo(f"  {sentence}")


def what_new_sums_tell(signed: SignedPlan, folder: Path) -> tuple[Finding, ...]:
    """What the sums of a ring file tell together with those that the site in a folder has added to before."""
    from roundelay.agents.agreement.folder import what_follows
    from roundelay.agents.agreement.ledger import read_ledger

    return what_follows(folder, read_ledger(folder), signed)


def breaches_at(signed: SignedPlan, folder: Path) -> tuple[str, ...]:
    """What of a ring file the policy of the site in a folder does not allow."""
    from roundelay.agents.agreement.folder import identity_for
    from roundelay.agents.agreement.policy import breaches, read_policy

    return breaches(read_policy(folder), signed.plan, signed.plan.number_of(identity_for(folder, signed.plan).name))


def print_findings(found: Sequence[Finding]) -> None:
    """What is to be known before the ring file is accepted."""
    _print_list("What the new sums tell together with the old ones:", [one.sentence for one in found])


def plan_content(signed: SignedPlan) -> dict[str, Any]:
    """The same for machines."""
    from roundelay.agents.agreement.identity import expiry, fingerprint
    from roundelay.agents.site.verdict import verdict
    from roundelay.algorithms.algorithm import Algorithm
    from roundelay.tables import as_table

    plan = signed.plan
    says = verdict(plan)
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
        "learned": says.learned,
        "risks": says.risks,
    }


def print_written(signed: SignedPlan, out: Path, folder: Path, as_json: bool) -> None:
    """What was written, what its sums will tell as far as the signer's ledger knows, what its policy refuses, and what comes next."""
    follows, breaches = what_new_sums_tell(signed, folder), breaches_at(signed, folder)
    if as_json:
        print_json({**plan_content(signed), "breaches": breaches, "follows": [one.sentence for one in follows]})
        return
    print_plan(signed)
    print_findings(follows)
    print_breaches(breaches)
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
        return f"A token goes round, which each site changes. Those who know the method read: {plan.algorithm!r}."
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
