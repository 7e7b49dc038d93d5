"""`roundelay ring`: the commands by which sites set up a ring."""

from __future__ import annotations

import typer

from roundelay.cli.exits import CommandsOfARing
from roundelay.cli.ring.accepting import accept, show
from roundelay.cli.ring.changes import drop, join, renew
from roundelay.cli.ring.comparing import compare
from roundelay.cli.ring.demo import demo
from roundelay.cli.ring.ledger import ledger
from roundelay.cli.ring.planning import plan
from roundelay.cli.ring.site import identity, init, offer, pause, rekey, resume, stop
from roundelay.cli.ring.status import status
from roundelay.cli.ring.up import up

ring = typer.Typer(name="ring", cls=CommandsOfARing, no_args_is_help=True, rich_markup_mode=None)


@ring.callback()
def ring_command() -> None:
    """Set up a ring of real sites, without a server.

    Every site makes an identity and sends its invitation to the others; one of them plans the ring and signs the ring
    file; every site accepts it. No secret ever leaves a site.

    \b
    Example:
      roundelay ring init --folder oslo --name Oslo --address oslo.example.org:7443 --data oslo.csv --target outcome
      roundelay ring plan *.invitation.toml --folder oslo --task logistic --target outcome --out ring.toml
      roundelay ring accept ring.toml --folder oslo
    """


ring.command(short_help="Make a site's keys and its invitation.")(init)
ring.command(short_help="Write a site's invitation anew, for data that have changed.")(offer)
ring.command(short_help="Say who a site is.")(identity)
ring.command(short_help="Make new keys for a site.")(rekey)
ring.command(short_help="Plan a ring from invitations, and sign the ring file.")(plan)
ring.command(short_help="Say what a ring file says.")(show)
ring.command(short_help="Accept a ring file at a site.")(accept)
ring.command(short_help="Plan the next epoch without some sites.")(drop)
ring.command(short_help="Plan the next epoch with new sites.")(join)
ring.command(short_help="Plan the next epoch with a new key of a member.")(renew)
ring.command(short_help="Say to which sums a site has added, and check its ledger.")(ledger)
ring.command(short_help="Say what a site's agent is doing.")(status)
ring.command(short_help="Hold the journals of several sites against each other.")(compare)
ring.command(short_help="Let the agent keep the token when it comes.")(pause)
ring.command(short_help="Let the agent go on after a pause.")(resume)
ring.command(short_help="Ask the whole ring to stop where it is.")(stop)
ring.command(short_help="Try a whole ring of real processes on this machine.")(up)
ring.command(short_help="Five sites fit one model to real data; one is killed on the way.")(demo)
