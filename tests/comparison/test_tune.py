from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import roundelay as rl
from roundelay.algorithms import Tunable
from roundelay.algorithms.algorithm import Algorithm
from roundelay.registry import registered

Made = Callable[[int], object]

SEEDS = (100, 101, 102)


def units_of(algorithm: object, problem: Made, network: Made, level: float, units: int = 20_000) -> float:
    """The median cost of a setting, measured anew, with a row for every hop."""
    runs = rl.simulate(
        algorithm, problem, network, units, seeds=SEEDS, tolerance=level / 2, record=1, engine="python", progress=False
    )
    return float(np.median(runs.units_to(level)))


@pytest.fixture(scope="module")
def tuning(problem: Made, network: Made) -> rl.Tuning:
    """WPG, from a step that is far too short."""
    return rl.tune(
        rl.WPG(alpha=0.02), problem, network, seeds=SEEDS, level=1e-4, units=20_000, engine="python", progress=False
    )


def test_the_step_is_near_the_best_of_a_fine_grid(tuning: rl.Tuning, problem: Made, network: Made) -> None:
    grid = np.geomspace(0.12, 1.5, 26)
    costs = [units_of(rl.WPG(alpha=alpha), problem, network, 1e-4, 1000) for alpha in grid]
    best = grid[int(np.argmin(costs))]
    assert best / 1.5 < tuning.algorithm.alpha < 1.5 * best
    assert units_of(tuning.algorithm, problem, network, 1e-4) < 1.1 * min(costs)


def test_it_is_never_worse_than_the_start(tuning: rl.Tuning, problem: Made, network: Made) -> None:
    start, tuned = (units_of(algorithm, problem, network, 1e-4) for algorithm in (tuning.start, tuning.algorithm))
    assert tuned < start
    assert tuning.units == pytest.approx(tuned, rel=0.01)
    assert tuning.trials["units"].iloc[0] == pytest.approx(start, rel=0.01)


def test_the_trials_tell_what_was_tried(tuning: rl.Tuning) -> None:
    trials = tuning.trials
    assert tuning.tuned == ("alpha",) and tuning.start == rl.WPG(alpha=0.02)
    assert tuning.evaluations == len(trials) == trials["alpha"].nunique() <= 24
    assert trials["alpha"].iloc[0] == 0.02
    best = trials[trials["alpha"] == tuning.algorithm.alpha].iloc[0]
    assert best["units"] == tuning.units and best["units"] <= 1.001 * trials["units"].min()
    assert tuning.bracketed and trials["alpha"].min() < tuning.algorithm.alpha < trials["alpha"].max()
    assert tuning.kept == {"walk": rl.Cycle(), "regulariser": rl.WPG().regulariser}


def test_a_setting_is_given_up_once_it_can_not_win(tuning: rl.Tuning) -> None:
    trials = tuning.trials
    least = trials["units"].cummin().shift(fill_value=np.inf)
    racing = (trials["budget"] < 20_000) & np.isfinite(least)
    assert racing.any()
    assert (trials["budget"][racing] <= 1.3 * least[racing] + 1e-9).all()
    assert (trials["units"][trials["outcome"] == "given up"] == np.inf).all()


def test_the_words_report_it(tuning: rl.Tuning) -> None:
    for words in (
        "alpha of WPG was tuned on the seeds 100 to 102",
        f"{tuning.evaluations} evaluations",
        "alpha from 0.02 to",
        f"to {tuning.units:,.0f} units",
        "As given: walk=Cycle()",
    ):
        assert words in tuning.words
    assert ("Fewer than allowed" in tuning.words) == (tuning.evaluations < 24)


def test_every_algorithm_has_as_many_evaluations(problem: Made, network: Made) -> None:
    counts = {}
    for algorithm in (rl.IADMM(), rl.WPG(), rl.COCA(), rl.EXTRA()):
        found = rl.tune(
            algorithm, problem, network, seeds=[100], level=1e-2, evaluations=6, units=3000, engine="python",
            progress=False,
        )  # fmt: skip
        assert found.bracketed
        counts[algorithm.name] = found.evaluations - found.extended
    assert set(counts.values()) == {6}


def test_a_best_value_at_the_edge_is_followed(problem: Made, network: Made) -> None:
    found = rl.tune(
        rl.WPG(alpha=5e-3), problem, network, seeds=[100], level=1e-1, evaluations=2, units=5000, engine="python",
        progress=False,
    )  # fmt: skip
    assert found.extended > 0 and found.evaluations == 2 + found.extended <= 4
    assert "on top" in found.words
    if found.bracketed:
        assert found.trials["alpha"].max() > found.algorithm.alpha
    else:
        assert "still at the edge" in found.words


def test_a_start_that_diverges_is_left_behind(problem: Made, network: Made) -> None:
    found = rl.tune(
        rl.WPG(alpha=40.0), problem, network, seeds=[100], level=1e-3, units=5000, engine="python", progress=False
    )
    assert found.trials["outcome"].iloc[0] == "diverged" and np.isfinite(found.units)
    assert "The start did not come to 1e-3 (diverged)" in found.words
    assert not found.diverged


def test_where_no_setting_gets_there_the_least_error_wins(problem: Made, network: Made) -> None:
    noisy = rl.tune(
        rl.PIADMM2(rho=2.0, sigma=0.1), problem, network, seeds=[100], level=1e-9, evaluations=6, units=500, engine="python",
        progress=False,
    )  # fmt: skip
    assert noisy.units == np.inf and "No setting came to 1e-9" in noisy.words
    best = noisy.trials[noisy.trials["rho"] == noisy.algorithm.rho].iloc[0]
    assert best["error"] <= 1.001 * noisy.trials["error"].min()


