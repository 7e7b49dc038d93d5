"""The way to a neighbour where it is not straight: through the proxy of a site that may only dial out, or by a relay.

gRPC dials and listens by itself. So where the way is another one it dials a socket in a folder that only this user can enter,
and whatever comes there is carried on; and what comes by the relay is carried to a socket where gRPC listens. TLS is gRPC's,
from end to end.
"""

from __future__ import annotations

import asyncio
import base64
import tempfile
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from roundelay.agents.agreement.names import host_and_port, relay_of
from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.links.relay import CHUNK, PAIRED, WAIT, Role, Stream, hello, meeting_name, splice
from roundelay.agents.links.transport import BackOff
from roundelay.tables import in_short

# Seconds that a proxy or a relay may take to answer.
ANSWER_WITHIN = 20.0
# A relay that hangs up within so many seconds has not waited for anybody.
AT_ONCE = 5.0


class WayError(ConnectionError):
    """There is no way to a neighbour now; the sentence says where it ends."""


def proxy_for(address: str) -> str:
    """The proxy through which an address is dialled, as the environment has it; empty where it is dialled straight."""
    proxy = getproxies_environment().get("https", "")
    if not proxy or proxy_bypass(address):
        return ""
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    try:
        fits = parts.scheme == "http" and parts.hostname and parts.port
    except ValueError:  # no port is like that
        fits = False
    if not fits:
        raise ValueError(
            "HTTPS_PROXY in the environment is no proxy that can be used: write http://host:port or http://user:password@host:port, "
            "or leave it out."
        )
    return parts.geturl()


async def connect(address: str, whose: str) -> Stream:
    """A connection to host:port, through the proxy where one is set. `whose` address it is, for a sentence."""
    proxy = proxy_for(address)
    parts = urlsplit(proxy)
    host, port = (parts.hostname or "", parts.port or 0) if proxy else host_and_port(address)
    first = f"The proxy {host}:{port}" if proxy else f"{whose} at {address}"
    try:
        async with asyncio.timeout(ANSWER_WITHIN):
            stream = Stream(*await asyncio.open_connection(host, port, limit=CHUNK))
            if proxy:
                await _ask_proxy(stream, address, parts.username, parts.password, first)
            return stream
    except WayError:
        raise
    except (
        OSError,
        EOFError,
        UnicodeError,
        asyncio.LimitOverrunError,
    ) as error:  # also TimeoutError, and names that can't be looked up
        raise WayError(f"{first} can't be reached ({error or 'no answer in time'}).") from None


async def _ask_proxy(stream: Stream, address: str, user: str | None, password: str | None, which: str) -> None:
    """CONNECT, RFC 9110 section 9.3.6."""
    lines = [f"CONNECT {address} HTTP/1.1", f"Host: {address}"]
    if user is not None:
        pair = f"{unquote(user)}:{unquote(password or '')}".encode()
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(pair).decode()}")
    stream.writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        answer = await stream.reader.readuntil(b"\r\n\r\n")
        status = answer.partition(b"\r\n")[0].decode("latin-1")
        version, _, rest = status.partition(" ")
        if not version.startswith("HTTP/1.") or not rest.startswith("2"):
            raise WayError(
                f"{which} does not connect to {address}; it says {in_short(status)}. Ask who runs it to allow that, or set "
                "HTTPS_PROXY and NO_PROXY as he says."
            )
    except BaseException:
        stream.writer.close()
        raise


class Ways:
    """The ways of one member that are not straight."""

    def __init__(self, plan: RingPlan, me: int) -> None:
        self._plan, self._me = plan, me
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._servers: list[asyncio.Server] = []
        self._carrying: set[asyncio.Task[None]] = set()
        self.trouble: dict[int, str] = {}
        for member in plan.members:  # what can't be used is refused now, not at every try
            if member.address:
                proxy_for(relay_of(member.address) or member.address)

    @property
    def door(self) -> str:
        """Where gRPC listens for what comes by a relay."""
        return f"unix:{self._home / 'door'}"

    async def to(self, peer: int) -> str:
        """What gRPC is to dial for a neighbour: its address, or a socket from which it is carried there."""
        address = self._plan.members[peer].address
        if not relay_of(address) and not proxy_for(address):
            return address

        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._carrying.add(task)
            try:
                await self._carry(peer, Stream(reader, writer))
            finally:
                self._carrying.discard(task)
                writer.close()

        path = self._home / str(peer)
        self._servers.append(await asyncio.start_unix_server(carry, path, limit=CHUNK))
        return f"unix:{path}"

    async def wait_at_relay(self, peer: int) -> None:
        """Let a neighbour in by the relay of this member, one connection at a time, for ever."""
        relay, back_off = relay_of(self._plan.members[self._me].address), BackOff()
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                stream = await self._at_relay(relay, Role.WAITS, peer, WAIT + ANSWER_WITHIN)
                self.trouble.pop(peer, None)
                try:
                    inside = Stream(*await asyncio.open_unix_connection(self._home / "door", limit=CHUNK))
                    await splice(stream, inside)
                finally:
                    stream.writer.close()
            except OSError as error:
                self.trouble[peer] = str(error)
            if loop.time() - began > ANSWER_WITHIN:
                back_off.succeeded()
            await asyncio.sleep(back_off.next())

    async def stop(self) -> None:
        """Carry nothing any more."""
        for server in self._servers:
            server.close()
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    @property
    def _home(self) -> Path:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="roundelay-")
        return Path(self._folder.name)

    async def _carry(self, peer: int, inside: Stream) -> None:
        """From where gRPC dials to where the neighbour is."""
        member = self._plan.members[peer]
        relay = relay_of(member.address)
        try:
            if relay:
                stream = await self._at_relay(relay, Role.DIALS, peer, ANSWER_WITHIN)
            else:
                stream = await connect(member.address, member.name)
        except WayError as error:
            self.trouble[peer] = str(error)
            return
        self.trouble.pop(peer, None)
        await splice(inside, stream)

    async def _at_relay(self, relay: str, role: Role, peer: int, patience: float) -> Stream:
        """A connection to the relay, at the moment when the other end is there too."""
        stream, loop = await connect(relay, "The relay"), asyncio.get_running_loop()
        mine, other = self._plan.members[self._me].name, self._plan.members[peer].name
        began, said = loop.time(), b""
        try:
            stream.writer.write(hello(role, meeting_name(self._plan.run_bytes, (mine, other))))
            with suppress(OSError):  # also TimeoutError
                async with asyncio.timeout(patience):
                    said = await stream.reader.read(1)
        finally:
            if said != PAIRED:
                stream.writer.close()
        if said == PAIRED:
            return stream
        if loop.time() - began < AT_ONCE:
            raise WayError(f"The relay at {relay} hangs up at once: it is full, or something else answers there.")
        raise WayError(f"{other} has not come to the relay at {relay}: its agent is down, or can't reach the relay.")
