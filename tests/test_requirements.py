"""What a site installs: every package by its hashes, as pyproject.toml asks for it; and an audit that never passes unasked."""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).parent.parent
LOCKS = sorted((PROJECT / "requirements").glob("*.lock"))


def project() -> dict[str, Any]:
    return tomllib.loads((PROJECT / "pyproject.toml").read_text())


def asked_in(lock: Path) -> list[str]:
    """What pyproject.toml asks for, of what a lock file is for."""
    table = project()
    if lock.stem == "build":
        return list(table["build-system"]["requires"])
    extras = table["project"]["optional-dependencies"]
    return [*table["project"]["dependencies"], *extras["ring"], *extras["parquet"]]


def pinned(lock: Path) -> list[tuple[Requirement, list[str]]]:
    """The packages of a lock file, each with its hashes."""
    entries = lock.read_text().replace("\\\n", " ").splitlines()
    found = []
    for entry in entries:
        if entry.startswith("#") or not entry.strip():
            continue
        words, *hashes = re.split(r"\s+--hash=", entry)
        found.append((Requirement(words.strip()), hashes))
    return found


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_every_package_is_pinned_by_hashes_and_comes_from_no_named_place(lock: Path) -> None:
    packages = pinned(lock)
    assert len(packages) > 4
    for package, hashes in packages:
        assert re.fullmatch(r"==[^,*]+", str(package.specifier)), package
        assert package.url is None
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", one.strip()) for one in hashes), package
    assert "://" not in lock.read_text() and "index-url" not in lock.read_text()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_the_lock_is_within_what_the_project_asks_for(lock: Path) -> None:
    versions: dict[str, list[str]] = {}
    for package, _ in pinned(lock):
        versions.setdefault(canonicalize_name(package.name), []).append(str(package.specifier).removeprefix("=="))
    for asked in map(Requirement, asked_in(lock)):
        held = versions.get(canonicalize_name(asked.name), [])
        assert held, f"{asked.name} is not in {lock.name}: run scripts/lock.sh"
        assert all(asked.specifier.contains(version) for version in held), f"{asked}, but {held}: run scripts/lock.sh"


# ---------------------------------------------------------------- the audit


@pytest.fixture(scope="module")
def verdict() -> Any:
    return runpy.run_path(str(PROJECT / "scripts" / "audited.py"))["verdict"]


def report(*packages: dict[str, Any]) -> str:
    return json.dumps({"dependencies": list(packages), "fixes": []})


CLEAN = {"name": "xxhash", "version": "4.1.0", "vulns": []}
SKIPPED = {"name": "aiohttp", "skip_reason": "Dependency not found on PyPI and could not be audited: aiohttp (3.10.0)"}
HOLE = {
    "name": "aiohttp",
    "version": "3.10.0",
    "vulns": [{"id": "PYSEC-2026-2103", "fix_versions": ["3.13.4"], "aliases": [], "description": ""}],
}


def test_an_audit_says_what_it_found(verdict: Any) -> None:
    assert verdict("ring.lock", report(CLEAN), "") == (0, "ring.lock: no hole is known in its 1 packages.")
    code, words = verdict("ring.lock", report(CLEAN, HOLE, SKIPPED), "")
    assert code == 1 and "aiohttp 3.10.0 has PYSEC-2026-2103, mended in 3.13.4" in words


def test_an_audit_that_could_not_ask_does_not_read_as_one_that_found_nothing(verdict: Any) -> None:
    """pip-audit ends with "No known vulnerabilities found" and 0 where it has looked up no package at all."""
    code, words = verdict("ring.lock", report(CLEAN, SKIPPED), "No known vulnerabilities found")
    assert code == 0 and words.startswith("NOT AUDITED: 1 of the 2 packages of ring.lock") and "aiohttp" in words
    for nothing in ("", "{}", "not JSON"):
        code, words = verdict("ring.lock", nothing, "Traceback\nConnectionError: no such host")
        assert code == 0 and words.startswith("NOT AUDITED: ring.lock, since the database") and "no such host" in words
