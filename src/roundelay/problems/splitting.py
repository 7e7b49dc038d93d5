"""Rows of one table divided over agents: evenly, by size, by label, or by Dirichlet's law. Seeded, and said in what comes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Integers
from roundelay.kernels.checks import finite_number, whole_number
from roundelay.kernels.random import SEEDS
from roundelay.registry import register

Draws = np.random.Generator
# So often a division is drawn in which somebody has nothing.
MOST_DRAWS = 1000
# More labels than this, each of hardly any row, are none.
FEW = 20


class Split(Protocol):
    """A way to divide rows over agents. One that is for so many agents, and no others, says so by `agents`."""

    @property
    def words(self) -> str:
        """How it is called in what it is said of."""

    def divided(self, labels: Integers, agents: int, draws: Draws) -> list[Integers]:
        """The rows of each agent, by their numbers; `labels` has the number of each row's label, from 0."""


@register(Split, "even")
@dataclass(frozen=True)
class Evenly:
    """Rows at random, the same number for each agent, or one more."""

    words: ClassVar[str] = "evenly"

    def divided(self, labels: Integers, agents: int, draws: Draws) -> list[Integers]:
        """The rows of each agent."""
        return np.array_split(draws.permutation(len(labels)), agents)


@register(Split, "sizes")
@dataclass(frozen=True)
class BySize:
    """Rows at random, in proportion to these sizes: exactly so many, where they add up to all rows."""

    sizes: tuple[float, ...]

    def __post_init__(self) -> None:
        if isinstance(self.sizes, str) or not np.iterable(self.sizes) or not len(tuple(self.sizes)):
            raise ValueError(f"sizes is {self.sizes!r}: give one for each agent, for instance (100, 20, 20).")
        object.__setattr__(self, "sizes", tuple(finite_number("A size", size, above=0.0) for size in self.sizes))

    @property
    def agents(self) -> int:
        """One for each size."""
        return len(self.sizes)

    @property
    def words(self) -> str:
        """The sizes, as far as there are few."""
        shown = ":".join(f"{size:g}" for size in self.sizes[:6])
        return f"sizes {shown}{':…' if len(self.sizes) > 6 else ''}"

    def divided(self, labels: Integers, agents: int, draws: Draws) -> list[Integers]:
        """The rows of each agent."""
        wanted = len(labels) * np.array(self.sizes) / np.sum(self.sizes)
        counts = np.floor(wanted + 1e-9).astype(np.int64)
        # What is left goes to those who are short of most.
        counts[np.argsort(counts - wanted, kind="stable")[: len(labels) - counts.sum()]] += 1
        return np.split(draws.permutation(len(labels)), np.cumsum(counts)[:-1])


@register(Split, "label")
@dataclass(frozen=True)
class ByLabel:
    """Rows in the order of their labels, cut into `runs` runs for each agent, who is given that many at random.

    With one run an agent has one label, or two neighbouring ones, or as many as there are more of than agents; with two it is the
    division of McMahan, Moore, Ramage, Hampson and Agüera y Arcas (2017).
    """

    runs: int = 1

    def __post_init__(self) -> None:
        whole_number("runs", self.runs, least=1)

    @property
    def words(self) -> str:
        """With how many runs."""
        return "by label" if self.runs == 1 else f"by label, {self.runs} runs each"

    def divided(self, labels: Integers, agents: int, draws: Draws) -> list[Integers]:
        """The rows of each agent."""
        anyhow = draws.permutation(len(labels))
        runs = np.array_split(anyhow[np.argsort(labels[anyhow], kind="stable")], agents * self.runs)
        given = draws.permutation(agents * self.runs).reshape(agents, self.runs)
        return [np.concatenate([runs[run] for run in own]) for own in given]


