"""The audit: every attack on what an observer saw of an agent, held against the truth; for one agent, or for all side by side."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from roundelay.algorithms.token_method import TokenADMM
from roundelay.engine import Ensemble, Run
from roundelay.kernels import Vector
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.masks import PairSecrets, SeededPairs
from roundelay.privacy import Public
from roundelay.privacy.attacks import LogisticRecords, Recovered, least_squares, parametric_first_order
from roundelay.privacy.attacks.lap_sums import RecoveredAnswers
from roundelay.privacy.attacks.setting import Attack, forms_sums, parts_of
from roundelay.privacy.audit.laps import attacks_on, guessed_answers, leaks_of_laps, proven, true_answers
from roundelay.privacy.audit.leaks import Leak, Truth, leaks_of, truth_of
from roundelay.registry import registered
from roundelay.shown.notebook import View
from roundelay.shown.show import Shown
from roundelay.shown.table import table_of
from roundelay.transcripts import Observer, Seen, Transcript, Visits, parts_of_laps
from roundelay.transcripts.lap_parts import answer_in
from roundelay.transcripts.observers import members_of, observer_of, words_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# With more records an agent the equations hardly tell them apart.
MOST_RECORDS = 5
# (agents done, agents)
Report = Callable[[int, int], None]
ObserverName = Literal["eavesdropper", "neighbours", "colluders"]


@dataclass(frozen=True, eq=False)
class Audit(Shown):
    """What an observer learned about one agent.

    `leaks` has a line for each quantity and attack; `left_out` says for the other attacks why they were not run.
    `estimates` are what the attacks found, by name, and `truth` what they are held against, None where it is not known.
    Where the agents form sums, `visits` counts laps, and `proven` says what no attack can exceed. `origin` has the parameters and the
    seed of the run, where it was one.
    """

    agent: int
    observer: str
    visits: int
    leaks: tuple[Leak, ...]
    left_out: Mapping[str, str]
    estimates: Mapping[str, Recovered | RecoveredAnswers] = field(default_factory=dict)
    truth: Truth | None = None
    hops: tuple[int, ...] = ()
    proven: str = ""
    origin: Mapping[str, Any] = field(default_factory=dict)

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
        from roundelay.privacy.audit.figure import audit_figure

        return audit_figure(self, coordinate)

    def __repr__(self) -> str:
        return f"Audit({self.observer} on agent {self.agent}: {self.visits} visits, {len(self.estimates)} attacks)"

    def made(self) -> dict[str, Any]:
        """Parameters and seed of the run."""
        return dict(self.origin)

    def view(self) -> View:
        """What was learned in words, and every line but its own."""
        return View(str(self), (table_of(self.table.drop(columns="verdict"), "audit", digits=3),) if self.leaks else ())

    def __str__(self) -> str:
        if not self.leaks:
            return "\n".join(f"{name}: {why}." for name, why in self.left_out.items())
        what = "laps of sums" if self.proven else "visits of the token"
        lines = [f"What {self.observer} learned about agent {self.agent} from {self.visits} {what}:"]
        lines += [f"- {leak.words} ({leak.attack})." for leak in self.worst]
        return "\n".join([*lines, self.proven] if self.proven else lines)


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

    One that is made of all other agents is given the agent's share at the start as well, which follows from theirs. Of sealed laps, and of the one pass, the words around the agent are attacked. An observer that is made of agents is
    given the masks that these share with each other and with the agent, and their own answers; the truth is the agent's
    answers, and the guess is what the sum over the honest agents says of each of them.
    """
    agents, dim = check_run(run).x.shape
    public = Public(run.algorithm, agents, dim)
    # Asked before the transcript, which a gossip run can never have.
    method = None if forms_sums(public) else family_of(public)
    if run.transcript is None:
        raise ValueError("The run has no transcript to audit: simulate it with transcript=True.")
    watcher = observer_of(observer, _checked_agent(agent, agents))
    if method is None:
        found = _audit_of_laps(run.transcript, public, watcher, agent, seconds, run, SeededPairs(run.seed))
        return replace(found, origin=run.made())
    records = _records_of(run)
    seen = run.transcript.seen_by(watcher)
    share = _share_that_follows(run, run.transcript, watcher, agent, method)
    found = _audit(seen, public, words_of(watcher), agent, seconds, records, run, method, share)
    return replace(found, origin=run.made())


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
    watcher = observer_of(observer, _checked_agent(agent, public.agents))
    if forms_sums(public):
        return _audit_of_laps(transcript, public, watcher, agent, seconds, None, None)
    method = family_of(public)
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
    method = parts_of(public)
    if method is None:
        name = getattr(public.algorithm, "name", type(public.algorithm).__name__)
        raise ValueError(
            f"{name} can't be audited: the attacks are those on incremental ADMM, with any start, noise and walk, and on sums."
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
    share: Vector | None = None,
) -> Audit:
    finite_number("seconds", seconds, above=0.0)
    visits = replace(seen.visits_of(agent, method.tokens), share=share)
    if not len(visits):
        why = f"{observer} saw nothing of agent {agent} that could be compared: no token that it received and then sent on"
        return Audit(agent, observer, 0, (), {"no attack": why})
    truth = truth_of(run, method, visits) if run is not None else None
    began = time.monotonic()
    leaks: list[Leak] = []
    left_out: dict[str, str] = {}
    estimates: dict[str, Recovered] = {}
    attacks: dict[str, Attack] = {
        **registered(Attack),
        **_attack_on(records),
        "the paper's least squares": _paper_attack(seen, agent),
    }
    for name, attack in attacks.items():
        if time.monotonic() - began > seconds:
            left_out[name] = f"the {seconds:g} seconds were over before it could begin"
            continue
        try:
            found = attack(visits, public)
        except ValueError as error:
            left_out[name] = str(error)
            continue
        estimates[name] = found
        leaks += leaks_of(agent, observer, name, found, truth, None if run is None else run.optimum)
    hops = tuple(int(hop) for hop in visits.hop)
    return Audit(agent, observer, len(visits), tuple(leaks), left_out, estimates, truth, hops)


