"""What a member learns who sees only its own tokens, by how far it stands from whose records: promised, and exactly where all is linear.

`python benchmarks/network_privacy.py` takes about two minutes, prints what docs/differential-privacy.md has, and draws its figure.
"""

from __future__ import annotations

import math

import numpy as np

import roundelay as rl
from roundelay.plots.chart import BACKGROUND, Chart, ChartFigure, Series
from roundelay.plots.chart_figure import draw_chart_figure
from roundelay.privacy import epsilon, sigma_for_problem
from roundelay.privacy.accounting.composition import composed_epsilon, multiplier_for

AGENTS, ROWS, DIM, LAPS, EPSILON, DELTA = 20, 200, 3, 20, 8.0, 1e-5
HOPS = LAPS * AGENTS
FIGURE = "docs/figures/network_privacy.png"


def drawn() -> rl.LeastSquares:
    """Every member has as many rows, of norm 1 at most; nearly all slopes are within 1."""
    rng = np.random.default_rng(1)
    truth = np.array([0.8, -0.5, 0.3])
    rows = [rng.uniform(-1.0, 1.0, (ROWS, DIM)) / math.sqrt(DIM) for _ in range(AGENTS)]
    return rl.LeastSquares(rows, [block @ truth + 0.1 * rng.normal(size=ROWS) for block in rows], scale="mean")


def at_most(
    problem: rl.LeastSquares, algorithm: rl.PrivateIncrementalGradient, visits: int
) -> rl.PrivateIncrementalGradient:
    """The same with the noise at which so many visits cost ε towards one who sees all."""
    sigma = sigma_for_problem(algorithm, problem, EPSILON, visits, DELTA)
    return rl.PrivateIncrementalGradient(algorithm.alpha, sigma, walk=algorithm.walk)


def in_epsilon(part: np.ndarray) -> np.ndarray:
    """ε of a part of the μ² that costs EPSILON."""
    multiplier = multiplier_for(EPSILON, None, 1, DELTA)
    return np.array([composed_epsilon(multiplier / math.sqrt(one), None, 1, DELTA) for one in part])


def by_distance(table: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """The median over pairs at each distance."""
    return np.array([np.median(table[distances == far]) for far in range(1, AGENTS)])


def on_a_ring(problem: rl.LeastSquares) -> None:
    """Promised and exact, by distance."""
    network, far = rl.ring(AGENTS), np.arange(1.0, AGENTS)
    steps = at_most(problem, rl.PrivateIncrementalGradient(0.5), LAPS)
    admm = rl.PIADMM2(rho=5.0, sigma=0.1, first_order=True, clip=1.0)
    told = rl.network_privacy(steps, problem, network, HOPS, DELTA)
    print(
        f"A ring of {AGENTS}, {LAPS} laps, sigma {steps.sigma:.4f}, all seen: epsilon {told.of_all.max():.3f} at delta {DELTA:g}"
    )
    print(told.by_distance.to_string(index=False))
    views = [rl.linear_view(method, problem, network, HOPS) for method in (steps, admm)]
    steady = [in_epsilon(by_distance(view.steady, told.distances)) for view in views]
    worst = [in_epsilon(by_distance(view.worst, told.distances)) for view in views]
    for name, same, most, view in zip(("noisy steps", "PI-ADMM2"), steady, worst, views, strict=True):
        print(
            f"{name}: exact, steady",
            np.round(same, 2),
            "\n   worst",
            np.round(most, 2),
            "\n   mean part",
            np.round(np.nanmean(view.mean), 4),
        )
    median = told.by_distance["median"].to_numpy()
    chart = Chart(
        "", "steps from whose records they are to who looks", f"ε at δ = {DELTA:g}",
        (
            Series("who sees all tokens", far, np.full(AGENTS - 1, EPSILON), BACKGROUND),
            Series("noisy gradient steps: promised", far, median, 0, "line", thick=True),
            Series("noisy gradient steps: exact, another target", far, steady[0], 0, "dashed"),
            Series("PI-ADMM2: exact, another target", far, steady[1], 1, "dashed"),
            Series("PI-ADMM2: exact, the worst change", far, worst[1], 1, "line"),
        ),
        y_range=(0.0, EPSILON + 0.5),
    )  # fmt: skip
    figure = draw_chart_figure(
        ChartFigure("network_privacy", "What a member learns who sees only its own tokens", "", (chart,))
    )
    print("The figure is in", rl.save_figure(figure, FIGURE))


def on_walks(problem: rl.LeastSquares) -> None:
    """A complete graph and a ring on which the token walks at random, before the walk is drawn and once it is known."""
    for name, network in (("complete graph", rl.complete(AGENTS)), ("random walk on the ring", rl.ring(AGENTS))):
        steps = at_most(problem, rl.PrivateIncrementalGradient(0.5, walk=rl.ClosedUniformWalk()), LAPS)
        before = rl.network_privacy(steps, problem, network, HOPS, DELTA)
        after = rl.network_privacy(steps, problem, network, HOPS, DELTA, seed=1)
        print(
            f"{name}, {HOPS} hops: all seen, over all walks {before.of_all.max():.3f}; on one walk {after.of_all.min():.2f} to {after.of_all.max():.2f}"
        )
        both = before.by_distance.merge(after.by_distance, on="distance", suffixes=("", " known"))
        print(both.iloc[[0, 1, 2, 4, 9] if len(both) > 9 else [0]].to_string(index=False))


def accuracy(problem: rl.LeastSquares) -> None:
    """What is left of the answer at that ε, for both methods."""
    network = rl.ring(AGENTS)
    best = {}
    for alpha in (0.02, 0.05, 0.1, 0.2, 0.5):
        steps = at_most(problem, rl.PrivateIncrementalGradient(alpha), LAPS)
        best[f"noisy steps, alpha {alpha}"] = steps
    for rho in (2.0, 5.0, 10.0):
        admm = rl.PIADMM2(rho=rho, sigma=1.0, first_order=True, clip=1.0, start=rl.ZeroStart())
        best[f"PI-ADMM2, rho {rho}"] = rl.PIADMM2(
            rho=rho,
            sigma=sigma_for_problem(admm, problem, EPSILON, LAPS, DELTA),
            first_order=True,
            clip=1.0,
            start=rl.ZeroStart(),
        )
    for name, algorithm in best.items():
        assert epsilon(algorithm, problem, LAPS, DELTA).epsilon <= EPSILON * (1 + 1e-9)
        errors = [
            np.linalg.norm(
                rl.simulate(algorithm, problem, network, HOPS, seed=seed, progress=False).token - problem.optimum
            )
            for seed in range(20)
        ]
        print(f"{name}: error of the token {np.median(errors) / np.linalg.norm(problem.optimum):.3f}")


if __name__ == "__main__":
    data = drawn()
    on_a_ring(data)
    on_walks(data)
    accuracy(data)
