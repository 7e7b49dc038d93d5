"""Hosts on one machine: network namespaces on a bridge, each with its own address, whose cable can be pulled."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CLONE_NEWNET = 0x40000000


def why_not() -> str:
    """Why there can be no namespaces here, in words; empty where there can."""
    if shutil.which("ip") is None:
        return "the program ip is missing (Debian: iproute2)"
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    name = f"rl{os.getpid()}try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"network namespaces are not allowed here ({made.stderr.strip()})"
    inside = subprocess.run(
        ["ip", "-n", name, "link", "add", "br0", "type", "bridge"], capture_output=True, text=True, check=False
    )
    subprocess.run(["ip", "netns", "del", name], check=True)
    return f"bridges are not allowed here ({inside.stderr.strip()})" if inside.returncode else ""


@dataclass(frozen=True)
class Hosts:
    """So many hosts, each a namespace, and a switch."""

    prefix: str
    count: int

    def address(self, number: int) -> str:
        return f"10.213.7.{number + 1}"

    def enter(self, number: int) -> None:
        """From here on this process is on that host."""
        with open(Path("/run/netns") / self._host(number)) as namespace:
            library = ctypes.CDLL(None, use_errno=True)
            if library.setns(namespace.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")

    def cable(self, number: int, plugged: bool) -> None:
        """Pull the cable of a host at the switch, or plug it in."""
        _ip("-n", f"{self.prefix}s", "link", "set", f"port{number}", "up" if plugged else "down")

    def confine(self, number: int, to: int) -> None:
        """Leave a host no way but the one to another host: nobody else can reach it, and it reaches nobody else."""
        host = self._host(number)
        _ip("-n", host, "addr", "flush", "dev", "eth0")
        _ip("-n", host, "addr", "add", f"{self.address(number)}/32", "dev", "eth0")
        _ip("-n", host, "route", "add", f"{self.address(to)}/32", "dev", "eth0")

    def on(self, number: int) -> tuple[str, ...]:
        """What is written before a command so that it runs on a host."""
        return ("ip", "netns", "exec", self._host(number))

    def _host(self, number: int) -> str:
        return f"{self.prefix}h{number}"

    def make(self) -> None:
        switch = f"{self.prefix}s"
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "br0", "type", "bridge")
        _ip("-n", switch, "link", "set", "br0", "up")
        for number in range(self.count):
            host, port = self._host(number), f"port{number}"
            _ip("netns", "add", host)
            _ip("-n", host, "link", "set", "lo", "up")
            _ip("-n", switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host)
            _ip("-n", switch, "link", "set", port, "master", "br0", "up")
            _ip("-n", host, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
            _ip("-n", host, "link", "set", "eth0", "up")

    def remove(self) -> None:
        for name in [*(self._host(number) for number in range(self.count)), f"{self.prefix}s"]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


@contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """Hosts that are gone afterwards."""
    made = Hosts(f"rl{os.getpid()}", count)
    try:
        made.make()
        yield made
    finally:
        made.remove()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
