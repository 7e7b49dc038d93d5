"""The drawings of docs/concepts.md: `python scripts/drawings.py` writes them to docs/figures; a test holds them against what is there.

Each is a card of its own paper, so that it can be read on any page, by day and by night, and is drawn for a screen of 360 pixels: nothing is smaller than 12.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from pathlib import Path

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
WIDTH = 360

LOOKS = """
text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 13px; fill: var(--ink) }
.small { font-size: 12px } .strong { font-weight: 600 } .quiet { fill: var(--quiet) } .said { fill: var(--said) } .seen { fill: var(--seen) } .safe { fill: var(--safe) }
.number { font-family: ui-monospace, Menlo, Consolas, monospace }
.paper { fill: var(--paper); stroke: var(--edge) } .site { fill: var(--paper); stroke: var(--ink); stroke-width: 1.5 } .mine { fill: var(--tint); stroke: var(--said); stroke-width: 2 }
.gone { stroke: var(--quiet); stroke-dasharray: 4 3 } .line { fill: none; stroke: var(--ink); stroke-width: 1.5 } .edge { stroke: var(--edge) }
.watched { fill: none; stroke: var(--seen); stroke-width: 3 } .watcher { fill: var(--seen); stroke: var(--seen) } .baton { fill: var(--said) } .cross { stroke: var(--seen); stroke-width: 2 }
.pair0 { fill: var(--p0) } .pair1 { fill: var(--p1) } .pair2 { fill: var(--p2) } .pair3 { fill: var(--p3) } .pair4 { fill: var(--p4) } .pair5 { fill: var(--p5) }
"""
DAY = (
    "--paper: #ffffff; --ink: #1f2328; --quiet: #59636e; --edge: #d0d7de; --tint: #e7f1fa; --said: #0a5ea8; --seen: #b3470b; --safe: #0f6b4f; "
    "--p0: #0a5ea8; --p1: #b3470b; --p2: #0f6b4f; --p3: #9b3a7a; --p4: #7a5c00; --p5: #5b4bb5"
)
NIGHT = (
    "--paper: #1a1e24; --ink: #e6e8ea; --quiet: #a3abb5; --edge: #444c56; --tint: #16324a; --said: #6cb6ff; --seen: #ff9a5c; --safe: #56d4a5; "
    "--p0: #6cb6ff; --p1: #ff9a5c; --p2: #56d4a5; --p3: #f09ad0; --p4: #e0bf4d; --p5: #b3a7ff"
)
HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" style="fill: var(--ink)"/></marker></defs>'
)

SITES = ("Oslo", "Bergen", "Tromsø", "Narvik", "Alta")


class Card:
    """A drawing in the making."""

    def __init__(self, title: str, said: str, height: float) -> None:
        self.title, self.said, self.height, self.parts = title, said, height, list[str]()

    def text(self, x: float, y: float, words: str, look: str = "", anchor: str = "start") -> None:
        """One line of words."""
        self.parts.append(f'<text x="{x:g}" y="{y:g}"{_class(look)} text-anchor="{anchor}">{escape(words)}</text>')

    def lines(self, x: float, y: float, lines: Iterable[str], look: str = "", anchor: str = "start") -> None:
        """Several, one under the other."""
        for number, words in enumerate(lines):
            self.text(x, y + 17 * number, words, look, anchor)

    def box(self, x: float, y: float, width: float, height: float, look: str = "site", corner: float = 6) -> None:
        """A box with round corners."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{corner:g}"{_class(look)}/>'
        )

    def dot(self, x: float, y: float, radius: float, look: str = "site") -> None:
        """A circle."""
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}"{_class(look)}/>')

    def path(self, where: str, look: str = "line", arrow: bool = False) -> None:
        """A line, straight or not."""
        head = ' marker-end="url(#head)"' if arrow else ""
        self.parts.append(f'<path d="{where}"{_class(look)}{head}/>')

    def ring(self, x: float, y: float, radius: float, sites: int) -> list[tuple[float, float]]:
        """Where the sites of a ring stand, the first one on top."""
        turns = [math.radians(360.0 * number / sites - 90.0) for number in range(sites)]
        return [(round(x + radius * math.cos(turn), 1), round(y + radius * math.sin(turn), 1)) for turn in turns]

    def svg(self) -> str:
        """The file."""
        style = f"svg {{ {DAY} }} @media (prefers-color-scheme: dark) {{ svg {{ {NIGHT} }} }}{LOOKS}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height:g}" width="{1.4 * WIDTH:g}" height="{1.4 * self.height:g}" '
            f'role="img" aria-labelledby="title said">\n<title id="title">{escape(self.title)}</title>\n<desc id="said">{escape(self.said)}</desc>\n'
            f"<style>{style}</style>\n{HEAD}\n"
            f'<rect class="paper" x=".5" y=".5" width="{WIDTH - 1}" height="{self.height - 1:g}" rx="10"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


