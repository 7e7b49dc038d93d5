"""Plans that read as if they hid something: the attack on a real ring where a site's policy allows it, and its refusal by default."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

import roundelay as rl
from roundelay.agents.agreement.epochs import plan_ring
from roundelay.agents.agreement.folder import accept_ring
from roundelay.agents.agreement.plan import RingPlan, Stopping
from roundelay.agents.agreement.policy import POLICY, Policy, PolicyError, breaches, sides, text_of
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data.fitting import own_problem
from roundelay.agents.protocol.baton import Phase
from roundelay.agents.protocol.journal import Journal, Passage
from roundelay.agents.site.meter import visits_of
from roundelay.agents.site.taking_part import Ending
from roundelay.cli.app import app
from roundelay.privacy import Public
from roundelay.privacy.attacks import forward_filter, parametric_step_size
from roundelay.problems import OwnProblem
from roundelay.transcripts import Visits
from tests.agents.conftest import COLUMNS, invited, site
from tests.agents.hospitals import TASK, Hospitals
from tests.agents.test_bookkeeping import pooled_products

NAMES = ("Oslo", "Bergen", "Tromso", "Narvik", "Alta")
VICTIM = "Tromso"
SEALED = rl.PIADMM1(rho=1.0, start=rl.SealedStart())
ROUNDED_AWAY = rl.PIADMM1(rho=1e13, start=rl.SealedStart(bits=0))
THIN = rl.PIADMM1(rho=1.0, start=rl.ZeroSumStart(scale=1e-9))


@pytest.fixture
def hospitals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hospitals:
    return Hospitals(tmp_path, monkeypatch, NAMES)


def planned(hospitals: Hospitals, algorithm: object, links: list[tuple[str, str]] | None = None) -> SignedPlan:
    """A token that makes a few rounds."""
    plan = plan_ring([invited(site(name)) for name in NAMES], links, algorithm, TASK, Stopping(None, 300))
    return hospitals.signed(plan, "Oslo")


def usual_policy(hospitals: Hospitals, name: str, **changes: object) -> None:
    """What `ring init` writes, but for these entries."""
    (hospitals.folder / name / POLICY).write_text(text_of(replace(Policy(), **changes)))  # type: ignore[arg-type]


def function_of(hospitals: Hospitals, ended: Ending, name: str) -> OwnProblem:
    """The truth: a site's own function, in the units of the ring."""
    assert ended.notes.standard is not None
    return own_problem(TASK, hospitals.local(name, TASK).rows, ended.notes.standard, len(ended.notes.members))


def passages(hospitals: Hospitals, plan: RingPlan, name: str) -> list[Passage]:
    journal = Journal(hospitals.folder / name / "runs" / plan.run, plan.run, name)
    rows = journal.passages(plan.epoch)
    journal.close()
    return rows


