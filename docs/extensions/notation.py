"""The updates as docstrings write them, in lines of Unicode that help() shows as they stand, set as mathematics (MathML).

    x_i⁺ = prox_i((ρz + y)/(ρ + τ), ρ)    ḡ⁺ = ḡ + (g_i⁺ − g_i)/N

One letter is a symbol; longer words are functions where something is applied, raised or lowered, and words of a sentence elsewhere.
A fraction is what touches its stroke: (a + b)/N, αr/N. Two spaces begin a new line. A sign that isn't known is refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree

Node = ElementTree.Element

_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵏʳᵗⁿ", "0123456789+−krtn", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_ACCENTS = {"\u0302": "^", "\u0303": "~", "\u0304": "¯"}
_RELATIONS = ("=", "←", "≥", "≤", "+=", "−=")
_NAMED = ("argmin",)  # applied to what stands behind a space

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | `(?P<code>[^`]+)`
      | (?P<number>\d+(?:\.\d+)?)
      | (?P<word>[A-Za-z]+(?:['-][A-Za-z]+)*(?![\u0300-\u036f]))
      | (?P<raised>[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵏʳᵗⁿ]+)
      | (?P<lowered>[₀₁₂₃₄₅₆₇₈₉]+)
      | (?P<script>[_^](?:\{[^{}]*\}|[+−]?(?:\d+|[A-Za-z]+|[^\W\d_])))
      | (?P<open>[(\[])
      | (?P<close>[)\]])
      | (?P<norm>‖)
      | (?P<sum>Σ)
      | (?P<prime>')
      | (?P<stroke>/)
      | (?P<root>√)
      | (?P<half>½)
      | (?P<letter>[^\W\d_][\u0300-\u036f]*)
      | (?P<sign>[+−]=|[-+−·=<>←≥≤~,;:.…∇])""",
    re.X,
)


def as_mathml(lines: Sequence[str]) -> str:
    """A display of one or more lines."""
    rows = [row for line in lines for row in _rows(line)]
    aligned = len(rows) > 1 and all(_starts_with_symbol(row) and _relation(row) is not None for row in rows)
    table = _element("mtable", [], displaystyle="true", columnspacing="0")
    for row in rows:
        parsed = _Parser(row).whole()
        place = next((k for k, node in enumerate(parsed) if node.text in _RELATIONS), 0) if aligned else 0
        cells = [parsed[:place], parsed[place:]] if aligned else [parsed]
        sides = ["right", "left"] if aligned else ["left"]
        table.append(
            _element(
                "mtr",
                [
                    _element("mtd", cell, **{"class": side}, style=f"text-align: {side}")
                    for cell, side in zip(cells, sides, strict=True)
                ],
            )
        )
    return ElementTree.tostring(_element("math", [table], display="block"), encoding="unicode")


def _rows(line: str) -> list[str]:
    """The equations of a line; words without one go with the equation before them, or after them where they come first."""
    pieces = [piece for piece in re.split(r"\s{2,}", line.strip()) if piece]
    rows: list[str] = []
    for piece in pieces:
        words_alone = _relation(piece) is None
        if rows and (words_alone or _relation(rows[-1]) is None):
            rows[-1] += f"\u2003{piece}"
        else:
            rows.append(piece)
    return rows


def _relation(row: str) -> str | None:
    return next((sign for sign in _RELATIONS if sign in row), None)


def _starts_with_symbol(row: str) -> bool:
    """Whether the left-hand side is a symbol alone, so that lines can be set one under the other at their relations."""
    return re.match(r"\S{1,8}\s+(=|←|[+−]=)", unicodedata.normalize("NFC", row)) is not None


def _element(tag: str, children: Iterable[Node] = (), text: str | None = None, **attributes: str) -> Node:
    node = ElementTree.Element(tag, attributes)
    node.text = text
    node.extend(children)
    return node


def _row(children: Sequence[Node]) -> Node:
    return children[0] if len(children) == 1 else _element("mrow", children)


