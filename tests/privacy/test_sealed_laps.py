"""What is proven of sealed laps, exactly: transcripts that are equal word for word, words that are uniform, attacks that fail.

Every test has its positive control: what it would find where the masks were left out, used twice, or known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import roundelay as rl
from roundelay.algorithms.sealed.questions import asked_in, question_of
from roundelay.engine import sealed_run
from roundelay.kernels.random import Words
from roundelay.masks import (
    LINK,
    MASK,
    SEAL,
    AgreedPairs,
    FixedPoint,
    Grid,
    PairSecrets,
    SeededPairs,
    WideFixedPoint,
    my_seal,
    new_private_key,
    public_key_of,
    seal_with,
    seals,
)
from roundelay.transcripts import LapParts, Transcript, answer_in, parts_of_laps, sealed_lap

GRIDS: tuple[Grid, ...] = (FixedPoint(44), WideFixedPoint())
NETWORKS = {"cycle": rl.ring, "star": rl.star, "path": rl.path}


@dataclass(frozen=True)
class OnePairChosen:
    """Secrets as others have them, but the words of one pair are moved by a chosen amount in each turn."""

    others: PairSecrets
    pair: tuple[int, int]
    grid: Grid
    moved: dict[int, Words] = field(default_factory=dict)

    def key(self, first: int, second: int) -> bytes:
        return self.others.key(first, second)

    def words(self, first: Any, second: Any, purpose: int, turns: Any, count: int, about: bytes = b"") -> Words:
        drawn = np.array(self.others.words(first, second, purpose, turns, count, about))
        for row, (one, other, turn) in enumerate(zip(first.tolist(), second.tolist(), turns.tolist(), strict=True)):
            if purpose == SEAL and {one, other} == set(self.pair) and turn in self.moved:
                drawn[row] = self.grid.add(drawn[row], self.moved[turn])
        return drawn


@contextmanager
def secrets_of_runs(secrets: PairSecrets) -> Iterator[None]:
    """Simulated runs draw their masks from these."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealed_run, "SeededPairs", lambda seed: secrets)
        yield


def run_of(algorithm: Any, problem: Any, network: rl.Network, seed: int = 0) -> rl.Run:
    return rl.simulate(algorithm, problem, network, seed=seed, transcript=True, progress=False)


def laps_of(run: rl.Run) -> Transcript:
    assert run.transcript is not None
    return run.transcript


def same_word_for_word(one: Transcript, other: Transcript) -> bool:
    """Everything that anybody saw of two runs is equal, to the bit: who sent what to whom, and what was told."""
    names = ("place", "sender", "receiver", "words", "told")
    return len(one.laps) == len(other.laps) and all(
        a.kind == b.kind and all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)
        for a, b in zip(one.laps, other.laps, strict=True)
    )


# ---------------------------------------------------------------- indistinguishable


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32),
    agents=st.integers(2, 7),
    numbers=st.integers(1, 6),
    grid=st.sampled_from(GRIDS),
    where=st.sampled_from(sorted(NETWORKS)),
    data=st.data(),
)
def test_any_shift_between_two_honest_agents_has_masks_that_give_the_same_transcript(
    seed, agents, numbers, grid, where, data
):
    """a + h and b − h for any h at all, by masks of the pair (a, b) alone: all other secrets stay what they are."""
    a, b = sorted(data.draw(st.lists(st.integers(0, agents - 1), min_size=2, max_size=2, unique=True)))
    rng = np.random.default_rng(seed)
    tour = NETWORKS[where](agents).tour()
    turn = int(rng.integers(1, 1000))
    answers = grid.encode(rng.normal(size=(agents, numbers)) * 10.0 ** rng.integers(-3, 4))
    shift = rng.integers(0, 2**64, grid.words * numbers, np.uint64)
    secrets = SeededPairs(seed)
    moved = OnePairChosen(secrets, (a, b), grid, {turn: grid.negative(shift)})

    def lap(words: Words, pairs: PairSecrets) -> Words:
        masks = seals(pairs, agents, numbers, turn, grid)
        return sealed_lap(
            tour.order, tour.works, np.array([grid.add(*both) for both in zip(words, masks, strict=True)]), grid
        ).words

    other = answers.copy()
    other[a], other[b] = grid.add(answers[a], shift), grid.add(answers[b], grid.negative(shift))
    assert np.array_equal(lap(answers, secrets), lap(other, moved))
    assert not np.array_equal(lap(answers, secrets), lap(other, secrets))  # without it the words tell


