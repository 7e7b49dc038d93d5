"""The methods of the field, each with the parameters that its authors or the paper give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import roundelay as rl

Kind = Literal["least squares", "logistic"]


@dataclass(frozen=True)
class Entry:
    """A method of the field: how it is set for a problem, and whether it is exact or ends at a floor.

    `from_paper` tells the parameters that the paper prints; the others are their authors' or follow from L.
    """

    name: str
    given: Callable[[Kind, Any], Any]
    exact: bool = True
    from_paper: bool = False
    # An exact step for logistic regression takes a Newton iteration for each agent.
    solves_exactly: bool = False


def _token_admm(kind: Any) -> Mapping[str, Any]:
    """ρ = 10 for least squares; ρ = 1 and first order for the logistic problem."""
    return {"rho": 10.0} if kind == "least squares" else {"rho": 1.0, "first_order": True}


def _start(kind: Kind) -> Any:
    return rl.UniformStart(0.0, 100.0 if kind == "least squares" else 10.0)


def _parallel(kind: Kind) -> Mapping[str, Any]:
    return {"tau": 0.0} if kind == "least squares" else {"tau": 3.0, "first_order": True}


def _first_order(kind: Kind) -> bool:
    return kind == "logistic"


ENTRIES: tuple[Entry, ...] = (
    Entry("I-ADMM", lambda kind, problem: rl.IADMM(**_token_admm(kind)), from_paper=True),
    Entry("Algorithm 2", lambda kind, problem: rl.RandomStart(start=_start(kind), **_token_admm(kind)), from_paper=True),
    Entry("PI-ADMM1", lambda kind, problem: rl.PIADMM1(start=_start(kind), **_token_admm(kind)), from_paper=True),
    Entry(
        "PI-ADMM2", lambda kind, problem: rl.PIADMM2(sigma=1e-3, start=_start(kind), **_token_admm(kind)),
        exact=False, from_paper=True,
    ),
    Entry("W-ADMM", lambda kind, problem: rl.WADMM(**_token_admm(kind)), from_paper=True),
    Entry("PW-ADMM", lambda kind, problem: rl.PWADMM(rho=1.0, walks=25, **_parallel(kind))),
    Entry("IPW-ADMM", lambda kind, problem: rl.IPWADMM(rho=1.0, walks=25, **_parallel(kind)), from_paper=True),
    Entry("sI-ADMM", lambda kind, problem: rl.SIADMM(rho=10.0 if kind == "least squares" else 1.0), exact=False),
    Entry("WPG", lambda kind, problem: rl.WPG(alpha=1.0 / problem.L)),
    Entry("incremental gradient", lambda kind, problem: rl.IncrementalGradient(alpha=0.1 / problem.L), exact=False),
    Entry("MC-SAG", lambda kind, problem: rl.MCSAG()),
    Entry("one pass", lambda kind, problem: rl.OnePass()),
    Entry("COCA", lambda kind, problem: rl.COCA(c=1.0, alpha=1.0, rho=0.85, first_order=_first_order(kind)), from_paper=True),
    Entry("D-ADMM", lambda kind, problem: rl.DADMM(c=1.0, first_order=_first_order(kind))),
    Entry("coloured D-ADMM", lambda kind, problem: rl.ColouredDADMM(rho=1.0), solves_exactly=True),
    Entry("weighted ADMM", lambda kind, problem: rl.WeightedADMM(1.0, first_order=_first_order(kind))),
    Entry("quantised ADMM", lambda kind, problem: rl.QuantisedADMM(c=1.0, step=1e-3, first_order=_first_order(kind)), exact=False),
    Entry("DGD", lambda kind, problem: rl.DGD(), exact=False),
    Entry("EXTRA", lambda kind, problem: rl.EXTRA()),
    Entry("NIDS", lambda kind, problem: rl.NIDS()),
    Entry("gradient tracking", lambda kind, problem: rl.GradientTracking()),
    Entry("gradient tracking (ATC)", lambda kind, problem: rl.GradientTracking(adapt_then_combine=True)),
    Entry("LEAD", lambda kind, problem: rl.LEAD()),
    Entry("CHOCO", lambda kind, problem: rl.CHOCO(), exact=False),
    Entry("Scaffnew", lambda kind, problem: rl.Scaffnew()),
    Entry("EF-SignSGD", lambda kind, problem: rl.EFSignSGD(), exact=False),
    Entry("sparse dropping", lambda kind, problem: rl.SparseDropping(), exact=False),
    Entry("PQASGD", lambda kind, problem: rl.PQASGD(), exact=False),
    Entry("DP-ADMM (dual)", lambda kind, problem: rl.DualPerturbedADMM(), exact=False, solves_exactly=True),
    Entry("DP-ADMM (primal)", lambda kind, problem: rl.PrimalPerturbedADMM(), exact=False, solves_exactly=True),
    Entry("DP-ADMM (penalty)", lambda kind, problem: rl.PenaltyPerturbedADMM(), exact=False, solves_exactly=True),
)  # fmt: skip
