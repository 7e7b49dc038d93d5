"""The journal: what an agent has taken and what it has to send, on disk before anybody is told.

SQLite in write-ahead mode with every commit synced. Vectors above a few hundred kilobytes stand in files beside it, two
in turn, so that the one which the database names is never the one that is being written.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.agents.agreement.disk import make_private, sync_folder
from roundelay.agents.protocol.asking import Answered
from roundelay.agents.protocol.baton import Phase, Reason
from roundelay.agents.protocol.holder import Holder
from roundelay.agents.protocol.migrations import Migration, steps_between
from roundelay.agents.protocol.wire import checksum_of
from roundelay.algorithms.sealed.questions import LOOKS, Place, asked_in

# Whoever changes it writes a step into migrations.py, so that a run which is going on survives.
FORMAT = 5
# Larger records stand in files: a database page takes longer than the disk.
BESIDE = 200_000
# The write-ahead log starts over after so many pages. A log that does not grow is synced in half the time.
LOG_PAGES = 256
# Where states are that large, only every sixteenth is written; those between follow from what was received since.
SETTLE_EVERY = 16
INBOX_SLOTS = SETTLE_EVERY + 2

# No piece of a hand-over that is kept is longer, nor a receipt.
LONGEST_SHOWN = 2**20
_ABOUT_IT = "create table if not exists about (key text primary key, value text not null) without rowid"
_TABLES = """
create table if not exists standing (
    only integer primary key check (only = 0), epoch integer not null, k integer not null, taken integer not null,
    receiver integer not null, sent_k integer not null, outgoing blob, earlier blob, state blob,
    slot integer not null, checksum integer not null);
create table if not exists inbox (
    epoch integer not null, k integer not null, sender integer not null, frame blob, slot integer not null,
    checksum integer not null, primary key (epoch, k)) without rowid;
create table if not exists passages (
    epoch integer not null, k integer not null, sent_k integer not null, phase integer not null, sent_phase integer not null, hop integer not null,
    sender integer not null, receiver integer not null, taken integer not null, received blob, sent blob,
    primary key (epoch, k)) without rowid;
create table if not exists questions (
    epoch integer not null, number integer not null, kind integer not null, told blob, total blob, beside integer not null,
    checksum integer not null, primary key (epoch, number)) without rowid;
create table if not exists receipts (epoch integer not null, peer integer not null, receipt blob not null, primary key (epoch, peer));
create table if not exists cards (epoch integer primary key, cards blob not null, checksum integer not null);
"""


class JournalError(RuntimeError):
    """The journal can't be used; the sentence says why and what to do. Nothing has been acknowledged."""


class DamagedError(ValueError):
    """The journal does not hold what was written to it."""


@dataclass(frozen=True, eq=False)
class Record:
    """What the journal keeps of an agent: a few plain values and a list of vectors, all that has to outlive the process."""

    about: bytes
    vectors: tuple[NDArray[np.float64], ...]

    def pieces(self) -> list[bytes | memoryview]:
        """The bytes, in pieces, so that long vectors are not copied."""
        lengths = [len(vector) for vector in self.vectors]
        head = struct.pack(f"<QQ{len(lengths)}Q", len(self.about), len(lengths), *lengths)
        vectors = [np.ascontiguousarray(vector, "<f8").data.cast("B") for vector in self.vectors]
        return [head + self.about, *vectors]

    @staticmethod
    def read(data: bytes | memoryview) -> Record:
        """Read what `pieces` made."""
        try:
            about, count = struct.unpack_from("<QQ", data)
            begin = 16 + 8 * count
            lengths = struct.unpack_from(f"<{count}Q", data, 16) if begin <= len(data) else ()
            numbers = np.frombuffer(data[begin + about :], "<f8")
            if len(numbers) != sum(lengths):
                raise ValueError("lengths")
            parts = np.split(numbers, np.cumsum(lengths)[:-1]) if lengths else []
            vectors = tuple(np.array(part) for part in parts)
            return Record(bytes(data[begin : begin + about]), vectors)
        except (ValueError, TypeError, IndexError, OverflowError, struct.error) as error:
            raise DamagedError(f"a record can't be read ({error})") from None


# begun, visits, summed, largest jump, hop, asked, wished, ended by, reason (−1: none), whether there is an estimate, how many own vectors,
# residual;
# then the lengths of what is no number: the signatures under the end, the chain of questions, the digest of what the fit's came to, the doubt.
_ABOUT = struct.Struct("<qqqdqqqqqqqd4I")


