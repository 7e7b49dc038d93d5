"""Keys closed by a passphrase: on disk nothing of the key is in the open, and a wrong one is refused in words."""

from __future__ import annotations

import base64
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from roundelay.agents.agreement.identity import _closed, load_identity, make_identity, renew_identity, save_identity
from roundelay.agents.agreement.passphrase import DESCRIPTOR, passphrase
from tests.agents.small_ring import small_ring

WORDS = "correct horse, Ålesund"


def roundelay(*words: str, told: str | None = None, folder: Path) -> Any:
    """A command in a process of its own, with the passphrase in a descriptor where there is one."""
    reading, writing = os.pipe()
    settings = {name: value for name, value in os.environ.items() if name != DESCRIPTOR}
    if told is not None:
        settings[DESCRIPTOR] = str(reading)
        os.write(writing, told.encode() + b"\nnot this line\n")
    os.close(writing)
    try:
        return subprocess.run(
            [sys.executable, "-m", "roundelay.cli", *words], cwd=folder, env=settings, pass_fds=[reading],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        os.close(reading)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In this process too the passphrase is in a descriptor."""
    reading, writing = os.pipe()
    os.write(writing, WORDS.encode())
    os.close(writing)
    monkeypatch.setenv(DESCRIPTOR, str(reading))
    passphrase.cache_clear()
    yield
    passphrase.cache_clear()
    os.close(reading)


def test_a_closed_key_is_not_in_the_open_and_opens_by_its_passphrase(tmp_path: Path, told: None) -> None:
    made = make_identity("Oslo")
    save_identity(tmp_path / "oslo", made, WORDS.encode())
    kept = (tmp_path / "oslo" / "key.pem").read_bytes()
    with pytest.raises(TypeError, match="encrypted"):
        load_pem_private_key(kept, None)
    secret = load_pem_private_key(made.key, None).private_numbers().private_value.to_bytes(32, "big")  # type: ignore[union-attr]
    assert secret in base64.b64decode(b"".join(made.key.splitlines()[1:-1]))
    assert secret not in base64.b64decode(b"".join(kept.splitlines()[1:-1]))
    assert load_identity(tmp_path / "oslo") == made
    # New keys are closed as the old ones are.
    renew_identity(tmp_path / "oslo", make_identity("Oslo"))
    assert b"ENCRYPTED" in (tmp_path / "oslo" / "keys-2" / "key.pem").read_bytes()
    assert load_identity(tmp_path / "oslo").key != made.key


def test_the_commands_ask_for_it(tmp_path: Path) -> None:
    made = ("ring", "init", "--folder", "oslo", "--name", "Oslo", "--passphrase")
    short = roundelay(*made, told="short", folder=tmp_path)
    assert short.returncode == 2 and "less than 8 bytes" in short.stderr and not (tmp_path / "oslo").exists()
    assert roundelay(*made, told=WORDS, folder=tmp_path).returncode == 0
    assert b"ENCRYPTED" in (tmp_path / "oslo" / "key.pem").read_bytes()
    who = ("ring", "identity", "--folder", "oslo")
    right = roundelay(*who, told=WORDS, folder=tmp_path)
    assert right.returncode == 0 and "Fingerprint" in right.stdout, right.stderr
    for words, sentence in (
        ("another one", "The passphrase does not open"),
        ("", "has no passphrase of 1 to 1000 bytes"),
        (None, "there is no terminal to ask for it"),
    ):
        said = roundelay(*who, told=words, folder=tmp_path)
        assert said.returncode == 2 and sentence in said.stderr and "Traceback" not in said.stderr, said.stderr
        assert WORDS not in said.stderr


def test_an_agent_with_a_closed_key_takes_part(tmp_path: Path) -> None:
    """The key signs, and opens the links; what is on disk stays closed."""
    with small_ring(tmp_path) as ring:
        oslo, *others = ring.seats
        plain = (oslo.folder / "key.pem").read_bytes()
        (oslo.folder / "key.pem").write_bytes(_closed(plain, WORDS.encode()))
        (tmp_path / "passphrase").write_text(f"{WORDS}\n")
        command = [sys.executable, "-m", "roundelay.cli", "agent", "--ring", str(ring.ring), "--folder", str(oslo.folder),
                   "--data", str(oslo.data), "--out", str(oslo.model)]  # fmt: skip
        for seat in others:
            ring.start(seat)
        with open(tmp_path / "passphrase") as words:
            said = subprocess.run(
                command, stdin=words, env=os.environ | {DESCRIPTOR: "0"}, capture_output=True, text=True, check=False
            )
        assert said.returncode == 0 and oslo.model.exists(), said.stderr
        kept = [path.read_bytes() for path in oslo.folder.rglob("*") if path.is_file()]
        assert not any(plain.splitlines()[1] in content or WORDS.encode() in content for content in kept)
        # Whoever has the folder alone starts no agent with it; and where it stands is said without a key.
        refused = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert refused.returncode == 2 and "there is no terminal to ask for it" in refused.stderr
        assert "has finished" in roundelay("ring", "status", "--folder", str(oslo.folder), folder=tmp_path).stdout


def test_it_is_asked_for_twice_at_a_terminal_and_not_shown(tmp_path: Path) -> None:
    def typed(*answers: str) -> tuple[int, str]:
        """What was on the screen of a terminal at which these were typed, and the exit code."""
        settings = [f"{name}={value}" for name, value in os.environ.items() if name != DESCRIPTOR]
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(tmp_path)
            os.execvp("env", ["env", "-i", *settings, sys.executable, "-m", "roundelay.cli", "ring", "init",
                              "--folder", "bergen", "--name", "Bergen", "--passphrase"])  # fmt: skip
        screen, waiting = b"", list(answers)
        while True:
            try:
                piece = os.read(terminal, 1000)
            except OSError:  # the other end has gone
                piece = b""
            if not piece:
                break
            screen += piece
            if waiting and screen.count(b": ") > len(answers) - len(waiting):
                os.write(terminal, waiting.pop(0).encode() + b"\n")
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), screen.decode()

    code, screen = typed(WORDS, "something else")
    assert code == 2 and "are not the same" in screen and not (tmp_path / "bergen").exists(), screen
    code, screen = typed(WORDS, WORDS)
    assert code == 0 and "Bergen has an identity" in screen and WORDS not in screen, screen
    assert roundelay("ring", "identity", "--folder", "bergen", told=WORDS, folder=tmp_path).returncode == 0


def test_a_passphrase_in_the_place_of_the_descriptor_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said stands in logs."""
    passphrase.cache_clear()
    monkeypatch.setenv(DESCRIPTOR, WORDS)
    with pytest.raises(ValueError, match="name an open file descriptor") as refused:
        passphrase()
    assert WORDS not in str(refused.value)
