"""The ledger: every sum that this site ever added to, over whom, about what, on which data. It never leaves the site.

One line of JSON an entry. Each is signed by the site's own key and holds the digest of the line before, so that a line that was
changed, removed or moved is noticed. An entry is on disk before the first words of its sum leave. What the file alone can't
tell is whether its last lines were cut off; the journals of the runs can (`agents/site/bookkeeping.py`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from roundelay.agents.agreement.disk import PRIVATE, one_at_a_time, sync_folder
from roundelay.agents.agreement.identity import fingerprint, identities, is_signed_by, sign
from roundelay.agents.agreement.plan import RingPlan
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.algorithms.sealed.shared_noise import epsilon_of_gaussian
from roundelay.regression.columns import column_of

try:
    import msgspec
except ImportError:
    raise ImportError(
        "The ledger of a site needs the package msgspec: install it by pip install 'roundelay[ring]'."
    ) from None

LEDGER, LOCK = "ledger.jsonl", ".ledger.lock"
FORMAT = 1
# At which ε is told, and held against what a site allows.
DELTA = 1e-6
_SIGNATURE = re.compile(rb',"signature":"([A-Za-z0-9+/]{1,200}={0,2})"\}')


class LedgerError(ValueError):
    """The ledger is not as this site wrote it; the sentence says where, and what to do."""


# ---------------------------------------------------------------- what is written


class Data(msgspec.Struct, frozen=True):
    """The data that a sum was formed of: a digest as the journal has it, empty where nothing tells other data apart.

    `columns` has a digest of the values of each column, `marks` one of all rows and `cells` one of all their cells; none depends on the order
    of the rows. What an earlier release wrote has no `cells`.
    """

    digest: str = ""
    rows: int = 0
    columns: Mapping[str, str] = {}
    marks: str = ""
    cells: str = ""


class Finding(msgspec.Struct, frozen=True):
    """What somebody learns who puts a new sum and the old ones together, or why that can't be said, in a sentence.

    `what` is "site" where the data of the site `subject` are told: the function that is fitted (`whole`), or sums of `columns`. It is
    "sites" where those of a few sites together are, "own rows" where few rows of this site make the difference, "all rows" where few rows of any site do, "lost" where the ledger lacks a
    sum, and "word" where nothing is refused but something is to be said.
    """

    what: Literal["site", "sites", "own rows", "all rows", "lost", "word"]
    subject: str
    sentence: str
    columns: tuple[str, ...] = ()
    whole: bool = False

    @property
    def refuses(self) -> bool:
        """Whether a site does not go on by itself."""
        return self.what != "word"

    def covers(self, other: Finding) -> bool:
        """Whether who has agreed to this has agreed to the other too."""
        same = (self.what, self.subject) == (other.what, other.subject)
        return same and self.whole >= other.whole and set(self.columns) >= set(other.columns)


class Added(msgspec.Struct, frozen=True, tag="added"):
    """In this epoch of this run the site has added to sums.

    `members` pairs each name with the fingerprint of its certificate. `features` and `target` are columns as "name [unit]"; a fit of
    the sites' own objective has none. `rho` is the loss of privacy of all its sums together as zero-concentrated differential
    privacy has it; None: the sums are exact. `overruled` has what the operator was told and let pass, and `told` what each sum of a
    regression tells everybody.
    """

    time: datetime
    run: str
    epoch: int
    ring: str
    members: tuple[tuple[str, str], ...]
    kind: str
    features: tuple[str, ...]
    target: str
    fit: str
    how: str
    questions: int
    data: Data
    rho: float | None = None
    overruled: tuple[str, ...] = ()
    told: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The sites that were summed."""
        return frozenset(name for name, _ in self.members)

    @property
    def columns(self) -> frozenset[str]:
        """All columns of the fit."""
        return frozenset(one for one in (*self.features, self.target) if one)

    def in_units_of(self, other: Added) -> Added:
        """The same with its columns in the units of another sum: whoever knows a sum can convert it."""
        headings = {column_of(heading).name: heading for heading in other.columns}

        def there(heading: str) -> str:
            return headings.get(column_of(heading).name, heading) if heading else ""

        if all(there(heading) == heading for heading in self.columns):
            return self
        columns = {there(heading): digest for heading, digest in self.data.columns.items()}
        data = msgspec.structs.replace(self.data, columns=columns)
        return msgspec.structs.replace(
            self, features=tuple(map(there, self.features)), target=there(self.target), data=data
        )


