"""Five hospitals on five hosts, by their own commands: two that can be dialled, two behind a proxy, one that reaches a relay alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.disk import write_whole
from roundelay.agents.agreement.epochs import plan_ring
from roundelay.agents.agreement.folder import accept_ring
from roundelay.agents.agreement.identity import make_identity, save_identity
from roundelay.agents.agreement.invitations import read_invitation, write_invitation
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.agreement.ringfile import write_ring
from roundelay.agents.data.models import load_model
from tests.agents.connect_proxy import ROOT, connect_proxy, relay
from tests.agents.hospitals import TASK, table_of
from tests.agents.namespaces import Hosts, hosts, why_not
from tests.agents.processes import wait_until

NAMES = ("Oslo", "Bergen", "Tromso", "Narvik", "Alta")
OPEN, PROXIED, ALONE = (0, 1), (2, 3), 4
PROXY, RELAY = 5, 6
# Who is behind a proxy has a link straight through it, and one to the relay; the relay's guest has only such.
LINKS = [("Oslo", "Tromso"), ("Tromso", "Alta"), ("Alta", "Narvik"), ("Narvik", "Bergen"), ("Bergen", "Oslo")]
COLUMNS = (*TASK.features, TASK.target)


def reaches(net: Hosts, number: int, address: str) -> bool:
    """Whether a host can open a connection."""
    host, _, port = address.rpartition(":")
    code = f"import socket; socket.create_connection(({host!r}, {port}), 2.0)"
    return (
        subprocess.run([*net.on(number), sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
    )


def prepare(folder: Path, addresses: list[str]) -> Path:
    """Folders, data and a ring file that all have accepted."""
    invitations, identities = [], []
    for name, address in zip(NAMES, addresses, strict=True):
        identities.append(make_identity(name))
        save_identity(folder / name, identities[-1])
        lines = [",".join(map(str, COLUMNS)), *(",".join(map(repr, row)) for row in table_of(name).tolist())]
        (folder / name / "rows.csv").write_text("\n".join(lines))
        text = write_invitation(identities[-1], address, COLUMNS)
        invitations.append(read_invitation(text, f"the invitation of {name}"))
    ring = write_ring(plan_ring(invitations, LINKS, rl.SealedLaps(wide=True), TASK, Stopping(1e-9)), identities[0])
    write_whole(folder / "ring.toml", ring)
    for name in NAMES:
        accept_ring(folder / name, ring)
    return folder / "ring.toml"


def start_agent(net: Hosts, folder: Path, number: int, ring: Path, proxy: str) -> subprocess.Popen[bytes]:
    name = NAMES[number]
    command = [
        *net.on(number), sys.executable, "-m", "roundelay.cli", "agent", "--ring", str(ring), "--folder", str(folder / name),
        "--data", str(folder / name / "rows.csv"), "--out", str(folder / name / "model.json"),
    ]  # fmt: skip
    way = {"HTTPS_PROXY": f"http://{proxy}"} if number in PROXIED else {}
    with (folder / name / "output.txt").open("ab") as output:
        return subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, env=os.environ | way)


def pooled() -> list[float]:
    """Least squares on the rows of all sites in one place, the intercept last."""
    rows = np.vstack([table_of(name) for name in NAMES])
    design = np.column_stack([rows[:, :-1], np.ones(len(rows))])
    return list(np.linalg.lstsq(design, rows[:, -1])[0])


def test_sites_that_can_only_dial_out_fit_a_model_with_others(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    with hosts(7) as net:
        proxy, post_office = f"{net.address(PROXY)}:3128", f"{net.address(RELAY)}:7440"
        addresses = [*(f"{net.address(number)}:7443" for number in OPEN), "", "", f"relay://{post_office}"]
        for number in PROXIED:
            net.confine(number, to=PROXY)
        net.confine(ALONE, to=RELAY)
        ring, asked = prepare(tmp_path, addresses), tmp_path / "asked"
        with (
            connect_proxy(proxy, asked, before=net.on(PROXY)),
            relay(post_office, tmp_path / "relay.log", before=net.on(RELAY)),
        ):
            assert [reaches(net, number, post_office) for number in range(5)] == [True, True, False, False, True]
            assert [reaches(net, number, proxy) for number in range(5)] == [True, True, True, True, False]
            agents = [start_agent(net, tmp_path, number, ring, proxy) for number in range(5)]
            try:
                wait_until(lambda: all(agent.poll() is not None for agent in agents), "all agents end")
            finally:
                for agent in agents:
                    agent.kill()
                    agent.wait()
        said = [(tmp_path / name / "output.txt").read_text() for name in NAMES]
        assert [agent.returncode for agent in agents] == [0] * 5, said
    for name in NAMES:
        model = load_model(tmp_path / name / "model.json").model
        assert np.allclose([*(value for _, value in model.coefficients), model.intercept], pooled())
    lines = [line.split(" ") for line in asked.read_text().splitlines()]
    assert {who for who, *_ in lines} == {net.address(number) for number in PROXIED}
    assert {address for _, address, told, *_ in lines if told == "200"} == {*addresses[:2], post_office}
