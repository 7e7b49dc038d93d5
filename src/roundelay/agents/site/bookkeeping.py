"""A site keeps its ledger while it takes part: what it checks before an epoch, and what it writes before its words leave."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from roundelay.agents.agreement.differencing import OwnRows, comparable, day_of, refusal
from roundelay.agents.agreement.folder import accepted_plans, identity_for, what_follows
from roundelay.agents.agreement.ledger import (
    DELTA,
    Added,
    Data,
    Entry,
    Finding,
    Ledger,
    LedgerError,
    Told,
    added_by,
    now,
    overruling,
    read_ledger,
    spent,
    write_entry,
)
from roundelay.agents.agreement.policy import OwnData, Policy, PolicyError, breaches, check_policy, refuse
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data.marks import Marked, copies, keep_marks, marking_key, rows_in
from roundelay.agents.data.objectives import Local, slopes_of
from roundelay.agents.data.regressing import RegressionFit
from roundelay.agents.protocol.journal import Journal, JournalError, epochs_with_sums
from roundelay.kernels import Vector
from roundelay.regression.singled_out import between
from roundelay.tables import in_short


class Bookkeeper:
    """The ledger of a site in one epoch, and its policy."""

    def __init__(
        self, folder: Path, signed: SignedPlan, local: Local, policy: Policy, despite_difference: bool = False
    ) -> None:
        self.folder, self.signed, self.local = folder, signed, local
        self.policy, self.despite_difference = policy, despite_difference

    @cached_property
    def marked(self) -> Marked:
        """This site's data."""
        return self.local.marked(marking_key(self.folder))

    # ------------------------------------------------------------ before anything is sent

    def check_policy(self) -> None:
        """Hold the plan against the policy once more: it may have changed since it was accepted, and now the data are known."""
        plan = self.signed.plan
        me = identity_for(self.folder, plan).name
        slope = 0.0 if plan.choice is not None else self.local.slope
        check_policy(self.folder, self.policy, plan, me, OwnData(self.marked.data.rows, slope))
        refuse(self.folder, me, self.local.breaches(self.policy, ()))

    def check_whole(self, journal: Journal) -> None:
        """Refuse a ledger that lacks a sum."""

        def passed(ledger: Ledger) -> Entry | None:
            return overruling(self.signed, self._passed(ledger, lost_sums(self.folder, ledger, journal)))

        write_entry(self.folder, passed)

    def check(self, lost: bool = False) -> None:
        """Refuse an epoch whose sums would tell too much together with the old ones, and one that began with other data.

        And one with noise of which there is nothing in the folder any more, `lost`: its noise would be drawn anew, and could be averaged away.
        """
        ledger = read_ledger(self.folder)
        own = ledger.of(self.signed.plan.run, self.signed.plan.epoch)
        if own is not None and lost and self.signed.plan.noise is not None:
            raise LedgerError(
                "This site has added to sums with noise in this epoch already, and what its folder kept of the run is gone: other noise on the same "
                "sums would cost ε again, which the ledger would not count. Plan a new run."
            )
        if own is not None and own.data.digest != self.local.digest:  # also where the journal is not there any more
            raise LedgerError(
                "This site has added to sums of this epoch already, with other data, and a mask is never used for two answers: give the "
                "agent the data with which it began, or let the members drop this site and let it join anew."
            )
        self._passed_now(ledger)

    def _passed_now(self, ledger: Ledger) -> tuple[Finding, ...]:
        """What the operator lets pass of what follows from the sums of this epoch; nothing where they have begun."""
        plan = self.signed.plan
        if ledger.of(plan.run, plan.epoch) is not None:
            return ()
        over = over_budget(self.policy, self.signed, ledger, self.marked.data)
        if over:
            raise LedgerError(over)
        return self._passed(ledger, self.follows(ledger))

    def follows(self, ledger: Ledger) -> tuple[Finding, ...]:
        """What the sums of this epoch tell together with the old ones, by this site's own rows."""
        own = OwnRows(
            lambda parts, columns: rows_in(self.folder, self.marked, parts, columns),
            self._copies,
            self.policy.least_rows,
        )
        found = what_follows(self.folder, ledger, self.signed, self.marked.data, own)
        return (*found, *self._between_limits(ledger))

    def _copies(self, times: Sequence[Data], columns: frozenset[str]) -> list[list[int]] | None:
        found = copies(self.folder, self.marked, times, columns)
        return None if found is None else found.tolist()

    def _between_limits(self, ledger: Ledger) -> Iterator[Finding]:
        """Regressions of the same rows whose limits differ by few of them."""
        plan, local = self.signed.plan, self.local
        if not isinstance(local, RegressionFit):
            return
        before = {(one.run, one.epoch) for one in ledger.before(plan.run, plan.epoch)}
        plans = [one.plan for one in accepted_plans(self.folder) if (one.plan.run, one.plan.epoch) in before]
        earlier = [one.task.regression for one in plans if one.task.regression is not None]
        for limits in between(local.rows, self.policy.least_rows, earlier):
            yield Finding(
                "own rows",
                limits,
                f"An earlier regression of this site and this one set limits ({in_short(limits)}) between which it has fewer than "
                f"{self.policy.least_rows} rows: the difference of the sums tells every member what these rows gave.",
                tuple(sorted(str(column) for column in local.study.regression.columns)),
                True,
            )

    def _passed(self, ledger: Ledger, found: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """What is let pass now; what is not, and was not before, is refused."""
        refused = ledger.not_overruled(self.signed.digest, found)
        if refused and not self.despite_difference:
            raise refusal(refused, "the agent stops before it adds to a sum, and its state is kept")
        return refused

    # ------------------------------------------------------------ before words leave

    def before_adding(self, told: tuple[Vector, ...]) -> None:
        """Note the sums of this epoch before the first of its words leave, and refuse where all rows are nearly as many as before.

        What follows from them is looked at once more: another run of this site may have begun since.
        """
        self._enter(checked=True)
        self._check_masks(told)
        plan = self.signed.plan
        # With a token, later epochs sum the shares alone: what was told of rows is the first epoch's, and was held against others then.
        rows = self.local.all_rows(told) if plan.choice is not None or plan.epoch == 0 else None
        if rows is not None:
            fresh = Told(now(), plan.run, plan.epoch, rows)
            write_entry(self.folder, lambda ledger: fresh if self._rows_told(ledger) is None else None)
            write_entry(
                self.folder, lambda ledger: overruling(self.signed, self._passed(ledger, self._as_many(ledger, rows)))
            )
        if told:
            refuse(self.folder, identity_for(self.folder, plan).name, self.local.breaches(self.policy, told))

    def _check_masks(self, told: tuple[Vector, ...]) -> None:
        """Hold the masks of a token against the gradient once more: its units follow from sums, which any member can have made false."""
        plan = self.signed.plan
        if plan.choice is not None or not told or len(told) < len(self.local.sums):
            return
        sizes = slopes_of(self.local.problem(told))
        sizes = sizes[sizes > 0.0]
        own = OwnData(self.marked.data.rows, float(sizes.max(initial=0.0)), float(sizes.min(initial=math.inf)))
        found = breaches(self.policy, plan, plan.number_of(identity_for(self.folder, plan).name), own)
        if found:
            raise PolicyError(
                f"By the sums that all sites were told: {' '.join(found)} A site may have given false ones for that very end, so the agent "
                "stops before anything that is masked leaves: compare the numbers of rows, means and spreads with the other sites."
            )

    def note(self, told: tuple[Vector, ...]) -> None:
        """Note the sums of an epoch that is over: nothing of them leaves any more."""
        self._enter(checked=False)

    def _enter(self, checked: bool) -> None:
        plan = self.signed.plan

        def entry(ledger: Ledger) -> Entry | None:
            if ledger.of(plan.run, plan.epoch) is not None:
                return None
            passed = self._passed_now(ledger) if checked else ()
            keep_marks(self.folder, self.marked)
            return added_by(self.signed, self.marked.data, (*ledger.overruled(self.signed.digest), *passed))

        write_entry(self.folder, entry)

    def _rows_told(self, ledger: Ledger) -> int | None:
        own = ledger.of(self.signed.plan.run, self.signed.plan.epoch)
        return None if own is None else ledger.rows_told(own)

    def _as_many(self, ledger: Ledger, rows: int) -> tuple[Finding, ...]:
        """The other sums over nearly as many rows, those of runs beside this one too: the difference may be a few rows of a site."""
        own, new = ledger.of(self.signed.plan.run, self.signed.plan.epoch), added_by(self.signed, self.marked.data)
        return tuple(self._nearly(ledger, comparable(new, [one for one in ledger.added if one != own]), new, rows))

    def _nearly(self, ledger: Ledger, earlier: tuple[Added, ...], new: Added, rows: int) -> Iterator[Finding]:
        for one in earlier:
            before = ledger.rows_told(one)
            if (
                before is None
                or abs(rows - before) >= self.policy.least_rows
                or (rows == before and one.names == new.names)
            ):
                continue
            yield Finding(
                "all rows",
                f"{one.run} {one.epoch} {rows}",
                f"All sites together have {rows:,} rows, and had {before:,} in the sum of {day_of(one.time)}: the difference of the sums may "
                f"be what a few rows of one site gave, and this site's floor is {self.policy.least_rows} rows.",
            )


def over_budget(policy: Policy, signed: SignedPlan, ledger: Ledger, data: Data) -> str:
    """Why the sums of a plan would cost more, with those before, than a site allows; empty where they would not."""
    if policy.most_epsilon == math.inf:
        return ""
    if signed.plan.task.promise is None:
        return (
            "This run forms exact sums, which promise no ε, but this site allows so much and no more: plan the ring with --epsilon, or "
            "let most_epsilon in its policy be inf."
        )
    # All that this site ever added to: the same people may stand in other columns, and in another order.
    new = added_by(signed, data)
    before, after = (spent(entries) for entries in (ledger.entries, (*ledger.entries, new)))
    if after.exact:
        return (
            f"This site has added to the exact sums of {after.exact} other {'run' if after.exact == 1 else 'runs'}, after which no "
            "ε holds against whoever has seen those: let most_epsilon in its policy be inf if that is what you want."
        )
    if after.epsilon(DELTA) <= policy.most_epsilon:  # at this δ, whatever plans name: a larger one would cost nothing
        return ""
    return (
        f"With this run all sums of this site would cost ε = {after.epsilon(DELTA):.3g} at δ = "
        f"{DELTA:g}, of which {before.epsilon(DELTA):.3g} is spent; this site allows {policy.most_epsilon:g}: plan the "
        "ring with a smaller --epsilon, or allow more by most_epsilon in its policy."
    )


def lost_sums(folder: Path, ledger: Ledger, running: Journal | None = None) -> tuple[Finding, ...]:
    """The sums that a journal has and the ledger has not: its last lines were cut off, or an old copy was put back."""
    found = []
    for home in sorted((folder / "runs").glob("*")):
        try:
            mine = running is not None and running.folder == home
            epochs = running.epochs_with_sums() if running is not None and mine else epochs_with_sums(home)
        except JournalError:
            continue  # it is in use: its own agent has looked at it
        for epoch in epochs:
            if ledger.of(home.name, epoch) is None:
                sentence = (
                    f"The journal of the run {home.name} has sums of epoch {epoch} that the ledger {ledger.path} does not have: its last "
                    "lines were cut off, an old copy was put back, or the run is older than the ledger."
                )
                found.append(Finding("lost", f"{home.name} {epoch}", sentence))
    return tuple(found)
