"""What was sent, in units and bytes, against formulas and against messages that are really encoded."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import roundelay as rl
from roundelay.comparison.ground import units_a_step
from roundelay.engine.assemble import compiled_module, python_module, recipe
from roundelay.links.compressors import varint_bits
from tests.gossip.cases import AGENTS, FIVE, LINE, NETWORK, PENALTIES, SQUARES
from tests.gossip.support import coins, decoded, draws, trace

ITERATIONS = 12
LINKS = len(NETWORK.edges)
EVERYONE = AGENTS * (AGENTS - 1)


def run_of(algorithm: Any, problem: Any = FIVE, network: rl.Network = NETWORK, **options: Any) -> rl.Run:
    options = {"iterations": ITERATIONS, "record": 1, "engine": "python", "progress": False, **options}
    return rl.simulate(algorithm, problem, network, **options)


# ---------------------------------------------------------------- whole messages

EVERY = np.arange(ITERATIONS + 1)
AFTER_FIRST = np.maximum(EVERY - 1, 0)
KEPT = sum(penalty > 0.0 for penalty in PENALTIES)

# What has been sent after 0, 1, 2, … iterations, in vectors.
WHOLE = [
    (rl.DGD(), 2 * LINKS * EVERY),
    (rl.DGD(adapt_then_combine=True), 2 * LINKS * EVERY),
    (rl.EXTRA(), 2 * LINKS * EVERY),
    (rl.NIDS(), 2 * LINKS * AFTER_FIRST),
    (rl.LEAD(channel=rl.Plain()), 2 * LINKS * AFTER_FIRST),
    (rl.GradientTracking(), 4 * LINKS * EVERY),
    (rl.NetworkDANE(), 4 * LINKS * EVERY),
    (rl.GradientTracking(adapt_then_combine=True), 4 * LINKS * EVERY),
    (rl.CHOCO(channel=rl.Plain()), 2 * LINKS * EVERY),
    (rl.DADMM(), 2 * LINKS * EVERY),
    (rl.DADMM(first_order=True), 2 * LINKS * EVERY),
    (rl.ColouredDADMM(), 2 * LINKS * EVERY),
    (rl.WeightedADMM(PENALTIES), 2 * KEPT * EVERY),
    (rl.WeightedADMM(0.5), 2 * LINKS * EVERY),
    (rl.DualPerturbedADMM(), 2 * LINKS * EVERY),
    (rl.PrimalPerturbedADMM(), 2 * LINKS * EVERY),
    (rl.PenaltyPerturbedADMM(), 2 * LINKS * EVERY),
    (rl.PQASGD(local_steps=1, channel=rl.Plain()), EVERYONE * EVERY),
    (rl.PQASGD(local_steps=5, channel=rl.Plain()), EVERYONE * (EVERY // 5)),
]


@pytest.mark.parametrize(
    ("algorithm", "vectors"), WHOLE, ids=lambda value: repr(value) if hasattr(value, "name") else ""
)
def test_whole_messages_cost_one_unit_a_vector(algorithm: Any, vectors: np.ndarray) -> None:
    for problem in (SQUARES, FIVE):
        run = run_of(algorithm, problem)
        assert (run.history["units"] == vectors).all()
        assert run.history["units"].dtype == np.int64  # nothing is rounded where nothing is compressed
        assert (run.history["bytes"] == 8 * problem.dim * vectors).all()
        assert run.units == vectors[-1] and isinstance(run.units, int)


def test_the_network_of_the_tests_is_one_where_the_formulas_differ() -> None:
    assert (AGENTS, LINKS, EVERYONE, KEPT) == (7, 13, 42, 10)
    assert len(set(NETWORK.degrees.tolist())) > 2


def test_coca_pays_for_those_that_speak() -> None:
    algorithm = rl.COCA(0.7, alpha=0.3, rho=0.9)
    states = trace(algorithm, FIVE, NETWORK, ITERATIONS)
    assert 0 < states.sent.sum() < states.sent.size
    paid = np.concatenate([[0], np.cumsum(states.sent @ NETWORK.degrees)])
    run = run_of(algorithm, seed=5)
    assert (run.history["units"] == paid).all()
    assert (run.history["bytes"] == 40 * paid).all()
    # Who was silent is who moved too little: seen from the states, not from what the run says of itself.
    shown = np.zeros_like(states.x[0])
    for k, x in enumerate(states.x[1:], start=1):
        moved = np.linalg.norm(x - shown, axis=1) >= 0.3 * 0.9**k
        assert (states.sent[k - 1] == moved).all()
        shown[moved] = x[moved]
        assert (states.posted[k - 1, :, 0] == shown).all()


def test_scaffnew_pays_only_when_the_coin_says_so() -> None:
    for seed in (0, 5):
        fell = coins(0.4, ITERATIONS, seed)
        assert 0 < fell.sum() < ITERATIONS
        run = run_of(rl.Scaffnew(q=0.4), seed=seed)
        assert (run.history["units"] == 2 * LINKS * np.concatenate([[0], np.cumsum(fell)])).all()


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_the_coin_is_fair(q: float) -> None:
    fell = coins(q, 4000, seed=3)
    assert abs(fell.mean() - q) < 5.0 * math.sqrt(q * (1.0 - q) / 4000)


# ---------------------------------------------------------------- compressed messages


def bits_of_index(dim: int) -> int:
    return math.ceil(math.log2(dim)) if dim > 1 else 0


# Numbers and bits of one message of dimension p.
WEIGHTS = [
    (rl.Quantised(2), lambda p: (0, 32 + 3 * p)),
    (rl.Quantised(7), lambda p: (0, 32 + 8 * p)),
    (rl.Signs(), lambda p: (0, 32 + p)),
    (rl.TopK(2), lambda p: (2, 2 * bits_of_index(p))),
    (rl.TopK(100), lambda p: (p, p * bits_of_index(p))),  # more than there are: all of them
    (rl.TopShare(0.5), lambda p: (math.ceil(0.5 * p), math.ceil(0.5 * p) * bits_of_index(p))),
    (rl.RandomK(2), lambda p: (2, 0)),
    (rl.RandomK(2, unbiased=True), lambda p: (2, 0)),
    (rl.RandomK(100), lambda p: (p, 0)),
]


@pytest.mark.parametrize(
    ("compressor", "weight"), WEIGHTS, ids=lambda value: repr(value) if not callable(value) else ""
)
def test_compressed_messages_cost_their_numbers_and_bits(compressor: Any, weight: Any) -> None:
    for problem in (SQUARES, FIVE):
        numbers, bits = weight(problem.dim)
        assert compressor.weight(problem.dim) == (numbers, bits)
        for algorithm, messages in (
            (rl.DGD(channel=compressor), 2 * LINKS * EVERY),
            (rl.LEAD(channel=compressor), 2 * LINKS * AFTER_FIRST),
            (rl.DADMM(channel=rl.Channel(compressor, None, True)), 2 * LINKS * EVERY),
            (rl.PQASGD(local_steps=4, channel=compressor), EVERYONE * (EVERY // 4)),
        ):
            history = run_of(algorithm, problem).history
            np.testing.assert_allclose(history["units"], messages * (numbers + bits / 32.0) / problem.dim, rtol=1e-15)
            assert (history["bytes"] == 8 * numbers * messages + np.ceil(bits * messages / 8)).all()


def test_the_formulas_of_the_papers() -> None:
    p, bits = FIVE.dim, 2
    assert run_of(rl.LEAD()).units == (ITERATIONS - 1) * 2 * LINKS * (32 + p * (bits + 1)) / (32 * p)
    assert run_of(rl.EFSignSGD()).units == pytest.approx(ITERATIONS * EVERYONE * (p + 32) / (32 * p), rel=1e-14)
    share = run_of(rl.SparseDropping(share=0.4))  # two of five coordinates, three bits an index
    assert share.units == pytest.approx(ITERATIONS * EVERYONE * (2 + 6 / 32) / p, rel=1e-14)
    assert share.history["bytes"].iloc[-1] == ITERATIONS * EVERYONE * (16 + 6 / 8)


def varint(number: int) -> bytes:
    """A whole number in bytes of seven bits, the lowest first, with a flag for more; the sign in the lowest bit."""
    rest, out = 2 * number if number >= 0 else -2 * number - 1, bytearray()
    while True:
        rest, low = rest >> 7, rest & 127
        out.append(low | (128 if rest else 0))
        if not rest:
            return bytes(out)


def number_of(text: bytes) -> int:
    rest = sum((byte & 127) << (7 * place) for place, byte in enumerate(text))
    return rest // 2 if rest % 2 == 0 else -(rest + 1) // 2


@given(st.integers(-(2**60), 2**60))
def test_the_encoding_of_whole_numbers_can_be_read_again(number: int) -> None:
    assert number_of(varint(number)) == number


def test_whole_numbers_are_weighed_as_they_would_be_written() -> None:
    edges = [sign * (2**power + beside) for power in range(52) for beside in (-1, 0, 1) for sign in (1, -1)]
    for number in (*range(-300, 301), *edges):
        assert varint_bits(float(number)) == 8 * len(varint(number))


@pytest.mark.parametrize("dithered", [False, True])
@pytest.mark.parametrize("step", [1.0, 1e-2, 3e-5, 1e-9])
def test_lattice_points_cost_the_bytes_of_their_whole_numbers(step: float, dithered: bool) -> None:
    algorithm = rl.QuantisedADMM(0.7, step, dithered)
    states = trace(algorithm, FIVE, NETWORK, ITERATIONS)
    total, bits = 0, [0]
    for posted in states.posted[:, :, 0]:
        wholes = np.rint(posted / step)
        assert np.abs(posted - step * wholes).max() <= 1e-12 * max(step, np.abs(posted).max())
        for degree, point in zip(NETWORK.degrees, wholes, strict=True):
            total += int(degree) * sum(8 * len(varint(int(whole))) for whole in point)
        bits.append(total)
    assert (states.bits == bits).all() and (states.numbers == 0).all()
    history = run_of(algorithm, seed=5).history
    assert (history["bytes"] == np.array(bits) // 8).all()
    np.testing.assert_allclose(history["units"], np.array(bits) / 32.0 / FIVE.dim, rtol=1e-15)


# ---------------------------------------------------------------- tokens


@pytest.mark.parametrize(
    "walk", [rl.Cycle(), rl.MetropolisWalk(), rl.UniformWalk()], ids=lambda walk: type(walk).__name__
)
def test_the_token_of_mc_sag_carries_two_vectors(walk: Any) -> None:
    for network in (NETWORK, LINE):
        run = run_of(rl.MCSAG(0.01, walk), FIVE, network, iterations=None, hops=40)
        assert (run.history["units"] == 2 * run.history["hop"]).all() and run.units == 80
        assert (run.history["bytes"] == 2 * 40 * run.history["hop"]).all()


@pytest.mark.parametrize("dim", [1, 2, 5, 20])
@pytest.mark.parametrize(
    "network", [rl.ring(AGENTS), NETWORK, LINE, rl.star(AGENTS)], ids=["ring", "random", "path", "star"]
)
def test_the_one_pass_is_exact_and_costs_two_laps(network: rl.Network, dim: int) -> None:
    problem = rl.paper_least_squares(agents=AGENTS, samples=30, dim=dim, seed=2)
    run = rl.simulate(rl.OnePass(), problem, network)
    lap = len(network.tour().order)
    assert lap == AGENTS if network is NETWORK else lap >= AGENTS
    assert run.units == lap * (dim + 3) / 2 + (lap - 1)
    assert run.history["bytes"].iloc[-1] == 8 * dim * run.units
    assert (np.diff(run.history["units"]) == np.where(np.arange(2 * lap - 1) < lap, (dim + 3) / 2, 1.0)).all()
    blocks = [problem.rows.of(agent) for agent in range(AGENTS)]
    rows = np.concatenate([problem.rows.features[own] for own in blocks])
    targets = np.concatenate([problem.rows.targets[own] for own in blocks])
    solution = np.linalg.lstsq(rows, targets, rcond=None)[0]
    assert np.abs(run.x - solution).max() < 1e-11 * np.abs(solution).max()
    assert run.history["error"].iloc[-1] < 1e-11 < 0.1 < run.history["error"].iloc[lap]


# ---------------------------------------------------------------- how long a run must be

LENGTHS = [
    rl.DGD(), rl.NIDS(), rl.GradientTracking(), rl.GradientTracking(adapt_then_combine=True), rl.LEAD(), rl.ColouredDADMM(),
    rl.WeightedADMM(PENALTIES), rl.CHOCO(channel=rl.TopK(2)), rl.EFSignSGD(), rl.SparseDropping(), rl.PQASGD(),
    rl.DGD(channel=rl.RandomK(2)), rl.DADMM(channel=rl.Signs()),
]  # fmt: skip


@pytest.mark.parametrize("algorithm", LENGTHS, ids=repr)
def test_what_a_step_costs_is_known_beforehand(algorithm: Any) -> None:
    free = 1 if isinstance(algorithm, (rl.NIDS, rl.LEAD)) else 0  # the first iteration
    run = run_of(algorithm, iterations=20 + free)
    assert units_a_step(algorithm, FIVE, NETWORK) == pytest.approx(run.units / 20, rel=1e-12)


def test_what_a_step_costs_where_chance_or_size_decides() -> None:
    run = run_of(rl.Scaffnew(q=0.3), iterations=600)
    assert run.units / 600 == pytest.approx(units_a_step(rl.Scaffnew(q=0.3), FIVE, NETWORK), rel=0.2)
    assert units_a_step(rl.COCA(), FIVE, NETWORK) == 2 * LINKS  # if all spoke
    assert units_a_step(rl.MCSAG(), FIVE, NETWORK) == 2.0


# ---------------------------------------------------------------- the compressors' contracts

DIM = 6
MANY = 20_000


def encode_all(compressor: Any, seed: int, i: int, vectors: Any, out: Any, costs: Any) -> int:
    for number in range(vectors.shape[0]):
        numbers, bits = encode(compressor, seed, i, number, vectors[number], out[number])  # noqa: F821
        costs[number, 0] = numbers
        costs[number, 1] = bits
    return 0


@cache
def encoder(compressor: Any, compiled: bool) -> tuple[Any, Any]:
    part = compressor.encoder(DIM)
    text = recipe((part,), (part.numbers,), (("travel", encode_all),), (("DIM", DIM),), compiled)
    return (compiled_module if compiled else python_module)(text, DIM).travel, part.numbers


def encoded(compressor: Any, vectors: np.ndarray, engine: str, seed: int = 3, agent: int = 2) -> tuple[Any, Any]:
    """What receivers read of message number 0, 1, …, and what each of them cost, by either engine."""
    travel, numbers = encoder(compressor, engine == "compiled")
    out, costs = np.full(vectors.shape, np.nan), np.zeros((len(vectors), 2), np.int64)
    travel(numbers, np.uint64(seed) if engine == "compiled" else seed, agent, vectors, out, costs)
    return out, costs


CONTRACTS = [
    rl.Rounded(0.1), rl.Rounded(0.1, dithered=True), rl.Quantised(1), rl.Quantised(3), rl.Signs(), rl.TopK(2),
    rl.TopShare(0.6), rl.RandomK(2), rl.RandomK(4, unbiased=True),
]  # fmt: skip
ALL = pytest.mark.parametrize("compressor", CONTRACTS, ids=repr)

# Nothing so small that single precision can't hold it: a scale is sent in 32 bits.
entries = st.one_of(
    st.just(0.0), st.floats(-30.0, 30.0), st.floats(-1e-3, 1e-3), st.sampled_from([1.0, -1.0, 0.05])
).map(lambda value: value if abs(value) > 1e-30 else 0.0)
vectors_of = st.lists(entries, min_size=DIM, max_size=DIM).map(lambda values: np.array([values]))


@ALL
@settings(deadline=None, max_examples=60, derandomize=True)
@given(vectors=st.lists(st.lists(entries, min_size=DIM, max_size=DIM), min_size=1, max_size=4).map(np.array))
def test_both_engines_encode_the_same_bits_and_the_reference_agrees(compressor: Any, vectors: np.ndarray) -> None:
    plain, costs = encoded(compressor, vectors, "python")
    ours, our_costs = encoded(compressor, vectors, "compiled")
    assert plain.tobytes() == ours.tobytes()
    assert (costs == our_costs).all()
    for number, v in enumerate(vectors):
        expected = decoded(compressor, 3, 2, number, v)
        assert np.abs(plain[number] - expected).max() <= 1e-15 * max(np.abs(v).max(), 0.1)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(vectors=vectors_of, bits=st.integers(1, 10), step=st.sampled_from([0.1, 1e-3, 7.0]))
def test_rounding_and_quantising_stay_within_a_step(vectors: np.ndarray, bits: int, step: float) -> None:
    v, slack = vectors[0], 1.0 + 1e-6
    nearest, dithered = (encoded(rl.Rounded(step, way), vectors, "python")[0][0] for way in (False, True))
    assert (np.abs(nearest - v) <= 0.5 * step * slack).all()
    assert (np.abs(dithered - v) <= step * slack).all()
    quantised, costs = encoded(rl.Quantised(bits), vectors, "python")
    scale = float(np.float32(np.abs(v).max()))
    assert (np.abs(quantised[0] - v) <= scale / 2.0 ** (bits - 1) * slack).all()
    # What is paid is enough to write it down: 32 bits of scale, and for each coordinate a sign and a level of b bits.
    levels = np.rint(np.abs(quantised[0]) * 2.0 ** (bits - 1) / (scale or 1.0))
    assert (levels < 2.0**bits).all() and (costs == [0, 32 + DIM * (bits + 1)]).all()
    np.testing.assert_array_equal(np.abs(quantised[0]), scale * levels / 2.0 ** (bits - 1))
    assert (quantised[0] * v >= 0.0).all()


@settings(deadline=None, max_examples=100, derandomize=True)
@given(vectors=vectors_of, count=st.integers(1, DIM))
def test_the_largest_are_kept_and_the_rest_contracts(vectors: np.ndarray, count: int) -> None:
    v = vectors[0]
    kept = encoded(rl.TopK(count), vectors, "python")[0][0]
    assert ((kept == v) | (kept == 0.0)).all()
    assert sorted(np.abs(kept)) == sorted([*sorted(np.abs(v))[DIM - count :], *[0.0] * (DIM - count)])
    assert ((v - kept) ** 2).sum() <= (1.0 - count / DIM) * (v**2).sum() * (1.0 + 1e-12)
    share = encoded(rl.TopShare(count / DIM), vectors, "python")[0][0]
    assert (share == kept).all()


@settings(deadline=None, max_examples=100, derandomize=True)
@given(vectors=vectors_of)
def test_signs_keep_the_mean_size(vectors: np.ndarray) -> None:
    v = vectors[0]
    sent = encoded(rl.Signs(), vectors, "python")[0][0]
    assert len(set(np.abs(sent).tolist())) == 1 and (sent * v >= 0.0).all()
    assert np.float32(sent[0]) == sent[0]  # it fits into the 32 bits that are paid
    assert abs(sent[0]) == pytest.approx(np.abs(v).mean(), rel=1e-7, abs=1e-45)
    left = ((v - sent) ** 2).sum()
    assert left <= (v**2).sum() - np.abs(v).sum() ** 2 / DIM + 1e-6 * (v**2).sum()


@settings(deadline=None, max_examples=60, derandomize=True)
@given(count=st.integers(1, DIM), agent=st.integers(0, 50), seed=st.integers(0, 2**40))
def test_random_coordinates_are_exactly_so_many(count: int, agent: int, seed: int) -> None:
    vectors = np.tile(np.arange(1.0, DIM + 1.0), (20, 1))
    for unbiased, factor in ((False, 1.0), (True, DIM / count)):
        sent = encoded(rl.RandomK(count, unbiased), vectors, "python", seed, agent)[0]
        assert ((sent != 0.0).sum(axis=1) == count).all()
        assert np.isin(sent, [0.0, *(factor * vectors[0])]).all()


# ---------------------------------------------------------------- right in the mean


def standard_errors(variance: np.ndarray, largest: Any) -> np.ndarray:
    """Five standard errors of a mean over MANY draws, and a little for rare draws, which are not normal."""
    return 5.0 * np.sqrt(variance / MANY) + 10.0 * largest / MANY


@settings(deadline=None, max_examples=15, derandomize=True)
@given(vectors=vectors_of, agent=st.integers(0, 9), step=st.sampled_from([0.1, 2.0]), bits=st.sampled_from([1, 3]))
def test_dithered_messages_are_right_in_the_mean(vectors: np.ndarray, agent: int, step: float, bits: int) -> None:
    v, many = vectors[0], np.repeat(vectors, MANY, axis=0)
    scale = float(np.float32(np.abs(v).max()))
    widths = {rl.Rounded(step, dithered=True): step, rl.Quantised(bits): scale / 2.0 ** (bits - 1)}
    for compressor, width in widths.items():
        sent = encoded(compressor, many, "compiled", 11, agent)[0]
        part = np.mod(np.abs(v) / width, 1.0) if width > 0.0 else np.zeros(DIM)
        bound = standard_errors(width**2 * part * (1.0 - part), width) + 1e-7 * np.abs(v).max()
        assert (np.abs(sent.mean(axis=0) - v) <= bound).all()
        if ((part > 0.01) & (part < 0.99)).any():
            assert len(np.unique(sent, axis=0)) > 1  # each message has draws of its own


@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_random_coordinate_has_the_same_chance(count: int) -> None:
    v = np.array([3.0, -1.0, 0.5, 7.0, -2.0, 1e-3])
    many = np.repeat(v[None], MANY, axis=0)
    sent = encoded(rl.RandomK(count, unbiased=True), many, "compiled")[0]
    chance = count / DIM
    hits = sent != 0.0
    assert (np.abs(hits.mean(axis=0) - chance) <= 5.0 * math.sqrt(chance * (1.0 - chance) / MANY)).all()
    assert (np.abs(sent.mean(axis=0) - v) <= standard_errors(v**2 * (1.0 / chance - 1.0), np.abs(v))).all()
    if count > 1:  # pairs are as frequent as drawing without replacement makes them
        both = (hits[:, 0] & hits[:, 5]).mean()
        expected = count * (count - 1) / (DIM * (DIM - 1))
        assert abs(both - expected) <= 5.0 * math.sqrt(expected * (1.0 - expected) / MANY)


def test_messages_agents_and_seeds_have_draws_of_their_own() -> None:
    rows = [draws(seed, agent, number, 4) for seed in (0, 1) for agent in (0, 1) for number in (0, 1)]
    assert len(np.unique(rows)) == 32
