from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.font_manager import findfont
from matplotlib.ft2font import FT2Font

from roundelay.plots.chart import BACKGROUND, Chart, ChartFigure, Series, chart_numbers
from roundelay.plots.chart_figure import draw_chart_figure
from roundelay.plots.layout import label_places
from roundelay.plots.saving import save_figure
from roundelay.plots.style import style_of
from tests.report_example import HOSTILE, METHODS, convergence, network, privacy, single, trade_off

ALL = (convergence, single, network, privacy, trade_off)

# What the labels of the paper's figures are written with.
SYMBOLS = "₀₁₂₃₄₅₆₇₈₉⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵏᵢⱼₖ‖∥−×·→∞√½ΣΔαβγδεηκλμρστωΩ∇≤≥≈≠∈∝±…–—′’“”x̄x̂ẑᵀ⟨⟩∂ℝ"


def one(*series: Series, **given: object) -> ChartFigure:
    return ChartFigure("a", "A", "", (Chart("", "x", "y", series, **given),))


def labels(legend: object) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]


def test_panels_with_the_same_series_share_one_legend() -> None:
    drawn = draw_chart_figure(convergence())
    (legend,) = drawn.legends
    assert labels(legend) == [*METHODS, "bound of Theorem 2"]
    assert [axis.get_legend() for axis in drawn.axes] == [None, None]


def test_panels_with_other_series_have_a_legend_each() -> None:
    drawn = draw_chart_figure(privacy())
    assert not drawn.legends
    assert [labels(axis.get_legend()) for axis in drawn.axes] == [
        ["x₁ᵏ(1)", "x₁ᵏ(2)"],
        ["from one lap", "from two laps"],
    ]


def test_the_same_label_in_another_colour_is_another_series() -> None:
    line = Series("a", np.arange(3.0), np.arange(3.0), 0)
    chart = Chart("", "x", "y", (line,))
    other = replace(chart, series=(replace(line, place=1),))
    assert len(draw_chart_figure(ChartFigure("a", "A", "", (chart, chart))).legends) == 1
    assert not draw_chart_figure(ChartFigure("a", "A", "", (chart, other))).legends


def test_a_legend_is_for_those_panels_that_have_a_series_in_common() -> None:
    x = np.arange(3.0)
    agents = tuple(Series(f"agent {place}", x, x, place) for place in range(3))
    charts = [Chart("", "x", "y", series) for series in (agents[:2], agents[1:], (Series("z", x, x, 6),))]
    drawn = draw_chart_figure(ChartFigure("a", "A", "", tuple(charts), columns=3))
    assert [labels(legend) for legend in drawn.legends] == [["agent 0", "agent 1", "agent 2"]]
    assert [axis.get_legend() is not None for axis in drawn.axes] == [False, False, True]


def test_two_legends_of_several_panels_stand_together() -> None:
    x = np.arange(3.0)
    charts = [Chart("", "x", "y", (Series(label, x, x, place),)) for place, label in enumerate("ab") for _ in range(2)]
    drawn = draw_chart_figure(ChartFigure("a", "A", "", tuple(charts), columns=2))
    assert [labels(legend) for legend in drawn.legends] == [["a", "b"]]


def test_what_is_not_shown_is_left_out() -> None:
    line = Series("a", np.arange(3.0), np.arange(3.0), 0)
    (axis,) = draw_chart_figure(one(line, replace(line, label="b", shown=False))).axes
    assert len(axis.lines) == 1 and labels(axis.get_legend()) == ["a"]
    first, second = draw_chart_figure(convergence()).axes
    assert len(first.lines) == len(second.lines) + 1


def test_axes_are_scaled_and_ranged_as_the_chart_says() -> None:
    first, second = draw_chart_figure(convergence()).axes
    assert (first.get_xscale(), first.get_yscale()) == ("linear", "log")
    assert (second.get_xscale(), second.get_yscale()) == ("log", "log")
    (axis,) = draw_chart_figure(single()).axes
    assert axis.get_xlim() == (0.0, 59.0) and axis.get_ylim() == (0.0, 2.0)


def test_a_series_looks_as_its_place_says() -> None:
    (axis,) = draw_chart_figure(single()).axes
    for line, series in zip(axis.lines, single().charts[0].series, strict=True):
        assert to_hex(line.get_color()) == style_of(series.place).colour.lower()
        assert line.get_marker() == style_of(series.place).marker
    assert axis.lines[2].get_linestyle() == "None"


