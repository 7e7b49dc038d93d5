"""`roundelay ring init`, `offer`, `identity` and `rekey`, and `pause`, `resume` and `stop`: what a site is, and what its operator wants of its agent."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundelay.cli.options import AsJson
from roundelay.cli.output import print_json
from roundelay.cli.ring.files import Folder, RingFile, read_invitations, read_plan

if TYPE_CHECKING:
    from roundelay.agents.agreement.policy import Policy
    from roundelay.agents.data.offering import Offer
    from roundelay.regression.columns import Column

Names = Annotated[
    str | None,
    typer.Option("--columns", metavar="NAME,NAME", help="Offer these columns alone; by default all that the file has."),
]


def init(
    folder: Folder,
    name: Annotated[str, typer.Option(help="The site's name: letters, digits, - _ . and spaces, up to 40.")],
    address: Annotated[
        str,
        typer.Option(
            help="host:port at which others can dial this site, or relay://host:port of a relay; empty where it only dials."
        ),
    ] = "",
    data: Annotated[
        Path | None,
        typer.Option(
            help="A CSV or Parquet file, or a folder of Parquet files: its columns go into the invitation, with what kind of values they have, and no row."
        ),
    ] = None,
    columns: Names = None,
    target: Annotated[str | None, typer.Option(help="The column to be explained; it must be in the header.")] = None,
    days: Annotated[int, typer.Option(help="How many days the certificate is good for.")] = 730,
    closed: Annotated[
        bool, typer.Option("--passphrase", help="Close the key on disk by a passphrase, which every start then needs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a site's keys, its certificate, its policy and its invitation.

    The keys stay in the folder, which only you can read. In policy.toml there stands what the site takes part in: read
    it, and change what you want otherwise. The invitation has no secret: send it to the other sites, and
    read the fingerprint to them over the telephone. With --data it says of each column whether it has numbers, dates or words;
    words that few rows have, and those of a column with many, are not told. With --columns only those are offered, and the
    policy allows regressions no others. With --passphrase the key is closed on disk: whatever needs it then asks
    at the terminal, or reads the first line of the file descriptor that ROUNDELAY_PASSPHRASE_FD names.

    \b
    Example:
      roundelay ring init --folder oslo --name Oslo --address oslo.example.org:7443 --data oslo.csv --target outcome
    """
    from roundelay.agents.agreement.disk import PUBLIC, write_whole
    from roundelay.agents.agreement.identity import fingerprint, make_identity, save_identity
    from roundelay.agents.agreement.invitations import write_invitation
    from roundelay.agents.agreement.passphrase import new_passphrase
    from roundelay.agents.agreement.policy import POLICY, Policy, read_policy, write_policy

    wanted, policy = _names(columns), read_policy(folder)
    offered = _offered(data, wanted, target, policy)
    made = make_identity(name, days)
    text = write_invitation(made, address, offered.columns)  # refuses what can't be sent before anything is written
    save_identity(folder, made, new_passphrase() if closed else b"")
    write_policy(folder, Policy(allowed_columns=wanted) if wanted else None)
    path = _invitation_of(folder, name)
    write_whole(path, text, PUBLIC)
    if as_json:
        print_json(
            {
                "name": name,
                "fingerprint": fingerprint(made.certificate),
                "invitation": str(path),
                "columns": [str(column) for column in offered.columns],
                "offered": [_as_table(column) for column in offered.columns],
                "notes": offered.notes,
            }
        )
        return
    typer.echo(f"{name} has an identity in {folder}. Keep the folder to yourself, and a copy of it in a safe place.")
    typer.echo(f"Fingerprint {fingerprint(made.certificate)}")
    _print_offer(path, offered)
    typer.echo(
        f"What this site takes part in stands in {folder / POLICY}: read it, and change what you want otherwise."
    )