def _audit_of_laps(
    transcript: Transcript,
    public: Public,
    observer: Observer,
    agent: int,
    seconds: float,
    run: Run | None,
    secrets: PairSecrets | None,
) -> Audit:
    """The same where the agents form sums: the words around the agent, against its answers."""
    finite_number("seconds", seconds, above=0.0)
    parts, name = parts_of_laps(transcript, observer, agent, secrets), words_of(observer)
    found, left_out = attacks_on(parts, public, seconds)
    if not found:
        why = f"{name} saw nothing of agent {agent} that could be compared: no words that it received and then sent on"
        return Audit(agent, name, len(parts), (), left_out or {"no attack": why})
    truth = None
    if run is not None and secrets is not None:
        truth = true_answers(run, transcript, agent, secrets)
    quadratic = run is not None and run.problem is not None and run.problem.is_quadratic
    guess = guessed_answers(parts, transcript)
    leaks = tuple(
        leak
        for attack, one in found.items()
        for leak in leaks_of_laps(parts, name, attack, one, truth, guess, quadratic, public.dim)
    )
    masked = any(lap.masked for lap in transcript.laps)
    sentence = proven(name, agent, parts.honest, masked)
    return Audit(agent, name, len(parts), leaks, left_out, found, proven=sentence)


class _Shape(NamedTuple):
    """All that a start asks of a problem which uses no data."""

    agents: int
    dim: int


def _share_that_follows(
    run: Run, transcript: Transcript, observer: Observer, agent: int, method: TokenADMM
) -> Vector | None:
    """The agent's share before the first hop, where the observer is made of all others: N times the first token, less their own."""
    agents = len(run.x)
    others = sorted(members_of(observer, transcript))
    if len(others) != agents - 1:
        return None
    if transcript.sealed is not None:
        total, secrets = transcript.sealed.total(), SeededPairs(run.seed)
        own = [answer_in(transcript.sealed, other, secrets, 0) for other in others]
        return None if total is None else total - np.sum(own, axis=0)
    shape: Any = _Shape(*run.x.shape)
    start = method.start_states(run.seed, shape if run.problem is None else run.problem)
    first = np.zeros(shape.dim) if start.token is None else start.token
    return agents * first - start.share[others].sum(axis=0)


def _attack_on(records: LogisticRecords | None) -> dict[str, Attack]:
    """That on logistic records, where it is public how many there are, and where they are few."""
    if records is None or records.samples > MOST_RECORDS:
        return {}
    return {"logistic records": lambda visits, public: parametric_first_order(visits, public, records)}


def _paper_attack(seen: Seen, agent: int) -> Attack:
    """The paper's least-squares system, solved to convergence for every coordinate."""

    def attack(visits: Visits, public: Public, /) -> Recovered:
        solved = [least_squares(seen, public, coordinate, None) for coordinate in range(public.dim)]
        x, y = (np.column_stack([one.of(agent)[place] for one in solved]) for place in (0, 1))
        residual = max(one.residual for one in solved)
        return Recovered(x, y, residual, all(one.converged for one in solved), solved[0].words)

    return attack


def _records_of(run: Run) -> LogisticRecords | None:
    """How many rows of a logistic loss every agent has, and the ridge: the auditor knows, and on a real ring all do."""
    rows = None if run.problem is None else run.problem.logistic_rows
    if rows is None:
        return None
    counts = np.diff(rows.starts)
    return LogisticRecords(int(counts[0]), rows.ridge) if (counts == counts[0]).all() else None


def _checked_agent(agent: int, agents: int) -> int:
    if not 0 <= whole_number("agent", agent) < agents:
        raise ValueError(f"There is no agent {agent}: the agents are numbered from 0 to {agents - 1}.")
    return agent


@dataclass(frozen=True, eq=False)
class AuditOfAll(Shown):
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

    def __repr__(self) -> str:
        return f"AuditOfAll({len(self.audits)} agents)"

    def made(self) -> dict[str, Any]:
        """Parameters and seed of the run."""
        return self.audits[0].made() if self.audits else {}

    def view(self) -> View:
        """What was learned in words, and each quantity by each attack."""
        return View(str(self), (table_of(self.table, "audit of all", digits=3),))

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
