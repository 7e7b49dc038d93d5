"""The meter must not starve what it watches: a process of its own, of the lowest priority, on a budget, and gone with its agent."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.site import meter, metering
from roundelay.agents.site.meter_process import Found, MeterProcess, attack_here
from roundelay.agents.site.own_attacks import TokenEvidence
from roundelay.agents.site.taking_part import PrivacyLimit, Site, SiteOptions, read_privacy
from tests.adversary.endless import FIRST, EndlessEvidence, FailingEvidence, LyingEvidence, endless
from tests.adversary.token_rings import TokenRing
from tests.agents.processes import ProcessRing, make_ring, own_functions, wait_until
from tests.agents.world import ring_plan

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs the /proc of Linux to look at other processes")
ALGORITHM = rl.PIADMM1(rho=30.0, start=rl.SealedStart())
PROBLEM = rl.paper_least_squares(4, 8, 2, seed=5)


def evidence_of(kind: type[TokenEvidence] = TokenEvidence) -> Any:
    """What a member of a small ring would have its attacks look at."""
    ring = TokenRing(ring_plan(list("abcd"), ALGORITHM, 2, Stopping(None, 80)), own_functions(PROBLEM))
    ring.run()
    seen: list[Any] = []

    def look(evidence: Any) -> Found:
        seen.append(kind(evidence.visits, evidence.public, evidence.truth))
        return Found(())

    meter.measure(ring.members[1], ring.rows[1], ring.secrets[1], look)
    return seen[0]


@pytest.fixture
def process() -> Any:
    made = MeterProcess()
    made.start()
    yield made
    made.close()


def test_it_finds_what_is_found_here_again_and_again(process: MeterProcess) -> None:
    evidence = evidence_of()
    here = attack_here(evidence)
    assert len(here.readings) > 5
    for _ in range(2):
        found = process.attack(evidence)
        assert not found.trouble
        assert [(one.quantity, one.attack) for one in found.readings] == [
            (one.quantity, one.attack) for one in here.readings
        ]
        for one, other in zip(found.readings, here.readings, strict=True):
            assert one.error == pytest.approx(other.error, rel=1e-3, abs=1e-9)


def test_where_its_seconds_are_used_up_it_ends_and_says_so() -> None:
    process = MeterProcess(seconds=3.0)
    process.start()
    try:
        found = process.attack(evidence_of(EndlessEvidence))
        assert "has used up its 3 seconds of a processor" in found.trouble and "can't tell" in found.trouble
        assert set(found.readings) <= {FIRST}  # none, where it took all of them to begin
        assert process.attack(evidence_of()) == Found((), found.trouble)  # and never again
    finally:
        process.close()


def test_what_was_found_before_an_attack_fails_is_told_and_that_it_failed(process: MeterProcess) -> None:
    found = process.attack(evidence_of(FailingEvidence))
    assert found.readings == (FIRST,) and "failed (MemoryError)" in found.trouble
    assert not process.attack(evidence_of()).trouble


def test_what_is_no_reading_is_not_believed(process: MeterProcess) -> None:
    """An attack of somebody else's can say what it likes: to the agent it is words of a known form, or nothing."""
    found = process.attack(evidence_of(LyingEvidence))
    assert found.readings == (FIRST,) and "can't tell" in found.trouble


def test_where_it_can_not_be_started_it_can_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    process = MeterProcess()
    process.start()
    assert "can't be started (No such file or directory)" in process.attack(evidence_of()).trouble


def test_closing_it_ends_the_wait_of_whoever_waits(process: MeterProcess) -> None:
    evidence, found = evidence_of(EndlessEvidence), list[Found]()
    waiting = threading.Thread(target=lambda: found.append(process.attack(evidence)))
    waiting.start()
    process.close()
    waiting.join()
    assert found[0].trouble


# ---------------------------------------------------------------- beside a real agent


