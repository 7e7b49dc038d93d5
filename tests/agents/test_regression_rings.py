"""A regression by sealed laps among holders in one place: the fit, the looks at it, and what a dishonest first member can't do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from roundelay.agents.agreement.plan import Stopping, Task
from roundelay.agents.data.own_fit import NOTHING
from roundelay.agents.data.regressing import RegressionFit
from roundelay.agents.protocol import asking, holder
from roundelay.agents.protocol.baton import Baton, BatonError, Phase, Reason
from roundelay.agents.protocol.holder import DeceivedError, Holder
from roundelay.agents.protocol.station import Reached, Station, nothing_happens
from roundelay.algorithms.sealed.optimisers import Asking as Optimising, Found, Goal, Looking
from roundelay.algorithms.sealed.questions import POINT, Asked, Question
from roundelay.masks import SeededPairs
from roundelay.regression.pooled import glm, rows_of
from tests.agents.regression_rings import Drawn, Frames, hand_overs, holders, outcome_at, plan_of, regression_of
from tests.agents.world import MemoryJournal, World

FORMULAS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("length ~ age + C(sex)", "gaussian", {"errors": "hc3"}),
    ("ill ~ age * C(sex) + site", "binomial", {"by": "sex", "heterogeneity": True}),
    ("visits ~ age + bs(dose, df=4)", "poisson", {}),
    ("grade ~ age + sex", "multinomial", {}),
    ("Surv(time, died) ~ age + sex", "cox", {}),
    ("ill ~ age + dose + C(sex)", "binomial", {"lasso": 0.02, "ridge": 0.01}),
    ("length ~ age + dose + C(sex)", "gaussian", {"lasso": 1.0, "folds": 4}),
    ("ill ~ age + dose + C(sex) + site", "binomial", {"ridge": 1.0, "folds": 3}),
)


def with_gaps() -> Frames:
    frames = Drawn().frames()
    frames["site1"].loc[3:5, "age"] = np.nan
    frames["site2"].loc[9, "sex"] = None
    return frames


@pytest.mark.parametrize(
    ("formula", "family", "planned"), FORMULAS, ids=lambda one: one if isinstance(one, str) else ""
)
def test_every_member_makes_the_result_of_the_pooled_rows(formula: str, family: str, planned: dict[str, Any]) -> None:
    """The very numbers that come of the same sums in one process, but for the order of adding; bit for bit the same everywhere."""
    frames = with_gaps()
    ring = holders(frames, regression_of(frames, formula, family, **planned))
    moves = list(hand_overs(ring))
    assert [one.held.reason for one in ring] == [Reason.CONTENT] * 4
    assert not any(one.asking.held.doubt for one in ring if one.asking is not None)
    found = [outcome_at(one) for one in ring]
    result, pooled = found[0].result, glm(formula, frames, family, missing="drop", **planned).result
    assert result is not None and all(one == found[0] for one in found)
    assert (result.rows, result.events, result.missing, result.questions) == (
        pooled.rows, pooled.events, pooled.missing, pooled.questions,
    )  # fmt: skip
    for one, other in zip(result.terms, pooled.terms, strict=True):
        assert one.estimate == pytest.approx(other.estimate, rel=1e-9, abs=1e-11)
        assert (one.std_error or 0.0) == pytest.approx(other.std_error or 0.0, rel=1e-9)
    assert result.log_likelihood == pytest.approx(pooled.log_likelihood, rel=1e-10)
    assert [one.factor for one in result.path] == pytest.approx([one.factor for one in pooled.path], rel=1e-9)
    assert [one.loss for one in result.path] == pytest.approx([one.loss for one in pooled.path], rel=1e-9)
    kinds = [move.baton.purpose for move in moves if move.baton.phase == Phase.ASK and move.baton.step == 1]
    assert kinds[-2:] == [Asked.FIRST_LOOK, Asked.SECOND_LOOK] and not {*kinds[:-2]} & {*kinds[-2:]}


# ---------------------------------------------------------------- whether it is a model for a site's own rows


@pytest.mark.parametrize(
    ("formula", "family", "column"),
    [
        ("length ~ age + sex", "gaussian", "length"),
        ("ill ~ age + sex", "binomial", "ill"),
        ("visits ~ age", "poisson", "visits"),
    ],
)
def test_every_honest_site_sees_whether_the_model_is_one_for_its_rows(formula: str, family: str, column: str) -> None:
    def own_fits(frames: Frames) -> list[Any]:
        ring = holders(frames, regression_of(frames, formula, family))
        list(hand_overs(ring))
        ends = [(one, outcome_at(one)) for one in ring]
        return [one.local.own_fit(one.held.estimate, end.model, NOTHING, one.held.told) for one, end in ends]

    frames = Drawn(sites=5, rows=600).frames()
    for one in own_fits(frames):
        assert not one.bad and one.alone is not None and one.model < 1.1 * one.alone
    liar = frames["site4"]
    liar[column] = 1.0 - liar[column] if family == "binomial" else 100.0 * liar[column] ** 2
    frames["site4"] = pd.concat([liar] * 6)
    # A yes or no tells little: one of the four may not be sure.
    assert sum(one.bad for one in own_fits(frames)[:4]) >= (3 if family == "binomial" else 4)


def test_units_that_a_liar_has_spoilt_do_not_spoil_a_sites_own_fit() -> None:
    def first_site(frames: Frames) -> Any:
        ring = holders(frames, regression_of(frames, "length ~ age + sex", "gaussian"))
        list(hand_overs(ring))
        one = ring[0]
        return one.local.own_fit(one.held.estimate, outcome_at(one).model, NOTHING, one.held.told)

    frames = Drawn(sites=4, rows=100).frames()
    honest = first_site(frames)
    frames["site3"]["age"] *= 1e6
    spoilt = first_site(frames)
    assert (spoilt.alone, spoilt.nothing) == pytest.approx((honest.alone, honest.nothing), rel=1e-9)
    assert spoilt.model > 1.1 * honest.model


# ---------------------------------------------------------------- what can't be fitted


def refused(frames: Frames, formula: str, family: str) -> list[str]:
    """Why each member ends without a model."""
    ring = holders(frames, regression_of(frames, formula, family))
    for move in hand_overs(ring):
        assert move.baton.phase != Phase.ASK
    assert [one.held.reason for one in ring] == [Reason.NO_MINIMUM] * 4
    assert not any(one.asking.held.doubt for one in ring if one.asking is not None)
    return [one.asking.why_none for one in ring if one.asking is not None]


@pytest.mark.parametrize(
    ("formula", "family", "words"),
    [
        ("length ~ age + twice", "gaussian", "In all rows of all sites twice follows from age"),
        ("ill ~ C(flag) + age", "binomial", "Every row of all sites with C(flag)[T.yes] has the outcome 1 in ill."),
        ("length ~ bs(few, df=5)", "gaussian", "In all rows of all sites bs(few, df=5)[2] follows from"),
    ],
)
def test_all_end_with_the_same_sentence_where_nothing_can_be_fitted(formula: str, family: str, words: str) -> None:
    frames = Drawn().frames()
    for frame in frames.values():
        frame["twice"], frame["few"] = 2.0 * frame["age"] + 1.0, (frame["age"] > 50.0).astype(float)
        frame["flag"] = ((frame["ill"] == 1.0) & (frame["age"] > 55.0)).map({True: "yes", False: "no"})
    sentences = {*refused(frames, formula, family)}
    assert len(sentences) == 1 and sentences.pop().startswith(words)


def test_too_few_rows_are_refused_by_all() -> None:
    frames = {name: frame.head(1) for name, frame in Drawn().frames().items()}
    assert {*refused(frames, "length ~ age + dose + visits", "gaussian")} == {
        "All sites together have 4 complete rows, but the formula has 4 unknowns: leave out terms, or bring in more rows."
    }


def test_outcomes_that_are_told_apart_end_the_fit_for_all() -> None:
    """Found on the way, by the value of the loss: no level alone says it."""
    frames = Drawn().frames()
    for frame in frames.values():
        frame["ill"] = (frame["age"] + frame["dose"] > 52.0).astype(float)
    ring = holders(frames, regression_of(frames, "ill ~ age + dose", "binomial"))
    list(hand_overs(ring))
    assert [one.held.reason for one in ring] == [Reason.NO_MINIMUM] * 4
    sentences = {one.asking.why_none for one in ring if one.asking is not None}
    assert len(sentences) == 1 and "tell the outcomes of ill apart" in sentences.pop()


def test_no_member_is_told_that_there_is_nothing_to_fit_where_there_is() -> None:
    """The first member would end the run of all others, in the name of sums that do not say so."""
    frames = Drawn().frames()
    ring = holders(frames, regression_of(frames, "length ~ age"))

    def ended(baton: Baton) -> Baton:
        assert ring[0].asking is not None
        return ring[0].asking.refused().baton if baton.phase == Phase.SUM and baton.purpose == 2 else baton

    with pytest.raises(BatonError, match="before sum 2 was told"):
        list(hand_overs(ring, ended))


# ---------------------------------------------------------------- a dishonest first member


def ring_of_a_liar(**planned: Any) -> list[Holder]:
    frames = Drawn().frames()
    return holders(frames, regression_of(frames, "ill ~ age + C(sex)", "binomial", **planned))


class Astray:
    """A first member that asks what was not agreed: `meddled` makes its questions."""

    def __init__(self, meddled: Any) -> None:
        self.meddled = meddled

    def __call__(self, ring: list[Holder]) -> list[Holder]:
        asking = ring[0].asking
        assert asking is not None and isinstance(asking.optimiser, Looking)
        asking.optimiser = Dishonest(asking.optimiser, self.meddled)
        return ring


class Dishonest:
    """Questions of its own."""

    def __init__(self, honest: Looking, meddled: Any) -> None:
        self.honest, self.meddled = honest, meddled
        self.asks = honest.asks

    def questions(self, goal: Goal) -> Optimising:
        return self.meddled(self.honest, goal)


def looks_before_anything(honest: Looking, goal: Goal) -> Optimising:
    yield Question(Asked.FIRST_LOOK)
    return Found(goal.origin, 0.0, True)


def looks_twice(honest: Looking, goal: Goal) -> Optimising:
    found = yield from honest.questions(goal)
    yield Question(Asked.FIRST_LOOK)
    return found


def goes_on_after_a_look(honest: Looking, goal: Goal) -> Optimising:
    found = yield from honest.optimiser.questions(goal)
    yield Question(Asked.FIRST_LOOK)
    yield Question(Asked.GRADIENT, found.point + 1.0)
    return found


@pytest.mark.parametrize(
    ("meddled", "words"),
    [
        (looks_before_anything, "does not stand anywhere yet"),
        (looks_twice, "has been looked at"),
        (goes_on_after_a_look, "has been looked at"),
    ],
)
def test_a_look_is_had_once_where_the_fit_stands(meddled: Any, words: str) -> None:
    ring = Astray(meddled)(ring_of_a_liar())
    with pytest.raises(BatonError, match=words):
        list(hand_overs(ring))


def test_folds_are_not_asked_once_the_fit_has_begun() -> None:
    def asks_again(honest: Looking, goal: Goal) -> Optimising:
        asking = honest.questions(goal)
        question, total = next(asking), None
        while question.asked == Asked.FOLDS:
            folds, total = question, (yield question)
            question = asking.send(total)
        yield question
        yield folds
        return Found(goal.origin, 0.0, True)

    ring = Astray(asks_again)(ring_of_a_liar(ridge=1.0, folds=2))
    with pytest.raises(BatonError, match="the strength of the penalty was chosen before"):
        list(hand_overs(ring))


def test_folds_at_points_of_ones_own_are_named_by_all_others() -> None:
    def elsewhere(honest: Looking, goal: Goal) -> Optimising:
        asking = honest.questions(goal)
        question = next(asking)
        while True:
            if question.asked == Asked.FOLDS and question.beside is not None and question.beside.any():
                question = replace(question, beside=question.beside + 1.0)
            try:
                question = asking.send((yield question))
            except StopIteration as end:
                return end.value

    ring = Astray(elsewhere)(ring_of_a_liar(ridge=1.0, folds=2))
    list(hand_overs(ring))
    for one in ring[1:]:
        assert one.asking is not None
        assert "is not one that the agreed optimiser would have asked: site0" in one.asking.held.doubt


def test_a_second_look_is_not_had_without_the_first() -> None:
    ring = ring_of_a_liar()
    looked = (Phase.ASK, Asked.FIRST_LOOK)
    before = next(
        move for move in hand_overs(ring) if move.receiver == 1 and (move.baton.phase, move.baton.purpose) == looked
    )
    looks = ring[1].asking.own_sums
    words = 2 * (looks[1] + 1)
    numbers = np.concatenate([np.zeros(looks[0], np.uint64), np.zeros(words, np.uint64)])
    with pytest.raises(BatonError, match="was not looked at before"):
        ring[1].check(before.baton._replace(purpose=int(Asked.SECOND_LOOK), numbers=numbers), None)


def test_a_look_tells_no_point_of_its_own() -> None:
    """A baton that does is of a kind that the ring does not have: it can't be read."""
    layout = ring_of_a_liar()[1].largest_layout
    assert layout.numbers(Phase.ASK, int(Asked.FIRST_LOOK)) is not None
    assert layout.numbers(Phase.ASK, Asked.FIRST_LOOK | POINT) is None