def test_gaps_stay_gaps_and_what_an_axis_cannot_show_becomes_one() -> None:
    y = np.array([1.0, np.nan, 2.0, 0.0, -1.0, np.inf, 3.0])
    x = np.arange(7.0)
    (plain,) = draw_chart_figure(one(Series("a", x, y))).axes[0].lines
    assert np.flatnonzero(np.isnan(plain.get_ydata())).tolist() == [1, 5]
    (logarithmic,) = draw_chart_figure(one(Series("a", x, y), log_y=True)).axes[0].lines
    assert np.flatnonzero(np.isnan(logarithmic.get_ydata())).tolist() == [1, 3, 4, 5]


def test_a_band_down_to_zero_reaches_the_floor_of_a_logarithmic_axis() -> None:
    x, y = np.arange(1.0, 5.0), np.array([1.0, 0.1, 0.01, 0.001])
    series = Series("a", x, y, low=np.zeros(4), high=2.0 * y)
    (band,) = draw_chart_figure(one(series, log_y=True)).axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == 0.0005 and heights.max() == 2.0


def test_a_drawing_has_no_axes_and_keeps_its_shape() -> None:
    first, second, third = draw_chart_figure(network()).axes
    for axis in (first, second):
        assert axis.get_aspect() == 1.0 and not axis.axison
        links, cycle, _ = axis.lines
        assert links.get_linewidth() < cycle.get_linewidth() and links.get_marker() == "None"
        assert [text.get_text() for text in axis.texts] == [str(agent) for agent in range(1, 13)]
    assert third.axison


def test_the_background_is_grey_and_behind() -> None:
    line = Series("a", np.arange(3.0), np.arange(3.0), 0)
    back, front = draw_chart_figure(one(replace(line, place=BACKGROUND), replace(line, label="b"))).axes[0].lines
    assert back.get_zorder() < front.get_zorder()
    red, green, blue = to_rgb(back.get_color())
    assert red == green == blue


def test_names_of_points_do_not_overlap() -> None:
    drawn = draw_chart_figure(trade_off())
    FigureCanvasAgg(drawn).draw()
    (axis,) = drawn.axes
    boxes = [text.get_window_extent() for text in axis.texts]
    assert [text.get_text() for text in axis.texts] == list(METHODS)
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
    (chart,) = trade_off().charts
    assert len(set(label_places(chart, chart.series[0]))) > 1


@pytest.mark.parametrize("make", ALL)
def test_no_text_is_clipped(make: object) -> None:
    drawn = draw_chart_figure(make())
    FigureCanvasAgg(drawn).draw()
    legends = [*drawn.legends, *(axis.get_legend() for axis in drawn.axes if axis.get_legend())]
    texts = [drawn._suptitle, *(text for legend in legends for text in legend.get_texts())]
    texts += [
        text for axis in drawn.axes for text in (axis._left_title, axis.xaxis.label, axis.yaxis.label, *axis.texts)
    ]
    for text in texts:
        box = text.get_window_extent()
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= drawn.bbox.x1 + 1 and box.y1 <= drawn.bbox.y1 + 1, text
    for legend in legends:
        box = legend.get_window_extent()
        assert not any(box.overlaps(axis.get_window_extent()) for axis in drawn.axes if axis.axison)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_same_data_give_the_same_file(tmp_path: Path, suffix: str) -> None:
    first, second = (save_figure(draw_chart_figure(single()), tmp_path / f"{n}.{suffix}").read_bytes() for n in "ab")
    assert first == second


def test_dollars_and_tags_are_text() -> None:
    (axis,) = draw_chart_figure(single()).axes
    assert HOSTILE in labels(axis.get_legend())
    assert not any(text.get_parse_math() for text in axis.get_legend().get_texts())


def test_the_font_has_the_symbols_of_the_paper() -> None:
    known = FT2Font(findfont("DejaVu Sans")).get_charmap()
    assert [symbol for symbol in SYMBOLS if ord(symbol) not in known] == []


def test_a_figure_without_panels_is_refused() -> None:
    with pytest.raises(ValueError, match="no panel to draw"):
        draw_chart_figure(ChartFigure("a", "A", "", ()))


def test_the_numbers_behind_a_figure_are_all_there() -> None:
    numbers = chart_numbers(network())
    assert list(numbers.columns) == ["panel", "series", "x", "y", "low", "high", "name"]
    agents = numbers[(numbers["panel"] == "Dense: 0.5") & (numbers["series"] == "agents")]
    assert agents["name"].tolist() == [str(agent) for agent in range(1, 13)]
