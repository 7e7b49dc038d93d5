"""The attacks that an audit runs on one agent, cheap ones first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from roundelay.privacy import Public
from roundelay.privacy.attacks import (
    LogisticRecords,
    Recovered,
    backward_recursion,
    forward_filter,
    parametric_first_order,
    parametric_primal,
    parametric_step_size,
    recursion,
    telescope,
    vector_gamma,
)
from roundelay.transcripts import Visits

# With more records an agent the equations hardly tell them apart.
MOST_RECORDS = 5


@dataclass(frozen=True)
class Attack:
    """An attack by name; it refuses by a ValueError what its equations are not made for."""

    name: str
    run: Callable[[Visits, Public], Recovered]


def attacks_for(records: LogisticRecords | None) -> tuple[Attack, ...]:
    """All attacks; where it is public how many `records` every agent has, that on logistic records as well."""
    several = [
        Attack("recursion", recursion),
        Attack("backward recursion", backward_recursion),
        Attack("telescope", telescope),
        Attack("forward filter", forward_filter),
        Attack("parametric, step size", parametric_step_size),
        Attack("parametric, primal", parametric_primal),
        Attack("parametric, first order", parametric_first_order),
        Attack("vector γ", vector_gamma),
    ]
    if records is not None and records.samples <= MOST_RECORDS:

        def on_records(visits: Visits, public: Public) -> Recovered:
            return parametric_first_order(visits, public, records)

        several.append(Attack("logistic records", on_records))
    return tuple(several)