def test_a_look_where_the_fit_does_not_stand_is_named_by_all_others() -> None:
    """After one question it could be asked at a point of the first member's choice, once: then there is no fit, and all others say so."""

    def at_once(honest: Looking, goal: Goal) -> Optimising:
        asking = honest.optimiser.questions(goal)
        total = yield next(asking)
        yield asking.send(total)
        first = yield Question(Asked.FIRST_LOOK)
        yield Question(Asked.SECOND_LOOK, beside=first.gradient)
        return Found(goal.origin, 0.0, True)

    ring = Astray(at_once)(ring_of_a_liar())
    list(hand_overs(ring))
    for one in ring[1:]:
        assert one.asking is not None
        assert "is not one that the agreed optimiser would have asked: site0" in one.asking.held.doubt


def test_another_first_look_told_to_one_member_gives_no_sum() -> None:
    ring = ring_of_a_liar(errors="hc0")

    def told_otherwise(baton: Baton) -> Baton:
        numbers = np.array(baton.numbers)
        if baton.phase == Phase.ASK and baton.purpose == Asked.SECOND_LOOK and baton.step == 1:
            numbers[:1] = (numbers[:1].view(np.float64) * 1.01).view(np.uint64)
        return baton._replace(numbers=numbers)

    with pytest.raises(BatonError, match="did not cancel"):
        list(hand_overs(ring, told_otherwise))


