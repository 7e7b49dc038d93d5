from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

# On a loaded machine everything may take long, making examples too.
settings.register_profile("anywhere", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("anywhere")

# What `pytest --quick` leaves out: rings of real processes, browsers, other interpreters, long searches and attacks, the
# reference's own tests, the paper's whole study.
SLOW = (
    "adversary",
    "agents/test_bad_links.py",
    "agents/test_by_batches.py",
    "agents/test_capture.py",
    "agents/test_chaos.py",
    "agents/test_damaged_journal.py",
    "agents/test_doctor.py",
    "agents/test_endings.py",
    "agents/test_handshake.py",
    "agents/test_heavy.py",
    "agents/test_leaving_epochs.py",
    "agents/test_membership.py",
    "agents/test_page_in_browser.py",
    "agents/test_processes.py",
    "agents/test_reaching_each_other.py",
    "agents/test_rehearsal.py",
    "agents/test_ring_cli.py",
    "agents/test_schedules.py",
    "agents/test_status_command.py",
    "agents/test_trouble.py",
    "agents/test_ways.py",
    "agents/test_wishes.py",
    "auditing",
    "batches/test_passes.py",
    "cli",
    "comparison/test_on_dask.py",
    "engine/test_cache.py",
    "engine/test_own_method.py",
    "engine/test_stopping.py",
    "docs",
    "examples",
    "experiments",
    "networks",
    "plots",
    "privacy/test_accounting_audit.py",
    "privacy/test_accounting_numbers.py",
    "privacy/test_defended.py",
    "reference",
    "test_contributing.py",
    "test_deployment.py",
    "test_release.py",
)

# What a shell may have set: how wide and how coloured programs print, and who else is asked for what is on this machine.
FROM_THE_SHELL = ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "MPLBACKEND", "PYTHONWARNINGS")
PROXIES = tuple(f"{kind}_proxy" for kind in ("http", "https", "grpc", "all"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """For the inner loop."""
    parser.addoption("--quick", action="store_true", help="leave out what takes long: tests/conftest.py says what")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whether a file or folder is left out."""
    slow = collection_path.relative_to(Path(__file__).parent).as_posix() in SLOW
    return True if slow and config.getoption("quick") else None


def pytest_configure() -> None:
    """The same surroundings wherever the tests are started."""
    for name in (*FROM_THE_SHELL, *PROXIES, *map(str.upper, PROXIES)):
        os.environ.pop(name, None)
    os.umask(0o022)
    # Compiling makes millions of objects that stay: looking through all of them again and again takes a tenth of it.
    gc.set_threshold(50_000, 20, 50)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits for the whole quick study comes first, so that at the end no process waits for another at it."""
    items.sort(key=lambda item: "found" not in getattr(item, "fixturenames", ()))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C as in a terminal, here and in what is started here: tests that run in the background have it ignored."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.fixture
def in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process looks in which the cells of a notebook run."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None)))
