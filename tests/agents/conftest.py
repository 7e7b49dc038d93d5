from datetime import UTC, datetime, timedelta
from functools import cache

from roundelay import PIADMM1, SealedStart
from roundelay.agents.agreement.epochs import plan_ring
from roundelay.agents.agreement.identity import Identity, _identity_between, make_identity
from roundelay.agents.agreement.invitations import Invitation, read_invitation, write_invitation
from roundelay.agents.agreement.plan import Column, RingPlan, Stopping, Task

COLUMNS = (Column("age", "years"), Column("length", "cm"), Column("outcome"))
TASK = Task("logistic", COLUMNS[:2], COLUMNS[2])
ALGORITHM = PIADMM1(rho=1.0, start=SealedStart())


@cache
def site(name: str, turn: int = 0) -> Identity:
    """A site's identity, made once; another `turn` has other keys."""
    return make_identity(name)


def expired(name: str) -> Identity:
    """An identity whose certificate was good until yesterday."""
    now = datetime.now(UTC)
    return _identity_between(name, now - timedelta(days=9), now - timedelta(days=1))


def invited(identity: Identity, address: str | None = None, columns: tuple[Column, ...] = COLUMNS) -> Invitation:
    """What a site's invitation says, written and read."""
    place = f"{identity.name.replace(' ', '-')}.example.org:7443" if address is None else address
    return read_invitation(write_invitation(identity, place, columns), f"the invitation of {identity.name}")


def ring_of(*names: str, links: list[tuple[str, str]] | None = None) -> RingPlan:
    """A plan for these sites."""
    return plan_ring([invited(site(name)) for name in names], links, ALGORITHM, TASK, Stopping())
