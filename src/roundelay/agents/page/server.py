"""Serves the page to this machine only: its files, the status as JSON, once or as it changes, the metrics, and in the end the model."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import socket
import time
from collections.abc import Callable
from importlib import resources
from typing import Any

import msgspec
import numpy as np
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from roundelay.agents.data.models import StoredModel
from roundelay.agents.page.access import HOSTS, REPORT, Access, add_headers
from roundelay.agents.page.metrics import CONTENT_TYPE, metrics_text
from roundelay.agents.site.status import Status

HOME, PICTURES = "page.html", "pictures.css"
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}

# Seconds: no eye follows more than ten a second, and a quiet line is used now and then so that a dead one is noticed.
PACE, HEARTBEAT = 0.1, 5.0
# More readers at once are none: the page is for one operator, his browser, and what collects metrics.
MOST_READERS = 32
# Seconds that a connection without a request is kept.
IDLE = 30.0
# Seconds that a request may take to end when the server stops.
FAREWELL = 1.0


class PageError(RuntimeError):
    """The page can't be served; the sentence says why and what to do."""


class PageServer:
    """The page of one agent, on localhost.

    `status` is called in the event loop in which the server was started, and so is `model`, which has what was fitted once there is
    something. `port` 0 takes any that is free; without a `token` a new one is drawn. Whoever has the address that `start` returns can
    see the page, and nobody else.
    """

    def __init__(
        self,
        status: Callable[[], Status],
        port: int = 0,
        token: str | None = None,
        model: Callable[[], StoredModel | None] = lambda: None,
    ) -> None:
        if token is not None and not re.fullmatch(r"[\w.~-]+", token, re.ASCII):
            raise ValueError(
                "The access token must be letters, digits, or one of - . _ ~, which can stand in an address as they are: "
                "give such a one, or leave it out so that one is drawn."
            )
        self._status, self._model, self._port = status, model, port
        self._token = secrets.token_urlsafe() if token is None else token
        self._runner: web.AppRunner | None = None
        self._listening: asyncio.Server | None = None
        self._stopping = False

    async def start(self) -> str:
        """Serve; returns the address of the page with the access token."""
        listening = _listen(self._port)
        access = Access(listening.getsockname()[1], self._token)
        # No access log: it would have the token in it.
        self._runner = web.AppRunner(
            self._application(access),
            access_log=None,
            logger=_own_log(),
            handler_cancellation=True,
            shutdown_timeout=FAREWELL,
            keepalive_timeout=IDLE,
        )
        self._stopping = False
        await self._runner.setup()
        self._listening = await asyncio.get_running_loop().create_server(self._reader, sock=listening)
        return access.address

    def _reader(self) -> asyncio.Protocol:
        """Whoever has connected; one too many is hung up on, so that the agent keeps its open files."""
        server = self._runner.server if self._runner is not None else None
        return server() if server is not None and len(server.connections) < MOST_READERS else _OneTooMany()

    async def stop(self) -> None:
        """Let everybody go; a server that does not run has nothing to stop."""
        self._stopping = True
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.close()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    def _application(self, access: Access) -> web.Application:
        @web.middleware
        async def ask_for_token(request: web.Request, handler: Handler) -> web.StreamResponse:
            refusal = access.refusal(request)
            return web.Response(status=403, text=refusal) if refusal else await handler(request)

        async def home(request: web.Request) -> web.StreamResponse:
            response = web.Response(body=page, content_type=KINDS[".html"], charset="utf-8")
            access.remember(response)
            return response

        async def live(request: web.Request) -> web.StreamResponse:
            return await follow(request, self._status, lambda: self._stopping)

        async def status(request: web.Request) -> web.StreamResponse:
            return web.Response(body=status_json(self._status()), content_type="application/json", charset="utf-8")

        async def metrics(request: web.Request) -> web.StreamResponse:
            return web.Response(body=metrics_text(self._status()), headers={"Content-Type": CONTENT_TYPE})

        async def model(request: web.Request) -> web.StreamResponse:
            from roundelay.agents.page.model import model_json  # late: it brings tables and pictures

            body = await asyncio.to_thread(model_json, self._there())
            return web.Response(body=body, content_type="application/json", charset="utf-8")

        async def report(request: web.Request) -> web.StreamResponse:
            from roundelay.agents.data.loaded import LoadedModel

            stored = self._there()
            if stored.result is None:
                raise web.HTTPNotFound(text="This model has no tables, so that there is no report.")
            # The site has seen all signatures: without them its agent would not have come to this end.
            text = await asyncio.to_thread(LoadedModel(stored).report, "verified")
            return web.Response(text=text, content_type="text/html", charset="utf-8")

        page = FILES[HOME]
        application = web.Application(middlewares=[ask_for_token])
        application.on_response_prepare.append(add_headers)
        for path, handler in (
            ("/", home),
            ("/live", live),
            ("/status.json", status),
            ("/metrics", metrics),
            ("/model.json", model),
            (REPORT, report),
        ):
            application.router.add_get(path, handler, allow_head=False)
        for name, content in FILES.items():
            if name != HOME:
                application.router.add_get(f"/{name}", _file_handler(name, content), allow_head=False)
        return application

    def _there(self) -> StoredModel:
        stored = self._model()
        if stored is None:
            raise web.HTTPNotFound(text="There is no model yet: it is here when the run is over.")
        return stored


