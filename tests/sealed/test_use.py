"""Sealed laps as somebody uses them: named, saved, read out, drawn, on the command line; what is refused is a sentence."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import roundelay as rl
from roundelay.algorithms.sealed.optimisers import Optimiser
from roundelay.algorithms.sealed.sealed_laps import WIDE_AREA, Smoothness
from roundelay.cli.app import app
from roundelay.registry import registered
from roundelay.transcripts import Eavesdropper, Neighbours
from tests.sealed.support import logistic, plain_functions, simulate, squares

PROBLEM, RING = squares(5, 3, 1), rl.ring(5)


# ---------------------------------------------------------------- who asks


@pytest.mark.parametrize("word", registered(Optimiser))
def test_an_optimiser_is_named_by_its_word(word: str) -> None:
    assert rl.SealedLaps(word) == rl.SealedLaps(registered(Optimiser)[word]())
    assert hash(rl.SealedLaps(word)) == hash(rl.SealedLaps(word))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"optimiser": "steam"}, "optimiser is 'steam': use one of 'auto', 'normal-equations', 'conjugate-gradients', 'newton', 'lbfgs', 'noisy-newton', or"),
        ({"optimiser": rl.Newton}, "use one of 'auto', "),
        ({"optimiser": None}, "optimiser is None: use one of 'auto', "),
        ({"regulariser": None}, "The regulariser is None: use an object such as L1(0.1)."),
        ({"regulariser": "l1"}, "The regulariser is 'l1': use an object such as L1(0.1)."),
        ({"bits": 63}, "bits is 63: use a whole number from 0 to 62."),
        ({"bits": 4.5}, "bits is 4.5: use a whole number."),
        ({"wide": "yes"}, "wide is 'yes': use True or False."),
    ],
)  # fmt: skip
def test_what_it_can_not_be_made_of(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as refusal:
        rl.SealedLaps(**options)
    assert words in str(refusal.value)


def test_a_regulariser_that_is_known_by_its_proximal_step_alone_is_for_tokens() -> None:
    class Ridge(rl.NoRegulariser):
        shape = None  # type: ignore[assignment]

    with pytest.raises(ValueError, match=r"Ridge is known by its proximal step alone: .* or use a method with a token"):
        rl.SealedLaps(regulariser=Ridge())


@pytest.mark.parametrize(
    ("algorithm", "problem", "options", "words"),
    [
        (rl.SealedLaps("normal-equations"), logistic(5, 3, 1), {}, "are for quadratic functions such as least squares, which these are not"),
        (rl.SealedLaps("conjugate-gradients"), logistic(5, 3, 1), {}, "are for quadratic functions"),
        (rl.SealedLaps("conjugate-gradients", regulariser=rl.L1(1.0)), PROBLEM, {}, "Conjugate gradients solve linear equations"),
        (rl.SealedLaps("newton"), plain_functions(5, 3, 1), {}, "needs Hessians, which the problem does not have: use LBFGS()"),
        (rl.SealedLaps(), PROBLEM, {"iterations": 3}, "Sealed laps are made of hops: leave iterations out"),
        (rl.SealedLaps(), PROBLEM, {"content": 1e-6}, "stop by themselves"),
        (rl.SealedLaps(), PROBLEM, {"record": 2}, "one row a lap: leave `record` out"),
        (rl.SealedLaps(), PROBLEM, {"monitors": [rl.KKTResiduals()]}, "KKTResiduals can't watch Sealed laps"),
        (rl.SealedLaps(), PROBLEM, {"engine": "compiled"}, "no loop to compile: leave `engine` out"),
        (rl.SealedLaps(), PROBLEM, {"engine": "steam"}, "engine is 'steam'"),
        (rl.SealedLaps(), PROBLEM, {"hops": -1}, "hops is -1: use at least 0."),
        (rl.SealedLaps(), PROBLEM, {"tolerance": 0.0}, "tolerance is 0.0"),
        (rl.SealedLaps(), PROBLEM, {"reader": 5}, "reader is 5: the agents are numbered from 0 to 4."),
    ],
)  # fmt: skip
def test_what_a_run_refuses(algorithm: Any, problem: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as refusal:
        simulate(algorithm, problem, **options)
    assert words in str(refusal.value)


# ---------------------------------------------------------------- auto


@pytest.mark.parametrize(
    ("problem", "optimiser", "why"),
    [
        (PROBLEM, rl.NormalEquations(), "one lap of 9 numbers has all there is to know"),
        (squares(2, 100, 1), rl.ConjugateGradients(), "a few laps of 200 numbers cost less than one of 5,150"),
        (logistic(5, 3, 1), rl.Newton(), "a lap of 10 numbers is cheap, and few laps are needed"),
        (logistic(3, 40, 1), rl.LBFGS(), "more laps of 81 numbers cost less than a few of 861"),
        (plain_functions(5, 3, 1), rl.LBFGS(), "there are gradients, but no Hessians"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_auto_says_what_it_chose_and_why(problem: Any, optimiser: Any, why: str) -> None:
    choice = rl.SealedLaps().choice(problem)
    assert choice.optimiser == optimiser and choice.words.endswith(f"{why}.")
    run = simulate(rl.SealedLaps(), problem, hops=2 * problem.agents)
    assert run.outcome.endswith(f"Auto chose {optimiser.name}: {choice.because}.")
    assert (
        run.algorithm == rl.SealedLaps(optimiser)
        and "Auto chose" not in simulate(run.algorithm, problem, hops=0).outcome
    )
    assert rl.SealedLaps(optimiser).choice(problem).because == "as was asked for"


def test_where_a_hop_is_waited_for_few_laps_count_for_more() -> None:
    known = Smoothness(300, False, True, True)
    near, far = (rl.SealedLaps().chosen(known, waiting).optimiser for waiting in (0.0, WIDE_AREA))
    assert (near, far) == (rl.LBFGS(), rl.Newton())
    assert rl.SealedLaps().chosen(known._replace(is_quadratic=True), WIDE_AREA).optimiser == rl.NormalEquations()


# ---------------------------------------------------------------- what a run leaves behind


@pytest.mark.parametrize("wide", [False, True])
def test_a_run_comes_back_from_its_file(tmp_path: Path, wide: bool) -> None:
    algorithm = rl.SealedLaps("lbfgs", rl.L1(0.5), wide=wide)
    run = simulate(algorithm, PROBLEM, transcript=True, conditions=rl.NetworkConditions(latency=0.1))
    again = rl.load_run(run.save(tmp_path / "run.npz"))
    assert again.algorithm == algorithm and repr(again) == repr(run) and again.family == "sealed"
    assert again.history.equals(run.history) and again.units_to(1e-6) == run.units_to(1e-6)
    np.testing.assert_array_equal(again.estimate, run.estimate)
    kept = rl.load_transcript(run.transcript.save(tmp_path / "transcript.npz"))
    for transcript in (again.transcript, kept):
        assert len(transcript.laps) == len(run.transcript.laps)
        for one, other in zip(transcript.laps, run.transcript.laps, strict=True):
            np.testing.assert_array_equal(one.words, other.words)
            np.testing.assert_array_equal(one.told, other.told)
            assert (one.kind, one.wide, one.bits, one.length) == (other.kind, other.wide, other.bits, other.length)
            np.testing.assert_array_equal(one.total(), other.total())
    with pytest.raises(ValueError, match="would hold plain tokens only"):
        run.transcript.save(tmp_path / "transcript.csv")


def test_a_transcript_has_a_row_for_every_message_and_shows_each_observer_its_own() -> None:
    run = simulate(rl.SealedLaps("normal-equations"), PROBLEM, transcript=True)
    frame = run.transcript.frame()
    assert list(frame.columns) == ["lap", "sender", "receiver", "kind", "told", "words"] and len(frame) == 2 * 5
    assert [len(words) for words in frame["words"]] == [9] * 5 + [3] * 5
    seen = run.transcript.seen_by(Neighbours(2)).messages
    assert [len(lap) for lap in seen.laps] == [2, 2] and len(
        run.transcript.seen_by(Eavesdropper()).messages.laps[0]
    ) == 5


def test_every_agent_reads_out_the_public_point() -> None:
    run = simulate(rl.SealedLaps(), PROBLEM)
    for agent in (None, 0, 4):
        readout = run.readout(agent)
        np.testing.assert_array_equal(readout.estimate, run.estimate)
        assert not readout.extrapolated and readout.words.startswith("The public point, at which every agent stands")
    with pytest.raises(ValueError, match="There is no agent 5"):
        run.readout(5)
    np.testing.assert_array_equal(run.token, run.estimate)
    assert run.tour == "A Hamiltonian cycle through all 5 agents." and run.family == "sealed"
    with pytest.raises(AttributeError, match="A run of sealed laps has hops, not iterations"):
        _ = run.iterations


def test_many_seeds_share_their_points_and_not_their_masks() -> None:
    runs = rl.simulate(rl.SealedLaps("lbfgs"), PROBLEM, RING, seeds=[3, 4], transcript=True, progress=False)
    np.testing.assert_array_equal(runs[0].record.tokens, runs[1].record.tokens)
    one, other = (run.transcript.laps[0].words for run in runs)
    assert (one[:-1] != other[:-1]).all() and (one[-1] == other[-1]).all()
    assert runs.bands("error")["median"].iloc[-1] < 1e-9


# ---------------------------------------------------------------- why it stops


@pytest.mark.parametrize(("hops", "laps"), [(0, 0), (4, 0), (5, 1), (12, 2)])
def test_so_many_hops_are_whole_laps(hops: int, laps: int) -> None:
    run = simulate(rl.SealedLaps("lbfgs"), PROBLEM, hops=hops)
    assert run.stop == "hops" and run.steps == 5 * laps and len(run.history) == laps + 1
    words = f"L-BFGS made {laps} lap{'s' * (laps != 1)}: another of 5 hops would be more than the {hops} that were asked for."
    assert run.outcome == words


def test_it_stops_at_a_tolerance() -> None:
    run = simulate(rl.SealedLaps("lbfgs"), PROBLEM, tolerance=1e-3)
    assert run.stop == "tolerance" and run.history["error"].iloc[-1] <= 1e-3 < run.history["error"].iloc[-2]


@pytest.mark.parametrize(
    ("gradient", "words"),
    [
        (lambda x: -x - 1.0, "The largest number of an answer is "),
        (lambda x: x - 1.0 if abs(x[0]) < 0.5 else np.array([np.nan]), "The gradient of agent 0 is not finite"),
    ],
)
def test_functions_without_a_minimum_end_in_a_sentence(gradient: Any, words: str) -> None:
    wrong = rl.CallableProblem([gradient] * 3, 1)
    object.__setattr__(wrong, "optimum", np.ones(1))  # it has none, which is found out before the run otherwise
    with pytest.raises(ValueError, match=words):
        simulate(rl.SealedLaps(), wrong)


def test_an_interrupt_keeps_what_there_is(interruptible: None) -> None:
    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))
        if len(told) == 3:
            signal.raise_signal(signal.SIGINT)

    run = rl.simulate(rl.SealedLaps("lbfgs"), PROBLEM, RING, progress=tell)
    assert run.stop == "interrupted" and run.steps == 15 and len(run.history) == 4
    assert told == [(5, 10), (10, 15), (15, 20)]


# ---------------------------------------------------------------- on the command line


def said(*words: str) -> Any:
    return CliRunner().invoke(app, list(words), catch_exceptions=False)


def test_the_command_line_runs_it_by_the_optimisers_word(tmp_path: Path) -> None:
    figure, saved = tmp_path / "laps.png", tmp_path / "run.npz"
    result = said(
        "simulate", "sealed-laps", "--set", "optimiser=newton", "--agents", "6", "--density", "0.7",
        "--figure", str(figure), "--save", str(saved), "--transcript", "--json",
    )  # fmt: skip
    assert result.exit_code == 0
    summary = json.loads(result.stdout)
    assert summary["family"] == "sealed" and summary["hops"] == 18 and summary["stop"] == "found"
    assert summary["outcome"].startswith("Newton's method found the minimiser in 2 laps")
    assert summary["readout"]["words"].startswith("The public point") and figure.exists()
    assert rl.load_run(saved).algorithm == rl.SealedLaps("newton")
    plain = said(
        "simulate", "sealedlaps", "--agents", "6", "--density", "0.7", "--problem", "logistic", "--latency", "0.1"
    )
    assert plain.exit_code == 0 and "Auto" in plain.stdout and "simulated seconds" in plain.stdout


def test_the_command_line_refuses_in_a_sentence() -> None:
    for words, sentence in (
        (["--set", "optimiser=steam"], "optimiser of Sealed laps can't be 'steam': use auto, normal-equations,"),
        (["--noise", "0.1"], "to which a link can't add noise"),
        (["--iterations", "5"], "Sealed laps are made of hops"),
    ):
        result = said("simulate", "sealed-laps", "--agents", "6", "--density", "0.7", *words)
        assert result.exit_code == 2 and sentence in result.stderr


def test_the_command_line_compares_and_tunes() -> None:
    small = ("--agents", "6", "--density", "0.7", "--seeds", "1")
    result = said("compare", "iadmm", "sealed-laps", *small, "--engine", "python", "--units", "400", "--json")
    assert result.exit_code == 0
    methods = json.loads(result.stdout)["methods"]
    assert [method["method"] for method in methods] == ["I-ADMM", "Sealed laps"]
    assert methods[1]["outcome"] == "It reached every level."
    tuned = said("tune", "sealed-laps", *small)
    assert tuned.exit_code == 0 and "Sealed laps has no parameter to tune" in tuned.stdout
