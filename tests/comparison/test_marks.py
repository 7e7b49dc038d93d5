import numpy as np
import pytest

from roundelay.comparison.ground import RATIO, geometric_marks


@pytest.mark.parametrize("steps", [1, 10, 142, 143, 144, 1000, 2_000_000])
def test_rows_are_dense_early_and_never_sparser_than_the_ratio(steps: int) -> None:
    marks = np.array(geometric_marks(steps))
    assert marks[0] == 0 and marks[-1] <= steps
    assert (np.diff(marks) > 0).all()
    assert (np.diff(marks)[1:] <= np.maximum(1.0, (RATIO - 1.0) * marks[1:-1] + 1.0)).all()
    assert marks[-1] * RATIO + 1.0 >= steps
    assert marks[: min(steps, 100)].tolist() == list(range(min(steps, 100)))


def test_a_budget_of_two_million_has_about_1500_rows() -> None:
    assert 1300 < len(geometric_marks(2_000_000)) < 1700


@pytest.mark.parametrize(("shorter", "longer"), [(50, 500), (1000, 10_000), (12_345, 2_000_000)])
def test_the_marks_of_a_shorter_run_are_the_first_of_a_longer_one(shorter: int, longer: int) -> None:
    first = geometric_marks(shorter)
    assert first == geometric_marks(longer)[: len(first)]
