"""From packets to the transcript, for rings that were played through in memory."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import roundelay as rl
from roundelay.agents.agreement.plan import Column, RingPlan, Stopping, Task
from roundelay.agents.capture import EncryptedError, public_of, read_capture
from roundelay.agents.data.fitting import RowsFit
from roundelay.agents.data.objectives import Known, Local
from roundelay.agents.data.reading import OwnRows
from roundelay.agents.protocol.wire import Kind, pack_frame
from tests.agents.captures import same
from tests.agents.fuzzing import changed_bytes, patient
from tests.agents.packets import Way, grpc_stream, pcap, pcapng, segments
from tests.agents.played import Sent, packets_of, played
from tests.agents.processes import own_functions
from tests.agents.world import ring_plan

PROBLEM = rl.paper_least_squares(4)
NAMES = ["a", "b", "c", "d"]
THIRTY = Stopping(None, 30)


@cache
def ring(algorithm: object = rl.PIADMM1(), stopping: Stopping = THIRTY) -> tuple[RingPlan, list[Sent]]:
    plan = ring_plan(NAMES, algorithm, PROBLEM.dim, stopping)
    return plan, played(plan, [Known(function) for function in own_functions(PROBLEM)])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("captures") / "ring.pcap"


def captured(path: Path, packets: list[bytes], plan: RingPlan):
    path.write_bytes(pcap(packets, 101))
    return read_capture(path, plan)


@pytest.mark.parametrize(
    "algorithm",
    [
        rl.PIADMM1(),
        rl.PIADMM1(start=rl.SealedStart()),
        rl.IADMM(),
        rl.PIADMM2(),
        rl.IADMM(start=rl.ZeroSumStart()),
    ],
    ids=repr,
)
def test_the_transcript_is_the_simulator_s(path: Path, algorithm: object) -> None:
    plan, sent = ring(algorithm)
    run = rl.simulate(algorithm, PROBLEM, rl.ring(4), 30, seed=1, transcript=True, progress=False, engine="python")
    found = captured(path, packets_of(sent), plan)
    same(found.transcript, run.transcript)
    assert (found.frames, found.missing, found.skipped) == (len(sent), (), ())


@pytest.mark.parametrize(
    "algorithm", [rl.SealedLaps(rl.NormalEquations()), rl.SealedLaps(rl.ConjugateGradients(), wide=True)], ids=repr
)
def test_the_words_of_sealed_laps(path: Path, algorithm: rl.SealedLaps) -> None:
    """The same questions and totals as the simulator's; the masks are of other turns."""
    plan, sent = ring(algorithm, Stopping(1e-12))
    found = captured(path, packets_of(sent), plan)
    run = rl.simulate(algorithm, PROBLEM, rl.ring(4), seed=1, transcript=True, progress=False)
    assert run.transcript is not None and len(found.transcript.laps) == len(run.transcript.laps)
    for lap, expected in zip(found.transcript.laps, run.transcript.laps, strict=True):
        assert lap.kind == expected.kind
        np.testing.assert_allclose(lap.told, expected.told, rtol=1e-9)
        total = lap.total()
        assert total is not None
        np.testing.assert_allclose(total, expected.total(), rtol=1e-9, atol=1e-9)
        for name in ("place", "sender", "receiver", "length", "agents", "wide", "bits"):
            np.testing.assert_array_equal(getattr(lap, name), getattr(expected, name))
    audit = rl.audit_transcript(found.transcript, public_of(plan), "eavesdropper", 2)
    assert "Proven: whatever the eavesdropper may compute" in str(audit)


def test_the_lap_of_a_frozen_token_too(path: Path) -> None:
    plan, sent = ring(rl.PIADMM1(), Stopping(1e-6))
    run = rl.simulate(
        rl.PIADMM1(), PROBLEM, rl.ring(4), 10**5, seed=1, transcript=True, progress=False, content=1e-6, engine="python"
    )
    assert run.transcript is not None and run.transcript.relayed.sum() == 4
    same(captured(path, packets_of(sent), plan).transcript, run.transcript)


