"""The attacks on one agent by name, cheap ones first: what an audit runs, and a site's privacy meter."""

from __future__ import annotations

from typing import Protocol

from roundelay.privacy.attacks.families import LogisticRecords
from roundelay.privacy.attacks.parametric_first_order import parametric_first_order
from roundelay.privacy.attacks.parametric_primal import parametric_primal
from roundelay.privacy.attacks.parametric_step_size import parametric_step_size
from roundelay.privacy.attacks.recursions import backward_recursion, forward_filter, recursion, telescope
from roundelay.privacy.attacks.setting import Recovered
from roundelay.privacy.attacks.vector_gamma import vector_gamma
from roundelay.privacy.public import Public
from roundelay.transcripts import Visits

# With more records an agent the equations hardly tell them apart.
MOST_RECORDS = 5


class Attack(Protocol):
    """What an observer can make of the visits to an agent; it refuses by a ValueError what its equations are not made for."""

    def __call__(self, visits: Visits, public: Public, /) -> Recovered:
        """An estimate of what the agent keeps to itself."""


ATTACKS: tuple[tuple[str, Attack], ...] = (
    ("recursion", recursion),
    ("backward recursion", backward_recursion),
    ("telescope", telescope),
    ("forward filter", forward_filter),
    ("parametric, step size", parametric_step_size),
    ("parametric, primal", parametric_primal),
    ("parametric, first order", parametric_first_order),
    ("vector γ", vector_gamma),
)


def attacks_for(records: LogisticRecords | None = None) -> dict[str, Attack]:
    """All attacks; where it is public how many `records` every agent has, that on logistic records as well."""
    attacks = dict(ATTACKS)
    if records is not None and records.samples <= MOST_RECORDS:
        attacks["logistic records"] = lambda visits, public: parametric_first_order(visits, public, records)
    return attacks
