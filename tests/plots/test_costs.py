"""What a figure is drawn over, and where its curves end."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import roundelay as rl
from roundelay.plots import plot_convergence
from roundelay.plots.axes import curve_of
from roundelay.plots.style import label_of


@pytest.mark.parametrize(
    ("over", "label"),
    [("units", "communication (units)"), ("bytes", "communication (bytes)"), ("seconds", "time (simulated seconds)")],
)
def test_a_curve_is_drawn_over_any_cost(gossip: rl.Ensemble, over: str, label: str) -> None:
    axis = plot_convergence({"D-ADMM": gossip}, over=over).axes[0]
    bands = gossip.bands("error", over=over)
    (line,) = axis.lines
    drawn = len(line.get_xdata())
    np.testing.assert_array_equal(line.get_xdata(), bands[over][:drawn])
    np.testing.assert_array_equal(line.get_ydata(), bands["median"][:drawn])
    assert axis.get_xlabel() == label and axis.get_xscale() == "linear"


def test_bands_over_a_cost_are_quantiles_of_what_was_last_known(gossip: rl.Ensemble) -> None:
    bands = gossip.bands("consensus", low=0.0, high=1.0, over="seconds")
    assert list(bands.columns) == ["seconds", "low", "median", "high"]
    for _, row in bands.iloc[::7].iterrows():
        last = [run.history[run.history["seconds"] <= row["seconds"]]["consensus"].iloc[-1] for run in gossip]
        assert row["low"] == min(last) and row["high"] == max(last)
        assert row["median"] == pytest.approx(np.median(last), rel=1e-15)


def test_a_run_that_stopped_early_keeps_its_last_value_and_ends_with_most_seeds() -> None:
    problem, network = rl.paper_least_squares(5, 6), rl.ring(5)
    quick, slow = (
        rl.simulate(rl.WPG(alpha=alpha), problem, network, 400, tolerance=1e-3, record=1, engine="python")
        for alpha in (0.3, 0.003)
    )
    assert (quick.stop, slow.stop) == ("tolerance", "hops")
    mixed = rl.Ensemble((quick, quick, slow))
    curve = curve_of(mixed, "error")
    assert curve.cost[-1] == quick.history["units"].iloc[-1], "most seeds have ended here"
    assert curve.middle[-1] == quick.history["error"].iloc[-1]
    bands = mixed.bands("error")
    assert bands["units"].iloc[-1] == 400, "the data go on"
    late = bands[bands["units"] >= quick.units]
    assert (late["median"] == quick.history["error"].iloc[-1]).all()
    assert curve_of(rl.Ensemble((quick, slow, slow)), "error").cost[-1] == 400


def test_a_logarithmic_cost_begins_where_the_first_method_makes_progress(run: rl.Run, gossip: rl.Ensemble) -> None:
    axis = plot_convergence({"token": run, "gossip": gossip}, log_cost=True).axes[0]
    assert axis.get_xscale() == "log"
    left, right = axis.get_xlim()
    history = run.history
    first = history["units"][(history["error"] < 0.9 * history["error"].iloc[0]) & (history["units"] > 0)].iloc[0]
    assert 0.0 < left <= 0.5 * first
    assert right == max(run.units, gossip[0].units)


@pytest.mark.parametrize("log_cost", [False, True])
def test_a_run_that_cost_nothing_can_be_drawn(run: rl.Run, log_cost: bool) -> None:
    still = rl.simulate(rl.IADMM(), run.problem, rl.ring(5), hops=0, engine="python")
    assert plot_convergence({"a": still}, log_cost=log_cost).axes[0].get_xlim() == (0.0, 1.0)


@pytest.mark.parametrize("methods", [8, 9, 20])
def test_a_long_legend_stands_beside_the_curves(run: rl.Run, methods: int) -> None:
    names = [f"a method with quite a long name ({place})" for place in range(methods)]
    figure = plot_convergence(dict.fromkeys(names, run), log_cost=True)
    FigureCanvasAgg(figure).draw()
    axis = figure.axes[0]
    legend = axis.get_legend().get_window_extent()
    if methods > 8:
        assert legend.x0 >= axis.get_window_extent().x1, "it covers no curve"
    else:
        assert legend.x1 <= axis.get_window_extent().x1
    assert legend.x1 <= figure.bbox.x1 and legend.y0 >= 0.0 and legend.y1 <= figure.bbox.y1
    texts = [text.get_window_extent() for text in axis.get_legend().get_texts()]
    assert all(above.y0 >= below.y1 - 1.0 for above, below in pairwise(texts))
    assert axis.get_window_extent().width > 0.4 * figure.bbox.width, "there is room for the curves"


def test_the_mean_error_has_a_label(gossip: rl.Ensemble) -> None:
    assert label_of("mean_error").startswith("error of the mean")
    assert plot_convergence({"a": gossip}, "mean_error").axes[0].get_ylabel() == label_of("mean_error")


def test_what_the_history_does_not_have_is_refused(run: rl.Run) -> None:
    with pytest.raises(ValueError, match="no seconds: give the network's conditions"):
        plot_convergence({"a": run}, over="seconds")
    with pytest.raises(ValueError, match="can't be drawn over 'minutes': use one of units, bytes, seconds"):
        plot_convergence({"a": run}, over="minutes")
    with pytest.raises(ValueError, match="without a single run"):
        plot_convergence({"a": rl.Ensemble(())})