def offer(
    folder: Folder,
    data: Annotated[Path, typer.Option(help="A CSV or Parquet file or a folder, as for init.")],
    columns: Names = None,
    address: Annotated[
        str | None, typer.Option(help="host:port or relay://host:port, as for init; by default the old one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a site's invitation anew, after its data have changed: with the same keys, and what the columns are now.

    \b
    Example:
      roundelay ring offer --folder oslo --data oslo.csv --columns age,sex,outcome
    """
    from roundelay.agents.agreement.disk import PUBLIC, read_at_most, write_whole
    from roundelay.agents.agreement.identity import load_identity
    from roundelay.agents.agreement.invitations import address_in, write_invitation
    from roundelay.agents.agreement.policy import read_policy
    from roundelay.agents.agreement.signed_text import MOST_BYTES

    own = load_identity(folder)
    path = _invitation_of(folder, own.name)
    if address is None:
        address = address_in(read_at_most(path, MOST_BYTES), str(path)) if path.exists() else ""
    offered = _offered(data, _names(columns), None, read_policy(folder))
    write_whole(path, write_invitation(own, address, offered.columns), PUBLIC)
    if as_json:
        print_json(
            {
                "invitation": str(path),
                "offered": [_as_table(column) for column in offered.columns],
                "notes": offered.notes,
            }
        )
        return
    _print_offer(path, offered)


def identity(folder: Folder, as_json: AsJson = False) -> None:
    """Say who the site in a folder is: its name, its fingerprint, and until when its certificate is good.

    \b
    Example:
      roundelay ring identity --folder oslo
    """
    from roundelay.agents.agreement.identity import expiry, fingerprint, load_identity

    own = load_identity(folder)
    end = expiry(own.certificate)
    if as_json:
        print_json({"name": own.name, "fingerprint": fingerprint(own.certificate), "expiry": end.isoformat()})
        return
    typer.echo(f"{own.name}, good until {end:%Y-%m-%d}")
    typer.echo(f"Fingerprint {fingerprint(own.certificate)}")


def rekey(
    folder: Folder,
    address: Annotated[
        str | None, typer.Option(help="host:port or relay://host:port, as for init; by default the old one.")
    ] = None,
    days: Annotated[int, typer.Option(help="How many days the certificate is good for.")] = 730,
    as_json: AsJson = False,
) -> None:
    """Make new keys for a site, and a new invitation: before the certificate expires, or where a key may be known.

    The agent uses the old keys until a ring file with the new ones is accepted: send the invitation to another member,
    who plans the next epoch by roundelay ring renew.

    \b
    Example:
      roundelay ring rekey --folder oslo
    """
    from roundelay.agents.agreement.disk import PUBLIC, write_whole
    from roundelay.agents.agreement.identity import fingerprint, load_identity, make_identity, renew_identity
    from roundelay.agents.agreement.invitations import write_invitation

    name = load_identity(folder).name
    path = _invitation_of(folder, name)
    if not path.exists():
        raise ValueError(
            f"The invitation {path}, from which the site's address and columns are taken, is not there: restore it, or make "
            "it by roundelay ring offer."
        )
    (before,) = read_invitations([path])
    made = make_identity(name, days)
    text = write_invitation(made, before.address if address is None else address, before.columns)
    renew_identity(folder, made)
    write_whole(path, text, PUBLIC)
    if as_json:
        print_json({"name": name, "fingerprint": fingerprint(made.certificate), "invitation": str(path)})
        return
    typer.echo(f"{name} has new keys in {folder}; its rings know the old ones until they are planned with the new.")
    typer.echo(f"Fingerprint {fingerprint(made.certificate)}")
    typer.echo(f"Send {path} to another member, who takes it in by roundelay ring renew.")


def _invitation_of(folder: Path, name: str) -> Path:
    return folder / f"{name.replace(' ', '-')}.invitation.toml"


def _names(columns: str | None) -> tuple[str, ...]:
    """The names in a list, between commas; one with a comma in it stands in quotation marks."""
    if columns is None:
        return ()
    return tuple(
        name for cell in next(csv.reader([columns], skipinitialspace=True), []) if (name := " ".join(cell.split()))
    )


def _offered(data: Path | None, names: tuple[str, ...], target: str | None, policy: Policy) -> Offer:
    from roundelay.agents.agreement.policy import ALL
    from roundelay.agents.data.offering import Offer, offer

    if data is None:
        for option, value in (("--target", target), ("--columns", ",".join(names))):
            if value:
                raise ValueError(f"{option} is {value!r} but there is no --data: give the file that has this column.")
        return Offer((), ())
    allowed = () if ALL in policy.allowed_columns else policy.allowed_columns
    closed = [name for name in names if allowed and name not in allowed]
    if closed:
        raise ValueError(
            f"The column {closed[0]!r} is to be offered, but this site's policy does not allow it (allowed_columns): change the policy, or leave "
            "the column out."
        )
    found = offer(data, policy.least_rows_a_level, names or allowed)
    known = [column.name for column in found.columns]
    if target is not None and target not in known:
        raise ValueError(f"There is no column {target!r} in {data}: its columns are {', '.join(known)}.")
    return found


def _print_offer(path: Path, offered: Offer) -> None:
    typer.echo(f"The invitation for the other sites is {path}; it has no secret.")
    if offered.columns:
        typer.echo("It says that the data have")
    for column in offered.columns:
        typer.echo(f"  {column}: {_in_words(column)}")
    for note in offered.notes:
        typer.echo(f"! {note}")


def _in_words(column: Column) -> str:
    if column.values == "levels":
        return f"the words {', '.join(column.levels)}" if column.levels else "words, none of which is told"
    if column.values == "date":
        return "dates"
    return f"numbers, {', '.join(column.levels)} among them" if column.levels else "numbers"


def _as_table(column: Column) -> dict[str, object]:
    from roundelay.agents.agreement.invitations import described_table

    return described_table(column)


def pause(ring: RingFile, folder: Folder) -> None:
    """Let this site's agent keep the token when it comes. Nothing is lost, and everybody waits.

    \b
    Example:
      roundelay ring pause ring.toml --folder oslo
    """
    from roundelay.agents.site.taking_part import PAUSED, ask

    ask(folder, read_plan(ring).plan.run, PAUSED)
    typer.echo("The agent will keep the token when it comes. Let it go on by roundelay ring resume.")


def resume(ring: RingFile, folder: Folder) -> None:
    """Let this site's agent go on after a pause.

    \b
    Example:
      roundelay ring resume ring.toml --folder oslo
    """
    from roundelay.agents.site.taking_part import PAUSED, ask

    ask(folder, read_plan(ring).plan.run, PAUSED, wanted=False)
    typer.echo("The agent goes on.")


def stop(ring: RingFile, folder: Folder) -> None:
    """Ask the whole ring to stop where it is, at the agent's next visit; every site then writes the model so far.

    \b
    Example:
      roundelay ring stop ring.toml --folder oslo
    """
    from roundelay.agents.site.taking_part import STOPPING, ask

    ask(folder, read_plan(ring).plan.run, STOPPING)
    typer.echo("The ring will stop when the token comes by.")
