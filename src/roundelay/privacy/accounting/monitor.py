"""ε as a column of the history."""

from __future__ import annotations

from dataclasses import dataclass

from roundelay.algorithms import TokenMethod
from roundelay.engine.monitors import Snapshot
from roundelay.privacy.accounting.composition import Bound
from roundelay.privacy.accounting.guarantee import check_delta
from roundelay.privacy.accounting.ledger import ledger_of
from roundelay.privacy.accounting.reasons import why_no_guarantee
from roundelay.problems import Problem


@dataclass(frozen=True)
class PrivacyLoss:
    """The ε that the agent with the largest has spent so far, at this `delta`.

    Every number of visits is reckoned once: in a millisecond, but with sampling in a fifth of a second. There
    `bound="rdp"` is quicker, and a little larger.
    """

    delta: float = 1e-5
    bound: Bound = "exact"
    columns: tuple[str, ...] = ("epsilon",)

    def __post_init__(self) -> None:
        check_delta(self.delta)

    def refusal(self, method: TokenMethod) -> str:
        """It needs a guarantee."""
        return why_no_guarantee(method)

    def measure(self, problem: Problem, method: TokenMethod, snapshot: Snapshot) -> tuple[float, ...]:
        """ε."""
        assert snapshot.visits is not None
        return (ledger_of(method, problem, self.delta, self.bound).spent(snapshot.visits).epsilon,)
