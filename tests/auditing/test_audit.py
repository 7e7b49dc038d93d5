from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import roundelay as rl
from roundelay.cli.app import app
from roundelay.privacy.audit.leaks import Leak, best_direction, digits_of, records_error, relative, verdict

AGENTS, HOPS = 20, 401
SQUARES = rl.paper_least_squares(AGENTS, 30, 2, seed=0)
NETWORK = rl.random_network(AGENTS, 0.4, seed=0)


def run_of(method, problem=SQUARES, hops=HOPS):
    return rl.simulate(method, problem, NETWORK, hops, seed=0, transcript=True, progress=False, engine="python")


@pytest.fixture(scope="module")
def private():
    return run_of(rl.PIADMM1())


def best(audit, quantity):
    return min((leak for leak in audit.leaks if leak.quantity == quantity), key=lambda leak: leak.at_end)


# ---------------------------------------------------------------- what it finds


@pytest.mark.parametrize("method", [rl.IADMM(), rl.RandomStart(), rl.PIADMM1()], ids=lambda method: method.name)
def test_everything_is_known_of_a_quadratic(method):
    audit = rl.audit(run_of(method), "neighbours", 3)
    for quantity in ("states x", "multipliers y", "gradient at the solution", "Hessian H", "slope g"):
        leak = best(audit, quantity)
        assert leak.known
        assert leak.at_end < 1e-8
        assert "is known to its neighbours to" in leak.words or "are known to its neighbours to" in leak.words


def test_noise_leaves_estimates():
    audit = rl.audit(run_of(rl.PIADMM2(sigma=1e-3)), "neighbours", 3)
    leak = best(audit, "Hessian H")
    assert leak.attack == "parametric, primal"
    assert 1e-5 < leak.at_end < 0.05


def test_a_link_tells_nothing(private):
    order = NETWORK.tour().order
    audit = rl.audit(private, rl.Link(int(order[4]), int(order[5])), int(order[5]))
    assert audit.leaks == ()
    assert "saw nothing of agent" in str(audit)


def test_neighbours_know_what_the_eavesdropper_knows_bit_for_bit(private):
    one, other = (rl.audit(private, observer, 3).table for observer in ("neighbours", "eavesdropper"))
    other = other[other["attack"] != "the paper's least squares"].reset_index(drop=True)
    numbers = ["quantity", "attack", "error over the run", "error at the end", "residual"]
    assert one[numbers].equals(other[numbers])


def test_the_truth_changes_no_estimate(private):
    """The attacks see the transcript and what is public: without the problem they find the same, bit for bit."""
    audit = rl.audit(private, "neighbours", 3)
    blind = rl.audit_transcript(private.transcript, rl.Public(private.algorithm, AGENTS, 2), "neighbours", 3)
    assert set(blind.estimates) == set(audit.estimates)
    for name, found in audit.estimates.items():
        assert np.array_equal(found.x, blind.estimates[name].x)
        assert np.array_equal(found.y, blind.estimates[name].y)
    assert all(math.isnan(leak.at_end) for leak in blind.leaks)
    assert all("can't be said without the truth" in leak.words for leak in blind.leaks)
    assert blind.truth is None


def test_a_saved_run_has_the_truth_of_its_end_only(private, tmp_path):
    loaded = rl.load_run(private.save(tmp_path / "run.npz"))
    audit = rl.audit(loaded, "neighbours", 3)
    leak = best(audit, "multipliers y")
    assert leak.at_end < 1e-8
    assert math.isnan(leak.over_run)


def logistic_run(ridge):
    problem = replace(rl.paper_logistic(AGENTS, 3, 2, seed=1), ridge=ridge)
    return run_of(rl.PIADMM1(rho=1.0, first_order=True, start=rl.UniformStart(0.0, 10.0)), problem, 601)


@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_records_of_a_logistic_agent(ridge):
    audit = rl.audit(logistic_run(ridge), "neighbours", 3, seconds=300.0)
    leak = best(audit, "records")
    assert leak.attack == "logistic records"
    assert leak.converged
    assert leak.at_end < 1e-6


@pytest.mark.parametrize(("assumed", "met"), [(0.05, True), (0.0, False)])
def test_records_are_found_by_those_who_know_the_ridge(assumed, met):
    """Without it the equations are those of another loss, and the attack says that they are not met."""
    run = logistic_run(0.05)
    public = rl.Public(run.algorithm, AGENTS, 2)
    blind = rl.audit_transcript(run.transcript, public, "neighbours", 3, 300.0, records=3, ridge=assumed)
    assert blind.estimates["logistic records"].converged == met