@register(Split, "dirichlet")
@dataclass(frozen=True)
class Dirichlet:
    """The rows of each label in proportions over the agents that are drawn from Dirichlet's law with all parameters `alpha`.

    A small alpha gives nearly all rows of a label to one agent, a large one the same number to each (Yurochkin et al. 2019). A
    division in which somebody has nothing is drawn anew.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        finite_number("alpha", self.alpha, above=0.0)

    @property
    def words(self) -> str:
        """With its parameter."""
        return f"Dirichlet({self.alpha:g})"

    def divided(self, labels: Integers, agents: int, draws: Draws) -> list[Integers]:
        """The rows of each agent."""
        counts = np.bincount(labels)
        if len(counts) > FEW and len(labels) < 5 * len(counts):
            raise ValueError(
                f"The {len(labels)} rows have {len(counts)} different targets, which are no labels: Dirichlet's law is for few of them, each of "
                "many rows. Use Evenly() or ByLabel(), which takes targets by their order."
            )
        for _ in range(MOST_DRAWS):
            # Gammas of a small shape are all zeros now and then: their logarithms are not.
            logs = np.log(draws.standard_gamma(self.alpha + 1.0, (len(counts), agents))) + (
                np.log1p(-draws.random((len(counts), agents))) / self.alpha
            )
            shares = np.exp(logs - logs.max(axis=1, keepdims=True))
            ends = np.cumsum(shares, axis=1) / shares.sum(axis=1, keepdims=True)
            cuts = np.floor(ends[:, :-1] * counts[:, None] + 0.5).astype(np.int64)
            sizes = np.diff(cuts, axis=1, prepend=0, append=counts[:, None])
            if (sizes.sum(axis=0) > 0).all():
                break
        else:
            raise ValueError(
                f"In {MOST_DRAWS:,} draws of {self.words} over {agents} agents there was always one without a row: use a larger alpha, fewer agents, "
                "or another way to divide."
            )
        found: list[list[Integers]] = [[] for _ in range(agents)]
        for label, cut in enumerate(cuts):
            rows = np.split(draws.permutation(np.flatnonzero(labels == label)), cut)
            for own, part in zip(found, rows, strict=True):
                own.append(part)
        return [np.concatenate(own) for own in found]


# ---------------------------------------------------------------- what is divided


@dataclass(frozen=True, eq=False, repr=False)
class Blocks(Sequence[Any]):
    """One block for each agent, and where they come from, in words; printing it shows these alone."""

    blocks: tuple[Any, ...]
    words: str

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, agent: Any) -> Any:
        return self.blocks[agent]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.blocks)

    def __repr__(self) -> str:
        return f"Blocks({self.words})"


class Divided(NamedTuple):
    """The features and the targets of every agent."""

    features: Blocks
    targets: Blocks


class Table(NamedTuple):
    """The rows before they are divided, and what they are called."""

    features: Any
    targets: NDArray[Any]
    name: str


def split(
    features: Any,
    targets: Any = None,
    *,
    agents: int | None = None,
    how: Split = Evenly(),
    seed: int = 0,
    positive: Any = None,
    name: str = "",
) -> Divided:
    """Divide rows over agents, for a problem: `rl.Logistic(*rl.split(load_breast_cancer(), agents=10, how=rl.Dirichlet(0.3), positive=1))`.

    `features` and `targets` are arrays (or sparse matrices), or a data frame and the name of its column, or alone what a loader of
    scikit-learn gives: a Bunch, or a pair. `how` is `Evenly()`, `BySize(sizes)`, `ByLabel()` or `Dirichlet(alpha)`, and `seed` draws who
    is given which rows. Where `positive` is given, that target becomes 1 and every other −1, after the rows were divided by what they were.
    What they are called stands, with all of this, in the words of the problem: a loader's data have a name of their own.
    """
    table = table_of(features, targets, name)
    count = len(table.targets)
    if not hasattr(how, "divided") or isinstance(how, type):
        raise ValueError(f"how is {how!r}: use Evenly(), BySize(sizes), ByLabel() or Dirichlet(alpha).")
    own = getattr(how, "agents", None)
    if own is not None and agents not in (None, own):
        raise ValueError(
            f"There are {agents} agents, but rows are divided by {how.words}, which are {own}: leave agents out."
        )
    agents = own if agents is None else agents
    if agents is None:
        raise ValueError("Over how many agents? Say agents=…, for instance agents=10.")
    agents, seed = whole_number("agents", agents, least=1), whole_number("The seed", seed, least=0)
    if seed >= SEEDS:
        raise ValueError(f"The seed is {seed}: use a whole number from 0 to 2**64 - 1.")
    if count < agents:
        raise ValueError(
            f"{count} rows can't be divided over {agents} agents, each with one at least: use fewer agents."
        )
    try:
        labels = np.unique(table.targets, return_inverse=True)[1].ravel().astype(np.int64)
    except TypeError:
        raise ValueError("The targets are numbers and words at once: encode all as numbers, or all as words.") from None
    draws = np.random.Generator(np.random.Philox(key=np.array([seed, 0x5917], np.uint64)))
    parts = [np.sort(part) for part in how.divided(labels, agents, draws)]
    for agent, part in enumerate(parts):
        if not len(part):
            raise ValueError(
                f"Agent {agent} would have none of the {count} rows: use fewer agents, or a larger size for it."
            )
    answers = table.targets if positive is None else _signs(table.targets, positive)
    words = f"{table.name}, {count:,} rows, {agents} agent{'s' * (agents != 1)}, {how.words}, seed {seed}"
    return Divided(
        Blocks(tuple(table.features[part] for part in parts), words),
        Blocks(tuple(answers[part] for part in parts), words),
    )


def table_of(features: Any, targets: Any = None, name: str = "") -> Table:
    """The rows, the target of each and what they are called, from whatever they come in."""
    if targets is None:
        if isinstance(features, Mapping) and {"data", "target"} <= set(features):
            name = name or _name_of(features)
            features, targets = features["data"], features["target"]
        elif isinstance(features, tuple) and len(features) == 2:
            features, targets = features
        else:
            raise ValueError(
                f"There are no targets beside the features, which are a {type(features).__name__}: give both, or a data frame and the name of its "
                "column, or what a loader of scikit-learn gives."
            )
    if isinstance(targets, str):
        if not hasattr(features, "columns"):
            raise ValueError(
                f"The targets are the column {targets!r}, but the features are no data frame: give an array."
            )
        if targets not in features.columns:
            raise ValueError(f"There is no column {targets!r}: use one of {', '.join(map(str, features.columns))}.")
        features, targets = features.drop(columns=targets), features[targets]
    matrix, answers = _matrix(features), np.asarray(targets)
    if answers.ndim == 2 and answers.shape[1] == 1:
        answers = answers[:, 0]
    if answers.ndim != 1:
        raise ValueError(f"The targets have {answers.ndim} dimensions instead of 1: choose one for each row.")
    if len(answers) != matrix.shape[0]:
        raise ValueError(f"There are {matrix.shape[0]} rows but {len(answers)} targets: give one for each row.")
    if answers.dtype.kind == "f" and np.isnan(answers).any():
        raise ValueError(
            f"The target of row {np.flatnonzero(np.isnan(answers))[0]} is missing: remove the row, or fill it in."
        )
    return Table(matrix, answers, name or "data")


def _matrix(features: Any) -> Any:
    """Features whose rows can be chosen: a sparse matrix by rows, or an array of numbers."""
    if hasattr(features, "tocsr"):
        return features.tocsr()
    for column, kind in getattr(features, "dtypes", {}).items() if hasattr(features, "columns") else ():
        if getattr(kind, "kind", "O") not in "biuf":
            raise ValueError(
                f"The column {column!r} is of {kind}, not of numbers: encode it as numbers, or leave it out."
            )
    matrix = np.asarray(features)
    if matrix.ndim != 2:
        raise ValueError(
            f"The features have {matrix.ndim} dimensions instead of 2: give an array of shape (rows, features), for a single "
            "feature by .reshape(-1, 1)."
        )
    return matrix


def _name_of(bunch: Mapping[str, Any]) -> str:
    """What a loader's data are called, by its description or its file."""
    known = re.search(r"\.\. _(\w+)_dataset:", str(bunch.get("DESCR", "")))
    return (known[1] if known else Path(str(bunch.get("filename") or "data")).stem).replace("_", " ")


def _signs(targets: NDArray[Any], positive: Any) -> NDArray[np.float64]:
    """1 where a target is the one that is meant, −1 elsewhere."""
    chosen = targets == positive
    if not np.any(chosen):
        known = np.unique(targets)
        some = ", ".join(map(str, known[:10].tolist())) + (", …" if len(known) > 10 else "")
        raise ValueError(f"No row has the target {positive!r}, which is to be positive: the targets are {some}.")
    return np.where(chosen, 1.0, -1.0)
