"""
For a researcher: a method of your own, compared, drawn and attacked
=====================================================================

Ten minutes, from ``pip install`` to a figure for a paper. You have an idea for a
decentralised method. Here it becomes ten lines of Python; it is held against what is
known, against I-ADMM, sealed laps and gossip; and you see what its messages tell the
neighbours.

Install it in a clone of the project, with Python 3.11 or newer, and run this very page:

.. code-block:: sh

    python3 -m venv .venv && .venv/bin/pip install .
    .venv/bin/python examples/tutorials/plot_researcher.py

Pictures and the table go to the folder ``out``.
"""

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import matplotlib.pyplot as plt
import numpy as np

import roundelay as rl
from roundelay.algorithms import OwnVisit, Tunable
from roundelay.algorithms.slots import gradient
from roundelay.kernels import DIM, each, vector

OUT = Path("out/researcher")

# %%
# Data and a network
# ------------------
#
# Twenty agents each hold thirty rows of a least-squares problem with five unknowns. Together they want the :math:`x` that minimises
# :math:`\sum_i f_i(x)`. Both are functions of a seed, so that everything below can be repeated on other draws. Your own rows come in by
# ``rl.LeastSquares(features, targets)`` or ``rl.Logistic(features, labels)``, with one array for each agent.


def data(seed):
    return rl.paper_least_squares(agents=20, dim=5, seed=seed)


def network(seed):
    return rl.random_network(agents=20, density=0.3, seed=seed)


problem = data(0)
print(problem)
print(network(0))

# %%
# A method that is there is one call. A *unit* is one message of :math:`p` numbers; ``error`` is
# :math:`\frac1N\sum_i\|x_i-x^*\|/\|x^*\|`, against the optimum :math:`x^*` of all rows.

known = rl.simulate(rl.WPG(alpha=0.05), problem, network(0), hops=2_000, progress=False)
print(known.outcome)
print(
    known.history[["hop", "units", "error"]]
    .iloc[[0, 20, 40, 60, -1]]
    .to_string(index=False)
)

# %%
# A method of your own
# --------------------
#
# WPG lets a token :math:`z` go round. Agent :math:`i` takes it for its own point, steps along its gradient from there, and the token is the mean of what
# all agents answered last. The idea to be tried: let an agent go *past* the token, by a pace :math:`\omega`.
#
# .. math::
#
#     x_i^+ = x_i + \omega\,(z - x_i), \qquad y_i^+ = x_i^+ - \alpha\nabla f_i(x_i^+), \qquad z^+ = z + \tfrac1N\,(y_i^+ - y_i).
#
# With :math:`\omega = 1` it is WPG, and below 1 it is lazy. At a fixed point :math:`x_i = z` for all :math:`i`, and :math:`z` is the mean of
# :math:`z - \alpha\nabla f_i(z)`, so that :math:`\sum_i\nabla f_i(z) = 0`: if it stops moving, it is at the optimum.
#
# The update is a plain function. It goes through coordinates by ``each(DIM)`` and takes scratch space from ``vector(DIM)``; Python runs it as it stands, and
# long runs compile it as it stands. ``at.agent`` is :math:`i` and ``at.agents`` is :math:`N`.


class Numbers(NamedTuple):
    alpha: float
    pace: float


def visit(problem, method, at, token, states, watch):
    i, slope = at.agent, vector(DIM)
    for d in each(DIM):
        states.x[i, d] += method.pace * (token[d] - states.x[i, d])
    gradient(problem, i, states.x[i], slope)
    for d in each(DIM):
        answer = states.x[i, d] - method.alpha * slope[d]
        token[d] += (answer - states.y[i, d]) / at.agents
        states.y[i, d] = answer
    return 0.0, 0.0


@dataclass(frozen=True)
class Overshoot:
    name: ClassVar[str] = "overshoot"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("alpha"), Tunable("pace"))
    alpha: float = 0.05
    pace: float = 1.2

    def parts(self):
        return OwnVisit(visit, Numbers(self.alpha, self.pace))


