"""Network differential privacy: what each member learns of each other's records who sees only the tokens that come to it.

The steps are z⁺ = z − α_k(g_i(z) + ω), ω ~ N(0, σ²I), and the agents keep nothing between visits, so that the token is all there
is. Between two looks of member v, a *trip*, the token goes from a z that v knows to a z that v is shown. With data that differ in
one record of u, every visit of u in the trip moves the token by α_kΔ_u more or less, and every step is otherwise a map that brings
no two points farther apart, where α_k is at most 2/L. All noise that is added from a visit of u on hides it:

    μ² = min Σ_t (a_t/(α_tσ))²   over shares a_t ≥ 0 with Σ_{t ≤ n} a_t ≤ Σ_{visits of u ≤ n} α_kΔ_u for all n, and equal in the end.

That is a Gaussian mechanism with μ, whatever the maps (the proof is in docs/differential-privacy.md), and trips compose to
one whose μ² is the sum. One visit d steps before v is shown the token has μ² = (Δ_u/σ)²/d. The minimum is the greatest convex
minorant of what has come up so far over the noise so far, by pooling: an earlier visit can wait for later noise, not the other
way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from roundelay.algorithms.parts.facts import NoisyStep
from roundelay.kernels import Integers, Matrix, Vector
from roundelay.kernels.checks import whole_number
from roundelay.networks import Network
from roundelay.networks.walks import walked
from roundelay.privacy.accounting.composition import composed_epsilon
from roundelay.privacy.accounting.guarantee import check_delta, noise_multipliers
from roundelay.privacy.accounting.sensitivities import NoGuarantee, method_of, noisy_step, rate_of, why_no_guarantee
from roundelay.privacy.accounting.unknown_walk import epsilons_before_the_walk
from roundelay.problems import Problem
from roundelay.problems.problem import check_agent
from roundelay.problems.row_problem import RowProblem
from roundelay.shown.watched import reporting

if TYPE_CHECKING:  # a site's meter needs no tables
    import pandas as pd


@dataclass(frozen=True, eq=False)
class NetworkPrivacy:
    """ε of a record of each member, row u, towards each member who sees only its own tokens, column v; NaN where u = v.

    `of_all` is ε of the same record towards one who sees all tokens. `distances` is how many steps after u the token can be at v
    first: along the tour, or over the links. `words` says what it holds against and what it rests on.
    """

    epsilon: Matrix
    of_all: Vector
    distances: Integers
    delta: float
    words: str

    @cached_property
    def by_distance(self) -> pd.DataFrame:
        """Pairs, median and worst ε for each distance, beside the worst ε towards one who sees all."""
        import pandas as pd

        told = ~np.isnan(self.epsilon)
        pairs = pd.DataFrame({"distance": self.distances[told], "epsilon": self.epsilon[told]})
        table = pairs.groupby("distance")["epsilon"].agg(pairs="size", median="median", worst="max")
        return table.assign(of_all=float(np.max(self.of_all))).reset_index()

    @property
    def towards(self) -> pd.DataFrame:
        """For each member who looks, the median and the worst ε of the others' records."""
        import pandas as pd

        table = pd.DataFrame(self.epsilon)
        return pd.DataFrame({"member": np.arange(len(table)), "median": table.median(), "worst": table.max()})

    def __str__(self) -> str:
        return f"{self.words}\n{self.by_distance.to_string(index=False)}"


