"""One far question in each of two runs: the difference is a patient, whatever the second run calls its columns. A site holds a question against all."""

from __future__ import annotations

import multiprocessing as mp
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from roundelay.agents.agreement.ledger import LedgerError
from roundelay.agents.agreement.policy import POLICY, write_policy
from roundelay.agents.data.elsewhere import FOLDER, Elsewhere
from roundelay.agents.data.marks import keep_marks
from roundelay.agents.protocol.holder import DeceivedError, Holder
from roundelay.agents.site.taking_part import Ending, Site
from tests.adversary.test_far_questions import (
    LEAST,
    WITH_LEVELS,
    Attacked,
    FarOut,
    Frames,
    Point,
    attacked,
    by_groups,
    by_levels,
    one_in_a_cell,
    slopes_of,
)
from tests.agents.hospitals import LAX
from tests.agents.regression_rings import Drawn, hand_overs
from tests.agents.wards import Wards

KEY, USUAL = b"k" * 32, "ill ~ age + dose"
Runs = Callable[..., Attacked]


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """A run of the same sites, which remember the earlier ones: a folder each."""
    names = iter("abcdefgh")

    def ring(points: list[Point], formula: str = USUAL, **planned: Any) -> Attacked:
        found = attacked(points, LEAST, formula=formula, **planned)
        remember(found.ring, tmp_path, next(names))
        return found

    return ring


def remember(ring: list[Holder], home: Path, run: str) -> None:
    """Have each site look at what its rows answered before."""
    for one in ring:
        folder = home / one.plan.members[one.me].name
        folder.mkdir(exist_ok=True)
        marked = one.local.marked(KEY)
        keep_marks(folder, marked)
        one.elsewhere = Elsewhere(folder, marked, run, 0)


def beyond_age(count: int, found: Attacked, side: float = 1.0) -> np.ndarray:
    """A plane between two ages, so far from all that no row's curvature is anything, with one patient more beyond it for each of `count`."""
    ages = np.sort(np.concatenate([frame["age"] for frame in found.frames.values()]))[::-1]
    upper, lower = ages[place_of(ages) + count - 1 : place_of(ages) + count + 1]
    steep = side * 1e5 / (upper - lower)
    return by_levels({"Intercept": -0.5 * (upper + lower) * steep, "age": steep}, found)


