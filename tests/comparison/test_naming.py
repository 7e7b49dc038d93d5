import pytest

import roundelay as rl
from roundelay.comparison.naming import named, parameters_in_words


def test_a_name_of_its_own_stays_as_it_is() -> None:
    chosen = [rl.IADMM(), rl.EXTRA()]
    assert named(chosen) == {"I-ADMM": chosen[0], "EXTRA": chosen[1]}


def test_settings_of_one_method_are_told_apart_by_what_differs() -> None:
    chosen = [rl.IADMM(rho=1.0), rl.IADMM(rho=10.0), rl.IADMM(rho=10.0, first_order=True), rl.WPG()]
    assert list(named(chosen)) == [
        "I-ADMM (rho=1.0, first_order=False)",
        "I-ADMM (rho=10.0, first_order=False)",
        "I-ADMM (rho=10.0, first_order=True)",
        "WPG",
    ]


def test_names_that_are_given_are_kept() -> None:
    assert list(named({"slow": rl.WPG(0.01), "quick": rl.WPG(0.1)})) == ["slow", "quick"]


@pytest.mark.parametrize(
    ("algorithms", "sentence"),
    [
        ([rl.IADMM(), rl.IADMM()], "given 2 times with the same parameters"),
        ([], "at least one"),
        ([rl.IADMM], r"use an object such as roundelay.IADMM\(rho=10.0\)"),
        (rl.IADMM(), "give a list"),
        ("iadmm", "give a list"),
    ],
)
def test_what_can_not_be_compared_is_refused(algorithms: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        named(algorithms)


def test_step_sizes_that_follow_the_problem_are_a_range() -> None:
    own = [rl.EXTRA().resolved(rl.paper_least_squares(5, 6, seed=seed)) for seed in range(3)]
    words = parameters_in_words(own)
    low, high = (float(number) for number in words.split(",")[0].removeprefix("alpha=").split("…"))
    assert low == pytest.approx(min(one.alpha for one in own), rel=1e-5)
    assert high == pytest.approx(max(one.alpha for one in own), rel=1e-5)
    assert parameters_in_words([rl.OnePass()]) == "none"
