import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from roundelay.cli.app import app

Invoke = Callable[..., Any]
SMALL = ("--agents", "8", "--density", "0.6", "--samples", "30", "--hops", "600", "--engine", "python")


@pytest.fixture
def invoke() -> Invoke:
    """The command line in this process: `invoke("simulate", "iadmm")`."""
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def shell() -> Invoke:
    """The command line in a process of its own."""
    return lambda *words: subprocess.run(
        [sys.executable, "-m", "roundelay.cli", *map(str, words)], capture_output=True, text=True, check=False
    )
