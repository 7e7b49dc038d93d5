"""Names that are taken for one another: a planner sets a site of its own beside one that everybody knows."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

import roundelay as rl
from roundelay.agents.agreement import ringfile
from roundelay.agents.agreement.epochs import plan_ring
from roundelay.agents.agreement.names import refuse_alike
from roundelay.agents.agreement.plan import Member, Stopping, Task
from roundelay.agents.agreement.ringfile import read_ring, write_ring
from tests.agents.conftest import invited, site

PLAN = plan_ring(
    [invited(site(name)) for name in ("Oslo", "Bergen")], None, rl.SealedLaps(), Task("custom", dim=2), Stopping()
)
ALIKE = ("Oslo", "OsIo", "0slo", "OSLO", "os-lo", "Os lo", "O5lo")


@pytest.mark.parametrize("name", ALIKE[1:])
def test_a_ring_file_with_two_sites_that_are_called_alike_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(PLAN, members=(PLAN.members[0], Member(name, site(name).certificate, "127.0.0.1:1")))
    with pytest.raises(ValueError, match=f"Oslo and {name} are called so nearly the same"):
        write_ring(plan, site("Oslo"))
    monkeypatch.setattr(ringfile, "refuse_alike", lambda names: None)
    text = write_ring(plan, site("Oslo"))
    assert read_ring(text, "ring.toml").plan.members[1].name == name  # the positive control
    monkeypatch.undo()
    with pytest.raises(ValueError, match="one is taken for the other"):
        read_ring(text, "ring.toml")


def test_nor_is_one_planned() -> None:
    with pytest.raises(ValueError, match="one is taken for the other"):
        plan_ring(
            [invited(site("Oslo")), invited(site("0slo"))], None, rl.SealedLaps(), Task("custom", dim=2), Stopping()
        )


def test_names_that_people_tell_apart_are_let_pass() -> None:
    refuse_alike(["Oslo", "Bergen", "Oslo 2", "Ward 1", "Ward 11", "Ward 2", "Hill", "Hull", *map(str, range(3000))])
    for one, other in combinations(ALIKE, 2):
        with pytest.raises(ValueError, match="one is taken for the other"):
            refuse_alike([one, other])