@dataclass
class _Factor:
    """One thing that may be raised or lowered, and stand in a fraction."""

    base: Node
    below: list[Node] = field(default_factory=list)
    above: list[Node] = field(default_factory=list)
    inside: list[Node] | None = None  # what brackets hold
    limits: bool = False

    def node(self, bare: bool = False) -> Node:
        """With its scripts; without its brackets where a stroke of a fraction takes their place."""
        if bare and self.inside is not None and not self.below and not self.above:
            return _row(self.inside)
        below, above = (_row(scripts) if scripts else None for scripts in (self.below, self.above))
        if below is not None and self.limits:
            return _element("munder", [self.base, below])
        if below is not None and above is not None:
            return _element("msubsup", [self.base, below, above])
        if below is not None:
            return _element("msub", [self.base, below])
        return self.base if above is None else _element("msup", [self.base, above])


class _Parser:
    """One line, from left to right."""

    def __init__(self, text: str, small: bool = False) -> None:
        self.text = unicodedata.normalize("NFD", text)
        self.at = 0
        self.small = small  # what is raised or lowered has its fractions in one line

    def whole(self) -> list[Node]:
        """All of it, to the end."""
        nodes = self._sequence(())
        if self.at < len(self.text):
            raise ValueError(f"{self.text[self.at]!r} opens nothing and closes nothing in {self.text!r}.")
        return nodes

    def _peek(self) -> tuple[str, str]:
        if self.at >= len(self.text):
            return "end", ""
        found = _TOKEN.match(self.text, self.at)
        if found is None or found.lastgroup is None:
            raise ValueError(
                f"{self.text[self.at]!r} in {self.text!r} is no sign of the notation: docs/extensions/notation.py has them."
            )
        return found.lastgroup, found.group()

    def _sequence(self, ends: tuple[str, ...]) -> list[Node]:
        """Terms, signs and words up to one of the ends, which is left standing."""
        nodes: list[Node] = []
        while True:
            kind, token = self._peek()
            if kind == "end" or kind in ends:
                return nodes
            if kind == "space":
                self.at += len(token)
                if "\u2003" in token:
                    nodes.append(_element("mspace", width="1.5em"))
            elif kind == "sign":
                self.at += len(token)
                nodes.append(_element("mi" if token == "∇" else "mo", text=token))
            elif kind == "close":
                raise ValueError(f"A bracket is closed and was not opened in {self.text!r}.")
            elif self._is_prose(kind, token):
                nodes.append(self._prose())
            else:
                nodes.extend(self._term(ends))

    def _is_prose(self, kind: str, token: str) -> bool:
        """Whether a word is one of a sentence."""
        before, after = self.text[self.at - 1 : self.at], self.text[self.at + len(token) :][:1]
        if kind != "word" or token in _NAMED or _is_product(token):
            return False
        if len(token) == 1:  # the article
            return token == "a" and re.match(r"a [A-Za-z]{2}", self.text[self.at :]) is not None
        return not (after and (after in "(_{^·" or after in _RAISED)) and not (before and before in "^−·")

    def _prose(self) -> Node:
        words, start = "", self.at
        while True:
            kind, token = self._peek()
            is_word = self._is_prose(kind, token)
            if not (is_word or (kind == "space" and "\u2003" not in token)):
                break
            words, self.at = words + token, self.at + len(token)
        words = ("\u00a0" if self.text[start - 1 : start] == " " else "") + words
        return _element("mtext", text=re.sub(r"^ | $", "\u00a0", words))

    def _term(self, ends: tuple[str, ...]) -> list[Node]:
        """What touches each other, and a fraction where there is a stroke behind it."""
        factors: list[_Factor] = []
        while True:
            kind, token = self._peek()
            if kind in (*ends, "end", "space", "close") or (kind == "sign" and token != "∇"):
                return [factor.node() for factor in factors]
            if kind == "stroke" and self.small:
                self.at += 1
                return [
                    *(factor.node() for factor in factors),
                    _element("mo", text="/", lspace="0", rspace="0"),
                    *self._term(ends),
                ]
            if kind == "stroke":
                self.at += 1
                above = [factor.node(bare=len(factors) == 1) for factor in factors]
                fraction = _element("mfrac", [_row(above), self._factor(ends).node(bare=True)])
                return [fraction, *self._term(ends)]
            factors.append(self._factor(ends))

    def _factor(self, ends: tuple[str, ...]) -> _Factor:
        kind, token = self._peek()
        alone = self.text[self.at - 1 : self.at] in ("", " ", "(")
        self.at += len(token)
        factor = _Factor(_element("mi", text=token))
        if kind in ("letter", "word"):
            factor.base = self._letters(token)
        elif kind == "number":
            factor.base = _element("mn", text=token)
        elif kind == "half":
            factor.base = _element("mfrac", [_element("mn", text="1"), _element("mn", text="2")])
        elif kind == "sum":
            factor.base, factor.limits = _element("mo", text="∑", movablelimits="false"), True
        elif kind == "code":
            factor.base = _element("mtext", text=token.strip("`"), **{"class": "code"})
        elif kind == "root":
            return _Factor(_element("msqrt", [self._factor(ends).node(bare=True)]))
        elif kind == "prime":
            factor.base = _element("mo", text="′")
        elif kind in ("open", "norm"):
            inside = self._sequence(("norm", *ends) if kind == "norm" else ("close",))
            closing, end = self._peek()
            if closing != ("norm" if kind == "norm" else "close"):
                raise ValueError(f"A bracket is opened and never closed in {self.text!r}.")
            self.at += len(end)
            tall = any(node.tag in ("mfrac", "munder") for part in inside for node in part.iter())
            fences = [
                _element("mo", text=sign, fence="true", form=form, stretchy=str(tall).lower())
                for sign, form in ((token, "prefix"), (end, "postfix"))
            ]
            factor.base = _element("mrow", [fences[0], *inside, fences[1]])
            # One fraction in brackets of its own needs none.
            if kind == "open" and alone and len(inside) == 1 and inside[0].tag == "mfrac":
                factor.base = inside[0]
            factor.inside = inside if kind == "open" else None
        elif kind == "sign":  # ∇
            pass
        else:
            raise ValueError(f"{token!r} stands alone in {self.text!r}.")
        self._scripts(factor)
        return factor

    def _letters(self, token: str) -> Node:
        if len(token) > 1 and token[1] in _ACCENTS:
            return _element(
                "mover", [_element("mi", text=token[0]), _element("mo", text=_ACCENTS[token[1]])], accent="true"
            )
        if _is_product(token):
            return _element("mrow", [_element("mi", text=letter) for letter in token])
        if token in _NAMED:
            return _element("mrow", [_element("mi", text=token), _element("mspace", width="0.3em")])
        return _element("mi", text=token)

    def _scripts(self, factor: _Factor) -> None:
        while True:
            kind, token = self._peek()
            if kind == "raised":
                factor.above += [_small(_RAISED[sign]) for sign in token]
            elif kind == "lowered":
                factor.below += [_small(_LOWERED[sign]) for sign in token]
            elif kind == "prime":
                factor.above.append(_element("mo", text="′"))
            elif kind == "script":
                script = token[1:].strip("{}")
                few = re.fullmatch(r"[+−]?[A-Za-z]{1,2}", script)
                parsed = [_small(sign) for sign in script] if few else _Parser(script, small=True).whole()
                if re.fullmatch(r"[a-z]{3,}", script):
                    parsed = [_element("mtext", text=script)]
                (factor.below if token[0] == "_" else factor.above).extend(parsed)
            else:
                return
            self.at += len(token)


def _is_product(word: str) -> bool:
    """A matrix and a vector: Wx."""
    return len(word) == 2 and word[0].isupper() and word[1].islower()


def _small(sign: str) -> Node:
    tag = "mn" if sign.isdigit() else "mi" if sign.isalpha() else "mo"
    return _element(tag, text=sign)