def _class(look: str) -> str:
    return f' class="{look}"' if look else ""


def _round(x: float, y: float, radius: float, start: float, end: float) -> str:
    """An arc, clockwise, between two turns in degrees."""
    (x0, y0), (x1, y1) = (
        (x + radius * math.cos(t), y + radius * math.sin(t)) for t in (math.radians(start), math.radians(end))
    )
    return f"M{x0:.1f} {y0:.1f}A{radius:g} {radius:g} 0 0 1 {x1:.1f} {y1:.1f}"


def lap() -> Card:
    """What goes round, and the words for its way."""
    card = Card(
        "A lap",
        "Five sites on a ring. The baton goes from each to the next: one transmission is a hop, and a lap meets every site once.",
        300,
    )
    x, y, radius = 180, 150, 108
    for number in range(5):
        card.path(_round(x, y, radius, -90 + 72 * number + 19, -90 + 72 * (number + 1) - 20), arrow=True)
    for (at_x, at_y), name in zip(card.ring(x, y, radius, len(SITES)), SITES, strict=True):
        card.box(at_x - 32, at_y - 15, 64, 30, "mine" if name == "Tromsø" else "site")
        card.text(at_x, at_y + 4.5, name, "strong", "middle")
    turn = math.radians(-90 + 38)
    card.dot(x + radius * math.cos(turn), y + radius * math.sin(turn), 7, "baton")
    card.text(273, 68, "baton", "said")
    card.text(320, 168, "a hop", "quiet", "middle")
    card.text(x, 128, "one lap", "strong", "middle")
    card.lines(x, 148, ("meets every site once;", "the baton comes back", "with something of each"), "small", "middle")
    card.text(243, 281, "a visit: it adds its own", "said small", "middle")
    return card


# The example of a sealed lap, modulo 100: what each site answers, and the mask that each pair has agreed on.
ANSWERS = (21, 4, 15, 8)
MASKS = {(0, 1): 37, (0, 2): 84, (0, 3): 59, (1, 2): 12, (1, 3): 71, (2, 3): 93}


def masks_of(site: int) -> list[tuple[int, int]]:
    """What a site adds of each of its pairs, with the pair's number: the first of a pair adds the mask, the second takes it away."""
    return [
        (number, mask if site == pair[0] else -mask)
        for number, (pair, mask) in enumerate(MASKS.items())
        if site in pair
    ]


def words_of_lap() -> list[int]:
    """What each site hands on, modulo 100."""
    words, word = [], 0
    for site, answer in enumerate(ANSWERS):
        word = (word + answer + sum(mask for _, mask in masks_of(site))) % 100
        words.append(word)
    return words