CASES = [
    (rl.SealedLaps(rl.NormalEquations()), "squares"),
    (rl.SealedLaps(rl.NormalEquations(), wide=True), "squares"),
    (rl.SealedLaps(rl.ConjugateGradients()), "squares"),
    (rl.SealedLaps(rl.LBFGS(), wide=True), "logistic"),
    (rl.SealedLaps(rl.Newton()), "logistic"),
]


def with_rows(kind: str, features: list[Any], targets: list[Any]) -> Any:
    if kind == "squares":
        return rl.LeastSquares(features, targets)
    return rl.Logistic(features, [np.where(target > 0.0, 1.0, -1.0) for target in targets], ridge=0.1)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32),
    agents=st.integers(3, 6),
    case=st.sampled_from(CASES),
    where=st.sampled_from(sorted(NETWORKS)),
    data=st.data(),
)
def test_two_agents_who_exchange_all_their_data_leave_the_same_transcript(seed, agents, case, where, data):
    """Whole runs, from the data to the words: nobody but the two can tell who of them has which rows."""
    a, b = sorted(data.draw(st.lists(st.integers(0, agents - 1), min_size=2, max_size=2, unique=True)))
    algorithm, kind = case
    rng = np.random.default_rng(seed)
    rows = rng.integers(3, 9, agents)
    features = [rng.normal(size=(count, 3)) for count in rows]
    targets = [rng.normal(size=count) for count in rows]
    exchanged = list(range(agents))
    exchanged[a], exchanged[b] = b, a
    problem = with_rows(kind, features, targets)
    other = with_rows(kind, [features[i] for i in exchanged], [targets[i] for i in exchanged])
    network, grid, secrets = NETWORKS[where](agents), algorithm.grid, SeededPairs(7)
    first = run_of(algorithm, problem, network, seed=7)
    told = laps_of(first).laps
    opened = [
        {agent: grid.encode(answer_in(lap, agent, secrets, turn)) for agent in (a, b)} for turn, lap in enumerate(told)
    ]
    # a now answers what b did, so that the words of the pair make up for the difference
    moved = {turn: grid.add(words[a], grid.negative(words[b])) for turn, words in enumerate(opened)}
    with secrets_of_runs(OnePairChosen(secrets, (a, b), grid, moved)):
        again = run_of(algorithm, other, network, seed=7)
    assert same_word_for_word(laps_of(first), laps_of(again))
    assert not same_word_for_word(laps_of(first), laps_of(run_of(algorithm, other, network, seed=7)))


# ---------------------------------------------------------------- uniform


def chi_squares(words: Words) -> list[float]:
    """How far every byte of the words is from uniform, in standard deviations of a chi-square with 255 degrees."""
    spread = []
    for byte in range(8):
        values = (words.ravel() >> np.uint64(8 * byte)) & np.uint64(255)
        counts = np.bincount(values.astype(np.int64), minlength=256)
        expected = words.size / 256
        spread.append(float((((counts - expected) ** 2 / expected).sum() - 255) / np.sqrt(2 * 255)))
    return spread


def looks_uniform(words: Words) -> bool:
    return max(map(abs, chi_squares(words))) < 6.0


def under_way(run: rl.Run) -> Words:
    """All words but those of the last message of a lap, in which the masks have cancelled."""
    return np.concatenate([lap.words[:-1].ravel() for lap in laps_of(run).laps])


TWELVE = rl.paper_least_squares(12, 30, 20, seed=3)


@pytest.mark.parametrize("algorithm", [rl.SealedLaps(rl.NormalEquations()), rl.SealedLaps(rl.NormalEquations(), wide=True), rl.SealedLaps(rl.ConjugateGradients())], ids=lambda one: f"{one.optimiser.name}, {one.grid}")  # fmt: skip
def test_words_are_uniform_and_without_masks_they_are_not(algorithm, monkeypatch):
    assert looks_uniform(under_way(run_of(algorithm, TWELVE, rl.ring(12))))
    monkeypatch.setattr(
        sealed_run, "seals", lambda secrets, agents, dim, turn, grid: np.zeros((agents, grid.words * dim), np.uint64)
    )
    assert not looks_uniform(under_way(run_of(algorithm, TWELVE, rl.ring(12))))


