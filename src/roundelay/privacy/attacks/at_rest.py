"""What no noise hides that fades: an agent that is handed the same token again and again comes to rest, and shows where."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roundelay.privacy.attacks.recursions import forward_filter
from roundelay.privacy.attacks.setting import Attack, Recovered, admm, evidence, first_order, one_update_each
from roundelay.privacy.attacks.solving import gradient_of
from roundelay.privacy.public import Public
from roundelay.registry import register
from roundelay.transcripts import Visits


@register(Attack, "at rest")
def at_rest(visits: Visits, public: Public) -> Recovered:
    """H of an agent with a quadratic f = ½x'Hx + g'x, from the visits in which next to nothing moved; g where s is known.

        Q(βd_r + z_r) + h = z_r − s_{r+1},    Q = H/ρ, h = g/ρ, r ≥ 1

    What the equation misses, by noise, by an unknown γ or by a first-order step, is not larger than what moved. So it is a
    regression with the weights 1/‖d_r‖, for which noise that fades is none in the end. Neighbours who hand on what they get have
    nothing of it: where all agents agree z no longer moves either. Who holds z still for a while, and then elsewhere, p + 1 times,
    knows H to rounding. It is linear, and so takes any number of visits; as much as it knows of the states the forward filter knows.
    """
    method, known = admm(public), evidence(visits, public)
    one_update_each(visits)
    rounds, dim = len(visits) - 1, public.dim
    if rounds < dim + 1:
        raise ValueError(
            f"{len(visits)} visits of agent {visits.agent} are too few for {dim} unknowns at rest: observe more hops."
        )
    z, d, c = known.z[1:], known.d[1:], known.z[1:] - known.s[2:]
    beta = 0.0 if first_order(method) else 1.0 / method.facts.perturbation.gamma
    weight = 1.0 / (np.linalg.norm(d, axis=1, keepdims=True) + known.rounding + float(np.finfo(np.float64).tiny))
    design = np.hstack([z + beta * d, np.ones((rounds, 1))])
    middle = np.average(design, axis=0, weights=weight[:, 0] ** 2)  # so that only differences between tokens count
    middle[-1] = 0.0
    found, _, rank, _ = np.linalg.lstsq(weight * (design - middle), weight * c)
    q = 0.5 * (found[:dim] + found[:dim].T)
    h = found[dim] - middle[:dim] @ q
    left = float(np.sqrt(np.mean((weight * (design[:, :dim] @ q + h - c)) ** 2)))
    words = f"{rounds} visits of agent {visits.agent} leave {left:.2g} of what moved in each" + (
        "."
        if rank == dim + 1
        else f"; the tokens moved in {max(int(rank) - 1, 0)} directions only, of {dim}, and tell nothing of the others."
    )
    hessian, slope = method.rho * q, method.rho * h
    return replace(
        forward_filter(visits, public), residual=left, converged=rank == dim + 1 and known.s_is_known, words=words,
        H=hessian, g=slope if known.s_is_known else None, gradient=gradient_of(hessian, slope),
    )  # fmt: skip