def sealed_lap() -> Card:
    """Masks that cancel, with numbers that can be checked."""
    words, total = words_of_lap(), sum(ANSWERS)
    card = Card(
        "A sealed lap",
        "A sum of four answers under masks, modulo 100. "
        + " ".join(
            f"{name} answers {answer} and hands on {word}."
            for name, answer, word in zip(SITES, ANSWERS, words, strict=False)
        )
        + f" Each mask is added once and taken away once, so that the last word is the total, {total}.",
        286,
    )
    for x, head, anchor in (
        (16, "site", "start"),
        (112, "answer", "end"),
        (186, "masks of its pairs", "middle"),
        (344, "word sent on", "end"),
    ):
        card.text(x, 28, head, "quiet small", anchor)
    for site, (name, answer, word) in enumerate(zip(SITES, ANSWERS, words, strict=False)):
        y = 62 + 42 * site
        card.path(f"M12 {y - 25}H348", "edge")
        card.text(16, y, name, "strong")
        card.text(112, y, str(answer), "number safe", "end")
        for place, (pair, mask) in enumerate(masks_of(site)):
            card.text(160 + 42 * place, y, f"{'+' if mask > 0 else '−'}{abs(mask)}", f"number pair{pair}", "end")
        card.text(344, y, f"{word:02d}", "number strong seen" if site < 3 else "number strong safe", "end")
        card.path(f"M{278} {y - 4.5}H308", arrow=True)
    card.path("M12 205H348", "edge")
    card.text(16, 230, "sum", "strong")
    card.text(112, 230, str(total), "number strong safe", "end")
    card.text(202, 230, "each once + and once −: 0", "small", "middle")
    card.text(344, 230, f"{total}", "number strong safe", "end")
    card.lines(
        16,
        256,
        ("Three words that could be any numbers, then the total.", "Real words are modulo 2⁶⁴ or 2¹²⁸."),
        "small quiet",
    )
    return card


def visit() -> Card:
    """What comes in, what is solved, what goes out: of a token, and of a sum."""
    card = Card(
        "A visit",
        "Above, with a token: z comes in, the site solves its own problem near z, and z plus comes out; so both neighbours know what it added. "
        "Below, in sealed laps: a question comes in with words, the site adds its answer and its mask, and the words that come out differ by both.",
        392,
    )
    for top, title in ((16, "with a token"), (212, "in sealed laps")):
        card.text(16, top + 12, title, "strong")
        card.box(96, top + 24, 168, 100, "mine")
        card.path(f"M18 {top + 74}H90", arrow=True)
        card.path(f"M266 {top + 74}H340", arrow=True)
    card.text(52, 82, "token z", "", "middle")
    card.text(306, 82, "token z⁺", "", "middle")
    card.lines(180, 60, ("x⁺: best for its own f", "and near z, by y"), "", "middle")
    card.lines(180, 104, ("its data, x, y and", "its share c stay here"), "small quiet", "middle")
    card.lines(
        180,
        160,
        ("N (z⁺ − z) is what it added to its share:", "both neighbours see z and z⁺, and know that"),
        "small seen",
        "middle",
    )
    card.lines(52, 262, ("question", "and words"), "", "middle")
    card.lines(306, 262, ("question", "and words⁺"), "", "middle")
    card.lines(180, 258, ("its answer at z", "+ its mask"), "", "middle")
    card.lines(180, 302, ("its data and the secrets", "of its pairs stay here"), "small quiet", "middle")
    card.lines(
        180,
        358,
        ("words⁺ − words is answer + mask:", "to both neighbours, any number is as likely"),
        "small safe",
        "middle",
    )
    return card


