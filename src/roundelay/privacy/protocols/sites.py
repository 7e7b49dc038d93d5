"""Honest sites under other protocols, simulated from what is published of these: a fit, and every message of it.

Each function takes the sites' rows and gives the coefficients, the recorded messages, and who took no part and why. Where a protocol is
exact its coefficients are those of all rows together. No attack may import this module: it has the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy

from roundelay.algorithms.sealed.optimisers import Newton
from roundelay.algorithms.sealed.sealed_laps import SealedLaps
from roundelay.engine import simulate
from roundelay.kernels import Matrix, Vector
from roundelay.masks import SeededPairs
from roundelay.networks.constructors import ring
from roundelay.privacy.attacks.lap_sums import told_in
from roundelay.privacy.protocols.known import descended, mean, sums_at
from roundelay.privacy.protocols.published import (
    DataShieldCovariance,
    DataShieldGLM,
    FederatedAveraging,
    OneShotLogistic,
    SumOverSites,
    Vantage6GLM,
)
from roundelay.privacy.protocols.recorded import FederatedProtocol, Message, RecordedMessages, several
from roundelay.problems.least_squares import LeastSquares
from roundelay.problems.logistic import Logistic
from roundelay.transcripts import parts_of_laps
from roundelay.transcripts.observers import Colluders


class Site(NamedTuple):
    """A site and its rows: X with the constant in front, and the outcome."""

    name: str
    X: Matrix
    y: Vector


@dataclass(frozen=True)
class Controls:
    """What a site's software refuses before it sends anything: few rows, few rows at one of two values, many parameters a row."""

    least_rows: int = 1
    least_at_a_value: int = 1
    parameters_a_row: float = math.inf

    def refusal(self, X: Matrix, y: Vector) -> str:
        """Why these rows are refused; empty where they are not."""
        if len(X) < self.least_rows:
            return f"it has {len(X)} rows, and {self.least_rows} are the least"
        if X.shape[1] > self.parameters_a_row * len(X):
            return f"{X.shape[1]} parameters for {len(X)} rows are more than {self.parameters_a_row:g} a row"
        for column in (*X.T[1:], y):
            values, counts = np.unique(column, return_counts=True)
            if len(values) == 2 and counts.min() < self.least_at_a_value:
                return f"a column of two values has one of them in {counts.min()} rows, and {self.least_at_a_value} are the least"
        return ""


NONE = Controls()
# The defaults of nfilter.tab and nfilter.glm, and of GLM_MINIMUM_ROWS and GLM_MAX_PCT_VARS_VS_OBS.
DATASHIELD = Controls(least_at_a_value=3, parameters_a_row=0.33)
VANTAGE6 = Controls(least_rows=10, parameters_a_row=0.10)


@dataclass(frozen=True, eq=False)
class Played:
    """What came of a fit: the coefficients, all messages, and who took no part."""

    coefficients: Vector
    recorded: RecordedMessages
    refused: Mapping[str, str] = field(default_factory=dict)


def datashield_glm(sites: Sequence[Site], family: str, controls: Controls = NONE, iterations: int = 20) -> Played:
    """ds.glm: from β = 0 on each site sends S and I, and β ← β + (ΣI)⁻¹ΣS until the deviance changes by less than 1e-8 of itself.

    A site that refuses is left out, as the analyst would by `datasources`: the function itself stops there.
    """
    members, refused = _members(sites, controls)
    at: Vector = np.zeros(sites[0].X.shape[1])
    before, messages = math.inf, []
    for iteration in range(1, iterations + 1):
        answers = [sums_at(family, one.X, one.y, at) for one in members]
        for one, (score, information, deviance) in zip(members, answers, strict=True):
            messages.append(
                _message(one.name, iteration, {
                    "beta": at, "score.vect": score, "info.matrix": information, "dev": deviance, "numsubs": len(one.y),
                })
            )  # fmt: skip
        at = at + np.linalg.solve(sum(i for _, i, _ in answers), sum(s for s, _, _ in answers))
        whole = float(sum(d for _, _, d in answers))
        if abs(whole - before) <= 1e-8 * (abs(whole) + 0.1):
            break
        before = whole
    return _played(DataShieldGLM(), family, sites, at, messages, refused)


