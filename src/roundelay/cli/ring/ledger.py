"""`roundelay ring ledger`: what a site has told, in sums, to whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from roundelay.cli.options import AsJson
from roundelay.cli.output import print_json
from roundelay.cli.ring.files import Folder

if TYPE_CHECKING:
    from roundelay.agents.agreement.ledger import Added, Ledger, Spent


def ledger(folder: Folder, as_json: AsJson = False) -> None:
    """Say to which sums a site has added: when, with whom, about what, on how many rows; and check that nobody changed it.

    The ledger is signed by the site itself and never sent. It is checked line by line, and against the journals of the
    runs in the folder.

    \b
    Example:
      roundelay ring ledger --folder oslo
    """
    from roundelay.agents.agreement.identity import load_identity
    from roundelay.agents.agreement.ledger import DELTA, LedgerError, read_ledger, spent
    from roundelay.agents.site.bookkeeping import lost_sums

    load_identity(folder)  # a folder that is none of a site's has no ledger, which must not read as an empty one
    read = read_ledger(folder)
    lost = [one for one in lost_sums(folder, read) if one in read.not_overruled("", [one])]
    cost = spent(read.entries)
    if as_json:
        print_json(
            {
                "sums": [_content(read, one) for one in read.added],
                "rho": cost.rho,
                "epsilon": cost.epsilon(DELTA),
                "delta": DELTA,
                "exact": cost.exact,
                "torn": read.torn,
            }
        )
    else:
        _print(read)
        typer.echo(_cost_in_words(cost))
        if read.torn:
            typer.echo(
                f"{read.torn} bytes of a line that was never finished stand at the end: the agent died while it wrote them, before "
                "anything had left. They are cut off with the next entry."
            )
    if lost:
        raise LedgerError(" ".join(one.sentence for one in lost))


def _print(read: Ledger) -> None:
    from roundelay.agents.agreement.ledger import spent

    if not read.added:
        typer.echo("This site has added to no sum yet.")
    for one in read.added:
        rows, total = (
            f"{one.data.rows:,} rows of this site" if one.data.rows else "data of its own",
            read.rows_told(one),
        )
        typer.echo(f"{one.time:%Y-%m-%d %H:%M} UTC, run {one.run}, epoch {one.epoch}")
        typer.echo(f"  with {', '.join(name for name, _ in one.members)}")
        typer.echo(f"  {one.fit}")
        typer.echo(f"  by {one.how}{f', at most {one.questions} questions' if one.questions else ''}")
        typer.echo(
            f"  on {rows}{'' if total is None else f' of {total:,} in all'}, digest {one.data.digest[:16] or 'not known'}"
        )
        typer.echo(
            "  exact sums, without noise" if one.rho is None else f"  with noise: {_epsilon_in_words(spent([one]))}"
        )
        for what in one.told:
            typer.echo(f"  told to all: {what}")
        for finding in _overruled(read, one):
            typer.echo(f"  OVERRULED: {finding}")


def _content(read: Ledger, one: Added) -> dict[str, Any]:
    return {
        "time": one.time.isoformat(),
        "run": one.run,
        "epoch": one.epoch,
        "ring": one.ring,
        "members": [{"name": name, "fingerprint": digits} for name, digits in one.members],
        "fit": one.fit,
        "how": one.how,
        "questions": one.questions or None,
        "digest": one.data.digest,
        "rows": one.data.rows,
        "all_rows": read.rows_told(one),
        "rho": one.rho,
        "told": list(one.told),
        "overruled": list(_overruled(read, one)),
    }


def _overruled(read: Ledger, one: Added) -> tuple[str, ...]:
    """What was let pass of a sum: before it began, and while it ran."""
    later = (finding.sentence for finding in read.overruled(one.ring))
    return tuple(dict.fromkeys((*one.overruled, *later)))


def _epsilon_in_words(cost: Spent) -> str:
    from roundelay.agents.agreement.ledger import DELTA

    return f"ε = {cost.epsilon(DELTA):.3g} at δ = {DELTA:g}, ρ = {cost.rho:.3g}"


def _cost_in_words(cost: Spent) -> str:
    noisy = f"All sums with noise together have cost {_epsilon_in_words(cost)}" if cost.rho else ""
    plain = f"{cost.exact} {'run' if cost.exact == 1 else 'runs'} of exact sums" if cost.exact else ""
    if noisy and plain:
        return f"{noisy}; {plain} besides promise none."
    return (
        f"{noisy}."
        if noisy
        else f"{plain[:1].upper()}{plain[1:]}: they promise no differential privacy."
        if plain
        else ""
    )
