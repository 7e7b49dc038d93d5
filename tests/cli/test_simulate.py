import json
import re
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from tests.cli.conftest import SMALL, Invoke

GOSSIP = ("--agents", "8", "--density", "0.6", "--samples", "30", "--engine", "python")


def same_run(algorithm: object, seed: int = 0) -> rl.Run:
    """What the command with SMALL must have run."""
    problem = rl.paper_least_squares(8, 30, 2, seed=seed)
    network = rl.random_network(8, 0.6, seed=seed)
    return rl.simulate(algorithm, problem, network, 600, seed=seed, engine="python", progress=False)


def test_json_is_all_there_is_on_stdout(shell: Invoke) -> None:
    said = shell("simulate", "piadmm1", "--rho", "5", "--seed", "3", *SMALL, "--json")
    assert said.returncode == 0, said.stderr
    told = json.loads(said.stdout)
    run = same_run(rl.PIADMM1(rho=5.0), seed=3)
    assert told["algorithm"] == "PI-ADMM1"
    assert told["options"]["rho"] == 5.0
    np.testing.assert_array_equal(told["token"], run.token)
    assert told["final"]["error"] == run.history["error"].iloc[-1]
    assert told["units_to"]["1e-3"] == run.units_to(1e-3) < 600
    assert run.units_to(1e-9) == np.inf and told["units_to"]["1e-9"] is None
    assert told["outcome"] == run.outcome and told["tour"] == run.tour
    assert told["engine"] == "python" and told["engine_reason"] == run.engine_reason
    assert [entry["holds"] for entry in told["conditions"]] == [c.holds for c in run.algorithm.conditions(run.problem)]
    np.testing.assert_array_equal(told["readout"]["estimate"], run.readout().estimate)


def test_the_summary_says_it_in_words(invoke: Invoke) -> None:
    said = invoke("simulate", "iadmm", *SMALL)
    run = same_run(rl.IADMM())
    assert said.exit_code == 0, said.output
    text = re.sub(r"\s+", " ", said.stdout)
    for words in (run.outcome, run.tour, run.engine_reason, f"{run.units_to(1e-3):,.0f} units", run.readout().words):
        assert words in text
    assert str(run.algorithm.conditions(run.problem)) in text
    assert f"{run.token[0]:.12g}" in text


def test_the_compiled_engine_tells_the_same_token(invoke: Invoke) -> None:
    compiled, plain = (
        json.loads(invoke("simulate", "iadmm", *SMALL, "--engine", engine, "--json").stdout)
        for engine in ("compiled", "python")
    )
    assert compiled["engine"] == "compiled"
    assert compiled["token"] == plain["token"]


def test_a_problem_that_is_not_in_the_register_is_refused(invoke: Invoke) -> None:
    said = invoke("simulate", "wpg", "--set", "alpha=0.5", "--problem", "ridge", *SMALL)
    assert said.exit_code != 0 and "There is no problem 'ridge': use least_squares or logistic" in said.stderr


def test_the_problem_can_be_logistic(invoke: Invoke) -> None:
    said = invoke("simulate", "wpg", "--set", "alpha=0.5", "--problem", "logistic", *SMALL, "--json")
    told = json.loads(said.stdout)
    assert told["problem"]["kind"] == "logistic"
    problem = rl.paper_logistic(8, 30, 2, seed=0)
    run = rl.simulate(rl.WPG(alpha=0.5), problem, rl.random_network(8, 0.6, seed=0), 600, engine="python")
    np.testing.assert_array_equal(told["token"], run.token)


def test_a_gossip_method_has_iterations_and_a_mean_instead_of_a_token(invoke: Invoke) -> None:
    words = ("simulate", "extra", *GOSSIP, "--iterations", "40")
    told = json.loads(invoke(*words, "--json").stdout)
    problem, network = rl.paper_least_squares(8, 30, 2, seed=0), rl.random_network(8, 0.6, seed=0)
    run = rl.simulate(rl.EXTRA(), problem, network, iterations=40, engine="python", progress=False)
    assert told["family"] == "gossip" and told["iterations"] == 40 and told["units"] == run.units
    assert told["options"]["alpha"] == rl.EXTRA().resolved(problem).alpha
    assert not {"hops", "token", "readout", "tour", "seconds"} & set(told)
    np.testing.assert_allclose(told["mean"], run.x.mean(axis=0), rtol=1e-14)
    assert told["final"]["mean_error"] == run.history["mean_error"].iloc[-1]
    text = invoke(*words).stdout
    assert "mean x" in text and f"{run.estimate[0]:.12g}" in text
    assert "token" not in text and "readout" not in text and "tour" not in text


def test_without_a_length_each_family_has_its_own(invoke: Invoke) -> None:
    small = ("--agents", "4", "--density", "1", "--samples", "4", "--engine", "python", "--tolerance", "0.2", "--json")
    assert "iterations" in json.loads(invoke("simulate", "dadmm", *small).stdout)
    assert "hops" in json.loads(invoke("simulate", "iadmm", *small).stdout)
    one = json.loads(invoke("simulate", "onepass", *small).stdout)
    assert one["hops"] == 2 * 4 - 1 and one["final"]["error"] < 1e-12