def epoch() -> Card:
    """Members change."""
    card = Card(
        "An epoch",
        "In epoch 0 there are five sites. Alta leaves: a new ring file, signed by one member and accepted by all that stay, begins epoch 1 with four. "
        "Each epoch has keys for masks of its own, and opens with a sum.",
        348,
    )
    for x, names, title in ((86, SITES, "epoch 0"), (276, SITES[:4], "epoch 1")):
        card.text(x, 28, title, "strong", "middle")
        places = card.ring(x, 104, 49, len(names))
        card.dot(x, 104, 49, "line")
        for (at_x, at_y), name in zip(places, names, strict=True):
            leaves = name == "Alta"
            card.box(at_x - 25, at_y - 12, 50, 24, "site gone" if leaves else "site")
            card.text(at_x, at_y + 4, name, "small quiet" if leaves else "small", "middle")
            if leaves:
                card.path(f"M{at_x - 30:g} {at_y + 15:g}L{at_x + 30:g} {at_y - 15:g}", "cross")
    card.path("M163 108H198", arrow=True)
    card.lines(
        180, 188, ("a new ring file: signed by one member,", "accepted by every site that stays"), "small", "middle"
    )
    card.path("M12 220H348", "edge")
    rows = (
        ("keys", "for masks, made anew and signed;", "deleted when the run is over"),
        ("token", "opens with a sum under masks: z = Σc/N,", "the mean of the shares of who is there"),
        ("sealed laps", "all sums anew: five less four is one,", "so the ledger asks for consent"),
    )
    for place, (word, *lines) in enumerate(rows):
        card.text(16, 240 + 34 * place, word, "strong small")
        card.lines(96, 240 + 34 * place, (lines[0],), "small")
        card.lines(96, 255 + 34 * place, (lines[1],), "small")
    return card


def observers() -> Card:
    """Who sees what, and what it comes to, in sealed laps."""
    card = Card(
        "What each observer sees, in sealed laps",
        "An eavesdropper and a relay see when messages cross and how long they are, and learn nothing. Neighbours see words under masks, and learn the sum "
        "over the others and this site. N minus 2 colluders learn the sum over the two that are left; N minus 1 learn everything. "
        "A later thief of keys finds the keys for masks deleted, and learns no more than a member.",
        424,
    )
    rows = (
        ("eavesdropper", "taps every link", "sees sizes and times (TLS)", "learns nothing", "safe"),
        ("relay", "joins two ends of a link", "sees addresses, sizes, times", "learns nothing", "safe"),
        ("neighbours", "work together", "see words under masks", "learn the sum over the three others", "safe"),
        ("N − 2 colluders", "tap all links", "see words, know their own masks", "learn the sum over the two others", "safe"),
        ("N − 1 colluders", "are all the others", "know all masks", "learn everything: they have the rest", "seen"),
        ("thief of keys", "later, with all words", "finds the keys for masks deleted", "learns no more than a member", "safe"),
    )  # fmt: skip
    watching = {"neighbours": (1, 3), "N − 2 colluders": (1, 3, 4), "N − 1 colluders": (0, 1, 3, 4)}
    for number, (name, *lines, look) in enumerate(rows):
        y = 44 + 67 * number
        if number:
            card.path(f"M12 {y - 34}H348", "edge")
        places = card.ring(46, y, 22, len(SITES))
        card.dot(46, y, 22, "watched" if name in ("eavesdropper", "N − 2 colluders", "N − 1 colluders") else "line")
        for place, (x, at_y) in enumerate(places):
            watcher = place in watching.get(name, ())
            card.dot(x, at_y, 6, "watcher" if watcher else "mine" if place == 2 else "site")
        if name == "relay":
            x, at_y = ((one + other) / 2 for one, other in zip(places[1], places[2], strict=True))
            card.box(x - 2, at_y - 5, 11, 11, "watcher", 2)
        if name.startswith("thief"):
            card.dot(places[2][0] + 17, places[2][1] + 2, 4, "watched")
            card.path(f"M{places[2][0] + 21} {places[2][1] + 2}h13v5m-5 -5v4", "watched")
        card.text(104, y - 14, name, "strong")
        card.text(104 + 8.6 * len(name) + 6, y - 14, lines[0], "small quiet")
        card.text(104, y + 4, lines[1], "small")
        card.text(104, y + 21, lines[2], f"small {look}")
    return card


DRAWINGS = {"lap": lap, "sealed-lap": sealed_lap, "visit": visit, "epoch": epoch, "observers": observers}


def main() -> None:
    """Write all of them."""
    for name, draw in DRAWINGS.items():
        (FIGURES / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
