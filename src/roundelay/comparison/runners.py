"""Many tasks at once: in processes of this machine, on a Dask cluster, or one after another. There is no other way in the house.

Whoever runs tasks hands over an iterator, of which no more is taken than is soon begun, and is given each result the
moment it is there. A worker that is killed costs what it was working on, which is begun again elsewhere.
"""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from roundelay.engine.drive import deferred_interrupt

# (what, done, total): who wants to know how far the work is.
Told = Callable[[str, int, int], None]

# The address of a Dask scheduler, or a distributed.Client.
Dask = Any

# How often a task alone in a process may find its process dead, before it is given up.
MOST_DEATHS = 3
# So many tasks are handed over for each that runs, so that none waits for the next.
AHEAD = 2
# A cluster that grows with its work must see some.
LEAST_AHEAD = 64
# How many shared objects a process keeps, and a cluster.
KEPT, HELD = 8, 64


class LostError(Exception):
    """The process that ran the task died, again and again."""


@dataclass(frozen=True, eq=False)
class Shared:
    """An argument of several tasks, sent once to where they run."""

    value: Any
    key: str = field(default_factory=lambda: uuid4().hex)


@dataclass(frozen=True, eq=False)
class Task:
    """`work(*arguments)`; tasks of one key are the same task. `about` is for whoever made it, and stays with them."""

    work: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    about: Any = None
    key: str = field(default_factory=lambda: uuid4().hex)


@dataclass(frozen=True, eq=False)
class Done:
    """What came of a task: a value, or an error."""

    task: Task
    value: Any = None
    error: BaseException | None = None

    def result(self) -> Any:
        """The value; an error is raised."""
        if self.error is not None:
            raise self.error
        return self.value


class Runner(Protocol):
    """What tasks are run by."""

    def completed(self, tasks: Iterable[Task]) -> Generator[Done]:
        """What came of each task, in the order in which they end; who closes it ends the others."""


@contextmanager
def completed(tasks: Iterable[Task], processes: int | None = None, dask: Dask = None) -> Iterator[Iterator[Done]]:
    """What came of each task, as they end: on a Dask cluster, or in so many processes, by default one for each core; 0 is this one.

    Who leaves early ends what is under way.
    """
    with runner(processes, dask) as chosen, closing(chosen.completed(tasks)) as results:
        yield results


@contextmanager
def runner(processes: int | None = None, dask: Dask = None) -> Iterator[Runner]:
    """Where tasks are run: `dask` is the address of a scheduler or a client, `processes` how many there are without one."""
    if dask is not None:
        with cluster(dask) as found:
            assert found is not None
            yield found
    elif processes == 0:
        yield InTurn()
    else:
        with Processes(os.cpu_count() or 1 if processes is None else processes) as pool:
            yield pool


# ---------------------------------------------------------------- one after another


class InTurn:
    """This very process."""

    def completed(self, tasks: Iterable[Task]) -> Generator[Done]:
        """One after another."""
        for task in tasks:
            arguments = [entry.value if isinstance(entry, Shared) else entry for entry in task.arguments]
            try:
                done = Done(task, task.work(*arguments))
            except Exception as error:
                done = Done(task, error=error)
            yield done


# ---------------------------------------------------------------- processes of this machine


@dataclass(frozen=True)
class _Stored:
    """Where a shared object is for the processes of this machine."""

    path: str


