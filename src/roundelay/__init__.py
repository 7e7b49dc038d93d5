"""Roundelay: a token goes round a ring of agents and comes back a little closer to the optimum of Σ f_i(x).

This is the public list: each name once, from where it is defined.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from roundelay.algorithms.algorithm import (
    Algorithm as Algorithm,
)
from roundelay.algorithms.gossip.admm import (
    COCA as COCA,
    DADMM as DADMM,
    ColouredDADMM as ColouredDADMM,
    QuantisedADMM as QuantisedADMM,
    WeightedADMM as WeightedADMM,
)
from roundelay.algorithms.gossip.compressed import (
    CHOCO as CHOCO,
    LEAD as LEAD,
)
from roundelay.algorithms.gossip.descent import (
    DGD as DGD,
    EXTRA as EXTRA,
    NIDS as NIDS,
)
from roundelay.algorithms.gossip.feedback import (
    EFSignSGD as EFSignSGD,
    SparseDropping as SparseDropping,
)
from roundelay.algorithms.gossip.mixing import (
    BestConstant as BestConstant,
    Laplacian as Laplacian,
    Lazy as Lazy,
    Metropolis as Metropolis,
    OwnWeights as OwnWeights,
)
from roundelay.algorithms.gossip.private_admm import (
    DualPerturbedADMM as DualPerturbedADMM,
    PenaltyPerturbedADMM as PenaltyPerturbedADMM,
    PrimalPerturbedADMM as PrimalPerturbedADMM,
)
from roundelay.algorithms.gossip.skipping import (
    PQASGD as PQASGD,
    Scaffnew as Scaffnew,
)
from roundelay.algorithms.gossip.tracking import (
    GradientTracking as GradientTracking,
    NetworkDANE as NetworkDANE,
)
from roundelay.algorithms.parts.defences import (
    ContributionNoise as ContributionNoise,
    Defence as Defence,
    MaskedLinks as MaskedLinks,
    NoDefence as NoDefence,
)
from roundelay.algorithms.parts.starts import (
    SealedStart as SealedStart,
    Start as Start,
    UniformStart as UniformStart,
    ZeroStart as ZeroStart,
    ZeroSumStart as ZeroSumStart,
)
from roundelay.algorithms.sealed.noisy_newton import (
    NoisyNewton as NoisyNewton,
)
from roundelay.algorithms.sealed.optimisers import (
    LBFGS as LBFGS,
    ConjugateGradients as ConjugateGradients,
    Newton as Newton,
    NormalEquations as NormalEquations,
)
from roundelay.algorithms.sealed.sealed_laps import (
    SealedLaps as SealedLaps,
)
from roundelay.algorithms.token.finite_sums import (
    AcceleratedToken as AcceleratedToken,
    PointSAGA as PointSAGA,
    ProxDFinito as ProxDFinito,
)
from roundelay.algorithms.token.gradient import (
    MCSAG as MCSAG,
    WPG as WPG,
    IncrementalGradient as IncrementalGradient,
    PrivateIncrementalGradient as PrivateIncrementalGradient,
)
from roundelay.algorithms.token.incremental import (
    IADMM as IADMM,
    PIADMM1 as PIADMM1,
    PIADMM2 as PIADMM2,
    SIADMM as SIADMM,
    Algorithm2 as Algorithm2,
    RandomStart as RandomStart,
)
from roundelay.algorithms.token.one_pass import (
    OnePass as OnePass,
)
from roundelay.algorithms.token.walking import (
    IPWADMM as IPWADMM,
    PWADMM as PWADMM,
    WADMM as WADMM,
)
from roundelay.comparison.bounds import (
    hard_chain as hard_chain,
    least_error as least_error,
    least_hops as least_hops,
)
from roundelay.comparison.comparing import (
    compare as compare,
)
from roundelay.comparison.comparison import (
    Comparison as Comparison,
)
from roundelay.comparison.sweep import (
    SweepPlan as SweepPlan,
    sweep as sweep,
    sweep_plan as sweep_plan,
)
from roundelay.comparison.tuning import (
    Tuning as Tuning,
    tune as tune,
)
from roundelay.engine.ensemble import (
    Ensemble as Ensemble,
    load_ensemble as load_ensemble,
)
from roundelay.engine.monitors import (
    AugmentedLagrangian as AugmentedLagrangian,
    Invariant as Invariant,
    KKTResiduals as KKTResiduals,
)
from roundelay.engine.result import (
    Run as Run,
)
from roundelay.engine.simulate import (
    simulate as simulate,
)
from roundelay.engine.storage import (
    load_run as load_run,
)
from roundelay.links.channel import (
    Censoring as Censoring,
    Channel as Channel,
)
from roundelay.links.compressors import (
    Compressor as Compressor,
    Plain as Plain,
    Quantised as Quantised,
    RandomK as RandomK,
    Rounded as Rounded,
    Signs as Signs,
    TopK as TopK,
    TopShare as TopShare,
)
from roundelay.links.conditions import (
    BernoulliLoss as BernoulliLoss,
    GilbertElliott as GilbertElliott,
    NetworkConditions as NetworkConditions,
)
from roundelay.links.presence import (
    AllLinks as AllLinks,
    AlwaysAwake as AlwaysAwake,
    AwakeAtRandom as AwakeAtRandom,
    PeriodicLinks as PeriodicLinks,
    Presence as Presence,
    RandomLinks as RandomLinks,
    SleepsInTurns as SleepsInTurns,
    Waking as Waking,
)
from roundelay.networks.constructors import (
    barbell as barbell,
    complete as complete,
    from_networkx as from_networkx,
    grid as grid,
    path as path,
    random_network as random_network,
    ring as ring,
    star as star,
)
from roundelay.networks.graph import (
    Network as Network,
)
from roundelay.networks.walks import (
    ClosedUniformWalk as ClosedUniformWalk,
    Cycle as Cycle,
    LeastVisitedWalk as LeastVisitedWalk,
    MetropolisWalk as MetropolisWalk,
    MixedWalk as MixedWalk,
    UniformWalk as UniformWalk,
    Walk as Walk,
)
from roundelay.plots.convergence import (
    plot_convergence as plot_convergence,
)
from roundelay.plots.saving import (
    save_figure as save_figure,
)
from roundelay.plots.style import (
    PaperStyle as PaperStyle,
)
from roundelay.problems.callables import (
    CallableProblem as CallableProblem,
)
from roundelay.problems.least_squares import (
    LeastSquares as LeastSquares,
    paper_least_squares as paper_least_squares,
)
from roundelay.problems.libsvm import (
    read_libsvm as read_libsvm,
)
from roundelay.problems.logistic import (
    Logistic as Logistic,
    paper_logistic as paper_logistic,
)
from roundelay.problems.losses import (
    Huber as Huber,
    Poisson as Poisson,
    SmoothedHinge as SmoothedHinge,
)
from roundelay.problems.problem import (
    Problem as Problem,
    ProblemBase as ProblemBase,
)
from roundelay.problems.regularisers import (
    L1 as L1,
    Box as Box,
    NonNegative as NonNegative,
    NoRegulariser as NoRegulariser,
    Regulariser as Regulariser,
)
from roundelay.problems.row_problem import (
    Loss as Loss,
    RowProblem as RowProblem,
)
from roundelay.problems.splitting import (
    ByLabel as ByLabel,
    BySize as BySize,
    Dirichlet as Dirichlet,
    Evenly as Evenly,
    Split as Split,
    split as split,
)
from roundelay.problems.torch_modules import (
    TorchProblem as TorchProblem,
)
from roundelay.problems.with_corners import (
    Hinge as Hinge,
    Quantile as Quantile,
)
from roundelay.registry import (
    register as register,
)
from roundelay.shown.show import (
    to_latex as to_latex,
)
from roundelay.transcripts.observers import (
    Colluders as Colluders,
    Eavesdropper as Eavesdropper,
    Link as Link,
    Neighbours as Neighbours,
)
from roundelay.transcripts.storage import (
    load_transcript as load_transcript,
    save_transcript as save_transcript,
)
from roundelay.transcripts.transcript import (
    Transcript as Transcript,
)

if TYPE_CHECKING:
    from roundelay.privacy import (
        NetworkPrivacy as NetworkPrivacy,
        PrivacyBudget as PrivacyBudget,
        PrivacyLoss as PrivacyLoss,
        Public as Public,
        identifiable as identifiable,
        linear_view as linear_view,
        load_public as load_public,
        network_privacy as network_privacy,
        save_public as save_public,
    )
    from roundelay.privacy.attacks.lap_sums import LapAttack as LapAttack, RecoveredAnswers as RecoveredAnswers
    from roundelay.privacy.attacks.setting import Attack as Attack, Recovered as Recovered
    from roundelay.privacy.audit.audit import (
        Audit as Audit,
        AuditOfAll as AuditOfAll,
        audit as audit,
        audit_all as audit_all,
        audit_transcript as audit_transcript,
    )
    from roundelay.privacy.protocols import (
        FederatedProtocol as FederatedProtocol,
        Learned as Learned,
        ProtocolAudit as ProtocolAudit,
        RecordedMessages as RecordedMessages,
        SiteAttack as SiteAttack,
        audit_protocol as audit_protocol,
        load_messages as load_messages,
        save_messages as save_messages,
    )
    from roundelay.regression.pooled import Fit as Fit, glm as glm

__version__ = "0.2.0"

# Loaded when first used: a simulation need not wait for the solvers of the attacks, nor for formulas.
# What is of a ring, or of rows by batches, has no entry above: what is named there may be imported by none that the ring stands on.
_LATER = {
    "roundelay.agents.data.loaded": "LoadedModel load_model",
    "roundelay.batches": "by_batches rows_of_query",
    "roundelay.privacy": "NetworkPrivacy PrivacyBudget PrivacyLoss Public identifiable linear_view load_public network_privacy save_public",
    "roundelay.privacy.attacks.lap_sums": "LapAttack RecoveredAnswers",
    "roundelay.privacy.attacks.setting": "Attack Recovered",
    "roundelay.privacy.audit": "Audit AuditOfAll audit audit_all audit_transcript",
    "roundelay.privacy.protocols": (
        "FederatedProtocol Learned ProtocolAudit RecordedMessages SiteAttack audit_protocol load_messages save_messages"
    ),
    "roundelay.regression.pooled": "Fit glm",
}


def __getattr__(name: str) -> Any:
    """The names that are loaded later."""
    for module, names in _LATER.items():
        if name in names.split():
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """All names, those that are loaded later too."""
    return sorted({*globals(), *" ".join(_LATER.values()).split()})
