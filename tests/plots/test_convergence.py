import subprocess
import sys

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

import roundelay as rl
from roundelay.plots import plot_convergence
from roundelay.plots.convergence import ROUNDING
from roundelay.plots.style import BLACK_AND_SOLID, style_of


def test_a_run_is_drawn_as_its_history(run: rl.Run) -> None:
    axis = plot_convergence({"I-ADMM": run}).axes[0]
    (line,) = axis.lines
    history = run.history[run.history["error"] > 0.0]
    drawn = np.isfinite(line.get_ydata())
    np.testing.assert_array_equal(line.get_xdata()[drawn], history["units"])
    np.testing.assert_array_equal(line.get_ydata()[drawn], history["error"])
    assert axis.get_yscale() == "log"
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["I-ADMM"]


def test_an_ensemble_is_drawn_as_median_and_band(ensemble: rl.Ensemble) -> None:
    axis = plot_convergence({"PI-ADMM1": ensemble}, column="accuracy").axes[0]
    bands = ensemble.bands("accuracy")
    (line,), (band,) = axis.lines, axis.collections
    np.testing.assert_array_equal(line.get_ydata(), bands["median"])
    assert isinstance(band, PolyCollection)
    corners = band.get_paths()[0].vertices[:, 1]
    assert corners.min() == bands["low"].min() and corners.max() == bands["high"].max()
    assert "4 seeds" in axis.get_legend().get_title().get_text()


@pytest.mark.parametrize(("column", "words"), [("accuracy", "accuracy"), ("error", "error (common)")])
def test_the_axes_speak_the_papers_language(run: rl.Run, column: str, words: str) -> None:
    axis = plot_convergence({"a": run}, column).axes[0]
    assert axis.get_ylabel().startswith(words)
    assert axis.get_xlabel() == "communication (units)"


def test_it_is_cut_where_rounding_sets_in(run: rl.Run) -> None:
    assert run.history["error"].iloc[-1] < ROUNDING
    bottom, top = plot_convergence({"a": run}).axes[0].get_ylim()
    assert bottom == ROUNDING
    assert top > run.history["error"].iloc[0]


def test_an_absolute_column_is_not_cut(run: rl.Run) -> None:
    gaps = run.history["objective_gap"]
    bottom, _ = plot_convergence({"a": run}, "objective_gap").axes[0].get_ylim()
    assert bottom < gaps[gaps > 0.0].min()


def test_a_method_that_diverges_does_not_hide_the_others(run: rl.Run, diverged: rl.Run) -> None:
    assert diverged.stop == "diverged"
    bottom, top = plot_convergence({"good": run, "bad": diverged}).axes[0].get_ylim()
    assert bottom == ROUNDING
    assert top <= 1e4 * run.history["error"].iloc[0]


def test_methods_differ_in_colour_line_and_marker(run: rl.Run) -> None:
    axis = plot_convergence(dict.fromkeys("abcde", run)).axes[0]
    for part in ("get_color", "get_marker"):
        assert len({getattr(line, part)() for line in axis.lines}) == 5
    assert len({(style.colour, str(style.line), style.marker) for style in map(style_of, range(280))}) == 280


def test_the_truth_is_drawn_black_and_solid() -> None:
    style = style_of(BLACK_AND_SOLID)
    assert (style.colour, style.line) == ("#000000", "-")


def test_no_text_is_clipped_and_nothing_overlaps_the_edge(run: rl.Run, ensemble: rl.Ensemble) -> None:
    for column in ("error", "accuracy", "token_error", "consensus", "objective_gap"):
        figure = plot_convergence({"I-ADMM": run, "PI-ADMM1": ensemble}, column, title="A title of a usual length")
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        axis = figure.axes[0]
        texts = [axis.title, axis._left_title, axis.xaxis.label, axis.yaxis.label]
        texts += [text for text in axis.get_xticklabels() if text.get_position()[0] <= axis.get_xlim()[1]]
        texts += axis.get_legend().get_texts()
        for text in texts:
            box = text.get_window_extent()
            assert box.x0 >= 0 and box.y0 >= 0, text
            assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, text


def test_it_draws_where_it_is_told(run: rl.Run) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plot_convergence({"a": run}, axis=right, title="Here") is figure
    assert not left.lines and len(right.lines) == 1
    assert right.get_title(loc="left") == "Here"


def test_part_of_a_figure_gives_the_whole(run: rl.Run) -> None:
    figure = Figure()
    axis = figure.subfigures(1, 2)[0].subplots()
    assert plot_convergence({"a": run}, axis=axis) is figure


def test_a_run_without_hops_can_be_drawn(run: rl.Run) -> None:
    still = rl.simulate(rl.IADMM(), run.problem, rl.ring(5), hops=0, engine="python")
    assert plot_convergence({"a": still}).axes[0].get_xlim() == (0.0, 1.0)


def test_an_unknown_column_is_refused_with_the_known_ones(run: rl.Run) -> None:
    with pytest.raises(ValueError, match=r"no column 'eror'.*accuracy, error, token_error"):
        plot_convergence({"a": run}, "eror")


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        plot_convergence({})


def test_matplotlib_comes_late_and_its_global_state_not_at_all() -> None:
    code = (
        "import sys, roundelay as rl, roundelay.plots as plots\n"
        "assert 'matplotlib' not in sys.modules\n"
        "run = rl.simulate(rl.IADMM(), rl.paper_least_squares(4, 5), rl.ring(4), hops=20, engine='python')\n"
        "plots.plot_convergence({'a': run})\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
