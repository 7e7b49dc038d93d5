"""Masked links: uniform to a tap, plain to the neighbours, and exact to the grid."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.masks import FixedPoint, MaskedLink, SeededPairs
from roundelay.privacy import Public
from roundelay.privacy.attacks import recursion
from roundelay.transcripts import Colluders, Eavesdropper, Link, Neighbours
from tests.defences.support import looks_uniform, quick

PROBLEM = rl.paper_least_squares(agents=8, samples=6, seed=1)
MASKED = rl.IADMM(defence=rl.MaskedLinks())


def test_it_converges_to_the_grid_and_keeps_the_balance_exactly():
    run = quick(MASKED, PROBLEM, 8 * 400, monitors=[rl.Invariant()], record=1)
    assert run.history["token_error"].iloc[-1] < 1e-9
    assert run.history["invariant"].max() < 1e-14
    np.testing.assert_array_equal(FixedPoint(40).rounded(run.transcript.tokens), run.transcript.tokens)


def test_a_tap_sees_uniform_words_and_the_neighbours_see_the_token():
    transcript = quick(MASKED, PROBLEM, 8 * 200).transcript
    outside = transcript.seen_by(Eavesdropper()).messages
    assert looks_uniform(outside.wire)
    np.testing.assert_array_equal(outside.tokens, FixedPoint(40).decode(outside.wire))
    assert np.abs(outside.tokens).max() > 1e5
    tap = transcript.seen_by(Link(2, 3)).messages
    assert looks_uniform(tap.wire)
    for observer in (Neighbours(3), Colluders(3)):
        visits = transcript.seen_by(observer).visits_of(3)
        np.testing.assert_array_equal(visits.sent, transcript.tokens[3::8])


def test_the_pads_are_those_of_the_pairs_and_never_used_twice():
    transcript = quick(rl.IADMM(start=rl.SealedStart(), defence=rl.MaskedLinks()), PROBLEM, 60).transcript
    for row in (0, 7, 59):
        link = MaskedLink(SeededPairs(0), int(transcript.sender[row]), int(transcript.receiver[row]), FixedPoint(40))
        np.testing.assert_array_equal(link.open(transcript.wire[row], 8 + row), transcript.tokens[row])
    lap = transcript.sealed
    assert (lap.wire != lap.words).all()
    np.testing.assert_array_equal(transcript.seen_by(Eavesdropper()).messages.sealed.words, lap.wire)
    np.testing.assert_array_equal(transcript.seen_by(Colluders(1)).messages.sealed.words, lap.words)
    frozen = quick(MASKED, PROBLEM, 20_000, content=1e-6).transcript
    assert frozen.relayed.any()
    pads = frozen.wire - FixedPoint(40).encode(frozen.tokens)
    assert len(np.unique(pads)) == pads.size


def test_the_attack_that_breaks_I_ADMM_works_inside_and_fails_outside():
    run = quick(MASKED, PROBLEM, 160)
    public = Public(MASKED, 8, 2)
    inside, outside = (
        recursion(run.transcript.seen_by(observer).visits_of(3), public) for observer in (Neighbours(3), Eavesdropper())
    )
    assert np.linalg.norm(inside.x[-1] - run.x[3]) < 1e-9
    assert np.linalg.norm(outside.x[-1] - run.x[3]) > 1e3


def test_coarse_grids_end_at_a_floor_and_the_stopping_rule_says_so():
    coarse = rl.IADMM(defence=rl.MaskedLinks(bits=12))
    assert 1e-7 < quick(coarse, PROBLEM, 8 * 400).history["token_error"].iloc[-1] < 1e-1
    with pytest.raises(ValueError, match="the grid on which its tokens travel"):
        quick(coarse, PROBLEM, 100, content=1e-6)
    run = quick(MASKED, PROBLEM, 20_000, content=1e-6)
    assert run.stop == "content"
    assert np.linalg.norm(PROBLEM.gradients(np.tile(run.token, (8, 1))).mean(axis=0)) <= 1e-6


def test_what_words_cannot_do_is_refused():
    with pytest.raises(ValueError, match="can't add noise"):
        quick(MASKED, PROBLEM, 10, conditions=rl.NetworkConditions(noise=0.1))
    with pytest.raises(ValueError, match="bits is 70"):
        rl.MaskedLinks(bits=70)
    with pytest.raises(ValueError, match=r"The noise is 1\.0"):
        rl.MaskedLinks(noise=1.0)
    with pytest.raises(ValueError, match="largest coordinate of a token"):
        quick(rl.IADMM(start=rl.ZeroSumStart(scale=1e9), defence=rl.MaskedLinks(bits=40)), PROBLEM, 20)


def test_loss_and_resending_change_nothing_but_the_cost():
    conditions = rl.NetworkConditions(loss=rl.GilbertElliott(0.2, 0.5), resend=True)
    lossy, plain = quick(MASKED, PROBLEM, 100, conditions=conditions), quick(MASKED, PROBLEM, 100)
    np.testing.assert_array_equal(lossy.transcript.wire, plain.transcript.wire)
    assert lossy.units > plain.units