def test_a_mask_that_is_used_twice_betrays_the_difference_of_two_questions(monkeypatch):
    """Each lap alone is uniform still; the difference of the two is not, and from a new mask each it is."""

    def difference() -> Words:
        first, second = laps_of(run_of(rl.SealedLaps(rl.NormalEquations()), TWELVE, rl.ring(12))).laps
        return second.words[:-1] - first.words[:-1, : second.words.shape[1]]

    assert looks_uniform(difference())
    monkeypatch.setattr(
        sealed_run, "seals", lambda secrets, agents, dim, turn, grid: seals(secrets, agents, dim, 0, grid)
    )
    assert looks_uniform(under_way(run_of(rl.SealedLaps(rl.NormalEquations()), TWELVE, rl.ring(12))))
    betrayed = FixedPoint(44).decode(difference())
    assert not looks_uniform(difference())
    start, end = (TWELVE.gradients(np.tile(point, (12, 1))) for point in (np.zeros(20), TWELVE.optimum))
    np.testing.assert_allclose(betrayed, np.cumsum(end - start, axis=0)[:-1], atol=1e-9)


# ---------------------------------------------------------------- attacks


@pytest.mark.parametrize("agents", range(4, 13))
def test_no_attack_of_all_but_two_beats_a_guess(agents):
    problem = rl.paper_least_squares(agents, 20, 3, seed=agents)
    for algorithm, network in product(
        (rl.SealedLaps(), rl.SealedLaps(rl.LBFGS(), wide=True)), (rl.ring(agents), rl.star(agents))
    ):
        run = run_of(algorithm, problem, network, seed=agents)
        for agent, friend in ((0, 1), (agents - 1, 2), (2, 0)):
            found = rl.audit(run, rl.Colluders(agent, (friend,)), agent)
            assert {leak.attack for leak in found.leaks} == {"difference of words", "mean of the honest sum"}
            for leak in found.leaks:
                assert not leak.known, leak
                assert leak.attack != "difference of words" or leak.at_end > 100.0, leak
            assert "all there is to learn of the 2 agents" in found.proven


@pytest.mark.parametrize(("agents", "observer"), [(2, "neighbours"), (3, "neighbours"), (2, "colluders"), (5, "colluders"), (12, "colluders")])  # fmt: skip
@pytest.mark.parametrize("algorithm", [rl.SealedLaps(), rl.SealedLaps(wide=True), rl.SealedLaps(rl.ConjugateGradients()), rl.SealedLaps(rl.LBFGS())], ids=lambda one: f"{one.optimiser}, {one.grid}")  # fmt: skip
def test_all_the_others_together_recover_everything_to_the_grid(agents, observer, algorithm):
    problem = rl.paper_least_squares(agents, 20, 3, seed=agents)
    found = rl.audit(run_of(algorithm, problem, rl.ring(agents)), observer, 1)
    for attack in ("difference of words", "mean of the honest sum"):
        best = {leak.quantity: leak for leak in found.leaks if leak.attack == attack}
        assert {"gradients", "Hessian H", "slope g"} <= set(best)
        assert all(leak.known and leak.at_end < 1e-6 for leak in best.values())
    recovered = found.estimates["difference of words"]
    assert np.abs(recovered.H - problem.hessian(1, np.zeros(3))).max() < 1e-6
    assert np.abs(recovered.g - problem.gradient(1, np.zeros(3))).max() < 1e-6
    assert "Nothing of agent 1 is hidden" in found.proven


def test_the_one_pass_is_the_control_without_masks():
    """The same sums in the open: any neighbour, or a tap, knows all that sealed laps hide from them."""
    problem = rl.paper_least_squares(6, 20, 3)
    for network, observer in product((rl.ring(6), rl.star(6)), ("neighbours", "eavesdropper")):
        for agent in range(6):
            found = rl.audit(run_of(rl.OnePass(), problem, network), observer, agent)
            best = {leak.quantity: leak.at_end for leak in found.worst}
            assert max(best["Hessian H"], best["slope g"]) < 1e-12
    sealed = rl.audit(run_of(rl.SealedLaps(), problem, rl.ring(6)), "neighbours", 2)
    assert not any(leak.known for leak in sealed.leaks)


def held(transcript: Transcript, observer: Any, agent: int) -> LapParts:
    return parts_of_laps(transcript, observer, agent, SeededPairs(0))


