from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, strategies as st

import roundelay as rl
from roundelay.agents.agreement.epochs import changes, plan_renewed, plan_ring, plan_with, plan_without
from roundelay.agents.agreement.invitations import Invitation
from roundelay.agents.agreement.plan import Column, RingPlan, Stopping, Task, column_of
from tests.agents.conftest import ALGORITHM, COLUMNS, TASK, invited, ring_of, site
from tests.agents.fuzzing import patient

NAMES = ("Oslo", "Bergen", "New York", "Tromso")
STAR = [("Oslo", "Bergen"), ("Oslo", "New York"), ("Oslo", "Tromso")]


def names_along(plan: RingPlan) -> list[str]:
    return [plan.members[number].name for number in plan.order]


def linked_names(plan: RingPlan) -> set[frozenset[str]]:
    return {frozenset(plan.members[number].name for number in pair) for pair in plan.links}


def test_a_ring_of_all_with_all() -> None:
    plan = ring_of(*NAMES)
    assert plan.order == (0, 1, 2, 3) and names_along(plan)[0] == "Oslo"
    assert sorted(names_along(plan)) == sorted(NAMES) and len(plan.links) == 6
    assert (plan.epoch, plan.previous, plan.task, plan.stopping) == (0, "", TASK, Stopping())
    assert ring_of(*NAMES).run != plan.run


def test_links_make_the_cycle() -> None:
    links = [("Oslo", "New York"), ("New York", "Bergen"), ("Bergen", "Tromso"), ("Tromso", "Oslo")]
    plan = ring_of(*NAMES, links=links)
    assert plan.order == (0, 1, 2, 3)
    assert names_along(plan) in (["Oslo", "New York", "Bergen", "Tromso"], ["Oslo", "Tromso", "Bergen", "New York"])
    assert linked_names(plan) == {frozenset(pair) for pair in links}


def test_without_a_cycle_the_token_walks() -> None:
    plan = ring_of(*NAMES, links=STAR)
    assert len(plan.order) == 6 and set(plan.order) == {0, 1, 2, 3} and plan.order[0] == 0
    assert names_along(plan)[::2] == ["Oslo"] * 3


def test_the_first_can_be_chosen() -> None:
    invitations = [invited(site(name)) for name in NAMES]
    for links in (None, STAR):
        for first in NAMES:
            plan = plan_ring(invitations, links, ALGORITHM, TASK, first=first)
            assert names_along(plan)[0] == plan.members[0].name == first
    with pytest.raises(ValueError, match="There is no site 'Paris' among the members"):
        plan_ring(invitations, None, ALGORITHM, TASK, first="Paris")


def test_two_sites_are_a_ring() -> None:
    assert ring_of("Oslo", "Bergen").order == (0, 1)
    with pytest.raises(ValueError, match="A ring needs at least two sites"):
        ring_of("Oslo")


@patient
@given(st.sets(st.sampled_from(list(combinations(range(5), 2)))), st.lists(st.booleans(), min_size=5, max_size=5))
def test_every_step_can_be_dialled(pairs: set[tuple[int, int]], reachable: list[bool]) -> None:
    names = [*NAMES, "Paris"]
    sites = [invited(site(name), None if open_ else "") for name, open_ in zip(names, reachable, strict=True)]
    try:
        plan = plan_ring(sites, [(names[a], names[b]) for a, b in pairs], ALGORITHM, TASK)
    except ValueError as refused:
        assert "can't make a ring" in str(refused)
        return
    given_links = {frozenset((names[a], names[b])) for a, b in pairs}
    assert linked_names(plan) <= given_links
    for here, there in plan.links:
        assert plan.members[here].address or plan.members[there].address
    assert sorted(member.name for member in plan.members) == sorted(names)


def test_somebody_must_be_reachable() -> None:
    sites = [invited(site("Oslo"), ""), invited(site("Bergen"), "")]
    with pytest.raises(ValueError, match="neither end of the link between Oslo and Bergen has an address"):
        plan_ring(sites, None, ALGORITHM, TASK)
    # With one that can be dialled by all, the others need no address.
    plan = plan_ring([*sites, invited(site("Tromso"))], None, ALGORITHM, TASK)
    assert len(plan.order) == 4 and names_along(plan).count("Tromso") == 2