def record_of(holder: Holder) -> Record:
    """What is held: with a token the agent's own x, y and share, in sealed laps where all stand."""
    held, me, asking = holder.held, holder.me, holder.asking
    if asking is None:
        own: tuple[NDArray[np.float64], ...] = (held.x[me], held.y[me], held.share[me])
    else:
        own = () if asking.held.place is None else tuple(asking.held.place)
    asked = (b"", b"", b"") if asking is None else (asking.held.chain, asking.held.fitted, asking.held.doubt.encode())
    texts = (held.signatures, *asked)
    about = _ABOUT.pack(
        held.begun, held.visits, held.summed, held.largest_jump, held.hop, held.asked, held.wished, held.ended_by,
        -1 if held.reason is None else held.reason, held.estimate is not None, len(own),
        float("nan") if asking is None else asking.held.residual, *map(len, texts),
    )  # fmt: skip
    estimate = () if held.estimate is None or held.final is None else (held.estimate, held.final)
    return Record(about + b"".join(texts), (*own, *estimate, *held.told))


def take_up(holder: Holder, record: Record) -> None:
    """Fill in what was held when the record was made."""
    held, asking = holder.held, holder.asking
    try:
        (
            begun,
            visits,
            summed,
            largest_jump,
            hop,
            asked,
            wished,
            ended_by,
            reason,
            has_estimate,
            count,
            residual,
            *lengths,
        ) = _ABOUT.unpack_from(record.about)
        ends = np.cumsum([_ABOUT.size, *lengths]).tolist()
        held.signatures, chain, fitted, doubt = (record.about[begin:end] for begin, end in pairwise(ends))
    except struct.error as error:
        raise DamagedError(f"a record can't be read ({error})") from None
    own, rest = record.vectors[:count], record.vectors[count:]
    if asking is None:
        held.x[holder.me], held.y[holder.me], held.share[holder.me] = own
    else:
        asking.held.place, asking.held.residual = Place(*own) if own else None, residual
        asking.held.chain, asking.held.fitted, asking.held.doubt = chain, fitted, doubt.decode()
    held.begun, held.visits, held.summed, held.largest_jump = bool(begun), visits, summed, largest_jump
    held.hop, held.asked, held.wished, held.ended_by = hop, asked, bool(wished), ended_by
    held.reason = None if reason < 0 else Reason(reason)
    held.estimate, held.final = rest[:2] if has_estimate else (None, None)
    held.told = tuple(rest[2:] if has_estimate else rest)


class Standing(NamedTuple):
    """Where an agent stands: what it took last and what it has to send.

    `k` is the last hand-over that it took in this epoch (−1: none) and `taken` its checksum. `outgoing` is the frame
    that it sent on, with the counter `sent_k`, to `receiver` (−1 where there is nothing to send), and `earlier` the one a
    lap before, where that may still be needed. `state` is its own.
    """

    epoch: int
    k: int
    taken: int
    receiver: int
    sent_k: int
    outgoing: bytes
    earlier: bytes
    state: Record | None


class Passage(NamedTuple):
    """One hand-over as this agent saw it: what it received, what it sent; the vectors where they are kept."""

    epoch: int
    k: int
    sent_k: int
    phase: int
    sent_phase: int
    hop: int
    sender: int
    receiver: int
    taken: int
    received: bytes | None
    sent: bytes | None


