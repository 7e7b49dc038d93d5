"""Differential privacy on the command line."""

import json
import re

import pytest

import roundelay as rl
from roundelay.privacy import epsilon
from tests.cli.conftest import SMALL, Invoke

PRIVATE = ("simulate", "piadmm2", "--first-order", "--clip", "1", "--problem", "logistic", "--seed", "2")


def test_the_budget_ends_the_run_and_epsilon_is_told(invoke: Invoke) -> None:
    said = invoke(*PRIVATE, "--sigma", "0.1", "--budget-epsilon", "1", "--delta", "1e-6", *SMALL, "--json")
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    algorithm = rl.PIADMM2(first_order=True, clip=1.0, sigma=0.1)
    problem = rl.paper_logistic(8, 30, 2, seed=2)
    assert told["options"]["clip"] == 1.0 and told["options"]["sigma"] == 0.1 and told["options"]["first_order"] is True
    assert told["stop"] == "budget" and told["hops"] % 8 == 0
    visits = told["hops"] // 8
    assert told["privacy"]["epsilon"] == epsilon(algorithm, problem, visits, 1e-6).epsilon <= 1.0
    assert epsilon(algorithm, problem, visits + 1, 1e-6).epsilon > 1.0


def test_it_is_said_in_words(invoke: Invoke) -> None:
    text = re.sub(r"\s+", " ", invoke(*PRIVATE, "--sigma", "0.1", *SMALL).stdout)
    assert "privacy ε = " in text and "replace one record" in text


def test_without_clipping_the_summary_says_that_there_is_no_guarantee(invoke: Invoke) -> None:
    said = invoke("simulate", "piadmm2", *SMALL, "--json")
    told = json.loads(said.stdout)["privacy"]
    assert (
        told["epsilon"] is None
        and "There is no guarantee of differential privacy: its steps are exact" in told["words"]
    )


@pytest.mark.parametrize("name", ["iadmm", "piadmm1"])
def test_others_say_nothing_of_it(invoke: Invoke, name: str) -> None:
    assert "privacy" not in json.loads(invoke("simulate", name, *SMALL, "--json").stdout)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("simulate", "piadmm1", "--budget-epsilon", "1"), "step size changes"),
        (("simulate", "piadmm2", "--first-order", "--budget-epsilon", "1"), "not clipped"),
        (("simulate", "iadmm", "--clip", "1"), "I-ADMM has no option 'clip'"),
        ((*PRIVATE, "--sigma", "0.1", "--delta", "2"), "below 1"),
        ((*PRIVATE, "--set", "clip=2"), "set twice"),
    ],
)
def test_what_makes_no_sense_is_refused(invoke: Invoke, words: tuple[str, ...], error: str) -> None:
    said = invoke(*words, *SMALL)
    assert said.exit_code != 0
    assert error in re.sub(r"[\s│]+", " ", said.output)