@pytest.mark.parametrize("place", ["information", "value"])
def test_a_first_look_that_lacks_what_a_site_has_added_is_refused(place: str) -> None:
    ring = ring_of_a_liar()
    at = 0 if place == "information" else ring[0].plan.dim * (ring[0].plan.dim + 1) // 2

    def less(baton: Baton) -> Baton:
        numbers = np.array(baton.numbers)
        if baton.phase == Phase.ASK and baton.purpose == Asked.SECOND_LOOK and baton.step == 1:
            numbers[at : at + 1] = np.array([1e-3]).view(np.uint64)
        return baton._replace(numbers=numbers)

    with pytest.raises(DeceivedError, match="first look can't be right"):
        list(hand_overs(ring, less))


def test_another_first_look_in_the_end_than_was_told_is_named() -> None:
    """All were told one total for the second look, and another one in the end: what is printed would not be what was asked for."""
    ring = ring_of_a_liar(errors="hc0")
    asking = ring[0].asking
    assert asking is not None
    freeze = ring[0].freeze

    def another(reason: Reason, hop: int, numbers: Any, wished: int = 0) -> Any:
        held = asking.held
        first, second = (one.total for one in held.answered[-2:])
        assert first is not None and second is not None
        held.answered[-2] = held.answered[-2]._replace(total=first * 1.5)
        numbers = np.array(numbers)
        numbers[-len(first) - len(second) : -len(second)] *= 1.5
        return freeze(reason, hop, numbers, wished)

    ring[0].freeze = another  # type: ignore[method-assign]
    list(hand_overs(ring))
    for one in ring[1:]:
        assert (
            one.asking is not None and "is not one that the agreed optimiser would have asked" in one.asking.held.doubt
        )


