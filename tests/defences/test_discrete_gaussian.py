"""Noise of whole steps: its law is exact at small scales, Gaussian at large ones, and the same again for the same question."""

import numpy as np
import pytest
from scipy import stats

from roundelay.masks import AgreedPairs, SeededPairs, discrete_gaussian, new_private_key, own_words, public_key_of

COUNT = 100_000


def chi_square(draws: np.ndarray, deviation: float) -> float:
    """The chance of counts as far from the exact law as these, the tails in one cell each."""
    reach = int(3 * deviation)
    values = np.arange(-40 * int(np.ceil(deviation)), 40 * int(np.ceil(deviation)) + 1)
    law = np.exp(-0.5 * (values / deviation) ** 2)
    law /= law.sum()
    cells = np.clip(values, -reach - 1, reach + 1)
    expected = np.array([law[cells == cell].sum() for cell in range(-reach - 1, reach + 2)])
    counted = np.bincount(np.clip(draws, -reach - 1, reach + 1) + reach + 1, minlength=len(expected))
    return float(stats.chisquare(counted, COUNT * expected).pvalue)


@pytest.mark.parametrize("exponent", [1, 2, 4])
def test_small_scales_have_the_exact_law(exponent: int) -> None:
    draws = discrete_gaussian(own_words(SeededPairs(exponent), 0, 0), COUNT, exponent)
    assert chi_square(draws, 2.0**exponent) > 1e-3
    assert chi_square(draws, 1.03 * 2.0**exponent) < 1e-6, "the test would not notice another scale"


def test_large_scales_are_gaussian_down_to_uniform_last_bits() -> None:
    draws = discrete_gaussian(own_words(SeededPairs(5), 0, 0), COUNT, 30)
    scaled = draws / 2.0**30
    assert abs(scaled.var() - 1.0) < 4.0 * np.sqrt(2.0 / COUNT)
    assert abs(scaled.mean()) < 4.0 / np.sqrt(COUNT)
    assert stats.kstest(scaled, "norm").pvalue > 1e-3
    low = np.bincount(draws & 15, minlength=16)
    assert stats.chisquare(low).pvalue > 1e-3


def test_neighbouring_draws_and_members_are_not_related() -> None:
    first, second = (discrete_gaussian(own_words(SeededPairs(6), me, 0), 20_000, 30) / 2.0**30 for me in (0, 1))
    for one, other in ((first, second), (first[:-1], first[1:])):
        assert abs(np.corrcoef(one, other)[0, 1]) < 4.0 / np.sqrt(20_000)


def test_the_same_question_has_the_same_noise_and_another_has_not() -> None:
    keys = [new_private_key() for _ in range(3)]
    public = tuple(map(public_key_of, keys))
    for secrets in (SeededPairs(7), AgreedPairs(1, keys[1], public, "run", 0)):
        noise = discrete_gaussian(own_words(secrets, 1, 4), 50, 30)
        assert np.array_equal(noise, discrete_gaussian(own_words(secrets, 1, 4), 50, 30))
        assert not np.isin(noise, discrete_gaussian(own_words(secrets, 1, 5), 50, 30)).any()
    later = AgreedPairs(1, keys[1], public, "run", 1)
    assert not np.isin(noise, discrete_gaussian(own_words(later, 1, 4), 50, 30)).any()


def test_nobody_else_can_draw_a_members_noise() -> None:
    keys = [new_private_key() for _ in range(3)]
    public = tuple(map(public_key_of, keys))
    own, other = (AgreedPairs(me, keys[me], public, "run") for me in (0, 2))
    assert own.key(0, 0) not in {own.key(0, 1), own.key(0, 2), other.key(2, 2), other.key(2, 1)}
    with pytest.raises(ValueError, match="does not know the secret"):
        own_words(other, 0, 0)(1)


def test_a_scale_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="from 1 to 31"):
        discrete_gaussian(own_words(SeededPairs(0), 0, 0), 1, 32)