def test_bad_links_are_named() -> None:
    for links, words in (
        ([("Oslo", "Paris")], "There is no site 'Paris' among the members: they are Oslo, Bergen"),
        ([("Oslo", "Oslo")], "A link joins 'Oslo' to itself"),
        ([("Oslo", "Bergen"), ("New York", "Tromso")], "The network is not connected: it falls into 2 parts, {Oslo"),
    ):
        with pytest.raises(ValueError, match=words):
            ring_of(*NAMES, links=links)


def test_a_link_may_be_named_twice() -> None:
    both_ways = [("Oslo", "Bergen"), ("Bergen", "Oslo")]
    assert ring_of("Oslo", "Bergen", links=both_ways).links == ((0, 1),)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (COLUMNS[1:], r"Oslo has the column age \[years\], which Bergen lacks\. Let all"),
        ((*COLUMNS, Column("weight", "kg")), r"Bergen has the column weight \[kg\], which Oslo lacks"),
        (
            (Column("age", "months"), *COLUMNS[1:]),
            r"Oslo has the column age \[years\], which Bergen lacks and Bergen has the column age \[months\], which Oslo",
        ),
        ((), r"Oslo has the columns age \[years\], length \[cm\] and outcome, which Bergen lacks"),
    ],
)
def test_sites_agree_on_their_columns(columns: tuple[Column, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plan_ring([invited(site("Oslo")), invited(site("Bergen"), columns=columns)], None, ALGORITHM, TASK)


def test_the_order_of_columns_does_not_matter() -> None:
    plan_ring([invited(site("Oslo")), invited(site("Bergen"), columns=COLUMNS[::-1])], None, ALGORITHM, TASK)


def test_the_fit_needs_columns_that_are_there() -> None:
    task = replace(TASK, target=Column("weight"))
    with pytest.raises(ValueError, match="Oslo lacks the column weight of the fit"):
        plan_ring([invited(site("Oslo")), invited(site("Bergen"))], None, ALGORITHM, task)
    custom = Task("custom", dim=3)
    assert plan_ring([invited(site("Oslo")), invited(site("Bergen"), columns=())], None, ALGORITHM, custom).dim == 3


def test_sites_are_not_twins() -> None:
    copied = replace(invited(site("Bergen")), certificate=site("Oslo").certificate)
    for other, words in (
        (invited(site("Oslo", 1)), "Oslo and Oslo have the same name"),
        (copied, "Oslo and Bergen have the same certificate"),
    ):
        with pytest.raises(ValueError, match=words):
            plan_ring([invited(site("Oslo")), other], None, ALGORITHM, TASK)


def test_a_ring_needs_a_method_with_one_token() -> None:
    with pytest.raises(ValueError, match="is neither sealed laps nor a method with one token"):
        plan_ring([invited(site("Oslo")), invited(site("Bergen"))], None, object(), TASK)


def test_a_ring_needs_a_walk_on_which_nobody_has_to_count() -> None:
    sites = [invited(site("Oslo")), invited(site("Bergen"))]
    with pytest.raises(ValueError, match="how many steps a token has made on MixedWalk"):
        plan_ring(sites, None, rl.AcceleratedToken(0.5, 2.0, rl.MixedWalk(3)), TASK)
    with pytest.raises(ValueError, match="give mu to the algorithm"):
        plan_ring(sites, None, rl.AcceleratedToken(L=2.0), TASK)


def test_sites_leave() -> None:
    plan = ring_of(*NAMES)
    first = names_along(plan)[0]
    after = plan_without(plan, [first], previous="ab" * 32)
    assert (after.epoch, after.previous, after.run) == (1, "ab" * 32, plan.run)
    assert sorted(names_along(after)) == sorted(set(NAMES) - {first})
    assert names_along(after)[0] == names_along(plan)[1] and after.order == (0, 1, 2)
    assert (after.task, after.algorithm, after.stopping) == (plan.task, plan.algorithm, plan.stopping)
    assert changes(plan, after) == (f"{first} leaves.",)
    with pytest.raises(ValueError, match="There is no member 'Paris'"):
        plan_without(plan, ["Paris"], previous="")
    with pytest.raises(ValueError, match="Without Oslo, Bergen and Tromso one site is left, and a ring needs two"):
        plan_without(plan, ["Oslo", "Bergen", "Tromso"], previous="")


def test_the_centre_of_a_star_leaves() -> None:
    plan = ring_of(*NAMES, links=STAR)
    with pytest.raises(ValueError, match="The network is not connected"):
        plan_without(plan, ["Oslo"], previous="")
    links = [("Bergen", "Tromso"), ("Tromso", "New York")]
    assert linked_names(plan_without(plan, ["Oslo"], links, previous="")) == {frozenset(pair) for pair in links}
    assert len(plan_without(plan, ["Bergen"], previous="").order) == 4


def test_sites_join_and_are_never_first() -> None:
    plan = ring_of("Oslo", "Bergen", "New York")
    newcomers = [invited(site("Tromso")), invited(site("Paris"), "")]
    after = plan_with(plan, newcomers, previous="ab" * 32)
    assert after.epoch == 1 and after.agents == 5 and names_along(after)[0] == names_along(plan)[0]
    assert len(after.links) == 10
    assert set(changes(plan, after)) == {"Tromso joins.", "Paris joins."}
    apart = plan_with(
        plan, newcomers[:1], [*combinations(("Oslo", "Bergen", "New York"), 2), ("Oslo", "Tromso")], previous=""
    )
    assert frozenset(("Tromso", "Bergen")) not in linked_names(apart)


def test_who_can_not_join() -> None:
    plan = ring_of("Oslo", "Bergen")
    for newcomers, words in (
        ([], "No site joins"),
        ([invited(site("Oslo", 1))], "Oslo is a member already: .* is taken in by renew"),
        ([invited(site("Tromso"), columns=COLUMNS[1:])], r"Tromso lacks the column age \[years\] of the fit"),
        ([invited(site("Tromso"), columns=())], "Tromso lacks the columns"),
        ([replace(invited(site("Tromso")), certificate=site("Oslo").certificate)], "have the same certificate"),
    ):
        with pytest.raises(ValueError, match=words):
            plan_with(plan, newcomers, previous="")


def test_a_site_renews_its_key() -> None:
    plan = ring_of(*NAMES)
    after = plan_renewed(plan, invited(site("Bergen", 1), columns=()), previous="ab" * 32)
    assert after.epoch == 1 and after.members[after.number_of("Bergen")].certificate == site("Bergen", 1).certificate
    assert changes(plan, after) == ("Bergen has a new certificate: compare its fingerprint.",)
    moved: Invitation = replace(invited(site("Bergen")), address="elsewhere:1")
    assert changes(plan, plan_renewed(plan, moved, previous="")) == (
        "Bergen is dialled at elsewhere:1 instead of Bergen.example.org:7443.",
    )
    with pytest.raises(ValueError, match="The invitation of Bergen has nothing new"):
        plan_renewed(plan, invited(site("Bergen")), previous="")
    with pytest.raises(ValueError, match="There is no member 'Paris'"):
        plan_renewed(plan, invited(site("Paris")), previous="")


def test_every_change_is_told() -> None:
    plan = ring_of(*NAMES)
    for change, words in (
        ({"algorithm": replace(ALGORITHM, rho=2.0)}, "The algorithm was PIADMM1"),
        ({"task": replace(TASK, ridge=1.0)}, "What is fitted is another"),
        ({"stopping": Stopping(1e-3)}, "The ring stopped by"),
        ({"links": ((0, 1), (0, 3), (1, 2), (2, 3))}, "Other pairs of the sites"),
    ):
        (said,) = changes(plan, replace(plan, **change))
        assert words in said


@pytest.mark.parametrize(
    ("cell", "column"),
    [
        ("age [years]", Column("age", "years")),
        (" age[ years ] ", Column("age", "years")),
        ("age", Column("age")),
        ("age []", Column("age")),
        ("a [b] [c]", Column("a [b]", "c")),
        ("blood  pressure [mm Hg]", Column("blood pressure", "mm Hg")),
        ("blood\npressure\t[ mm  Hg ]", Column("blood pressure", "mm Hg")),
    ],
)
def test_the_cells_of_a_header(cell: str, column: Column) -> None:
    assert column_of(cell) == column
    assert column_of(str(column)) == column


@pytest.mark.parametrize("cell", ["", " ", "[years]", " [ years ]", "[]"])
def test_a_cell_without_a_name_is_refused(cell: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        column_of(cell)