def test_a_fit_that_is_ended_early_has_a_model_and_no_tables() -> None:
    ring = ring_of_a_liar()
    ring[2].wants_to_stop = True
    list(hand_overs(ring))
    assert [one.held.reason for one in ring] == [Reason.ASKED] * 4
    found = [outcome_at(one) for one in ring]
    assert found[0].result is None and all(one == found[0] for one in found)


def test_a_fit_that_runs_out_of_questions_is_looked_at_where_it_came() -> None:
    frames = Drawn().frames()
    regression = replace(regression_of(frames, "ill ~ age + C(sex)", "binomial"), ridge=1e-3)
    ring = holders(frames, regression, Stopping(1e-11, questions=4))
    list(hand_overs(ring))
    result = outcome_at(ring[3]).result
    assert ring[3].held.reason == Reason.HOPS and result is not None
    assert not result.converged and result.questions <= 2


# ---------------------------------------------------------------- whoever dies


class RegressionWorld(World):
    """The same with rows: each site's own part is of a regression."""

    frames: ClassVar[Frames] = Drawn(4, 25).frames()
    own: ClassVar[dict[tuple[str, str], RegressionFit]] = {}

    def _station(self, name: str, reached: Reached = nothing_happens) -> Station:
        plan = self.plan_of(name)
        assert plan.task.regression is not None
        read = (name, plan.task.in_words)  # once, whoever dies: what of it is kept is not what is tested
        if read not in self.own:
            self.own[read] = RegressionFit(plan.task, rows_of(plan.task.regression, self.frames[name], name))
        own = self.own[read]
        holder = Holder(plan, plan.number_of(name), own, self.seed, SeededPairs(self.seed))
        return Station(holder, self.journals.setdefault(name, MemoryJournal()), reached)  # type: ignore[arg-type]


