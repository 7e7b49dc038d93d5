"""The pages of the documentation as they stand in the repository: their blocks of code, words of code and links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
BESIDE = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
PAGES = (*BESIDE, *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")))


@dataclass(frozen=True)
class Block:
    """A block of a page: the word behind its fence, "" where it has none, and None where it is indented."""

    page: str
    line: int
    language: str | None
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@cache
def tokens(page: str) -> tuple[Token, ...]:
    """What Markdown makes of a page."""
    return tuple(MarkdownIt("commonmark").enable("table").parse((ROOT / page).read_text(encoding="utf-8")))


def blocks() -> Iterator[Block]:
    """All blocks of all pages but those of the site's own words."""
    for page in PAGES:
        for token in tokens(page):
            if token.type not in ("fence", "code_block") or token.info.startswith("{"):
                continue
            assert token.map is not None
            language = token.info if token.type == "fence" else None
            yield Block(page, token.map[0] + 1, language, token.content)


def code_words() -> Iterator[tuple[str, str]]:
    """What stands in backquotes, with its page."""
    for page in PAGES:
        for token in tokens(page):
            for child in token.children or ():
                if child.type == "code_inline":
                    yield page, child.content


def links(page: str) -> Iterator[str]:
    """Where links and pictures lead to."""
    for token in tokens(page):
        for child in token.children or ():
            for name in ("href", "src"):
                if child.attrGet(name) is not None:
                    yield str(child.attrGet(name))
