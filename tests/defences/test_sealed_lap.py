"""The sealed lap: counted, kept, uniform to the eye, and all that g ever goes through."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.masks import FixedPoint
from roundelay.privacy import Public
from roundelay.privacy.attacks import parametric_step_size
from roundelay.transcripts import Colluders, Eavesdropper, Link, Neighbours, load_transcript, save_transcript
from tests.defences.support import looks_uniform, moved, quick, slopes

PROBLEM = rl.paper_least_squares(agents=8, samples=6, seed=1)
SEALED = rl.IADMM(start=rl.SealedStart())


@pytest.mark.parametrize(
    "algorithm",
    [SEALED, rl.PIADMM1(start=rl.SealedStart()), rl.PIADMM2(start=rl.SealedStart()), rl.WADMM(start=rl.SealedStart()),
     rl.IADMM(rho=30.0, first_order=True, start=rl.SealedStart())],
)  # fmt: skip
def test_moving_g_between_two_agents_changes_no_token(algorithm):
    v = np.array([3.0, -2.0])
    other = moved(PROBLEM, 2, 5, v)
    np.testing.assert_allclose(slopes(other)[5] - slopes(PROBLEM)[5], v, atol=1e-10)
    network = rl.random_network(8, 0.6, 1)
    tokens = [quick(algorithm, problem, 400, network=network).transcript.tokens for problem in (PROBLEM, other)]
    assert np.abs(tokens[0] - tokens[1]).max() < 1e-12


def test_without_it_the_transcript_shows_where_g_is():
    other = moved(PROBLEM, 2, 5, np.array([3.0, -2.0]))
    tokens = [quick(rl.IADMM(), problem, 400).transcript.tokens for problem in (PROBLEM, other)]
    assert np.abs(tokens[0] - tokens[1]).max() > 1e-2


def test_the_messages_of_the_lap_are_sums_under_masks():
    run = quick(SEALED, PROBLEM, 40)
    lap, contributions = run.transcript.sealed, SEALED.parts().start_states(0, PROBLEM).sealed.contributions
    np.testing.assert_array_equal(lap.sender, np.arange(8))
    np.testing.assert_array_equal(lap.receiver, (np.arange(8) + 1) % 8)
    np.testing.assert_array_equal(lap.words, contributions.cumsum(axis=0, dtype=np.uint64))
    total = FixedPoint(40).rounded(-slopes(PROBLEM) / 10.0).sum(axis=0)
    np.testing.assert_array_equal(FixedPoint(40).decode(lap.words[-1]), total)
    np.testing.assert_array_equal(lap.first_token(), total / 8)


def test_the_words_look_uniform_and_change_with_the_secret_while_the_total_stays():
    problem = rl.paper_least_squares(60, samples=6)
    laps = [quick(SEALED, problem, 1, seed=seed).transcript.sealed.words for seed in range(12)]
    assert looks_uniform(np.concatenate([words[:-1] for words in laps]))
    assert (laps[0][:-1] != laps[1][:-1]).all()
    np.testing.assert_array_equal(laps[0][-1], laps[1][-1])


def test_without_masks_the_words_would_tell_and_the_check_would_notice(monkeypatch):
    from roundelay.algorithms.parts import starts as hidden_starts

    monkeypatch.setattr(hidden_starts, "seals", lambda secrets, agents, dim: np.zeros((agents, dim), np.uint64))
    problem = rl.paper_least_squares(60, samples=6)
    laps = [quick(SEALED, problem, 1, seed=seed).transcript.sealed.words for seed in range(3)]
    assert not looks_uniform(np.concatenate([words[:-1] for words in laps]))


def test_the_lap_is_counted_in_units_and_bytes():
    plain, sealed = quick(rl.IADMM(), PROBLEM, 40), quick(SEALED, PROBLEM, 40)
    assert sealed.history["units"].iloc[0] == 8 and sealed.history["bytes"].iloc[0] == 8 * 2 * 8
    assert sealed.units == plain.units + 8
    line = quick(SEALED, PROBLEM, 40, network=rl.path(8))
    assert line.history["units"].iloc[0] == len(line.transcript.sealed) == 14  # there and back, relays too
    np.testing.assert_array_equal(line.transcript.sealed.words[-1], sealed.transcript.sealed.words[-1])


def test_loss_makes_the_lap_dearer_and_changes_no_state():
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(0.5), latency=1.0)
    lossy, plain = quick(SEALED, PROBLEM, 80, conditions=conditions), quick(SEALED, PROBLEM, 80)
    assert lossy.history["units"].iloc[0] > 8
    assert lossy.history["seconds"].iloc[0] > 8.0
    np.testing.assert_array_equal(lossy.transcript.tokens, plain.transcript.tokens)
    np.testing.assert_array_equal(lossy.transcript.sealed.words, plain.transcript.sealed.words)


def test_a_noisy_link_can_carry_no_words():
    with pytest.raises(ValueError, match="sends words of 64 bits, to which a link can't add noise"):
        quick(SEALED, PROBLEM, 10, conditions=rl.NetworkConditions(noise=0.1))


def test_the_lap_of_a_walk_starts_and_ends_where_the_walk_starts():
    run = quick(rl.WADMM(start=rl.SealedStart()), PROBLEM, 40, network=rl.random_network(8, 0.6, 1), seed=3)
    lap = run.transcript.sealed
    assert lap.sender[0] == lap.receiver[-1] == run.transcript.sender[0]
    assert set(lap.sender.tolist()) == set(range(8))


def test_observers_see_the_lap_as_any_message():
    transcript = quick(SEALED, PROBLEM, 40).transcript
    assert len(transcript.seen_by(Eavesdropper()).messages.sealed) == 8
    assert len(transcript.seen_by(Colluders(3)).messages.sealed) == 8
    seen = transcript.seen_by(Neighbours(3)).messages.sealed
    np.testing.assert_array_equal(seen.sender, [2, 3])
    np.testing.assert_array_equal(transcript.seen_by(Link(3, 4)).messages.sealed.words, transcript.sealed.words[[3]])


def test_the_first_agent_received_the_total_and_who_missed_it_does_not_make_it_up():
    transcript = quick(SEALED, PROBLEM, 40).transcript
    visits = transcript.seen_by(Neighbours(0)).visits_of(0)
    np.testing.assert_array_equal(visits.received[0], transcript.sealed.first_token())
    assert len(visits) == 5
    assert len(transcript.seen_by(Link(0, 1)).visits_of(0)) == 0


def test_H_still_leaks_and_g_does_not():
    """What the docstring says: a capable observer finds H, and of g nothing but what it guessed."""
    problem = rl.paper_least_squares(20, seed=2)
    run = quick(SEALED, problem, 20 * 30)
    public = Public(SEALED, 20, 2)
    for agent in (0, 7, 19):
        found = parametric_step_size(run.transcript.seen_by(Neighbours(agent)).visits_of(agent), public)
        hessian, slope = problem.hessian(agent, np.zeros(2)), slopes(problem)[agent]
        assert np.linalg.norm(found.H - hessian) < 1e-6 * np.linalg.norm(hessian)
        assert np.linalg.norm(found.g - slope) > 0.9 * np.linalg.norm(slope)
        assert not found.converged


def test_a_zero_sum_start_hides_g_and_y_by_a_hundred_times_their_size():
    algorithm = rl.IADMM(start=rl.ZeroSumStart())
    problem = rl.paper_least_squares(100, seed=2)
    run = quick(algorithm, problem, 100 * 30)
    errors = []
    for agent in range(0, 100, 10):
        found = parametric_step_size(
            run.transcript.seen_by(Neighbours(agent)).visits_of(agent), Public(algorithm, 100, 2)
        )
        hessian, slope, y = problem.hessian(agent, np.zeros(2)), slopes(problem)[agent], run.y[agent]
        assert np.linalg.norm(found.H - hessian) < 1e-6 * np.linalg.norm(hessian)  # what it does not hide
        errors.append(
            (
                np.linalg.norm(found.g - slope) / np.linalg.norm(slope),
                np.linalg.norm(found.y[-1] - y) / np.linalg.norm(y),
            )
        )
    assert (np.median(errors, axis=0) > 100.0).all()


def test_it_comes_back_from_its_files(tmp_path):
    run = quick(rl.IADMM(start=rl.SealedStart(), defence=rl.MaskedLinks()), PROBLEM, 40)
    again = [
        load_transcript(save_transcript(run.transcript, tmp_path / "t.npz")),
        rl.load_run(run.save(tmp_path / "r.npz")).transcript,
    ]
    for transcript in again:
        for name in ("hop", "sender", "receiver", "relayed", "tokens", "wire", "wire_bits"):
            np.testing.assert_array_equal(getattr(transcript, name), getattr(run.transcript, name))
        for name in ("place", "sender", "receiver", "words", "wire", "bits", "length", "agents"):
            np.testing.assert_array_equal(getattr(transcript.sealed, name), getattr(run.transcript.sealed, name))
    assert rl.load_run(tmp_path / "r.npz").algorithm == run.algorithm
    with pytest.raises(ValueError, match=r"save it as \.npz"):
        save_transcript(run.transcript, tmp_path / "t.csv")
