import json

import pytest

import roundelay as rl
from tests.cli.conftest import Invoke

SCENE = ("--agents", "8", "--density", "0.6", "--samples", "10", "--units", "3000", "--engine", "python")
QUICK = (*SCENE, "--seeds", "1", "--level", "1e-3", "--evaluations", "6")


def same_tuning(algorithm: object, **options: object) -> rl.Tuning:
    """What the command with QUICK must have found."""
    return rl.tune(
        algorithm,
        lambda seed: rl.paper_least_squares(8, 10, 2, seed=seed),
        lambda seed: rl.random_network(8, 0.6, seed=seed),
        seeds=[1000],
        level=1e-3,
        evaluations=6,
        units=3000,
        engine="python",
        progress=False,
        **options,
    )


def test_json_has_what_tune_found(shell: Invoke) -> None:
    said = shell("tune", "wpg:alpha=0.05", *QUICK, "--json")
    assert said.returncode == 0, said.stderr
    told, found = json.loads(said.stdout), same_tuning(rl.WPG(alpha=0.05))
    assert told["tuned"] == {"alpha": found.algorithm.alpha} and told["start"] == {"alpha": 0.05}
    assert told["units"] == found.units and told["evaluations"] == found.evaluations == len(told["trials"])
    assert told["words"] == found.words and told["bracketed"] == found.bracketed
    assert [trial["alpha"] for trial in told["trials"]] == found.trials["alpha"].tolist()


def test_the_table_has_every_trial_and_marks_the_one_that_is_taken(invoke: Invoke) -> None:
    said = invoke("tune", "wpg:alpha=0.05", *QUICK)
    found = same_tuning(rl.WPG(alpha=0.05))
    assert said.exit_code == 0, said.output
    rows = [line for line in said.stdout.splitlines() if line.startswith("│")]
    assert len(rows) == found.evaluations + 1
    (taken,) = [row for row in rows if "← taken" in row]
    assert f"{found.units:,.0f}" in taken
    assert found.words in said.stdout


def test_single_parameters_can_be_named(invoke: Invoke) -> None:
    told = json.loads(invoke("tune", "coca", *QUICK, "--parameter", "c", "--json").stdout)
    assert list(told["tuned"]) == ["c"] and told["kept"]["rho"] == 0.85


def test_what_has_nothing_to_tune_says_so(invoke: Invoke) -> None:
    said = invoke("tune", "onepass", *QUICK)
    assert said.exit_code == 0 and "no parameter to tune" in said.stdout


def test_where_every_setting_diverges_the_exit_code_says_so(invoke: Invoke) -> None:
    said = invoke("tune", "wpg:alpha=1e9", *QUICK, "--json")
    assert said.exit_code == 3
    assert "Every setting diverged" in json.loads(said.stdout)["words"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("wpg", "--parameter", "rho"), "WPG can't be tuned in 'rho': what can be tuned is alpha"),
        (("wpg", "--level", "0"), "level is 0.0"),
        (("wpg:alpha=-1",), "alpha is -1.0"),
        (("onepas",), "no algorithm called 'onepas'"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(invoke: Invoke, words: tuple[str, ...], sentence: str) -> None:
    said = invoke("tune", *QUICK, *words)
    assert said.exit_code == 2 and said.stdout == ""
    assert sentence in said.stderr and said.stderr.count("\n") == 1