class Processes:
    """New interpreters on this machine. Ctrl-C is heeded by this process alone, which then ends the others.

    Where one of them is killed all are replaced, as the library has it. What was under way is begun again, one after another, so
    that a task of which a process dies is found out, and given up in the end.
    """

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._folder = tempfile.TemporaryDirectory(prefix="roundelay-")
        self._stored: dict[str, _Stored] = {}
        self._pool: ProcessPoolExecutor | None = None
        self._before: set[BaseProcess] = set()
        self._any = False  # whether any task ever ended

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._folder.cleanup()

    def completed(self, tasks: Iterable[Task]) -> Generator[Done]:
        """What came of each task, in the order in which they end."""
        coming, suspects = iter(tasks), list[Task]()
        under_way: dict[Future[Any], Task] = {}
        deaths: dict[str, int] = {}
        try:
            while True:
                if suspects:  # alone, so that it is known whose death it was
                    under_way = {self._submit(suspects[0]): suspects[0]}
                    alone = True
                else:
                    for task in itertools.islice(coming, max(0, AHEAD * self.processes - len(under_way))):
                        under_way[self._submit(task)] = task
                    alone = False
                if not under_way:
                    return
                ended, _ = wait(under_way, return_when=FIRST_COMPLETED)
                broken = []
                for future in ended:
                    task, error = under_way.pop(future), future.exception()
                    if isinstance(error, BrokenProcessPool):
                        broken.append(task)
                        continue
                    if alone:
                        suspects.pop(0)
                    self._any = True
                    yield Done(task, error=error) if error is not None else Done(task, future.result())
                if not broken:
                    continue
                self._end()
                if not self._any:
                    self._check_start()
                if not alone:
                    suspects = [*broken, *under_way.values()]
                    under_way = {}
                    continue
                deaths[broken[0].key] = deaths.get(broken[0].key, 0) + 1
                if deaths[broken[0].key] == MOST_DEATHS:
                    yield Done(suspects.pop(0), error=LostError(_killed(f"{MOST_DEATHS} times")))
        except BaseException:
            self._end(at_once=True)
            raise

    def _submit(self, task: Task) -> Future[Any]:
        arguments = tuple(self._store(entry) if isinstance(entry, Shared) else entry for entry in task.arguments)
        _pickled((task.work, arguments), "A task")
        # A process that is half started can't be ended quietly.
        with deferred_interrupt() as interrupt, _in_new_processes():
            if self._pool is None:
                self._pool = self._started()
            try:
                future = self._pool.submit(_with_stored, task.work, arguments)
            except BrokenProcessPool as error:  # since the last look
                future = Future()
                future.set_exception(error)
        if interrupt.asked:
            raise KeyboardInterrupt
        return future

    def _check_start(self) -> None:
        """Tell tasks that end their process from processes that can't be started."""
        try:
            self._submit(Task(_nothing)).result()
        except BrokenProcessPool:
            raise RuntimeError(
                'No worker process can be started. In a script, what uses them stands under `if __name__ == "__main__":`, since each imports '
                "the script; or use processes=0, this process alone."
            ) from None

    def _started(self) -> ProcessPoolExecutor:
        self._before = set(active_children())
        return ProcessPoolExecutor(self.processes, get_context("spawn"), _ignore_interrupts)

    def _store(self, shared: Shared) -> _Stored:
        """Where it is; those that were asked for long ago are gone: whatever is not begun yet was handed over lately."""
        stored = self._stored.pop(shared.key, None)
        if stored is None:
            path = Path(self._folder.name) / f"{uuid4().hex}.pickle"
            path.write_bytes(_pickled(shared.value, f"A {type(shared.value).__name__}"))
            stored = _Stored(str(path))
        self._stored[shared.key] = stored
        if len(self._stored) > HELD + 4 * AHEAD * self.processes:
            Path(self._stored.pop(next(iter(self._stored))).path).unlink()
        return stored

    def _end(self, at_once: bool = False) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        pool.shutdown(wait=False, cancel_futures=True)
        if at_once:
            for process in set(active_children()) - self._before:
                process.terminate()
        pool.shutdown(cancel_futures=True)


def _pickled(value: Any, what: str) -> bytes:
    """What another process can make the value of; where it can't, that is said before a process dies of it."""
    try:
        written = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"{what} can't be handed to another process ({error}): define its functions in a module, or use processes=0, this one."
        ) from None
    if _OF_MAIN in written and not hasattr(sys.modules["__main__"], "__file__"):
        raise ValueError(
            f"{what} has a class or a function in it that is defined in this notebook, which other processes can't import: define it in a module, "
            "or use processes=0, this process alone."
        )
    return written


# How the name of a notebook's own module is written there.
_OF_MAIN = b"\x8c\x08__main__"


def _nothing() -> None:
    """In a worker: it runs."""