def children_of(parent: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields and int(fields[1]) == parent:
                found.append(int(entry.name))
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/…/stat behind the name; none where the process is gone."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet has."""
    return (_stat(pid) or ["Z"])[0] in "ZX"


def real_ring(folder: Path, stopping: Stopping, **more: Any) -> ProcessRing:
    options = more.pop("options", SiteOptions(meter=True))
    return make_ring(folder, own_functions(PROBLEM), ALGORITHM, stopping, seed=None, options=options, **more)


def meter_of(ring: ProcessRing, number: int) -> int:
    """The process of a site's meter, when it is there and at work."""
    found: list[int] = []

    def there() -> bool:
        found[:] = [pid for pid in children_of(ring.children[number]) if b"meter_process" in _command(pid)]
        return bool(found)

    wait_until(there, f"the meter of site {number} is there")
    return found[0]


def _command(pid: int) -> bytes:
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


@linux
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_its_agent_however_that_ends(how: signal.Signals, tmp_path: Path) -> None:
    ring = real_ring(tmp_path, Stopping(None, 10_000_000), wrap=endless)
    try:
        for number in range(4):
            ring.start(number)
        meters = [meter_of(ring, number) for number in range(4)]
        agent = ring.children[2]
        os.kill(agent, how)
        wait_until(lambda: is_gone(meters[2]), "the meter of site 2 is gone")
        assert not is_gone(meters[1])
    finally:
        ring.stop()
    for pid in meters:
        wait_until(lambda pid=pid: is_gone(pid), "all meters are gone")  # type: ignore[misc]


@linux
def test_it_has_the_lowest_priority_one_thread_of_a_library_and_no_way_out(tmp_path: Path) -> None:
    """Nothing is open in it but its pipes: no socket of the agent's, no file of the site's."""
    ring = real_ring(tmp_path, Stopping(None, 10_000_000), wrap=endless)
    try:
        for number in range(4):
            ring.start(number)
        pid = meter_of(ring, 1)
        wait_until(lambda: os.getpriority(os.PRIO_PROCESS, pid) == 19, "it has the lowest priority")
        environment = (Path("/proc") / str(pid) / "environ").read_bytes().split(b"\0")
        assert b"OPENBLAS_NUM_THREADS=1" in environment and b"OMP_NUM_THREADS=1" in environment

        def at_work() -> bool:
            return "Max cpu time" in limits() and "unlimited" not in cpu()

        def limits() -> str:
            return (Path("/proc") / str(pid) / "limits").read_text()

        def cpu() -> str:
            return next(line for line in limits().splitlines() if line.startswith("Max cpu time"))

        wait_until(at_work, "it has a budget of processor time")
        home = str(tmp_path)
        opened = [_link(path) for path in (Path("/proc") / str(pid) / "fd").iterdir()]
        assert not [one for one in opened if one.startswith(("socket:", home))], opened
        assert sum(one.startswith("pipe:") for one in opened) >= 2
    finally:
        ring.stop()


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def test_at_the_end_of_a_run_nobody_waits_for_it(tmp_path: Path) -> None:
    ring = real_ring(tmp_path, Stopping(None, 400), wrap=endless)
    ring.run()
    for number in range(4):
        assert (ring.site_folder(number) / "model.json").exists()
        status = read_privacy(ring.site_folder(number), ring.plan.run)
        assert status is not None and status.unmeasured
        assert "The run was over before the privacy meter was done" in status.sentence


def no_time(site: Site, number: int) -> None:
    """Its attacks never end, and one site's has next to no time for them."""
    endless(site, number)
    if number == 1:
        metering.MeterProcess = lambda: MeterProcess(seconds=1.0)  # type: ignore[assignment,misc]


def test_a_meter_that_could_not_measure_counts_as_past_a_limit(tmp_path: Path) -> None:
    """What is planned would pass: nothing is known to the last digit where each coordinate has a γ of its own."""
    limit, algorithm = PrivacyLimit(0.5, "stop"), rl.PIADMM1(rho=30.0, start=rl.SealedStart(), gamma_is="vector")
    ring = make_ring(
        tmp_path, own_functions(PROBLEM), algorithm, Stopping(None, 10_000_000), seed=None,
        options=SiteOptions(meter=True, privacy=limit), wrap=no_time,
    )  # fmt: skip
    try:
        for number in range(4):
            ring.start(number)
        ended: dict[int, int] = {}
        wait_until(lambda: bool(ended.update(ring.reap()) or 1 in ended), "site 1 stops")
        assert ended == {1: 1}
        visits = len([row for row in ring.visits(1) if row.sent_phase == 2])
    finally:
        ring.stop()
    said = ring.log_of(1)
    assert "has used up its 1 seconds of a processor" in said
    assert "What can't be measured counts as past the limit of 0.5, so the agent stops here" in said
    assert visits == metering.FIRST_LOOK_UNDER_A_LIMIT  # the token waited while the meter looked
