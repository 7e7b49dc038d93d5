"""Five real processes, nothing tuned: the model is that of the pooled rows, whatever the data look like."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.agents import sealed_fits
from tests.agents.sealed_fits import Case, breast_cancer, cases, fitted, ring_of


@pytest.mark.parametrize("case", cases(60), ids=lambda case: case.name)
def test_the_ring_fits_what_the_pooled_rows_give(case: Case, tmp_path: Path) -> None:
    """The soak has them with 200 features."""
    found = fitted(tmp_path, case)
    assert found.difference <= (1e-7 if case.lasso else 1e-8)
    assert found.laps <= 15


def test_labels_that_can_be_separated_are_named_in_words(tmp_path: Path) -> None:
    ring = ring_of(tmp_path, Case("breast cancer", breast_cancer(), "logistic"))
    with pytest.raises(AssertionError, match="separate the two labels"):
        ring.run()
    for number in range(len(sealed_fits.SITES)):
        assert not (ring.site_folder(number) / "model.json").exists()


def test_the_condition_number_is_what_it_says() -> None:
    features, _, _ = Case("", sealed_fits.ill_conditioned()).standardised
    assert 0.3e8 < np.linalg.cond(features.T @ features) < 3e8
