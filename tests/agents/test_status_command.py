"""`roundelay ring status`, while the agent runs, after it was killed or stopped, and after its run."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from roundelay.agents.agreement.disk import in_use, is_in_use
from roundelay.agents.site.whereabouts import RUNNING, WHEREABOUTS
from roundelay.cli.app import app
from tests.agents.processes import PATIENCE, wait_until
from tests.agents.small_ring import roundelay, small_ring


def told(folder: Path, *more: str) -> tuple[int, dict[str, Any]]:
    """What the command says in JSON, and its exit code."""
    said = CliRunner().invoke(app, ["ring", "status", "--folder", str(folder), *more, "--json"])
    return said.exit_code, json.loads(said.stdout) if said.stdout else {}


def in_words(folder: Path) -> tuple[int, str]:
    said = CliRunner().invoke(app, ["ring", "status", "--folder", str(folder)])
    assert "Traceback" not in said.output
    return said.exit_code, " ".join(said.output.split())


def test_an_agent_is_seen_running_killed_stopped_and_done(tmp_path: Path) -> None:
    with small_ring(tmp_path) as ring:
        oslo, bergen, tromso = ring.seats
        assert in_words(oslo.folder) == (
            2,
            f"No agent has run in {oslo.folder} yet: start one by roundelay agent, or name another folder.",
        )
        for seat in (oslo, bergen):
            ring.start(seat)

        def waits() -> bool:
            code, word = told(oslo.folder) if (ring.home_of(oslo) / WHEREABOUTS).exists() else (0, {"word": {}})
            links = {link["name"]: link["up"] for link in word["word"].get("links", ())}
            return code == 0 and links == {"Bergen": True, "Tromso": False}

        wait_until(waits, "Oslo has a link to Bergen and none to Tromso, whose agent is down")
        code, words = in_words(oslo.folder)
        assert code == 0 and f"Oslo takes part in the run {ring.plan.run}, epoch 0, with " in words, words
        assert "The link to Tromso is down." in words and "There is no model yet." in words
        assert (
            "It has the baton" in words
            or "It waits for the baton from" in words
            or "It handed the baton on to" in words
        )

        # The same agent runs on undisturbed, however often it is asked; and who is asked needs no key.
        (oslo.folder / "key.pem").rename(oslo.folder / "elsewhere.pem")
        for _ in range(20):
            assert told(oslo.folder, str(ring.ring))[0] == 0
        (oslo.folder / "elsewhere.pem").rename(oslo.folder / "key.pem")
        assert ring.processes["Oslo"].poll() is None

        ring.kill(oslo)
        code, words = in_words(oslo.folder)
        assert code == 1 and "Oslo is down" in words and "It died without a word: start it again" in words, words
        assert "The journal has" in words and "was last written at" in words

        ring.processes["Bergen"].send_signal(signal.SIGTERM)
        assert ring.processes.pop("Bergen").wait(PATIENCE) == 130
        code, words = in_words(bergen.folder)
        assert code == 1 and "Bergen is down" in words and "It was stopped by its operator." in words, words

        for seat in ring.seats:
            ring.start(seat)
        wait_until(lambda: ring.done() or bool(ring.failed()), "all sites have their models")
        assert not ring.failed()
        for seat in ring.seats:
            assert ring.processes[seat.name].wait(PATIENCE) == 0
            code, words = in_words(seat.folder)
            assert code == 0 and f"{seat.name} has finished" in words and "The 3 sites have found the best fit" in words
            assert f"The model is in {seat.model}." in words
        code, content = told(tromso.folder)
        assert code == 0 and not content["running"] and content["finished"] and content["model_there"]
        assert content["word"]["ended"] == "It has ended with its model."
        said = roundelay("ring", "status", "--folder", str(tromso.folder))
        assert said.returncode == 0 and "has finished" in said.stdout


def test_an_agent_that_could_not_go_on_says_why(tmp_path: Path) -> None:
    with small_ring(tmp_path) as ring:
        last = next(seat for seat in ring.seats if seat.name == ring.plan.members[-1].name)  # whom all others dial
        nowhere = "192.0.2.1:7443"  # an address of no machine
        ring.start(last, "--listen", nowhere)
        assert ring.processes.pop(last.name).wait(PATIENCE) == 4, (last.folder / "output.txt").read_text()
        code, words = in_words(last.folder)
        assert code == 1 and f"The address {nowhere} can't be listened on" in words, words


def test_what_was_left_may_be_spoilt(tmp_path: Path) -> None:
    home = tmp_path / "runs" / "00"
    home.mkdir(parents=True)
    (home / WHEREABOUTS).write_bytes(b'{"site": 3')
    code, words = in_words(tmp_path)
    assert code == 2 and "can't be read" in words and "start the agent again" in words


def test_whoever_looks_keeps_nobody_from_starting(tmp_path: Path) -> None:
    path = tmp_path / RUNNING
    assert not is_in_use(path)
    with in_use(path), in_use(path):  # two agents of one site: the journal tells them apart, not this
        assert is_in_use(path)
    assert not is_in_use(path)
