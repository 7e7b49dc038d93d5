"""PI-ADMM1 with one γ for each coordinate, which the package does not have: a plain loop."""

from __future__ import annotations

import numpy as np

import roundelay as rl
from roundelay.privacy import Public
from roundelay.transcripts import Transcript
from tests.privacy.support import Truth


def vector_step_run(
    problem: rl.LeastSquares, hops: int, rho: float = 10.0, spread: float = 0.1, seed: int = 0
) -> Truth:
    """Exact steps on a cycle: x⁺ = (H + ρΓ)⁻¹(ρΓz + y − g), y⁺ = y + ρΓ(z − x⁺)."""
    generator = np.random.default_rng(seed)
    agents, dim = problem.agents, problem.dim
    hessians = [problem.hessian(i, np.zeros(dim)) for i in range(agents)]
    slopes = [problem.gradient(i, np.zeros(dim)) for i in range(agents)]
    x = generator.uniform(0.0, 100.0, (agents, dim))
    y, z = rho * x, np.zeros(dim)
    xs, ys, tokens = [x.copy()], [y.copy()], []
    for hop in range(hops):
        i = hop % agents
        gamma = generator.uniform(1.0 - spread, 1.0 + spread, dim)
        before = x[i] - y[i] / rho
        x[i] = np.linalg.solve(hessians[i] + rho * np.diag(gamma), rho * gamma * z + y[i] - slopes[i])
        y[i] = y[i] + rho * gamma * (z - x[i])
        z = z + (x[i] - y[i] / rho - before) / agents
        tokens.append(z)
        xs.append(x.copy())
        ys.append(y.copy())
    hop = np.arange(hops)
    transcript = Transcript(hop, hop % agents, (hop + 1) % agents, np.zeros(hops, bool), np.array(tokens))
    public = Public(rl.PIADMM1(rho=rho, gamma_spread=spread), agents, dim)
    return Truth(transcript, public, np.array(xs), np.array(ys))
