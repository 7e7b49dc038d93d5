"""A page for a privacy officer that is made of hostile words: nothing in it runs, leads anywhere or moves a cursor, and all of it is words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from roundelay.agents.agreement.plan import Column, Task
from roundelay.agents.site.disclosure import Disclosure, disclosure, document_of
from roundelay.cli import disclose as command
from roundelay.shown.document import Document, as_html
from roundelay.shown.markup import Markup
from roundelay.shown.pdf import as_pdf
from tests.agents.hospitals import Hospitals

pypdf = pytest.importorskip("pypdf")

NOW = datetime(2026, 3, 4, tzinfo=UTC)
SCRIPT = '<script>alert(1)</script><img src=x onerror=alert(1)>" onmouseover="alert(1)'
ACTION = ") /OpenAction << /S /JavaScript /JS (app.alert\\(1\\)) >> endobj [x](https://example.org) **b** __u__"
TERMINAL = "\x1b]8;;https://example.org\x07All is well\x1b]8;;\x07\x1b[2J\r\u202eevil"
HOSTILE = f"{SCRIPT} {ACTION} {TERMINAL}"
# Everything by which a page could run something, or lead somewhere.
TAGS = {"html", "head", "meta", "title", "style", "body", "main", "header", "section", "footer", "h1", "h2", "p", "dl", "dt", "dd",
        "div", "span", "table", "caption", "thead", "tbody", "tr", "th", "td"}  # fmt: skip
ATTRIBUTES = {
    "lang",
    "charset",
    "http-equiv",
    "content",
    "name",
    "class",
    "id",
    "scope",
    "tabindex",
    "role",
    "aria-label",
    "data-head",
}
RUNS = {
    "/JS",
    "/JavaScript",
    "/OpenAction",
    "/AA",
    "/A",
    "/Launch",
    "/URI",
    "/Annots",
    "/EmbeddedFiles",
    "/AcroForm",
    "/RichMedia",
    "/Names",
    "/GoToR",
}


def poisoned(value: Any) -> Any:
    """The same with every word in it hostile."""
    if isinstance(value, Enum) or (not isinstance(value, str | tuple) and not is_dataclass(value)):
        return value
    if isinstance(value, str):
        return value if value in ("held", "broken", "masks", "none", "the fit", "before the fit") else HOSTILE
    if isinstance(value, tuple):
        return tuple(map(poisoned, value))
    return replace(value, **{each.name: poisoned(getattr(value, each.name)) for each in fields(value)})  # type: ignore[type-var]


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disclosure:
    """A disclosure that says nothing but hostile words."""
    hospitals = Hospitals(tmp_path, monkeypatch)
    found = disclosure(hospitals.plan(), NOW, hospitals.folder / "Oslo")
    return poisoned(replace(found, findings=("x",), refused=("x",)))  # type: ignore[no-any-return]


class Elements(HTMLParser):
    """The elements of a page, their attributes, and the words between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words += data


def test_hostile_words_are_words_in_html(hostile: Disclosure) -> None:
    found = Elements(as_html(document_of(hostile)))
    assert found.tags <= TAGS and found.attributes <= ATTRIBUTES
    assert SCRIPT in found.words and ACTION in found.words
    assert not {"\x1b", "\x07", "\u202e", "\r"} & {*found.words}
    # Where words are taken for markup, these very words are elements.
    control = Elements(as_html(replace(document_of(hostile), title=Markup(HOSTILE))))
    assert {"script", "img"} <= control.tags and "onerror" in control.attributes


def keys_of(pdf: bytes) -> set[str]:
    """The names of all entries of all objects of a PDF, whoever refers to them; that it opens at a page of its own is none that does anything."""
    reader = pypdf.PdfReader(BytesIO(pdf))
    found: set[str] = set()

    def look(one: Any) -> Iterator[Any]:
        if isinstance(one, dict):
            found.update(name for name, value in one.items() if name != "/OpenAction" or not isinstance(value, list))
            yield from one.values()
        elif isinstance(one, list):
            yield from one

    left = [reader.get_object(number) for number in range(1, len(reader.xref[0]) + 1)] + [reader.trailer]
    while left:
        left += [each for each in look(left.pop()) if isinstance(each, dict | list)]
    return found


def test_hostile_words_are_words_in_a_pdf(hostile: Disclosure) -> None:
    made = as_pdf(document_of(hostile))
    keys = keys_of(made)
    assert "/Contents" in keys and "/FontFile2" in keys and not keys & RUNS
    reader = pypdf.PdfReader(BytesIO(made))
    words = "".join("".join(page.extract_text() for page in reader.pages).split())
    for one in (SCRIPT, ACTION):
        assert "".join(one.split()) in words
    assert not {"\x1b", "\x07", "\u202e"} & {*words}
    assert "".join(HOSTILE.split("\x1b")[0].split()) in "".join((reader.metadata.title or "").split())


def test_no_word_is_the_number_of_pages_and_none_is_too_long_for_one() -> None:
    facts = (("{nb} rows", "age {nb}"), ("W" * 3_000, "two words " * 3_000), ("漢" * 900, "end"))
    document = Document("{nb}", "of {nb}", (), facts, (), "{nb}", datetime(2026, 1, 1, tzinfo=UTC))
    pages = pypdf.PdfReader(BytesIO(as_pdf(document))).pages
    read = [page.extract_text() for page in pages]
    text = "".join(read)
    assert "{nb} rows" in text and "age {nb}" in text and text.startswith("{nb}")
    assert (text.count("W"), text.count("two"), text.count("[")) == (3_000, 3_000, 900)
    assert all(f"page {number} of {len(pages)}" in one for number, one in enumerate(read, start=1)) and len(pages) > 5


def test_a_pdf_that_leads_somewhere_is_seen() -> None:
    """The positive control: the same look at a file with a link, and with a script."""
    from fpdf import FPDF

    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("helvetica")
    pdf.cell(text="x", link="https://example.org")
    assert keys_of(bytes(pdf.output())) & RUNS >= {"/Annots", "/URI"}


def test_hostile_words_move_no_cursor(hostile: Disclosure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "read_plan", lambda ring: None)
    monkeypatch.setattr("roundelay.agents.site.disclosure.disclosure", lambda *_: hostile)
    from roundelay.cli.app import app

    said = CliRunner().invoke(app, ["disclose", str(tmp_path / "ring.toml")])
    assert said.exit_code == 1 and "alert(1)" in said.stdout
    assert not {"\x1b", "\x07", "\u202e", "\r"} & {*said.stdout}


def test_columns_of_a_ring_file_are_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that a planner can really put into a signed ring file."""
    hospitals = Hospitals(tmp_path, monkeypatch)
    columns = tuple(Column(name) for name in ("<script>alert(1)</script>", "年齢", "עברית"))
    ring = hospitals.plan().plan
    signed = hospitals.signed(replace(ring, task=Task("least_squares", columns[:2], columns[2])), "Oslo")
    document = document_of(disclosure(signed, NOW, hospitals.folder / "Oslo"))
    found = Elements(as_html(document))
    assert found.tags <= TAGS and "<script>alert(1)</script>" in found.words and "年齢" in found.words
    reader = pypdf.PdfReader(BytesIO(as_pdf(document)))
    words = "".join("".join(page.extract_text() for page in reader.pages).split())
    # The font has no such letters: they are told by their numbers, not left out.
    assert "<script>alert(1)</script>" in words and "[U+5E74][U+9F62]" in words
    assert "עברית" in words  # whoever reads a PDF takes what is written from right to left to stand so on the page
