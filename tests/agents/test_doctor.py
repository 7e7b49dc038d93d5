"""`roundelay doctor`: each trouble is made for real, found, and told with what to do; and nothing is changed."""

from __future__ import annotations

import importlib.metadata
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roundelay.agents.agreement.identity import Identity, _identity_between, load_identity, make_identity
from roundelay.agents.site import examination
from roundelay.agents.site.examination import Finding, examine
from roundelay.agents.site.rehearsal import Rehearsal, Seat
from roundelay.cli.app import app
from tests.agents.processes import wait_until
from tests.agents.small_ring import NAMES, roundelay, small_ring


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[Rehearsal]:
    with small_ring(tmp_path) as made:
        yield made


def seat_at(ring: Rehearsal, number: int) -> Seat:
    """The site with this number in the plan: each dials those above it."""
    return next(seat for seat in ring.seats if seat.name == ring.plan.members[number].name)


def to_do(folder: Path, about: str) -> list[Finding]:
    return [one for one in examine(folder) if one.remedy and one.about == about]


def address_of(ring: Rehearsal, seat: Seat) -> tuple[str, int]:
    host, _, port = ring.plan.members[ring.plan.number_of(seat.name)].address.rpartition(":")
    return host, int(port)


def test_a_site_in_order_among_agents_that_run(ring: Rehearsal) -> None:
    first, *others = (seat_at(ring, number) for number in range(3))
    for seat in others:
        ring.start(seat)
    wait_until(lambda: not to_do(first.folder, "neighbours"), "both neighbours answer the first site")
    before = {path: (path.stat().st_mtime_ns, path.stat().st_mode) for path in first.folder.rglob("*")}
    findings = list(examine(first.folder))
    assert {one.about for one in findings} == {
        "permissions", "clock", "certificates", "disk", "versions", "ports", "neighbours",
    }  # fmt: skip
    assert before == {path: (path.stat().st_mtime_ns, path.stat().st_mode) for path in first.folder.rglob("*")}
    assert not [one for one in findings if one.remedy and one.about not in ("disk", "versions")]
    for seat in others:
        assert any(one.sentence.startswith(f"{seat.name} answers at ") for one in findings)
        assert ring.processes[seat.name].poll() is None  # nor were they disturbed
    said = CliRunner().invoke(app, ["doctor", "--folder", str(first.folder), "--json"])
    told = json.loads(said.stdout)["findings"]
    assert [one["about"] for one in told] == [one.about for one in findings]
    assert said.exit_code == int(any(one["remedy"] for one in told))
    # The other end of it: an agent that runs is found by its port.
    assert any(" answers." in one.sentence for one in examine(others[-1].folder) if one.about == "ports")


def test_neighbours_that_are_down_or_somebody_else(ring: Rehearsal) -> None:
    first, last = seat_at(ring, 0), seat_at(ring, 2)
    found = to_do(first.folder, "neighbours")
    assert len(found) == 2 and all(
        "does not answer at" in one.sentence and "Ask its operator" in one.remedy for one in found
    )
    with socket.create_server(address_of(ring, last)):  # it takes connections, and has no certificate
        found = to_do(first.folder, "neighbours")
        assert any(f"is not {last.name} by its certificate" in one.sentence for one in found)
    said = roundelay("doctor", "--folder", str(first.folder))
    assert said.returncode == 1 and "to do  neighbours:" in said.stdout and "→ Ask its operator" in said.stdout


def test_a_neighbour_that_does_not_know_this_site(ring: Rehearsal) -> None:
    """The other way round: it is who it should be, and refuses the certificate that it is shown."""
    first, last = seat_at(ring, 0), seat_at(ring, 2)
    ring.start(last)

    def answers() -> bool:
        return not [one for one in to_do(first.folder, "neighbours") if last.name in one.sentence]

    wait_until(answers, f"{last.name} answers the first site")
    stranger = make_identity(first.name)
    (first.folder / "key.pem").write_bytes(stranger.key)
    (first.folder / "certificate.pem").write_text(stranger.certificate)
    found = [one for one in to_do(first.folder, "neighbours") if last.name in one.sentence]
    assert len(found) == 1 and "does not know this site's" in found[0].sentence


