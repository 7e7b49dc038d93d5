"""A proxy such as a hospital has: who may only dial out asks it by CONNECT, perhaps with a name and a password.

`python -m tests.agents.connect_proxy HOST:PORT LOG [USER:PASSWORD]` notes a line for each request: who asks, for what, what
it was told.
"""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.agents.processes import wait_until

ROOT = Path(__file__).parents[2]


async def serve(listen: str, log: Path, credentials: str) -> None:
    wanted = f"proxy-authorization: basic {base64.b64encode(credentials.encode()).decode()}"

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, target, _ = lines[0].split(" ")
            allowed = not credentials or wanted in [line[:27].lower() + line[27:] for line in lines]
            told = "405 Method Not Allowed" if method != "CONNECT" else "200 OK"
            if not allowed:
                told = "407 Proxy Authentication Required"
            elif told.startswith("200"):
                host, _, port = target.rpartition(":")
                try:
                    beyond = await asyncio.open_connection(host, int(port))
                except OSError:
                    told = "502 Bad Gateway"
            with log.open("a") as file:
                file.write(f"{writer.get_extra_info('peername')[0]} {target} {told}\n")
            writer.write(f"HTTP/1.1 {told}\r\nVia: test\r\n\r\n".encode())
            if told.startswith("200"):
                await asyncio.gather(pump(reader, beyond[1]), pump(beyond[0], writer))
        except (OSError, EOFError, ValueError):
            pass
        finally:
            writer.close()

    host, _, port = listen.rpartition(":")
    server = await asyncio.start_server(receive, host, int(port))
    log.touch()
    await server.serve_forever()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


@contextmanager
def connect_proxy(listen: str, log: Path, credentials: str = "", before: Sequence[str] = ()) -> Iterator[None]:
    """The proxy in a process of its own, which a command `before` may start elsewhere."""
    words = [
        *before,
        sys.executable,
        "-m",
        "tests.agents.connect_proxy",
        listen,
        str(log),
        *([credentials] if credentials else []),
    ]
    with running(words, log.exists, "the proxy listens"):
        yield


@contextmanager
def relay(listen: str, log: Path, *options: str, before: Sequence[str] = ()) -> Iterator[None]:
    """`roundelay relay` in a process of its own."""
    words = [*before, sys.executable, "-m", "roundelay.cli", "relay", "--listen", listen, *options]
    with running(words, lambda: "listens at" in log.read_text(), "the relay listens", log):
        yield


@contextmanager
def running(words: Sequence[str], so: object, what: str, log: Path | None = None) -> Iterator[None]:
    output = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    process = subprocess.Popen(
        words, cwd=ROOT, stdout=output, stderr=output, env=os.environ | {"PYTHONUNBUFFERED": "1"}
    )
    os.close(output)

    def ready() -> bool:
        assert process.poll() is None, f"{words} ended: {log.read_text() if log else ''}"
        return bool(so())  # type: ignore[operator]

    try:
        wait_until(ready, what)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""))
