"""A folder that is put back with all others against it: asked the same lap elsewhere, its noise must not be there twice.

All others together lift its masks. That may cost the ε of another lap; with one noise in two answers it would cost all of it.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.ledger import LedgerError, read_ledger
from roundelay.agents.agreement.plan import Promise
from roundelay.agents.agreement.policy import POLICY, text_of
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data.fitting import half_range
from roundelay.agents.protocol.asking import Asking
from roundelay.agents.protocol.baton import Baton
from roundelay.agents.protocol.holder import HandOver
from roundelay.agents.site import bookkeeping
from roundelay.agents.site.bookkeeping import Bookkeeper
from roundelay.algorithms.sealed.shared_noise import SHARE_BITS, SharedNoise
from roundelay.kernels import Vector
from roundelay.masks import discrete_gaussian, own_words
from roundelay.privacy.accounting.budget import sum_multiplier
from tests.adversary.token_rings import secrets_of
from tests.agents.hospitals import LAX, NAMES, TASK, Hospitals

ME, LAP, AGENTS = 1, 1, 4
NOISE = SharedNoise(2, AGENTS, 1.5, 0.8, 1.0, 4.0, (0.25, 0.75), 0.3, leave_out=AGENTS - 1)
ROWS = np.random.default_rng(0).normal(size=(40, 2))
PROBLEM = rl.LeastSquares([ROWS], [ROWS @ [0.3, -0.2]])
SECRETS = secrets_of(AGENTS)[ME]
HERE, ELSEWHERE = np.array([0.1, 0.2]), np.array([0.3, -0.1])


def answered(point: Vector) -> Vector:
    """What it adds in a lap, without the masks, in steps of a share's deviation."""
    return NOISE.words(PROBLEM, 0, LAP, point, SECRETS, ME).view(np.int64) / 2.0**SHARE_BITS


def without_noise(point: Vector) -> Vector:
    return NOISE.steps(PROBLEM, 0, LAP, point) / 2.0**SHARE_BITS


def test_two_answers_of_a_lap_have_noises_of_their_own() -> None:
    left = answered(ELSEWHERE) - answered(HERE) - (without_noise(ELSEWHERE) - without_noise(HERE))
    assert (np.abs(left) > 1e-3).all()
    np.testing.assert_array_equal(answered(HERE), answered(HERE))  # made again after a crash it is the same


def test_one_noise_for_a_lap_had_the_difference_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control: it was keyed by the number of the lap alone."""

    def by_number(self: SharedNoise, lap: int, secrets: object, me: int, point: Vector) -> object:
        return discrete_gaussian(own_words(secrets, me, lap), self.numbers, SHARE_BITS)  # type: ignore[arg-type]

    monkeypatch.setattr(SharedNoise, "noise", by_number)
    np.testing.assert_array_equal(answered(ELSEWHERE) - answered(HERE), without_noise(ELSEWHERE) - without_noise(HERE))


# ---------------------------------------------------------------- noise that is drawn anew


def noisy_ring(hospitals: Hospitals) -> SignedPlan:
    """A run at ε = 1, of which every site's policy allows one."""
    task = replace(TASK, promise=Promise(1.0, 1e-6, (18.0, 140.0, -50.0), (90.0, 200.0, 50.0)))
    algorithm = rl.SealedLaps(
        wide=True, clip_row=float(np.sqrt(task.dim)), clip_slope=half_range(task), noise_multiplier=sum_multiplier(1.0, 1e-6)
    )  # fmt: skip
    for name in NAMES:
        (hospitals.folder / name / POLICY).write_text(text_of(replace(LAX, most_epsilon=1.1)))
    return hospitals.accept(hospitals.plan(task=task, algorithm=algorithm))


@pytest.fixture
def hospitals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hospitals:
    return Hospitals(tmp_path, monkeypatch)


def test_a_run_with_noise_is_not_begun_anew_where_its_folder_is_gone(
    hospitals: Hospitals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time the same sums would come under other noise, which the ledger counts once: a dozen tell their mean."""
    ring, totals, closed = noisy_ring(hospitals), [], Asking._closed

    def told(self: Asking, baton: Baton) -> HandOver:
        following = closed(self, baton)
        totals.append(self.held.answered[0].total)
        return following

    def begun_anew() -> list[BaseException]:
        for name in NAMES:
            shutil.rmtree(hospitals.folder / name / "runs")
        return [one for one in hospitals.run(ring).values() if isinstance(one, BaseException)]

    monkeypatch.setattr(Asking, "_closed", told)
    hospitals.finish(ring)
    assert hospitals.run(ring)  # once more, with all that was kept: it is told its end
    failed = begun_anew()
    assert failed and all(isinstance(one, LedgerError) and "other noise on the same sums" in str(one) for one in failed)
    check = Bookkeeper.check
    monkeypatch.setattr(Bookkeeper, "check", lambda self, lost=False: check(self))
    before = len(totals)
    assert not begun_anew() and not np.array_equal(totals[0], totals[before])
    assert len(read_ledger(hospitals.folder / "Oslo").added) == 1


def test_epsilon_is_held_at_one_delta_whatever_a_plan_names(
    hospitals: Hospitals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At δ = 1e-3 the same noise costs less ε, and a plan may name that; what was spent at 1e-6 would be worth less then, too."""
    task = replace(TASK, promise=Promise(1.0, 1e-3, (18.0, 140.0, -50.0), (90.0, 200.0, 50.0)))
    algorithm = rl.SealedLaps(
        wide=True, clip_row=float(np.sqrt(task.dim)), clip_slope=half_range(task), noise_multiplier=sum_multiplier(1.0, 1e-3)
    )  # fmt: skip
    (hospitals.folder / "Oslo" / POLICY).write_text(text_of(replace(LAX, most_epsilon=1.1)))
    ring = hospitals.accept(hospitals.plan(task=task, algorithm=algorithm))
    refused = hospitals.run(ring)["Oslo"]
    assert isinstance(refused, LedgerError) and "would cost ε = 1.71 at δ = 1e-06" in str(refused)
    monkeypatch.setattr(bookkeeping, "DELTA", 1e-3)  # as the plan has it
    hospitals.finish(ring)