def test_the_audit_of_all_agents(private):
    everyone = rl.audit_all(private)
    assert len(everyone.audits) == AGENTS
    table = everyone.table.set_index(["quantity", "attack"])
    assert table.loc[("Hessian H", "parametric, step size"), "agents known"] == AGENTS
    assert "20 of 20 agents known" in str(everyone)


def test_no_attack_begins_after_the_time_is_over(private):
    audit = rl.audit(private, "neighbours", 3, seconds=1e-9)
    assert audit.leaks == ()
    assert all("seconds were over" in why for why in audit.left_out.values())


def test_links_that_add_noise_leave_the_truth_of_the_end():
    run = rl.simulate(
        rl.IADMM(),
        SQUARES,
        NETWORK,
        101,
        transcript=True,
        progress=False,
        engine="python",
        conditions=rl.NetworkConditions(noise=1e-6),
    )
    assert math.isnan(rl.audit(run, "neighbours", 3).leaks[0].over_run)


# ---------------------------------------------------------------- a process of its own

ALONE = """
import json, sys
import roundelay as rl
transcript, public = rl.load_transcript(sys.argv[1]), rl.load_public(sys.argv[2])
found = {}
for agent in range(public.agents):
    audit = rl.audit_transcript(transcript, public, "neighbours", agent)
    fit = audit.estimates["parametric, step size"]
    found[agent] = {"H": fit.H.tolist(), "g": fit.g.tolist(), "y": fit.y[1:].tolist(), "converged": fit.converged}
print(json.dumps(found))
"""


