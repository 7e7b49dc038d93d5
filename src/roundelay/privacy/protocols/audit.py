"""The audit of other protocols: every attack on what each site's messages make known, held against the truth where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from roundelay.kernels import Matrix, Vector
from roundelay.privacy.protocols.attacks import GOOD_ENOUGH, Learned, SiteAttack
from roundelay.privacy.protocols.known import Known, sums_at
from roundelay.privacy.protocols.recorded import RecordedMessages, several
from roundelay.registry import registered
from roundelay.shown.notebook import View
from roundelay.shown.show import Shown
from roundelay.shown.table import table_of

if TYPE_CHECKING:
    import pandas as pd

# (what, sites done, sites)
Report = Callable[[str, int, int], None]
# A leverage above 1 by more than rounding.
ABOVE = 1e-6


@dataclass(frozen=True)
class Membership:
    """Whether a record is among a site's rows, as far as the messages say: yes, no, or undecided, and why."""

    verdict: str
    why: str


@dataclass(frozen=True, eq=False)
class SiteAudit:
    """What was learned of one site: by attack, and of each record that was asked for.

    `right` counts the single rows that are claimed and true, `wrong` those that are claimed and not; None without the truth. `totals_error` is the
    relative error of X'X and X'y.
    """

    site: str
    rows: int
    learned: Mapping[str, Learned]
    left_out: Mapping[str, str]
    members: tuple[Membership, ...] = ()
    right: int | None = None
    wrong: int | None = None
    totals_error: float | None = None

    @property
    def single(self) -> Matrix:
        """The single rows that the attacks vouch for, each once."""
        return single_rows(self.learned)

    @property
    def exact_totals(self) -> bool:
        """Whether X'X and X'y are known."""
        found = self.learned.get("totals")
        return found is not None and found.settled


