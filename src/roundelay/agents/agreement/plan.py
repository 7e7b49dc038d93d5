"""What the sites have agreed on: who takes part, in which order, and what is fitted how."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from roundelay.algorithms.sealed.optimisers import Looking
from roundelay.algorithms.sealed.sealed_laps import WIDE_AREA, Choice, SealedLaps, Smoothness, check_suits, choose
from roundelay.algorithms.sealed.shared_noise import MOST_EPSILON, SharedNoise, gaussian_delta
from roundelay.algorithms.token_method import TokenMethod, has_shares, vectors_of
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.networks import Network
from roundelay.problems import Regulariser
from roundelay.problems.row_problem import RowProblem, problem_named
from roundelay.registry import registered
from roundelay.regression.columns import Column as Column, column_of as column_of, columns_in as columns_in
from roundelay.regression.regression import Regression
from roundelay.regression.study import Study
from roundelay.shown.notebook import View
from roundelay.shown.show import Shown
from roundelay.shown.table import Table

Missing = Literal["refuse", "drop"]
# The kinds of a fit whose objective is the sites' own, and of one with a formula; the others are those of the register.
CUSTOM, REGRESSION = "custom", "regression"


# With fewer sites Σ s s' over the slopes s of all, which add up to 0, has few unknowns left for whoever knows one of them.
LEAST_CLUSTERS = 6
# What the questions of a fit tell.
FIT_TELLS = "for each model that is tried, how well it fits all rows, and how that changes with the model"
# A record may be given away with the chance δ: beyond this that is no promise.
LARGEST_DELTA = 1e-3
LARGEST_BOUND = 1e100


@dataclass(frozen=True)
class Promise:
    """(ε, δ)-differential privacy of every record, where neighbouring means one record more or less.

    `low` and `high` are public bounds of the features and, unless it is a label, of the target: cells beyond them are moved to
    them. They stand in for the statistics of all rows, which are sums without noise and so are not formed.
    """

    epsilon: float
    delta: float
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        if not finite_number("epsilon", self.epsilon, above=0.0) <= MOST_EPSILON:
            raise ValueError(f"epsilon is {self.epsilon:g}, with which next to nothing is promised: use one near 1.")
        if not finite_number("delta", self.delta, above=0.0) <= LARGEST_DELTA:
            raise ValueError(
                f"delta is {self.delta:g}: with that chance a record may be given away whole, so use far less than one over the number "
                "of rows, such as 1e-6."
            )
        if len(self.low) != len(self.high):
            raise ValueError("Some bounds have no other end: give each column a lowest and a highest value.")
        for low, high in zip(self.low, self.high, strict=True):
            if max(abs(low), abs(high)) > LARGEST_BOUND:
                raise ValueError(f"The bounds {low:g} and {high:g} bound nothing: use numbers below {LARGEST_BOUND:g}.")
            if not finite_number("A lower bound", low) < finite_number("An upper bound", high):
                raise ValueError(
                    f"The bounds {low:g} and {high:g} have nothing between them: give the lower one first."
                )


@dataclass(frozen=True)
class Task:
    """What is fitted.

    `kind` is the word of a problem, such as "least_squares" or "logistic", or "custom" for an objective of the sites'
    own, which then has `dim` unknowns and no columns, or "regression", of which `regression` says all but what is `missing`. `standardise` centres and scales every feature by statistics of all rows of all sites.
    With `intercept` the model has a constant. `ridge` is λ in (1/n)·Σ loss + λ/2 ‖coefficients‖² over all n rows of
    all sites, in standardised units. `missing` says what a row with an empty cell means: "refuse" the file, or "drop"
    the row. With a `promise` features are scaled by their bounds to [−1, 1] instead, and the intercept is a column of ones.
    """

    kind: str
    features: tuple[Column, ...] = ()
    target: Column | None = None
    intercept: bool = True
    standardise: bool = True
    ridge: float = 0.0
    missing: Missing = "refuse"
    dim: int = 0
    promise: Promise | None = None
    regression: Regression | None = None

    def __post_init__(self) -> None:
        check_kind(self.kind)
        if (self.regression is not None) != (self.kind == REGRESSION):
            raise ValueError("A formula makes a fit of the kind regression, and no other: plan the ring again.")
        if self.promise is not None and self.kind == CUSTOM:
            raise ValueError(
                "An objective of the sites' own has no records that could be clipped: no ε can be promised for it."
            )
        if self.missing not in ("refuse", "drop"):
            raise ValueError(f'missing is {self.missing!r}: use "refuse" or "drop".')
        finite_number("ridge", self.ridge, least=0.0)
        if self.regression is not None:
            if self.features or self.target is not None or self.ridge or self.promise is not None:
                raise ValueError(
                    "A regression has its columns and its ridge by itself, and promises no ε: plan it by its formula alone, or give a --task."
                )
            object.__setattr__(self, "dim", self.regression.dim)
            return
        if self.kind == CUSTOM:
            whole_number("dim", self.dim, least=1)
            return
        if self.target is None or not self.features:
            raise ValueError("A fit to data needs a target and at least one feature: name them.")
        names = [column.name for column in (*self.features, self.target)]
        for name in names:
            if not name or names.count(name) > 1:
                raise ValueError(f"The column {name!r} has no name, or is there twice: name every column once.")
        object.__setattr__(self, "dim", len(self.features) + self.has_constant)
        if self.promise is not None:
            self._check_promise(self.promise)

    def _check_promise(self, promise: Promise) -> None:
        if len(promise.low) != len(self.bounded):
            raise ValueError(
                f"There are bounds of {len(promise.low)} columns, but {len(self.bounded)} need them: give each of "
                f"{', '.join(column.name for column in self.bounded)} its lowest and highest value."
            )
        if self.ridge:
            raise ValueError(
                "A ridge is reckoned by the number of rows, which nobody is told under a promise of ε: leave it out; what noise could "
                "have made is not believed anyway."
            )

    @property
    def problem(self) -> type[RowProblem]:
        """What is fitted to rows."""
        return problem_named(self.kind)

    @property
    def has_rows(self) -> bool:
        """Whether it is the fit of one of the problems to rows."""
        return self.kind not in (CUSTOM, REGRESSION)

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns that leave a site's file."""
        if self.regression is not None:
            return self.regression.columns
        return () if self.target is None else (*self.features, self.target)

    @property
    def explained(self) -> tuple[tuple[Column, ...], Column | None]:
        """The columns that explain, and the one that is explained: of a response of several columns the first."""
        if self.regression is None:
            return self.features, self.target
        names = self.regression.terms.response_names
        target = next((column for column in self.columns if column.name in names), None)
        return tuple(column for column in self.columns if column != target), target

    @property
    def fits(self) -> str:
        """What kind of function is fitted, for whoever compares two fits: of a regression its family, too."""
        return self.kind if self.regression is None else f"{self.kind} {self.regression.family}"

    @property
    def told(self) -> tuple[str, ...]:
        """What each sum of a regression tells everybody, in words, in the order in which it is told."""
        if self.regression is None:
            return ()
        study, folds = Study(self.regression), self.regression.folds
        tells = [one.tells for one in study.sums]
        by_folds = (
            [f"the same of the rows outside each of {folds} folds, and how well it fits those inside"] if folds else []
        )
        return tuple(dict.fromkeys([*tells[: study.before], FIT_TELLS, *by_folds, *tells[study.before :], "the model"]))

    @property
    def is_quadratic(self) -> bool:
        """Whether the loss is a sum of squares."""
        if self.regression is not None:
            return self.regression.is_quadratic
        return self.has_rows and self.problem.is_quadratic

    @property
    def has_constant(self) -> bool:
        """Whether the intercept is one of the unknowns, the last."""
        return self.has_rows and self.intercept and not (self.problem.centres and self.promise is None)

    @property
    def bounded(self) -> tuple[Column, ...]:
        """The columns that need bounds under a promise: all that are no labels."""
        labels = self.target is None or self.problem.needs_labels
        return self.features if labels else (*self.features, self.target)  # type: ignore[arg-type]

    @property
    def in_words(self) -> str:
        """What is fitted, for people."""
        if self.kind == CUSTOM:
            return f"an objective of the sites' own, with {self.dim} unknowns"
        if self.regression is not None:
            one = self.regression
            details = [
                *([f"ridge {one.ridge:g}"] if one.ridge else []),
                *([f"lasso {one.lasso:g}"] if one.lasso else []),
                *([f"as much of it as {one.folds} folds of the rows say"] if one.folds else []),
                *([f"standard errors {one.errors}"] if one.errors != "model" else []),
                *([f"the rows described by {one.by}"] if one.by else ["the rows described"] if one.table_one else []),
                *(["with a look at how well it fits"] if one.diagnostics else []),
                *(["and at whether the sites differ"] if one.heterogeneity else []),
                "rows with empty cells dropped" if self.missing == "drop" else "empty cells refused",
            ]
            return f"{one.in_words}; {', '.join(details)}"
        details = [
            "with an intercept" if self.intercept else "without an intercept",
            self._units_in_words,
            *([f"ridge {self.ridge:g}"] if self.ridge else []),
            "rows with empty cells dropped" if self.missing == "drop" else "empty cells refused",
        ]
        features = ", ".join(map(str, self.features))
        return f"{self.problem.model} of {self.target} from {features}; {', '.join(details)}"

    @property
    def _units_in_words(self) -> str:
        if self.promise is None:
            return "features standardised" if self.standardise else "features as they are"
        ends = zip(self.bounded, self.promise.low, self.promise.high, strict=True)
        bounds = ", ".join(f"{column} from {low:g} to {high:g}" for column, low, high in ends)
        return f"columns cut to public bounds and scaled by them ({bounds})"