def ended(seed: int, formula: str, family: str, wild: bool, **planned: Any) -> RegressionWorld:
    """A run that came to its end: where nothing happens, or with crashes, power failures and bad links."""
    world = RegressionWorld(seed, 1, np.random.default_rng(seed), 0.4 if wild else 0.0)
    world.plans[0] = plan_of(tuple(world.frames), regression_of(world.frames, formula, family, **planned))
    world.epochs = dict.fromkeys(world.frames, 0)
    world.crash_chance, world.power_chance = (0.2, 0.03) if wild else (0.0, 0.0)
    for name in world.frames:
        world.start(name)
    world.run()
    return world


@pytest.mark.parametrize("seed", range(6))
def test_crashes_change_nothing_of_the_result(seed: int) -> None:
    formula, family, planned = FORMULAS[seed]
    planned = {**planned, "ridge": 1e-3} if "errors" not in planned else planned
    calm, wild = (ended(seed, formula, family, one, **planned) for one in (False, True))
    assert wild.crashes
    wild.check_no_fork()
    for name in calm.frames:
        one, other = calm.up[name].holder, wild.up[name].holder
        assert one.asking is not None and other.asking is not None and not other.asking.held.doubt
        assert outcome_at(one) == outcome_at(other) and other.held.reason == Reason.CONTENT
        assert one.end.statement == other.end.statement


def test_crashes_change_nothing_of_a_refusal() -> None:
    world = ended(3, "length ~ age + I(2*age)", "gaussian", True)
    for station in world.up.values():
        asking = station.holder.asking
        assert station.holder.held.reason == Reason.NO_MINIMUM and asking is not None
        assert "follows from age" in asking.why_none and not asking.held.doubt