def _with_stored(work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """In a worker: what is shared is read once."""
    return work(*(_read(entry.path) if isinstance(entry, _Stored) else entry for entry in arguments))


@lru_cache(maxsize=KEPT)
def _read(path: str) -> Any:
    """What the process that started this one has written to a folder of its own."""
    return pickle.loads(Path(path).read_bytes())


def _killed(often: str) -> str:
    return f"The process that ran it was killed, {often}: it may need more memory than there is, or ends its process."


# Each process is for one core: linear algebra by several threads would only wait for the others'. Dask has it so as well.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def _in_new_processes() -> Iterator[None]:
    """A process that is started meanwhile has interrupts blocked, so that it gets none before it ignores them; and one thread."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    blocks = hasattr(signal, "pthread_sigmask")  # not on Windows
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if blocks else set()
    os.environ.update({name: "1" for name, value in before.items() if value is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
        if blocks:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _ignore_interrupts() -> None:
    """In a worker, before its first work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


# ---------------------------------------------------------------- a Dask cluster


class Cluster:
    """A Dask cluster. Dask begins anew what a killed worker was at; where the scheduler is replaced at its address, this does.

    Dask gives up a task of whose workers several died, also where it only stood in the queue of a worker that died of another. So it is
    tried once more when all else is done, alone.

    What is shared is a task of its own rather than scattered: scattered data are gone with the worker that held them.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._held: dict[str, Any] = {}

    def completed(self, tasks: Iterable[Task]) -> Generator[Done]:
        """What came of each task, in the order in which they end."""
        from distributed import as_completed

        coming, under_way, places = iter(tasks), dict[str, tuple[Any, Task]](), self._places()
        suspects, alone = list[Task](), set[str]()
        ended: Any = as_completed(loop=self.client.loop, with_results=True, raise_errors=False)

        def submit(task: Task, again: str = "") -> None:
            future = self._submit(task, again)
            under_way[future.key] = future, task
            ended.add(future)

        try:
            for count in itertools.count(1):
                if count % LEAST_AHEAD == 0:
                    places = self._places()
                for task in itertools.islice(coming, max(0, places - len(under_way))):
                    submit(task)
                if not under_way and suspects:
                    suspect = suspects.pop(0)
                    alone.add(suspect.key)
                    submit(suspect, "-alone")
                if not under_way:
                    return
                future, value = next(ended)
                _, task = under_way.pop(future.key)
                if future.status == "cancelled":  # the scheduler is gone, or was begun anew
                    self._wait_for_the_scheduler()
                    submit(task, "-alone" if task.key in alone else "")
                    continue
                done = Done(task, error=_of_dask(value[1])) if future.status == "error" else Done(task, value)
                future.release()
                if isinstance(done.error, LostError) and task.key not in alone:
                    suspects.append(task)
                    continue
                yield done
        finally:
            if under_way and self.client.status == "running":
                self.client.cancel([future for future, _ in under_way.values()])

    def _places(self) -> int:
        """How many tasks are handed over before one of them has ended: clusters grow and shrink."""
        try:
            return max(LEAST_AHEAD, AHEAD * sum(self.client.nthreads().values()))
        except OSError:  # the scheduler is gone, which is seen by what is under way
            return LEAST_AHEAD

    def _submit(self, task: Task, again: str) -> Any:
        """Handed over; what Dask has given up under one name is another task to it under a longer one."""
        arguments = [self._hold(entry) if isinstance(entry, Shared) else entry for entry in task.arguments]
        return self.client.submit(task.work, *arguments, key=f"roundelay-{task.key}{again}", pure=False)

    def _hold(self, shared: Shared) -> Any:
        import dask

        held = self._held.get(shared.key)
        if held is None or held.status == "cancelled":
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
                held = self.client.submit(_itself, shared.value, key=f"roundelay-data-{shared.key}", pure=False)
        self._held.pop(shared.key, None)  # what was asked for last stands last
        self._held[shared.key] = held
        if len(self._held) > HELD:
            del self._held[next(iter(self._held))]
        return held

    def _wait_for_the_scheduler(self) -> None:
        """The client looks for it for as long as its own settings say."""
        while self.client.status == "connecting":
            time.sleep(0.05)
        if self.client.status != "running":
            raise ConnectionError(
                "The Dask scheduler is gone, and none came in its place: start it again and repeat the call, which computes what is missing."
            )


def _itself(value: Any) -> Any:
    """On a worker: what was sent."""
    return value


def _of_dask(error: BaseException) -> BaseException:
    """That a task has killed its workers is said as everywhere."""
    from distributed.scheduler import KilledWorker

    return LostError(_killed("also where nothing else ran")) if isinstance(error, KilledWorker) else error


@contextmanager
def cluster(dask: Dask) -> Iterator[Cluster | None]:
    """The cluster that was asked for; None where none was."""
    if dask is None:
        yield None
        return
    with _client(dask) as client:
        yield Cluster(client)


@contextmanager
def _client(dask: Dask) -> Iterator[Any]:
    """A client of one's own stays open; one of an address is closed in the end."""
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(
            "A Dask cluster needs the package distributed: install it by pip install 'roundelay[cluster]'."
        ) from None
    if not isinstance(dask, str):
        if not isinstance(dask, Client):
            raise ValueError(
                f"dask is a {type(dask).__name__}: give the address of a scheduler, or a distributed.Client."
            )
        yield dask
        return
    try:
        client = Client(dask, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"No Dask scheduler answers at {dask} ({error}): give its address, for instance tcp://192.0.2.7:8786."
        ) from None
    try:
        yield client
    finally:
        client.close()
