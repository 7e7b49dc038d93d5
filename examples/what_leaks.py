"""What the neighbours of an agent learn about it, setting by setting: the table of docs/privacy.md.

Every setting is run on the paper's least squares, and every agent is audited by all attacks that apply. A number is the
median over the agents of the relative error that the best attack makes; 1 or more is nothing learned. Of sealed laps and of the
one pass x is public, y stands for the gradients at all points asked, ∇f(x*) for the last of them, and the attack is that on the
words; what the sum itself says of each agent is the guess of the last row, under every setting.
"""

from __future__ import annotations

import argparse

import numpy as np

import roundelay as rl

QUANTITIES = (
    "states x",
    "multipliers y",
    "gradient at the solution",
    "slope g",
    "Hessian H",
    "Hessian H, best-known direction",
)
# The same where sums are formed: the quantity, and whether its error is that over the run or at its end.
OF_SUMS = (
    ("gradients", False),
    ("gradients", True),
    ("slope g", True),
    ("Hessian H", True),
    ("Hessian H, best-known direction", True),
)
SUMS = (
    ("**Sealed laps** (normal equations)", rl.SealedLaps(rl.NormalEquations())),
    ("Sealed laps, conjugate gradients", rl.SealedLaps(rl.ConjugateGradients())),
    ("One pass (the same sums, not sealed)", rl.OnePass()),
)  # fmt: skip
SETTINGS = (
    ("I-ADMM", rl.IADMM()),
    ("Algorithm 2 (random start)", rl.RandomStart()),
    ("PI-ADMM1", rl.PIADMM1()),
    ("PI-ADMM2, σ = 0.001", rl.PIADMM2(sigma=1e-3)),
    ("PI-ADMM1, one γ a coordinate", rl.PIADMM1(gamma_is="vector")),
    ("PI-ADMM1, zero-sum start", rl.PIADMM1(start=rl.ZeroSumStart())),
    ("I-ADMM, sealed start", rl.IADMM(start=rl.SealedStart())),
    ("I-ADMM, zero-sum start and contribution noise", rl.IADMM(start=rl.ZeroSumStart(), defence=rl.ContributionNoise())),
    ("I-ADMM, sealed start and contribution noise", rl.IADMM(start=rl.SealedStart(), defence=rl.ContributionNoise())),
)  # fmt: skip


def main(agents: int, dim: int, laps: int) -> None:
    problem, network = rl.paper_least_squares(agents, 30, dim), rl.random_network(agents, 0.3)
    print(f"N = {agents}, p = {dim}, {laps} visits of each agent; median relative errors, and units to 1e-6")
    heads = ("x", "y", "∇f(x*)", "g", "H", "H, best direction", "units")
    print("| setting | " + " | ".join(heads) + " |")
    print("|---|" + "---:|" * len(heads))
    for name, algorithm in SUMS:
        run = rl.simulate(algorithm, problem, network, transcript=True, progress=False)
        everyone = rl.audit_all(run, "neighbours")
        cells = [number(median_of_sums(everyone, *wanted)) for wanted in OF_SUMS]
        print(f"| {name} | " + " | ".join(["public", *cells, f"{run.units_to(1e-6):,.0f}"]) + " |")
    for name, algorithm in SETTINGS:
        run = rl.simulate(algorithm, problem, network, laps * agents + 1, transcript=True, progress=False)
        everyone = rl.audit_all(run, "neighbours")
        cells = [number(best_median(everyone, quantity)) for quantity in QUANTITIES]
        cost = rl.simulate(algorithm, problem, network, 400 * agents, tolerance=1e-6, progress=False).units_to(1e-6)
        print(f"| {name} | " + " | ".join([*cells, "never" if np.isinf(cost) else f"{cost:,.0f}"]) + " |")
    guess = rl.audit_all(rl.simulate(rl.IADMM(), problem, network, laps * agents + 1, transcript=True, progress=False))
    table = guess.table.groupby("quantity")["median error of a guess"].min()
    print(
        "| a guess without the transcript | " + " | ".join(number(table[quantity]) for quantity in QUANTITIES) + " | |"
    )


def best_median(everyone: rl.AuditOfAll, quantity: str) -> float:
    errors = [
        min((leak.at_end for leak in one.leaks if leak.quantity == quantity), default=np.nan) for one in everyone.audits
    ]
    return float(np.median(errors))


def median_of_sums(everyone: rl.AuditOfAll, quantity: str, at_end: bool) -> float:
    errors = [
        leak.at_end if at_end else leak.over_run
        for one in everyone.audits
        for leak in one.leaks
        if leak.quantity == quantity and leak.attack == "difference of words"
    ]
    return float(np.median(errors))


def number(value: float) -> str:
    return f"{value:.2g}" if 0.01 <= value < 1000.0 else f"{value:.0e}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--dim", type=int, default=2)
    parser.add_argument("--laps", type=int, default=20)
    options = parser.parse_args()
    main(options.agents, options.dim, options.laps)
