"""Work in a process of its own: gRPC must not run in a process that other tests will fork."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import time
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any


def apart(folder: Path, work: Callable[[], Coroutine[Any, Any, Any]], seconds: float = 300.0) -> Any:
    """What a coroutine returns that runs in another process; what it raises is shown."""
    answer = folder / "answer"
    child = os.fork()
    if not child:
        code = 1
        try:
            answer.write_bytes(pickle.dumps(asyncio.run(work())))
            code = 0
        except BaseException:
            answer.write_text(traceback.format_exc())
        finally:
            os._exit(code)
    deadline = time.monotonic() + seconds
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError("the other process hangs")
        time.sleep(0.01)
    assert status == 0, answer.read_text()
    return pickle.loads(answer.read_bytes())