def network_privacy(
    algorithm: Any,
    problem: Problem,
    network: Network,
    hops: int,
    delta: float = 1e-5,
    seed: int | None = None,
    together: Sequence[int] = (),
    told_at_end: bool = True,
    progress: bool = True,
) -> NetworkPrivacy | NoGuarantee:
    """ε of every member's records towards every other member, after so many hops.

    On a tour the walk is known, and on a random walk with the `seed` of a run it is that run's: the promise then holds even against
    members who know the whole walk. Without a seed it is over all walks, before one is drawn, and also holds against those who will know it.
    The members `together` show all that they see to whoever looks. With `told_at_end` everybody learns the last token as well.
    Over all walks it takes a time that grows with the square of the hops, and of the members.
    """
    method = method_of(algorithm)
    if getattr(method, "masked", False):
        raise ValueError(
            "In sealed laps a member sees totals alone, which everybody sees: ε towards each member is that of the run, which run.privacy has."
        )
    reason = why_no_guarantee(method, problem)
    if reason:
        return NoGuarantee(reason)
    check_delta(delta)
    hops = whole_number("hops", hops, least=1)
    others = [int(member) for member in together]
    for member in others:
        check_agent(member, problem.agents)
    if rate_of(method) is not None or method.tokens > 1:
        return NoGuarantee("towards single members it is reckoned for one token, and for visits that use all records")
    mu = 1.0 / noise_multipliers(method, problem)
    in_the_open = why_all_is_seen(method, problem)
    walk = method.walk
    if seed is None and not walk.is_tour:
        if not hasattr(walk, "chances") or others or not told_at_end or in_the_open or noisy_step(method).decay:  # type: ignore[union-attr]
            raise ValueError(
                "Over all walks ε is reckoned for a random walk whose chances are known, with steps that stay the same, towards "
                "single members who are told the last token: give the seed of a run."
            )
        with reporting(progress, "privacy over all walks") as report:
            epsilon, of_all = epsilons_before_the_walk(walk.chances(network), hops, mu, delta, report)
        return NetworkPrivacy(
            epsilon,
            of_all,
            _over_links(network),
            delta,
            _words(method, delta, hops, "whichever walk is drawn", others, ""),
        )
    path = path_of(method, network, 0 if seed is None else seed, hops)
    visits = np.bincount(path.agents[path.works], minlength=problem.agents)
    of_all = _epsilons(mu * np.sqrt(visits), delta)
    squares = np.tile(visits.astype(float)[:, None], problem.agents)
    if not in_the_open:
        with reporting(progress, "privacy towards each member") as report:
            for member in range(problem.agents):
                squares[:, member] = exposures(path, problem.agents, [member, *others], told_at_end)
                report(member + 1, problem.agents)
    np.fill_diagonal(squares, np.nan)
    squares[others] = np.nan
    distances = _along_tour(network) if walk.is_tour else _over_links(network)
    about = "on the network's tour" if walk.is_tour else f"on the walk of the seed {seed}, which everybody may know"
    return NetworkPrivacy(
        _epsilons(mu[:, None] * np.sqrt(squares), delta),
        of_all,
        distances,
        delta,
        _words(method, delta, hops, about, others, in_the_open),
    )


def why_all_is_seen(method: Any, problem: Any) -> str:
    """Why nothing better is known towards a single member than towards one who sees all; empty where something is."""
    step = noisy_step(method)
    if step is None:
        return "its agents keep x and y between visits, and a record can show in later tokens as clearly as if all were seen"
    if not isinstance(problem, RowProblem) or not np.isfinite(problem.most_curvature):
        return f"the slope of a record of a {type(problem).__name__} may jump, so that a step may bring two tokens farther apart"
    most = step.alpha * float(np.max(curvature_bounds(step, problem)))
    if most > 2.0:
        return (
            f"alpha times the largest curvature that clipped records can have is {most:.3g}, above 2, so that a step may bring two tokens "
            f"farther apart: use an alpha of {np.floor(2e4 * step.alpha / most) / 1e4:g} at most"
        )
    return ""


def curvature_bounds(step: NoisyStep, problem: RowProblem) -> Vector:
    """L_i: the largest curvature of the clipped f_i, whatever its records are."""
    rows = np.asarray(problem.rows.counts, np.float64)
    return np.asarray(problem.scales * rows * problem.most_curvature * step.clip_row**2 + problem.ridge, np.float64)


def _words(method: Any, delta: float, hops: int, about: str, others: Sequence[int], in_the_open: str) -> str:
    helped = f" and is shown all that {', '.join(map(str, others))} see" if others else ""
    if in_the_open:
        return (
            f"ε at δ = {delta:g} of replacing one record, after {hops} hops {about}. Towards a member who sees only the tokens that come to it{helped} "
            f"nothing better is proved than towards one who sees all: {in_the_open}."
        )
    return (
        f"ε at δ = {delta:g} of replacing one record, after {hops} hops {about}, towards a member who sees only the tokens that come to it{helped}, "
        "and the last one. It rests on the others: that they add their noise, and show their tokens to nobody else. It holds as long as the seed "
        "of the noise is secret; the numbers of records are public."
    )


