"""The status as it changes: Server-Sent Events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from aiohttp import web

from roundelay.agents.page.encoding import status_json
from roundelay.agents.status import Status

# Seconds: no eye follows more than ten a second, and a quiet line is used now and then so that a dead one is noticed.
PACE, HEARTBEAT = 0.1, 5.0


async def follow(request: web.Request, status: Callable[[], Status], over: Callable[[], bool]) -> web.StreamResponse:
    """Send the status whenever it has changed, until the reader has gone or it is `over`."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    told, spoken = "", time.monotonic()
    try:
        # What changed while a slow reader was being written to is not queued: he gets the newest next.
        while not over() and not _gone(request):
            now, text = time.monotonic(), status_json(status())
            if text != told:
                await response.write(f"data: {text}\n\n".encode())
                told, spoken = text, now
            elif now - spoken >= HEARTBEAT:
                await response.write(b": still here\n\n")
                spoken = now
            await asyncio.sleep(PACE)
    except ConnectionError:
        pass  # the reader went away while he was being written to
    return response


def _gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()
