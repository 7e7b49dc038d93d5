import json
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from tests.cli.conftest import Invoke

SCENE = ("--agents", "8", "--density", "0.6", "--samples", "10", "--seeds", "2", "--units", "900", "--engine", "python")


def same_comparison(*algorithms: object) -> rl.Comparison:
    """What the command must have compared."""
    return rl.compare(
        algorithms,
        lambda seed: rl.paper_least_squares(8, 10, 2, seed=seed),
        lambda seed: rl.random_network(8, 0.6, seed=seed),
        seeds=range(2),
        units=900,
        engine="python",
        progress=False,
    )


def test_json_has_what_compare_found(invoke: Invoke) -> None:
    said = invoke("compare", "iadmm:rho=2", "iadmm:rho=20", "dadmm:c=0.5", "onepass", *SCENE, "--json")
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    found = same_comparison(rl.IADMM(rho=2.0), rl.IADMM(rho=20.0), rl.DADMM(c=0.5), rl.OnePass())
    assert [method["method"] for method in told["methods"]] == [row.name for row in found.rows]
    assert told["seeds"] == [0, 1] and told["units"] == 900.0 and told["levels"] == [1e-3, 1e-6, 1e-9]
    for method, row in zip(told["methods"], found.rows, strict=True):
        assert list(method["costs"]) == ["units", "bytes"]
        for cost in row.costs["units"]:
            level = f"1e{round(np.log10(cost.level))}"
            expected = cost.cost if np.isfinite(cost.cost) else None
            assert method["costs"]["units"][level] == {"cost": expected, "seeds": cost.seeds, "words": cost.words}
        assert method["final_error"] == row.final_error and method["outcome"] == row.words


def test_the_text_is_the_comparisons_own_and_files_are_written(shell: Invoke, tmp_path: Path) -> None:
    figure, folder = tmp_path / "figure.svg", tmp_path / "out"
    said = shell("compare", "iadmm", "onepass", *SCENE, "--figure", figure, "--style", "ieee", "--out", folder)
    assert said.returncode == 0, said.stderr
    assert same_comparison(rl.IADMM(), rl.OnePass()).text() in said.stdout
    assert "least-squares: 8 agents, 10 samples each, dimension 2, density 0.6" in said.stdout
    assert "I-ADMM: 2 of 2 seeds done" in said.stderr
    assert b"<svg" in figure.read_bytes() and b'width="252pt"' in figure.read_bytes()
    assert {path.name for path in folder.iterdir()} == {
        "table.csv",
        "table.txt",
        "table.tex",
        *(f"error_over_{axis}.{suffix}" for axis in ("units", "bytes") for suffix in ("png", "svg")),
    }


def test_with_conditions_there_are_seconds(invoke: Invoke) -> None:
    told = json.loads(invoke("compare", "iadmm", *SCENE, "--latency", "0.01", "--loss", "0.1", "--json").stdout)
    assert list(told["methods"][0]["costs"]) == ["units", "bytes", "seconds"]
    assert told["network"] == "loss 0.1, noise 0, latency 0.01 s, compute 0 s"


def test_methods_are_tuned_on_seeds_of_their_own(invoke: Invoke) -> None:
    said = invoke("compare", "wpg:alpha=0.05", "onepass", *SCENE, "--tune", "--json")
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    assert "alpha of WPG was tuned on the seeds 1000 to 1002" in told["tuning"][0]
    assert "no parameter to tune" in told["tuning"][1]
    assert told["methods"][0]["options"]["alpha"] != 0.05
    assert told["methods"][0]["costs"]["units"]["1e-3"]["cost"] < 900


def test_a_refused_method_is_told_and_the_others_go_on(invoke: Invoke) -> None:
    words = ("compare", "onepass", "wpg:alpha=1", "--problem", "logistic", *SCENE)
    said = invoke(*words, "--tune")
    assert said.exit_code == 0, said.output
    assert "refused" in said.stdout and "normal equations" in said.stdout
    assert json.loads(invoke(*words, "--json").stdout)["methods"][0]["costs"]["units"]["1e-3"]["words"] == "refused"


def test_where_every_method_is_refused_the_exit_code_says_so(invoke: Invoke, tmp_path: Path) -> None:
    figure = tmp_path / "figure.png"
    said = invoke("compare", "onepass", "--problem", "logistic", *SCENE, "--figure", figure)
    assert said.exit_code == 2 and "refused" in said.stdout
    assert not figure.exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("iadm",), "no algorithm called 'iadm'"),
        (("iadmm", "iadmm"), "given 2 times with the same parameters"),
        (("iadmm:speed=3",), "no option 'speed'"),
        (("iadmm", "--figure", "run.txt"), "end it in .png, .svg or .pdf"),
        (("iadmm", "--units", "0"), "units is 0.0"),
        (("iadmm", "--density", "0.01"), "smallest density that works"),
        (("iadmm", "--latency", "-1"), "none of them negative"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(invoke: Invoke, words: tuple[str, ...], sentence: str) -> None:
    said = invoke("compare", *SCENE, *words)
    assert said.exit_code == 2 and said.stdout == ""
    assert sentence in said.stderr and said.stderr.count("\n") == 1
