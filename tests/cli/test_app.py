import subprocess
import sys

import pytest

import roundelay
from tests.cli.conftest import Invoke


def test_it_says_its_version(shell: Invoke) -> None:
    said = shell("--version")
    assert (said.returncode, said.stdout, said.stderr) == (0, f"roundelay {roundelay.__version__}\n", "")


@pytest.mark.parametrize("command", ["demo", "simulate", "compare", "sweep", "tune", "field", "bench"])
def test_every_help_shows_an_example(invoke: Invoke, command: str) -> None:
    said = invoke(command, "--help")
    assert said.exit_code == 0
    example = said.stdout.partition("Example:\n")[2].splitlines()[0]
    assert example.strip().startswith(f"roundelay {command}")


def test_the_help_lists_commands_and_exit_codes(shell: Invoke) -> None:
    said = shell("--help")
    assert said.returncode == 0
    for word in ("demo", "simulate", "compare", "tune", "bench", "Example:", "Exit codes:", "130"):
        assert word in said.stdout


def test_an_unknown_command_is_bad_usage(shell: Invoke) -> None:
    said = shell("simulat")
    assert said.returncode == 2
    assert said.stdout == ""
    assert "simulat" in said.stderr and "Traceback" not in said.stderr


def test_the_help_waits_for_nothing_heavy() -> None:
    code = (
        "import sys, roundelay.cli\n"
        "sys.argv = ['roundelay', 'demo', '--help']\n"
        "try:\n    roundelay.cli.main()\n"
        "except SystemExit as done:\n    assert done.code == 0, done\n"
        "heavy = {'matplotlib', 'pandas', 'numba', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        # What an agent runs on, too: its attacks run in another process, and few rings have a regression.
        "import roundelay.agents.site.taking_part, roundelay.agents.site.meter\n"
        "heavy = {'matplotlib', 'pandas', 'numba', 'scipy.special', 'scipy.optimize', 'scipy.linalg'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
