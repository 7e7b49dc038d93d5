"""`roundelay ring accept` and `roundelay ring show`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundelay.cli.exits import INTERRUPTED
from roundelay.cli.options import AsJson
from roundelay.cli.output import print_json
from roundelay.cli.ring.files import DespiteDifference, Folder, RingFile, read_plan, warn_of_open_files
from roundelay.cli.ring.words import plan_content, print_findings, print_plan, what_new_sums_tell

if TYPE_CHECKING:
    from roundelay.agents.agreement.ringfile import SignedPlan


def show(ring: RingFile, as_json: AsJson = False) -> None:
    """Say what a ring file says, after checking that its signature fits.

    \b
    Example:
      roundelay ring show ring.toml
    """
    signed = read_plan(ring)
    if as_json:
        print_json(plan_content(signed))
    else:
        print_plan(signed)


def accept(
    ring: RingFile,
    folder: Folder,
    yes: Annotated[bool, typer.Option("--yes", help="Accept without asking.")] = False,
    despite_difference: DespiteDifference = False,
    as_json: AsJson = False,
) -> None:
    """Look at a ring file and accept it at this site; an agent runs no other.

    It says who takes part, what is fitted, what the others learn of this site by it, and what to think of. A ring file that
    the site's policy does not allow is refused: the policy is policy.toml in the folder, and yours to change. Compare the
    fingerprints with those that the sites read to you: whoever planned the ring could have put in keys of their own.
    Where the new sums would tell, together with those that this site added to before, what the data of a single site
    gave, the file is refused, unless you add --despite-difference.

    \b
    Example:
      roundelay ring accept ring.toml --folder oslo
    """
    from roundelay.agents.agreement.folder import accept_ring, check_acceptable, check_difference, identity_for
    from roundelay.agents.agreement.policy import check_policy, read_policy

    if as_json and not yes:
        raise ValueError("With --json nothing is asked: look at the file by roundelay ring show, and then add --yes.")
    signed = read_plan(ring)
    warn_of_open_files(folder)
    check_acceptable(folder, signed)
    site = identity_for(folder, signed.plan).name
    new, follows = _new(signed, folder), what_new_sums_tell(signed, folder)
    if not as_json:
        print_plan(signed, new, site)
        print_findings(follows)
        typer.echo()
    check_policy(folder, read_policy(folder), signed.plan, site)
    check_difference(folder, signed, despite_difference)
    if not yes and not _agreed():
        typer.echo("Nothing was accepted.", err=True)
        raise typer.Exit(INTERRUPTED)
    accept_ring(folder, signed.text, despite_difference)
    if as_json:
        print_json({**plan_content(signed), "new": new, "follows": [one.sentence for one in follows]})
    else:
        typer.echo(f"The ring file of epoch {signed.plan.epoch} is accepted in {folder}.")


def _new(signed: SignedPlan, folder: Path) -> tuple[str, ...]:
    """What is new against the epoch before; for a newcomer everything is."""
    from roundelay.agents.agreement.epochs import changes
    from roundelay.agents.agreement.folder import accepted_plans

    for before in accepted_plans(folder, signed.plan.run):
        if before.digest == signed.plan.previous:
            return changes(before.plan, signed.plan)
    return ()


def _agreed() -> bool:
    try:
        return typer.confirm("Are the fingerprints right, and do you accept this ring file?")
    except typer.Abort:  # no terminal to ask at, or Ctrl-C
        typer.echo(err=True)
        return False
