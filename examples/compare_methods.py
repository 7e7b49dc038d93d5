"""Compare four methods by what they cost in communication, over several seeds, and draw the figure."""

import roundelay as rl

HOPS = 6000


def main(seeds: int = 5, figure: str = "out/compare.png") -> None:
    results = {}
    for algorithm in (rl.SealedLaps(), rl.IADMM(rho=10.0), rl.WADMM(rho=10.0), rl.WPG(alpha=0.1)):
        results[algorithm.name] = rl.simulate(
            algorithm,
            lambda seed: rl.paper_least_squares(seed=seed),
            lambda seed: rl.random_network(100, 0.3, seed),
            HOPS,
            seeds=range(seeds),
        )
    for name, runs in results.items():
        print(f"{name:11} units to 1e-6, seed by seed: {', '.join(f'{units:,.0f}' for units in runs.units_to(1e-6))}")
    print("The figure is in", rl.save_figure(rl.plot_convergence(results), figure))


if __name__ == "__main__":
    main()
