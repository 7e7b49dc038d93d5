"""Links by gRPC: one bidirectional stream a link, mutual TLS, the neighbour's certificate the only one that is trusted."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

# gRPC would report every refused handshake on stderr; the agent says it in its own log. Set before it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

try:
    import grpc
except ImportError:
    raise ImportError("A ring needs the package grpcio: install it by pip install 'roundelay[ring]'.") from None

from roundelay.agents.agreement.identity import Identity, expiry, server_name
from roundelay.agents.agreement.names import relay_of
from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.links.open_files import most_connections
from roundelay.agents.links.transport import BackOff, Connected, Deliver
from roundelay.agents.links.ways import Ways
from roundelay.agents.protocol.wire import HEADER_BYTES

SERVICE, METHOD = "roundelay.Ring", "Link"
SPARE = 4096  # what gRPC may add to a frame
# Who dials must have shown his certificate by then, and have opened a stream. In milliseconds.
HANDSHAKE, IDLE = 10_000, 10_000
# Seconds that a neighbour may take to read a frame, and bytes a second beside: who reads nothing would keep whoever writes waiting for ever.
TAKEN_WITHIN, SLOWEST, LOOK_EVERY = 20.0, 10_000.0, 1.0

# What gRPC raises where a link breaks: by the end that dials, by the end that listens, and after the end.
LINK_ERRORS = (grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError)


class ListenError(RuntimeError):
    """The agent can't listen on its address."""


@dataclass(eq=False)
class _Stream:
    """A live stream to a neighbour, whichever end dialled; what its `writer` is writing must be taken until `due`."""

    write: Callable[[bytes], Awaitable[Any]]
    close: Callable[[], Any]
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    writer: asyncio.Task[Any] | None = None
    due: float = math.inf
    stuck: bool = False


