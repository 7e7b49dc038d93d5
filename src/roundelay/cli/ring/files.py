"""The options that the commands of a ring share, and the files that they read and write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundelay.cli import completion

if TYPE_CHECKING:
    from roundelay.agents.agreement.invitations import Invitation
    from roundelay.agents.agreement.plan import RingPlan
    from roundelay.agents.agreement.ringfile import SignedPlan

Folder = Annotated[Path, typer.Option("--folder", help="The folder with this site's keys and accepted ring files.")]
SignersFolder = Annotated[
    Path, typer.Option("--folder", help="The folder of the site that signs; it must be a member.")
]
RingFile = Annotated[Path, typer.Argument(metavar="RING", help="The ring file.", autocompletion=completion.ring_files)]
Links = Annotated[
    Path | None,
    typer.Option(help="A file with two names a line, the sites that can reach each other; without it all can."),
]
DespiteDifference = Annotated[
    bool,
    typer.Option(
        "--despite-difference", help="Go on though earlier sums and the new one together tell of single sites."
    ),
]
Out = Annotated[Path, typer.Option("--out", help="Write the ring file here.")]


def read_plan(path: Path) -> SignedPlan:
    """The plan in a ring file."""
    from roundelay.agents.agreement.disk import read_at_most
    from roundelay.agents.agreement.ringfile import read_ring
    from roundelay.agents.agreement.signed_text import MOST_BYTES

    return read_ring(read_at_most(path, MOST_BYTES), str(path))


def warn_of_open_files(folder: Path) -> None:
    """Say where others on this machine could get at the site's keys."""
    from roundelay.agents.agreement.permissions import open_to_others

    for sentence, command in open_to_others(folder):
        typer.echo(f"{sentence} Close it by {command}", err=True)


def read_invitations(paths: Sequence[Path]) -> list[Invitation]:
    """The invitations in these files."""
    from roundelay.agents.agreement.disk import read_at_most
    from roundelay.agents.agreement.invitations import read_invitation
    from roundelay.agents.agreement.signed_text import MOST_BYTES

    return [read_invitation(read_at_most(path, MOST_BYTES), str(path)) for path in paths]


def read_links(path: Path | None) -> list[tuple[str, str]] | None:
    """The pairs of names in a file, two a line; a comma between them where a name has a space."""
    if path is None:
        return None
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path} can't be read: save it as text in UTF-8, two names a line.") from None
    links = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        names = [name.strip() for name in (line.split(",") if "," in line else line.split())]
        if len(names) != 2 or not all(names):
            raise ValueError(
                f"Line {number} of {path} does not name two sites: write Oslo Bergen, or Oslo, New York with a comma "
                "where a name has a space."
            )
        links.append((names[0], names[1]))
    return links


def sign_plan(plan: RingPlan, folder: Path, out: Path) -> SignedPlan:
    """Sign a plan by the identity in a folder, and write its ring file."""
    from roundelay.agents.agreement.disk import PUBLIC, write_whole
    from roundelay.agents.agreement.folder import identity_for
    from roundelay.agents.agreement.ringfile import read_ring, write_ring

    if not out.parent.is_dir():
        raise ValueError(
            f"There is no folder {out.parent} for the ring file: make it, or choose another path for --out."
        )
    text = write_ring(plan, identity_for(folder, plan))
    write_whole(out, text, PUBLIC)
    return read_ring(text, str(out))