@dataclass(frozen=True)
class Stopping:
    """When the ring stops: where every site is content within `tolerance` (None: never by itself), or after `hops`.

    In a ring of sealed laps: where the mean gradient is within `tolerance`, or after so many `questions`.
    """

    tolerance: float | None = 1e-9
    hops: int = 10_000_000
    questions: int = 200

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            finite_number("tolerance", self.tolerance, above=0.0)
        whole_number("hops", self.hops, least=1)
        whole_number("questions", self.questions, least=1)


@dataclass(frozen=True)
class Member:
    """A site: its name, its certificate (PEM), and where it can be dialled ("" where it can't)."""

    name: str
    certificate: str
    address: str = ""


@dataclass(frozen=True, eq=False)
class RingPlan(Shown):
    """One epoch of a run: what the ring file says.

    `run` is 32 hexadecimal digits. `epoch` counts the changes of the membership from 0; messages of another epoch are
    not taken. `members` are the sites, numbered from 0. `order` is the lap: the members in the order in which the
    token meets them, some of them again where there is no cycle through all. `links` are the pairs that can reach each
    other, at least the steps of `order`. `algorithm` is sealed laps, or a token method of roundelay. `previous` is the digest of the
    ring file of the epoch before. With `warm` the sites start from the model of an earlier run, which each of them has.
    """

    run: str
    epoch: int
    members: tuple[Member, ...]
    order: tuple[int, ...]
    links: tuple[tuple[int, int], ...]
    algorithm: Any
    task: Task
    stopping: Stopping = Stopping()
    previous: str = ""
    warm: bool = False

    def __post_init__(self) -> None:
        if len(self.run) != 32 or set(self.run) - set("0123456789abcdef"):
            raise ValueError(f"The run id is {self.run!r}: it must be 32 hexadecimal digits.")
        whole_number("epoch", self.epoch, least=0)
        if len(self.members) < 2:
            raise ValueError("A ring needs at least two members.")
        names = [member.name for member in self.members]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"Two members are called {name!r}: let each site have a name of its own.")
        if set(self.order) != set(range(len(self.members))):
            raise ValueError("The order of the ring does not meet every member: plan it again.")
        linked = {frozenset(pair) for pair in self.links}
        for sender, receiver in zip(self.order, (*self.order[1:], self.order[0]), strict=True):
            if frozenset((sender, receiver)) not in linked:
                raise ValueError(
                    f"The lap goes from {names[sender]} to {names[receiver]}, which have no link: plan it again."
                )
        _ = self.network, self.choice
        self._check_promise()
        self._check_regression()
        if self.choice is None and (self.epoch or self.warm) and not has_shares(self.method):
            raise ValueError(
                f"{getattr(self.algorithm, 'name', self.algorithm)} has no shares that could be summed anew, as a change of the "
                "members or a warm start needs: use a method of the ADMM family."
            )

    def _check_promise(self) -> None:
        """A promise of ε must be kept by what is planned, by this release's own reckoning; and nothing is told beside it."""
        promise, noise = self.task.promise, self.noise
        if promise is None or noise is None:
            if promise is not None or noise is not None:
                raise ValueError(
                    "A promise of ε and noise in the sums belong together: use sealed laps, and plan the ring again."
                )
            return
        if self.stopping.questions <= len(noise.laps):
            raise ValueError(
                f"The fit takes {len(noise.laps) + 1} questions under a promise of ε, but {self.stopping.questions} are allowed: use more "
                "--questions."
            )
        if self.epoch or self.warm:
            raise ValueError(
                "A promise of ε is for one run with the members that it began with, from a model that tells nothing: what was told "
                "before counts as well. Plan a new run, without --warm."
            )
        if gaussian_delta(noise.multiplier, promise.epsilon) + noise.discreteness(promise.epsilon) > promise.delta:
            raise ValueError(
                f"The noise that is planned does not keep ε = {promise.epsilon:g} at δ = {promise.delta:g}: plan the ring again."
            )

    def _check_regression(self) -> None:
        """A regression is fitted by exact sums, in whatever units, with a penalty of its own."""
        if self.task.regression is None:
            return
        if self.choice is None or self.noise is not None or not self.algorithm.wide:
            raise ValueError(
                "A regression is fitted by sealed laps whose sums are exact, and by nothing else: use --algorithm SealedLaps without "
                "--epsilon, or in a program SealedLaps(wide=True)."
            )
        if not self.algorithm.regulariser.is_zero:
            raise ValueError("A regression says by itself how its coefficients are shrunk: use --ridge and --lasso.")
        if self.warm:
            raise ValueError(
                "A regression starts from what is known of all rows, not from an earlier model: leave --warm out."
            )
        if self.task.regression.errors == "site" and self.agents < LEAST_CLUSTERS:
            raise ValueError(
                f"Errors between sites are made of each site's slope times itself: of fewer than {LEAST_CLUSTERS} sites the slopes could nearly be "
                "worked out, and the errors would be rough. Plan with other --errors, or with more sites."
            )
        if self.task.regression.folds and self.epoch:
            raise ValueError(
                "The strength of a penalty was being chosen by the rows of all members: with others it is chosen anew. Plan a new run."
            )

    @cached_property
    def noise(self) -> SharedNoise | None:
        """The noise that all members add together; None where there is none."""
        if not isinstance(self.algorithm, SealedLaps) or not self.algorithm.noise_multiplier:
            return None
        if not self.task.has_rows:
            raise ValueError(
                f"A fit of the kind {self.task.kind} has no records that could be clipped: no noise promises anything."
            )
        return self.algorithm.noise_for(self._known, self.agents, self.task.problem.most_curvature)

    def __repr__(self) -> str:
        return f"RingPlan(epoch {self.epoch} of run {self.run[:8]}…, {len(self.members)} members)"

    def view(self) -> View:
        """What is fitted, by whom, and on which way."""
        names, following = [member.name for member in self.members], [*self.order[1:], self.order[0]]
        rows = tuple(
            (names[one], self.members[one].address or "–", names[other])
            for one, other in zip(self.order, following, strict=True)
        )
        table = Table("ring", "", ("site", "address", "hands on to"), rows, words=3)
        words = f"Epoch {self.epoch} of run {self.run}, by {getattr(self.algorithm, 'name', self.algorithm)}."
        return View(f"{words}\n{self.task.in_words}", (table,))

    @property
    def agents(self) -> int:
        """N."""
        return len(self.members)

    @property
    def dim(self) -> int:
        """p."""
        return self.task.dim

    @cached_property
    def run_bytes(self) -> bytes:
        """The run id as it travels."""
        return bytes.fromhex(self.run)

    @cached_property
    def network(self) -> Network:
        """Who may speak to whom."""
        cycle = np.array(self.order) if len(self.order) == self.agents else None
        return Network(self.agents, np.array(self.links, np.int64).reshape(-1, 2), planted_cycle=cycle)

    @cached_property
    def choice(self) -> Choice | None:
        """By which optimiser sealed laps ask, and why; None where a token goes round."""
        if not isinstance(self.algorithm, SealedLaps):
            _ = self.method  # refuses what is not a token method, now
            return None
        if self.task.kind != CUSTOM:
            check_suits(self.algorithm.by, self._known)
        if self.task.regression is None:
            return self.algorithm.chosen(self._known, WIDE_AREA)
        found = (
            choose(self._known, self.regulariser, WIDE_AREA)
            if self.algorithm.is_open
            else self.algorithm.chosen(self._known)
        )
        return found._replace(optimiser=Looking(Study(self.task.regression).optimiser(found.optimiser)))

    @property
    def regulariser(self) -> Regulariser:
        """What is added to the sum of all sites' functions, in sealed laps; the constants of a regression are spared."""
        regression = self.task.regression
        own: Regulariser = self.algorithm.regulariser
        return own if regression is None else Study(regression).regulariser(self.agents)

    @property
    def _known(self) -> Smoothness:
        jumps = (
            self.task.has_rows and self.task.problem.jumps
        )  # one row crosses, and the difference of two Hessians is that row's
        return Smoothness(self.dim, self.task.is_quadratic, self.task.kind != CUSTOM and not jumps, True)

    @cached_property
    def method(self) -> TokenMethod:
        """The parts of the algorithm, where a token goes round."""
        parts = getattr(self.algorithm, "parts", None)
        method: Any = parts() if parts is not None and not isinstance(self.algorithm, type) else None
        if getattr(method, "walk", None) is None or method.tokens != 1:
            raise ValueError(
                f"{self.algorithm!r} is neither sealed laps nor a method with one token: use for instance SealedLaps()."
            )
        defence = getattr(method, "defence", None)
        if defence is not None and defence.wire is not None:
            raise ValueError(
                f"The links of a ring are encrypted already: leave out {type(defence).__name__}, which is for simulations."
            )
        if getattr(method.walk, "is_counted", False):
            raise ValueError(
                f"No site knows how many steps a token has made on {type(method.walk).__name__} since somebody worked on it: use MetropolisWalk() or Cycle()."
            )
        for name in ("alpha", "gamma", "mu", "L"):
            if getattr(self.algorithm, name, 0.0) is None:
                raise ValueError(
                    f"No site knows all data, from which {name} could follow: give {name} to the algorithm."
                )
        return method

    @property
    def vectors(self) -> int:
        """How many vectors the token carries."""
        return 1 if self.choice is not None else vectors_of(self.method)

    @cached_property
    def on_cycle(self) -> bool:
        """Whether the token goes round the lap, not on a random walk."""
        return self.choice is not None or self.method.walk.is_tour

    @cached_property
    def neighbours(self) -> tuple[frozenset[int], ...]:
        """Whom each member has a link with that the token may use."""
        steps = zip(self.order, (*self.order[1:], self.order[0]), strict=True)
        pairs = [*steps] if self.on_cycle else [*steps, *self.links]
        return tuple(
            frozenset(a if b == me else b for a, b in pairs if me in (a, b) and a != b) for me in range(self.agents)
        )

    def number_of(self, name: str) -> int:
        """The number of a member."""
        for number, member in enumerate(self.members):
            if member.name == name:
                return number
        raise ValueError(f"There is no member {name!r} in the ring: it has {', '.join(m.name for m in self.members)}.")


def check_kind(kind: str) -> None:
    """Refuse what is neither a problem nor custom."""
    problems = registered(RowProblem)
    if kind in problems and (why := problems[kind].not_on_rings):
        raise ValueError(f"The kind of the fit is {kind!r}, which is for the simulator alone: {why}.")
    if kind not in (known := (*(word for word in problems if not problems[word].not_on_rings), REGRESSION, CUSTOM)):
        raise ValueError(f"The kind of the fit is {kind!r}: use {', '.join(known[:-1])} or {CUSTOM}.")


def digest_of(text: bytes) -> str:
    """What a ring file is known by."""
    return hashlib.sha256(text).hexdigest()
