"""Options that the commands of a ring share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Option("--folder", help="The folder with this site's keys and accepted ring files.")]
SignersFolder = Annotated[
    Path, typer.Option("--folder", help="The folder of the site that signs; it must be a member.")
]
RingFile = Annotated[Path, typer.Argument(metavar="RING", help="The ring file.")]
Links = Annotated[
    Path | None,
    typer.Option(help="A file with two names a line, the sites that can reach each other; without it all can."),
]
Out = Annotated[Path, typer.Option("--out", help="Write the ring file here.")]