def test_sites_that_are_met_at_a_relay_or_by_a_proxy(ring: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor goes the ways of the agent: it says nothing of a port where there is none, and dials nobody straight past the proxy."""
    first, last = seat_at(ring, 0), seat_at(ring, 2)

    def last_is_at(address: str) -> None:
        members = [*ring.plan.members[:2], replace(ring.plan.members[2], address=address)]
        monkeypatch.setattr(examination, "latest_plan", lambda folder: replace(ring.plan, members=tuple(members)))

    def said_of_it() -> list[Finding]:
        of_first = [
            one
            for one in examine(first.folder)
            if one.about == "neighbours" and one.sentence.startswith(("The", last.name))
        ]
        return of_first + [one for one in examine(last.folder) if one.about == "ports"]

    with socket.create_server(("127.0.0.1", 0)) as relay:
        address = f"127.0.0.1:{relay.getsockname()[1]}"
        last_is_at(f"relay://{address}")
        found = said_of_it()
        assert len(found) == 2 and not any(one.remedy for one in found)
        assert all(f"is met at the relay {address}, which answers" in one.sentence for one in found)
    found = said_of_it()
    assert len(found) == 2
    assert all(
        f"The relay at {address} can't be reached" in one.sentence and "HTTPS_PROXY" in one.remedy for one in found
    )
    last_is_at(f"relay://{'a' * 64}.example:443")  # no name has a part that is so long
    assert len(said_of_it()) == 2
    last_is_at(f"{'a' * 64}.example:443")
    assert "does not answer" in said_of_it()[0].sentence
    monkeypatch.setenv("HTTPS_PROXY", f"http://{address}")
    assert f"The proxy {address} can't be reached" in to_do(first.folder, "neighbours")[0].sentence


def test_a_file_that_goes_while_it_is_looked_at(ring: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that runs puts one file in the place of another every two seconds."""
    beside, is_file = ring.seats[0].folder / ".whereabouts.json", Path.is_file

    def gone(path: Path) -> bool:
        there = is_file(path)
        if path == beside:
            beside.unlink()
        return there

    monkeypatch.setattr(Path, "is_file", gone)
    beside.touch()
    assert not to_do(ring.seats[0].folder, "clock")


def test_a_port_that_is_taken_and_an_address_elsewhere(ring: Rehearsal) -> None:
    last = seat_at(ring, 2)
    assert not to_do(last.folder, "ports")
    with socket.create_server(address_of(ring, last)):
        (found,) = to_do(last.folder, "ports")
        assert "can't be listened on" in found.sentence and "Free the port" in found.remedy
    said = CliRunner().invoke(app, ["doctor", "--folder", str(last.folder), "--listen", "192.0.2.1:7443"])
    assert said.exit_code == 1 and "Start the agent with --listen and an address of this machine" in said.stdout


def test_open_folders_and_keys_are_named_everywhere(ring: Rehearsal) -> None:
    oslo = ring.seats[0]
    assert not to_do(oslo.folder, "permissions")
    oslo.folder.chmod(0o755)
    (oslo.folder / "key.pem").chmod(0o644)
    folder, key = to_do(oslo.folder, "permissions")
    assert folder.remedy == f"Close it by chmod 700 {oslo.folder}"
    assert key.remedy == f"Close it by chmod 600 {oslo.folder / 'key.pem'}"
    said = CliRunner().invoke(app, ["ring", "accept", str(ring.ring), "--folder", str(oslo.folder), "--yes"])
    assert said.exit_code == 0 and folder.remedy in said.stderr and key.remedy in said.stderr
    ring.start(oslo)
    wait_until(lambda: key.remedy in (oslo.folder / "output.txt").read_text(), "the agent says it too")
    for command in (folder.remedy, key.remedy):  # what is proposed is what helps
        assert os.system(command.removeprefix("Close it by ")) == 0
    assert not to_do(oslo.folder, "permissions")


def certified(ring: Rehearsal, seat: Seat, begin: timedelta, end: timedelta) -> Identity:
    """Give a site another certificate, good between two times from now."""
    now = datetime.now(UTC)
    made = _identity_between(seat.name, now + begin, now + end)
    (seat.folder / "key.pem").write_bytes(made.key)
    (seat.folder / "certificate.pem").write_text(made.certificate)
    return made


@pytest.mark.parametrize(
    ("begin", "end", "about", "words"),
    [
        (-9, -1, "certificates", "The certificate of this site expired on"),
        (-9, 20, "certificates", "The certificate of this site is good for 19 days more."),
        (2, 900, "clock", "the certificate of this site is good from"),
    ],
)
def test_certificates_and_the_clock(ring: Rehearsal, begin: int, end: int, about: str, words: str) -> None:
    oslo = ring.seats[0]
    assert not to_do(oslo.folder, about)
    certified(ring, oslo, timedelta(days=begin), timedelta(days=end))
    (found,) = to_do(oslo.folder, about)
    assert words in found.sentence
    assert ("ring rekey" if about == "certificates" else "Set the clock") in found.remedy


def test_a_clock_that_went_back(ring: Rehearsal) -> None:
    oslo = ring.seats[0]
    later = datetime.now(UTC).timestamp() + 3600.0
    os.utime(oslo.folder / "accepted", (later, later))
    assert not to_do(oslo.folder, "clock")  # a folder's time says little
    os.utime(oslo.folder / "key.pem", (later, later))
    (found,) = to_do(oslo.folder, "clock")
    assert "key.pem was written at" in found.sentence and "NTP" in found.remedy


def test_disks_that_are_full_or_slow_and_packages_that_are_old(
    ring: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    oslo = ring.seats[0]
    monkeypatch.setattr(examination, "BYTES_FREE", 10**18)
    monkeypatch.setattr(examination, "SLOWEST_SYNC", 0.0)
    room, slow = to_do(oslo.folder, "disk")
    assert "GB free for" in room.sentence and "Make room" in room.remedy
    assert "safe on the disk after" in slow.sentence and "a local disk" in slow.remedy
    asked = ["grpcio>=999; extra == 'ring'", "nosuchpackage>=1; extra == 'ring'", "ortools>=999; extra == 'exact'"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: asked)
    old, missing = to_do(oslo.folder, "versions")
    assert f"grpcio is {importlib.metadata.version('grpcio')}, and this release asks for >=999" in old.sentence
    assert "nosuchpackage is not installed" in missing.sentence and "requirements/ring.lock" in missing.remedy


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["doctor", "--folder", str(tmp_path)])
    assert said.exit_code == 2 and "has no certificate.pem" in said.stderr
    made = CliRunner().invoke(app, ["ring", "init", "--folder", str(tmp_path / "x"), "--name", NAMES[0]])
    assert made.exit_code == 0 and load_identity(tmp_path / "x").name == NAMES[0]
    assert any("No ring file is accepted here yet" in one.sentence for one in examine(tmp_path / "x"))
