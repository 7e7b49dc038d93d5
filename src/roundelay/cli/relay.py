"""`roundelay relay`."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import Annotated

import typer

from roundelay.cli.options import AsJson
from roundelay.cli.output import print_json


def relay(
    listen: Annotated[str, typer.Option(help="Listen here: host:port.")] = "0.0.0.0:7440",
    most: Annotated[int, typer.Option(min=2, help="Take at most so many connections; a link is two.")] = 1000,
    most_per_address: Annotated[int, typer.Option(min=1, help="Take at most so many from one address.")] = 64,
    as_json: AsJson = False,
) -> None:
    """Let sites meet that can only dial out: a blind post office, until Ctrl-C.

    Both ends of a link dial it, and it hands the bytes of each to the other. It has no keys and no ring file, learns no
    names, keeps no log, and sees nothing but encrypted bytes: all it can do is refuse its service. A site that is met here
    gives relay://host:port as its address.

    \b
    Example:
      roundelay relay --listen 0.0.0.0:7440
      roundelay ring init --folder oslo --name Oslo --address relay://relay.example.org:7440
    """
    from roundelay.agents.agreement.names import check_address, relay_of
    from roundelay.agents.links.open_files import allow_enough, most_connections

    check_address(listen)
    if not listen or relay_of(listen):
        raise ValueError("A relay listens at an address of its own: write host:port, for example 0.0.0.0:7440.")
    allow_enough()
    asyncio.run(_serve(listen, min(most, most_connections()), most_per_address, as_json))


async def _serve(listen: str, most: int, most_per_address: int, as_json: bool) -> None:
    from roundelay.agents.links.relay import Relay

    loop, this = asyncio.get_running_loop(), asyncio.current_task()
    assert this is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, this.cancel)
    post_office = Relay(most, most_per_address)
    try:
        address = await post_office.start(listen)
    except OSError as error:
        raise ValueError(
            f"The address {listen} can't be listened on ({error.strerror or error}): free it, or name another one by --listen."
        ) from None
    if as_json:
        print_json({"listens": address, "most": most, "most_per_address": most_per_address})
    else:
        typer.echo(
            f"The relay listens at {address}, for at most {most} connections, {most_per_address} from one address."
        )
    try:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
    finally:
        await post_office.stop()