def _own_log() -> logging.Logger:
    """What goes wrong here is said. What is sent that is no HTTP is not: without a token, anybody on this machine could fill the disk with it."""
    log = logging.getLogger(__name__)
    log.addFilter(_is_of_our_own)
    return log


def _is_of_our_own(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


def _ending(name: str) -> str:
    return f".{name.rpartition('.')[2]}"


class _OneTooMany(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hang up."""
        transport.close()


def _files() -> dict[str, bytes]:
    """The files of the page by name, as they lie in this package, and the look of the pictures, which is that of the report's."""
    folder = resources.files(__package__)
    pictures = resources.files("roundelay.regression.shown") / PICTURES
    own = {file.name: file.read_bytes() for file in folder.iterdir() if _ending(file.name) in KINDS}
    return own | {PICTURES: pictures.read_bytes()}


# Read once, early: later on files may be scarce.
FILES = _files()


def _file_handler(name: str, content: bytes) -> Handler:
    async def file(request: web.Request) -> web.StreamResponse:
        return web.Response(body=content, content_type=KINDS[_ending(name)], charset="utf-8")

    return file


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((HOSTS[0], port))
    except (OSError, OverflowError) as error:
        raise PageError(
            f"The page can't be served on port {port}: {error}. Choose another port, or 0 for any that is free."
        ) from None


async def follow(request: web.Request, status: Callable[[], Status], over: Callable[[], bool]) -> web.StreamResponse:
    """Send the status whenever it has changed, until the reader has gone or it is `over`."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    told, spoken = b"", time.monotonic()
    try:
        # What changed while a slow reader was being written to is not queued: he gets the newest next.
        while not over() and not _gone(request):
            now, line = time.monotonic(), status_json(status())
            if line != told:
                await response.write(b"data: " + line + b"\n\n")
                told, spoken = line, now
            elif now - spoken >= HEARTBEAT:
                await response.write(b": still here\n\n")
                spoken = now
            await asyncio.sleep(PACE)
    except ConnectionError:
        pass  # the reader went away while he was being written to
    return response


def _gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


def status_json(status: Status) -> bytes:
    """One line of JSON with the names of the fields; what is no finite number is null."""
    return msgspec.json.encode(status, enc_hook=_number)


def _number(value: Any) -> bool | int | float:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"A status has a {type(value).__name__}, which the page can't show: use numbers, words and tuples.")