def _epsilons(mu: Any, delta: float) -> Any:
    """ε of Gaussian mechanisms, each μ reckoned once."""
    found, back = np.unique(np.round(mu, 12), return_inverse=True)
    values = [np.nan if np.isnan(one) else composed_epsilon(1.0 / one, None, 1, delta) if one else 0.0 for one in found]
    return np.array(values)[back].reshape(np.shape(mu))


def _along_tour(network: Network) -> Integers:
    """How many agents work from u on, itself included, until v first holds the token."""
    order = [int(agent) for agent in network.tour().order]
    works = [agent not in order[:place] for place, agent in enumerate(order)]
    far = np.zeros((network.agents, network.agents), np.int64)
    for place in np.flatnonzero(works):
        u, steps = order[int(place)], 0
        for ahead in range(place + 1, place + len(order)):
            steps += int(works[(ahead - 1) % len(order)])
            v = order[ahead % len(order)]
            if v != u and not far[u, v]:
                far[u, v] = steps
    return far


def _over_links(network: Network) -> Integers:
    """The links between u and v."""
    from scipy.sparse.csgraph import shortest_path  # late: it takes a while

    linked = np.zeros((network.agents, network.agents))
    linked[network.edges[:, 0], network.edges[:, 1]] = 1.0
    return np.asarray(shortest_path(linked, directed=False, unweighted=True), np.int64)


# ---------------------------------------------------------------- a walk that is known


@dataclass(frozen=True, eq=False)
class Path:
    """Who holds the token at each hop, whether it works there, and how long its step is against the longest."""

    agents: Integers
    works: np.ndarray[Any, np.dtype[np.bool_]]
    lengths: Vector


def path_of(method: Any, network: Network, seed: int, hops: int) -> Path:
    """The walk of a run, made ahead of it."""
    step, turns = noisy_step(method), np.zeros(network.agents, np.int64)
    agents, works, lengths = np.zeros(hops, np.int64), np.zeros(hops, bool), np.zeros(hops)
    for hop, (agent, working) in enumerate(walked(method.walk, network, seed, hops)):
        agents[hop], works[hop] = agent, working
        if working:
            lengths[hop] = (turns[agent] + 1.0) ** -(step.decay if step is not None else 0.0)
            turns[agent] += 1
    return Path(agents, works, lengths)


def exposures(path: Path, agents: int, watching: Sequence[int], told_at_end: bool = True) -> Vector:
    """μ² of each member's records towards those who watch together, in units of (Δ_u/σ)²: for one who sees all it would be the visits."""
    total = np.zeros(agents)
    looks = [int(hop) for hop in np.flatnonzero(np.isin(path.agents, watching))]
    begin = 0
    for end in [*looks, len(path.agents)] if told_at_end else looks:
        here = np.arange(begin, end)[path.works[begin:end]]
        begin = end + 1
        if not len(here):
            continue
        who, moved = path.agents[here], path.lengths[here]
        left = np.cumsum((moved**2)[::-1])[::-1]  # the noise from each visit on
        once = np.bincount(who, minlength=agents)[who] == 1
        np.add.at(total, who[once], moved[once] ** 2 / left[once])
        for member in np.unique(who[~once]):
            total[member] += pooled(moved[who == member], left[who == member])
    return total


def pooled(moved: Vector, left: Vector) -> float:
    """min Σ a²/w: what each visit moves is spread over the noise from it on, of which `left` has how much there is to the end.

    Between one visit and the next stands a block of noise. Where a block would have to bear more for its noise than the one after it, the two are one.
    """
    blocks: list[tuple[float, float]] = []
    for move, noise in zip(moved.tolist(), (left - np.append(left[1:], 0.0)).tolist(), strict=True):
        while blocks and blocks[-1][0] * noise > move * blocks[-1][1]:
            before = blocks.pop()
            move, noise = before[0] + move, before[1] + noise
        blocks.append((move, noise))
    return sum(move**2 / noise for move, noise in blocks)