def test_a_lap_that_meets_members_twice(path: Path) -> None:
    problem, network = rl.paper_least_squares(3), rl.path(3)
    order = tuple(int(agent) for agent in network.tour().order)
    plan = replace(
        ring_plan(NAMES[:3], rl.PIADMM1(), 2, Stopping(None, 22)), order=order, links=((0, 1), (1, 2))
    )  # fmt: skip
    sent = played(plan, [Known(function) for function in own_functions(problem)])
    run = rl.simulate(rl.PIADMM1(), problem, network, 22, seed=1, transcript=True, progress=False, engine="python")
    assert run.transcript is not None and run.transcript.relayed.any()
    same(captured(path, packets_of(sent), plan).transcript, run.transcript)


@pytest.mark.parametrize("algorithm", [rl.WADMM(), rl.MCSAG(gamma=0.01)], ids=repr)
def test_a_random_walk_tells_its_way_by_itself(path: Path, algorithm: object) -> None:
    """But for the last hop: what ends the run goes round the lap, whoever would have been next."""
    network = rl.complete(4)
    links = tuple((int(a), int(b)) for a, b in network.edges)
    plan = replace(ring_plan(NAMES, algorithm, 2, Stopping(None, 60)), links=links)
    sent = played(plan, [Known(function) for function in own_functions(PROBLEM)])
    found = captured(path, packets_of(sent), plan).transcript
    whole = rl.simulate(algorithm, PROBLEM, network, 60, seed=1, transcript=True, progress=False, engine="python")
    run = whole.transcript
    assert run is not None
    run = run.part(run.sender != run.receiver)
    rows = np.arange(len(found)) < len(found) - 1
    same(found.part(rows), run.part(np.arange(len(run)) < rows.sum()))
    assert rows.sum() >= 30


def test_a_ring_that_sums_statistics_first(path: Path) -> None:
    rng = np.random.default_rng(0)
    task = Task("least_squares", (Column("age"), Column("length")), Column("outcome"))
    plan = replace(ring_plan(NAMES, rl.PIADMM1(start=rl.SealedStart()), 2, Stopping(None, 20)), task=task)
    parts: list[Local] = [
        RowsFit(task, OwnRows(rng.normal(size=(9, 2)), rng.normal(size=9), dropped=0)) for _ in NAMES
    ]  # fmt: skip
    sent = played(plan, parts)
    found = captured(path, packets_of(sent), plan)
    assert found.skipped == () and len(found.transcript) == 20
    assert found.transcript.sealed is not None and found.transcript.sealed.place.tolist() == [0, 1, 2, 3]
    assert found.transcript.hop.tolist() == list(range(20))
    assert found.transcript.sender.tolist() == [0, 1, 2, 3] * 5


@patient
@given(st.integers(0, 2**32), st.integers(40, 3000), st.sampled_from([pcap, pcapng]))
def test_repeated_and_shuffled_packets_change_nothing(path: Path, seed: int, most: int, write: object) -> None:
    plan, sent = ring(rl.PIADMM1(start=rl.SealedStart()))
    again = [*sent, *sent[3:9]]  # batons that were sent again
    packets = packets_of(again, most)
    order = random.Random(seed)
    packets += order.choices(packets, k=20)
    order.shuffle(packets)
    path.write_bytes(write(packets, 101))  # type: ignore[operator]
    found = read_capture(path, plan)
    assert found.frames == len(again)
    path.write_bytes(pcap(packets_of(sent), 101))
    same(found.transcript, read_capture(path, plan).transcript)


