"""The forward filter: a wrong guess of the start is forgotten by itself."""

from __future__ import annotations

import numpy as np

from roundelay.kernels import Vector
from roundelay.privacy.attacks.recursion import distance_from_token, forward
from roundelay.privacy.attacks.result import Recovered
from roundelay.privacy.attacks.setting import (
    admm,
    evidence,
    expected_start,
    middle_gamma,
    start_width,
    starts_balanced,
)
from roundelay.privacy.public import Public
from roundelay.transcripts import Visits

# The start counts as forgotten when less than this part of ‖z‖ can be left of it.
FORGOTTEN = 1e-3


def forward_filter(visits: Visits, public: Public, guess: Vector | None = None) -> Recovered:
    """x and y after every visit, from any `guess` of x⁰ (default: the mean of its public distribution).

        x̂⁺ = (d + γ̄z + x̂)/(1 + γ̄)    ŷ = ρ(x̂ − s)

    with γ̄ the middle of γ's distribution, 1 where there is none. For Algorithm 2 and PI-ADMM2 the error of x̂ is
    exactly 2^{−r} times that of the guess, with either step: the random start hides nothing for long. For PI-ADMM1 it
    settles near half the spread of γ times ‖z − x‖, which goes to 0 as well.
    """
    method, known = admm(public), evidence(visits, public)
    gamma, spread = middle_gamma(method)
    start = expected_start(method, public.dim) if guess is None else np.asarray(guess, np.float64)
    x = forward(known, visits, start, gamma)
    y = known.rho * (x - known.s)
    left = start_width(method) * float(public.dim) ** 0.5 / (1.0 + gamma) ** len(visits)
    forgotten = left <= FORGOTTEN * float(np.linalg.norm(known.z[-1]))
    converged = forgotten and starts_balanced(method) and bool((visits.updates == 1).all())
    words = (
        f"After {len(visits)} visits at most {left:.1g} is left of the start of agent {visits.agent}"
        + (f"; the unknown γ leaves up to {0.5 * spread:.1g} of ‖z − x‖ in each visit" if spread > 0.0 else "")
        + "."
    )
    return Recovered(x, y, distance_from_token(x, known), converged, words)
