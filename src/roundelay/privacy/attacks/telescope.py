"""The telescope: s = x − y/ρ is public, whatever an agent does to hide x and y."""

from __future__ import annotations

import numpy as np

from roundelay.privacy.attacks.result import Recovered
from roundelay.privacy.attacks.setting import admm, evidence, expected_start, starts_balanced
from roundelay.privacy.public import Public
from roundelay.transcripts import Visits


def telescope(visits: Visits, public: Public) -> Recovered:
    """ŷ = ρ(x̂ − s) with s_r = Σ_{j<r} d_j, and the token that the agent sent for x̂.

    All it assumes is that the start has x⁰ − y⁰/ρ = 0; then s is exact in I-ADMM, Algorithm 2, PI-ADMM1 and PI-ADMM2,
    with either step. What is left is ρ‖x − z'‖, which goes to 0 as the agents agree: in the end ŷ = ρ(z* − s) is
    ∇f_i(x*). `residual` is ‖d‖/‖s‖ of the last visit, how far s still moves.
    """
    method, known = admm(public), evidence(visits, public)
    x = np.vstack([expected_start(method, public.dim), visits.sent])
    y = known.rho * (x - known.s)
    size = float(np.linalg.norm(known.s[-1]))
    residual = float(np.linalg.norm(known.d[-1])) / (size if size > 0.0 else 1.0)
    balanced = starts_balanced(method)
    words = (
        f"s = x − y/ρ of agent {visits.agent} is exact after each of its {len(visits)} visits; y is as good as x ≈ z is."
        if balanced
        else "The start need not have x − y/ρ = 0, so that s is known only up to a constant."
    )
    return Recovered(x, y, residual, balanced, words)