def test_what_is_missing_is_said_and_not_audited(path: Path) -> None:
    plan, sent = ring()
    part = [one for k, one in enumerate(sent, start=1) if k not in (10, 11)]
    found = captured(path, packets_of(part), plan)
    assert found.missing == ((10, 11),)
    assert found.skipped == ("2 hand-overs are not in the capture, first those from 10 to 11.",)
    with pytest.raises(ValueError, match="Hand-overs 10 to 11 are not in the capture"):
        found.check_whole()
    for agent in (1, 2, 3):  # 1 hands 10 to 2, and 2 hands 11 to 3
        with pytest.raises(ValueError, match="need all of them"):
            found.check_whole(agent)
    found.check_whole(0)
    late = captured(path, packets_of(sent[6:]), plan)
    assert late.missing == ((1, 6),)


def test_lost_and_snapped_packets_are_said(path: Path) -> None:
    plan, sent = ring()
    packets = packets_of(sent, most=200)
    (found,) = captured(path, packets[:9] + packets[10:], plan).skipped[:1]
    assert found == "200 bytes are missing in the capture: packets were lost or cut short."
    path.write_bytes(pcap(packets, 101, snap=150))
    with pytest.raises(ValueError, match="bytes in it are missing: packets were lost or cut short"):
        read_capture(path, plan)
    path.write_bytes(pcap(packets, 101, snap=220))
    snapped = read_capture(path, plan)
    assert "bytes are missing" in snapped.skipped[0] and len(snapped.transcript) < len(sent)


def test_forged_and_foreign_messages_are_left_out(path: Path) -> None:
    plan, sent = ring()
    other = bytearray(sent[4].frame)
    run, rest = plan.run_bytes, bytes(other[-24:])
    strange = [
        pack_frame(Kind.BATON, bytes(16), 0, 3, b"x"),
        pack_frame(Kind.BATON, run, 1, 3, b"x"),
        pack_frame(Kind.BATON, run, 0, 10**9, b"x"),
        pack_frame(Kind.BATON, run, 0, 5, rest),
        pack_frame(Kind.BATON, run, 0, 77, bytes([2]) + bytes(15) + b"\xff" * 8 + bytes(24)),
        b"no frame at all",
    ]
    packets = packets_of(sent) + segments(Way(1, 2), grpc_stream(strange))
    found = captured(path, packets, plan)
    assert found.missing == () and len(found.transcript) == 30
    said = " ".join(found.skipped)
    for words in ("another run", "epoch 1", "its head alone", "two different batons with the counter 5", "none of this epoch"):  # fmt: skip
        assert words in said, words


def test_where_nothing_is_found_it_is_said_why(path: Path) -> None:
    plan, sent = ring()
    with pytest.raises(ValueError, match=f"no hand-over of the run {plan.run}, epoch 0: check the ring file"):
        captured(path, segments(Way(1, 2), b"GET / HTTP/1.1"), plan)
    with pytest.raises(ValueError, match="belongs to another run"):
        captured(path, packets_of(sent), replace(plan, run="f" * 32))
    for record in (b"\x16\x03\x01\x02\0", b"\x17\x03\x03\x02\0"):
        with pytest.raises(EncryptedError, match="1 of the 2 directions of connections in it are encrypted by TLS"):
            captured(path, segments(Way(1, 2), record + bytes(500)) + segments(Way(2, 1), b"?"), plan)


@pytest.mark.parametrize("change", [{"epoch": 1}, {"warm": True}])
def test_only_a_start_that_is_public_is_audited(change: dict[str, object]) -> None:
    plan, _ = ring()
    assert public_of(plan) == rl.Public(plan.algorithm, 4, 2)
    with pytest.raises(ValueError, match="begin from what they had, which is not public"):
        public_of(replace(plan, **change))  # type: ignore[arg-type]


@patient
@given(st.data())
def test_damage_is_found_or_harmless(path: Path, data: st.DataObject) -> None:
    plan, sent = ring(rl.PIADMM1(start=rl.SealedStart()))
    path.write_bytes(data.draw(changed_bytes(pcap(packets_of(sent), 101))))
    truth = {one.frame for one in sent}
    try:
        found = read_capture(path, plan)
    except ValueError as error:
        assert str(error).endswith(".")
        return
    assert found.frames <= len(truth)
