"""Who sees what, and the visits that follow from it."""

from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.transcripts import Colluders, Eavesdropper, Link, Neighbours, load_transcript, save_transcript
from tests.privacy.support import observed


def test_the_eavesdropper_and_the_colluders_see_all_that_crosses_a_link():
    transcript = observed(rl.IADMM(), rl.paper_least_squares(6), 20).transcript
    for observer in (Eavesdropper(), Colluders(2)):
        np.testing.assert_array_equal(transcript.seen_by(observer).messages.tokens, transcript.tokens)


def test_neighbours_see_what_their_neighbour_sends_and_receives():
    transcript = observed(rl.IADMM(), rl.paper_least_squares(6), 20).transcript
    seen = transcript.seen_by(Neighbours(2)).messages
    assert len(seen) == 7
    assert ((seen.sender == 2) | (seen.receiver == 2)).all()
    tap = transcript.seen_by(Link(2, 3))
    assert (tap.messages.sender == 2).all()
    assert len(tap) == 3
    assert len(tap.visits_of(2)) == 0  # what it received was not seen
    assert not tap.visits_of(2).complete


@pytest.mark.parametrize("agent", [0, 3, 5])
def test_the_neighbours_know_of_the_visits_as_much_as_the_eavesdropper(agent):
    truth = observed(rl.PIADMM1(), rl.paper_least_squares(6), 33)
    views = [truth.visits(agent, observer) for observer in (Eavesdropper(), Neighbours(agent), Colluders(agent))]
    for view in views[1:]:
        np.testing.assert_array_equal(view.hop, views[0].hop)
        np.testing.assert_array_equal(view.received, views[0].received)
        np.testing.assert_array_equal(view.sent, views[0].sent)
        assert view.complete


def test_others_than_their_neighbour_they_see_in_part_only():
    seen = observed(rl.PIADMM1(), rl.paper_least_squares(6), 33).transcript.seen_by(Neighbours(2))
    assert len(seen.visits_of(3)) == 0
    assert not seen.visits_of(3).complete


def test_the_first_agent_received_the_public_start_and_an_unfinished_visit_is_left_out():
    truth = observed(rl.IADMM(), rl.paper_least_squares(6), 19)
    first, second = truth.visits(0), truth.visits(1)
    np.testing.assert_array_equal(first.hop, [0, 6, 12, 18])
    np.testing.assert_array_equal(first.received[0], 0.0)
    np.testing.assert_array_equal(first.received[1:], truth.transcript.tokens[[5, 11, 17]])
    np.testing.assert_array_equal(first.sent, truth.transcript.tokens[[0, 6, 12, 18]])
    np.testing.assert_array_equal(second.hop, [1, 7, 13])  # the token of hop 18 has just arrived
    assert (first.updates == 1).all()


@pytest.mark.parametrize(
    ("algorithm", "network"),
    [
        (rl.IADMM(), rl.star(5)),
        (rl.WADMM(), rl.random_network(5, 0.8)),
        (rl.WADMM(walk=rl.MetropolisWalk(self_loops_free=True)), rl.path(5)),
        (rl.PWADMM(walks=2), rl.random_network(5, 0.8)),
        (rl.IPWADMM(walks=3), rl.random_network(5, 0.8)),
    ],
)
def test_the_increments_add_up_to_the_share_of_the_agent(algorithm, network):
    """Σd_r = x_i − y_i/ρ from a start at zero, with relays, self-loops and several tokens."""
    truth = observed(algorithm, rl.paper_least_squares(5), 60, network=network)
    method = algorithm.parts()
    for agent in range(5):
        visits = truth.visits(agent)
        hop = 0 if not len(visits) else int(visits.hop[-1]) + 1
        share = truth.x[hop, agent] - truth.y[hop, agent] / method.rho
        np.testing.assert_allclose(visits.increments(5, method.tokens).sum(axis=0), share, atol=1e-12)


def test_what_an_agent_keeps_is_one_visit_of_several_updates():
    truth = observed(rl.WADMM(), rl.paper_least_squares(5), 200, network=rl.path(5))
    transcript = truth.transcript
    assert (transcript.sender == transcript.receiver).any()
    for agent in range(5):
        visits = truth.visits(agent)
        last = int(visits.hop[-1])
        assert visits.updates.sum() == ((transcript.sender == agent) & (transcript.hop <= last)).sum()


def test_a_frozen_lap_is_no_visit():
    problem = rl.paper_least_squares(5)
    run = rl.simulate(rl.IADMM(), problem, rl.ring(5), hops=5000, content=1e-6, transcript=True, progress=False)
    assert run.stop == "content"
    assert run.transcript is not None
    assert run.transcript.relayed.any()
    for agent in range(5):
        visits = run.transcript.seen_by(Eavesdropper()).visits_of(agent)
        assert len(visits) == run.visits[agent]
        assert (visits.updates == 1).all()


