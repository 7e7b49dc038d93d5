"""A median regression over ten sites, which a token finds to twelve digits and no method of gradients to five.

Residuals are wild (Student's t with two degrees of freedom), so each site sums absolute values, which have a corner in every row:

    f_i(x) = (1/b) Σ_j ½|t_j − o_j'x|

Where a corner is, there is no gradient, and at the minimiser there are always some: as many rows as unknowns are met exactly. I-ADMM asks
for proximal steps, which are exact for such functions. Who has only gradients may take any subgradient with steps that fade, or round
off the corners over a width δ (Huber's loss): then he solves another problem, and the nearer it is, the shorter are his steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import roundelay as rl
from roundelay.plots.chart import Chart, ChartFigure, Series
from roundelay.plots.chart_figure import draw_chart_figure

AGENTS, ROWS, DIM = 10, 40, 4


def sites(seed: int = 0) -> tuple[Any, Any]:
    """Features, and targets with heavy tails."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(AGENTS, ROWS, DIM))
    return features, features @ rng.normal(size=DIM) + 0.5 * rng.standard_t(2, size=(AGENTS, ROWS))


def by_subgradients(median: rl.Quantile) -> rl.CallableProblem:
    """The same functions to a method that asks for gradients: where there is none, one of those around it."""

    def slope(features: Any, targets: Any) -> Any:
        return lambda x: -features.T @ (0.5 * np.sign(targets - features @ x)) / len(targets)

    blocks = zip(median.features, median.targets, strict=True)
    return rl.CallableProblem([slope(*block) for block in blocks], DIM, optimum=None)


def main(hops: int = 20_000, figure: str = "out/median.png", engine: Any = "auto") -> dict[str, float]:
    """Run them all; print how near each comes to the median regression, and draw it."""
    features, targets = sites()
    median, network = rl.Quantile(features, targets), rl.ring(AGENTS)
    huber = {width: rl.Huber(features, targets, width).with_optimum(None) for width in (0.1, 0.01, 0.001)}
    subgradients = rl.IncrementalGradient(alpha=0.3, decay=0.7)
    runs = {
        "I-ADMM, exact steps": rl.simulate(
            rl.IADMM(rho=1.0), median, network, min(hops, 6000), engine=engine, progress=False
        )
    }
    runs["subgradients that fade"] = rl.simulate(subgradients, by_subgradients(median), network, hops, progress=False)
    runs["sealed laps, δ = 0.1"] = rl.simulate(rl.SealedLaps(), huber[0.1], network, progress=False)
    for width, problem in huber.items():
        wpg = rl.WPG(alpha=1.0 / problem.L)
        runs[f"WPG, δ = {width:g}"] = rl.simulate(wpg, problem, network, hops, engine=engine, progress=False)
    found = {name: np.linalg.norm(run.record.tokens - median.optimum, axis=1) for name, run in runs.items()}
    size = np.linalg.norm(median.optimum)
    for name, distances in found.items():
        print(
            f"{name:23} ends {distances[-1] / size:.1e} from the median regression, after {runs[name].units:,.0f} units"
        )
    curves = (
        Series(name, run.record.units, found[name] / size, place, "dashed" if "δ" in name else "line")
        for place, (name, run) in enumerate(runs.items())
    )
    chart = Chart(
        "", "units of communication", "‖z − x*‖ / ‖x*‖", tuple(curves), log_x=True, log_y=True, y_range=(1e-13, 10.0)
    )
    drawn = draw_chart_figure(ChartFigure("median", "Median regression over ten sites", "", (chart,)))
    print("The figure is in", rl.save_figure(drawn, figure))
    return {name: float(distances[-1] / size) for name, distances in found.items()}


if __name__ == "__main__":
    main()
