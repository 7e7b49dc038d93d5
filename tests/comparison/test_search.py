"""The search alone, on functions whose minimum is known."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings, strategies as st

from roundelay.comparison.search import FINEST, Coordinate, Point, Score, Search

Objective = Callable[[dict[str, float]], float]


def search_for(objective: Objective, *coordinates: Coordinate, evaluations: int = 24) -> tuple[Search, list[Point]]:
    """A search that has ended, and the points in the order in which they were evaluated."""
    order: list[Point] = []

    def evaluate(point: Point) -> Score:
        order.append(point)
        return Score(0, objective(values(point, coordinates)))

    search = Search(coordinates, evaluate, evaluations)
    search.run()
    search.close_edges()
    return search, order


def values(point: Point, coordinates: tuple[Coordinate, ...]) -> dict[str, float]:
    return {entry.name: entry.value(t) for entry, t in zip(coordinates, point, strict=True)}


def valley(best: float) -> Objective:
    return lambda setting: 1.0 + math.log(setting["a"] / best) ** 2


@given(start=st.floats(-8.0, 8.0), best=st.floats(-8.0, 8.0))
@settings(max_examples=60, deadline=None)
def test_one_parameter_is_found_from_anywhere(start: float, best: float) -> None:
    search, order = search_for(valley(math.exp(best)), Coordinate("a", "positive", math.exp(start)))
    (t,) = search.best
    assert abs(t - best) < math.log(1.1)
    assert not search.edges()
    assert len(order) == len(set(order)) <= 48
    assert search.factor < FINEST or len(order) >= 24


@given(
    starts=st.tuples(st.floats(-2.0, 2.0), st.floats(-2.0, 2.0)), best=st.tuples(st.floats(-2.0, 2.0), st.floats(-2.0, 2.0))
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_it_never_ends_worse_than_it_began(starts: tuple[float, float], best: tuple[float, float]) -> None:
    coordinates = tuple(Coordinate(name, "positive", math.exp(t)) for name, t in zip("ab", starts, strict=True))

    def objective(setting: dict[str, float]) -> float:
        a, b = math.log(setting["a"]) - best[0], math.log(setting["b"]) - best[1]
        return 1.0 + a * a + 4.0 * (b - 0.5 * a) ** 2

    search, order = search_for(objective, *coordinates)
    assert not search.seen[order[0]].beats(search.seen[search.best])
    assert all(not score.beats(search.seen[search.best]) for score in search.seen.values())
    assert len(order) - search.extended == 24 or search.factor < FINEST


def test_it_spends_exactly_its_evaluations_where_the_factor_stays_large() -> None:
    coordinates = [Coordinate(name, "positive", 1.0) for name in "abc"]
    for evaluations in (5, 12, 24):
        search, order = search_for(
            lambda setting: 1.0 + sum(math.log(value / 9.0) ** 2 for value in setting.values()),
            *coordinates,
            evaluations=evaluations,
        )
        assert len(order) - search.extended == evaluations


def test_a_best_value_at_the_edge_is_followed_until_it_is_not() -> None:
    search, order = search_for(valley(4.0**5), Coordinate("a", "positive", 1.0), evaluations=4)
    assert search.extended > 0 and not search.edges()
    assert abs(search.best[0] - 5 * math.log(4.0)) < math.log(4.0)
    beyond = [point for (point,) in order if point > search.best[0]]
    assert beyond, "a larger value than the best was tried"


def test_an_edge_without_end_is_given_up_and_told() -> None:
    search, order = search_for(lambda setting: 1.0 / setting["a"], Coordinate("a", "positive", 1.0), evaluations=6)
    assert len(order) == 12 and search.extended == 6
    assert search.edges() == [(0, 1.0)]


def test_a_share_ends_at_one_and_that_is_no_edge() -> None:
    search, _ = search_for(lambda setting: 2.0 - setting["q"], Coordinate("q", "share", 0.3))
    assert search.best == (0.0,) and not search.edges()


def test_a_number_below_one_is_searched_in_its_distance_from_one() -> None:
    coordinate = Coordinate("rho", "below one", 0.85)
    search, order = search_for(lambda setting: 1.0 + math.log((1.0 - setting["rho"]) / 1e-3) ** 2, coordinate)
    assert 1.0 - coordinate.value(search.best[0]) == pytest.approx(1e-3, rel=0.1)
    assert all(0.0 < coordinate.value(t) < 1.0 for (t,) in order)
    search, order = search_for(lambda setting: setting["rho"], coordinate)
    assert coordinate.value(search.best[0]) == pytest.approx(0.01) and not search.edges()


def test_a_parameter_that_does_nothing_is_left_alone() -> None:
    coordinates = [Coordinate("a", "positive", 3.0), Coordinate("b", "positive", 7.0)]
    search, _ = search_for(lambda setting: valley(30.0)(setting) + 1e-9 * setting["b"], *coordinates)
    assert values(search.best, tuple(coordinates))["b"] == 7.0


def test_a_better_rank_beats_any_value() -> None:
    assert Score(0, 1e9).beats(Score(1, 0.0)) and Score(2, -5.0).beats(Score(2, -4.0))
    assert not Score(0, 1.0).beats(Score(0, 1.0))


@pytest.mark.parametrize(("kind", "begin"), [("positive", 12.0), ("share", 1.0), ("below one", 0.85)])
def test_a_step_and_a_step_back_is_the_same_point(kind: str, begin: float) -> None:
    coordinate = Coordinate("a", kind, begin)
    for factor in (4.0, 2.0, math.sqrt(2.0)):
        away = coordinate.clipped(coordinate.origin - math.log(factor))
        assert coordinate.clipped(away + math.log(factor)) == coordinate.origin
    assert coordinate.value(coordinate.origin) == begin