def test_sums_that_are_too_long_to_be_handed_round_leave_the_result_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then those of the looks are told alone: every member has the tables, and says that the way there was not replayed."""
    whole = ended(2, *FORMULAS[2][:2], wild=False, ridge=1e-3)
    monkeypatch.setattr(asking, "MOST_TOLD", 100)
    monkeypatch.setattr(holder, "MOST_TOLD", 100)
    for wild in (False, True):
        world = ended(2, *FORMULAS[2][:2], wild=wild, ridge=1e-3)
        for name, station in world.up.items():
            one, other = station.holder, whole.up[name].holder
            assert one.asking is not None and "too long to be handed round" in one.asking.held.doubt
            assert outcome_at(one) == outcome_at(other) and outcome_at(one).result is not None


@pytest.mark.parametrize("seed", range(3))
def test_a_new_epoch_fits_the_rows_of_those_who_are_left(seed: int) -> None:
    world = RegressionWorld(seed, 1, np.random.default_rng(seed), 0.2)
    names = tuple(world.frames)
    regression = regression_of(world.frames, "ill ~ age + C(sex)", "binomial", ridge=1e-3)
    world.plans[0] = plan_of(names, regression)
    world.plans[1] = replace(plan_of(names[:3], regression), epoch=1, previous="0" * 64)
    world.epochs = dict.fromkeys(names, 0)
    for name in names:
        world.start(name)
    while not any(one.holder.asking.held.answered for one in world.up.values() if one.holder.asking is not None):
        world.step()
    world.given_up = {names[3]}
    world.kill(names[3])
    for name in names[:3]:
        world.adopt(name, 1)
    world.run()
    found = [outcome_at(world.up[name].holder) for name in names[:3]]
    pooled = glm("ill ~ age + C(sex)", {name: world.frames[name] for name in names[:3]}, "binomial", ridge=1e-3).result
    assert found[0] == found[1] == found[2] and found[0].result is not None and found[0].result.sites == names[:3]
    for one, other in zip(found[0].result.terms, pooled.terms, strict=True):
        assert one.estimate == pytest.approx(other.estimate, rel=1e-9, abs=1e-11)
    assert not any(world.up[name].holder.asking.held.doubt for name in names[:3])


@pytest.mark.parametrize("name", ["rows", "counts", "spreads", "bins", "bins again", "moments"])
def test_a_sum_before_the_fit_that_lacks_what_a_site_has_added_is_refused(name: str) -> None:
    """Whoever tells may lie, but not below what a site itself knows to be there; asked again it would tell how much that is, so it stops."""
    frames = Drawn().frames()
    ring = holders(frames, regression_of(frames, "ill ~ age + C(sex)", "binomial", by="sex"))
    local = ring[1].local
    assert isinstance(local, RegressionFit)
    place = [one.name for one in local.study.sums].index(name)

    def less(baton: Baton) -> Baton:
        if baton.phase != Phase.TELL or baton.purpose != place:
            return baton
        *before, total = ring[0].held.told
        own = local.summand(tuple(before), len(ring))
        ring[0].held.told = (*before, np.append(total[0], np.minimum(total[1:], 0.5 * np.abs(own))))
        return ring[0]._tell(place).baton  # signed anew

    with pytest.raises(DeceivedError, match=r"can't be right\. (In the sum of|All 4 sites can't have)"):
        list(hand_overs(ring, less))


def test_errors_between_few_sites_would_tell_their_slopes() -> None:
    """The attack: of Σ s s' and Σ s = 0 over three sites, who knows one slope has the others; so a ring of few sites is not planned."""
    frames = Drawn(3, 50).frames()
    regression = regression_of(frames, "ill ~ age + dose + C(sex)", "binomial", errors="site")
    sites = [
        RegressionFit(Task("regression", regression=regression), rows_of(regression, one)) for one in frames.values()
    ]
    study, totals = sites[0].study, ()
    for _ in range(study.before):
        totals = (*totals, np.sum([study.summand(one.rows, study.known(totals, 3)) for one in sites], axis=0))
    known = study.known(totals, 3)
    point = optimum_of([study.function(one.rows, known) for one in sites])
    likelihoods = [one.rows.likelihood(known.knots, known.scaling) for one in sites]
    slopes = np.array([one.gradient(point) for one in likelihoods])
    between = slopes.T @ slopes  # which the second look tells
    known_rest = between - 1.5 * np.outer(slopes[0], slopes[0])  # 2dd', where the other two are −s/2 ± d
    curvature, direction = np.linalg.eigh(known_rest)
    half = np.sqrt(curvature[-1] / 2.0) * direction[:, -1]
    guesses = [-slopes[0] / 2.0 + sign * half for sign in (1.0, -1.0)]
    assert min(np.abs(guess - slopes[1]).max() for guess in guesses) < 1e-4 * np.abs(slopes[1]).max()
    with pytest.raises(ValueError, match="of fewer than 6 sites the slopes could nearly be worked out"):
        plan_of(tuple(frames), regression)
    six = Drawn(6, 30).frames()
    ring = holders(six, regression_of(six, "ill ~ age", "binomial", errors="site"))
    list(hand_overs(ring))
    pooled = glm("ill ~ age", six, "binomial", errors="site").result
    result = outcome_at(ring[5]).result
    assert result is not None and result.terms[1].std_error == pytest.approx(pooled.terms[1].std_error, rel=1e-9)


def optimum_of(functions: list[Any]) -> Any:
    """Where the functions of some sites have their minimum together."""
    w = np.zeros(functions[0].likelihood.dim)
    for _ in range(30):
        w = w - np.linalg.solve(sum(one.hessian(w) for one in functions), sum(one.gradient(w) for one in functions))
    return w
