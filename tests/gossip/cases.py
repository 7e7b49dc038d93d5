"""One table of gossip method × problem × network: what the engines and the reference are compared on.

`compiled` says whether the compiled engine runs the case too: each new module costs seconds on a fresh machine, so
that cases which differ in numbers alone, or add up parts that others test, are left to the Python engine.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import roundelay as rl

AGENTS = 7


class Case(NamedTuple):
    name: str
    algorithm: Any
    problem: Any
    network: rl.Network
    compiled: bool = False


NETWORK, LINE = rl.random_network(AGENTS, 0.6, 1), rl.path(AGENTS)
SQUARES = rl.paper_least_squares(agents=AGENTS, samples=6, dim=2, seed=1)
FIVE = rl.paper_least_squares(agents=AGENTS, samples=6, dim=5, seed=1)
LOGISTIC = rl.paper_logistic(agents=AGENTS, samples=6, dim=2, seed=1)

# Every compressor, on five coordinates.
COMPRESSORS: dict[str, Any] = {
    "Rounded": rl.Rounded(0.01),
    "Rounded, dithered": rl.Rounded(0.01, dithered=True),
    "Quantised": rl.Quantised(2),
    "Quantised, 1 bit": rl.Quantised(1),
    "Signs": rl.Signs(),
    "TopK": rl.TopK(2),
    "TopShare": rl.TopShare(0.5),
    "RandomK": rl.RandomK(2),
    "RandomK, unbiased": rl.RandomK(3, unbiased=True),
}

# One penalty for each link of NETWORK; what is left of it still connects all agents.
PENALTIES = tuple(0.0 if link % 4 == 1 else 0.3 + 0.1 * link for link in range(len(NETWORK.edges)))


def cases() -> list[Case]:
    censored = rl.Censoring(0.3, 0.8)
    return [
        # ---- ADMM
        Case("D-ADMM", rl.DADMM(0.7), SQUARES, NETWORK, True),
        Case("D-ADMM, p = 5, on a path", rl.DADMM(0.7), FIVE, LINE),
        Case("D-ADMM logistic", rl.DADMM(0.2), LOGISTIC, NETWORK, True),
        Case("D-ADMM first order", rl.DADMM(3.0, first_order=True), SQUARES, NETWORK, True),
        Case("D-ADMM first order with inertia, logistic", rl.DADMM(0.2, first_order=True, inertia=0.6), LOGISTIC, LINE),
        *(
            Case(f"D-ADMM by {name}", rl.DADMM(0.7, channel=way), FIVE, NETWORK)
            for name, way in COMPRESSORS.items()
        ),
        *(
            Case(f"D-ADMM by differences, {name}", rl.DADMM(0.7, channel=rl.Channel(way, None, True)), FIVE, NETWORK)
            for name, way in COMPRESSORS.items()
        ),
        Case("D-ADMM by differences, p = 2", rl.DADMM(0.7, channel=rl.Channel(rl.Quantised(2), None, True)), SQUARES, NETWORK, True),
        Case("D-ADMM, differences censored", rl.DADMM(0.7, channel=rl.Channel(rl.Quantised(3), censored, True)), FIVE, LINE),
        Case("COCA", rl.COCA(0.7, alpha=0.3, rho=0.9), SQUARES, NETWORK, True),
        Case("COCA as in the paper", rl.COCA(), SQUARES, LINE),
        Case("COCA logistic", rl.COCA(0.2, alpha=0.5), LOGISTIC, NETWORK),
        Case("COCA first order", rl.COCA(3.0, alpha=0.1, rho=0.9, first_order=True), SQUARES, NETWORK),
        Case("COCA first order logistic", rl.COCA(alpha=0.3, first_order=True), LOGISTIC, NETWORK, True),
        Case("COLA", rl.COCA(3.0, alpha=0.1, rho=0.9, first_order=True, cola=True), SQUARES, NETWORK, True),
        Case("COLA with inertia, logistic", rl.COCA(0.3, alpha=0.3, first_order=True, cola=True, inertia=0.4), LOGISTIC, LINE),
        Case("COCA with inertia", rl.COCA(2.0, alpha=0.1, first_order=True, inertia=3.0), SQUARES, LINE),
        Case("COCA rounded", rl.COCA(0.7, alpha=0.3, rho=0.9, compressor=rl.Rounded(0.01)), FIVE, NETWORK),
        Case("weighted ADMM", rl.WeightedADMM(PENALTIES), SQUARES, NETWORK, True),
        Case("weighted ADMM, one penalty", rl.WeightedADMM(0.4), FIVE, LINE),
        Case("weighted ADMM first order with inertia", rl.WeightedADMM([3.0, 1.0, 2.0, 5.0, 2.5, 1.5], True, 2.0), SQUARES, LINE),
        Case("weighted ADMM rounded", rl.WeightedADMM(PENALTIES, channel=rl.Rounded(0.01)), FIVE, NETWORK),
        Case("quantised ADMM", rl.QuantisedADMM(0.7, 0.02), SQUARES, NETWORK, True),
        Case("quantised ADMM dithered", rl.QuantisedADMM(0.7, 0.02, dithered=True), SQUARES, NETWORK, True),
        Case("quantised ADMM first order", rl.QuantisedADMM(2.0, 0.01, first_order=True, inertia=3.0), FIVE, LINE),
        Case("coloured D-ADMM", rl.ColouredDADMM(0.7), SQUARES, NETWORK, True),
        Case("coloured D-ADMM logistic", rl.ColouredDADMM(0.3), LOGISTIC, LINE),
        Case("coloured D-ADMM, p = 5, dithered", rl.ColouredDADMM(0.7, rl.Rounded(0.01, True)), FIVE, NETWORK),
        Case("coloured D-ADMM, differences", rl.ColouredDADMM(0.7, rl.Channel(rl.Quantised(2), None, True)), FIVE, NETWORK),
        # ---- DP-ADMM
        Case("DP-ADMM dual", rl.DualPerturbedADMM(0.7, 0.05), SQUARES, NETWORK, True),
        Case("DP-ADMM dual, p = 5", rl.DualPerturbedADMM(0.7, 0.05), FIVE, LINE),
        Case("DP-ADMM primal", rl.PrimalPerturbedADMM(0.7, 0.05), SQUARES, NETWORK, True),
        Case("DP-ADMM primal logistic", rl.PrimalPerturbedADMM(0.2, 0.05), LOGISTIC, NETWORK),
        Case("DP-ADMM penalty", rl.PenaltyPerturbedADMM(0.7, 1.1, 0.05), SQUARES, NETWORK, True),
        Case("DP-ADMM penalty, p = 5", rl.PenaltyPerturbedADMM(0.7, 1.03, 0.05), FIVE, LINE),
        # ---- gradients
        Case("DGD", rl.DGD(), SQUARES, NETWORK, True),
        Case("DGD on a path", rl.DGD(0.1), FIVE, LINE),
        Case("DGD logistic", rl.DGD(), LOGISTIC, NETWORK),
        Case("DGD with decay", rl.DGD(0.3, decay=0.7), SQUARES, LINE),
        Case("DGD adapt then combine with decay", rl.DGD(0.2, decay=0.6, adapt_then_combine=True), SQUARES, NETWORK, True),
        *(
            Case(f"DGD by {name}", rl.DGD(channel=way), FIVE, NETWORK, name == "RandomK, unbiased")
            for name, way in COMPRESSORS.items()
        ),
        Case("DGD by differences", rl.DGD(channel=rl.Channel(rl.TopK(2), None, True)), FIVE, LINE),
        Case("DGD censored", rl.DGD(channel=rl.Channel(rl.Plain(), rl.Censoring(0.2, 0.8))), SQUARES, NETWORK),
        Case("DGD adapt then combine, rounded", rl.DGD(adapt_then_combine=True, channel=rl.Rounded(0.01)), FIVE, NETWORK),
        Case("EXTRA", rl.EXTRA(), SQUARES, NETWORK, True),
        Case("EXTRA logistic", rl.EXTRA(), LOGISTIC, LINE),
        Case("EXTRA by differences", rl.EXTRA(channel=rl.Channel(rl.Quantised(3), None, True)), FIVE, NETWORK),
        Case("NIDS", rl.NIDS(), SQUARES, NETWORK, True),
        Case("NIDS logistic", rl.NIDS(), LOGISTIC, LINE),
        Case("NIDS rounded", rl.NIDS(channel=rl.Rounded(0.01)), FIVE, NETWORK),
        Case("NIDS, differences censored", rl.NIDS(channel=rl.Channel(rl.Quantised(4), censored, True)), SQUARES, NETWORK),
        Case("gradient tracking", rl.GradientTracking(), SQUARES, NETWORK, True),
        Case("gradient tracking logistic", rl.GradientTracking(), LOGISTIC, LINE),
        Case("gradient tracking dithered", rl.GradientTracking(channel=rl.Rounded(0.01, True)), FIVE, NETWORK),
        Case("gradient tracking censored", rl.GradientTracking(channel=rl.Channel(rl.Plain(), censored)), SQUARES, NETWORK),
        Case("gradient tracking, adapt then combine", rl.GradientTracking(None, True), SQUARES, NETWORK, True),
        Case("gradient tracking, adapt then combine, logistic", rl.GradientTracking(None, True), LOGISTIC, LINE),
        Case("gradient tracking, adapt then combine, dithered", rl.GradientTracking(None, True, rl.Rounded(0.01, True)), FIVE, NETWORK),
        Case("Network-DANE", rl.NetworkDANE(3.0), SQUARES, NETWORK, True),
        Case("Network-DANE logistic", rl.NetworkDANE(0.5), LOGISTIC, LINE),
        # ---- made for compressed messages
        Case("LEAD", rl.LEAD(), SQUARES, NETWORK, True),
        Case("LEAD plain", rl.LEAD(channel=rl.Plain()), SQUARES, LINE),
        Case("LEAD, p = 5, other numbers", rl.LEAD(gamma=0.7, alpha=0.3, channel=rl.Quantised(3)), FIVE, LINE),
        Case("LEAD logistic", rl.LEAD(), LOGISTIC, NETWORK),
        Case("CHOCO by TopK", rl.CHOCO(gamma=0.3, channel=rl.TopK(2)), FIVE, NETWORK, True),
        Case("CHOCO by Quantised", rl.CHOCO(), SQUARES, NETWORK, True),
        Case("CHOCO logistic", rl.CHOCO(gamma=0.4, channel=rl.Signs()), LOGISTIC, LINE),
        # ---- now and then
        Case("Scaffnew", rl.Scaffnew(q=0.4), SQUARES, NETWORK, True),
        Case("Scaffnew with tau, logistic", rl.Scaffnew(q=0.7, tau=0.1), LOGISTIC, LINE),
        Case("Scaffnew by differences", rl.Scaffnew(q=0.6, channel=rl.Channel(rl.Quantised(4), None, True)), FIVE, NETWORK),
        Case("PQASGD", rl.PQASGD(local_steps=3), SQUARES, NETWORK, True),
        Case("PQASGD plain, one step", rl.PQASGD(local_steps=1, channel=rl.Plain()), SQUARES, LINE),
        Case("PQASGD, p = 5", rl.PQASGD(local_steps=4, channel=rl.Quantised(2)), FIVE, LINE),
        Case("EF-SignSGD", rl.EFSignSGD(), FIVE, NETWORK, True),
        Case("EF-SignSGD logistic", rl.EFSignSGD(), LOGISTIC, LINE),
        Case("sparse dropping", rl.SparseDropping(share=0.3), FIVE, NETWORK, True),
        Case("sparse dropping, one coordinate", rl.SparseDropping(), FIVE, LINE),
    ]  # fmt: skip