class Journal:
    """The journal of one agent in one run."""

    def __init__(self, folder: Path, run: str, name: str) -> None:
        self.folder = folder
        self._slot = 0
        try:
            make_private(folder)
            self._database = sqlite3.connect(
                folder / "journal.db", isolation_level=None, timeout=0.0, check_same_thread=False
            )
        except OSError as error:
            raise JournalError(f"The folder {folder} can't be used for the journal: {error.strerror}.") from None
        except sqlite3.Error as error:
            raise JournalError(f"The folder {folder} can't be used for the journal: {error}.") from None
        try:
            with self._refusals():
                self._set_up(run, name)
        except BaseException:
            self._database.close()
            raise

    def _set_up(self, run: str, name: str) -> None:
        self._database.execute("pragma journal_mode=wal")
        self._database.execute("pragma synchronous=full")
        # Held from the first write on: a second agent on the same journal would be a second state of one site.
        self._database.execute("pragma locking_mode=exclusive")
        self._database.execute(f"pragma wal_autocheckpoint={LOG_PAGES}")
        self._database.execute(_ABOUT_IT)
        steps = self._check_about(run, name)  # what is refused is left as it is
        self._database.executescript(_TABLES)
        self._grow_log()
        # The file that the database names must not be the next one to be written.
        self._slot = (self._database.execute("select slot from standing").fetchone() or (0,))[0]
        last = "select slot from inbox order by epoch desc, k desc limit 1"
        self._inbox_slot = (self._database.execute(last).fetchone() or (0,))[0]
        if steps:
            self._migrate(steps)
        self._forget_inbox()
        self._keeping = False

    def check_data(self, digest: str) -> None:
        """Refuse to go on with other data than those with which the run began; the first ones are remembered."""
        self._check_same("data", digest, "The data are not those", "start the agent with those")

    def check_start(self, digest: str) -> None:
        """Refuse to go on from another model: an answer that was on its way when the agent died would be two under one mask."""
        self._check_same("start", digest, "The model to start from is not the one", "give the agent that one by --warm")

    def _check_same(self, key: str, digest: str, what: str, do: str) -> None:
        with self._refusals():
            known = self._database.execute("select value from about where key = ?", (key,)).fetchone()
            if known is None:
                self._database.execute("insert into about values (?, ?)", (key, digest))
            elif known[0] != digest:
                raise JournalError(
                    f"{what} with which this site began the run: {do}, or plan a new run, which may start from the model of this one "
                    "(--warm)."
                )

    def close(self) -> None:
        """Let another process have it."""
        self._database.close()

    @property
    def size(self) -> int:
        """How many bytes it takes on disk."""
        return sum(path.stat().st_size for path in self.folder.iterdir() if path.is_file())

    # ------------------------------------------------------------ reading

    def standing(self) -> Standing | None:
        """Where the agent stood; None in a new journal."""
        with self._refusals():
            row = self._database.execute(
                "select epoch, k, taken, receiver, sent_k, outgoing, earlier, state, slot, checksum from standing"
            ).fetchone()
            if row is None:
                return None
            epoch, k, taken, receiver, sent_k, outgoing, earlier, state, self._slot, checksum = row
            if self._slot:
                data = memoryview((self._file("state", self._slot)).read_bytes())
                length = int.from_bytes(data[:8], "little")
                outgoing, state = bytes(data[8 : 8 + length]), data[8 + length :]
            record = Record.read(state)
            plain, pieces = (epoch, k, taken, receiver, sent_k, self._slot), [outgoing, earlier, *record.pieces()]
            if _checksum(plain, pieces) != checksum:
                raise DamagedError("the checksum of the state is wrong")
            return Standing(epoch, k, taken, receiver, sent_k, outgoing, earlier, record)

    def cards(self, epoch: int) -> bytes:
        """The keys for masks that all members have told in an epoch; empty where they have not."""
        with self._refusals():
            row = self._database.execute("select cards, checksum from cards where epoch = ?", (epoch,)).fetchone()
            if row is None:
                return b""
            if _checksum((epoch,), [row[0]]) != row[1]:
                raise DamagedError("the checksum of the keys is wrong")
            return row[0]

    def inbox(self) -> list[tuple[int, bytes]]:
        """Frames that were acknowledged after the last settled state, in order, each with its sender."""
        with self._refusals():
            rows = self._database.execute(
                "select i.epoch, i.k, i.sender, i.frame, i.slot, i.checksum from inbox i left join standing s "
                "where s.only is null or (i.epoch, i.k) > (s.epoch, s.k) order by i.epoch, i.k"
            ).fetchall()
            frames = []
            for epoch, k, sender, kept, slot, checksum in rows:
                frame = self._file("inbox", slot).read_bytes() if slot else kept
                if _checksum((epoch, k, sender, slot), [frame]) != checksum:
                    raise DamagedError("the checksum of the inbox is wrong")
                frames.append((sender, frame))
            return frames

    def passages(self, epoch: int | None = None, most: int = -1) -> list[Passage]:
        """What was handed over, in order: in all epochs or in one, the first ones where asked for."""
        with self._refusals():
            where = "" if epoch is None else f"where epoch = {int(epoch)}"
            rows = self._database.execute(
                f"select * from passages {where} order by epoch, k limit {int(most)}"
            ).fetchall()
            return [Passage(*row) for row in rows]

    def passages_after(self, epoch: int, k: int) -> Iterator[Passage]:
        """What was handed over in an epoch behind a counter, one after another."""
        with self._refusals():
            after = self._database.execute("select * from passages where epoch = ? and k > ? order by k", (epoch, k))
            for row in after:
                yield Passage(*row)

    def last_on_links(self, epoch: int, k: int) -> tuple[dict[int, int], dict[int, int]]:
        """The counters of the last hand-over from each neighbour, and to each before what was made of hand-over k."""
        with self._refusals():
            taken = "select sender, max(k) from passages where epoch = ? and sender >= 0 group by sender"
            sent = "select receiver, max(sent_k) from passages where epoch = ? and receiver >= 0 and k < ? group by receiver"
            both = self._database.execute(taken, (epoch,)), self._database.execute(sent, (epoch, k))
            return dict(both[0].fetchall()), dict(both[1].fetchall())

    def epochs_with_sums(self) -> tuple[int, ...]:
        """The epochs in which this agent added to sums or to the token."""
        with self._refusals():
            return _epochs_with_sums(self._database)

    def questions(self, epoch: int) -> list[Answered]:
        """The questions that were answered in an epoch, with the totals that are known and not too long."""
        with self._refusals():
            rows = self._database.execute(
                "select number, kind, told, total, beside, checksum from questions where epoch = ? order by number",
                (epoch,),
            ).fetchall()
            found = []
            for number, kind, told, total, beside, checksum in rows:
                if not beside and _checksum((epoch, number, kind), [told or b"", total or b""]) != checksum:
                    raise DamagedError("the checksum of a question is wrong")
                if beside and asked_in(kind) in LOOKS:  # of which the result is made
                    total = self._file(f"total-{epoch}", number).read_bytes()
                found.append(Answered(number, kind, _numbers(told), _numbers(total)))
            return found

    def totals(self, epoch: int) -> Iterator[NDArray[np.float64]]:
        """The totals of an epoch's questions, one after another, however long they are."""
        with self._refusals():
            rows = self._database.execute(
                "select number, kind, told, total, beside, checksum from questions where epoch = ? order by number",
                (epoch,),
            ).fetchall()
            for number, kind, told, total, beside, checksum in rows:
                content = self._file(f"total-{epoch}", number).read_bytes() if beside else total
                if content is None:
                    return
                if _checksum((epoch, number, kind), [told or b"", content]) != checksum:
                    raise DamagedError("the checksum of a question is wrong")
                yield np.frombuffer(content)

    # ------------------------------------------------------------ writing

    def keep_receipt(self, epoch: int, peer: int, receipt: bytes) -> None:
        """Keep what a neighbour has signed of the link, in the place of what it signed before."""
        with self._refusals():
            self._database.execute("insert or replace into receipts values (?, ?, ?)", (epoch, peer, receipt))

    def receipts(self, epoch: int) -> dict[int, bytes]:
        """What each neighbour has signed last."""
        with self._refusals():
            rows = self._database.execute("select peer, receipt from receipts where epoch = ?", (epoch,)).fetchall()
            return dict(rows)

    def keep_inbox(self, epoch: int, k: int, sender: int, frame: bytes) -> None:
        """Keep a frame until what came of it is settled, so that it can be acknowledged now."""
        with self._refusals():
            self._keeping = True
            slot, kept = 0, frame
            if len(frame) > BESIDE:
                self._inbox_slot = self._inbox_slot % INBOX_SLOTS + 1
                slot, kept = self._inbox_slot, b""
                self._write("inbox", slot, [frame])
            self._database.execute(
                "insert or replace into inbox values (?, ?, ?, ?, ?, ?)",
                (epoch, k, sender, kept, slot, _checksum((epoch, k, sender, slot), [frame])),
            )

    def settle(
        self, standing: Standing, passages: Sequence[Passage], questions: Sequence[Answered] = (), cards: bytes = b""
    ) -> None:
        """One transaction, synced: what was taken, the state that came of it, what is to be sent, what was asked, and new keys of all."""
        with self._refusals():
            asked = [self._question(standing.epoch, one) for one in questions]
            with self._transaction():
                if asked:
                    self._database.executemany("insert or replace into questions values (?, ?, ?, ?, ?, ?, ?)", asked)
                if cards:
                    keys = (standing.epoch, cards, _checksum((standing.epoch,), [cards]))
                    self._database.execute("insert or replace into cards values (?, ?, ?)", keys)
                slot = self._put(standing)
                for passage in passages:
                    # Not "or replace": to take a hand-over twice is an error, whatever the rest of the agent thinks.
                    self._database.execute(
                        "insert into passages values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        passage,
                    )
                if self._keeping:
                    self._forget_inbox()
            self._slot, self._keeping = slot, False

    # ------------------------------------------------------------ the rest

    def _put(self, standing: Standing) -> int:
        """Where the agent stands, within a transaction; the file that it stands in where it is large, else 0."""
        assert standing.state is not None
        pieces, outgoing = standing.state.pieces(), standing.outgoing
        slot = 0
        if sum(map(len, pieces)) + len(outgoing) > BESIDE:
            slot = 2 if self._slot == 1 else 1
        plain = (standing.epoch, standing.k, standing.taken, standing.receiver, standing.sent_k)
        checksum = _checksum((*plain, slot), [outgoing, standing.earlier, *pieces])
        if slot:
            self._write("state", slot, [len(outgoing).to_bytes(8, "little"), outgoing, *pieces])
            outgoing, pieces = b"", []
        self._database.execute(
            "insert or replace into standing values (0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*plain, outgoing, standing.earlier, b"".join(pieces), slot, checksum),
        )
        return slot

    def _question(self, epoch: int, one: Answered) -> tuple[int, int, int, bytes | None, bytes | None, int, int]:
        """A question as a row; a long total stands in a file beside."""
        told = None if one.told is None else one.told.tobytes()
        total = None if one.total is None else one.total.tobytes()
        checksum = _checksum((epoch, one.number, one.kind), [told or b"", total or b""])
        beside = total is not None and len(total) > BESIDE
        if beside:
            assert total is not None
            self._write(f"total-{epoch}", one.number, [total])
        return epoch, one.number, one.kind, told, None if beside else total, int(beside), checksum

    def _grow_log(self) -> None:
        """Let the log have its final length from the start."""
        with self._transaction():
            self._database.execute("create table room (space blob)")
            self._database.execute("insert into room values (zeroblob(?))", (4096 * (LOG_PAGES + 64),))
            self._database.execute("drop table room")
        self._database.execute("pragma wal_checkpoint(full)")

    def _check_about(self, run: str, name: str) -> list[Migration]:
        """Refuse a journal of another run or member, or of a format that is not known; what brings it to that of now."""
        known = dict(self._database.execute("select key, value from about").fetchall())
        for key, value in {"run": run, "member": name}.items():
            if known and known.get(key) != value:
                raise JournalError(
                    f"The journal in {self.folder} is of another {key} ({known.get(key)} instead of {value}): "
                    "give every run of every member a folder of its own."
                )
        if not known:
            about = {"format": str(FORMAT), "run": run, "member": name}
            with self._transaction():
                self._database.executemany("insert into about values (?, ?)", about.items())
            return []
        written = known.get("format", "")
        steps = steps_between(written, FORMAT)
        if written != str(FORMAT) and not steps:
            raise JournalError(
                f"The journal in {self.folder} has the format {written}, which this release does not know: it has {FORMAT}. Nothing was "
                "changed. Start the agent with the release that began the run, or have the operators drop this member and let it join anew."
            )
        return steps

    def _migrate(self, steps: Sequence[Migration]) -> None:
        """All steps or none: where they are cut short, the release before can still go on."""
        standing = self.standing()
        with self._transaction():
            for step in steps:
                for sentence in step.sql:
                    self._database.execute(sentence)
                if standing is not None and standing.state is not None:
                    changed = Record(step.about(standing.state.about, standing.outgoing), standing.state.vectors)
                    standing = standing._replace(state=changed)
            slot = self._slot if standing is None else self._put(standing)
            self._database.execute("update about set value = ? where key = 'format'", (str(FORMAT),))
        self._slot = slot

    def _forget_inbox(self) -> None:
        """What has been settled need not be kept."""
        self._database.execute("delete from inbox where (epoch, k) <= (select epoch, k from standing)")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("begin immediate")
        try:
            yield
            self._database.execute("commit")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("rollback")
            raise

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """What SQLite and the disk say, as sentences."""
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise JournalError(
                f"A hand-over would have been taken twice ({error}): the agent stops before that."
            ) from None
        except (sqlite3.DatabaseError, DamagedError, UnicodeDecodeError, FileNotFoundError) as error:
            if "full" in str(error) or "disk I/O" in str(error):
                raise JournalError(_full(self.folder, str(error))) from None
            if "locked" in str(error):
                raise JournalError(
                    f"The journal in {self.folder} is in use: another agent of this site is running. Stop one of them."
                ) from None
            raise JournalError(
                f"The journal in {self.folder} is damaged ({error}). Do not delete it: restore the folder from a copy "
                "that was made after the agent's last hand-over, or have the operators drop this member and let it join anew."
            ) from None
        except OSError as error:
            raise JournalError(_full(self.folder, error.strerror or str(error))) from None

    def _file(self, what: str, slot: int) -> Path:
        return self.folder / f"{what}-{slot}.bin"

    def _write(self, what: str, slot: int, pieces: list[bytes | memoryview]) -> None:
        path = self._file(what, slot)
        new = not path.exists()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            written = 0
            for piece in pieces:
                view = memoryview(piece)
                while len(view):
                    count = os.pwrite(descriptor, view, written)
                    view, written = view[count:], written + count
            os.ftruncate(descriptor, written)
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        if new:  # its name must outlive a crash too
            sync_folder(self.folder)


