"""A document as a PDF: letters in it are letters, its fonts are in it, nothing in it runs, and it leads nowhere."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import bidirectional

from roundelay.shown.document import Document, Judged, Look, Note, Part
from roundelay.shown.numbers import printable
from roundelay.shown.table import Table

if TYPE_CHECKING:
    from fpdf import FPDF

FONT = "DejaVu Sans"
# What opens from one side closes from the other.
MIRRORED = str.maketrans("()[]{}<>", ")(][}{><")
# In millimetres of A4, and in points.
MARGIN, TEXT, SMALL, TABLE = 18.0, 9.5, 8.0, 7.5
ROOM = 55.0
# The widest letter of a table, and how many lines a row may have.
WIDEST, MOST_LINES = 2.8, 40
INK, MUTED, LINE, PAPER = (28, 32, 37), (92, 100, 110), (200, 205, 211), (255, 255, 255)
COLOURS: Mapping[Look, tuple[int, int, int]] = {
    "good": (0, 102, 74),
    "partly": (122, 79, 0),
    "bad": (160, 58, 0),
    "": INK,
}
TINTS: Mapping[Look, tuple[int, int, int]] = {
    "good": (226, 244, 238), "partly": (253, 241, 216), "bad": (253, 234, 223), "": (246, 247, 248),
}  # fmt: skip


def as_pdf(document: Document) -> bytes:
    """The whole document."""
    try:
        import fpdf  # noqa: F401
    except ImportError:
        raise ImportError("A PDF needs the package fpdf2: install it by pip install 'roundelay[pdf]'.") from None
    first = _Pages(document)
    first.drawn()
    return _Pages(document, first.pdf.pages_count).drawn()


class _Pages:
    """Writes a document page by page, of which there will be so many."""

    def __init__(self, document: Document, count: int = 0) -> None:
        from fpdf import FPDF

        class Pages(FPDF):
            """A4, with a line at the foot of each page."""

            def footer(self) -> None:
                """The last words, and which page it is."""
                self.set_y(-12.0)
                self.set_font(FONT, size=SMALL - 1.0)
                self.set_text_color(*MUTED)
                self.cell(0.0, 5.0, _written(self, f"{document.last_words} – page {self.page_no()} of {count}"))

        self.document = document
        self.pdf: FPDF = Pages(format="A4")
        self.pdf.alias_nb_pages("")  # else words of others would be taken for the number of pages
        for style, name in (("", "DejaVuSans.ttf"), ("B", "DejaVuSans-Bold.ttf")):
            self.pdf.add_font(FONT, style, _fonts() / name)
        self.pdf.set_margins(MARGIN, MARGIN, MARGIN)
        self.pdf.set_auto_page_break(True, margin=MARGIN)
        self.pdf.set_title(printable(document.title))
        self.pdf.set_creator("Roundelay")
        self.pdf.set_producer("Roundelay")
        self.pdf.set_lang("en-GB")
        self.pdf.set_creation_date(document.made or datetime.now(UTC))

    def drawn(self) -> bytes:
        """The bytes of the file."""
        pdf, document = self.pdf, self.document
        pdf.add_page()
        self._line(document.title, 17.0, "B", after=2.0)
        self._line(document.about, TEXT, after=2.0)
        for note in document.notes:
            self._part(note)
        self._facts(document.facts)
        for one in document.sections:
            if pdf.will_page_break(ROOM):  # no title is left alone at the foot of a page
                pdf.add_page()
            pdf.ln(4.0)
            self._line(one.title, 12.0, "B", after=1.5)
            for part in one.parts:
                self._part(part)
        return bytes(pdf.output())

    def _line(self, said: str, size: float, style: str = "", after: float = 1.5, colour: Any = INK) -> None:
        self.pdf.set_font(FONT, style, size)
        self.pdf.set_text_color(*colour)
        self.pdf.multi_cell(0.0, 0.5 * size, _written(self.pdf, said), align="L", new_x="LMARGIN", new_y="NEXT")
        self.pdf.ln(after)

    def _part(self, part: Part) -> None:
        if isinstance(part, str):
            self._line(part, TEXT)
        elif isinstance(part, Note):
            self._note(part)
        elif isinstance(part, Judged):
            self._table(part.table, part.looks)
        else:
            self._table(part, {})

    def _note(self, note: Note) -> None:
        pdf = self.pdf
        pdf.set_font(FONT, "B" if note.look == "bad" else "", TEXT)
        pdf.set_text_color(*COLOURS[note.look])
        pdf.set_fill_color(*TINTS[note.look])
        pdf.multi_cell(
            0.0, 0.5 * TEXT, _written(pdf, note.words), align="L", fill=True, padding=2, new_x="LMARGIN", new_y="NEXT"
        )
        pdf.ln(2.0)

    def _facts(self, facts: tuple[tuple[str, str], ...]) -> None:
        self._rows(facts, (38.0, 136.0), 2, {}, head=())

    def _table(self, table: Table, looks: Mapping[str, Look]) -> None:
        self.pdf.ln(1.0)
        rows = table.aligned("\N{NO-BREAK SPACE}", "")
        self._rows(rows, _widths(table), table.words, looks, table.header)
        if table.caption:
            self._line(table.caption, SMALL, colour=MUTED)

    def _rows(
        self, rows: tuple[tuple[str, ...], ...], widths: tuple[float, ...], of_words: int, looks: Mapping[str, Look], head: tuple[str, ...]
    ) -> None:  # fmt: skip
        from fpdf.enums import TableBordersLayout
        from fpdf.fonts import FontFace

        pdf = self.pdf
        pdf.set_font(FONT, size=TABLE)
        pdf.set_text_color(*INK)
        pdf.set_draw_color(*LINE)
        pdf.set_fill_color(*PAPER)
        align = tuple("LEFT" if place < of_words else "RIGHT" for place in range(len(widths)))
        with pdf.table(
            col_widths=widths, text_align=align, borders_layout=TableBordersLayout.HORIZONTAL_LINES if head else TableBordersLayout.NONE,
            line_height=0.5 * TABLE, padding=(0.8, 1.2, 0.8, 0.0), first_row_as_headings=bool(head),
            headings_style=FontFace(emphasis="BOLD", color=MUTED), wrapmode="WORD", width=sum(widths), align="LEFT",
        ) as shown:  # fmt: skip
            for number, cells in enumerate((head, *rows) if head else rows):
                written = (_written(pdf, cell) for cell in cells)
                for pieces in zip_longest(*map(_fitting, written, widths), fillvalue=""):
                    row = shown.row()
                    for place, (cell, piece) in enumerate(zip(cells, pieces, strict=True)):
                        bold = FontFace(emphasis="BOLD") if place == 0 and of_words and (number or not head) else None
                        style = FontFace(emphasis="BOLD", color=COLOURS[looks[cell]]) if cell in looks else bold
                        row.cell(piece, style=style)
        pdf.ln(2.0)


def _fitting(cell: str, width: float) -> list[str]:
    """A cell in pieces of which none is higher than a page: each goes on in a row below, between two words where it can."""
    lines = max(1, int(width / WIDEST))
    wrapper = textwrap.TextWrapper(
        lines * MOST_LINES, drop_whitespace=False, replace_whitespace=False, expand_tabs=False, break_on_hyphens=False
    )
    return wrapper.wrap(cell) or [cell]


def _widths(table: Table) -> tuple[float, ...]:
    """By how much there is to read in a column, so that none is narrower than its longest word."""
    room = 210.0 - 2.0 * MARGIN
    columns = list(zip(table.header, *table.rows, strict=True))
    letters = [max(sum(map(len, column)) / len(column), 1.0) ** 0.6 for column in columns]
    least = [1.75 * max(len(word) for cell in column for word in (cell.split() or [""])) + 3.0 for column in columns]
    least = [min(one, 0.3 * room) for one in least]
    left = room - sum(least)
    if left < 0.0:
        return tuple(room * one / sum(least) for one in least)
    return tuple(one + left * wish / sum(letters) for one, wish in zip(least, letters, strict=True))


def _written(pdf: FPDF, said: str) -> str:
    """Words as the fonts can write them: a letter that one of them lacks is told by its number, so that nothing is left out unseen.

    What is written from right to left stands so, its letters unjoined.
    """
    from fpdf.bidi import BidiParagraph
    from fpdf.enums import TextDirection

    fonts: Any = [*pdf.fonts.values()]
    shown = "".join(
        letter if all(ord(letter) in font.cmap for font in fonts) else f"[U+{ord(letter):04X}]"
        for letter in printable(said)
    )
    if not any(bidirectional(letter) in ("R", "AL") for letter in shown):
        return shown
    placed = BidiParagraph(shown, base_direction=TextDirection.LTR).get_reordered_characters()
    return "".join(one.character.translate(MIRRORED) if one.embedding_level % 2 else one.character for one in placed)


def _fonts() -> Path:
    import matplotlib

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf"
