"""A pass over all rows: a function of a part, on all cores or on a Dask cluster, and what came of the parts in the order in which they stand.

The order is what makes a sum the same to the last bit however many cores or workers there are, and whoever of them dies: a part has
the same rows, its sum is formed by one thread, and the sums are added one behind the other.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from roundelay.batches.folder import Part, PassError
from roundelay.comparison.runners import Dask, LostError, Task, cluster
from roundelay.shown.watched import PATIENCE, Bar

# So many parts are handed to a core before it has asked for them.
AHEAD = 2

Made = TypeVar("Made")


class Tell(Protocol):
    """Who wants to know how many of the rows have been read."""

    def __call__(self, done: int, total: int) -> None:
        """So many of so many; all of them when the pass has ended, however it ended."""


@dataclass(frozen=True)
class Passes:
    """Where passes are made: in `threads` of this process, by default one for each core, or on a Dask cluster of the site's own.

    The workers of a cluster must see the files under the same path. `tell` is called once a pass takes long; without it there is a line
    in a terminal and in a notebook.
    """

    threads: int | None = None
    dask: Dask = None
    tell: Tell | None = None

    def over(self, parts: Sequence[Part], work: Callable[[Part], Made]) -> Generator[Made]:
        """What `work` makes of each part, in order. With Dask both travel, so that `work` is of functions and classes in modules."""
        made = self._on_dask(parts, work) if self.dask is not None else self._in_threads(parts, work)
        with closing(made), _told(self.tell, sum(part.rows for part in parts)) as told:
            for part, one in zip(parts, made, strict=True):
                told(part.rows)
                yield one

    def summed(self, parts: Sequence[Part], work: Callable[[Part], tuple[Any, ...]]) -> tuple[Any, ...]:
        """The sum of what `work` makes of each part, entry by entry."""
        return summed(self.over(parts, work))

    def _in_threads(self, parts: Iterable[Part], work: Callable[[Part], Made]) -> Generator[Made]:
        count = self.threads or os.cpu_count() or 1
        with _ONE_AT_A_TIME, _one_thread_of_algebra(), ThreadPoolExecutor(count, "pass") as pool:
            under_way = deque[Any]()
            try:
                for part in parts:
                    under_way.append(pool.submit(work, part))
                    if len(under_way) >= AHEAD * count:  # so that what waits for its turn does not grow with the rows
                        yield under_way.popleft().result()
                while under_way:
                    yield under_way.popleft().result()
            finally:
                for future in under_way:
                    future.cancel()

    def _on_dask(self, parts: Sequence[Part], work: Callable[[Part], Made]) -> Generator[Made]:
        tasks = [Task(_on_a_worker, (work, part), number) for number, part in enumerate(parts)]
        waiting: dict[int, Made] = {}
        following = 0
        try:
            with cluster(self.dask) as found:
                assert found is not None
                with closing(found.completed(tasks)) as results:
                    for done in results:
                        waiting[done.task.about] = done.result()
                        while following in waiting:
                            yield waiting.pop(following)
                            following += 1
        except (ConnectionError, LostError) as error:
            raise PassError(f"A pass over the rows was not made on the Dask cluster. {error}") from None


def summed(parts: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Entry by entry, one behind the other."""
    total: tuple[Any, ...] | None = None
    for part in parts:
        total = part if total is None else tuple(one + other for one, other in zip(total, part, strict=True))
    assert total is not None, "there are no parts"
    return total


# ---------------------------------------------------------------- one thread of linear algebra each

# A pass has all cores, and its threads set how many linear algebra takes for the whole process: so there is one at a time.
_ONE_AT_A_TIME = threading.Lock()


@contextmanager
def _one_thread_of_algebra() -> Iterator[None]:
    """A product of matrices by several threads would wait for the others' cores, and be rounded by how many there are."""
    with _limits(1):
        yield


def _limits(threads: int) -> Any:
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise ImportError("A pass over rows needs threadpoolctl: pip install 'roundelay[batches]'.") from None
    return threadpool_limits(threads)


def _on_a_worker(work: Callable[[Part], Made], part: Part) -> Made:
    _for_good()
    return work(part)


@lru_cache(maxsize=1)
def _for_good() -> Any:
    """On a worker: tasks of several threads overlap, and none may find the limit lifted by another."""
    return _limits(1)


# ---------------------------------------------------------------- how far it is


@contextmanager
def _told(tell: Tell | None, total: int) -> Iterator[Callable[[int], None]]:
    begun, done = time.monotonic(), 0
    bar = Bar("reading rows")

    def told(rows: int) -> None:
        nonlocal done
        done += rows
        if tell is None:
            bar(done, total)
        elif time.monotonic() - begun > PATIENCE:
            tell(done, total)

    try:
        yield told
    finally:
        if tell is not None and time.monotonic() - begun > PATIENCE:
            tell(total, total)
        bar.close()