def vantage6_glm(sites: Sequence[Site], family: str, controls: Controls = NONE, iterations: int = 25) -> Played:
    """v6-glm: each site sends X'WX and X'Wz, β is the solution of their sums, until the deviance changes by less than 1e-8 of itself."""
    members, refused = _members(sites, controls)
    at: Vector | None = None
    before, messages = math.inf, []
    for iteration in range(1, iterations + 1):
        sums = []
        for one in members:
            if at is None:
                expected = (one.y + (0.5 if family == "binomial" else one.y.mean())) / 2.0
                predictor = scipy.special.logit(expected) if family == "binomial" else expected
            else:
                predictor = one.X @ at
                expected = mean(family, predictor).real
            weights = expected * (1.0 - expected) if family == "binomial" else np.ones(len(one.y))
            working = predictor + (one.y - expected) / weights
            curvature, right = (one.X.T * weights) @ one.X, one.X.T @ (weights * working)
            spread = float((weights * ((one.y - expected) / weights) ** 2).sum())
            sent = {
                "XTX": curvature,
                "XTz": right,
                "dispersion": spread,
                "num_observations": len(one.y),
                "sum_y": one.y.sum(),
            }
            sums.append((one.name, curvature, right, sent if at is None else {"beta": at, **sent}))
        point = np.array(
            np.linalg.solve(sum(c for _, c, _, _ in sums), sum(r for _, _, r, _ in sums)), dtype=np.float64
        )
        deviances = [float(sums_at(family, one.X, one.y, point)[2]) for one in members]
        at = point
        messages += [
            _message(name, iteration, {**sent, "deviance": own})
            for (name, _, _, sent), own in zip(sums, deviances, strict=True)
        ]
        if abs(sum(deviances) - before) <= 1e-8 * abs(sum(deviances)):
            break
        before = sum(deviances)
    assert at is not None
    return _played(Vantage6GLM(), family, sites, at, messages, refused)


def pda_odal(sites: Sequence[Site], lead: int = 0) -> Played:
    """ODAL: own estimates, their average by inverse variances, gradient and Hessian of each site there, the lead's surrogate maximised.

    With ℓ̃(β) = ℓ_lead(β) + (∇ℓ − ∇ℓ_lead)'β + (β − β̄)'(∇²ℓ − ∇²ℓ_lead)(β − β̄)/2 of mean likelihoods. A site whose outcomes a plane
    separates has no estimate of its own, and sends none.
    """
    own = {one.name: estimate for one in sites if (estimate := _own_estimate(one)) is not None}
    if not own:
        raise ValueError("At every site a plane separates the outcomes: ODAL has no estimate to begin with.")
    messages = [
        _message(one.name, 0, {"site_size": len(one.y)} | (
            {} if one.name not in own else {"bhat_i": own[one.name][0], "Vhat_i": own[one.name][1]}
        ))
        for one in sites
    ]  # fmt: skip
    weights = np.array([1.0 / variances for _, variances in own.values()])
    common = (weights * np.array([estimate for estimate, _ in own.values()])).sum(axis=0) / weights.sum(axis=0)
    slopes, curvatures = [], []
    for one in sites:
        score, information, _ = sums_at("binomial", one.X, one.y, common)
        slopes.append(score)
        curvatures.append(-information)
        derivatives = {"bbar": common, "logL_D1": score / len(one.y), "logL_D2": -information / len(one.y)}
        messages.append(_message(one.name, 1, {"site_size": len(one.y), **derivatives}))
    count, first = sum(len(one.y) for one in sites), sites[lead]
    slope = sum(slopes) / count - slopes[lead] / len(first.y)
    curvature = sum(curvatures) / count - curvatures[lead] / len(first.y)
    at = common
    for _ in range(50):
        score, information, _ = sums_at("binomial", first.X, first.y, at)
        step = np.linalg.solve(
            information / len(first.y) - curvature, score / len(first.y) + slope + curvature @ (at - common)
        )
        at = at + step
        if np.abs(step).max() < 1e-13:
            break
    return _played(OneShotLogistic(), "binomial", sites, at, messages, {})


def _own_estimate(site: Site) -> tuple[Vector, Vector] | None:
    """The maximum likelihood of a site's own rows, and its variances; None where there is none."""
    at = np.zeros(site.X.shape[1])
    for _ in range(40):
        score, information, _ = sums_at("binomial", site.X, site.y, at)
        if np.linalg.cond(information) > 1e10 or np.abs(at).max() > 30.0:
            return None
        step = np.linalg.solve(information, score)
        at = at + step
        if np.abs(step).max() < 1e-13 * max(1.0, float(np.abs(at).max())):
            return at, np.diag(np.linalg.inv(sums_at("binomial", site.X, site.y, at)[1])).copy()
    return None


