"""What docstrings and pages write as formulas is set as mathematics, and no sign of it is lost on the way."""

from __future__ import annotations

import inspect
import re
import sys
import unicodedata
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies

import roundelay as rl
from roundelay.registry import registered
from tests.docs.pages import ROOT, blocks

sys.path.append(str(ROOT / "docs" / "extensions"))

from notation import as_mathml


def formulas() -> Iterator[tuple[str, list[str]]]:
    for method in {*registered(rl.Algorithm).values(), *registered(rl.Defence).values()}:
        for paragraph in (inspect.getdoc(method) or "").split("\n\n"):
            lines = paragraph.split("\n")
            if all(line.startswith("    ") for line in lines):
                yield method.__name__, lines
    for block in blocks():
        if block.language is None:
            yield str(block), block.text.rstrip("\n").split("\n")


FORMULAS = sorted(formulas())


def signs(text: str) -> str:
    """Letters, figures and what is no bracket, without how they are raised, lowered or accented."""
    plain = unicodedata.normalize("NFKD", text).replace("∑", "Σ")
    return "".join(sign for sign in plain if sign.isalnum() or sign in "Σ∇‖=←+−·")


@pytest.mark.parametrize(("where", "lines"), FORMULAS, ids=[where for where, _ in FORMULAS])
def test_no_sign_is_lost(where: str, lines: list[str]) -> None:
    mathml = ElementTree.fromstring(as_mathml(lines))
    assert signs("".join(mathml.itertext())) == signs("".join(lines))


def test_every_algorithm_shows_its_update() -> None:
    shown = {where for where, _ in FORMULAS}
    assert {method.__name__ for method in registered(rl.Algorithm).values()} <= shown


def structure(text: str) -> str:
    """The MathML of one line, without the table around it and what only matters to the eye."""
    inside = re.findall(r"<mtd[^>]*>(.*)</mtd>", as_mathml([text]))[0]
    return re.sub(r"<(\w+)[^>]*?(/?)>", r"<\1\2>", inside)


@pytest.mark.parametrize(
    ("text", "mathml"),
    [
        ("x_i⁺", "<msubsup><mi>x</mi><mi>i</mi><mo>+</mo></msubsup>"),
        ("w_ij", "<msub><mi>w</mi><mrow><mi>i</mi><mi>j</mi></mrow></msub>"),
        ("x^{k+1}", "<msup><mi>x</mi><mrow><mi>k</mi><mo>+</mo><mn>1</mn></mrow></msup>"),
        ("z̄", "<mover><mi>z</mi><mo>¯</mo></mover>"),
        ("Wx", "<mrow><mi>W</mi><mi>x</mi></mrow>"),
        ("y/ρ", "<mfrac><mi>y</mi><mi>ρ</mi></mfrac>"),
        ("(a + b)/N", "<mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mi>N</mi></mfrac>"),
        ("γ/(2η)(a)", "<mfrac><mi>γ</mi><mrow><mn>2</mn><mi>η</mi></mrow></mfrac><mrow><mo>(</mo><mi>a</mi><mo>)</mo></mrow>"),
        ("(1/N)Σ_j", "<mfrac><mn>1</mn><mi>N</mi></mfrac><munder><mo>∑</mo><mi>j</mi></munder>"),
        ("αr/N", "<mfrac><mrow><mi>α</mi><mi>r</mi></mrow><mi>N</mi></mfrac>"),
        ("(k + 1)^decay", "<msup><mrow><mo>(</mo><mi>k</mi><mo>+</mo><mn>1</mn><mo>)</mo></mrow><mtext>decay</mtext></msup>"),
        ("‖x‖²", "<msup><mrow><mo>‖</mo><mi>x</mi><mo>‖</mo></mrow><mn>2</mn></msup>"),
        ("prox_i(z)", "<msub><mi>prox</mi><mi>i</mi></msub><mrow><mo>(</mo><mi>z</mi><mo>)</mo></mrow>"),
        ("√R", "<msqrt><mi>R</mi></msqrt>"),
    ],
)  # fmt: skip
def test_signs_stand_where_they_belong(text: str, mathml: str) -> None:
    assert structure(text) == mathml


def test_equations_stand_one_under_the_other_at_their_signs() -> None:
    rows = ElementTree.fromstring(as_mathml(["x⁺ = y    z += x"])).findall("mtable/mtr")
    assert ["".join(cell.itertext()) for row in rows for cell in row] == ["x+", "=y", "z", "+=x"]


@pytest.mark.parametrize("text", ["x = (y", "x = y)", "x = ‖y", "x @ y", "x = {y}"])
def test_what_is_no_formula_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"never closed|was not opened|is no sign"):
        as_mathml([text])


SYMBOLS = strategies.sampled_from(["x", "y_i", "z⁺", "ρ", "ḡ_j⁺", "∇f_i(x)", "2", "W̃"])
TERMS = strategies.recursive(
    SYMBOLS,
    lambda inner: strategies.one_of(
        strategies.tuples(inner, inner).map(lambda two: f"({two[0]} + {two[1]})"),
        strategies.tuples(inner, SYMBOLS).map(lambda two: f"({two[0]} − {two[1]})/{two[1]}"),
        inner.map(lambda one: f"‖({one})‖²"),
        inner.map(lambda one: f"prox_i({one}, ρ)"),
    ),
    max_leaves=8,
)


@given(TERMS)
def test_whatever_is_put_together_keeps_its_signs(term: str) -> None:
    mathml = ElementTree.fromstring(as_mathml([f"x⁺ = {term}"]))
    assert signs("".join(mathml.itertext())) == signs(f"x⁺ = {term}")
