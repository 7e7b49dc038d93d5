"""`roundelay audit` on a capture file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.data.objectives import Known
from roundelay.cli.app import app
from tests.agents.packets import pcap, pcapng
from tests.agents.played import packets_of, played
from tests.agents.processes import make_ring, own_functions

Audit = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ring file, a capture of its whole run and one that began too late."""
    folder = tmp_path_factory.mktemp("audited")
    functions = own_functions(rl.paper_least_squares(3))
    plan = make_ring(folder, functions, rl.PIADMM1(), Stopping(None, 24)).plan
    sent = played(plan, [Known(function) for function in functions])
    (folder / "ring.pcap").write_bytes(pcap(packets_of(sent), 101))
    (folder / "ring.PCAPNG").write_bytes(pcapng(packets_of(sent), 101))
    part = [one for k, one in enumerate(sent, start=1) if k % 3 != 1]  # without the link from 0 to 1
    (folder / "part.pcap").write_bytes(pcap(packets_of(part), 101))
    return folder


@pytest.fixture
def audit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Audit:
    monkeypatch.chdir(folder)
    return lambda *words: CliRunner().invoke(app, ["audit", *words])


def test_a_site_by_its_name_and_by_its_number(audit: Audit) -> None:
    told = [
        json.loads(audit(capture, "--ring", "ring.toml", "--agent", agent, "--json").stdout)
        for capture, agent in (("ring.pcap", "site2"), ("ring.PCAPNG", "2"))
    ]
    assert told[0] == told[1]
    assert told[0]["agent"] == 2 and told[0]["visits"] == 8
    assert told[0]["estimates"]["parametric, step size"]["converged"]
    assert len(told[0]["estimates"]["forward filter"]["y"]) == 9


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("ring.pcap",), "ring.pcap is a capture of packets: name the ring file by --ring"),
        (("ring.pcap", "--ring", "ring.toml", "--public", "x.json"), "leave --public out"),
        (("ring.pcap", "--ring", "ring.toml", "--agent", "Paris"), "give the name or the number of a site"),
        (("ring.pcap", "--ring", "ring.toml", "--agent", "3"), "There is no agent 3"),
        (("ring.pcap", "--ring", "ring.pcap"), "ring.pcap"),
        (("ring.toml", "--ring", "ring.toml"), "ring.toml is not a capture"),
        (("none.pcap", "--ring", "ring.toml"), "There is no file none.pcap"),
        (("part.pcap", "--ring", "ring.toml", "--agent", "0"), "Hand-overs 1 to 1 are not in the capture"),
        (("part.pcap", "--ring", "ring.toml", "--agent", "2", "--observer", "colluders"), "Hand-overs 1 to 1"),
    ],
)
def test_what_can_t_be_audited_is_refused_in_words(audit: Audit, words: tuple[str, ...], error: str) -> None:
    said = audit(*words)
    assert said.exit_code == 2 and error in said.stderr and said.stdout == ""


def test_the_neighbours_of_a_site_need_only_its_own_links(audit: Audit) -> None:
    """Its packets are all that is captured where it stands."""
    said = audit("part.pcap", "--ring", "ring.toml", "--agent", "2", "--json")
    assert said.exit_code == 0 and "Not used: 9 hand-overs are not in the capture" in said.stderr
    whole = audit("ring.pcap", "--ring", "ring.toml", "--agent", "2", "--json")
    for name in ("parametric, step size", "forward filter"):
        assert json.loads(said.stdout)["estimates"][name] == json.loads(whole.stdout)["estimates"][name]


def test_the_help_has_an_example(audit: Audit) -> None:
    assert "roundelay audit capture.pcap --ring ring.toml" in audit("--help").stdout
