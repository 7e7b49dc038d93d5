"""The worst that a tour can meet: a problem on which nobody who stays on a tour is below a line.

The bound is Woodworth and Srebro's with all constants (`roundelay.least_hops`), and so is the problem: half of the agents have every second link
of a chain of coordinates, the other half those between, so that half a lap goes by for each coordinate that is found. Whoever draws the next agent
at random is not bound by it, nor is who sends Hessians.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import roundelay as rl
from roundelay.plots.chart import Chart, ChartFigure, Series
from roundelay.plots.chart_figure import draw_chart_figure

AGENTS, DIM, LARGEST, LEAST = 20, 100, 1.0, 0.01
AT_RANDOM = rl.MetropolisWalk(self_loops_free=True)  # on a complete graph everybody is as likely as anybody else
METHODS = {
    "WPG (DIAG), on the tour": rl.WPG(1.9 / (LARGEST + LEAST)),
    "Prox-DFinito, on the tour": rl.ProxDFinito(1.9 / (LARGEST + LEAST)),
    "I-ADMM, on the tour": rl.IADMM(rho=0.1),
    "Point-SAGA, at random": rl.PointSAGA(walk=AT_RANDOM),
    "accelerated token, at random": rl.AcceleratedToken(LEAST, LARGEST, AT_RANDOM),
}


def main(hops: int = 20_000, figure: str = "out/tour_bound.png", engine: Any = "auto") -> dict[str, float]:
    """Run them all; print what each needs to 1e-6, and draw it. The least of errors to bound, for each."""
    network = rl.complete(AGENTS)
    problem = rl.hard_chain(network, DIM, LARGEST, LEAST)
    reached = np.arange(1, rl.least_hops(1e-8, AGENTS, DIM, LARGEST, LEAST) + 1)
    bound = np.array([rl.least_error(int(hop), AGENTS, DIM, LARGEST, LEAST) for hop in reached])
    curves, nearest = [], {}
    for place, (name, algorithm) in enumerate(METHODS.items()):
        run = rl.simulate(algorithm, problem, network, hops, record=10, engine=engine, progress=False)
        units, errors = np.asarray(run.record.units, float), np.asarray(run.history["error"])
        there = units[errors <= 1e-6]
        print(f"{name:29} {f'{there[0]:,.0f} units to 1e-6' if len(there) else f'at {errors[-1]:.1e} in the end'}")
        made = np.arange(0, hops + 1, 10)
        within = (made > 0) & (made < len(bound))
        nearest[name] = float((errors[: len(made)][within[: len(errors)]] / bound[made[within] - 1]).min())
        curves.append(Series(name, units, errors, place, "line" if "tour" in name else "dashed"))
    print(f"{'no method on a tour before':29} {rl.least_hops(1e-6, AGENTS, DIM, LARGEST, LEAST):,} units")
    words = f"no method on a tour is below: N = {AGENTS}, p = {DIM}, L/μ = {LARGEST / LEAST:.0f}, this problem"
    curves.append(Series(words, reached.astype(float), bound, len(curves), "line"))
    chart = Chart(
        "",
        "units of communication",
        "mean of ‖x_i − x*‖ / ‖x*‖",
        tuple(curves),
        log_x=True,
        log_y=True,
        y_range=(1e-8, 3.0),
    )
    drawn = draw_chart_figure(ChartFigure("tour_bound", "A lower bound for tours, on its problem", "", (chart,)))
    print("The figure is in", rl.save_figure(drawn, figure))
    return nearest


if __name__ == "__main__":
    main()
