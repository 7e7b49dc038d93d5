"""A whole ring on one machine, for trying out: real processes, real keys, every site in a folder of its own."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import random
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from roundelay.agents.agreement.disk import PUBLIC, write_whole
from roundelay.agents.agreement.epochs import plan_ring
from roundelay.agents.agreement.folder import accept_ring
from roundelay.agents.agreement.identity import load_identity, make_identity, save_identity
from roundelay.agents.agreement.invitations import Invitation, read_invitation, write_invitation
from roundelay.agents.agreement.plan import RingPlan, Stopping, Task, columns_in
from roundelay.agents.agreement.policy import ANYTHING, write_policy
from roundelay.agents.agreement.ringfile import write_ring
from roundelay.agents.data.models import StoredModel, load_model
from roundelay.agents.data.offering import offer
from roundelay.kernels import Integers

# What is fitted, by the invitations.
Plan = Callable[[Sequence[Invitation]], Task]
# All sites share this machine: each computes with one thread.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
# And reach each other here, whatever proxy leads elsewhere.
NO_PROXY = {"no_proxy": "*", "NO_PROXY": "*"}


@dataclass(frozen=True, eq=False)
class Seat:
    """A site of the rehearsal: its folder, its data, how many rows they have, and where its agent writes the model."""

    name: str
    folder: Path
    data: Path
    rows: int
    model: Path


@dataclass(eq=False)
class Rehearsal:
    """The sites, and those of their agents that run."""

    ring: Path
    plan: RingPlan
    seats: tuple[Seat, ...]
    invitations: tuple[Invitation, ...]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def another(self, name: str, algorithm: Any, stopping: Stopping) -> Rehearsal:
        """Another run of the same sites on the same data, by another algorithm; `name` tells its files apart."""
        seats = tuple(replace(seat, model=seat.folder / f"model-{name}.json") for seat in self.seats)
        return _planned(
            self.ring.with_stem(f"ring-{name}"), seats, self.invitations, self.plan.task, algorithm, stopping
        )

    def start(self, seat: Seat, *options: str) -> None:
        """Start a site's agent, just as its operator would."""
        command = [
            sys.executable, "-m", "roundelay.cli", "agent", "--ring", str(self.ring), "--folder", str(seat.folder),
            "--data", str(seat.data), "--out", str(seat.model), *options,
        ]  # fmt: skip
        with (seat.folder / "output.txt").open("ab") as output:
            self.processes[seat.name] = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=os.environ | ONE_THREAD | NO_PROXY,
            )

    def kill(self, seat: Seat) -> None:
        """Kill a site's agent as a power cut would."""
        process = self.processes.pop(seat.name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """End whatever still runs; each can go on from where it was."""
        for process in self.processes.values():
            if process.poll() is None:
                os.kill(process.pid, signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(10.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()

    def home_of(self, seat: Seat) -> Path:
        """Where a site keeps what belongs to the run."""
        return seat.folder / "runs" / self.plan.run

    def page_of(self, seat: Seat) -> str:
        """The address of a site's page; empty where it is not up."""
        try:
            return (self.home_of(seat) / "page").read_text()
        except OSError:
            return ""

    def status_of(self, seat: Seat) -> dict[str, Any]:
        """What a site's page says; empty where it is not up."""
        address = self.page_of(seat)
        if not address:
            return {}
        try:
            with urllib.request.urlopen(address.replace("/?token=", "/status.json?token="), timeout=2.0) as answer:
                return dict(json.load(answer))
        except (OSError, ValueError, urllib.error.URLError):
            return {}

    def failed(self) -> str:
        """What the first agent said that ended without a model; empty where none did."""
        for seat in self.seats:
            process = self.processes.get(seat.name)
            if process is not None and process.poll() not in (None, 0):
                said = (seat.folder / "output.txt").read_text(errors="replace").strip().splitlines()
                return f"{seat.name} stopped: {said[-1] if said else f'exit code {process.returncode}'}"
        return ""

    def done(self) -> bool:
        """Whether every site has its model and has said all that it has to say; one that is to stay need not have ended."""
        return all(seat.model.exists() and self._has_ended(seat) for seat in self.seats)

    def _has_ended(self, seat: Seat) -> bool:
        process = self.processes.get(seat.name)
        return process is None or process.poll() is not None or "--stay" in str(process.args)

    def models(self) -> list[StoredModel]:
        """What every site has fitted."""
        return [load_model(seat.model) for seat in self.seats]


def uneven_parts(rows: int, parts: int, seed: int) -> list[Integers]:
    """The rows in random order, split in proportion to 1, 2, 3, …"""
    if rows < parts:
        raise ValueError(f"There are {rows} rows for {parts} sites: use fewer sites, or more data.")
    ends = np.cumsum(np.arange(1, parts + 1)) * rows // (parts * (parts + 1) // 2)
    order = np.random.default_rng(seed).permutation(rows)
    pieces = np.split(order, np.maximum(ends[:-1], np.arange(1, parts)))
    return [np.sort(piece) for piece in pieces]


def fit_by_all_others(header: Sequence[str], target: str, kind: str, ridge: float = 0.0) -> Task:
    """The fit of one column of the data by all others."""
    columns = columns_in(header, "the data")
    explained = next((column for column in columns if column.name == target), None)
    if explained is None:
        raise ValueError(f"There is no column {target!r} in the data: the columns are {', '.join(header)}.")
    return Task(kind, tuple(column for column in columns if column != explained), explained, ridge=ridge)


def prepare_ring(
    folder: Path,
    header: Sequence[str],
    rows: Mapping[str, Sequence[Sequence[str]]],
    task: Task | Plan,
    algorithm: Any,
    stopping: Stopping,
) -> Rehearsal:
    """Write every site's rows, make its keys, exchange the invitations, plan the ring, and accept it everywhere.

    `rows` has the rows of each site by its name, with the cells in the order of the header. What is fitted may follow from what the sites
    offer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    columns = columns_in(header, "the data")
    invitations, seats = [], []
    for (name, own), port in zip(rows.items(), _free_ports(len(rows)), strict=True):
        home = folder / name
        save_identity(home, make_identity(name))
        write_policy(home, ANYTHING)  # whoever rehearses has the data of all sites
        with (home / "rows.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *own])
        offered = columns if isinstance(task, Task) else offer(home / "rows.csv", 1).columns
        text = write_invitation(load_identity(home), f"127.0.0.1:{port}", offered)
        invitations.append(read_invitation(text, f"the invitation of {name}"))
        seats.append(Seat(name, home, home / "rows.csv", len(own), home / "model.json"))
    fit = task if isinstance(task, Task) else task(invitations)
    return _planned(folder / "ring.toml", tuple(seats), tuple(invitations), fit, algorithm, stopping)


def _planned(
    ring: Path,
    seats: tuple[Seat, ...],
    invitations: tuple[Invitation, ...],
    task: Task,
    algorithm: Any,
    stopping: Stopping,
) -> Rehearsal:
    """The first site plans the ring, and all accept it."""
    plan = plan_ring(invitations, None, algorithm, task, stopping)
    text = write_ring(plan, load_identity(seats[0].folder))
    write_whole(ring, text, PUBLIC)
    for seat in seats:
        accept_ring(seat.folder, text)
    return Rehearsal(ring, plan, seats, invitations)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, below those from which the system takes the near end of a connection.

    From there another program's connection could take one before its agent listens.
    """
    ports: list[int] = []
    for port in random.SystemRandom().sample(range(12_000, 32_000), 20_000):
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            ports.append(port)
        if len(ports) == count:
            return ports
    raise ValueError(f"There are no {count} free ports between 12000 and 32000 on this machine.")
