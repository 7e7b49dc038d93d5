"""A small neural network over ten agents with unequal classes: what it costs to classify digits as well as by all pictures in one place.

Each of ten agents has some of the 1,797 digits that ship with scikit-learn, divided by Dirichlet's law with α = 0.3, so that most have three or four of
the ten classes. A network of 64 → 24 → 10 is what they agree on; a quarter of the pictures is kept aside to count how many are told rightly. The line
to reach is the same network trained on all pictures together, by the same function.

Nothing is convex here, and nobody promises a minimum: what is compared is how many units (messages of one vector) a method takes to tell as many
pictures as the pooled training does, each with the best of a few steps. An agent alone, on its own pictures, is the other end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits

import roundelay as rl
from roundelay.plots.chart import Chart, ChartFigure, Series
from roundelay.plots.chart_figure import draw_chart_figure

AGENTS, RIDGE = 10, 1e-3


def classifier() -> Any:
    """The network, with the same random weights each time."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 24), torch.nn.Tanh(), torch.nn.Linear(24, 10)).double()


def pictures() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pictures and digits to learn from, and a quarter kept aside."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    aside, kept = np.split(order, [len(order) // 4])
    inputs = digits.data / 16.0
    return inputs[kept], digits.target[kept], inputs[aside], digits.target[aside]


def problem(features: Any, targets: Any) -> rl.TorchProblem:
    """The network and its loss over these agents' pictures: their sum is that of all pictures."""
    classes = [block.astype(np.int64) for block in targets]
    return rl.TorchProblem(classifier(), torch.nn.functional.cross_entropy, features, classes, RIDGE, weights="rows")


def told_rightly(own: rl.TorchProblem, points: Any, inputs: Any, digits: Any) -> np.ndarray:
    """Which part of these pictures the network tells rightly at each of some points."""
    with torch.no_grad():
        answers = [own.module_at(point)(torch.from_numpy(inputs)).argmax(1).numpy() for point in points]
    return np.array([np.mean(answer == digits) for answer in answers])


def main(units: int = 6000, figure: str = "out/network.png") -> dict[str, float]:
    """Train by each method; print what it comes to, and draw how it got there."""
    torch.set_num_threads(1)  # the network is small
    inputs, digits, aside, truth = pictures()
    features, targets = rl.split(inputs, digits, agents=AGENTS, how=rl.Dirichlet(0.3), seed=1)
    own, network = problem(features, targets), rl.ring(AGENTS)
    pooled = rl.simulate(rl.SealedLaps(), problem([inputs], [digits]), rl.ring(1), 600, progress=False)
    line = float(told_rightly(own, [pooled.estimate], aside, truth)[0])
    alone = rl.simulate(rl.SealedLaps(), problem(features[:1], targets[:1]), rl.ring(1), 300, progress=False)
    print(
        f"All pictures in one place: {line:.1%} told rightly; one agent's alone: {told_rightly(own, [alone.estimate], aside, truth)[0]:.1%}."
    )
    rows = max(units // 60, 1)
    runs = {
        "sealed laps (L-BFGS)": rl.simulate(rl.SealedLaps(), own, network, units // 2, progress=False),
        "WPG": rl.simulate(rl.WPG(alpha=3.0), own, network, units, record=rows, progress=False),
        "I-ADMM, first order": rl.simulate(rl.IADMM(rho=4.0, first_order=True), own, network, units, record=rows, progress=False),
        "gradient tracking": rl.simulate(
            rl.GradientTracking(alpha=0.1), own, network, iterations=units // (4 * AGENTS), record=max(rows // (4 * AGENTS), 1), progress=False
        ),
    }  # fmt: skip
    found, curves = {}, []
    for place, (name, run) in enumerate(runs.items()):
        rightly = told_rightly(own, run.record.tokens, aside, truth)
        found[name] = float(rightly[-1])
        reached = np.flatnonzero(rightly >= line - 0.01)
        when = (
            f"within a point of the line after {run.record.units[reached[0]]:,.0f} units"
            if len(reached)
            else "not within a point of the line"
        )
        print(f"{name:22} {rightly[-1]:.1%} after {run.units:,.0f} units, {when}")
        curves.append(Series(name, run.record.units, rightly, place))
    curves.append(
        Series("all pictures in one place", np.array([0.0, float(units)]), np.array([line, line]), len(runs), "dashed")
    )
    chart = Chart("", "units of communication", "told rightly", tuple(curves), y_range=(0.0, 1.0))
    drawn = draw_chart_figure(ChartFigure("network", "A network over ten agents with unequal classes", "", (chart,)))
    print("The figure is in", rl.save_figure(drawn, figure))
    return found


if __name__ == "__main__":
    main()