def federated_averaging(sites: Sequence[Site], family: str, rate: float, steps: int = 1, rounds: int = 50) -> Played:
    """Each round every site makes so many gradient steps on the mean loss of all its rows; the server averages by numbers of rows."""
    at: Vector = np.zeros(sites[0].X.shape[1])
    messages = []
    for turn in range(1, rounds + 1):
        ends = [descended(family, one.X, one.y, at, rate, steps).real for one in sites]
        for one, end in zip(sites, ends, strict=True):
            messages.append(_message(one.name, turn, {"received": at, "returned": end, "rows": len(one.y)}))
        at = np.average(ends, axis=0, weights=[len(one.y) for one in sites])
    return _played(FederatedAveraging(rate, steps), family, sites, at, messages, {})


def datashield_covariances(site: Site, column: int, requests: int, seed: int = 0, controls: Controls = NONE) -> Played:
    """ds.cov of a hidden column with `requests` columns of normal numbers that the analyst has made there, one request each."""
    hidden, random = site.X[:, column], np.random.default_rng(seed)
    refused, messages = {}, []
    for turn in range(1, requests + 1):
        made = random.standard_normal(len(hidden))
        # A request is about two variables, whatever was asked before: that is what the thresholds are held against.
        why = controls.refusal(np.column_stack([hidden, made]), made)
        if why:
            refused[site.name] = why
            break
        messages.append(
            _message(site.name, turn, {
                "column": made, "sum": hidden.sum(), "sum.of.products": hidden @ made, "complete.counts": len(hidden),
            })
        )  # fmt: skip
    recorded = RecordedMessages(DataShieldCovariance(), "gaussian", ("constant", f"x{column}"), tuple(messages))
    return Played(np.zeros(0), recorded, refused)


def sealed_laps(sites: Sequence[Site], family: str, colluders: int = 0, seed: int = 0) -> Played:
    """The same fit by sealed laps, and what is known to all sites, or to so many that put together what they have: sums over the others."""
    names = [one.name for one in sites]
    features, counts = [one.X for one in sites], [float(len(one.y)) for one in sites]
    binomial = family == "binomial"
    # Every row counts 1: the logistic problem has means over a site's rows, least squares half of sums.
    problem: Logistic | LeastSquares = (
        Logistic(features, [2.0 * one.y - 1.0 for one in sites], weights=counts)
        if binomial
        else LeastSquares(features, [one.y for one in sites])
    )
    run = simulate(
        SealedLaps(Newton() if binomial else "auto"),
        problem,
        ring(len(sites)),
        transcript=True,
        seed=seed,
        progress=False,
    )
    assert run.transcript is not None
    honest = tuple(range(len(sites) - colluders))
    watcher = Colluders(0, honest=honest[1:]) if colluders else None
    messages = []
    # To all sites a lap says its total; to colluders what is left of it without their own answers.
    laps = parts_of_laps(
        run.transcript, watcher or Colluders(0, honest=tuple(range(1, len(sites)))), 0, SeededPairs(run.seed)
    )
    answers = [lap.rest for lap in laps.laps]
    who = f"the sum over {several([names[place] for place in honest])}"
    rows = sum(len(sites[place].y) for place in honest)
    for turn, told in enumerate(told_in(laps.laps, answers, sites[0].X.shape[1])):
        if told.gradient is None:
            continue
        sent = {"point": told.place.point, "score": -told.gradient, "rows": rows}
        messages.append(_message(who, turn, sent if told.hessian is None else {**sent, "information": told.hessian}))
    return _played(SumOverSites(), family, sites, run.estimate, messages, {})


def _members(sites: Sequence[Site], controls: Controls) -> tuple[list[Site], dict[str, str]]:
    refused = {one.name: why for one in sites if (why := controls.refusal(one.X, one.y))}
    members = [one for one in sites if one.name not in refused]
    if not members:
        raise ValueError("Every site refuses: " + "; ".join(f"{name}: {why}" for name, why in refused.items()) + ".")
    return members, refused


def _message(site: str, iteration: int, values: Mapping[str, object]) -> Message:
    return Message(site, iteration, {name: np.array(value, dtype=np.float64) for name, value in values.items()})


def _played(
    protocol: FederatedProtocol, family: str, sites: Sequence[Site], at: Vector, messages: Sequence[Message],
    refused: Mapping[str, str],
) -> Played:  # fmt: skip
    columns = ("constant", *(f"x{place}" for place in range(1, sites[0].X.shape[1])))
    return Played(at, RecordedMessages(protocol, family, columns, tuple(messages)), refused)
