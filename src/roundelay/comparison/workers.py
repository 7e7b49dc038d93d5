"""Worker processes that leave Ctrl-C to the process that started them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import Any

from roundelay.engine.drive import deferred_interrupt

Submit = Callable[..., Future[Any]]
# (what, done, total): who wants to know how far the work is.
Told = Callable[[str, int, int], None]


@contextmanager
def workers(processes: int) -> Iterator[Submit]:
    """New interpreters, and `submit(work, *arguments)` for them, which returns a future.

    When something goes wrong, work that has not begun is dropped. Ctrl-C reaches every process of a terminal: here only
    this one heeds it, and ends the others at once. Otherwise each would show a traceback, or hand in half a result.
    """
    before = set(active_children())
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _ignore_interrupts)

    def submit(work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        # A process that is half started can't be ended quietly.
        with deferred_interrupt() as interrupt, _blocked_in_new_processes():
            future = pool.submit(work, *arguments)
        if interrupt.asked:
            raise KeyboardInterrupt
        return future

    try:
        yield submit
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(active_children()) - before:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _blocked_in_new_processes() -> Iterator[None]:
    """A process that is started meanwhile inherits that interrupts are blocked; so it gets none before it ignores them."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _ignore_interrupts() -> None:
    """In a worker, before its first work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
