"""A member that adds false sums before the fit chooses the units of everybody's gradient: so masks that covered it no longer do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement.plan import Stopping
from roundelay.agents.agreement.policy import PolicyError, write_policy
from roundelay.agents.data.fitting import RowsFit
from roundelay.agents.data.objectives import Local
from roundelay.agents.data.reading import OwnRows
from roundelay.agents.site.taking_part import Site, SiteOptions
from roundelay.kernels import Vector
from tests.adversary.signed_rings import TASK, rows_of
from tests.adversary.token_rings import TokenRing, errors
from tests.agents.hospitals import NAMES, QUIET, Hospitals
from tests.agents.world import ring_plan

LIAR, VICTIM = 0, 2
# Moles a litre, say.
UNIT = 1e-7
SEALED, ZERO_SUM = rl.SealedStart(), rl.ZeroSumStart()
HONEST = ((0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
# Deviations of a hundred million: every share is rounded to 0, and what is hidden under masks is a 0.
COARSE = (HONEST[0], (4e18, 4e18, 0.0))
# A mean target of some ten millions, by which the gradient is more than masks of a few hundreds hide.
FAR = ((0.0, 0.0, 0.0, 1e10), HONEST[1])
More = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True, eq=False)
class Lying(RowsFit):
    """Adds something to its sums."""

    more: More = HONEST

    def summand(self, told: tuple[Vector, ...], sites: int) -> Vector:
        return super().summand(told, sites) + np.array(self.more[len(told)])


def local_of(me: int, more: More) -> Local:
    rows = rows_of(NAMES[me])
    return Lying(TASK, OwnRows(UNIT * rows.features, rows.target), more=more if me == LIAR else HONEST)


def known_to_neighbours(start: object, more: More) -> dict[str, float]:
    """What the neighbours of an honest member can work out, by its own measurement: the slope g, and the gradient y."""
    plan = ring_plan(list(NAMES), rl.IADMM(rho=2.0, start=start), 2, Stopping(None, 160))  # type: ignore[arg-type]
    ring = TokenRing(replace(plan, task=TASK), parts=[local_of(me, more) for me in range(4)])
    ring.run()
    return errors(ring.measured(VICTIM))


@pytest.mark.parametrize(("start", "more", "found"), [(SEALED, COARSE, 1e-12), (ZERO_SUM, FAR, 1e-3)])
def test_false_sums_open_the_masks(start: object, more: More, found: float) -> None:
    """The positive control: members without a policy."""
    assert known_to_neighbours(start, HONEST)["g"] > 0.5
    assert known_to_neighbours(start, more)["g"] < found


@pytest.mark.parametrize(("start", "more"), [(SEALED, COARSE), (ZERO_SUM, FAR), (SEALED, HONEST), (ZERO_SUM, HONEST)])
def test_the_masks_are_held_against_the_gradient_once_more(
    start: object, more: More, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the sums are told, and before anything leaves that a token's masks should cover."""

    class Sites(Hospitals):
        def site(self, ring: object, name: str, options: SiteOptions = QUIET) -> Site:
            one = super().site(ring, name, options)  # type: ignore[arg-type]
            one.local = local_of(NAMES.index(name), more)
            return one

    hospitals = Sites(tmp_path, monkeypatch)
    for name in NAMES:
        (tmp_path / name / "policy.toml").unlink()
        write_policy(tmp_path / name)
    ended = hospitals.run(hospitals.accept(hospitals.plan(algorithm=rl.IADMM(rho=2.0, start=start))))  # type: ignore[arg-type]
    stopped = [one for one in ended.values() if isinstance(one, BaseException)]
    if more is HONEST:
        assert not stopped and len(ended) == 4
    else:
        assert stopped and all(isinstance(one, PolicyError) for one in stopped)
        assert "By the sums that all sites were told" in str(stopped[0])