def test_a_step_left_open_starts_where_the_problem_puts_it(problem: Made, network: Made) -> None:
    found = rl.tune(
        rl.EXTRA(),
        problem,
        network,
        seeds=SEEDS,
        level=1e-2,
        evaluations=4,
        units=4000,
        engine="python",
        progress=False,
    )
    assert found.start.alpha == rl.EXTRA().resolved(problem(SEEDS[0])).alpha == found.trials["alpha"].iloc[0]
    assert isinstance(found.algorithm, rl.EXTRA) and found.algorithm.alpha > 0.0


def test_a_parameter_that_is_off_is_tried_off_and_on(problem: Made, network: Made) -> None:
    given = rl.PWADMM(walks=2)
    found = rl.tune(
        given, problem, network, seeds=[100], level=1e-2, evaluations=5, units=2000, engine="python", progress=False
    )
    assert found.tuned == ("rho", "tau")
    first, second = found.trials.iloc[0], found.trials.iloc[1]
    assert (first["rho"], first["tau"]) == (1.0, 0.0) and second["tau"] == 1.0
    assert found.units <= first["units"]
    off = rl.tune(
        rl.COCA(alpha=0.0), problem, network, seeds=[100], level=1e-2, evaluations=3, units=900, engine="python",
        progress=False,
    )  # fmt: skip
    assert off.tuned == ("c", "rho") and off.kept["alpha"] == 0.0


def test_named_parameters_alone_are_tuned(problem: Made, network: Made) -> None:
    found = rl.tune(
        rl.COCA(), problem, network, seeds=[100], level=1e-2, evaluations=3, units=900, parameters=["c"],
        engine="python", progress=False,
    )  # fmt: skip
    assert found.tuned == ("c",) and {"alpha", "rho"} <= set(found.kept)
    assert replace(found.algorithm, c=1.0) == rl.COCA()


def test_what_has_nothing_to_tune_is_returned_as_it_is(problem: Made, network: Made) -> None:
    found = rl.tune(rl.OnePass(), problem, network)
    assert found.algorithm == rl.OnePass() and found.evaluations == 0 and found.trials.empty
    assert "no parameter to tune" in found.words
    none = rl.tune(rl.WPG(), problem, network, parameters=[])
    assert none.algorithm == rl.WPG() and "No parameter of WPG was to be tuned" in none.words


@dataclass(frozen=True)
class Picky(rl.IADMM):
    """Refuses penalties above the one it is given."""

    name: ClassVar[str] = "picky"
    tunable: ClassVar[tuple[Tunable, ...]] = (Tunable("rho"),)

    def __post_init__(self) -> None:
        if self.rho > 10.0:
            raise ValueError("rho is too large for me.")


def test_a_setting_that_is_refused_ranks_last(problem: Made, network: Made) -> None:
    found = rl.tune(
        Picky(), problem, network, seeds=[100], level=1e-2, evaluations=6, units=3000, engine="python", progress=False
    )
    assert (found.trials["outcome"] == "refused").any()
    assert found.algorithm.rho <= 10.0 and np.isfinite(found.units)


def test_an_algorithm_that_can_not_run_here_is_refused() -> None:
    class Bare(rl.LeastSquares):
        def kernel(self) -> object:
            part = super().kernel()
            return replace(part, functions=tuple(entry for entry in part.functions if entry[0] != "minimise"))

    problem = Bare(np.ones((3, 2, 1)), np.ones((3, 2)))
    with pytest.raises(ValueError, match="needs a proximal step"):
        rl.tune(rl.IADMM(), problem, rl.ring(3), progress=False)


def test_an_interrupt_gives_the_best_so_far(problem: Made, network: Made) -> None:
    def press(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    options = {"seeds": [100], "level": 1e-2, "units": 5000, "engine": "python"}
    found = rl.tune(rl.WPG(alpha=1e-3), problem, network, **options, progress=press)
    assert found.interrupted and found.evaluations == 3 and "interrupted" in found.words
    assert found.algorithm.alpha == 0.004

    def at_once(done: int, total: int) -> None:
        raise KeyboardInterrupt

    assert rl.tune(rl.WPG(alpha=1e-3), problem, network, **options, progress=at_once).algorithm == rl.WPG(alpha=1e-3)


@pytest.mark.parametrize(
    ("algorithm", "options", "sentence"),
    [
        (rl.WPG(), {"parameters": ["gamma"]}, "WPG can't be tuned in 'gamma': what can be tuned is alpha"),
        (rl.OnePass(), {"parameters": ["rho"]}, "it has nothing to tune"),
        (rl.COCA(alpha=0.0), {"parameters": ["alpha"]}, "alpha of COCA is 0.0, where a search in factors can't begin"),
        (rl.WPG(), {"parameters": "alpha"}, "give a list of names"),
        (rl.WPG(), {"evaluations": 0}, "at least 1"),
        (rl.WPG(), {"level": -1.0}, "positive"),
        (rl.WPG, {}, "is not an algorithm"),
    ],
)
def test_what_can_not_be_tuned_is_refused(algorithm: object, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        rl.tune(algorithm, rl.paper_least_squares(4, 5), rl.ring(4), **options)


def test_every_algorithm_says_what_can_be_tuned() -> None:
    for kind in registered(Algorithm).values():
        assert all(hasattr(kind(), entry.name) for entry in kind.tunable), kind