def error(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def refused_by_default(hospitals: Hospitals, ring: SignedPlan, entry: str, name: str = VICTIM) -> None:
    """At accept, and at the start of an agent where it had been accepted under another policy; the entry that is to be changed is named."""
    hospitals.accept(ring)
    usual_policy(hospitals, name)
    for words in (entry, "does not take part", POLICY):
        with pytest.raises(PolicyError, match=words):
            accept_ring(hospitals.folder / name, ring.text)
    refused = hospitals.run(ring)[name]
    assert isinstance(refused, PolicyError) and entry in str(refused)
    assert not passages(hospitals, ring.plan, name)


# ---------------------------------------------------------------- masks


def gradient_by_one_visit(hospitals: Hospitals, ring: SignedPlan) -> float:
    """What the neighbours guess who take the share for 0: then N(z⁺ − z) = x⁺ − y⁺/ρ, and with a large ρ x⁺ = z and y⁺ = ∇f(0)."""
    ended = hospitals.finish(hospitals.accept(ring))[VICTIM]
    plan = ring.plan
    visits = visits_of(passages(hospitals, plan, VICTIM), plan, plan.number_of(VICTIM))
    z, after = visits.received[0], visits.sent[0]
    guess = plan.method.rho * (z - plan.agents * (after - z))  # type: ignore[attr-defined]
    return error(guess, function_of(hospitals, ended, VICTIM).gradient(0, np.zeros(plan.dim)))


def test_a_sealed_start_that_rounds_everything_to_0(hospitals: Hospitals) -> None:
    assert gradient_by_one_visit(hospitals, planned(hospitals, ROUNDED_AWAY)) < 1e-9
    assert gradient_by_one_visit(hospitals, planned(hospitals, SEALED)) > 0.1
    refused_by_default(hospitals, planned(hospitals, ROUNDED_AWAY), "least_bits")


def multiplier_by_filter(hospitals: Hospitals, ring: SignedPlan) -> float:
    """What the neighbours find who take x = y/ρ at the start for true, as under the paper's starts."""
    hospitals.finish(hospitals.accept(ring))
    plan = ring.plan
    visits = visits_of(passages(hospitals, plan, VICTIM), plan, plan.number_of(VICTIM))
    journal = Journal(hospitals.folder / VICTIM / "runs" / plan.run, plan.run, VICTIM)
    standing = journal.standing()
    journal.close()
    assert standing is not None and standing.state is not None
    found = forward_filter(visits, Public(rl.Algorithm2(rho=1.0), plan.agents, plan.dim))
    assert found.y is not None
    return error(found.y[-1], standing.state.vectors[1])


def test_masks_that_are_far_too_small(hospitals: Hospitals) -> None:
    assert multiplier_by_filter(hospitals, planned(hospitals, THIN)) < 1e-4
    assert multiplier_by_filter(hospitals, planned(hospitals, rl.PIADMM1(rho=1.0, start=rl.ZeroSumStart(1e4)))) > 1.0
    refused_by_default(hospitals, planned(hospitals, THIN), "least_cover")


@pytest.mark.parametrize("algorithm", [rl.IADMM(rho=1.0), rl.Algorithm2(rho=1.0), rl.WPG(alpha=0.1)])
def test_a_token_without_masks(algorithm: object, hospitals: Hospitals) -> None:
    refused_by_default(hospitals, planned(hospitals, algorithm), "least_cover")


def test_the_data_say_how_large_masks_must_be(hospitals: Hospitals) -> None:
    """At accept the gradient counts as 1; here the target goes by hundreds, so that a scale of 150 hides little."""
    ring = planned(hospitals, rl.PIADMM1(rho=1.0, start=rl.ZeroSumStart(150.0)))
    for name in NAMES:
        hospitals.tables[name][:, 2] *= 100.0
        usual_policy(hospitals, name)
        accept_ring(hospitals.folder / name, ring.text)
    refused = hospitals.run(ring)
    assert refused and all(isinstance(one, PolicyError) and "least_cover" in str(one) for one in refused.values())
    for name in NAMES:
        hospitals.tables[name][:, 2] /= 100.0
    hospitals.finish(ring)


def test_masks_so_large_that_their_grid_shows(hospitals: Hospitals) -> None:
    """All masks go in 53 bits: what lies below a step of masks of 1e18 is in the open, and that is everything."""
    plan = planned(hospitals, rl.PIADMM1(rho=1.0, start=rl.ZeroSumStart(scale=1e18))).plan
    (found,) = breaches(Policy(), plan, 0)
    assert "least_bits" in found
    assert not breaches(Policy(least_bits=0), plan, 0)


# ---------------------------------------------------------------- who stands beside a site


def seen_by_one(rows: list[Passage], me: int) -> Visits:
    """The visits of a member as its neighbour's own journal has them, where it handed over the token and got it back."""
    pairs = [
        (there, back)
        for there, back in pairwise(rows)
        if there.receiver == me == back.sender and there.sent_phase == back.phase == Phase.ITERATE
    ]
    received = np.array([np.frombuffer(there.sent or b"") for there, _ in pairs])
    sent = np.array([np.frombuffer(back.received or b"") for _, back in pairs])
    hops = np.array([back.hop - 1 for _, back in pairs], np.int64)
    return Visits(me, hops, received, sent, np.ones(len(hops), np.int64), complete=True)


STAR = [("Bergen", name) for name in NAMES if name != "Bergen"]


def test_a_hub_sees_alone_what_takes_two(hospitals: Hospitals) -> None:
    ring = planned(hospitals, SEALED, STAR)
    ended = hospitals.finish(hospitals.accept(ring))[VICTIM]
    plan = ring.plan
    visits = seen_by_one(passages(hospitals, plan, "Bergen"), plan.number_of(VICTIM))
    found = parametric_step_size(visits, Public(plan.algorithm, plan.agents, plan.dim))
    assert found.H is not None
    assert error(found.H, function_of(hospitals, ended, VICTIM).hessian(0, np.zeros(plan.dim))) < 1e-6
    (said,) = breaches(Policy(), plan, plan.number_of(VICTIM))
    assert said.startswith("Bergen sees the token both before and after this site")
    refused_by_default(hospitals, planned(hospitals, SEALED, STAR), "hub_beside_me")
    usual_policy(hospitals, VICTIM, hub_beside_me=True)
    accept_ring(hospitals.folder / VICTIM, planned(hospitals, SEALED, STAR).text)


def test_a_relay_may_be_a_hub_too(hospitals: Hospitals) -> None:
    """Who only passes the token on sees it all the same; on a cycle nobody sees both sides, and in sealed laps it does not matter."""
    path = planned(hospitals, SEALED, list(pairwise(NAMES))).plan
    hubs = {path.members[number].name: {path.members[one].name for one in sides(path, number)} for number in range(5)}
    assert hubs == {"Oslo": {"Bergen"}, "Bergen": set(), "Tromso": set(), "Narvik": set(), "Alta": {"Narvik"}}
    cycle = planned(hospitals, SEALED).plan
    star = planned(hospitals, rl.SealedLaps(wide=True), STAR).plan
    for plan in (cycle, star):
        assert not any(breaches(Policy(), plan, number) for number in range(5))


# ---------------------------------------------------------------- few rows, few members, many questions


def test_a_single_row_comes_out(hospitals: Hospitals) -> None:
    """Its curvature is the row times itself, up to a sign; the means and spreads of all rows are told to all."""
    hospitals.tables[VICTIM] = hospitals.tables[VICTIM][:1]
    ring = planned(hospitals, SEALED)
    hospitals.accept(ring)
    usual_policy(hospitals, VICTIM, least_rows=1)
    ended = hospitals.finish(ring)[VICTIM]
    plan, standard = ring.plan, ended.notes.standard
    assert standard is not None
    visits = visits_of(passages(hospitals, plan, VICTIM), plan, plan.number_of(VICTIM))
    found = parametric_step_size(visits, Public(plan.algorithm, plan.agents, plan.dim)).H
    assert found is not None
    sizes, directions = np.linalg.eigh(found * standard.rows / plan.agents)
    row = np.sqrt(sizes[-1]) * directions[:, -1]
    guesses = [standard.mean + sign * row * standard.deviation for sign in (1.0, -1.0)]
    assert min(error(guess, hospitals.tables[VICTIM][0, :2]) for guess in guesses) < 0.01

    usual_policy(hospitals, VICTIM)
    refused = hospitals.run(planned_again := hospitals.accept(planned(hospitals, SEALED)))[VICTIM]
    assert isinstance(refused, PolicyError) and "This site has 1 row, and its policy wants 10 (least_rows)" in str(
        refused
    )
    assert not passages(hospitals, planned_again.plan, VICTIM)


def test_two_who_work_together_know_the_third(hospitals: Hospitals) -> None:
    names = NAMES[:3]
    ring = hospitals.accept(hospitals.plan(*names))
    squares, products = pooled_products(hospitals, ring, hospitals.finish(ring)["Oslo"])
    for name in names[:2]:
        table = hospitals.tables[name]
        rows = np.column_stack([np.ones(len(table)), table[:, :2]])
        squares, products = squares - rows.T @ rows, products - rows.T @ table[:, 2]
    table = hospitals.tables["Tromso"]
    rows = np.column_stack([np.ones(len(table)), table[:, :2]])
    np.testing.assert_allclose(squares, rows.T @ rows, rtol=1e-8)
    np.testing.assert_allclose(products, rows.T @ table[:, 2], rtol=1e-7)
    refused_by_default(hospitals, hospitals.plan(*names), "least_members")
    usual_policy(hospitals, "Tromso", least_members=3)
    accept_ring(hospitals.folder / "Tromso", hospitals.plan(*names).text)


def test_more_questions_than_a_site_wants(hospitals: Hospitals) -> None:
    plan = replace(hospitals.plan().plan, stopping=Stopping(questions=201))
    refused_by_default(hospitals, hospitals.signed(plan, "Oslo"), "most_questions")


def here(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_the_commands_say_it_and_refuse(hospitals: Hospitals, tmp_path: Path) -> None:
    """At accept with all that the plan means, at the planner's, and at the agent with the exit code of what can go on."""
    void, folder, ring = planned(hospitals, ROUNDED_AWAY), hospitals.folder / VICTIM, tmp_path / "ring.toml"
    ring.write_bytes(void.text)
    usual_policy(hospitals, VICTIM)
    said = here("ring", "accept", str(ring), "--folder", str(folder), "--yes")
    assert said.exit_code == 2 and "least_bits" in said.stderr and "Traceback" not in said.stderr
    for words in (
        "What others learn of your site:",
        "which sounds as if it hid something",
        "a linear model of outcome from age [years]",
    ):
        assert words in said.stdout
    assert not (folder / "accepted").exists()
    shown = json.loads(here("ring", "show", str(ring), "--json").stdout)
    assert any("which sounds as if it hid something" in one for one in shown["learned"]) and shown["risks"]

    usual_policy(hospitals, VICTIM, least_bits=0)
    said = here("ring", "accept", str(ring), "--folder", str(folder), "--yes")
    assert said.exit_code == 0 and (folder / "accepted").exists(), said.output

    usual_policy(hospitals, VICTIM)
    rows = tmp_path / "rows.csv"
    np.savetxt(rows, hospitals.tables[VICTIM], "%.17g", ",", header=",".join(map(str, COLUMNS)), comments="")
    said = here("agent", "--ring", str(ring), "--folder", str(folder), "--data", str(rows), "--no-page")
    assert said.exit_code == 4 and "least_bits" in said.stderr and str(folder / POLICY) in said.stderr

    usual_policy(hospitals, "Oslo")
    again = here(
        "ring",
        "drop",
        str(ring),
        "Alta",
        "Narvik",
        "--folder",
        str(hospitals.folder / "Oslo"),
        "--out",
        str(tmp_path / "less.toml"),
    )
    assert again.exit_code == 0, again.output
    heading, _, listed = again.stdout.partition("What this site's policy does not allow:")
    assert heading and "least_members" in listed and "least_bits" in listed


def test_what_is_usually_planned_passes(hospitals: Hospitals) -> None:
    for algorithm in (rl.SealedLaps(wide=True), SEALED, rl.PIADMM1(rho=1.0, start=rl.ZeroSumStart(150.0))):
        ring = planned(hospitals, algorithm)
        for name in NAMES:
            usual_policy(hospitals, name)
            accept_ring(hospitals.folder / name, ring.text, despite_difference=True)
        hospitals.finish(ring)