def place_of(ages: np.ndarray) -> int:
    """The patient who is farthest from the next ones, not far from the middle."""
    inside = slice(len(ages) // 5, 4 * len(ages) // 5)
    gaps = np.minimum(ages[:-2] - ages[1:-1], ages[1:-1] - ages[2:])
    return int(gaps[inside].argmax()) + inside.start + 1


def refused(found: Attacked) -> bool:
    """Whether a site stops at the second question, and names who asks."""
    with pytest.raises(DeceivedError, match=r"Question 2 .*least_rows_a_level.* site0, who asks"):
        list(hand_overs(found.ring))
    return True


def shuffled() -> Frames:
    return {
        site: frame.sample(frac=1.0, random_state=1).reset_index(drop=True) for site, frame in Drawn().frames().items()
    }


def with_new_rows(count: int) -> Frames:
    rng = np.random.default_rng(4)
    return {
        site: pd.concat([frame, frame.iloc[:count].assign(age=rng.normal(50.0, 10.0, count))], ignore_index=True)
        for site, frame in Drawn().frames().items()
    }


# ---------------------------------------------------------------- the attack


def test_two_runs_with_a_question_each_differ_by_one_patient() -> None:
    """The control: sites that do not remember answer both, though each question is looked at by itself."""
    told = []
    for count in (0, 1):
        found = attacked([partial(beyond_age, count)], LEAST)
        list(hand_overs(found.ring))
        told.append(slopes_of(found)[1])
        for member in found.ring[1:]:
            assert member.asking is not None and "Question 2 is not one that the agreed" in member.asking.held.doubt
    patient = found.rows[np.argsort(found.rows[:, 1])[::-1][place_of(np.sort(found.rows[:, 1])[::-1])]]
    np.testing.assert_allclose(told[1] - told[0], patient, rtol=1e-5)


OTHERWISE: Mapping[str, Mapping[str, Any]] = {
    "the same": {},
    "from the other side": {"side": -1.0},
    "a column more": {"formula": "ill ~ age + C(sex) + dose"},
    "a column less": {"formula": "ill ~ age"},
    "another outcome": {"formula": "died ~ age + dose"},
    "another link": {"link": "probit"},
    "rows that count twice": {"formula": "ill ~ age + dose + weights(2)"},
    "by slopes alone": {"optimiser": "lbfgs"},
    "another order of the rows": {"frames": shuffled()},
    "twelve rows more": {"frames": with_new_rows(12)},
    "by folds": {"ridge": 1e-3, "folds": 2},
}


@pytest.mark.parametrize("second", OTHERWISE)
def test_the_second_run_is_told_nothing(second: str, runs: Runs) -> None:
    planned = dict(OTHERWISE[second])
    side = planned.pop("side", 1.0)
    list(hand_overs(runs([partial(beyond_age, 0)]).ring))
    point = partial(beyond_age, 1, side=side)
    if "folds" in planned:  # all folds at the same point
        once = point
        point = lambda found: np.tile(once(found), 2)  # noqa: E731
    assert refused(runs([point], **planned))


def test_whichever_of_two_runs_side_by_side_asks_second_is_told_nothing(runs: Runs) -> None:
    """Both have begun before either has asked."""
    first, second = (runs([partial(beyond_age, count)]) for count in (0, 1))
    moves = hand_overs(second.ring)
    for move in moves:
        if move.baton.hop == 1:
            break
    list(hand_overs(first.ring))
    with pytest.raises(DeceivedError, match="Question 2"):
        list(moves)


def _answers(home: str, run: str, count: int, barrier: Any, told: Any) -> None:
    found = attacked([partial(beyond_age, count)], LEAST)
    remember(found.ring, Path(home), run)
    barrier.wait()
    try:
        list(hand_overs(found.ring))
        told.put("answered")
    except DeceivedError:
        told.put("refused")


def test_of_two_processes_at_the_same_moment_one_is_told_nothing(tmp_path: Path) -> None:
    context = mp.get_context("spawn")
    barrier, told = context.Barrier(2), context.Queue()
    both = [context.Process(target=_answers, args=(str(tmp_path), str(n), n, barrier, told)) for n in range(2)]
    for one in both:
        one.start()
    found = sorted(told.get(timeout=300.0) for _ in both)
    for one in both:
        one.join()
    # Where sites of both come across each other, either may have been first at one and second at another.
    assert found in (["answered", "refused"], ["refused", "refused"])


def test_what_was_kept_before_a_crash_counts_though_the_journal_has_not_got_it(runs: Runs, tmp_path: Path) -> None:
    """An answer may have left before the journal was written: asked elsewhere by the same number, the run itself is refused."""
    first = runs([partial(beyond_age, 0)])
    list(hand_overs(first.ring))
    again = attacked([partial(beyond_age, 1)], LEAST)
    remember(again.ring, tmp_path, "a")
    assert refused(again)


# ---------------------------------------------------------------- by combinations


def test_levels_are_put_together_by_any_factor_over_two_runs(runs: Runs) -> None:
    """Women of the level add a half to one and 1 to the other, the man nothing to one and 1 to the other, and all else nothing."""
    frames, half, whole = one_in_a_cell(rows=120), by_groups(-20.0, -60.0, 0.0), by_groups(-20.0, -20.0, 20.0)
    list(hand_overs(attacked([whole], LEAST, formula=WITH_LEVELS, frames=frames).ring))  # by itself it tells nothing
    list(hand_overs(runs([half], WITH_LEVELS, frames=frames).ring))
    assert refused(runs([whole], WITH_LEVELS, frames=frames))


# ---------------------------------------------------------------- honest runs go on


def honest(runs: Runs, formula: str, frames: Frames | None = None, **planned: Any) -> None:
    found = runs([], formula, frames=frames, **planned)
    list(hand_overs(found.ring))
    assert all(one.asking is not None and not one.asking.held.doubt for one in found.ring)


def test_the_same_fit_again_and_others_to_the_same_rows_are_answered(runs: Runs) -> None:
    for formula in (USUAL, USUAL, "ill ~ age + C(sex) + dose", "ill ~ age", "died ~ age + dose"):
        honest(runs, formula)
    honest(runs, USUAL, link="probit")
    honest(runs, USUAL, frames=with_new_rows(12))


# ---------------------------------------------------------------- real sites


@pytest.fixture
def wards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wards:
    return Wards(tmp_path, monkeypatch)


def test_sites_remember_from_run_to_run(wards: Wards, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs whose first member asks far out once each; an honest one after them goes on, unless what was kept was damaged."""
    for name in wards.names:
        (wards.folder / name / POLICY).unlink()
        write_policy(wards.folder / name, replace(LAX, least_rows_a_level=LEAST))
    made = Site._holder

    def asking_at(count: int) -> None:
        def dishonest(one: Site, *given: Any) -> Holder:
            holder = made(one, *given)
            if one.name == wards.names[0] and holder.asking is not None:
                where = partial(beyond_age, count, Attacked([holder], wards.frames, []))
                holder.asking.optimiser = FarOut(holder.asking.optimiser, [where], [])  # type: ignore[assignment]
            return holder

        monkeypatch.setattr(Site, "_holder", dishonest)

    def run() -> dict[str, Ending | BaseException]:
        return wards.run(wards.accept(wards.planned(USUAL, "binomial")))

    asking_at(0)
    assert all(isinstance(one, Ending) for one in run().values())
    asking_at(1)
    stopped = [str(one) for one in run().values() if isinstance(one, DeceivedError)]
    assert stopped and all("Question 2" in one and wards.names[0] in one for one in stopped)
    monkeypatch.setattr(Site, "_holder", made)
    assert all(isinstance(one, Ending) and not one.notes.doubt for one in run().values())
    kept = sorted((wards.folder / wards.names[1] / FOLDER).iterdir())
    assert all(one.stat().st_mode & 0o077 == 0 for one in (*kept, kept[0].parent))
    kept[0].write_bytes(kept[0].read_bytes()[:-40])
    failed = [one for one in run().values() if isinstance(one, LedgerError)]
    assert failed and kept[0].name in str(failed[0]) and "restore the file from a copy" in str(failed[0])
