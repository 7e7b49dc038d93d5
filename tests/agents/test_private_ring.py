"""A ring under a promise of ε: the simulator's noise to the last bit whoever dies, no sum but those with noise, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import roundelay as rl
from roundelay.agents.agreement.plan import Column, Promise, RingPlan, Stopping, Task
from roundelay.agents.agreement.ringfile import _task, _task_table
from roundelay.agents.data.fitting import RowsFit, bounded_problem, half_range, model_of, noise_of, sums_of
from roundelay.agents.data.reading import OwnRows
from roundelay.agents.protocol.baton import Baton, BatonError, Phase
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.station import Reached, Station, nothing_happens
from roundelay.agents.site.taking_part import _privacy
from roundelay.algorithms.sealed.questions import Asked
from roundelay.cli.app import app
from roundelay.masks import SeededPairs
from roundelay.privacy.accounting.budget import sum_multiplier
from roundelay.tables import Fields
from tests.agents.world import MemoryJournal, World, ring_plan

COLUMNS = (Column("age", "years"), Column("bmi"))
LOW, HIGH = (18.0, 15.0), (100.0, 50.0)


def task_of(kind: str, epsilon: float = 1.0) -> Task:
    bounds = (LOW, HIGH) if kind == "logistic" else ((*LOW, 0.0), (*HIGH, 500.0))
    return Task(kind, COLUMNS, Column("outcome"), promise=Promise(epsilon, 1e-6, *bounds))


def plan_of(task: Task, agents: int, leave_out: int = 1) -> RingPlan:
    assert task.promise is not None
    multiplier = sum_multiplier(task.promise.epsilon, task.promise.delta)
    algorithm = rl.SealedLaps(
        wide=True,
        clip_row=float(np.sqrt(task.dim)),
        clip_slope=half_range(task),
        leave_out=leave_out,
        noise_multiplier=multiplier,
    )
    plain = ring_plan([f"site{i}" for i in range(agents)], rl.SealedLaps(), task.dim, Stopping())
    return replace(plain, algorithm=algorithm, task=task)


def rows_of(task: Task, name: str, count: int = 400) -> OwnRows:
    rng = np.random.default_rng(sum(name.encode()))
    features = np.column_stack([rng.uniform(15, 95, count), rng.normal(27, 6, count)])
    score = 2.0 * features[:, 0] + 5.0 * features[:, 1] + 20.0 * rng.normal(size=count)
    return OwnRows(features, np.sign(score - 235.0) if task.kind == "logistic" else score)


@dataclass
class PrivateWorld(World):
    """A world whose sites have rows, and have made a promise."""

    task: Task = field(default_factory=lambda: task_of("least_squares"))

    @cached_property
    def fits(self) -> dict[str, RowsFit]:
        return {name: RowsFit(self.task, rows_of(self.task, name)) for name in self.epochs}

    def _station(self, name: str, reached: Reached = nothing_happens) -> Station:
        plan = self.plan_of(name)
        holder = Holder(plan, plan.number_of(name), self.fits[name], sum(name.encode()), SeededPairs(self.seed))
        return Station(holder, self.journals.setdefault(name, MemoryJournal()), reached)  # type: ignore[arg-type]


def played(seed: int, kind: str, agents: int, disturbance: float, crashes: float) -> PrivateWorld:
    task = task_of(kind)
    world = PrivateWorld(seed, task.dim, np.random.default_rng(seed), disturbance, task=task)
    world.crash_chance, world.power_chance = crashes, crashes / 6.0
    world.plans[0] = plan_of(task, agents)
    world.epochs |= {f"site{i}": 0 for i in range(agents)}
    for name in world.epochs:
        world.start(name)
    world.run()
    return world


@pytest.mark.parametrize("kind", ["least_squares", "logistic"])
@pytest.mark.parametrize("seed", range(4))
def test_a_ring_fits_what_the_simulator_fits_whoever_dies(kind: str, seed: int) -> None:
    agents = 3 + seed % 3
    wild = played(seed, kind, agents, 0.4, 0.2)
    assert wild.crashes
    wild.check_no_fork()
    sites = [bounded_problem(wild.task, fit.rows) for fit in wild.fits.values()]
    rows = [site.rows.features for site in sites], [site.rows.targets for site in sites]
    pooled = rl.LeastSquares(*rows) if kind == "least_squares" else rl.Logistic(*rows, weights="rows")
    plan = wild.plans[0]
    run = rl.simulate(plan.algorithm, pooled, rl.ring(agents), seed=seed, progress=False)
    assert run.privacy is not None
    for station in wild.up.values():
        holder = station.holder
        assert holder.asking is not None and not holder.asking.held.doubt and holder.held.told == ()
        assert np.array_equal(holder.held.estimate, run.estimate)
        covariance = holder.asking.covariance()
        assert covariance is not None
        np.testing.assert_array_equal(np.sqrt(np.diag(covariance)), run.privacy.deviations)
    rows_on_disk = [row for journal in wild.journals.values() for row in journal.rows]
    assert not {row.phase for row in rows_on_disk} & {Phase.SUM, Phase.TELL}, "a sum without noise was formed"


def test_the_model_says_what_noise_did_to_each_coefficient_also_after_a_restart() -> None:
    world = played(1, "least_squares", 4, 0.0, 0.0)
    plan = world.plans[0]
    before = _privacy(plan, world.up["site2"].holder)
    assert before is not None and (before.epsilon, before.delta) == (1.0, 1e-6)
    world.up.clear()
    again = world._station("site2").holder
    assert _privacy(plan, again) == before
    assert before.rho == pytest.approx(plan.noise.rho)
    # In raw units, by what small changes of the unknowns do to the model.
    covariance = again.asking.covariance()  # type: ignore[union-attr]
    estimate = again.held.estimate
    changes = []
    for unknown in np.eye(plan.dim):
        one, other = (model_of(plan.task, None, estimate + sign * unknown) for sign in (1.0, -1.0))
        changes.append(
            [(a - b) / 2 for (_, a), (_, b) in zip(one.coefficients, other.coefficients, strict=True)]
            + [(one.intercept - other.intercept) / 2]
        )
    jacobian = np.array(changes).T
    slopes, of_intercept = noise_of(plan.task, covariance)
    np.testing.assert_allclose([*slopes, of_intercept], np.sqrt(np.diag(jacobian @ covariance @ jacobian.T)), rtol=1e-9)
    truth = dict(model_of(plan.task, None, estimate).coefficients)
    assert abs(truth["age [years]"] - 2.0) < 5.0 * slopes[0] + 0.2


def test_cells_beyond_the_bounds_are_moved_to_them_and_counted() -> None:
    task = task_of("least_squares")
    rows = OwnRows(np.array([[17.0, 27.0], [50.0, 60.0], [50.0, 20.0]]), np.array([100.0, -1.0, 501.0]))
    fit = RowsFit(task, rows)
    assert fit.beyond == 4 and fit.sums == sums_of(task) == () and fit.standard(()) is None
    problem = bounded_problem(task, rows)
    assert np.abs(problem.rows.features).max() == 1.0 and np.abs(problem.rows.targets).max() == 250.0
    np.testing.assert_allclose(problem.rows.features[0], [-1.0, (27.0 - 32.5) / 17.5, 1.0])


def test_without_an_intercept_nothing_is_centred() -> None:
    task = replace(task_of("least_squares"), intercept=False)
    problem = bounded_problem(task, OwnRows(np.array([[50.0, 20.0]]), np.array([100.0])))
    np.testing.assert_allclose(problem.rows.features, [[0.5, 0.4]])
    assert problem.rows.targets[0] == 100.0 and half_range(task) == 500.0
    model = model_of(task, None, np.array([1.0, 1.0]))
    assert model.intercept == 0.0


def holder_after(laps: int) -> Holder:
    """The second member, when so many questions have been asked."""
    task = task_of("logistic")
    plan, secrets = plan_of(task, 3), SeededPairs(1)
    holders = [Holder(plan, me, RowsFit(task, rows_of(task, str(me))), 1, secrets) for me in range(3)]
    move: Any = holders[0].first()
    while len(holders[1].asking.held.answered) < laps:  # type: ignore[union-attr]
        move = holders[move.receiver].act(move.baton)
    return holders[1]


def test_a_member_answers_no_more_often_than_was_planned() -> None:
    member = holder_after(4)
    asked = Baton(Phase.ASK, 4, 0, 1, Asked.GRADIENT_AND_HESSIAN, 0, np.zeros(9, np.uint64))
    with pytest.raises(BatonError, match="not one of the 4 laps"):
        member.check(asked, None)
    with pytest.raises(BatonError, match="has answered 4"):
        member.check(asked._replace(hop=3), None)
    early = holder_after(2)
    with pytest.raises(BatonError, match="not one of the 4 laps"):
        early.check(asked._replace(hop=2, purpose=int(Asked.NOTHING), numbers=np.zeros(0, np.uint64)), None)


def test_an_answer_with_noise_is_on_disk_before_it_leaves() -> None:
    """Otherwise who makes a member die between the two could ask elsewhere, and find the same noise twice."""
    world = played(2, "logistic", 3, 0.0, 0.0)
    station = world._station("site1")
    station._hopped = True
    assert station.implicit and not station.sends_first
    points = [one.told for one in station.holder.asking.held.answered]  # type: ignore[union-attr]
    assert len(points) == 5 and len({point.tobytes() for point in points[1:] if point is not None}) == 4


# ---------------------------------------------------------------- plans


def test_a_plan_that_does_not_keep_its_promise_is_refused() -> None:
    plan = plan_of(task_of("least_squares"), 4)
    less = replace(plan.algorithm, noise_multiplier=0.999 * plan.algorithm.noise_multiplier)
    with pytest.raises(ValueError, match="does not keep ε = 1"):
        replace(plan, algorithm=less)
    for algorithm in (rl.SealedLaps(), rl.PIADMM1()):
        with pytest.raises(ValueError, match="belong together"):
            replace(plan, algorithm=algorithm)
    with pytest.raises(ValueError, match="Plan a new run"):
        replace(plan, epoch=1)
    with pytest.raises(ValueError, match="there are 4 members"):
        plan_of(task_of("least_squares"), 4, leave_out=4)
    with pytest.raises(ValueError, match="records that could be clipped"):
        replace(plan, task=Task("custom", dim=3))
    assert plan_of(task_of("least_squares"), 4, leave_out=3).noise.honest == 1  # type: ignore[union-attr]
    assert ring_plan(["a", "b"], rl.SealedLaps(), 2, Stopping()).noise is None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 50.0}, "next to nothing"),
        ({"delta": 0.01}, "far less than one over the number of rows"),
        ({"low": (18.0,)}, "no other end"),
        ({"low": (100.0, 15.0, 0.0)}, "nothing between them"),
    ],
)
def test_a_promise_that_makes_no_sense_is_refused(wrong: dict[str, Any], words: str) -> None:
    promise = task_of("least_squares").promise
    assert promise is not None
    with pytest.raises(ValueError, match=words):
        replace(promise, **wrong)


def test_the_promise_stands_in_the_ring_file() -> None:
    task = task_of("logistic")
    assert _task(Fields(_task_table(task), "[task]")) == task
    with pytest.raises(ValueError, match="bounds of 2 columns, but 3 need them"):
        replace(task, kind="least_squares")
    with pytest.raises(ValueError, match="ridge is reckoned by the number of rows"):
        replace(task, ridge=0.1)


def run_cli(*words: str) -> Any:
    return CliRunner().invoke(app, ["ring", *words])


def test_the_command_line_says_what_is_promised_and_refuses_what_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("age [years],bmi,outcome\n1,2,1\n")
    for name in ("Oslo", "Bergen", "Tromso"):
        made = run_cli(
            "init", "--folder", name, "--name", name, "--address", "host.example.org:7443", "--data", "data.csv"
        )
        assert made.exit_code == 0, made.output
    plan = ["plan", *(f"{name}/{name}.invitation.toml" for name in ("Oslo", "Bergen", "Tromso")),
            "--folder", "Oslo", "--task", "logistic", "--target", "outcome", "--out", "ring.toml"]  # fmt: skip
    age, bmi = ("--bounds", "age=18:100"), ("--bounds", "bmi=15:50")
    said = run_cli(*plan, "--epsilon", "1.0", *age, *bmi)
    assert said.exit_code == 0, said.output
    for words in (
        "ε = 1 at δ = 1e-06",
        "one record more or less",
        "age [years] from 18 to 100",
        "no other sums are formed",
        "4 laps with noise",
    ):
        assert words in said.stdout, words
    for more, words in (
        (("--epsilon", "1.0", *age), "public bounds must say how large bmi can be"),
        (("--epsilon", "1.0", *age, *bmi, "--bounds", "outcome=0:1"), "no column that needs bounds"),
        (("--epsilon", "1.0", *age, "--bounds", "bmi"), 'write it as "bmi=15:50"'),
        (("--epsilon", "1.0", *age, *bmi, *bmi), "given twice"),
        (("--epsilon", "1.0", *age, *bmi, "--ridge", "0.1"), "leave it out"),
        (("--epsilon", "1.0", *age, *bmi, "--algorithm", "piadmm1"), "for sealed laps"),
        (("--epsilon", "1.0", *age, *bmi, "--warm"), "without --warm"),
        (age, "add --epsilon"),
    ):
        refused = run_cli(*plan, *more)
        assert refused.exit_code == 2 and words in refused.stderr, (more, refused.output)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--delta", "1e-7"), "--delta is for a promise of differential privacy"),
        (("--leave-out", "2"), "--leave-out is for a promise of differential privacy"),
        (("--longest-row", "2"), "--longest-row is for a promise of differential privacy"),
        (("--lasso", "-1"), "--lasso is -1: use a number from 0 on."),
    ],
)
def test_options_that_would_be_ignored_are_refused(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("age,outcome\n1,2\n3,4\n5,7\n")
    folder = str(tmp_path / "ring")
    result = run_cli("up", "--data", str(table), "--target", "outcome", "--agents", "2", "--folder", folder, *words)
    assert result.exit_code == 2 and said in result.output


def test_a_folder_that_is_no_site_s_has_no_ledger(tmp_path: Path) -> None:
    assert run_cli("ledger", "--folder", str(tmp_path / "nowhere")).exit_code == 2
