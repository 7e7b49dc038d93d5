"""What a run will disclose of a site, for whoever answers for its data: gathered before anything runs, and put into words once.

Nothing is judged here anew. What leaves is counted (`leaving.py`), what others can work out of it follows by linear algebra
(`roundelay.privacy`) or is proven, the policy says what the site allows, and the ledger what it has told already.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from roundelay.agents.agreement.differencing import all_that_a_site_gave, day_of
from roundelay.agents.agreement.folder import identity_for, what_follows
from roundelay.agents.agreement.identity import expiry, fingerprint
from roundelay.agents.agreement.ledger import Data, Finding, Ledger, added_by, read_ledger
from roundelay.agents.agreement.plan import CUSTOM, RingPlan
from roundelay.agents.agreement.policy import (
    ALL,
    BY_LEDGER,
    ONCE_TOLD,
    POLICY,
    WITH_DATA,
    Breach,
    OwnData,
    Policy,
    breaches,
    entries_about,
    read_policy,
    sides,
)
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data.objectives import Local
from roundelay.agents.site.assessment import known_to
from roundelay.agents.site.bookkeeping import Bookkeeper, over_budget
from roundelay.agents.site.leaving import (
    Message,
    Told,
    also_answered,
    messages_of,
    named_sums,
    numbers_of,
    told_of,
)
from roundelay.agents.site.verdict import (
    method_in_words,
    promise_in_words,
    small_cells,
    stop_in_words,
    verdict,
    way_in_words,
    worked_out,
)
from roundelay.algorithms.sealed.questions import numbers_asked
from roundelay.algorithms.sealed.shared_noise import epsilon_of_gaussian
from roundelay.networks.network_checks import join_names
from roundelay.shown.document import Document, Judged, Look, Note, Section
from roundelay.shown.numbers import plural
from roundelay.shown.provenance import provenance
from roundelay.shown.table import Table

State = Literal["held", "broken", "looked at with the data", "looked at when all rows are counted", "by the ledger"]
LOOKS: dict[str, Look] = {
    "held": "good", "broken": "bad", "looked at with the data": "partly", "looked at when all rows are counted": "partly",
    "nothing": "good", "all of it": "bad", "much": "bad", "some": "partly", "the sum": "good", "blurred": "partly", "the result": "",
}  # fmt: skip
# Unknowns and laps for which equations are counted: more of them determine the same.
UNKNOWNS, LAPS = 3, 8
BEFORE = "before"


@dataclass(frozen=True)
class Reader:
    """Somebody who sees something of a run: what, and what can be worked out of it of a single site.

    `learns` says in a word how much; `known` is how many of the `of` numbers that a site's data come to are determined.
    """

    who: str
    sees: str
    learns: str
    works_out: str
    known: int
    of: int


@dataclass(frozen=True)
class Entry:
    """An entry of a policy that has a say: what it allows, and whether the plan keeps to it."""

    name: str
    allows: str
    state: State
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Earlier:
    """A run to whose sums a site has added before."""

    day: str
    run: str
    epoch: int
    sites: tuple[str, ...]
    fit: str
    rows: int
    exact: bool
    told: tuple[str, ...]


@dataclass(frozen=True)
class MemberShown:
    """A member, as its operator would read it out."""

    name: str
    address: str
    fingerprint: str
    good_until: str


@dataclass(frozen=True)
class Disclosure:
    """All of it; `site` is empty where it is told for any of the sites, as whoever plans a ring wants to know it.

    `begun` is the day on which this very run has begun at the site, and `rows` how many rows it has, where they were looked at.
    `findings` are what the new sums tell together with the old ones, and
    `refused` those for which the site does not take part.
    """

    site: str
    made: datetime
    software: str
    digest: str
    signed_by: str
    run: str
    epoch: int
    members: tuple[MemberShown, ...]
    purpose: str
    columns: tuple[str, ...]
    method: tuple[str, ...]
    told: tuple[Told, ...]
    messages: tuple[Message, ...]
    beyond: tuple[str, ...]
    readers: tuple[Reader, ...]
    policy: str
    entries: tuple[Entry, ...]
    earlier: tuple[Earlier, ...]
    findings: tuple[str, ...]
    refused: tuple[str, ...]
    remains: tuple[str, ...]
    begun: str = ""
    rows: int | None = None

    @property
    def broken(self) -> tuple[Entry, ...]:
        """The entries of the policy to which the plan does not keep."""
        return tuple(one for one in self.entries if one.state == "broken")

    @property
    def is_refused(self) -> bool:
        """Whether the site would not take part."""
        return bool(self.broken or self.refused)


def disclosure(
    signed: SignedPlan, made: datetime, folder: Path | None = None, local: Local | None = None
) -> Disclosure:
    """What a ring file will disclose: of the site in a folder, by its policy and its ledger, and with `local` by its own rows too.

    Without a folder of any of the sites, held against the policy that a site has which has changed nothing.
    """
    plan = signed.plan
    site = "" if folder is None else identity_for(folder, plan).name
    me = plan.number_of(site) if site else None
    policy = Policy() if folder is None else read_policy(folder)
    ledger = None if folder is None else read_ledger(folder)
    books = None if folder is None or local is None else Bookkeeper(folder, signed, local, policy)
    findings: tuple[Finding, ...] = ()
    if folder is not None and ledger is not None:
        findings = what_follows(folder, ledger, signed) if books is None else books.follows(ledger)
    refused = () if ledger is None else ledger.not_overruled(signed.digest, findings)
    told = told_of(plan)
    return Disclosure(
        site, made, provenance()["software"], signed.digest, signed.signed_by, plan.run, plan.epoch, tuple(_members(plan)),
        plan.task.in_words, _columns(plan), tuple(_method(plan)), told, messages_of(plan, me), tuple(_beyond(plan)),
        tuple(_readers(signed, me, told)),
        "the policy of a site that has changed nothing" if folder is None else f"{POLICY} of {site}",
        _entries(signed, policy, me, ledger, books, findings), tuple(_earlier(ledger, plan)),
        tuple(one.sentence for one in findings), tuple(one.sentence for one in refused), tuple(_remains(plan, me)),
        _begun(ledger, plan), None if books is None else books.marked.data.rows,
    )  # fmt: skip


# ---------------------------------------------------------------- what is agreed on


def _members(plan: RingPlan) -> Iterator[MemberShown]:
    for one in plan.members:
        until = expiry(one.certificate)
        yield MemberShown(
            one.name, one.address or "dials the others", fingerprint(one.certificate), f"{until:%Y-%m-%d}"
        )


def _columns(plan: RingPlan) -> tuple[str, ...]:
    return tuple(column.in_words for column in plan.task.columns)


def _method(plan: RingPlan) -> Iterator[str]:
    yield method_in_words(plan)
    if plan.noise is not None:
        yield promise_in_words(plan)
    yield stop_in_words(plan)
    yield f"The way: {way_in_words(plan)}."


def _beyond(plan: RingPlan) -> Iterator[str]:
    """What is not in the tables since an honest first member does not ask for it."""
    if plan.choice is None:
        return
    others = also_answered(plan)
    if others:
        numbers = max(numbers_asked(asked, plan.dim) for asked in others)
        yield (
            f"Your agent would also answer a question that leaves a part of these out ({plural(numbers, 'number')} at most), which the agreed "
            "method does not ask."
        )
    if plan.noise is None:
        usual = getattr(plan.choice.optimiser, "usual", None)
        about = "" if usual is None else f", and usually takes about {min(usual, plan.stopping.questions):,}"
        yield f"The whole fit may ask {plural(plan.stopping.questions, 'question')} at most, of all kinds together{about}."


# ---------------------------------------------------------------- who learns what


def _readers(signed: SignedPlan, me: int | None, told: tuple[Told, ...]) -> Iterator[Reader]:
    plan = signed.plan
    if plan.choice is None:
        yield from _readers_of_a_token(plan, me)
    elif plan.noise is not None:
        yield from _readers_of_noise(plan, me, told)
    else:
        yield from _readers_of_sums(signed, me, told)


def _neighbours(plan: RingPlan, me: int | None) -> tuple[str, int]:
    """Who they are, and how many."""
    if me is None:
        most = max(len(one) for one in plan.neighbours)
        return ("your one neighbour" if most == 1 else f"your {most} neighbours together"), most
    names = join_names(sorted(plan.members[one].name for one in plan.neighbours[me]))
    many = len(plan.neighbours[me])
    return (f"your neighbour {names}" if many == 1 else f"your neighbours {names} together"), many


def _all_others(sites: int) -> str:
    return "both others" if sites == 3 else f"all {sites - 1} others"


def _groups(plan: RingPlan, me: int | None) -> Iterator[tuple[str, int]]:
    """Other sites that work together, and how many: none that is named twice."""
    neighbours, many = _neighbours(plan, me)
    found = {1: "any one of the other sites", many: neighbours}
    if plan.agents >= 4:
        others = f"all others but one together (N − 2 = {plan.agents - 2} sites)"
        found[plan.agents - 2] = f"{neighbours}, and {others}" if many == plan.agents - 2 else others
    everybody = f"{_all_others(plan.agents)} together" if plan.agents > 2 else f"the other site, {neighbours}"
    found[plan.agents - 1] = f"{neighbours}, who are {everybody}" if 1 < many == plan.agents - 1 else everybody
    yield from sorted(((who, count) for count, who in found.items()), key=lambda one: one[1])


_TAP = Reader(
    "a tap on the links", "when messages cross, and how long they are", "nothing",
    "Nothing: the links are encrypted (mutual TLS), with the neighbours' certificates as the only ones trusted.", 0, 0,
)  # fmt: skip


def _readers_of_sums(signed: SignedPlan, me: int | None, told: tuple[Told, ...]) -> Iterator[Reader]:
    plan, own = signed.plan, numbers_of(told)
    everything = all_that_a_site_gave(added_by(signed, Data()))
    yield Reader(*_tapped(own))
    for who, count in _groups(plan, me):
        honest = plan.agents - count
        if _follows_from_sums(plan, count):
            yield Reader(
                who, "the totals, and all that they have added to them themselves", "all of it",
                f"Everything that your site gives, all {own:,} numbers, as if you had handed them over: {everything}.", own, own,
            )  # fmt: skip
            continue
        rest = "one other site" if honest == 2 else f"the {honest - 1} other sites that are not among them"
        yield Reader(
            who, "the totals, and words under masks", "the sum",
            f"Nothing of your site alone. They know each total less what they have added themselves: the sum over you and {rest}.", 0, own,
        )  # fmt: skip
    yield Reader(
        "a thief who takes the keys of any sites after the run, and has recorded all that crossed the links",
        "words under masks", "nothing",
        "Nothing of your site: the keys for masks are made for each epoch and deleted when it is over, so that no key that is left lifts a mask. "
        "What was deleted may stand on a disk until it is written over. With a site's own key it could take that site's place in later runs, until it is renewed.", 0, own,
    )  # fmt: skip
    yield Reader(
        "a thief who takes your site's folder while the run goes on, and has recorded the same", "words under masks, and the key for yours",
        "all of it", f"Everything that your site gives, all {own:,} numbers.", own, own,
    )  # fmt: skip
    yield _of_the_result(plan)


def _tapped(own: int) -> tuple[str, str, str, str, int, int]:
    return _TAP.who, _TAP.sees, _TAP.learns, _TAP.works_out, 0, own


def _of_the_result(plan: RingPlan) -> Reader:
    what = (
        "the model"
        if plan.task.regression is None
        else "the model with its tables and pictures, without cells of few rows"
    )
    beside = (
        ""
        if plan.task.regression is None
        else " The sums that your sites tell each other stand in a file of their own, which is for them alone."
    )
    return Reader(
        "whoever reads the result", what, "the result", "What the model says of all rows together; it tells something about them by any method." + beside, 0, 0,
    )  # fmt: skip


def _follows_from_sums(plan: RingPlan, colluders: int) -> bool:
    """Whether the part of a single site is determined, by the rank of the equations."""
    from roundelay.privacy import identifiable  # late: it brings the attacks and their solvers, which take a while

    assert plan.choice is not None
    found = identifiable(
        plan.algorithm, visits=min(plan.stopping.questions, LAPS), dim=min(plan.dim, UNKNOWNS),
        model="quadratic" if plan.task.is_quadratic else "unknown", agents=plan.agents, colluders=colluders,
    )  # fmt: skip
    return any(one.numbers for one in found.quantities if not one.quantity.startswith("sum of "))


def _readers_of_noise(plan: RingPlan, me: int | None, told: tuple[Told, ...]) -> Iterator[Reader]:
    noise, promise, own = plan.noise, plan.task.promise, numbers_of(told)
    assert noise is not None and promise is not None
    yield Reader(*_tapped(own))
    for who, count in _groups(plan, me):
        left = plan.agents - count
        epsilon = epsilon_of_gaussian(noise.multiplier * math.sqrt(left / noise.honest), promise.delta)
        keeps = f"Every record keeps ε = {epsilon:.3g} at δ = {promise.delta:g} against them"
        if count <= noise.leave_out:
            keeps = f"Every record keeps the promised ε = {promise.epsilon:g} at δ = {promise.delta:g} against them"
        what = "your site's own sums" if left == 1 else f"the sums over you and {plural(left - 1, 'other site')}"
        yield Reader(
            who, "the totals with noise, and their own shares of it", "blurred",
            f"Nothing exact: {what}, with the noise of {'your share alone' if left == 1 else f'{left} shares'} in them. {keeps}.", 0, own,
        )  # fmt: skip
    yield Reader(
        "a thief who takes the keys of any sites after the run, and has recorded all that crossed the links", "words under masks", "nothing",
        "Nothing but the totals with noise: the keys for masks are deleted when the epoch is over. What was deleted may stand on a disk until "
        "it is written over.", 0, own,
    )  # fmt: skip
    yield Reader(
        "a thief who takes your site's folder while the run goes on, and has recorded the same", "words under masks, and the keys for yours and its noise",
        "all of it", "Your site's sums without noise, of records cut to the public bounds: no ε holds against this thief.", own, own,
    )  # fmt: skip
    yield _of_the_result(plan)


QUANTITIES = {"y": "slope at each visit", "H": "curvature", "g": "slope at 0", BEFORE: "sums before the fit"}


def _readers_of_a_token(plan: RingPlan, me: int | None) -> Iterator[Reader]:
    sizes = {"y": plan.dim} | ({"H": plan.dim * (plan.dim + 1) // 2, "g": plan.dim} if plan.task.is_quadratic else {})
    before = sum(numbers for _, _, numbers in named_sums(plan)) * (plan.epoch == 0)
    sizes |= {BEFORE: before} if before else {}
    of, whole = sum(sizes.values()), plan.agents - 1

    def knows(count: int) -> frozenset[str]:
        """What so many, the neighbours among them, know; all others know every part of a sum."""
        return known_to(plan, count) | ({BEFORE} if count == whole else set())

    def reader(who: str, sees: str, known: frozenset[str], more: str = "") -> Reader:
        count = sum(size for quantity, size in sizes.items() if quantity in known)
        learns = "all of it" if count == of else "much" if count else "some"
        named = join_names([f"{QUANTITIES[one]} ({sizes[one]:,} of {sizes[one]:,})" for one in sizes if one in known])
        listed = f" To the last digit: {named}." if named else ""
        return Reader(who, sees, learns, f"{_capital(worked_out(plan, known))}.{listed}{more}", count, of)

    yield Reader(*_tapped(of))
    seen = {one: sides(plan, one) for one in ((me,) if me is not None else range(plan.agents))}
    around = sorted({plan.members[other].name for hubs in seen.values() for other in hubs})
    neighbours, many = _neighbours(plan, me)
    if around and many > 1:
        who = f"{join_names(around)}, each alone" if len(around) > 1 else f"{around[0]} alone"
        beside = "who stands on both sides of you" if me is not None else "who stands on both sides of a site"
        yield reader(f"{who}, {beside}", "the token before and after your visit", knows(1))
    elif many > 1:
        yield Reader(
            "any one of the other sites", "the token as it comes by, changed by several sites", "the sum",
            "How several sites together have changed it, and the totals of the sums before the fit.", 0, of,
        )  # fmt: skip
    before_and_after = "the token before and after each of your visits"
    if around and many == 1:
        neighbours = f"{neighbours}, who stands alone on both sides of you"
    yield reader(neighbours, before_and_after, knows(many))
    if plan.agents >= 4 and many < plan.agents - 2:
        yield reader(
            f"all others but one together (N − 2 = {plan.agents - 2} sites), your neighbours among them", before_and_after, knows(plan.agents - 2)
        )  # fmt: skip
    if many < whole:
        yield reader(
            f"{_all_others(plan.agents)} together",
            f"{before_and_after}, and all sums less their own part",
            knows(whole),
        )
    yield reader(
        "a thief who takes the folders of your neighbours, or your own, also years later",
        "the token before and after each of your visits, which their journals keep", knows(many),
        " The journals are not encrypted.",
    )  # fmt: skip
    yield _of_the_result(plan)


def _capital(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"


# ---------------------------------------------------------------- the policy and the ledger


def _entries(
    signed: SignedPlan, policy: Policy, me: int | None, ledger: Ledger | None, books: Bookkeeper | None, findings: tuple[Finding, ...]
) -> tuple[Entry, ...]:  # fmt: skip
    plan = signed.plan
    own = None
    found: list[Breach] = []
    if books is not None:
        local = books.local
        own = OwnData(books.marked.data.rows, 0.0 if plan.choice is not None else local.slope)
        found += local.breaches(policy, ())
    for member in range(plan.agents) if me is None else (me,):
        found += breaches(policy, plan, member, own)
    found += _by_ledger(signed, policy, ledger, books, findings)
    return tuple(
        Entry(name, _allowed(getattr(policy, name)), _state(name, found, books is not None), _sentences(name, found))
        for name in entries_about(policy, plan)
        if ledger is not None or name not in BY_LEDGER
    )


def _by_ledger(
    signed: SignedPlan, policy: Policy, ledger: Ledger | None, books: Bookkeeper | None, findings: Iterable[Finding]
) -> Iterator[Breach]:
    if ledger is None:
        return
    refused = ledger.not_overruled(signed.digest, findings)
    yield from (Breach("least_change", one.sentence) for one in refused if one.what in ("site", "sites"))
    yield from (Breach("least_rows", one.sentence) for one in refused if one.what in ("own rows", "all rows"))
    if ledger.of(signed.plan.run, signed.plan.epoch) is None:
        over = over_budget(policy, signed, ledger, Data() if books is None else books.marked.data)
        if over:
            yield Breach("most_epsilon", over)


def _state(name: str, found: Iterable[Breach], with_data: bool) -> State:
    if any(one.entry == name for one in found):
        return "broken"
    if name in ONCE_TOLD:
        return "looked at when all rows are counted"
    return "looked at with the data" if name in WITH_DATA and not with_data else "held"


def _sentences(name: str, found: Iterable[Breach]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(one) for one in found if one.entry == name))


def _allowed(value: tuple[str, ...] | bool | float) -> str:
    if isinstance(value, tuple):
        return "any" if ALL in value else (join_names([str(one) for one in value]) or "none")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "any" if value == math.inf else f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _earlier(ledger: Ledger | None, plan: RingPlan) -> Iterator[Earlier]:
    for one in () if ledger is None else ledger.before(plan.run, plan.epoch):
        yield Earlier(
            day_of(one.time), one.run, one.epoch, tuple(name for name, _ in one.members), one.fit, one.data.rows, one.rho is None,
            one.told or (one.fit,),
        )  # fmt: skip


def _begun(ledger: Ledger | None, plan: RingPlan) -> str:
    """The day on which the site has added to the first sum of this very run; empty where it has not."""
    own = None if ledger is None else ledger.of(plan.run, plan.epoch)
    return "" if own is None else day_of(own.time)


# ---------------------------------------------------------------- what remains


def _remains(plan: RingPlan, me: int | None) -> Iterator[str]:
    if plan.choice is not None and plan.noise is None:
        yield (
            "The sums themselves are not hidden. Of few sites or few rows they say much, and a count of one in a bin of numbers says that somewhere "
            "there is one row like that, though not at which site."
        )
    if plan.noise is None:
        yield (
            "Nothing is promised for a single person by a number such as ε: these sums are exact. Whoever knows all rows but one can take them "
            "from a sum. Only a plan with --epsilon promises that."
        )
    else:
        yield (
            "ε is a promise for one row. Somebody who stands in several rows, or at several sites, has several times that; what holds for the group "
            "as a whole is learned all the same."
        )
    if plan.task.regression is not None:
        yield small_cells(plan.task.regression)
    yield "The model tells something about the data by any method, and everybody has it who took part."
    if plan.choice is not None and plan.noise is None:
        yield (
            "A later run with other members, other rows or other columns can tell what this one did not: the difference of two sums is what made "
            "it. Your ledger is held against every plan; it does not know what others have summed without you."
        )
    yield from verdict(plan, me).risks
    yield "Whoever has the rights of your agent's user on your machine has your data, and can read its journal; the key can be closed by a passphrase, the journal can't."
    yield (
        "A site shows by its part in the ring that it has such data. Addresses, names, times and the sizes of messages are seen by whoever carries them."
    )
    if plan.task.kind == CUSTOM:
        yield "What the sites' own objectives are made of, nobody here can know: each site answers for its own."
    yield (
        "This page was counted from the ring file and the program, before anything ran. It is no opinion on whether the purpose is lawful, or the data needed for it."
    )


# ---------------------------------------------------------------- as a document


def document_of(one: Disclosure) -> Document:
    """The page, from which text, HTML and PDF are made."""
    whose = one.site or "any one of the sites"
    notes = [_verdict(one)]
    facts = (
        ("Made", f"{one.made:%Y-%m-%d %H:%M} UTC"),
        ("Made by", one.software),
        ("For", one.site or "whoever plans the ring"),
        ("Sites", f"{len(one.members):,}"),
        ("Run", f"{one.run}, epoch {one.epoch}"),
        ("Signed by", one.signed_by),
        ("Digest of the ring file", one.digest),
    )
    about = (
        f"What a run of Roundelay will disclose, told before anything runs. “You” is {whose}. It follows from the ring file with the digest below, "
        "and from nothing that was measured."
    )
    sections = (
        Section("What it is for", (f"The sites fit {one.purpose}.", *_list_of_columns(one), *one.method)),
        Section("What leaves your site", (*_leaving(one), _told_table(one), *one.beyond)),
        Section("Who learns what", (_readers_table(one),)),
        Section("What the policy says", tuple(_policy_parts(one))),
        Section("What was told before", tuple(_ledger_parts(one))),
        Section("What remains, and is not promised", (*one.remains,)),
        Section("Every message", (*_about_messages(), _messages_table(one))),
        Section("Who takes part", (_members_table(one),)),
    )
    title = f"What {one.site or 'each site'} discloses"
    last = f"Made by {one.software} on {one.made:%Y-%m-%d} for the ring file {one.digest[:16]}…"
    return Document(title, about, tuple(notes), facts, sections, last, one.made)


def _verdict(one: Disclosure) -> Note:
    if one.is_refused:
        what = [f"breaks {join_names([entry.name for entry in one.broken])} of {one.policy}"] if one.broken else []
        if one.refused:
            what.append("would tell, together with earlier sums, what is not told by itself")
        return Note(f"Not as the site allows: the plan {' and '.join(what)}. The agent refuses it as it stands.", "bad")
    waiting = [entry.name for entry in one.entries if entry.state not in ("held", "broken")]
    later = f" Looked at later: {join_names(waiting)}." if waiting else ""
    return Note(f"The plan keeps to {one.policy}.{later}", "good")


def _list_of_columns(one: Disclosure) -> tuple[str, ...]:
    if not one.columns:
        return ()
    return (
        f"Of the data it uses {'; '.join(one.columns)}. These words stand in the ring file: they left the sites with their invitations, before this plan was made.",
    )


def _leaving(one: Disclosure) -> Iterator[str]:
    rows = "" if one.rows is None else f" Your site has {plural(one.rows, 'row')}."
    masked = all(each.cover != "none" for each in one.told)
    if masked:
        yield (
            f"No row leaves a site. Your data go into {plural(numbers_of(one.told), 'number')}, those of a question counted once. Each leaves as a word under "
            f"masks, which is as good as random to whoever lacks them; what comes out is the total over all {len(one.members)} sites.{rows}"
        )
    else:
        yield (
            "No row leaves a site. A token goes from site to site, and stands open to the site that has it: your neighbours see it before and after you "
            f"have changed it by your data.{rows}"
        )


def _seen_by(one: Told, sites: int) -> str:
    if one.cover == "none":
        return f"{one.to}, as it is"
    total = "the total, with noise" if one.cover == "masks and noise" else "the total"
    mine = "the other site" if sites == 2 else f"nobody, unless {_all_others(sites)} work together"
    return f"{total}: {one.to}; your part: {mine}"


def _told_table(one: Disclosure) -> Table:
    rows = tuple(
        (each.name, each.tells, each.stage, _seen_by(each, len(one.members)), f"{each.numbers:,}", str(each.times))
        for each in one.told
    )
    return Table(
        "leaves", "What your data go into", ("", "what it tells", "when", "who can see it", "numbers", "how often"), rows, words=4,
    )  # fmt: skip


def _readers_table(one: Disclosure) -> Judged:
    rows = tuple(
        (each.who, each.sees, each.learns, each.works_out, f"{each.known:,} of {each.of:,}" if each.of else "–")
        for each in one.readers
    )
    caption = (
        "The last column counts those of your site's own numbers that are determined by what is seen, by the rank of the equations. None of the others can be "
        "worked out exactly from it, by any computation; how well they may be guessed your agent's privacy meter says while it runs."
    )
    head = ("", "sees", "learns of your site", "in words", "numbers known")
    return Judged(Table("readers", "Who learns what of your site", head, rows, caption, words=4), LOOKS)


def _policy_parts(one: Disclosure) -> Iterator[str | Note | Judged]:
    yield f"The plan is held against {one.policy}. An operator who wants to allow more or less changes it there."
    for entry in one.broken:
        yield from (Note(sentence, "bad") for sentence in entry.sentences)
    rows = tuple((entry.name, entry.allows, entry.state) for entry in one.entries)
    caption = (
        "With the data: when the agent starts, before anything leaves. When all rows are counted: after the first sums, of rows and of levels, have "
        "left, before those that follow. Each stops the agent where the entry is broken."
    )
    head = ("entry", "allows", "this plan")
    yield Judged(Table("policy", "Each entry that has a say", head, rows, caption, words=3), LOOKS)


def _ledger_parts(one: Disclosure) -> Iterator[str | Note | Table]:
    if not one.site:
        yield "Each site keeps a ledger of the sums to which it has added, which nobody else sees: it holds them against this plan when it accepts it."
        return
    if one.begun:
        yield Note(
            f"This run has begun: your site has added to its sums since {one.begun}, so that what stands on this page has begun to leave.",
            "partly",
        )
    for sentence in one.findings:
        yield Note(sentence, "bad" if sentence in one.refused else "partly")
    if not one.earlier:
        yield "The ledger has no other sums: there is nothing with which those of this run could be compared."
        return
    if not one.findings:
        far = "" if one.rows is not None else ", as far as can be said before your data are looked at"
        yield f"Together with the sums in the ledger the new ones tell nothing of a single site{far}."
    rows = tuple(
        (
            each.day, join_names(list(each.sites)), each.fit, "exact" if each.exact else "with noise", f"{each.rows:,}" if each.rows else "–",
        )
        for each in one.earlier
    )  # fmt: skip
    yield Table("ledger", "The sums in the ledger", ("day", "with", "what", "sums", "your rows"), rows, words=4)


def _about_messages() -> Iterator[str]:
    yield (
        "Every kind of message that leaves a site, as whoever receives it insists on its size. A number takes 8 bytes; under masks a number takes one or two of "
        "them. A message may be sent again, the same to the byte, where a link breaks."
    )


def _messages_table(one: Disclosure) -> Table:
    rows = tuple(
        (
            each.kind.name if each.phase is None else f"{each.kind.name} {each.phase.name}", each.says, str(each.words), str(each.beside),
            str(each.times),
        )
        for each in one.messages
    )  # fmt: skip
    head = ("message", "what it says", "numbers", "bytes beside", "how often")
    return Table("messages", "Every message that leaves a site", head, rows, words=2)


def _members_table(one: Disclosure) -> Table:
    rows = tuple((each.name, each.address, each.good_until, each.fingerprint) for each in one.members)
    caption = "Compare the fingerprints with those that the sites read to you: whoever planned the ring could have put in keys of their own."
    return Table("members", "The members", ("site", "address", "good until", "fingerprint"), rows, caption, words=4)


def content_of(one: Disclosure) -> dict[str, object]:
    """The same for machines."""
    messages = [
        {**asdict(each), "kind": each.kind.name, "phase": None if each.phase is None else each.phase.name}
        for each in one.messages
    ]
    return {**asdict(one), "made": one.made.isoformat(), "messages": messages, "is_refused": one.is_refused}
