"""The methods of the field, each with the parameters that its authors or the paper give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import roundelay as rl

Kind = Literal["least squares", "logistic"]
KINDS: tuple[Kind, ...] = ("least squares", "logistic")
Parameters = Mapping[str, Any]


def _defaults(kind: Kind, problem: Any) -> Parameters:
    return {}


@dataclass(frozen=True)
class FieldEntry:
    """A method of the field: its class, its parameters for a problem, and whether it is exact or ends at a floor.

    `from_paper` tells the parameters that the paper prints; the others are their authors' or follow from L. `variant`
    tells two settings of one method apart.
    """

    method: type[Any]
    parameters: Callable[[Kind, Any], Parameters] = _defaults
    exact: bool = True
    from_paper: bool = False
    # An exact step for logistic regression takes a Newton iteration for each agent.
    solves_exactly: bool = False
    variant: str = ""

    @property
    def name(self) -> str:
        """What it is called in the table: the method's own name."""
        return f"{self.method.name} ({self.variant})" if self.variant else str(self.method.name)

    def given(self, kind: Kind, problem: Any) -> Any:
        """The method as it is set for a problem."""
        return self.method(**self.parameters(kind, problem))


def _token_admm(kind: Kind, problem: Any) -> Parameters:
    """ρ = 10 for least squares; ρ = 1 and first order for the logistic problem."""
    return {"rho": 10.0} if kind == "least squares" else {"rho": 1.0, "first_order": True}


def _private(kind: Kind, problem: Any) -> Parameters:
    """The same from a far start."""
    start = rl.UniformStart(0.0, 100.0 if kind == "least squares" else 10.0)
    return {"start": start, **_token_admm(kind, problem)}


def _parallel(kind: Kind, problem: Any) -> Parameters:
    tau = {"tau": 0.0} if kind == "least squares" else {"tau": 3.0, "first_order": True}
    return {"rho": 1.0, "walks": 25, **tau}


def _gossip_admm(**parameters: Any) -> Callable[[Kind, Any], Parameters]:
    """First order for the logistic problem."""
    return lambda kind, problem: {**parameters, "first_order": kind == "logistic"}


def _curved(kind: Kind, problem: Any) -> Parameters:
    """μ of the problem; for the logistic one, which flattens out far away, that of the mean function at its minimum."""
    if problem.mu > 0.0:
        return {}
    curvature = sum(problem.hessian(i, problem.optimum) for i in range(problem.agents)) / problem.agents
    return {"mu": float(np.linalg.eigvalsh(curvature)[0])}


def _sealed(optimiser: Any) -> FieldEntry:
    return FieldEntry(rl.SealedLaps, lambda kind, problem: {"optimiser": optimiser}, variant=optimiser.name)


ENTRIES: tuple[FieldEntry, ...] = (
    FieldEntry(rl.IADMM, _token_admm, from_paper=True),
    FieldEntry(rl.Algorithm2, _private, from_paper=True),
    FieldEntry(rl.PIADMM1, _private, from_paper=True),
    FieldEntry(rl.PIADMM2, lambda kind, problem: {"sigma": 1e-3, **_private(kind, problem)}, exact=False, from_paper=True),
    FieldEntry(rl.WADMM, _token_admm, from_paper=True),
    FieldEntry(rl.PWADMM, _parallel),
    FieldEntry(rl.IPWADMM, _parallel, from_paper=True),
    FieldEntry(rl.SIADMM, lambda kind, problem: {"rho": 10.0 if kind == "least squares" else 1.0}, exact=False),
    FieldEntry(rl.WPG, lambda kind, problem: {"alpha": 1.0 / problem.L}),
    FieldEntry(rl.IncrementalGradient, lambda kind, problem: {"alpha": 0.1 / problem.L}, exact=False),
    FieldEntry(
        rl.PrivateIncrementalGradient,
        lambda kind, problem: {"alpha": 0.1 / problem.L, "sigma": 1e-3, "clip_row": problem.dim**0.5, "clip_slope": 10.0},
        exact=False,
    ),
    FieldEntry(rl.ProxDFinito),
    FieldEntry(rl.MCSAG),
    FieldEntry(rl.PointSAGA, lambda kind, problem: {} if problem.mu > 0.0 else {"gamma": 1.0 / problem.L}, solves_exactly=True),
    FieldEntry(rl.AcceleratedToken, _curved),
    FieldEntry(rl.OnePass),
    _sealed(rl.NormalEquations()),
    _sealed(rl.ConjugateGradients()),
    _sealed(rl.LBFGS()),
    _sealed(rl.Newton()),
    FieldEntry(rl.COCA, _gossip_admm(c=1.0, alpha=1.0, rho=0.85), from_paper=True),
    FieldEntry(rl.DADMM, _gossip_admm(c=1.0)),
    FieldEntry(rl.ColouredDADMM, lambda kind, problem: {"rho": 1.0}, solves_exactly=True),
    FieldEntry(rl.WeightedADMM, _gossip_admm(penalties=1.0)),
    FieldEntry(rl.QuantisedADMM, _gossip_admm(c=1.0, step=1e-3), exact=False),
    FieldEntry(rl.DGD, exact=False),
    FieldEntry(rl.EXTRA),
    FieldEntry(rl.NIDS),
    FieldEntry(rl.GradientTracking),
    FieldEntry(rl.GradientTracking, lambda kind, problem: {"adapt_then_combine": True}, variant="ATC"),
    FieldEntry(rl.NetworkDANE, solves_exactly=True),
    FieldEntry(rl.LEAD),
    FieldEntry(rl.CHOCO, exact=False),
    FieldEntry(rl.Scaffnew),
    FieldEntry(rl.EFSignSGD, exact=False),
    FieldEntry(rl.SparseDropping, exact=False),
    FieldEntry(rl.PQASGD, exact=False),
    FieldEntry(rl.DualPerturbedADMM, exact=False, solves_exactly=True),
    FieldEntry(rl.PrimalPerturbedADMM, exact=False, solves_exactly=True),
    FieldEntry(rl.PenaltyPerturbedADMM, exact=False, solves_exactly=True),
)  # fmt: skip
# Whom the others are read against.
OWN = rl.IADMM.name


def entry_named(name: str) -> FieldEntry:
    """The entry of this name."""
    return next(entry for entry in ENTRIES if entry.name == name)
