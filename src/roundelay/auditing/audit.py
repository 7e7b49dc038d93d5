"""`rl.audit`: every attack that applies to one agent, in one table."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from roundelay.algorithms.token_method import TokenADMM
from roundelay.auditing.compare import leaks_of
from roundelay.auditing.leak import Leak
from roundelay.auditing.observing import ObserverName, observer_of, words_of
from roundelay.auditing.repertoire import Attack, attacks_for
from roundelay.auditing.truth import Truth, truth_of
from roundelay.engine import Ensemble, Run
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.privacy import Public
from roundelay.privacy.attacks import LogisticRecords, Recovered, least_squares
from roundelay.transcripts import Observer, Seen, Transcript, Visits

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Audit:
    """What an observer learned about one agent.

    `leaks` has a line for each quantity and attack; `left_out` says for the other attacks why they were not run.
    `estimates` are what the attacks found, by name, and `truth` what they are held against, None where it is not known.
    """

    agent: int
    observer: str
    visits: int
    leaks: tuple[Leak, ...]
    left_out: Mapping[str, str]
    estimates: Mapping[str, Recovered] = field(default_factory=dict)
    truth: Truth | None = None
    hops: tuple[int, ...] = ()

    @property
    def worst(self) -> tuple[Leak, ...]:
        """For each quantity the attack that knows it best, the best-known quantity first."""
        best: dict[str, Leak] = {}
        for leak in self.leaks:
            if leak.quantity not in best or leak.at_end < best[leak.quantity].at_end:
                best[leak.quantity] = leak
        return tuple(sorted(best.values(), key=lambda leak: (np.isnan(leak.at_end), leak.at_end)))

    @property
    def table(self) -> pd.DataFrame:
        """All lines."""
        import pandas as pd

        return pd.DataFrame(
            {
                "quantity": [leak.quantity for leak in self.leaks],
                "attack": [leak.attack for leak in self.leaks],
                "error over the run": [leak.over_run for leak in self.leaks],
                "error at the end": [leak.at_end for leak in self.leaks],
                "error of a guess": [leak.guess for leak in self.leaks],
                "residual": [leak.residual for leak in self.leaks],
                "converged": [leak.converged for leak in self.leaks],
                "verdict": [leak.words for leak in self.leaks],
            }
        )

    def figure(self, coordinate: int = 0) -> Figure:
        """Estimate and truth of x and y over the hops."""
        from roundelay.auditing.figure import audit_figure

        return audit_figure(self, coordinate)

    def __str__(self) -> str:
        if not self.leaks:
            return "\n".join(f"{name}: {why}." for name, why in self.left_out.items())
        lines = [f"What {self.observer} learned about agent {self.agent} from {self.visits} visits of the token:"]
        lines += [f"- {leak.words} ({leak.attack})." for leak in self.worst]
        return "\n".join(lines)


def audit(
    run: Run,
    observer: ObserverName | Observer = "neighbours",
    agent: int = 0,
    seconds: float = 30.0,
) -> Audit:
    """What an observer learned about an agent from the tokens of a run, by every attack that applies.

    `run` must have its transcript (`simulate(..., transcript=True)`). `observer` is "eavesdropper", "neighbours" (of the
    agent), "colluders" (all others), or an observer such as `Link(3, 4)`. The attacks are given what the observer saw
    and what is public; the truth comes from the run's own problem and is only held against their results. Where the run
    came from a file, which has no data in it, only the states at the end are known. Attacks are begun within `seconds`.
    """
    agents, dim = check_run(run).x.shape
    public = Public(run.algorithm, agents, dim)
    # Asked before the transcript, which a gossip run can never have.
    method = family_of(public)
    if run.transcript is None:
        raise ValueError("The run has no transcript to audit: simulate it with transcript=True.")
    watcher = observer_of(observer, _checked_agent(agent, agents))
    records = _records_of(run)
    seen = run.transcript.seen_by(watcher)
    return _audit(seen, public, words_of(watcher), agent, seconds, records, run, method)


def audit_transcript(
    transcript: Transcript,
    public: Public,
    observer: ObserverName | Observer = "neighbours",
    agent: int = 0,
    seconds: float = 30.0,
    records: int | None = None,
    ridge: float = 0.0,
) -> Audit:
    """The same for a transcript that came from elsewhere, without the truth: estimates, and their own residuals.

    `records` is how many rows every agent has, where that is public: with up to 5 the attack on logistic records is
    tried, too, with this `ridge` in every f_i.
    """
    if not isinstance(transcript, Transcript):
        raise ValueError(
            f"{transcript!r} is not a transcript: use run.transcript, or what roundelay.load_transcript reads from a file."
        )
    if not isinstance(public, Public):
        raise ValueError(
            f"{public!r} does not say what is public: use roundelay.Public(algorithm, agents, dim), or roundelay.load_public."
        )
    method = family_of(public)
    watcher = observer_of(observer, _checked_agent(agent, public.agents))
    rows = None if records is None else LogisticRecords(records, ridge)
    return _audit(transcript.seen_by(watcher), public, words_of(watcher), agent, seconds, rows, None, method)


def check_run(run: Any) -> Run:
    """A run, and one only."""
    if isinstance(run, Ensemble):
        raise ValueError(f"This is an ensemble of {len(run)} runs: audit one of them, for instance ensemble[0].")
    if not isinstance(run, Run):
        raise ValueError(f"{run!r} is not a run: use what roundelay.simulate(..., transcript=True) returns.")
    return run


def family_of(public: Public) -> TokenADMM:
    """The method, if it is of the family that the attacks are made for."""
    parts = getattr(public.algorithm, "parts", None)
    method: Any = parts() if callable(parts) else None
    if not isinstance(method, TokenADMM):
        name = getattr(public.algorithm, "name", type(public.algorithm).__name__)
        raise ValueError(
            f"{name} can't be audited: the attacks are those on incremental ADMM, with any start, noise and walk."
        )
    return method


def _audit(
    seen: Seen,
    public: Public,
    observer: str,
    agent: int,
    seconds: float,
    records: LogisticRecords | None,
    run: Run | None,
    method: TokenADMM,
) -> Audit:
    finite_number("seconds", seconds, above=0.0)
    visits = seen.visits_of(agent, method.tokens)
    if not len(visits):
        why = f"{observer} saw nothing of agent {agent} that could be compared: no token that it received and then sent on"
        return Audit(agent, observer, 0, (), {"no attack": why})
    truth = truth_of(run, method, visits) if run is not None else None
    began = time.monotonic()
    leaks: list[Leak] = []
    left_out: dict[str, str] = {}
    estimates: dict[str, Recovered] = {}
    attacks = (*attacks_for(records), _paper_attack(seen, agent))
    for attack in attacks:
        if time.monotonic() - began > seconds:
            left_out[attack.name] = f"the {seconds:g} seconds were over before it could begin"
            continue
        try:
            found = attack.run(visits, public)
        except ValueError as error:
            left_out[attack.name] = str(error)
            continue
        estimates[attack.name] = found
        leaks += leaks_of(agent, observer, attack.name, found, truth, None if run is None else run.optimum)
    hops = tuple(int(hop) for hop in visits.hop)
    return Audit(agent, observer, len(visits), tuple(leaks), left_out, estimates, truth, hops)


def _paper_attack(seen: Seen, agent: int) -> Attack:
    """The paper's least-squares system, solved to convergence for every coordinate."""

    def run(visits: Visits, public: Public) -> Recovered:
        solved = [least_squares(seen, public, coordinate, None) for coordinate in range(public.dim)]
        x, y = (np.column_stack([one.of(agent)[place] for one in solved]) for place in (0, 1))
        residual = max(one.residual for one in solved)
        return Recovered(x, y, residual, all(one.converged for one in solved), solved[0].words)

    return Attack("the paper's least squares", run)


def _records_of(run: Run) -> LogisticRecords | None:
    """How many rows every agent of a logistic problem has, and the ridge: the auditor knows, and on a real ring all do."""
    from roundelay.problems import Logistic

    if not isinstance(run.problem, Logistic):
        return None
    counts = np.diff(run.problem.rows.starts)
    return LogisticRecords(int(counts[0]), run.problem.ridge) if (counts == counts[0]).all() else None


def _checked_agent(agent: int, agents: int) -> int:
    if not 0 <= whole_number("agent", agent) < agents:
        raise ValueError(f"There is no agent {agent}: the agents are numbered from 0 to {agents - 1}.")
    return agent
