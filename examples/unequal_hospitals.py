"""Five sites with unequal numbers of patients fit one logistic model; the result is that of the pooled data."""

import numpy as np

import roundelay as rl

PATIENTS = (25, 40, 60, 120, 300)


def main() -> float:
    generator = np.random.default_rng(0)
    truth = np.array([1.0, -2.0, 0.5])
    features = [generator.normal(size=(count, 3)) for count in PATIENTS]
    labels = [np.where(generator.random(len(rows)) < 1.0 / (1.0 + np.exp(-rows @ truth)), 1, -1) for rows in features]

    sites = rl.Logistic(features, labels, ridge=1e-3, weights="rows")
    run = rl.simulate(rl.PIADMM1(rho=1.0), sites, rl.ring(5), hops=100_000, content=1e-8)
    print(run.outcome)

    pooled = rl.Logistic([np.concatenate(features)], [np.concatenate(labels)], ridge=1e-3)
    gap = float(np.abs(run.estimate - pooled.optimum).max())
    print(f"The coefficients {np.round(run.estimate, 4)} differ from the pooled fit's by at most {gap:.1e}.")
    return gap


if __name__ == "__main__":
    main()
