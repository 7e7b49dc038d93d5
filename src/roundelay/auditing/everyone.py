"""The audit of all agents, side by side."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from roundelay.auditing.audit import Audit, audit, check_run
from roundelay.auditing.observing import ObserverName
from roundelay.engine import Run

if TYPE_CHECKING:
    import pandas as pd

# (agents done, agents)
Report = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class AuditOfAll:
    """One audit for each agent."""

    audits: tuple[Audit, ...]

    @property
    def table(self) -> pd.DataFrame:
        """For each quantity and attack: the median and the least error at the end over the agents, and who is known."""
        import pandas as pd

        groups: dict[tuple[str, str], list[tuple[float, float, bool]]] = {}
        for one in self.audits:
            for leak in one.leaks:
                groups.setdefault((leak.quantity, leak.attack), []).append((leak.at_end, leak.guess, leak.known))
        rows = []
        for (quantity, attack), found in groups.items():
            errors, guesses, known = (np.array(column) for column in zip(*found, strict=True))
            rows.append(
                (quantity, attack, np.median(errors), errors.min(), errors.max(), np.median(guesses), int(known.sum()))
            )
        columns = [
            "quantity", "attack", "median error", "least error", "largest error", "median error of a guess", "agents known",
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=columns)

    def __str__(self) -> str:
        table = self.table
        best = table.loc[table.groupby("quantity", sort=False)["median error"].idxmin()]
        lines = [f"What {self.audits[0].observer} learned about each of {len(self.audits)} agents, by the best attack:"]
        lines += [
            f"- {row[0]}: {row[6]} of {len(self.audits)} agents known, median error {row[2]:.1e} ({row[1]}; a guess {row[5]:.1e})."
            for row in best.itertuples(index=False)
        ]
        return "\n".join(lines)


def audit_all(
    run: Run, observer: ObserverName = "neighbours", seconds: float = 30.0, report: Report | None = None
) -> AuditOfAll:
    """An audit of every agent, each with so many `seconds`; `report` is told how many are done."""
    agents = len(check_run(run).x)
    audits: list[Audit] = []
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for one in pool.map(lambda agent: audit(run, observer, agent, seconds), range(agents)):
            audits.append(one)
            if report is not None:
                report(len(audits), agents)
    return AuditOfAll(tuple(audits))