# %%
# Is it the method that was meant?
# --------------------------------
#
# A wrong update that still converges is the mistake to fear. Three checks, each of which would notice one: what must come out at
# :math:`\omega=1`, a loop in NumPy that shares nothing with the function above, and the invariant :math:`z=\frac1N\sum_i y_i`.

same = rl.simulate(Overshoot(pace=1.0), problem, network(0), hops=2_000, progress=False)
assert np.allclose(same.token, known.token, rtol=1e-12), (
    "with the pace 1 it must be WPG"
)


def by_hand(method, order):
    x, y, z = np.zeros((20, 5)), np.zeros((20, 5)), np.zeros(5)
    for i in order:
        x[i] += method.pace * (z - x[i])
        answer = x[i] - method.alpha * problem.gradient(i, x[i])
        z = z + (answer - y[i]) / 20
        y[i] = answer
    return z


run = rl.simulate(
    Overshoot(), problem, network(0), hops=2_000, transcript=True, progress=False
)
assert np.allclose(
    run.token, by_hand(Overshoot(), run.transcript.sender), rtol=1e-12
), "it is not the update above"
assert np.allclose(run.token, run.y.mean(axis=0), rtol=1e-12), (
    "the token must be the mean of the answers"
)

# %%
# And the fixed point is the optimum: of the pooled rows, by a solver that knows nothing of agents.

features, targets = np.vstack(problem.features), np.concatenate(problem.targets)
pooled, *_ = np.linalg.lstsq(features, targets, rcond=None)
print(f"Largest difference from the pooled fit: {np.abs(run.token - pooled).max():.1e}")
assert np.allclose(run.token, pooled, atol=1e-12)

# %%
# Compare
# -------
#
# Every method has the same budget, and none is dropped: one that can't be run here, diverges or does not get there says so in its row. Of one's own method
# there are two, with and without the overshoot, at the same step; the ρ of I-ADMM is what ``rl.tune`` finds on other seeds.

compared = rl.compare(
    {
        "overshoot, ω = 1.2": Overshoot(pace=1.2),
        "overshoot, ω = 1 (WPG)": Overshoot(pace=1.0),
        "I-ADMM": rl.IADMM(rho=14.0),
        "sealed laps": rl.SealedLaps(),
        "gossip (NIDS)": rl.NIDS(),
    },
    data,
    network,
    seeds=range(3),
    units=30_000,
    levels=(1e-3, 1e-6),
    progress=False,
)
print(compared)

# %%
# The figure, as wide as a column of the IEEE's transactions. The file itself says from which command, seeds, parameters and versions it came. Into an axis of your own, as here, it is
# drawn by ``rl.plot_convergence``.

print("Written:", compared.figure().save(OUT / "comparison.pdf", style="ieee"))
figure, axis = plt.subplots(figsize=(5.8, 4.6), layout="constrained")
rl.plot_convergence(compared.ensembles, axis=axis, log_cost=True, lowest=2e-7)
figure.savefig(OUT / "comparison.png", dpi=150)

# %%
# The table for the paper, with booktabs.

latex = compared.to_latex(
    caption="Units until the error stays below a level, median of 3 seeds",
    label="tab:overshoot",
)
(OUT / "comparison.tex").write_text(latex, encoding="utf-8")
print("\n".join(line for line in latex.splitlines() if not line.startswith("%")))

# %%
# Going past the token pays at this step. Is that the method, or the step? ``rl.tune`` would search for the best of both; a small grid shows the reason, too.

units = {
    (alpha, pace): rl.simulate(
        Overshoot(alpha, pace), problem, network(0), hops=3_000, progress=False
    ).units_to(1e-6)
    for alpha in (0.05, 0.07, 0.1)
    for pace in (0.8, 1.0, 1.2)
}
print("units to 1e-6     ω = 0.8   ω = 1   ω = 1.2")
for alpha in (0.05, 0.07, 0.1):
    print(
        f"α = {alpha:<14g}"
        + "".join(f"{units[alpha, pace]:9,.0f}" for pace in (0.8, 1.0, 1.2))
    )
