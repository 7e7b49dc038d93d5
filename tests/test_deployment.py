"""What runs a site for months: the container image is built and takes part in a ring, and systemd reads the unit."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roundelay.cli.agent import STOPPED
from roundelay.cli.exits import BAD_INPUT, INTERRUPTED
from tests.agents.processes import PATIENCE, wait_until
from tests.agents.small_ring import small_ring

PROJECT = Path(__file__).parent.parent
UNIT = PROJECT / "deploy" / "roundelay-agent@.service"
CONTAINERFILE = PROJECT / "Containerfile"
BASE = "ROUNDELAY_BASE_IMAGE"  # names an image with Python where the usual one can't be fetched
IMAGE = "localhost/roundelay-tested"


def lines_of(path: Path) -> list[str]:
    """The instructions of a Containerfile, each in one line."""
    text = "".join(line for line in path.read_text().splitlines(keepends=True) if not line.startswith("#"))
    return [" ".join(line.split()) for line in text.replace("\\\n", " ").splitlines() if line.strip()]


# ---------------------------------------------------------------- the container


def buildah(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["buildah", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, **more
    )


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A container of the image, as it is built from the Containerfile."""
    if shutil.which("buildah") is None:
        pytest.skip("there is no buildah to build the image with (Debian: buildah)")
    if os.geteuid() != 0:
        pytest.skip("only root may give a container's folder to the container's user")
    (default,) = re.findall(r"^ARG BASE=(\S+)$", CONTAINERFILE.read_text(), re.M)
    base = os.environ.get(BASE, default)
    if buildah("inspect", "--type", "image", base).returncode and (pulled := buildah("pull", base)).returncode:
        why = (pulled.stderr.strip().splitlines() or ["no reason given"])[-1]
        pytest.skip(f"the base image {base} can't be had, and {BASE} names no other ({why})")
    settings = tmp_path_factory.mktemp("pip") / "pip.conf"
    certificates = os.environ.get("SSL_CERT_FILE", "")  # a network may have an authority of its own
    settings.write_text("[global]\ncert = /tmp/authorities.pem\n" if certificates else "")
    authorities = ["--volume", f"{certificates}:/tmp/authorities.pem:ro"] if certificates else []
    built = buildah(
        "bud", "--format", "docker", "--isolation", "chroot", "--network", "host", "--build-arg", f"BASE={base}",
        *authorities, "--volume", f"{settings}:/etc/pip.conf:ro", "--tag", IMAGE, str(PROJECT),
    )  # fmt: skip
    assert built.returncode == 0, built.stderr[-3000:]
    name = buildah("from", IMAGE).stdout.strip()
    yield name
    buildah("rm", name)
    buildah("rmi", IMAGE)


def inside(container: str, folder: Path, *command: str) -> list[str]:
    """The words that run a command in the container, as its own user, with a folder as its volume."""
    return ["buildah", "run", "--isolation", "chroot", "--network", "host", "--volume", f"{folder}:/site", container,
            "--", *command]  # fmt: skip


