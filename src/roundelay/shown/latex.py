"""Tables for a paper: LaTeX with booktabs, whatever stands in their cells."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from roundelay.shown.numbers import FIGURE_SPACE, POINT_SPACE, is_number, printable, with_power
from roundelay.shown.provenance import commented
from roundelay.shown.table import Table

# A longer table goes on over the pages; a column of words that are longer is broken into lines.
LONGEST, WIDEST = 40, 34
# So many letters fit into a line of a page; what is wider is set smaller.
_LINE = 95
_SIZES = (
    (70, ""),
    (84, r"\small"),
    (100, r"\footnotesize\setlength{\tabcolsep}{4pt}"),
    (10**9, r"\scriptsize\setlength{\tabcolsep}{3pt}"),
)

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': r"{\char34}", "`": "{`}",
    # What would be taken for an option of the line before.
    "[": "{[}", "*": "{*}",
    "\u00a0": "~", FIGURE_SPACE: r"\phantom{0}", POINT_SPACE: r"\phantom{.}",
    "–": "--", "—": "---", "…": r"\ldots{}", "“": "``", "”": "''", "‘": "`", "’": "'", "°": r"$^\circ$", "№": "No.",
}  # fmt: skip
_SIGNS = {
    "−": "-", "×": r"\times", "·": r"\cdot", "±": r"\pm", "≤": r"\leq", "≥": r"\geq", "≠": r"\neq", "≈": r"\approx", "∞": r"\infty",
    "∑": r"\sum", "∇": r"\nabla", "‖": r"\|", "√": r"\surd", "∈": r"\in", "→": r"\to", "←": r"\gets", "↔": r"\leftrightarrow",
    "∂": r"\partial", "½": r"\frac12", "⇒": r"\Rightarrow", "¬": r"\neg", "∪": r"\cup", "∩": r"\cap", "∖": r"\setminus", "⊂": r"\subset",
    "∘": r"\circ", "∝": r"\propto", "∼": r"\sim", "║": r"\|", "′": "'",
}  # fmt: skip
_RAISED, _LOWERED = ("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵏⁱⁿᵀ", "0123456789+-kinT"), ("₀₁₂₃₄₅₆₇₈₉₊₋ᵢⱼₖₙ", "0123456789+-ijkn")
_UP, _DOWN = (dict(zip(*pair, strict=True)) for pair in (_RAISED, _LOWERED))
_RUNS = re.compile(f"([{_RAISED[0]}]+|[{_LOWERED[0]}]+|-{{2,}})")
# In the order of the alphabet from α and from Α on; some look like letters that LaTeX has already.
_SMALL = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi o pi rho varsigma sigma tau upsilon phi chi psi omega"
_LARGE = "A B Gamma Delta E Z H Theta I K Lambda M N Xi O Pi P – Sigma T Upsilon Phi X Psi Omega"
_GREEK = {
    chr(first + place): name if len(name) == 1 else f"\\{name}"
    for first, names in ((ord("α"), _SMALL), (ord("Α"), _LARGE))
    for place, name in enumerate(names.split())
    if name != "–"
} | {"ϵ": r"\epsilon", "µ": r"\mu"}
# Of the letters beyond ASCII those that every LaTeX sets as they are.
_PLAIN_LETTERS = "ÄÖÜäöüßÅåÆæØøÀÁÂÃÇÈÉÊËÌÍÎÏÑÒÓÔÕÙÚÛÝàáâãçèéêëìíîïñòóôõùúûýÿŒœŠšŽžŁłČčŘřŇňĚěŮůŐőŰűŻżŹźŃńŚśĆć"


def as_latex(table: Table, made: Mapping[str, str], label: str = "") -> str:
    """The table in the style of booktabs; `made` says in comments how the numbers came about."""
    places = range(len(table.header))
    lines = [_row(table.header), r"\midrule", *map(_row, table.aligned(FIGURE_SPACE, POINT_SPACE))]
    shapes = "".join(_shape(table, place) for place in places)
    words = [rf"\caption{{{in_latex(table.caption or table.title)}}}"] if table.caption or table.title else []
    words += [rf"\label{{{_label(label)}}}"] if label else []
    if len(table.rows) > LONGEST:
        needs, lines[1] = "booktabs and longtable", r"\midrule\endhead"
        body = [rf"\begin{{longtable}}{{{shapes}}}", *(["".join(words) + r"\\"] if words else []), r"\toprule", *lines]
        body += [r"\bottomrule", r"\end{longtable}"]
    else:
        needs = "booktabs"
        body = [
            r"\begin{table}",
            r"\centering" + _size(table),
            *words,
            rf"\begin{{tabular}}{{{shapes}}}",
            r"\toprule",
            *lines,
        ]
        body += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return commented({**made, "needs": needs}, "% ") + "\n".join(body) + "\n"


def in_latex(words: str) -> str:
    """Words as they stand: none of them is a command, and what LaTeX has no letter for is named by its number."""
    parts = _RUNS.split(unicodedata.normalize("NFC", printable(words)))
    return "".join(_run(part) if _RUNS.fullmatch(part) else "".join(map(_letter, part)) for part in parts)


def _run(run: str) -> str:
    """Letters that stand together above or below the line; hyphens that are no dash."""
    if run[0] == "-":
        return "{-}" * len(run)
    sign, letters = ("^", _UP) if run[0] in _UP else ("_", _DOWN)
    return f"${sign}{{{''.join(letters[letter] for letter in run)}}}$"


def _letter(letter: str) -> str:
    if letter in _SPECIAL:
        return _SPECIAL[letter]
    if letter.isascii():
        return letter
    if letter in _SIGNS or letter in _GREEK:
        return f"${(_SIGNS | _GREEK)[letter]}$"
    if letter in _PLAIN_LETTERS:
        return letter
    if unicodedata.category(letter) == "Zs":
        return " "
    return rf"\texttt{{U+{ord(letter):04X}}}"


def _row(cells: tuple[str, ...]) -> str:
    return " & ".join(map(_cell, cells)) + r" \\"


def _cell(cell: str) -> str:
    power = with_power(cell)
    if power is not None:
        return rf"${power[0].replace('−', '-')} \times 10^{{{power[1]}}}$"
    bare = cell.rstrip(FIGURE_SPACE + POINT_SPACE)
    if is_number(bare) and bare[:1] in ("−", "-", "<"):
        return f"${bare.replace('−', '-').replace(',', '{,}')}$" + in_latex(cell[len(bare) :])
    return in_latex(cell)


def _shape(table: Table, place: int) -> str:
    if not table.is_of_words(place):
        return "r"
    longest = [max(map(len, cells)) for cells in zip(table.header, *table.rows, strict=True)]
    if longest[place] <= WIDEST:
        return "l"
    narrow = sum(length + 2 for length in longest if length <= WIDEST)
    share = max(0.95 - narrow / _LINE, 0.2) / sum(length > WIDEST for length in longest)
    return rf"p{{{share:.2f}\linewidth}}"


def _size(table: Table) -> str:
    """Letters small enough for the width of the table, as far as it can be told from how many there are."""
    longest = [min(max(map(len, column)), WIDEST) for column in zip(table.header, *table.rows, strict=True)]
    return next(size for most, size in _SIZES if sum(longest) + 2 * len(longest) <= most)


def _label(label: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9:._-]+", label):
        raise ValueError(f"The label {label!r} can't be one of LaTeX: use letters, digits, and : . _ - alone.")
    return label
