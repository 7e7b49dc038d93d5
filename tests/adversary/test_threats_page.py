"""The table of threats names tests that are there, and every test of an adversary stands in it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threats.md").read_text()


def test_every_test_that_is_named_is_there() -> None:
    named = set(re.findall(r"`((?:tests/[a-z]+/)?test_\w+\.py)`", PAGE))
    assert len(named) > 20
    for name in sorted(named):
        places = (
            [ROOT / name] if "/" in name else [ROOT / "tests" / folder / name for folder in ("adversary", "agents")]
        )
        assert any(place.is_file() for place in places), name


def test_every_test_of_an_adversary_is_named() -> None:
    for path in sorted((ROOT / "tests" / "adversary").glob("test_*.py")):
        assert path.name in PAGE or path.name == Path(__file__).name, path.name


def test_every_control_that_is_named_is_there() -> None:
    named = set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", PAGE))
    assert len(named) > 25
    for file, test in sorted(named):
        assert f"def {test}(" in (ROOT / "tests" / "adversary" / file).read_text(), f"{file}::{test}"