@dataclass(frozen=True, eq=False)
class ProtocolAudit(Shown):
    """What whoever sees a protocol's messages learns of each site."""

    protocol: str
    seen_by: str
    source: str
    sites: tuple[SiteAudit, ...]
    origin: Mapping[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> pd.DataFrame:
        """A line a site."""
        import pandas as pd

        lines = []
        for one in self.sites:
            counts = next((found.counts for found in one.learned.values() if found.counts is not None), None)
            line: dict[str, object] = {
                "site": one.site,
                "rows": one.rows,
                "exact totals": "yes" if one.exact_totals else "no",
                "single rows": len(one.single),
                "counts known": "–" if counts is None else f"{counts.exact[0]} of {len(counts.kinds)}",
            }
            if one.right is not None:
                line |= {"of these right": one.right}
            if one.totals_error is not None:
                line |= {"error of totals": one.totals_error}
            if one.members:
                line |= {"records": ", ".join(member.verdict for member in one.members)}
            lines.append(line)
        return pd.DataFrame(lines)

    def made(self) -> dict[str, Any]:
        """What it was made of."""
        return dict(self.origin)

    def view(self) -> View:
        """In words, and a line a site."""
        return View(str(self), (table_of(self.table, "protocol", digits=2),))

    def __repr__(self) -> str:
        return f"ProtocolAudit({self.protocol}: {len(self.sites)} sites)"

    def __str__(self) -> str:
        lines = [f"What {self.seen_by} learned of each site by {self.protocol}:"]
        for one in self.sites:
            lines.append(f"- {one.site}:")
            lines += [f"  - {found.words}" for found in one.learned.values()]
            lines += [f"  - Not by {name}: {why}." for name, why in one.left_out.items()]
            if one.right is not None:
                lines.append(f"  - Held against the truth: {one.right} single rows right, {one.wrong} wrong.")
            lines += [
                f"  - Record {place}: {member.verdict}; {member.why}." for place, member in enumerate(one.members, 1)
            ]
        return "\n".join(lines)


def audit_protocol(
    recorded: RecordedMessages,
    site: str | None = None,
    records: ArrayLike | None = None,
    truth: Mapping[str, ArrayLike] | None = None,
    report: Report | None = None,
) -> ProtocolAudit:
    """What whoever sees these messages knows of each site, or of one: totals, single rows, tables of counts, membership.

    The attacks are given the messages and nothing else. `records` are records of which it is asked whether they are among a site's rows: a line each, the columns but
    for the constant, then the outcome. `truth` has all records of a site by its name; what was found is held against it.
    """
    wanted = recorded.sites if site is None else (site,)
    asked = None if records is None else np.atleast_2d(np.asarray(records, dtype=np.float64))
    found = []
    for done, name in enumerate(wanted):
        if report is not None:
            report("sites", done, len(wanted))
        rows = None if truth is None or name not in truth else np.atleast_2d(np.asarray(truth[name], dtype=np.float64))
        found.append(_audit_of_site(recorded.protocol.known(recorded, name), asked, rows))
        if report is not None:
            report("sites", done + 1, len(wanted))
    kind = recorded.protocol
    return ProtocolAudit(kind.title, kind.seen_by, kind.source, tuple(found), {"protocol": repr(kind)})


def _audit_of_site(known: Known, records: Matrix | None, truth: Matrix | None) -> SiteAudit:
    _check_known(known)
    learned: dict[str, Learned] = {}
    left_out: dict[str, str] = {}
    for name, attack in registered(SiteAttack).items():
        try:
            learned[name] = attack(known)
        except ValueError as error:
            left_out[name] = str(error)
    width = 1 if known.products is not None else known.dim
    for table in (records, truth):
        if table is not None and (table.shape[1] != width or not np.isfinite(table).all()):
            raise ValueError(
                f"A record of {known.site} has {width} finite numbers: the columns but for the constant, then the outcome."
            )
    members = () if records is None else tuple(membership(known, learned, record) for record in records)
    right = wrong = totals_error = None
    if truth is not None:
        if len(truth) != known.rows:
            raise ValueError(
                f"{known.site} says that it has {known.rows} rows, and the truth has {len(truth)}: give all of its rows."
            )
        right, wrong = held_against(single_rows(learned), truth)
        if "totals" in learned:
            totals_error = _totals_error(learned["totals"], truth)
    return SiteAudit(known.site, known.rows, learned, left_out, members, right, wrong, totals_error)


def _check_known(known: Known) -> None:
    """Refuse messages that no rows with a constant 1 in front can have sent."""
    for one in known.sums:
        if one.information is None:
            continue
        size = float(np.abs(one.information).max())
        if np.abs(one.information - one.information.T).max() > 1e-8 * max(size, 1e-300):
            raise ValueError(f"An information matrix of {known.site} is not symmetric: look at how it was recorded.")
        if not one.point.any() or known.family == "gaussian":
            first = one.information[0, 0] * (1.0 if known.family == "gaussian" else 4.0)
            if abs(first - known.rows) > 1e-6 * known.rows:
                raise ValueError(
                    f"{known.site} says that it has {known.rows} rows, but its first column is not the constant 1: it adds up to {first:g}. "
                    "Name the constant first."
                )


def single_rows(learned: Mapping[str, Learned]) -> Matrix:
    """The rows that attacks vouch for, those of the table of counts and of who is alone where the rows themselves are not known."""
    for name in ("rows", "hidden column"):
        found = learned.get(name)
        if found is not None and found.settled and found.rows is not None:
            return found.rows
    parts = [one.rows for one in learned.values() if one.settled and one.rows is not None and len(one.rows)]
    if not parts:
        return np.zeros((0, 0))
    return np.unique(np.vstack(parts).round(7), axis=0)


def held_against(claimed: Matrix, truth: Matrix) -> tuple[int, int]:
    """How many claimed rows are rows of the site, each counted once, and how many are not."""
    if not len(claimed):
        return 0, 0
    apart = np.where(truth.std(axis=0) > 0.0, truth.std(axis=0), np.maximum(np.abs(truth).max(axis=0), 1.0))
    off = np.abs((claimed[:, None, :] - truth[None, :, :]) / apart).max(axis=2)
    near = off < 10.0 * GOOD_ENOUGH
    first, second = scipy.optimize.linear_sum_assignment(~near)
    right = int(near[first, second].sum())
    return right, len(claimed) - right


def _totals_error(found: Learned, truth: Matrix) -> float:
    assert found.totals is not None
    X, y = np.column_stack([np.ones(len(truth)), truth[:, :-1]]), truth[:, -1]
    true = np.column_stack([X.T @ X, X.T @ y])
    said = np.column_stack([found.totals.XtX, found.totals.Xty])
    return float(np.linalg.norm(said - true) / np.linalg.norm(true))


# ---------------------------------------------------------------- is this record among the rows?


def membership(known: Known, learned: Mapping[str, Learned], record: Vector) -> Membership:
    """Whether a record is among the rows, by whatever was learned; undecided where nothing says so for sure.

    Where all rows are known it is looked up. A table of counts says it where the least is above, or the most is 0. And a record has no room among the
    rows where its part alone exceeds a sum: I(β) − w·xx' must have no negative eigenvalue, which is that the leverage w·x'I⁻¹x is at most 1. That excludes,
    and never includes.
    """
    for name in ("rows", "hidden column"):
        found = learned.get(name)
        if found is not None and found.settled and found.rows is not None:
            there = _among(record[: found.rows.shape[1]], found.rows)
            return Membership("yes" if there else "no", f"all its {known.rows} rows are known")
    counts = next((one.counts for one in learned.values() if one.counts is not None), None)
    if counts is not None:
        place = np.flatnonzero((counts.kinds == record[:-1]).all(axis=1))
        outcome = int(record[-1]) if record[-1] in (0.0, 1.0) and counts.least.shape[1] == 3 else None
        if not len(place):
            return Membership("no", "its columns have other values than 0 and 1")
        if outcome is not None:
            least, most = counts.least[place[0], 1 + outcome], counts.most[place[0], 1 + outcome]
            words = (
                f"there are {least:g} to {most:g} rows such as this"
                if least < most
                else f"there are {least:g} rows such as this"
            )
            if least > 0 or most == 0:
                return Membership("yes" if least > 0 else "no", words)
    alone = learned.get("who is alone")
    if alone is not None and alone.rows is not None and _among(record, alone.rows):
        return Membership("yes", "it is the record of one who is alone at a value")
    if _has_no_room(known, learned, record):
        return Membership("no", "it would make more than the whole of a sum")
    return Membership("undecided", "nothing that was sent says so for sure")


def _among(record: Vector, rows: Matrix) -> bool:
    apart = np.where(rows.std(axis=0) > 0.0, rows.std(axis=0), np.maximum(np.abs(rows).max(axis=0), 1.0))
    return bool((np.abs((rows - record) / apart).max(axis=1) < 10.0 * GOOD_ENOUGH).any())


def _has_no_room(known: Known, learned: Mapping[str, Learned], record: Vector) -> bool:
    if known.products is not None:
        return False
    x = np.append(1.0, record[:-1])
    for one in known.sums:
        if one.information is not None:
            _, own, _ = sums_at(known.family, x[None], record[-1:], one.point)
            if _exceeds(own.real, one.information):
                return True
    totals = learned["totals"].totals if "totals" in learned else None
    joint = None if totals is None else totals.joint
    own = np.append(x, record[-1])
    return joint is not None and _exceeds(np.outer(own, own), joint)


def _exceeds(part: Matrix, whole: Matrix) -> bool:
    """Whether whole − part has a negative eigenvalue, in units of the whole's own columns."""
    size = np.sqrt(np.maximum(np.diag(whole), 1e-300))
    return bool(np.linalg.eigvalsh((whole - part) / np.outer(size, size))[0] < -ABOVE)


def columns_of_records(recorded: RecordedMessages) -> Sequence[str]:
    """What a file of records must have: the columns but for the constant, and the outcome, where there is one."""
    return recorded.columns[1:] if "column" in recorded.protocol.values else (*recorded.columns[1:], "outcome")


def said_of(columns: Sequence[str]) -> str:
    """Columns in a sentence."""
    return several([repr(name) for name in columns])