def epochs_with_sums(folder: Path) -> tuple[int, ...]:
    """The same, of a journal that nobody uses now; none where there is no journal."""
    path = folder / "journal.db"
    if not path.exists():
        return ()
    database = sqlite3.connect(path, timeout=0.0, isolation_level=None)
    try:
        return _epochs_with_sums(database)
    except sqlite3.Error as error:
        raise JournalError(f"The journal in {folder} can't be looked at now: {error}.") from None
    finally:
        database.close()


def shown(folder: Path, epoch: int) -> tuple[str, list[Passage], dict[int, bytes]]:
    """Whose journal this is, what was handed over in an epoch, and what neighbours have signed of it: of a copy, which stays as it is."""
    path = folder / "journal.db"
    if not path.exists():
        raise JournalError(f"There is no journal in {folder}: name the folder of a run, such as oslo/runs/<run id>.")
    database = sqlite3.connect(path, timeout=0.0, isolation_level=None)
    try:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_SHOWN)
        if not all(_is_plain(database, name) for name in ("about", "passages")):
            raise JournalError(f"The journal in {folder} has no hand-overs as an agent writes them.")
        about = dict(database.execute("select key, value from about").fetchall())
        rows = database.execute("select * from passages where epoch = ? order by k", (epoch,)).fetchall()
        has = _is_plain(database, "receipts")  # which older journals have not
        signed = (
            database.execute("select peer, receipt from receipts where epoch = ?", (epoch,)).fetchall() if has else []
        )
        return str(about.get("member", "")), [Passage(*row) for row in rows], dict(signed)
    except (sqlite3.Error, TypeError) as error:
        raise JournalError(f"The journal in {folder} can't be looked at: {error}.") from None
    finally:
        database.close()


