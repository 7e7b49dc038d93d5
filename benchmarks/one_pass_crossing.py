"""From which dimension on do fewer units do than the exact one pass needs?

Conjugate gradients on sums under masks do, between p = 30 and 50 on the paper's data, with nothing tuned. Of the methods with a token none does on the
paper's data, uniform features, where the condition number grows with p as the one pass does; with centred features, whose condition
number stays small, they do, too. WPG and I-ADMM have the best of a few parameters.
"""

from __future__ import annotations

import numpy as np

import roundelay as rl

AGENTS, ROWS, LEVEL, HOPS = 100, 30, 1e-6, 400_000
FACTORS_ALPHA, FACTORS_RHO = (1.0, 2.0, 4.0, 8.0), (0.1, 0.2, 0.4, 0.8)


def main() -> None:
    """Measure and print."""
    network = rl.random_network(AGENTS, 0.3, seed=0)
    print(f"Units to {LEVEL:g}, N={AGENTS}, {ROWS} rows an agent, one seed; WPG's α and I-ADMM's ρ the best of four")
    for kind in ("uniform", "normal"):
        for dim in (5, 10, 20, 30, 50, 100):
            generator = np.random.default_rng(0)
            draw = generator.random if kind == "uniform" else generator.standard_normal
            features = [draw((ROWS, dim)) for _ in range(AGENTS)]
            problem = rl.LeastSquares(features, [generator.random(ROWS) for _ in range(AGENTS)])
            wpg = min(_units(rl.WPG(alpha=factor / problem.L), problem, network) for factor in FACTORS_ALPHA)
            iadmm = min(_units(rl.IADMM(rho=factor * problem.L), problem, network) for factor in FACTORS_RHO)
            once = rl.simulate(rl.OnePass(), problem, network).units
            sums = _units(rl.SealedLaps("conjugate-gradients"), problem, network)
            print(
                f"  {kind:8s} p={dim:3d}  κ={problem.L / problem.mu:6.1f}  WPG {wpg:8,.0f}  I-ADMM {iadmm:8,.0f}  one pass {once:6,.0f}"
                f"  conjugate gradients on sums {sums:6,.0f}",
                flush=True,
            )


def _units(algorithm: object, problem: rl.LeastSquares, network: rl.Network) -> float:
    run = rl.simulate(algorithm, problem, network, HOPS, tolerance=LEVEL / 2.0, progress=False)
    return run.units_to(LEVEL)


if __name__ == "__main__":
    main()