def test_the_networks_conditions_cost_time_and_messages(invoke: Invoke) -> None:
    words = ("--loss", "0.3", "--noise", "1e-6", "--latency", "0.01", "--compute", "0.002")
    told = json.loads(invoke("simulate", "iadmm", *SMALL, *words, "--json").stdout)
    conditions = rl.NetworkConditions(rl.BernoulliLoss(0.3), 1e-6, latency=0.01, compute=0.002)
    problem, network = rl.paper_least_squares(8, 30, 2, seed=0), rl.random_network(8, 0.6, seed=0)
    run = rl.simulate(rl.IADMM(), problem, network, 600, engine="python", conditions=conditions, progress=False)
    assert told["seconds"] == run.history["seconds"].iloc[-1] > 600 * 0.01
    assert told["units"] == run.units > 600
    assert told["network"] == "loss 0.3, noise 1e-06, latency 0.01 s, compute 0.002 s"
    assert "simulated seconds" in invoke("simulate", "iadmm", *SMALL, *words).stdout


def test_the_seed_changes_data_and_draws(invoke: Invoke) -> None:
    first, second = (
        json.loads(invoke("simulate", "iadmm", *SMALL, "--seed", seed, "--json").stdout)["token"] for seed in (0, 1)
    )
    assert first != second


def test_a_tolerance_stops_it(invoke: Invoke) -> None:
    told = json.loads(invoke("simulate", "iadmm", *SMALL, "--tolerance", "1e-2", "--json").stdout)
    assert told["stop"] == "tolerance"
    assert told["hops"] < 600 and told["final"]["error"] <= 1e-2


def test_content_agents_stop_it(invoke: Invoke) -> None:
    told = json.loads(invoke("simulate", "iadmm", *SMALL, "--hops", "5000", "--content", "1e-3", "--json").stdout)
    assert told["stop"] == "content"
    assert told["hops"] < 5000


def test_what_is_saved_can_be_loaded_and_seen(invoke: Invoke, tmp_path: Path) -> None:
    saved, figure = tmp_path / "run.npz", tmp_path / "run.svg"
    said = invoke("simulate", "iadmm", *SMALL, "--save", saved, "--figure", figure, "--json")
    told = json.loads(said.stdout)
    assert (told["saved"], told["figure"]) == (str(saved), str(figure))
    np.testing.assert_array_equal(rl.load_run(saved).token, told["token"])
    assert b"<svg" in figure.read_bytes()


def test_what_diverged_exits_with_3_and_still_says_so(shell: Invoke, tmp_path: Path) -> None:
    saved = tmp_path / "run.npz"
    words = ("simulate", "iadmm", "--rho", "0.1", "--set", "first_order=true", *SMALL, "--save", saved)
    said = shell(*words)
    assert said.returncode == 3, said.stderr
    assert "It diverged at hop" in said.stdout and "Traceback" not in said.stderr
    assert saved.exists()
    told = json.loads(shell(*words, "--json").stdout)
    assert told["stop"] == "diverged" and told["units_to"]["1e-3"] is None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("padmm1",), r"no algorithm called 'padmm1'. Did you mean .*piadmm1"),
        (("iadmm", "--set", "speed=3"), r"no option 'speed': its options are rho, first_order, start, regulariser"),
        (("wpg", "--rho", "3"), r"no option 'rho': its options are alpha"),
        (("iadmm", "--rho", "0"), r"rho is 0.0: .*positive"),
        (("iadmm", "--density", "0.01"), r"smallest density that works"),
        (("iadmm", "--figure", "run.txt"), r"end it in .png, .svg or .pdf"),
        (("iadmm", "--seed", "-1"), r"The seed is -1"),
        (("piadmm2", "--content", "1e-9"), r"primal noise"),
        (("extra",), r"EXTRA is a gossip method, whose length is given in iterations"),
        (("iadmm", "--loss", "1.5"), r"The chance of loss is 1.5"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(invoke: Invoke, words: tuple[str, ...], sentence: str) -> None:
    said = invoke("simulate", words[0], *SMALL, *words[1:])
    assert said.exit_code == 2
    assert said.stdout == ""
    assert re.search(sentence, said.stderr), said.stderr
    assert said.stderr.count("\n") == 1


def test_a_real_refusal_shows_no_traceback(shell: Invoke) -> None:
    said = shell("simulate", "iadmm", "--rho", "0")
    assert (said.returncode, said.stdout) == (2, "")
    assert "Traceback" not in said.stderr and "rho is 0.0" in said.stderr


def test_a_file_that_can_not_be_written_is_refused_in_a_sentence(invoke: Invoke, tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    said = invoke("simulate", "iadmm", *SMALL, "--figure", blocker / "run.png")
    assert said.exit_code == 2
    assert "can't be used" in said.stderr and "Choose another path" in said.stderr