def _is_plain(database: sqlite3.Connection, name: str) -> bool:
    """Whether there is such a table, all of whose rows stand in the file: a view can have rows without end, and a column may be worked out."""
    made = database.execute("select type, sql from sqlite_master where name = ?", (name,)).fetchone()
    if made is None or made[0] != "table" or made[1].split()[1].lower() == "virtual":
        return False
    return all(hidden == 0 for *_, hidden in database.execute("select * from pragma_table_xinfo(?)", (name,)))


def _epochs_with_sums(database: sqlite3.Connection) -> tuple[int, ...]:
    phases = ", ".join(str(int(phase)) for phase in (Phase.SUM, Phase.ITERATE, Phase.ASK))
    rows = database.execute(f"select distinct epoch from passages where sent_phase in ({phases}) order by epoch")
    return tuple(epoch for (epoch,) in rows.fetchall())


def _numbers(content: bytes | None) -> NDArray[np.float64] | None:
    return None if content is None else np.frombuffer(content)


def _checksum(plain: tuple[int, ...], pieces: list[bytes | memoryview]) -> int:
    """A checksum of an entry: its whole numbers and its bytes, since SQLite has none for its pages."""
    try:
        total = checksum_of(struct.pack(f"<{len(plain)}q", *plain))
        for piece in pieces:
            total = checksum_of(piece, total)
        return total
    except (struct.error, TypeError, ValueError) as error:
        raise DamagedError(f"an entry holds something else ({error})") from None


def _full(folder: Path, why: str) -> str:
    return (
        f"The journal in {folder} can't be written ({why}), so nothing was acknowledged and nothing is lost: make room, "
        "then start the agent again."
    )