@pytest.mark.parametrize("name", ["messages.npz", "messages.csv", "deeper/messages.CSV"])
def test_a_transcript_comes_back_from_its_file_bit_for_bit(tmp_path, name):
    transcript = observed(rl.PIADMM1(), rl.paper_least_squares(6), 33, network=rl.star(6)).transcript
    again = load_transcript(save_transcript(transcript, tmp_path / name))
    for column in ("hop", "sender", "receiver", "relayed", "tokens"):
        expected, found = getattr(transcript, column), getattr(again, column)
        assert expected.dtype == found.dtype
        np.testing.assert_array_equal(expected, found)


def test_a_file_that_another_program_wrote(tmp_path):
    file = tmp_path / "tap.csv"
    file.write_text("sender, receiver, hop, z1, z0\n0,1,0,2.5,1\n1,2,1,-1e-3,4\n")
    transcript = load_transcript(file)
    np.testing.assert_array_equal(transcript.tokens, [[1.0, 2.5], [4.0, -1e-3]])
    assert not transcript.relayed.any()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no column 'hop'"),
        ("hop,sender,receiver\n0,0,1\n", "no column 'z0'"),
        ("hop,sender,receiver,z0,z2\n0,0,1,1,1\n", "column 'z2'"),
        ("hop,sender,receiver,z0,z0\n0,0,1,1,1\n", "there twice"),
        ("hop,sender,receiver,z0,colour\n0,0,1,1,red\n", "column 'colour'"),
        ("hop,sender,receiver,z0\n0,0,1\n", "Row 2 .* has 3 values"),
        ("hop,sender,receiver,z0\n0,0,1,half\n", "Row 2 .* 'half' in the column 'z0': write a number"),
        ("hop,sender,receiver,z0\n0,0.5,1,2\n", "'0.5' in the column 'sender': write a whole number"),
        ("hop,sender,receiver,relayed,z0\n0,0,1,perhaps,2\n", "write 0 or 1"),
        ("hop,sender,receiver,z0\n", "no messages"),
        ("hop,sender,receiver,z0\n0,0,-1,1\n", "Message 1 .* receiver -1"),
        ("hop,sender,receiver,z0\n3,0,1,1\n2,1,2,1\n", "in the order in which they were sent"),
        ("hop,sender,receiver,z0\n0,0,1,nan\n", "not finite"),
        ("hop,sender,receiver,z0\n0,0,1,1\n1000000000,1,2,1\n", "Message 2 .* comes 1,000,000,000 hops after"),
    ],
)
def test_bad_text_is_refused_in_a_sentence(tmp_path, text, sentence):
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=sentence):
        load_transcript(file)


def test_other_bad_files_are_refused_in_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="There is no file"):
        load_transcript(tmp_path / "nothing.npz")
    (tmp_path / "noise.npz").write_bytes(b"no zip at all")
    np.savez(tmp_path / "pickled.npz", transcript_format=np.array(1), hop=np.array([{}], object))
    np.save(tmp_path / "array.npy", np.zeros(3))
    for name in ("noise.npz", "pickled.npz", "array.npy"):
        with pytest.raises(ValueError, match=r"is not a saved transcript, or it is damaged: save") as refusal:
            load_transcript(tmp_path / name)
        assert "pickle" not in str(refusal.value).replace("pickled.npz", "")
    np.savez(tmp_path / "later.npz", transcript_format=np.array(7))
    with pytest.raises(ValueError, match="has the format 7"):
        load_transcript(tmp_path / "later.npz")
    np.savez(tmp_path / "part.npz", transcript_format=np.array(2), hop=np.array([0]))
    with pytest.raises(ValueError, match="no 'sender'"):
        load_transcript(tmp_path / "part.npz")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00hop")
    with pytest.raises(ValueError, match="not a text file"):
        load_transcript(tmp_path / "bytes.csv")


def test_a_run_from_which_a_million_hops_are_missing_is_refused(tmp_path):
    run = rl.simulate(
        rl.IADMM(), rl.paper_least_squares(6), rl.ring(6), 33, transcript=True, engine="python", progress=False
    )
    content = dict(np.load(run.save(tmp_path / "run.npz"), allow_pickle=False))
    content["transcript_hop"][-1] = 10**9
    np.savez(tmp_path / "late.npz", **content)
    with pytest.raises(ValueError, match=r"late.npz comes 999,999,969 hops after"):
        rl.load_run(tmp_path / "late.npz")