class GrpcTransport:
    """The links of one member in one epoch.

    Without an `identity` nothing is encrypted and whoever dials is believed: for experiments only.
    """

    def __init__(self, plan: RingPlan, me: int, identity: Identity | None, largest: int, listen: str = "") -> None:
        self._plan, self._me, self._identity = plan, me, identity
        self._ways = Ways(plan, me)
        self._by_relay = bool(relay_of(plan.members[me].address))
        self._listen = listen or ("" if self._by_relay else plan.members[me].address)
        self._streams: dict[int, _Stream] = {}
        self._trouble: dict[int, str] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._server: Any = None
        limit = HEADER_BYTES + largest + SPARE
        self._options = [
            # A frame is refused by its length before it is read: no more memory than the largest that can be right.
            ("grpc.max_receive_message_length", limit),
            ("grpc.max_send_message_length", limit),
            ("grpc.keepalive_time_ms", 20_000),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            # Whoever connects takes an open file before it is known who he is: so many, for so long, and no more.
            ("grpc.max_allowed_incoming_connections", most_connections()),
            ("grpc.server_handshake_timeout_ms", HANDSHAKE),
            ("grpc.max_connection_idle_ms", IDLE),
            ("grpc.max_concurrent_streams", 1),
            ("grpc.so_reuseport", 0),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_http_proxy", 0),  # the way to the other end is ours, here and where a relay is on it
            ("grpc.optimization_target", "latency"),
        ]

    async def start(self, deliver: Deliver, connected: Connected) -> None:
        """Listen where others dial, and dial where that is this member's part."""
        self._deliver, self._connected = deliver, connected
        plan, me = self._plan, self._me
        dialled = [peer for peer in plan.neighbours[me] if dials(plan, me, peer)]
        waited_for = sorted(plan.neighbours[me] - set(dialled))
        targets = {peer: await self._ways.to(peer) for peer in dialled}
        if waited_for:
            await self._serve()
        self._tasks = [asyncio.create_task(self._dial(peer, target)) for peer, target in targets.items()]
        self._tasks.append(asyncio.create_task(self._give_up_the_stuck()))
        if self._by_relay:
            self._tasks += [asyncio.create_task(self._ways.wait_at_relay(peer)) for peer in waited_for]

    async def send(self, peer: int, data: bytes) -> bool:
        """Send a frame; False where the link is down."""
        stream = self._streams.get(peer)
        if stream is None:
            return False
        try:
            async with stream.writing:
                if stream.stuck:
                    return False
                stream.writer, stream.due = (
                    asyncio.current_task(),
                    time.monotonic() + TAKEN_WITHIN + len(data) / SLOWEST,
                )
                try:
                    await stream.write(data)
                finally:
                    stream.due = math.inf
        except LINK_ERRORS:
            return False
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and stream.stuck and stream.writer is task:
                task.uncancel()
            if _is_cancelled():
                raise
            return False  # the stream was given up while this waited
        return True

    async def stop(self) -> None:
        """Close everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            await self._server.stop(0.1)
        await self._ways.stop()

    def drop(self, peer: int) -> None:
        """Give up a stream on which nothing is heard any more."""
        stream = self._streams.get(peer)
        if stream is not None:
            stream.close()

    async def _give_up_the_stuck(self) -> None:
        """Close streams whose other end does not take what is written: a look at all of them costs less than a time limit on each frame."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            now = time.monotonic()
            for stream in self._streams.values():
                if now > stream.due:
                    assert stream.writer is not None
                    stream.stuck, stream.due = True, math.inf
                    stream.writer.cancel()  # of the two ends only the one that dialled would be told that the stream is closed
                    stream.close()

    def trouble(self, peer: int) -> str:
        """Why the link to a neighbour is down."""
        return self._trouble.get(peer) or self._ways.trouble.get(peer, "")

    # ------------------------------------------------------------ the two ends

    async def _serve(self) -> None:
        server = grpc.aio.server(options=self._options)
        handler = grpc.stream_stream_rpc_method_handler(self._answer)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
        for address in [*([self._listen] if self._listen else []), *([self._ways.door] if self._by_relay else [])]:
            try:
                port = self._add_port(server, address)
            except RuntimeError:
                port = 0
            if not port:
                raise ListenError(
                    f"The address {address} can't be listened on: another program may use it, or it is not this machine's. "
                    "Free it, or name another one by --listen."
                )
        await server.start()
        self._server = server

    def _add_port(self, server: Any, address: str) -> int:
        if self._identity is None:
            return server.add_insecure_port(address)
        trusted = "".join(self._plan.members[peer].certificate for peer in self._plan.neighbours[self._me])
        pair = (self._identity.key, self._identity.certificate.encode())
        credentials = grpc.ssl_server_credentials([pair], trusted.encode(), require_client_auth=True)
        return server.add_secure_port(address, credentials)

    async def _answer(self, _requests: Any, context: Any) -> None:
        peer = self._who(context)
        if peer is None:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "not a neighbour")
        else:
            answering = asyncio.current_task()
            assert answering is not None
            await self._converse(peer, context.write, context.read, answering.cancel)

    async def _dial(self, peer: int, target: str) -> None:
        back_off = BackOff()
        while True:
            channel = self._channel(peer, target)
            try:
                call = channel.stream_stream(f"/{SERVICE}/{METHOD}")(metadata=(("member", str(self._me)),))
                await call.wait_for_connection()
                back_off.succeeded()
                await self._converse(peer, call.write, call.read, call.cancel)
            except LINK_ERRORS as error:
                self._trouble[peer] = self._diagnosis(peer, error)
            except asyncio.CancelledError:
                if _is_cancelled():
                    raise  # otherwise the stream was given up, and is opened anew
            finally:
                await channel.close()
            await asyncio.sleep(back_off.next())

    def _channel(self, peer: int, target: str) -> Any:
        member = self._plan.members[peer]
        if self._identity is None:
            return grpc.aio.insecure_channel(target, options=self._options)
        credentials = grpc.ssl_channel_credentials(
            member.certificate.encode(), self._identity.key, self._identity.certificate.encode()
        )
        name = ("grpc.ssl_target_name_override", server_name(member.certificate))
        return grpc.aio.secure_channel(target, credentials, options=[*self._options, name])

    async def _converse(
        self,
        peer: int,
        write: Callable[[bytes], Awaitable[Any]],
        read: Callable[[], Awaitable[Any]],
        close: Callable[[], Any],
    ) -> None:
        """Read from a stream until it ends; a newer stream of the same neighbour takes the place of an older one."""
        stream, older = _Stream(write, close), self._streams.get(peer)
        self._streams[peer] = stream
        self._trouble.pop(peer, None)
        if older is not None:
            older.close()
        try:
            await self._connected(peer, True)
            while True:
                data = await read()
                if data is grpc.aio.EOF:
                    return
                await self._deliver(peer, data)
        finally:
            if self._streams.get(peer) is stream:
                del self._streams[peer]
                await self._connected(peer, False)

    # ------------------------------------------------------------ who is there

    def _who(self, context: Any) -> int | None:
        """The neighbour at the other end: by its certificate, which the handshake has checked."""
        if self._identity is None:
            claimed = dict(context.invocation_metadata()).get("member", "")
            peer = int(claimed) if claimed.isdigit() else -1
            return peer if peer in self._plan.neighbours[self._me] else None
        shown = context.auth_context().get("x509_pem_cert", [b""])[0].decode()
        for peer in self._plan.neighbours[self._me]:
            if self._plan.members[peer].certificate.split() == shown.split():
                return peer
        return None

    def _diagnosis(self, peer: int, error: Any) -> str:
        """Why a neighbour can't be reached, as far as can be known here."""
        member, now = self._plan.members[peer], datetime.now(UTC)
        if self._identity is not None:
            for whose, certificate in (("This site", self._identity.certificate), (member.name, member.certificate)):
                if expiry(certificate) < now:
                    return (
                        f"The certificate of {whose} expired on {expiry(certificate):%Y-%m-%d}: new keys are made there "
                        "by roundelay ring rekey, and taken into the ring by roundelay ring renew at another site. (Or this "
                        "machine's clock is wrong.)"
                    )
        if on_the_way := self._ways.trouble.get(peer):
            return on_the_way
        details = str(getattr(error, "details", lambda: error)())
        if "CERTIFICATE" in details or "handshake" in details.lower():
            return f"Whoever answers at {member.address} is not {member.name}, or does not know this site: compare the ring files."
        return f"{member.name} does not answer at {member.address}: its agent is down, or the way to it is blocked."


def dials(plan: RingPlan, me: int, peer: int) -> bool:
    """Whether this member dials the other: the one that can't be dialled does, otherwise the one with the lower number.

    Who is met at a relay is always waited for there, since he may be able to reach nothing else.
    """
    mine, other = plan.members[me].address, plan.members[peer].address
    if bool(relay_of(mine)) != bool(relay_of(other)) and mine and other:
        return bool(relay_of(other))
    return bool(other) and (not mine or me < peer)


def _is_cancelled() -> bool:
    """Whether this task itself is to end. A stream that was given up raises the same error in whoever waits for it."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
