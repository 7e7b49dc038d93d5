"""Roundelay: a token goes round a ring of agents and comes back a little closer to the optimum of Σ f_i(x)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from roundelay.algorithms import (
    CHOCO,
    COCA,
    DADMM,
    DGD,
    EXTRA,
    IADMM,
    IPWADMM,
    LEAD,
    MCSAG,
    NIDS,
    PIADMM1,
    PIADMM2,
    PQASGD,
    PWADMM,
    SIADMM,
    WADMM,
    WPG,
    ColouredDADMM,
    ContributionNoise,
    DualPerturbedADMM,
    EFSignSGD,
    GradientTracking,
    IncrementalGradient,
    MaskedLinks,
    NoDefence,
    OnePass,
    PenaltyPerturbedADMM,
    PrimalPerturbedADMM,
    QuantisedADMM,
    RandomStart,
    Scaffnew,
    SealedStart,
    SparseDropping,
    UniformStart,
    WeightedADMM,
    ZeroStart,
    ZeroSumStart,
)
from roundelay.comparison import Comparison, Tuning, compare, tune
from roundelay.engine import AugmentedLagrangian, Ensemble, Invariant, KKTResiduals, Run, load_run, simulate
from roundelay.links import Censoring, Channel, Plain, Quantised, RandomK, Rounded, Signs, TopK, TopShare
from roundelay.links.conditions import BernoulliLoss, GilbertElliott, NetworkConditions
from roundelay.networks import (
    Network,
    barbell,
    complete,
    from_networkx,
    grid,
    path,
    random_network,
    ring,
    star,
)
from roundelay.networks.walks import ClosedUniformWalk, Cycle, LeastVisitedWalk, MetropolisWalk, UniformWalk
from roundelay.plots import plot_convergence, save_figure
from roundelay.problems import (
    L1,
    Box,
    CallableProblem,
    LeastSquares,
    Logistic,
    NonNegative,
    paper_least_squares,
    paper_logistic,
)
from roundelay.transcripts import (
    Colluders,
    Eavesdropper,
    Link,
    Neighbours,
    Transcript,
    load_transcript,
    save_transcript,
)

if TYPE_CHECKING:
    from roundelay.privacy import PrivacyBudget, PrivacyLoss, Public, identifiable, load_public, save_public
    from roundelay.privacy.audit import Audit, AuditOfAll, audit, audit_all, audit_transcript

# Loaded when first used: a simulation need not wait for the solvers of the attacks.
_LATER = {
    **dict.fromkeys(("Audit", "AuditOfAll", "audit", "audit_all", "audit_transcript"), "roundelay.privacy.audit"),
    **dict.fromkeys(
        ("PrivacyBudget", "PrivacyLoss", "Public", "identifiable", "load_public", "save_public"), "roundelay.privacy"
    ),
}


def __getattr__(name: str) -> Any:
    """The names that are loaded later."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


__version__ = "0.1.0"

__all__ = [
    "CHOCO",
    "COCA",
    "DADMM",
    "DGD",
    "EXTRA",
    "IADMM",
    "IPWADMM",
    "L1",
    "LEAD",
    "MCSAG",
    "NIDS",
    "PIADMM1",
    "PIADMM2",
    "PQASGD",
    "PWADMM",
    "SIADMM",
    "WADMM",
    "WPG",
    "Audit",
    "AuditOfAll",
    "AugmentedLagrangian",
    "BernoulliLoss",
    "Box",
    "CallableProblem",
    "Censoring",
    "Channel",
    "ClosedUniformWalk",
    "Colluders",
    "ColouredDADMM",
    "Comparison",
    "ContributionNoise",
    "Cycle",
    "DualPerturbedADMM",
    "EFSignSGD",
    "Eavesdropper",
    "Ensemble",
    "GilbertElliott",
    "GradientTracking",
    "IncrementalGradient",
    "Invariant",
    "KKTResiduals",
    "LeastSquares",
    "LeastVisitedWalk",
    "Link",
    "Logistic",
    "MaskedLinks",
    "MetropolisWalk",
    "Neighbours",
    "Network",
    "NetworkConditions",
    "NoDefence",
    "NonNegative",
    "OnePass",
    "PenaltyPerturbedADMM",
    "Plain",
    "PrimalPerturbedADMM",
    "PrivacyBudget",
    "PrivacyLoss",
    "Public",
    "Quantised",
    "QuantisedADMM",
    "RandomK",
    "RandomStart",
    "Rounded",
    "Run",
    "Scaffnew",
    "SealedStart",
    "Signs",
    "SparseDropping",
    "TopK",
    "TopShare",
    "Transcript",
    "Tuning",
    "UniformStart",
    "UniformWalk",
    "WeightedADMM",
    "ZeroStart",
    "ZeroSumStart",
    "audit",
    "audit_all",
    "audit_transcript",
    "barbell",
    "compare",
    "complete",
    "from_networkx",
    "grid",
    "identifiable",
    "load_public",
    "load_run",
    "load_transcript",
    "paper_least_squares",
    "paper_logistic",
    "path",
    "plot_convergence",
    "random_network",
    "ring",
    "save_figure",
    "save_public",
    "save_transcript",
    "simulate",
    "star",
    "tune",
]
