"""The ring file: what the sites have agreed on, as TOML that people can read, signed by the member that planned it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields as fields_of
from itertools import combinations
from textwrap import fill
from typing import Any, cast

from roundelay.agents.agreement.identity import Identity, is_signed_by
from roundelay.agents.agreement.invitations import (
    agreed_from,
    agreed_table,
    column_from,
    column_table,
    columns_from,
    member_from,
    member_table,
    refuse_same_names,
)
from roundelay.agents.agreement.names import LONGEST_NAME, refuse_alike
from roundelay.agents.agreement.plan import (
    CUSTOM,
    REGRESSION,
    Column,
    Member,
    Missing,
    Promise,
    RingPlan,
    Stopping,
    Task,
    digest_of,
)
from roundelay.agents.agreement.signed_text import (
    changed_since,
    parsed,
    refuse_other_tables,
    signed_text,
    split_signature,
    table_of,
)
from roundelay.algorithms.algorithm import Algorithm
from roundelay.regression.regression import Regression
from roundelay.tables import Fields, as_table, from_table, in_short, options_of

FORMAT = 4
# A run that began with a file of the format before goes on under the digest that it had, which was of all bytes.
OF_ALL_BYTES = 3
MOST_MEMBERS, MOST_LINKS, MOST_DIM = 10_000, 500_000, 10**8
# Hop numbers of an epoch start at epoch·2⁴⁰, and travel in 8 bytes.
MOST_EPOCHS, MOST_HOPS = 2**20, 2**40 - 1
# A regression's numbers, and its columns.
MOST_OF_A_REGRESSION, MOST_REGRESSED = 2**31, 1000
LONGEST_FORMULA_LINE = 300
ALL_LINKS = "all"  # a hundred sites that all reach each other have thousands of links
DIGITS = frozenset("0123456789abcdef")


@dataclass(frozen=True, eq=False)
class SignedPlan:
    """A plan as it was signed: the plan, the name of the member that signed it, and the bytes of its file.

    The digest is of what was signed, not of the signature, of which there may be several: two files with one text are one agreement.
    Of a file of an earlier release it is of both, as it was when its run began.
    """

    plan: RingPlan
    signed_by: str
    digest: str
    text: bytes


def write_ring(plan: RingPlan, signer: Identity) -> bytes:
    """The text of the ring file, signed by a member."""
    names = [member.name for member in plan.members]
    if not any(member.name == signer.name and member.certificate == signer.certificate for member in plan.members):
        raise ValueError(
            f"{signer.name} can't sign this ring file, since its certificate is not in it: let a member sign it, "
            f"one of {', '.join(names)}."
        )
    ring = {
        "format": FORMAT,
        "run": plan.run,
        "epoch": plan.epoch,
        "previous": plan.previous,
        "signed_by": signer.name,
        "order": [names[member] for member in plan.order],
        "links": _links_in_words(plan, names),
        "warm": plan.warm,
    }
    tables = {
        "ring": ring,
        "task": _task_table(plan.task),
        "stopping": _stopping_table(plan.stopping),
        "algorithm": as_table(plan.algorithm, Algorithm),
        "member": [member_table(member) for member in plan.members],
    }
    text = signed_text(tables, signer)
    read_ring(text, "the new ring file")  # nothing is sent that the others refuse
    return text


def read_ring(text: bytes, where: str) -> SignedPlan:
    """The plan in a ring file, with a signature that fits; `where` is how a sentence calls the file, such as its path."""
    body, signature = split_signature(text, where)
    tables = parsed(body, where)
    refuse_other_tables(tables, ("ring", "task", "stopping", "algorithm", "member"), where)
    ring = table_of(tables, "ring", where)
    ring.only("format", "run", "epoch", "previous", "signed_by", "order", "links", "warm")
    written = ring.whole("format", OF_ALL_BYTES, FORMAT)
    members = _members(tables, where)
    certificates = {member.name: member.certificate for member in members}
    signer = ring.text("signed_by", LONGEST_NAME)
    if signer not in certificates:
        raise ring.refusal("signed_by", f"let a member sign the file, one of {_listed(certificates)}")
    # From here on only what a member has signed is looked at.
    if not is_signed_by(certificates[signer], body, signature):
        raise changed_since(where, signer)
    digest = digest_of(text if written == OF_ALL_BYTES else body)
    return SignedPlan(_plan(tables, ring, members, where), signer, digest, text)


def _plan(tables: Mapping[str, Any], ring: Fields, members: tuple[Member, ...], where: str) -> RingPlan:
    numbers = {member.name: number for number, member in enumerate(members)}
    algorithm = from_table(table_of(tables, "algorithm", where).table, f"[algorithm] in {where}", Algorithm)
    epoch, previous = ring.whole("epoch", 0, MOST_EPOCHS), ring.text("previous")
    if epoch == 0 and previous:
        raise ring.refusal("previous", "leave it empty in the first epoch")
    if epoch > 0 and (len(previous) != 64 or set(previous) - DIGITS):
        raise ring.refusal("previous", "use the digest of the file of the epoch before, 64 hexadecimal digits")
    try:
        return RingPlan(
            run=ring.text("run"),
            epoch=epoch,
            members=members,
            order=_order(ring, numbers),
            links=_links(ring, numbers),
            algorithm=algorithm,
            task=_task(table_of(tables, "task", where)),
            stopping=_stopping(table_of(tables, "stopping", where)),
            previous=previous,
            warm=ring.flag("warm"),
        )
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ValueError(f"{where} can't be used. {error}") from None


def _members(tables: Mapping[str, Any], where: str) -> tuple[Member, ...]:
    entries = Fields(tables, where).list_of("member", dict, "tables", MOST_MEMBERS)
    members: list[Member] = []
    seen: set[object] = set()
    for place, entry in enumerate(entries, start=1):
        fields = Fields(entry, f"[[member]] {place} in {where}")
        fields.only("name", "address", "certificate")
        member = member_from(fields, where)
        for own in ("name", "certificate"):
            if getattr(member, own) in seen:
                raise ValueError(
                    f"Two members have the same {own} in {where}, one of them {member.name}: let each have its own."
                )
            seen.add(getattr(member, own))
        members.append(member)
    refuse_alike([member.name for member in members])
    return tuple(members)


def _order(ring: Fields, numbers: Mapping[str, int]) -> tuple[int, ...]:
    names = ring.list_of("order", str, "names of members", 2 * MOST_MEMBERS)
    return tuple(_number(name, numbers, ring.where) for name in names)


def _links(ring: Fields, numbers: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    if ring.table.get("links") == ALL_LINKS:
        if len(numbers) * (len(numbers) - 1) // 2 > MOST_LINKS:
            raise ValueError(f"{len(numbers)} members have too many links among all of them: plan with fewer links.")
        return tuple(combinations(range(len(numbers)), 2))
    links: list[tuple[int, int]] = []
    for pair in ring.list_of("links", list, "pairs of names", MOST_LINKS):
        if len(pair) != 2 or not all(isinstance(name, str) for name in pair):
            raise ring.refusal("links", "use a list of pairs of names")
        first, second = sorted(_number(name, numbers, ring.where) for name in pair)
        links.append((first, second))
    return tuple(links)


def _number(name: str, numbers: Mapping[str, int], where: str) -> int:
    if name not in numbers:
        raise ValueError(f"{where} names {in_short(name)}, which is not a member: the members are {_listed(numbers)}.")
    return numbers[name]


def _links_in_words(plan: RingPlan, names: Sequence[str]) -> str | list[list[str]]:
    pairs = sorted({(min(pair), max(pair)) for pair in plan.links})
    if len(pairs) == plan.agents * (plan.agents - 1) // 2:
        return ALL_LINKS
    return [[names[first], names[second]] for first, second in pairs]


def _task_table(task: Task) -> dict[str, Any]:
    table: dict[str, Any] = {"kind": task.kind}
    if task.regression is not None:
        return {**table, "missing": task.missing, "regression": _regression_table(task.regression)}
    if task.kind == CUSTOM:
        table["dim"] = int(task.dim)
    table |= {
        "intercept": bool(task.intercept),
        "standardise": bool(task.standardise),
        "ridge": float(task.ridge),
        "missing": task.missing,
        "features": [column_table(column) for column in task.features],
    }
    if task.promise is not None:
        one = task.promise
        numbers = {"epsilon": float(one.epsilon), "delta": float(one.delta)}
        table["promise"] = {**numbers, "low": [*map(float, one.low)], "high": [*map(float, one.high)]}
    return table | ({} if task.target is None else {"target": column_table(task.target)})


def _task(fields: Fields) -> Task:
    kind = fields.text("kind")
    if kind == REGRESSION:
        fields.only("kind", "missing", "regression")
        missing = cast(Missing, fields.text("missing"))
        return Task(kind, missing=missing, regression=_regression(fields.inner("regression")))
    fields.only("kind", "dim", "intercept", "standardise", "ridge", "missing", "features", "target", "promise")
    if ("dim" in fields.table) != (kind == CUSTOM):
        raise ValueError(f"{fields.where} must have dim where the kind is custom, and only there: plan the ring again.")
    features = columns_from(fields, "features")
    target: Column | None = column_from(fields.inner("target")) if "target" in fields.table else None
    refuse_same_names((*features, *(() if target is None else (target,))), fields.where)
    return Task(
        kind,
        features,
        target,
        fields.flag("intercept"),
        fields.flag("standardise"),
        fields.number("ridge"),
        cast(Missing, fields.text("missing")),
        fields.whole("dim", 1, MOST_DIM) if kind == CUSTOM else 0,
        _promise(fields.inner("promise")) if "promise" in fields.table else None,
    )


def _regression_table(regression: Regression) -> dict[str, Any]:
    """All that was planned: the columns as tables of their own, a long formula in lines, the rest as it is."""
    plain = {field.name: getattr(regression, field.name) for field in fields_of(regression) if field.name != "columns"}
    plain["formula"] = fill(
        " ".join(regression.formula.split()), LONGEST_FORMULA_LINE, break_long_words=False, break_on_hyphens=False
    )
    return {**plain, "columns": [agreed_table(column) for column in regression.columns]}


def _regression(fields: Fields) -> Regression:
    options = options_of(Regression)
    fields.only(*options)
    readers = {
        bool: fields.flag,
        int: lambda name: fields.whole(name, 0, MOST_OF_A_REGRESSION),
        float: fields.number,
    }
    values: dict[str, Any] = {
        name: readers.get(kind, fields.text)(name) for name, kind in options.items() if name != "columns"
    }
    values["formula"] = " ".join(values["formula"].split())
    entries = fields.list_of("columns", dict, "tables of columns", MOST_REGRESSED)
    columns = tuple(agreed_from(Fields(entry, f"columns of {fields.where}")) for entry in entries)
    refuse_same_names(columns, fields.where)
    return Regression(**values, columns=columns)


def _promise(fields: Fields) -> Promise:
    fields.only("epsilon", "delta", "low", "high")
    low, high = (tuple(map(float, fields.numbers(end))) for end in ("low", "high"))
    return Promise(fields.number("epsilon"), fields.number("delta"), low, high)


def _stopping_table(stopping: Stopping) -> dict[str, Any]:
    tolerance = {} if stopping.tolerance is None else {"tolerance": float(stopping.tolerance)}
    return {**tolerance, "hops": int(stopping.hops), "questions": int(stopping.questions)}


def _stopping(fields: Fields) -> Stopping:
    """Without a tolerance the ring never stops by itself."""
    fields.only("tolerance", "hops", "questions")
    tolerance = fields.number("tolerance") if "tolerance" in fields.table else None
    return Stopping(tolerance, fields.whole("hops", 1, MOST_HOPS), fields.whole("questions", 1, MOST_HOPS))


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(list(names)[:20]) + (" and others" if len(names) > 20 else "")
