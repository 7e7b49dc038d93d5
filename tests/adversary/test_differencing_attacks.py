"""A token before and after a change of members: what that tells of who came or went, and that a site by default does not let it come to that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay.agents.agreement import folder
from roundelay.agents.agreement.differencing import DifferenceError
from roundelay.agents.agreement.epochs import plan_with, plan_without
from roundelay.agents.agreement.folder import accept_ring
from roundelay.agents.agreement.ledger import read_ledger
from roundelay.agents.agreement.plan import RingPlan, Task
from roundelay.agents.agreement.policy import Policy, write_policy
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data.fitting import own_problem, sums_of
from roundelay.agents.protocol.baton import Baton, Phase
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.journal import Journal, Passage
from roundelay.agents.protocol.station import Station
from roundelay.agents.site.meter import visits_of
from roundelay.agents.site.taking_part import Ending
from tests.agents.conftest import COLUMNS, invited, site
from tests.agents.hospitals import LAX, QUIET, TASK, Hospitals

NAMES = ("Oslo", "Bergen", "Tromso", "Narvik", "Alta", "Bodo")
RHO = 1.0
TOKENS = [rl.PIADMM1(rho=RHO, start=rl.SealedStart()), rl.IADMM(rho=RHO, start=rl.ZeroSumStart())]
both = pytest.mark.parametrize("algorithm", TOKENS, ids=["sealed", "zero-sum"])


@pytest.fixture
def hospitals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hospitals:
    return Hospitals(tmp_path, monkeypatch, NAMES)


def dropped(hospitals: Hospitals, ring: SignedPlan, *names: str) -> SignedPlan:
    return hospitals.signed(plan_without(ring.plan, names, previous=ring.digest), "Oslo")


def joined(hospitals: Hospitals, ring: SignedPlan, *names: str) -> SignedPlan:
    newcomers = [invited(site(name)) for name in names]
    return hospitals.signed(plan_with(ring.plan, newcomers, previous=ring.digest), "Oslo")


def journal_of(hospitals: Hospitals, plan: RingPlan, name: str) -> tuple[list[Passage], tuple[np.ndarray, ...]]:
    """What a member saw of an epoch, and its own x, y and c."""
    journal = Journal(hospitals.folder / name / "runs" / plan.run, plan.run, name)
    rows, standing = journal.passages(plan.epoch), journal.standing()
    journal.close()
    assert standing is not None and standing.state is not None
    return rows, standing.state.vectors


def share_by_difference(hospitals: Hospitals, before: Ending, first: SignedPlan, second: SignedPlan) -> np.ndarray:
    """All shares together were N times the last token, and are N times the first one of the new epoch: one passive member saw both."""
    plan = second.plan
    me = plan.order[0]
    rows, _ = journal_of(hospitals, plan, plan.members[me].name)
    opening = visits_of(rows, plan, me).received[0]
    return first.plan.agents * before.estimate - plan.agents * opening


def error(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


@both
def test_who_leaves_alone_leaves_its_multiplier(algorithm: object, hospitals: Hospitals) -> None:
    first = hospitals.accept(hospitals.plan(*NAMES[:5], algorithm=algorithm))
    before = hospitals.finish(first)["Bergen"]
    _, (x, y, share, *_) = journal_of(hospitals, first.plan, "Narvik")
    fewer = dropped(hospitals, first, "Narvik")
    for name in ("Oslo", "Bergen", "Tromso", "Alta"):
        with pytest.raises(DifferenceError, match=r"Narvik takes part no more\. .* what Narvik's data alone gave"):
            accept_ring(hospitals.folder / name, fewer.text)
        assert not [one for one in read_ledger(hospitals.folder / name).added if one.epoch == 1]
    hospitals.accept(fewer, despite_difference=True)
    hospitals.finish(fewer)
    found = share_by_difference(hospitals, before, first, fewer)
    assert error(found, share) < 1e-9
    # x is known: where all are content it is the model. So y = ρ(x − c) is, which the start had hidden.
    assert error(RHO * (before.estimate - found), y) < 1e-6 and error(before.estimate, x) < 1e-6
    for name in ("Oslo", "Bergen", "Tromso", "Alta"):
        *_, last = read_ledger(hospitals.folder / name).added
        assert (last.epoch, last.names) == (1, {"Oslo", "Bergen", "Tromso", "Alta"})
        assert "Narvik takes part no more." in last.overruled[0]


def test_who_comes_alone_brings_its_gradient(hospitals: Hospitals) -> None:
    first = hospitals.accept(hospitals.plan(*NAMES[:4], algorithm=TOKENS[0]))
    before = hospitals.finish(first)["Bergen"]
    more = joined(hospitals, first, "Alta")
    for name in NAMES[:4]:
        with pytest.raises(DifferenceError, match=r"Alta is new\. .* what Alta's data alone gave"):
            accept_ring(hospitals.folder / name, more.text)
    with pytest.raises(DifferenceError, match="This ring has run before Alta came"):
        accept_ring(hospitals.folder / "Alta", more.text)
    hospitals.accept(more, despite_difference=True)
    hospitals.finish(more)
    standard = before.notes.standard
    assert standard is not None
    rows = hospitals.local("Alta", TASK).rows
    gradient = own_problem(TASK, rows, standard, agents=4).gradient(0, np.zeros(2))  # in the units of the first epoch
    found = RHO * share_by_difference(hospitals, before, first, more)
    assert error(found, gradient) < 1e-6
    assert "This ring has run before Alta came" in read_ledger(hospitals.folder / "Alta").added[-1].overruled[0]


def test_two_that_leave_together_tell_their_sum_alone(hospitals: Hospitals) -> None:
    first = hospitals.accept(hospitals.plan(algorithm=TOKENS[0]))
    before = hospitals.finish(first)["Bergen"]
    shares = {name: journal_of(hospitals, first.plan, name)[1][2] for name in ("Narvik", "Alta")}
    fewer = hospitals.accept(dropped(hospitals, first, "Narvik", "Alta"))
    hospitals.finish(fewer)
    found = share_by_difference(hospitals, before, first, fewer)
    assert error(found, shares["Narvik"] + shares["Alta"]) < 1e-9
    # One of them comes back: now each would follow.
    again = dropped(hospitals, first, "Narvik")
    for other in (again, hospitals.plan(*(name for name in NAMES if name != "Narvik"), algorithm=TOKENS[0])):
        with pytest.raises(ValueError, match=r"(Narvik|Alta).* data alone gave|Another ring file of epoch 1"):
            accept_ring(hospitals.folder / "Oslo", other.text)
    with pytest.raises(DifferenceError, match=r"Alta.* data alone gave"):
        accept_ring(
            hospitals.folder / "Oslo",
            hospitals.plan("Oslo", "Bergen", "Tromso", "Bodo", "Alta", algorithm=TOKENS[0]).text,
        )


def test_the_next_run_is_no_way_around(hospitals: Hospitals) -> None:
    """Another run, another method, other columns with one in common: the sums of the statistics alone would tell of the site."""
    hospitals.finish(hospitals.accept(hospitals.plan(*NAMES[:5], algorithm=TOKENS[0])))
    others = (
        hospitals.plan(*NAMES[:4], algorithm=TOKENS[0]),
        hospitals.plan(*NAMES[:4]),
        hospitals.plan(*NAMES[:4], task=Task("least_squares", COLUMNS[:1], COLUMNS[1]), algorithm=TOKENS[1]),
        hospitals.plan(*NAMES[:4], task=Task("logistic", COLUMNS[:1], COLUMNS[2]), algorithm=TOKENS[1]),
    )
    for ring in others:
        for name in NAMES[:4]:
            with pytest.raises(DifferenceError, match=r"Alta takes part no more\."):
                accept_ring(hospitals.folder / name, ring.text)


def test_an_agent_refuses_what_was_accepted_too_early(hospitals: Hospitals) -> None:
    """Both ring files were accepted before either had run: then the agents of all who stay stop before a word leaves."""
    all_of_them = hospitals.accept(hospitals.plan(*NAMES[:5], algorithm=TOKENS[0]))
    fewer = hospitals.accept(hospitals.plan(*NAMES[:4], algorithm=TOKENS[0]))
    hospitals.finish(all_of_them)
    ended = hospitals.run(fewer)
    assert ended and all(isinstance(one, DifferenceError) and "Alta" in str(one) for one in ended.values())
    despite = {name: replace(QUIET, despite_difference=True) for name in NAMES}
    assert all(isinstance(one, Ending) for one in hospitals.run(fewer, despite).values())


def test_statistics_are_not_summed_again(hospitals: Hospitals) -> None:
    """What all were told of all rows they keep; a new epoch of a token sums the shares alone, and tells newcomers what was told."""
    first = hospitals.accept(hospitals.plan(*NAMES[:5], algorithm=TOKENS[0]))
    before = hospitals.finish(first)["Oslo"]
    other = hospitals.accept(joined(hospitals, dropped_then(hospitals, first), "Bodo"), despite_difference=True)
    ended = hospitals.finish(other)
    shares, statistics = 8 * other.plan.dim, {16 * (1 + count) for count in sums_of(TASK)}
    for name in ended:
        rows, _ = journal_of(hospitals, other.plan, name)
        sums = [len(row.received or b"") for row in rows if row.phase == Phase.SUM]
        assert sums and set(sums) == {shares} and shares not in statistics
        standard, told = before.notes.standard, ended[name].notes.standard
        assert standard is not None and told is not None and told.rows == standard.rows == 200
        np.testing.assert_array_equal(told.mean, standard.mean)


def test_statistics_that_are_summed_again_tell_the_sums_of_who_left(
    hospitals: Hospitals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The positive control: where every epoch forms them anew, one subtraction gives the rows and the means of one site."""
    take_up = Station._open

    def forget(station: Station) -> None:
        take_up(station)
        if station.plan.epoch and station.standing.k < 0:
            station.holder.held.told = ()

    monkeypatch.setattr(Station, "_open", forget)
    monkeypatch.setattr(Holder, "_keeps_statistics", False)
    first = hospitals.accept(hospitals.plan(*NAMES[:5], algorithm=TOKENS[0]))
    before = hospitals.finish(first)["Oslo"].notes.standard
    fewer = hospitals.accept(dropped(hospitals, first, "Narvik"), despite_difference=True)
    after = hospitals.finish(fewer)["Oslo"].notes.standard
    assert before is not None and after is not None
    rows = before.rows - after.rows
    assert rows == len(hospitals.tables["Narvik"])
    mean = (before.rows * np.array(before.mean) - after.rows * np.array(after.mean)) / rows
    np.testing.assert_allclose(mean, hospitals.tables["Narvik"][:, :2].mean(axis=0), rtol=1e-9)


