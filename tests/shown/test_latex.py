"""Tables in LaTeX: whatever stands in a cell is words, numbers stand point below point, and a real TeX sets all of it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import roundelay as rl
from roundelay.regression.shown.tables import tables_of
from roundelay.shown.latex import in_latex
from roundelay.shown.table import Table
from tests.shown.examples import HOSTILE, binomial, hostile

NASTY = (
    "[10pt] an option", "* a star", r"\input{/etc/passwd}", "100 % & $x_1$ #2 ~ ^ { }", "}{ \\", "a\nb\x00c", "ρ ≥ 2L + 2", "‖∇f_i(x*)‖² ≤ 10⁻⁶",
    "--- -- -", "<|>\"'`", "日本 ☃ ϝ ϛ ς Ω Σ ο", "Ærøskøbing, Łódź, ﬁ", "\\end{document}", "I-ADMM", HOSTILE,
)  # fmt: skip


def nasty_table() -> Table:
    rows = tuple((words, "−1.25", "12,345", "3.1e−8", words[::-1]) for words in NASTY)
    return Table("nasty", NASTY[3], ("method", *NASTY[:4]), rows, NASTY[4])


def commands(latex: str) -> set[str]:
    """Every command in it, without the backslashes that are letters."""
    return set(re.findall(r"\\([A-Za-z]+)", re.sub(r"\\[{}$&#%_]", "", latex)))


OURS = {
    *re.findall(r"\w+", "textbackslash textasciicircum textasciitilde textless textgreater textbar char ldots texttt phantom circ times cdot pm"),
    *re.findall(r"\w+", "leq geq neq approx infty sum nabla surd in to gets leftrightarrow partial frac Rightarrow neg cup cap setminus subset"),
    *re.findall(r"\w+", "propto sim alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi"),
    *re.findall(r"\w+", "omega varsigma Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"),
}  # fmt: skip


@given(st.text(max_size=30) | st.text(st.characters(min_codepoint=0x370, max_codepoint=0x3FF), max_size=9))
def test_no_word_is_a_command_and_nothing_is_left_open(words: str) -> None:
    latex = in_latex(words)
    assert commands(latex) <= OURS
    bare = re.sub(r"\\[{}$&#%_]", "", latex)
    assert bare.count("{") == bare.count("}") and bare.count("$") % 2 == 0
    assert not re.search(r"[&#%\n]", bare) and not bare.startswith(("[", "*"))
    assert not re.search(r"(?<!\$)[_^](?!\{)", re.sub(r"\$[^$]*\$", "", bare))


def test_words_that_are_plain_stay_as_they_are() -> None:
    assert in_latex("I-ADMM, p = 2") == "I-ADMM, p = 2"
    assert in_latex("ρ = 10⁻⁶") == r"$\rho$ = 10$^{-6}$"
    assert in_latex("a_b & 5 %") == r"a\_b \& 5 \%"
    assert [in_latex(words) for words in ("[1pt]", "*a")] == ["{[}1pt]", "{*}a"]  # no option of the line before


def test_numbers_stand_point_below_point() -> None:
    frame = pd.DataFrame({"method": ["a", "b"], "units": [12345.0, 7.0], "error": [1.5e-7, 0.25], "part": [0.5, 12.25]})
    body = [line for line in rl.to_latex(frame).splitlines() if line.endswith(r"\\")]
    assert body[1] == r"a & 12,345 & $1.500 \times 10^{-7}$ & 0.50 \\"
    assert body[2] == r"b & 7 & $2.500 \times 10^{-1}$ & 12.25 \\"
    rows = (("a", "1.5"), ("b", "12"), ("c", "−3.25"))
    body = [line for line in rl.to_latex(Table("t", "", ("", "x"), rows)).splitlines() if line.endswith(r"\\")]
    assert [line.split("& ")[1] for line in body[1:]] == [
        r"1.5\phantom{0} \\",
        r"12\phantom{.}\phantom{0}\phantom{0} \\",
        r"$-3.25$ \\",
    ]


def test_every_number_of_a_frame_is_the_number_to_its_digits() -> None:
    values = np.random.default_rng(0).standard_normal(40) * np.logspace(-9, 9, 40)
    rows = rl.to_latex(pd.DataFrame({"x": values})).splitlines()
    found = [re.fullmatch(r"\$(-?[\d.]+) \\times 10\^\{(-?\d+)\}\$ \\\\", row) for row in rows]
    read = [float(f"{one[1]}e{one[2]}") for one in found if one]
    np.testing.assert_allclose(read, values, rtol=5e-4)


def test_how_it_was_made_stands_before_it_in_comments() -> None:
    run = rl.simulate(rl.IADMM(rho=7.5), rl.paper_least_squares(4, 5), rl.ring(4), 40, engine="python", progress=False, seed=3)  # fmt: skip
    comments = [line for line in run.to_latex(label="tab:run").splitlines() if line.startswith("% ")]
    said = dict(line[2:].split(": ", 1) for line in comments)
    assert said["software"] == f"roundelay {rl.__version__}" and "numpy" in said["versions"]
    assert said["seeds"] == "3" and "rho=7.5" in said["parameters"]
    audited = rl.audit(rl.simulate(rl.IADMM(rho=7.5), rl.paper_least_squares(4, 5), rl.ring(4), 40, engine="python", progress=False, seed=3, transcript=True))  # fmt: skip
    assert "% seeds: 3" in audited.to_latex() and "rho=7.5" in str(audited.figure().made)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"label 'a\}' can't be"):
        run.to_latex(label="a}")
    with pytest.raises(ValueError, match="no table 3"):
        run.to_latex(table=3)


def every_table() -> dict[str, str]:
    """LaTeX of everything that has a table."""
    from roundelay.comparison.field import Cell, field_tables
    from roundelay.paper.report.writing import claims_table
    from tests.report_example import example_document

    problem, network = rl.paper_least_squares(5, 6), rl.ring(5)
    options = {"engine": "python", "progress": False}
    run = rl.simulate(rl.PIADMM1(), problem, network, 120, transcript=True, **options)
    cell = Cell("I-ADMM", "least squares, N=100, p=2", True, True, 2865.2, "2,865", "rho=10.0", 2923.8, "2,924", "rho=10.9", "tuned", 10)  # fmt: skip
    results = {
        "run": run,
        "ensemble": rl.simulate(rl.PIADMM1(), problem, network, 60, seeds=range(2), **options),
        "comparison": rl.compare([rl.IADMM(), rl.DGD(alpha=0.1)], problem, network, seeds=[0], units=200, **options),
        "tune": rl.tune(rl.IADMM(), problem, network, seeds=[1000], level=0.5, evaluations=3, units=200, **options),
        "audit": rl.audit(run),
        "conditions": rl.PIADMM1().conditions(problem),
        "sweep": rl.sweep_plan(rl.IADMM(), problem, network, parameters={"rho": [1.0, 2.0]}, hops=5),
    }
    frames = {"history": run.history, "claims": claims_table(example_document()), "nasty": nasty_table()}
    tables = {f"regression {place}": one for place, one in enumerate(tables_of(hostile(binomial())))}
    fields = dict(enumerate(field_tables([cell])))
    made = {name: one.to_latex(caption=f"{name} & co.", label=f"tab:{name}") for name, one in results.items()}  # type: ignore[attr-defined]
    return made | {str(name): rl.to_latex(one) for name, one in (frames | tables | fields).items()}


def test_a_real_tex_sets_every_table(tmp_path: Path) -> None:
    made = every_table()
    assert all("\\toprule" in one and one.count("\\begin{tab") <= 2 for one in made.values())
    if shutil.which("pdflatex") is None:
        pytest.skip(
            "There is no pdflatex to set the tables with: install Debian's texlive-latex-base and texlive-latex-recommended."
        )
    if subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True).returncode:
        pytest.skip("pdflatex has no booktabs: install Debian's texlive-latex-recommended.")
    head = "\\documentclass{article}\\usepackage{booktabs,longtable}\\begin{document}\n"
    # \clearpage, since TeX holds no more than eighteen tables that float.
    (tmp_path / "all.tex").write_text(
        head + "\n\\clearpage\n".join(made.values()) + "\\end{document}\n", encoding="utf-8"
    )
    said = subprocess.run(
        ["pdflatex", "-no-shell-escape", "-halt-on-error", "-interaction=nonstopmode", "all.tex"],
        cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stdout[-3000:]
    assert not re.search(r"^!|Missing character", said.stdout, re.MULTILINE)
    assert (tmp_path / "all.pdf").read_bytes().startswith(b"%PDF")
