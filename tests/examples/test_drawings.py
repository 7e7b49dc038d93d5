"""The drawings of docs/concepts.md: they are those that the script makes, can be read on a telephone by day and by night, and say what is so."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def script() -> ModuleType:
    specification = importlib.util.spec_from_file_location("drawings", ROOT / "scripts" / "drawings.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["drawings"] = module
    specification.loader.exec_module(module)
    return module


DRAWINGS: Any = script()
NAMES = sorted(DRAWINGS.DRAWINGS)


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_is_the_one_that_the_script_makes_and_stands_on_the_page_with_words_in_its_place(name: str) -> None:
    stored = (ROOT / "docs" / "figures" / f"{name}.svg").read_text(encoding="utf-8")
    assert stored == DRAWINGS.DRAWINGS[name]().svg(), "run python scripts/drawings.py"
    root = ElementTree.fromstring(stored)
    assert root.findtext(f"{SVG}title") and len(root.findtext(f"{SVG}desc") or "") > 80
    page = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    (alternative,) = re.findall(rf"!\[([^\]]+)\]\(figures/{name}\.svg\)", page)
    assert len(alternative) > 80


@pytest.mark.parametrize("name", NAMES)
def test_words_are_large_enough_and_stay_on_the_card(name: str) -> None:
    """DejaVu is wider than what most screens have; at the width of a telephone nothing is scaled down by more than a tenth."""
    card = DRAWINGS.DRAWINGS[name]()
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", DRAWINGS.LOOKS)]
    assert min(sizes) >= 12
    for text in ElementTree.fromstring(card.svg()).iter(f"{SVG}text"):
        looks = text.get("class", "").split()
        family = "DejaVu Sans Mono" if "number" in looks else "DejaVu Sans"
        font = FontProperties(family=family, weight="bold" if "strong" in looks else "normal")
        extent = TextPath((0, 0), text.text or "", size=12 if "small" in looks else 13, prop=font).get_extents().width
        x, y = float(text.get("x", "nan")), float(text.get("y", "nan"))
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[text.get("text-anchor", "")] * extent
        assert left > 4 and left + extent < DRAWINGS.WIDTH - 4 and 12 < y < card.height - 6, text.text


@pytest.mark.parametrize("scheme", ["DAY", "NIGHT"])
def test_letters_stand_out_from_the_paper(scheme: str) -> None:
    """By the WCAG's ratio of 4.5, also on the tint of one's own site."""
    colours = dict(re.findall(r"--(\w+): (#\w{6})", getattr(DRAWINGS, scheme)))
    letters = [name for name in colours if name not in ("paper", "edge", "tint")]
    assert len(letters) == 11
    for name in letters:
        for ground in ("paper", "tint") if name in ("ink", "quiet") else ("paper",):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)


def contrast(one: str, other: str) -> float:
    low, high = sorted(luminance(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_masks_of_the_drawing_cancel_and_the_page_has_its_words() -> None:
    added = [mask for site in range(4) for mask in DRAWINGS.masks_of(site)]
    for number, mask in enumerate(DRAWINGS.MASKS.values()):
        assert sorted(one for pair, one in added if pair == number) == [-mask, mask]
    words = DRAWINGS.words_of_lap()
    assert words[-1] == sum(DRAWINGS.ANSWERS) and not set(words[:-1]) & {*DRAWINGS.ANSWERS, words[-1]}
    page = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    assert f"are {', '.join(f'{word:02d}' for word in words[:-1])} and {words[-1]:02d}" in page