def dropped_then(hospitals: Hospitals, ring: SignedPlan) -> SignedPlan:
    """The epoch after, without two sites; it runs, too."""
    fewer = hospitals.accept(dropped(hospitals, ring, "Narvik", "Alta"))
    hospitals.finish(fewer)
    return fewer


def test_a_site_may_want_more_to_come_or_go_at_a_time(hospitals: Hospitals) -> None:
    first = hospitals.accept(hospitals.plan(algorithm=TOKENS[0]))
    hospitals.finish(first)
    fewer, folder = dropped(hospitals, first, "Narvik", "Alta"), hospitals.folder / "Oslo"
    (folder / "policy.toml").unlink()
    write_policy(folder, replace(LAX, least_change=3))
    with pytest.raises(
        DifferenceError, match=r"differ by Alta and Narvik alone, and this site's policy wants 3 .*\(least_change\)"
    ):
        accept_ring(folder, fewer.text)
    accept_ring(folder, dropped(hospitals, first, "Narvik", "Alta", "Bodo").text)
    assert Policy().least_change == 2


def test_a_change_of_members_to_another_fit_hides_a_difference(
    hospitals: Hospitals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents that run have the data of the fit before: they would add these once more, without who has left, and the ledgers note others."""
    fit, other = Task("least_squares", COLUMNS[:1], COLUMNS[2]), Task("custom", dim=1)
    heard, told = Holder._heard, {}

    def listening(holder: Holder, baton: Baton) -> Baton:
        if baton.purpose == 0:
            told[holder.plan.epoch] = np.array(baton.numbers[1:])
        return heard(holder, baton)

    monkeypatch.setattr(Holder, "_heard", listening)
    first = hospitals.accept(hospitals.plan(*NAMES[:5], task=fit))
    hospitals.finish(first)
    honest = plan_without(first.plan, ["Narvik"], previous=first.digest)
    with pytest.raises(DifferenceError, match="Narvik takes part no more"):
        hospitals.accept(hospitals.signed(honest, "Oslo"))
    hiding = hospitals.signed(replace(honest, task=other), "Oslo")
    for changed in (hiding, hospitals.signed(replace(honest, algorithm=TOKENS[0]), "Oslo")):
        with pytest.raises(ValueError, match="The change by Oslo also changes what is fitted, or how"):
            hospitals.accept(changed)

    monkeypatch.setattr(folder, "fits_the_same", lambda *_: True)
    local = hospitals.local
    monkeypatch.setattr(hospitals, "local", lambda name, _: local(name, fit))
    hospitals.finish(hospitals.accept(hiding))  # without --despite-difference
    table = hospitals.tables["Narvik"]
    alone = [len(table), table[:, 0].sum(), table[:, 2].sum()]
    np.testing.assert_allclose(told[0] - told[1], alone)