def test_the_image_takes_part_in_a_ring_as_nobody_special(container: str, tmp_path: Path) -> None:
    config = json.loads(buildah("inspect", container).stdout)["Docker"]["config"]
    assert config["User"] == "10001:10001" and list(config["Volumes"]) == ["/site"] and config["WorkingDir"] == "/site"
    entry, health = config["Entrypoint"], config["Healthcheck"]["Test"]
    assert health[0] == "CMD"
    # buildah without a runtime lays an empty volume over the folder; podman and docker take the folder for the volume.
    assert buildah("config", "--volume", "/site-", container).returncode == 0

    empty = tmp_path / "empty"
    empty.mkdir()
    os.chown(empty, 10001, 10001)

    def said(*command: str, folder: Path = empty) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            inside(container, folder, *command), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )

    assert said("id", "-u").stdout.strip() == "10001"
    for place in ("/opt/roundelay/new", "/etc/new", "/new"):
        assert "Permission denied" in said("touch", place).stderr
    assert said(*entry, *config["Cmd"]).stdout.startswith("Usage: roundelay")
    with small_ring(tmp_path / "ring") as ring:
        inner, *others = ring.seats
        shutil.copy(ring.ring, inner.folder / "ring.toml")
        for path in [inner.folder, *inner.folder.rglob("*")]:
            os.chown(path, 10001, 10001)
        assert said(*health[1:], folder=inner.folder).returncode == 2  # nothing has run there yet
        agent = [
            *entry,
            "agent",
            "--folder",
            "/site",
            "--ring",
            "/site/ring.toml",
            "--data",
            "/site/rows.csv",
            "--no-page",
        ]
        with open(tmp_path / "output.txt", "wb") as output:
            process = subprocess.Popen(
                inside(container, inner.folder, *agent), stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        try:
            wait_until(
                lambda: process.poll() is not None or said(*health[1:], folder=inner.folder).returncode == 0,
                "the agent in the container is healthy",
            )
            for seat in others:
                ring.start(seat)
            assert process.wait(PATIENCE) == 0, (tmp_path / "output.txt").read_text()
        finally:
            process.kill()
            process.wait()
        wait_until(lambda: all(seat.model.exists() for seat in others), "the others have their models")
        model = inner.folder / "runs" / ring.plan.run / "model.json"
        assert json.loads(model.read_text())["model"] == json.loads(others[0].model.read_text())["model"]
        assert model.stat().st_uid == 10001
        healthy = said(*health[1:], folder=inner.folder)
        assert healthy.returncode == 0 and "has finished" in healthy.stdout
        examined = said(*entry, "doctor", "--folder", "/site", "--json", folder=inner.folder)
        found = json.loads(examined.stdout)["findings"]
        assert not [one for one in found if one["remedy"] and one["about"] in ("versions", "permissions", "clock")]


def test_what_the_containerfile_names_is_there() -> None:
    """What can be said of it without building it; whether it builds is shown above, where there is a builder."""
    lines = lines_of(CONTAINERFILE)
    last = lines[max(place for place, line in enumerate(lines) if line.startswith("FROM ")) :]
    (user,) = (line for line in last if line.startswith("USER "))
    assert not {"0", "root"} & set(user.removeprefix("USER ").split(":"))
    assert last.index(user) < last.index('ENTRYPOINT ["roundelay"]') and not any(
        line.startswith("RUN ") for line in last
    )
    installs = [line for line in lines if "pip install" in line]
    assert installs and all("--require-hashes" in part or "--no-deps" in part
                            for line in installs for part in line.split("&&") if "pip install" in part)  # fmt: skip
    for line in lines:
        if line.startswith("COPY ") and "--from" not in line:
            assert all((PROJECT / word).exists() for word in line.split()[1:-1]), line
            kept = (PROJECT / ".containerignore").read_text().splitlines()
            assert all(f"!{word}" in kept for word in line.split()[1:-1]), line
    (health,) = (json.loads(line.partition(" CMD ")[2]) for line in last if line.startswith("HEALTHCHECK "))
    said = subprocess.run(
        [sys.executable, "-m", "roundelay.cli", *health[1:-2], "--help"], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0 and "--folder" in said.stdout


# ---------------------------------------------------------------- systemd


def unit() -> dict[str, list[tuple[str, str]]]:
    """The settings of the unit by section; some stand there more than once."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for line in UNIT.read_text().splitlines():
        if line.startswith("["):
            settings = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            settings.append((key, value))
    return sections


def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze to read the unit (Debian: systemd)")
    # It looks for the program too, which is installed nowhere here.
    text = UNIT.read_text().replace("/opt/roundelay/bin/roundelay", sys.executable)
    path = tmp_path / UNIT.name
    path.write_text(text)
    said = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False)
    ours = [line for line in said.stderr.splitlines() if "roundelay" in line]
    assert said.returncode == 0 and not ours, said.stderr
    path.write_text(text.replace("Restart=on-failure", "Restart=perhaps"))
    said = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False)
    assert "perhaps" in said.stderr  # it does look


def test_the_unit_restarts_what_can_go_on_and_nothing_else() -> None:
    service = dict(unit()["Service"])
    assert service["Restart"] == "on-failure"
    assert set(service["RestartPreventExitStatus"].split()) == {str(BAD_INPUT), str(STOPPED)}
    assert service["SuccessExitStatus"] == str(INTERRUPTED)
    assert service["NoNewPrivileges"] == "yes" and service["ProtectSystem"] == "strict" and service["UMask"] == "0077"
    assert service["User"] not in ("", "root") and service["CapabilityBoundingSet"] == ""
    (program, *words) = shlex.split(service["ExecStart"])
    folder = words[words.index("--folder") + 1]
    assert service["ReadWritePaths"] == folder and service["StateDirectory"].split()[-1] == folder.removeprefix(
        "/var/lib/"
    )
    known = subprocess.run(
        [sys.executable, "-m", "roundelay.cli", "agent", "--help"], capture_output=True, text=True, check=False
    ).stdout
    assert program.endswith("/roundelay") and words[0] == "agent"
    assert all(word in known for word in words if word.startswith("--"))