def test_observers_hold_what_they_really_hold():
    """The sum over the honest, exactly; the words without the masks of those who work together, and with all others."""
    problem, grid = rl.paper_least_squares(6, 20, 2), FixedPoint(44)
    transcript = laps_of(run_of(rl.SealedLaps(rl.NormalEquations()), problem, rl.path(6)))
    answers = [
        np.array([answer_in(lap, agent, SeededPairs(0), turn) for agent in range(6)])
        for turn, lap in enumerate(transcript.laps)
    ]
    for observer, members in (
        (rl.Eavesdropper(), []), (rl.Neighbours(2), [1, 3]), (rl.Neighbours(0), [1]), (rl.Colluders(2), [0, 1, 3, 4, 5]),
        (rl.Colluders(2, (4,)), [0, 1, 3, 5]),
    ):  # fmt: skip
        agent = getattr(observer, "agent", 2)
        parts, honest = held(transcript, observer, agent), sorted(set(range(6)) - set(members))
        assert (parts.honest, parts.masks) == (len(honest), len(honest) - 1)
        for turn, lap in enumerate(parts.laps):
            np.testing.assert_allclose(lap.rest, answers[turn][honest].sum(axis=0), atol=1e-12)
            left = seal_with(
                SeededPairs(0), agent, np.array([i for i in honest if i != agent]), answers[turn].shape[1], turn, grid
            )
            np.testing.assert_array_equal(lap.words, grid.encode(answers[turn][agent]) + left)


def test_a_tap_on_one_link_has_nothing_to_compare():
    transcript = laps_of(run_of(rl.SealedLaps(), rl.paper_least_squares(5), rl.ring(5)))
    order = transcript.laps[0].sender
    parts = held(transcript, rl.Link(int(order[1]), int(order[2])), int(order[2]))
    assert all(lap.words is None and lap.rest is None for lap in parts.laps)
    last = held(transcript, rl.Link(int(order[-1]), int(order[0])), int(order[2]))
    assert all(lap.words is None and lap.rest is not None for lap in last.laps)  # the total crosses the last link


def test_the_answers_that_are_opened_are_those_of_the_data():
    problem = rl.paper_least_squares(4, 20, 2)
    transcript = laps_of(run_of(rl.SealedLaps(), problem, rl.ring(4)))
    first = transcript.laps[0]
    assert (asked_in(first.kind).name, question_of(first.kind, first.told, 2).point) == ("GRADIENT_AND_HESSIAN", None)
    for agent in range(4):
        answer = answer_in(first, agent, SeededPairs(0), 0)
        np.testing.assert_allclose(answer[:2], problem.gradient(agent, np.zeros(2)), atol=1e-13)
        np.testing.assert_allclose(answer[2:], problem.hessian(agent)[np.triu_indices(2)], atol=1e-13)


# ---------------------------------------------------------------- the masks of real agents

KEYS = tuple(new_private_key() for _ in range(4))
PUBLIC = tuple(map(public_key_of, KEYS))


def ends(run: str, epoch: int) -> list[AgreedPairs]:
    return [AgreedPairs(me, key, PUBLIC, run, epoch) for me, key in enumerate(KEYS)]


def test_real_agents_draw_the_same_words_at_both_ends_and_others_for_everything_else():
    drawn: dict[bytes, tuple[Any, ...]] = {}
    for run, epoch, purpose, question in product(("one", "two"), (0, 1), (MASK, SEAL, LINK), (0, 1, 2, 2**40)):
        everyone = ends(run, epoch)
        for i in range(4):
            for j in range(i):
                both = [
                    everyone[me].words(np.array([i]), np.array([j]), purpose, np.array([question]), 4).tobytes()
                    for me in (i, j)
                ]
                assert both[0] == both[1]
                # Every single word is another one, too: no stream runs into that of the next question.
                for word in range(4):
                    at = (run, epoch, purpose, question, i, j, word)
                    assert drawn.setdefault(both[0][8 * word : 8 * word + 8], at) == at


@pytest.mark.parametrize("grid", GRIDS, ids=repr)
def test_masks_of_real_agents_cancel_and_a_longer_one_begins_with_the_shorter(grid):
    everyone = ends("one", 0)
    masks = np.array([my_seal(end, end.me, 4, 5, 3, grid) for end in everyone])
    assert not grid.total(masks).any()
    assert masks.all()
    longer = my_seal(everyone[1], 1, 4, 9, 3, grid)
    np.testing.assert_array_equal(longer[: masks.shape[1]], masks[1])
    parts = [seal_with(everyone[1], 1, np.array([other]), 5, 3, grid) for other in (0, 2, 3)]
    np.testing.assert_array_equal(grid.total(np.array(parts)), masks[1])