assert units[0.05, 1.2] < 0.8 * units[0.05, 1.0] and units[0.1, 1.2] > units[0.1, 1.0]
assert min(units.values()) > 0.8 * min(units[alpha, 1.0] for alpha in (0.05, 0.07, 0.1))

# %%
# So it is the step. Where :math:`\alpha` is short, going past the token makes up for a part of it; at a longer :math:`\alpha` it does harm, and the best of the
# nine (ω = 1.2 at α = 0.07) is hardly better than WPG at its own (α = 0.1). That is worth knowing after ten minutes, and before the paper is written.

# %%
# Attack it
# ---------
#
# The two neighbours of agent 3 see the token before and after each of its visits. What they make of that is again a function: of what they saw and of what is
# public, and of nothing else. Here :math:`x_3` depends on the tokens alone, so that it can be followed from 0; the answers are what the token grew by; and what is left of both is the gradient.


def attack(visits, method, agents):
    x, points = np.zeros(visits.dim), []
    for token in visits.received:
        x = x + method.pace * (token - x)
        points.append(x)
    answers = np.cumsum(visits.increments(agents), axis=0)
    slopes = (np.array(points) - answers) / method.alpha
    H, *_ = np.linalg.lstsq(
        np.diff(points, axis=0), np.diff(slopes, axis=0), rcond=None
    )
    return slopes[-1], H, points[-1]


seen = run.transcript.seen_by(rl.Neighbours(3)).visits_of(3)
slope, H, point = attack(seen.first(12), Overshoot(), agents=20)
truth = features[90:120].T @ features[90:120]
right = problem.gradient(3, point)
wrong = np.linalg.norm(slope - right) / np.linalg.norm(right)
print("After 12 visits the neighbours know of agent 3, with a relative error of")
print(f"  the gradient    {wrong:.0e}")
print(f"  the curvature H {np.linalg.norm(H - truth) / np.linalg.norm(truth):.0e}")
assert np.linalg.norm(H - truth) < 1e-6 * np.linalg.norm(truth)

# %%
# Every gradient, and so the whole of :math:`f_3`: agent 3's data but for a rotation. For methods of the ADMM family and for sums such attacks are there:
# ``rl.audit`` runs all that apply and holds them against the truth. What is left of sealed laps is a guess, by the mean of the sum over all.

for method in (rl.PIADMM1(), rl.SealedLaps()):
    watched = rl.simulate(
        method, problem, network(0), hops=600, transcript=True, progress=False
    )
    audit = rl.audit(watched, observer="neighbours", agent=3)
    hessian = min(leak.at_end for leak in audit.leaks if leak.quantity == "Hessian H")
    print(
        f"{method.name:12} the best attack on H has a relative error of {hessian:.0e}"
    )
    assert (hessian < 1e-6) == (method.name == "PI-ADMM1")
print()
for line in str(audit).splitlines():
    print(textwrap.fill(line, 84, subsequent_indent="  "))

# %%
# What next
# ---------
#
# - *Parts, not a visit*: a method of the ADMM family is a sentence of choices, and then the audit knows it:
#   ``TokenADMM(rho, rl.Cycle(), Exact(), StepSizeNoise(1/3), rl.SealedStart())``. Gossip methods, problems, starts, defences and attacks are
#   ten lines, too: :doc:`/contributing`. With ``@rl.register(rl.Algorithm)`` over the class the command line, sweeps and saved runs know yours by its name.
# - *Thousands of runs*: ``rl.sweep`` keeps each row as it comes, on all cores or on a cluster: :doc:`/cluster`.
# - *What is there already*, with its cost in one table: :doc:`/methods` and :doc:`/field`.
