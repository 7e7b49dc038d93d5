"""The paper's recursion backwards in time, from consensus at the end (Remark 3)."""

from __future__ import annotations

import numpy as np

from roundelay.kernels import Vector
from roundelay.privacy.attacks.result import Recovered
from roundelay.privacy.attacks.setting import admm, evidence, plain_steps, starts_balanced
from roundelay.privacy.public import Public
from roundelay.transcripts import Visits


def backward_recursion(visits: Visits, public: Public, last: Vector | None = None) -> Recovered:
    """x and y after every visit, from x ≈ z' after the last one.

        x = 2x⁺ − d − z    y = ρ(x − s)

    Nothing is assumed of the start but x⁰ − y⁰/ρ = 0. Where x_R is off by ε, x_{R−n} is off by exactly 2ⁿε and y_{R−n}
    by ρ2ⁿε, for Algorithm 2 and PI-ADMM2 (and for I-ADMM, where the recursion forwards is better). `last` is another
    guess of x_R. `residual` is 2^R‖d_{R−1}‖, a guess of the error at the start: ‖d‖ is what the last visit changed.
    """
    method, known = admm(public), evidence(visits, public)
    x = np.empty((len(visits) + 1, public.dim))
    x[-1] = visits.sent[-1] if last is None else last
    for r in range(len(visits) - 1, -1, -1):
        x[r] = 2.0 * x[r + 1] - known.d[r] - known.z[r]
    y = known.rho * (x - known.s)
    exact = plain_steps(method) and starts_balanced(method) and bool((visits.updates == 1).all())
    with np.errstate(over="ignore"):
        residual = float(np.linalg.norm(known.d[-1]) * np.exp2(float(len(visits))))
    words = (
        f"The recursion ran back over {len(visits)} visits of agent {visits.agent} from the token it sent last; every visit doubles the error."
        if exact
        else f"The recursion ran back over {len(visits)} visits of agent {visits.agent}, although its equation does not hold for this method."
    )
    return Recovered(x, y, residual, exact, words)
