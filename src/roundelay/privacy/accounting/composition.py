"""What R visits of a Gaussian mechanism cost together: ε for a δ, from dp-accounting.

The noise multiplier m is σ divided by the sensitivity. R Gaussian mechanisms with the multiplier m compose to exactly one
with m/√R, also where each is chosen in the light of those before, so that ε solves

    δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ),    μ = √R/m        (Balle and Wang 2018; Dong, Roth and Su 2022).

Where records are drawn by Poisson sampling there is no closed form, and the distribution of the privacy loss is composed
numerically, rounded to the pessimistic side. In both cases the multiplier is that of the sensitivity under the relation in
question, and dp-accounting is asked under its default relation: under REPLACE_ONE its accountant of privacy loss
distributions would double a sensitivity that is doubled already, and its Rényi accountant would not.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np


def dp_accounting() -> Any:
    """The module; a sentence that names the remedy where it is missing."""
    try:
        import dp_accounting as library
    except ImportError as error:
        raise ModuleNotFoundError(
            "The privacy loss is reckoned by dp-accounting, which is not installed: run pip install 'roundelay[privacy]'."
        ) from error
    return library


Bound = Literal["exact", "rdp"]

# Less noise than this against the sensitivity is none.
LEAST_MULTIPLIER = 1e-3
# Rényi orders. For the plain Gaussian every order has a closed form; with sampling the whole orders do.
PLAIN_ORDERS = 1.0 + np.geomspace(0.011, 1e4, 600)
SAMPLED_ORDERS = np.array([*range(2, 65), 80, 96, 128, 192, 256, 512, 1024], float)


def composed_epsilon(multiplier: float, rate: float | None, visits: int, delta: float, bound: Bound = "exact") -> float:
    """ε after so many visits; `rate` is that of Poisson sampling, None where every record is used."""
    if bound not in ("exact", "rdp"):
        raise ValueError(f'bound is {bound!r}: use "exact" or "rdp".')
    if visits == 0:
        return 0.0
    sampling = 1.0 if rate is None else rate
    return (
        _by_renyi(multiplier, sampling, visits, delta)
        if bound == "rdp"
        else _exact(multiplier, sampling, visits, delta)
    )


@lru_cache(maxsize=10_000)
def _exact(multiplier: float, sampling: float, visits: int, delta: float) -> float:
    if sampling == 1.0:
        with np.errstate(all="ignore"):
            return float(dp_accounting().get_epsilon_gaussian(multiplier / math.sqrt(visits), delta))
    return max(float(_one_visit(multiplier, sampling).self_compose(visits).get_epsilon_for_delta(delta)), 0.0)


@lru_cache(maxsize=32)
def _one_visit(multiplier: float, sampling: float) -> Any:
    """The distribution of the privacy loss of one visit, on a grid that is fine against its deviation, about q/m.

    Its error is on the safe side and relatively about 1e-5; the second term keeps the grid below 50,000 points.
    """
    grid = max(0.01 * sampling / multiplier, (8.0 / multiplier + 0.5 / multiplier**2) / 50_000)
    return dp_accounting().pld.privacy_loss_distribution.from_gaussian_mechanism(
        multiplier, sampling_prob=sampling, value_discretization_interval=grid
    )


@lru_cache(maxsize=10_000)
def _by_renyi(multiplier: float, sampling: float, visits: int, delta: float) -> float:
    library = dp_accounting()
    event = library.GaussianDpEvent(multiplier)
    if sampling < 1.0:
        event = library.PoissonSampledDpEvent(sampling, event)
    accountant = library.rdp.RdpAccountant(PLAIN_ORDERS if sampling == 1.0 else SAMPLED_ORDERS)
    accountant.compose(event, visits)
    return float(accountant.get_epsilon(delta))


def multiplier_for(epsilon: float, rate: float | None, visits: int, delta: float) -> float:
    """The smallest noise multiplier with which so many visits cost no more than ε."""
    # Exact without sampling, and with it certainly enough.
    enough = float(dp_accounting().get_sigma_gaussian(epsilon, delta)) * math.sqrt(visits)
    if rate is None or rate == 1.0:
        return enough
    from scipy.optimize import brentq  # late: it takes a while

    def excess(logarithm: float) -> float:
        return composed_epsilon(math.exp(logarithm), rate, visits, delta) - epsilon

    high = math.log(enough)
    low = high - 1.0
    while excess(low) <= 0.0:
        if math.exp(low) < LEAST_MULTIPLIER:  # a record that is hardly ever drawn is covered by δ without any noise
            return math.exp(low)
        low, high = low - 1.0, low
    found = float(brentq(excess, low, high, xtol=1e-11, rtol=1e-14))
    while excess(found) > 0.0:  # the root is found within the tolerance, on either side
        found += 1e-11
    return math.exp(found)
