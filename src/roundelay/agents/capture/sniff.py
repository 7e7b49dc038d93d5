"""A capture of this machine's own loopback interface, for experiments with a ring on one machine."""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from roundelay.agents.capture.packets import ETHERNET, SNAP, Packet, pcap_header, pcap_record, segment_of

_INTERFACE = "lo"
_ALL_PROTOCOLS = 0x0003
_OUTGOING = 4  # on the loopback every packet is seen twice, as it leaves and as it comes
_PACKET_LEVEL, _STATISTICS = 263, 6
_ROOM = 64 * 2**20  # what may wait in the kernel
_FORCED_ROOM = 33  # SO_RCVBUFFORCE
_LOOK_EVERY = 0.05
_LONGEST_END = 5.0  # seconds for what still waits, where others never stop sending


class Sniffer:
    """Within a `with` block, keeps what crosses the loopback interface from or to TCP `ports` in the pcap file at `path`.

    Linux only, and with the right to open raw sockets, which root has. When the block ends, the packets that were sent
    before are in the file; `packets` is how many, and `dropped` how many the kernel had no room for.
    """

    def __init__(self, ports: Iterable[int], path: str | Path) -> None:
        self._ports, self._path = frozenset(ports), Path(path)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._capture, name="sniffer", daemon=True)
        self._failure: BaseException | None = None
        self.packets = self.dropped = 0

    def __enter__(self) -> Sniffer:
        self._socket = _raw_socket()
        try:
            self._path.write_bytes(pcap_header(ETHERNET))
            self._file = open(self._path, "ab")  # the thread closes it
        except BaseException:
            self._socket.close()
            raise
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        if self._failure is not None and kind is None:
            raise self._failure

    def _capture(self) -> None:
        with self._socket, self._file:
            try:
                self._socket.settimeout(_LOOK_EVERY)
                while not self._over.is_set():
                    self._take_one()
                self._socket.setblocking(False)
                until = time.monotonic() + _LONGEST_END
                while self._take_one() and time.monotonic() < until:
                    pass
                self.dropped = struct.unpack("II", self._socket.getsockopt(_PACKET_LEVEL, _STATISTICS, 8))[1]
            except OSError as error:
                self._failure = error

    def _take_one(self) -> bool:
        """Take a packet, if one comes before the socket loses its patience."""
        try:
            data, about = self._socket.recvfrom(SNAP)
        except (TimeoutError, BlockingIOError):
            return False
        if about[2] != _OUTGOING:
            self._keep(Packet(time.time_ns(), ETHERNET, data))
        return True

    def _keep(self, packet: Packet) -> None:
        segment = segment_of(packet)
        if segment is not None and not self._ports.isdisjoint((segment.source.port, segment.destination.port)):
            self._file.write(pcap_record(packet.time, packet.data))
            self.packets += 1


def _raw_socket() -> socket.socket:
    """A socket that is handed all that crosses the loopback interface, and nothing else."""
    if sys.platform != "linux":
        raise PermissionError("The loopback interface can be captured on Linux only: use tcpdump -w here.")
    try:
        # Of no protocol before it is bound, so that nothing of another interface ever comes in.
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError:
        raise PermissionError(
            "This process may not capture packets: run it as root, or give it the capability CAP_NET_RAW."
        ) from None
    try:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        with suppress(PermissionError):
            raw.setsockopt(socket.SOL_SOCKET, _FORCED_ROOM, _ROOM)  # beyond the usual limit, where that is allowed
        raw.bind((_INTERFACE, _ALL_PROTOCOLS))
    except BaseException:
        raw.close()
        raise
    return raw
