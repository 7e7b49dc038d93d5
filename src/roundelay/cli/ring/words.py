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
    from roundelay.agents.agreement.ringfile import SignedPlan
    from roundelay.agents.data.models import Model, PrivacyNotes
    from roundelay.regression.result import Result


def print_plan(signed: SignedPlan, new: Sequence[str] = (), site: str | None = None) -> None:
    """Who takes part, what is fitted and how, what others learn of a site by it, what to think of, and what is new."""
    from roundelay.agents.agreement.identity import expiry, fingerprint
    from roundelay.agents.site.verdict import (
        method_in_words,
        promise_in_words,
        stop_in_words,
        verdict,
        way_in_words,
    )

    plan = signed.plan
    typer.echo(f"Run {plan.run}, epoch {plan.epoch}, signed by {signed.signed_by}.")
    typer.echo(f"Digest {signed.digest}")
    typer.echo(f"\n{plan.agents} members:")
    for member in plan.members:
        typer.echo(f"  {member.name}, {member.address or 'no address, it dials the others'}")
        typer.echo(f"    fingerprint {fingerprint(member.certificate)}")
        typer.echo(f"    good until {expiry(member.certificate):%Y-%m-%d}")
    typer.echo(f"\nThe baton goes {way_in_words(plan)}.")
    typer.echo(f"It fits {plan.task.in_words}.")
    if plan.task.regression is not None:
        _print_list("Of the data it uses:", [column.in_words for column in plan.task.regression.columns])
        typer.echo()
    typer.echo(method_in_words(plan))
    if plan.noise is not None:
        typer.echo(promise_in_words(plan))
    typer.echo(stop_in_words(plan))
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


def model_content(model: Model, result: Result | None, privacy: PrivacyNotes | None) -> dict[str, Any]:
    """A model for machines."""
    return {
        "result": None if result is None else dataclasses.asdict(result),
        "privacy": None if privacy is None else dataclasses.asdict(privacy),
        "coefficients": dict(model.coefficients),
        "intercept": model.intercept,
    }


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
