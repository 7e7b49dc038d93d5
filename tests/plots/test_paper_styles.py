"""Figures for print: as wide as a column, with letters that can be read there, and nothing cut off."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

import roundelay as rl
from roundelay.plots.chart_figure import draw_chart_figure
from roundelay.plots.style import PAPER_STYLES, PaperStyle
from tests.report_example import convergence, trade_off

WIDTHS = {"ieee": 3.5, "ieee-wide": 7.16, "neurips": 5.5}


def figures(run: rl.Run, ensemble: rl.Ensemble) -> tuple[Figure, ...]:
    many = {f"a method, ρ = {place}": run for place in range(11)}
    return (
        rl.plot_convergence(run),
        rl.plot_convergence({"I-ADMM": run, "PI-ADMM1": ensemble}, "accuracy", title="For a screen alone"),
        rl.plot_convergence(many, log_cost=True),
        draw_chart_figure(convergence()),
        draw_chart_figure(trade_off()),
    )


@pytest.mark.parametrize("style", list(WIDTHS))
def test_letters_can_be_read_and_nothing_is_cut_off(run: rl.Run, ensemble: rl.Ensemble, style: str) -> None:
    paper = PAPER_STYLES[style]
    with matplotlib.rc_context(paper.settings):
        for figure in figures(run, ensemble):
            drawn = figure.again(paper)  # type: ignore[attr-defined]
            FigureCanvasAgg(drawn).draw()
            assert drawn.get_figwidth() == pytest.approx(WIDTHS[style]) and drawn.get_figheight() < 9.0
            labels = [axis.xaxis.label for axis in drawn.axes] + [axis.yaxis.label for axis in drawn.axes]
            legends = [*drawn.legends, *(axis.get_legend() for axis in drawn.axes if axis.get_legend())]
            texts: list[Text] = [*labels, *(text for legend in legends for text in legend.get_texts())]
            for text in texts:
                box = text.get_window_extent()
                assert text.get_fontsize() >= 6.5
                assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= drawn.bbox.x1 and box.y1 <= drawn.bbox.y1, (
                    figure,
                    text,
                )


def test_the_file_is_as_wide_as_the_column_and_its_letters_are_outlines(run: rl.Run, tmp_path: Path) -> None:
    figure = rl.plot_convergence(run)
    before = figure.get_figwidth()
    pdf = figure.save(tmp_path / "a.pdf", style="ieee").read_bytes()  # type: ignore[attr-defined]
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", pdf)
    assert box and float(box[1]) == pytest.approx(72 * 3.5)
    assert b"/Type3" not in pdf and b"/Type0" in pdf
    with Image.open(figure.save(tmp_path / "a.png", style=PaperStyle(4.0))) as picture:  # type: ignore[attr-defined]
        assert picture.width == 1200
    assert figure.get_figwidth() == before and matplotlib.rcParams["font.size"] == 10.0


def test_what_can_not_be_is_said(run: rl.Run, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no style 'nature': use one of ieee, ieee-wide, neurips"):
        rl.save_figure(rl.plot_convergence(run), tmp_path / "a.pdf", "nature")
    own = Figure()
    with pytest.raises(ValueError, match="axis of your own"):
        rl.save_figure(rl.plot_convergence({"a": run}, axis=own.add_subplot()), tmp_path / "a.pdf", "ieee")
    assert not list(tmp_path.iterdir())


def test_one_run_needs_no_name(run: rl.Run, ensemble: rl.Ensemble) -> None:
    for result in (run, ensemble):
        (label,) = rl.plot_convergence(result).axes[0].get_legend().get_texts()
        assert label.get_text() == result.name if isinstance(result, rl.Run) else "PI-ADMM1"
    with pytest.raises(ValueError, match="The results are a list"):
        rl.plot_convergence([run])  # type: ignore[arg-type]