class Told(msgspec.Struct, frozen=True, tag="told"):
    """In this epoch of this run the sites were told how many rows they have together."""

    time: datetime
    run: str
    epoch: int
    rows: int


class Overruled(msgspec.Struct, frozen=True, tag="overruled"):
    """The operator has read these findings about a ring file, and goes on nevertheless."""

    time: datetime
    run: str
    epoch: int
    ring: str
    findings: tuple[Finding, ...]


Entry: TypeAlias = Added | Told | Overruled


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line without its signature; `torn` is how many bytes of a line that was never finished stood in its place."""

    format: int
    number: int
    before: str
    key: str
    torn: int
    entry: Entry


def now() -> datetime:
    """The time of an entry."""
    return datetime.now(UTC).replace(microsecond=0)


def added_by(signed: SignedPlan, data: Data, overruled: Iterable[Finding] = ()) -> Added:
    """The entry for the sums of an epoch."""
    plan = signed.plan
    members = tuple((member.name, _digits_of(member.certificate)) for member in plan.members)
    features, target = plan.task.explained
    return Added(
        now(), plan.run, plan.epoch, signed.digest, members, plan.task.fits, tuple(map(str, features)), "" if target is None else str(target),
        plan.task.in_words, _how(plan), 0 if plan.choice is None else plan.stopping.questions, data,
        None if plan.noise is None else plan.noise.rho,
        tuple(dict.fromkeys(one.sentence for one in overruled)), plan.task.told,
    )  # fmt: skip


def overruling(signed: SignedPlan, findings: tuple[Finding, ...]) -> Overruled | None:
    """The entry for what the operator has let pass of a ring file; none where there was nothing."""
    plan = signed.plan
    return Overruled(now(), plan.run, plan.epoch, signed.digest, findings) if findings else None


def _how(plan: RingPlan) -> str:
    return "sealed laps" if plan.choice is not None else str(getattr(plan.algorithm, "name", plan.algorithm))


# ---------------------------------------------------------------- the file


@dataclass(frozen=True, eq=False)
class Ledger:
    """What the file says, all of it checked; `torn` is how many bytes of an unfinished line stand at its end."""

    path: Path
    entries: tuple[Entry, ...] = ()
    last: str = ""
    size: int = 0
    torn: int = 0

    @property
    def added(self) -> tuple[Added, ...]:
        """The sums, in order."""
        return tuple(entry for entry in self.entries if isinstance(entry, Added))

    def of(self, run: str, epoch: int) -> Added | None:
        """The sums of an epoch; None where this site has added to none."""
        return next((one for one in self.added if (one.run, one.epoch) == (run, epoch)), None)

    def before(self, run: str, epoch: int) -> tuple[Added, ...]:
        """The sums before those of an epoch, all where there are none of it yet."""
        own = self.of(run, epoch)
        return self.added if own is None else self.added[: self.added.index(own)]

    def rows_told(self, one: Added) -> int | None:
        """How many rows the members of a sum have together; None where that was not told."""
        told = [e.rows for e in self.entries if isinstance(e, Told) and (e.run, e.epoch) == (one.run, one.epoch)]
        return told[-1] if told else None

    def overruled(self, ring: str) -> tuple[Finding, ...]:
        """What the operator let pass of a ring file; a sum that is lost is lost for all of them."""
        passed = [(entry.ring, one) for entry in self.entries if isinstance(entry, Overruled) for one in entry.findings]
        return tuple(one for other, one in passed if other == ring or one.what == "lost")

    def not_overruled(self, ring: str, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Those of the findings for which a site does not go on."""
        passed = self.overruled(ring)
        return tuple(one for one in findings if one.refuses and not any(other.covers(one) for other in passed))