def test_a_process_that_has_the_transcript_and_what_is_public_finds_the_data(private, tmp_path):
    rl.save_transcript(private.transcript, tmp_path / "wire.npz")
    rl.save_public(rl.Public(private.algorithm, AGENTS, 2), tmp_path / "public.json")
    done = subprocess.run(
        [sys.executable, "-c", ALONE, "wire.npz", "public.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert {path.name for path in tmp_path.iterdir()} == {"wire.npz", "public.json"}
    for agent in range(AGENTS):
        mine = found[str(agent)]
        assert mine["converged"]
        assert relative(np.array(mine["H"]), SQUARES.hessian(agent)) < 1e-8
        assert relative(np.array(mine["g"]), SQUARES.gradient(agent, np.zeros(2))) < 1e-8


# ---------------------------------------------------------------- refusals


def test_a_run_without_transcript_is_refused():
    run = rl.simulate(rl.IADMM(), SQUARES, NETWORK, 50, progress=False, engine="python")
    with pytest.raises(ValueError, match="transcript=True"):
        rl.audit(run)


@pytest.mark.parametrize("method", [rl.WPG(alpha=0.05), rl.IncrementalGradient(alpha=0.01)], ids=lambda m: m.name)
def test_other_methods_are_refused_in_words(method):
    with pytest.raises(ValueError, match="can't be audited"):
        rl.audit(run_of(method, hops=50))


def test_a_gossip_run_hears_that_it_can_t_be_audited_and_not_that_it_lacks_a_transcript():
    run = rl.simulate(rl.EXTRA(), SQUARES, NETWORK, iterations=5, progress=False, engine="python")
    with pytest.raises(ValueError, match="EXTRA can't be audited"):
        rl.audit(run)


@pytest.mark.parametrize("audit", [rl.audit, rl.audit_all])
def test_what_is_no_run_is_refused(audit, private):
    with pytest.raises(ValueError, match="3 is not a run"):
        audit(3)
    with pytest.raises(ValueError, match=r"ensemble of 2 runs: audit one of them"):
        audit(rl.Ensemble((private, private)))


def test_what_is_no_transcript_and_what_is_not_public_are_refused(private):
    with pytest.raises(ValueError, match="3 is not a transcript"):
        rl.audit_transcript(3, 4)
    with pytest.raises(ValueError, match="4 does not say what is public"):
        rl.audit_transcript(private.transcript, 4)


def test_unknown_observers_and_agents_are_refused(private):
    with pytest.raises(ValueError, match="There is no observer 'nobody'"):
        rl.audit(private, "nobody")
    with pytest.raises(ValueError, match="numbered from 0 to 19"):
        rl.audit(private, agent=20)


# ---------------------------------------------------------------- words and numbers


@pytest.mark.parametrize(
    ("error", "guess", "words"),
    [
        (1e-7, 1.0, "agent 3's slope g is known to its neighbours to 7 digits"),
        (0.05, 1.0, "agent 3's slope g is known to its neighbours to 1 digit"),
        (0.3, 1.0, "agent 3's slope g is known to its neighbours within 30 %"),
        (0.6, 1.0, "agent 3's slope g is not known to its neighbours: no better than a guess"),
        (0.06, 0.1, "agent 3's slope g is not known to its neighbours: no better than a guess"),
        (math.inf, 1.0, "agent 3's slope g is not known to its neighbours: no better than a guess"),
    ],
)
def test_verdicts(error, guess, words):
    assert verdict(3, "slope g", "its neighbours", error, guess) == words
    assert Leak("slope g", "a", error, error, guess, 0.0, True, words).known == ("not known" not in words)


def test_digits():
    assert [digits_of(error) for error in (0.0, 1e-20, 9e-7, 0.2, 3.0, math.inf)] == [15, 15, 6, 0, 0, 0]


def test_the_order_of_records_does_not_matter():
    records = np.random.default_rng(0).standard_normal((4, 3))
    assert records_error(records[[2, 0, 3, 1]], records) == 0.0
    assert records_error(records[[2, 0, 3, 1]] + 1.0, records) > 0.1


def test_the_best_known_direction_of_a_hessian():
    truth = np.diag([4.0, 1.0])
    assert best_direction(truth + np.diag([0.0, 5.0]), truth) == pytest.approx(0.0, abs=1e-15)
    assert best_direction(truth + np.diag([2.0, 5.0]), truth) == pytest.approx(0.5)


# ---------------------------------------------------------------- figure and command line


def test_the_figure_has_truth_and_estimates(private):
    figure = rl.audit(private, "neighbours", 3).figure(coordinate=1)
    labels = {text.get_text() for legend in (*figure.legends, *(axis.get_legend() for axis in figure.axes)) if legend for text in legend.get_texts()}  # fmt: skip
    assert {"truth", "forward filter", "parametric, step size"} <= labels


def test_the_command_line(private, tmp_path):
    path = private.save(tmp_path / "run.npz")
    result = CliRunner().invoke(app, ["audit", str(path), "--agent", "3", "--figure", str(tmp_path / "leak.png")])
    assert result.exit_code == 0, result.output
    assert "agent 3's multipliers y are known to its neighbours to" in result.stdout
    assert (tmp_path / "leak.png").stat().st_size > 1000
    as_json = CliRunner().invoke(app, ["audit", str(path), "--agent", "3", "--observer", "eavesdropper", "--json"])
    leaks = json.loads(as_json.stdout)["leaks"]
    assert any(leak["attack"] == "the paper's least squares" for leak in leaks)
    everyone = CliRunner().invoke(app, ["audit", str(path), "--agent", "all"])
    assert "20 of 20 agents known" in everyone.stdout


def test_the_command_line_on_a_transcript_alone(private, tmp_path):
    rl.save_transcript(private.transcript, tmp_path / "wire.npz")
    rl.save_public(rl.Public(private.algorithm, AGENTS, 2), tmp_path / "public.json")
    arguments = ["audit", str(tmp_path / "wire.npz"), "--public", str(tmp_path / "public.json"), "--agent", "3"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "can't be said without the truth" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--agent", "x"], "give the number of an agent"),
        (["--observer", "god"], "There is no observer 'god'"),
        (["--agent", "all", "--observer", "3-4"], "one kind of observer"),
        (["--figure", "leak.txt"], "end it in .png"),
    ],
)
def test_the_command_line_refuses_in_words(private, tmp_path, arguments, words):
    path = private.save(tmp_path / "run.npz")
    result = CliRunner().invoke(app, ["audit", str(path), *arguments])
    assert result.exit_code == 2
    assert words in result.stderr


# ---------------------------------------------------------------- sums


@pytest.fixture(scope="module")
def sealed():
    return rl.simulate(rl.SealedLaps(), SQUARES, NETWORK, seed=4, transcript=True, progress=False)


def test_the_audit_of_sealed_laps_says_what_is_proven(sealed):
    words = str(rl.audit(sealed, "neighbours", 3))
    assert "What its neighbours learned about agent 3 from 2 laps of sums:" in words
    assert "agent 3's gradients are not known to its neighbours: no better than a guess" in words
    assert "all there is to learn of the 18 agents that keep their masks to themselves is the sum" in words
    everything = str(rl.audit(sealed, "colluders", 3))
    assert "Nothing of agent 3 is hidden from all other agents together" in everything
    assert "agent 3's Hessian H is known to all other agents together to 1" in everything


def test_of_sums_the_guess_is_the_mean_of_those_who_do_not_collude(sealed):
    for observer in ("eavesdropper", "neighbours", rl.Colluders(3, (5, 7))):
        for leak in rl.audit(sealed, observer, 3).leaks:
            assert leak.attack != "mean of the honest sum" or leak.at_end == pytest.approx(leak.guess, rel=1e-9)


def test_a_saved_run_of_sealed_laps_is_opened_by_its_seed(sealed, tmp_path):
    """Without the data, the answers themselves are the truth: the errors are the same but for the grid."""
    loaded = rl.load_run(sealed.save(tmp_path / "run.npz"))
    for observer in ("neighbours", "colluders"):
        one, other = (rl.audit(run, observer, 3) for run in (sealed, loaded))
        kept = {(leak.quantity, leak.attack): leak.at_end for leak in other.leaks}
        for leak in one.leaks:
            if leak.quantity != "slope g":  # whether f is quadratic is not in the file
                assert kept[leak.quantity, leak.attack] == pytest.approx(leak.at_end, rel=1e-6, abs=1e-11)
    words = rl.load_run(tmp_path / "run.npz").transcript.laps[0].words
    np.testing.assert_array_equal(words, sealed.transcript.laps[0].words)


def test_a_transcript_of_sums_alone_has_no_masks_to_lift(sealed, tmp_path):
    rl.save_transcript(sealed.transcript, tmp_path / "wire.npz")
    alone, public = rl.load_transcript(tmp_path / "wire.npz"), rl.Public(rl.SealedLaps(), AGENTS, 2)
    found = rl.audit_transcript(alone, public, "eavesdropper", 3)
    assert all(math.isnan(leak.at_end) for leak in found.leaks) and found.leaks
    with pytest.raises(ValueError, match="does not have the masks"):
        rl.audit_transcript(alone, public, "neighbours", 3)


def test_a_link_of_sealed_laps_tells_nothing(sealed):
    order = sealed.transcript.laps[0].sender
    audit = rl.audit(sealed, rl.Link(int(order[4]), int(order[5])), int(order[5]))
    assert audit.leaks == () and "nothing was seen that entered agent" in str(audit)


def test_there_is_no_figure_of_sums(sealed):
    with pytest.raises(ValueError, match="There is nothing to draw"):
        rl.audit(sealed, "neighbours", 3).figure()


def test_the_one_pass_can_be_saved_and_audited(tmp_path):
    run = rl.simulate(rl.OnePass(), SQUARES, NETWORK, transcript=True, progress=False)
    audit = rl.audit(rl.load_run(run.save(tmp_path / "run.npz")), "neighbours", 3)
    assert best(audit, "Hessian H").at_end < 1e-13
    assert "There are no masks" in str(audit)
    short = rl.simulate(rl.OnePass(), SQUARES, NETWORK, 3, transcript=True, progress=False)
    assert [len(lap) for lap in short.transcript.laps] == [3]


def test_the_command_line_on_sealed_laps(sealed, tmp_path):
    path = sealed.save(tmp_path / "run.npz")
    told = CliRunner().invoke(app, ["audit", str(path), "--agent", "3"])
    assert told.exit_code == 0, told.output
    assert "Proven: whatever its neighbours may compute" in told.stdout
    as_json = CliRunner().invoke(app, ["audit", str(path), "--agent", "3", "--observer", "colluders", "--json"])
    content = json.loads(as_json.stdout)
    assert "Nothing of agent 3 is hidden" in content["proven"]
    assert len(content["estimates"]["difference of words"]["answers"]) == 2
    everyone = CliRunner().invoke(app, ["audit", str(path), "--agent", "all"])
    assert "0 of 20 agents known" in everyone.stdout


def test_colluders_can_not_tap_masked_links():
    run = run_of(rl.IADMM(defence=rl.MaskedLinks()), hops=60)
    with pytest.raises(ValueError, match="leave `honest` out"):
        run.transcript.seen_by(rl.Colluders(3, (4,)))
