"""The attacks on one agent that an audit runs, and a site's privacy meter: all that are registered."""

from __future__ import annotations

import roundelay.privacy.attacks  # noqa: F401  enters those of the package
from roundelay.privacy.attacks.families import LogisticRecords
from roundelay.privacy.attacks.parametric_first_order import parametric_first_order
from roundelay.privacy.attacks.setting import Attack
from roundelay.registry import registered

# With more records an agent the equations hardly tell them apart.
MOST_RECORDS = 5


def attacks_for(records: LogisticRecords | None = None) -> dict[str, Attack]:
    """All attacks; where it is public how many `records` every agent has, that on logistic records as well."""
    attacks = dict(registered(Attack))
    if records is not None and records.samples <= MOST_RECORDS:
        attacks["logistic records"] = lambda visits, public: parametric_first_order(visits, public, records)
    return attacks