def read_ledger(folder: Path) -> Ledger:
    """The ledger of a site, empty where it has none yet; one that was tampered with is refused in words."""
    path = Path(folder) / LEDGER
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return Ledger(path)
    keys = {_digits_of(one.certificate): one.certificate for one in identities(folder)}
    entries: list[Entry] = []
    last, place = "", 0
    while place < len(text):
        end = text.find(b"\n", place)
        line = text[place:] if end < 0 else text[place:end]
        try:
            entries.append(_read_line(line, len(entries), last, keys))
        except LedgerError as error:
            if end < 0:  # the process or the power died while it was written, before anything had left
                return Ledger(path, tuple(entries), last, place, len(text) - place)
            raise LedgerError(
                f"Line {len(entries) + 1} of the ledger {path} {error}. It can no longer be said what was told to whom: restore the "
                "file from a copy, and find out who changed it."
            ) from None
        last = hashlib.sha256(line).hexdigest()
        place = len(text) if end < 0 else end + 1
    return Ledger(path, tuple(entries), last, len(text))


def _read_line(line: bytes, number: int, last: str, keys: Mapping[str, str]) -> Entry:
    """The entry in a line; the refusals are what is said of the line."""
    place = line.rfind(b',"signature":"')
    tail = _SIGNATURE.fullmatch(line[place:]) if place >= 0 else None
    try:
        signature = base64.b64decode(tail.group(1), validate=True) if tail else b""
        body = line[:place] + b"}"
        read = msgspec.json.decode(body, type=_Line)
    except (binascii.Error, msgspec.DecodeError, ValueError):
        raise LedgerError("can't be read, so it was changed") from None
    if read.format != FORMAT:
        raise LedgerError(f"is of format {read.format}, which another release of roundelay has written")
    if read.key not in keys:
        raise LedgerError("is signed by a key that is not one of this site's")
    if (
        tail is None
        or base64.b64encode(signature) != tail.group(1)
        or not is_signed_by(keys[read.key], body, signature)
    ):
        raise LedgerError("does not fit its signature: it was changed after it was written")
    if (read.number, read.before) != (number, last):
        raise LedgerError(
            f"was written as line {read.number + 1} after another line than the one before it: lines were removed, or moved"
        )
    return read.entry


def write_entry(folder: Path, make: Callable[[Ledger], Entry | None]) -> None:
    """Have an entry at the end of the ledger, on disk when this returns.

    `make` says what to write after what is there, or None for nothing, or refuses; meanwhile no other process writes.
    """
    folder = Path(folder)
    with one_at_a_time(folder / LOCK):
        ledger = read_ledger(folder)
        entry = make(ledger)
        if entry is None:
            return
        signer = identities(folder)[-1]
        line = _Line(FORMAT, len(ledger.entries), ledger.last, _digits_of(signer.certificate), ledger.torn, entry)
        body = msgspec.json.encode(line)
        _append(ledger, body[:-1] + b',"signature":"' + base64.b64encode(sign(signer, body)) + b'"}\n')


def _append(ledger: Ledger, text: bytes) -> None:
    """Write a line behind the whole ones; what there is of one that was never finished is cut off first."""
    try:
        with os.fdopen(os.open(ledger.path, os.O_RDWR | os.O_CREAT, PRIVATE), "r+b") as file:
            file.truncate(ledger.size)
            file.seek(max(ledger.size - 1, 0))
            ended = ledger.size == 0 or file.read(1) == b"\n"
            file.seek(ledger.size)
            file.write(text if ended else b"\n" + text)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(ledger.path.parent)
    except OSError as error:
        raise LedgerError(
            f"The ledger {ledger.path} can't be written ({error.strerror}), so nothing was sent: make room, then try again."
        ) from None


def _digits_of(certificate: str) -> str:
    return fingerprint(certificate).replace(" ", "")


# ---------------------------------------------------------------- differential privacy


class Spent(NamedTuple):
    """What all sums have cost of some data: ρ of those with noise together, and how many were exact, which have no bound."""

    rho: float
    exact: int

    @property
    def loss(self) -> float:
        """ρ of everything together."""
        return math.inf if self.exact else self.rho

    def epsilon(self, delta: float) -> float:
        """ε at δ of the sums with noise together: Gaussian mechanisms compose to one."""
        return epsilon_of_gaussian(1.0 / math.sqrt(2.0 * self.rho), delta) if self.rho else 0.0


def spent(entries: Iterable[Entry], data_digest: str | None = None) -> Spent:
    """What the sums on these data have cost so far, over all runs and epochs; on all data where no digest is given."""
    mine = [one for one in entries if isinstance(one, Added) and data_digest in (None, one.data.digest)]
    return Spent(math.fsum(one.rho for one in mine if one.rho is not None), sum(one.rho is None for one in mine))
