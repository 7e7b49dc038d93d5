"""The process in which a site attacks itself, so that the meter takes nothing from what it watches: both of its ends.

It has the lowest priority, one thread, and so many seconds of a processor for a whole epoch. What it is to look at comes to it
by a pipe, and what it finds goes back by another; nothing of it is on disk, and it never speaks to anybody else. It ends when the pipe
does, with the agent, however that ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import pickle
import resource
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, NamedTuple

import msgspec

from roundelay.agents.site.status import MeterReading

if TYPE_CHECKING:
    from roundelay.agents.site.own_attacks import Evidence

# Seconds of a processor for all attacks of an epoch. What is known of a fit with some ten unknowns takes a few.
SECONDS = 120.0
LEAST_PRIORITY = 19
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
_LENGTH = struct.Struct("<Q")
# Of Linux's prctl.h.
PR_SET_PDEATHSIG = 1


class Found(NamedTuple):
    """What the attacks found, and why not all of them came to their end; empty where they did."""

    readings: tuple[MeterReading, ...]
    trouble: str = ""


def attack_here(evidence: Evidence) -> Found:
    """All attacks in this process, however long that takes."""
    readings = list[MeterReading]()
    try:
        readings.extend(evidence.readings())
    except Exception as error:
        return Found(tuple(readings), _why_it_failed(error))
    return Found(tuple(readings))


def _why_it_failed(error: Exception) -> str:
    return f"An attack of the privacy meter failed ({type(error).__name__}): it can't tell how much is known."


# ---------------------------------------------------------------- the agent's end


@dataclass(eq=False)
class MeterProcess:
    """The agent's end. The process is started when it is first needed; once it has ended it stays so."""

    seconds: float = SECONDS
    process: subprocess.Popen[bytes] | None = None
    trouble: str = ""
    _closed: bool = field(default=False, repr=False)
    _in_use: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def start(self) -> None:
        """Start the process, if it was never started: in the thread that lives as long as the agent, with which it dies."""
        if self.process is not None or self._closed:
            return
        # It finds the very modules that the agent found, and none in the folder where it happens to be started.
        modules = os.pathsep.join(path for path in sys.path if path)
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, repr(self.seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | ONE_THREAD | {"PYTHONPATH": modules},
            )
            os.setpriority(os.PRIO_PROCESS, self.process.pid, LEAST_PRIORITY)
        except OSError as error:
            self.close(
                f"The privacy meter's process can't be started ({error.strerror}): it can't tell how much is known."
            )

    def attack(self, evidence: Evidence) -> Found:
        """Have it attack; this waits, and so is for a thread. `close` ends the wait."""
        with self._in_use:
            return self._attack(evidence)

    def _attack(self, evidence: Evidence) -> Found:
        process, readings = self.process, list[MeterReading]()
        if process is None or self.trouble:
            return Found((), self.trouble)
        assert process.stdin is not None and process.stdout is not None
        try:
            _send(process.stdin, pickle.dumps(evidence))
            for line in process.stdout:
                said = msgspec.json.decode(line, type=MeterReading | str | None)
                if isinstance(said, MeterReading):
                    readings.append(said)
                else:
                    return Found(tuple(readings), said or "")
        except (OSError, ValueError, msgspec.MsgspecError):
            process.kill()
        code = process.wait()
        self.trouble = self.trouble or self._why_it_ended(code)
        return Found(tuple(readings), self.trouble)

    def _why_it_ended(self, code: int) -> str:
        if code == -signal.SIGXCPU:
            return (
                f"The privacy meter has used up its {self.seconds:g} seconds of a processor before it was done, and measures no more: "
                "it can't tell how much is known."
            )
        return "The privacy meter's process has ended before it was done: it can't tell how much is known."

    def close(self, why: str = "") -> None:
        """End the process, whatever it does; whoever waits for it hears `why`."""
        self._closed, self.trouble = True, self.trouble or why
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()  # type: ignore[union-attr]


def _send(pipe: IO[bytes], content: bytes) -> None:
    pipe.write(_LENGTH.pack(len(content)))
    pipe.write(content)
    pipe.flush()


# ---------------------------------------------------------------- its own end


def serve(seconds: float) -> None:
    """Attack whatever comes by the pipe, and write what is found line by line, until the pipe ends."""
    _end_with_the_agent()
    limit = math.ceil(seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    waiting: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, waiting), daemon=True).start()
    while True:
        for said in _answers(waiting.get()):
            sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
            sys.stdout.buffer.flush()


def _answers(content: bytes) -> Iterable[MeterReading | str | None]:
    """Each reading, and at the end nothing, or what went wrong."""
    try:
        evidence: Evidence = pickle.loads(content)
        yield from evidence.readings()
    except Exception as error:
        yield _why_it_failed(error)
        return
    yield None


def _receive(pipe: IO[bytes], waiting: SimpleQueue[bytes]) -> None:
    """Take what comes; where the pipe ends, so does the process, in the middle of whatever it does."""
    while len(head := pipe.read(_LENGTH.size)) == _LENGTH.size:
        waiting.put(pipe.read(*_LENGTH.unpack(head)))
    os._exit(0)


def _end_with_the_agent() -> None:
    """On Linux the system itself sees to it, also where a library would not let the other thread run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the agent
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    serve(float(sys.argv[1]))
