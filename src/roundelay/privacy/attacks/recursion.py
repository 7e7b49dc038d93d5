"""The paper's recursion (12), which gives away everything that I-ADMM does."""

from __future__ import annotations

import numpy as np

from roundelay.kernels import Matrix, Vector
from roundelay.privacy.attacks.result import Recovered
from roundelay.privacy.attacks.setting import Evidence, admm, evidence, plain_steps, starts_at_zero
from roundelay.privacy.public import Public
from roundelay.transcripts import Visits


def recursion(visits: Visits, public: Public) -> Recovered:
    """x and y after every visit, from x = y = 0 by the paper's equation (12).

        x⁺ = ½(d + z + x)    y⁺ = y + ρ/2 (z − d − x)    d = N(z' − z)

    It assumes a public start at zero and y⁺ = y + ρ(z − x⁺), whatever x⁺ is. So it is exact for I-ADMM and W-ADMM,
    with the exact and with the first-order step, and also for PW-ADMM with its inertia. The gradient follows: ∇f(x⁺)
    = y⁺ where the step is exact, ∇f(x) = y⁺ where it is first order. With a random start υ the errors of x and y are
    2^{−r}υ and ρ2^{−r}υ.
    """
    method, known = admm(public), evidence(visits, public)
    x = forward(known, visits, np.zeros(public.dim), 1.0)
    y = known.rho * (x - known.s)
    assumptions = {
        "the start is not at zero": not starts_at_zero(method),
        "the step size is not ρ itself": not plain_steps(method),
        f"agent {visits.agent} kept the token in {int((visits.updates > 1).sum())} of its visits, and "
        "nobody saw it in between": bool((visits.updates > 1).any()),
    }
    broken = [words for words, holds in assumptions.items() if holds]
    words = f"The recursion ran over {len(visits)} visits of agent {visits.agent}; " + (
        f"it is not exact, because {', and '.join(broken)}." if broken else "it is exact."
    )
    return Recovered(x, y, distance_from_token(x, known), not broken, words)


def forward(known: Evidence, visits: Visits, start: Vector, gamma: float) -> Matrix:
    """x_{r+1} = (d_r + γz_r + x_r)/(1 + γ) from x_0 = `start`, R + 1 rows.

    Where the agent kept the token for several updates, what it added is taken to have come in equal parts.
    """
    x = np.empty((len(visits) + 1, len(start)))
    x[0] = start
    share = (visits.sent - visits.received) / visits.updates[:, None]
    for r, updates in enumerate(visits.updates):
        now = x[r]
        for turn in range(updates):
            now = (known.d[r] / updates + gamma * (known.z[r] + turn * share[r]) + now) / (1.0 + gamma)
        x[r + 1] = now
    return x


def distance_from_token(x: Matrix, known: Evidence) -> float:
    """‖x̂ − z‖/‖z‖ at the last visit: where the method has converged, a right x̂ makes it small."""
    size = float(np.linalg.norm(known.z[-1]))
    return float(np.linalg.norm(x[-1] - known.z[-1])) / (size if size > 0.0 else 1.0)
