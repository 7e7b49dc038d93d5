"""What a site takes part in: a file in its folder that its operator edits, held against every plan before anything is sent.

A fingerprint says who takes part, and a signature who planned; neither says that the plan protects anybody. A plan can name masks and make
them too small to hide anything, or set one member on both sides of another.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from roundelay.agents.agreement.disk import PRIVATE, read_at_most, write_new
from roundelay.agents.agreement.plan import RingPlan, Task
from roundelay.agents.agreement.signed_text import parsed
from roundelay.algorithms.parts.starts import SealedStart
from roundelay.masks import mask_grid
from roundelay.networks.network_checks import join_names
from roundelay.regression.rows import SiteRows
from roundelay.regression.singled_out import (
    alone_among_all,
    counting_alike,
    crossed_splines,
    narrow_knots,
    narrow_step,
    rare_outcomes,
    singled_out,
)
from roundelay.regression.sums import Known, left_to_others
from roundelay.tables import Fields, in_short

POLICY = "policy.toml"
MOST_BYTES = 2**16
MOST = 2**31
# Stands for all columns, or all families.
ALL = "*"
MOST_NAMES = 10_000
# So many levels are named.
NAMED = 3

_TEXT = """\
# What this site takes part in. `roundelay ring accept` and the agent refuse a ring file that does not keep to it.
# Change a number to allow more or less. An entry that is left out counts as it stands here.

# So many members at least. Of two, each knows what the other adds to a sum; of three, the other two together know what
# the third adds. From four on a site's two neighbours may work together, and still see nothing but a sum.
least_members = {least_members}

# So many rows of this site at least: of a single one its columns can be worked out from what is told, and of a few they
# can be guessed. It holds for all rows of this site, and for those that make the difference to an earlier sum.
least_rows = {least_rows}

# So many sites at least must come or go between two sums: the difference of the sums is what they gave. From 2 on; a
# change by a single site is let pass, where it must be, by --despite-difference for one ring file at a time.
least_change = {least_change}

# Sealed laps may ask so many questions at most.
most_questions = {most_questions}

# All runs with noise together may cost so much ε at most, at δ = 1e-6. With any number but inf this site adds to no exact sums.
most_epsilon = {most_epsilon}

# Fits may use these columns alone; "*" stands for all.
allowed_columns = {allowed_columns}

# Fits may be of these families alone, such as "gaussian", "binomial" or "cox"; "*" stands for all. Least squares is of the
# family gaussian, logistic regression binomial, and any other fit without a formula is called by its own word.
allowed_families = {allowed_families}

# Formulas may calculate this, written as in the formula, such as "age > 65"; "*" stands for anything. Without an entry they may
# have columns as they are, their levels and splines, powers up to cubes, logarithms and roots of one column, and products of
# those of several columns. Anything else can be laid around a single person: see that a limit is one that nobody chose for that.
allowed_calculations = {allowed_calculations}

# A level that rows of this site have, so many of them have at least, in each group of Table 1, too; and so have so many
# rows of all sites. Rarer words are not told in the invitation either. Nor may fewer rows of this site have another outcome
# than most, nor may numbers that are the same in all rows but a few, or what a formula calculates, or what is answered to a
# question, be about fewer, nor two columns differ in fewer; and no row of this site may have nine tenths of what sums with the
# outcome can tell, nor a level that is multiplied with numbers have fewer rows of all sites with an outcome. With 1 nobody looks.
least_rows_a_level = {least_rows_a_level}

# Whether rows of this site may be the only ones with a level, or with numbers by which the site can be told from all others:
# what is told of these is then of this site alone.
lone_levels = {lone_levels}

# Whether numbers of this site that are in another unit than the agreed one may be converted as the plan says. See first that
# it says so rightly: by a factor that is far too large this site's numbers would stand out of every sum.
conversions = {conversions}

# A fit may have so many unknowns for each row of all sites: with 0.1 there are ten rows to each at least, and a third of them
# in a fold by which a penalty is chosen. A fit with nearly as many unknowns as rows tells the rows.
most_parameters_per_row = {most_parameters_per_row}

# The rest is about methods by which a token goes round, that is not about sealed laps.

# The masks under which a token starts must be so many times as large as the gradient that they hide: of what is seen at
# 10 times, the gradient explains 1 %. With 0 methods are allowed whose start hides nothing from the neighbours.
least_cover = {least_cover}

# On the grid of those masks the gradient must have so many bits: what lies between two steps of the grid is not hidden.
# With 20 a guess at one number is right once in a million times. It counts where least_cover is above 0.
least_bits = {least_bits}

# Whether one member may see the token both before and after this site: it learns alone what else takes two.
hub_beside_me = {hub_beside_me}
"""


class PolicyError(ValueError):
    """A plan does not keep to what this site takes part in."""


@dataclass(frozen=True)
class Policy:
    """What a site takes part in, as its file says it."""

    least_members: int = 4
    least_rows: int = 10
    least_change: int = 2
    most_questions: int = 200
    most_epsilon: float = math.inf
    least_cover: float = 10.0
    least_bits: int = 20
    hub_beside_me: bool = False
    allowed_columns: tuple[str, ...] = (ALL,)
    allowed_families: tuple[str, ...] = (ALL,)
    allowed_calculations: tuple[str, ...] = ()
    least_rows_a_level: int = 5
    lone_levels: bool = False
    conversions: bool = False
    most_parameters_per_row: float = 0.1


# For one who has the data of all sites, as in a rehearsal: there is nobody to hide anything from.
ANYTHING = Policy(
    2,
    1,
    2,
    MOST,
    math.inf,
    0.0,
    0,
    True,
    allowed_calculations=(ALL,),
    least_rows_a_level=1,
    lone_levels=True,
    conversions=True,
    most_parameters_per_row=math.inf,
)


class OwnData(NamedTuple):
    """What a policy asks of this site's data: how many rows (0 where there are none), and how large the numbers of its gradient at 0 are.

    `least_slope` is the smallest of them, where they are of different sizes.
    """

    rows: int
    slope: float
    least_slope: float = math.inf


# ---------------------------------------------------------------- the file


def read_policy(folder: Path) -> Policy:
    """The policy of the site in a folder; the usual one where there is no file."""
    path = Path(folder) / POLICY
    try:
        text = read_at_most(path, MOST_BYTES)
    except FileNotFoundError:
        return Policy()
    if len(text) > MOST_BYTES:
        raise ValueError(f"The policy {path} has more than {MOST_BYTES} bytes: make it as roundelay ring init does.")
    fields = Fields(parsed(text, str(path)), f"the policy {path}")
    fields.only(*asdict(Policy()))
    found: dict[str, Any] = {
        name: _read(fields, name, usual) for name, usual in asdict(Policy()).items() if name in fields.table
    }
    return Policy(**found)


def _read(fields: Fields, name: str, usual: Any) -> Any:
    if isinstance(usual, tuple):
        return tuple(fields.list_of(name, str, "names in quotes", MOST_NAMES))
    if isinstance(usual, bool):
        return fields.flag(name)
    if isinstance(usual, int):
        return fields.whole(name, {"least_members": 2, "least_change": 2, "least_bits": 0}.get(name, 1), MOST)
    number = fields.number(name)
    if not number >= 0.0:
        raise fields.refusal(name, "use a number from 0 on")
    return number


def write_policy(folder: Path, policy: Policy | None = None) -> None:
    """Write a policy, with what each entry means; one that is there already stays as it is."""
    try:
        write_new(Path(folder) / POLICY, text_of(policy or Policy()).encode(), PRIVATE)
    except FileExistsError:
        read_policy(folder)


def text_of(policy: Policy) -> str:
    """The file of a policy."""
    return _TEXT.format(**{name: _written(value) for name, value in asdict(policy).items()})


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        names = [json.dumps(name, ensure_ascii=False) for name in value]
        return (
            f"[{', '.join(names)}]" if len(names) == 1 else "".join(["[\n", *(f"    {name},\n" for name in names), "]"])
        )
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---------------------------------------------------------------- what a plan does not keep to


class Breach(str):
    """What does not keep to a policy, in a sentence, and to which `entry` of it."""

    entry: str

    def __new__(cls, entry: str, sentence: str) -> Breach:
        """The sentence, and the entry that it names."""
        made = super().__new__(cls, sentence)
        made.entry = entry
        return made


def check_policy(folder: Path, policy: Policy, plan: RingPlan, name: str, own: OwnData | None = None) -> None:
    """Refuse a plan that does not keep to the policy of the site in a folder."""
    refuse(folder, name, breaches(policy, plan, plan.number_of(name), own))


def refuse(folder: Path, name: str, found: tuple[Breach, ...]) -> None:
    """Refuse what does not keep to the policy of the site in a folder, where anything was found."""
    if found:
        raise PolicyError(
            f"{' '.join(found)} So {name} does not take part. Let the ring be planned otherwise; an operator who knows this and wants it "
            f"nevertheless changes that in {Path(folder) / POLICY}{_missing(folder)}."
        )


def _missing(folder: Path) -> str:
    return "" if (Path(folder) / POLICY).exists() else ", which is not there yet: a line of its own for each entry"


# When a site can tell whether an entry is kept to that a plan alone does not settle: with its own data, and by what all are told of all rows.
WITH_DATA = ("least_rows", "least_rows_a_level", "conversions")
ONCE_TOLD = ("lone_levels", "most_parameters_per_row")
# What its ledger tells; and the entries that are about a token.
BY_LEDGER = ("least_change", "most_epsilon")
OF_A_TOKEN = ("least_cover", "least_bits", "hub_beside_me")


def entries_about(policy: Policy, plan: RingPlan) -> tuple[str, ...]:
    """The entries of a policy that have a say in a plan."""
    task = plan.task
    without = {
        *(OF_A_TOKEN if plan.choice is not None else ("most_questions",)),
        *(() if task.regression is not None else ("allowed_calculations", "lone_levels", "conversions")),
        *(() if task.columns else ("allowed_columns", "least_rows")),
        *(() if task.columns and task.promise is None else ("least_rows_a_level", "most_parameters_per_row")),
        *(() if policy.least_cover else ("least_bits",)),
    }
    return tuple(entry for entry in asdict(policy) if entry not in without)


def breaches(policy: Policy, plan: RingPlan, me: int, own: OwnData | None = None) -> tuple[Breach, ...]:
    """What of a plan does not keep to a policy, a sentence each that names the entry; `own` is None where the data are not known yet."""
    return tuple(_breaches(policy, plan, me, own))


def _breaches(policy: Policy, plan: RingPlan, me: int, own: OwnData | None) -> Iterator[Breach]:
    if plan.agents < policy.least_members:
        yield Breach(
            "least_members",
            f"Only {plan.agents} members take part, and this site's policy wants {policy.least_members} (least_members): "
            f"{_too_few(plan)}.",
        )
    if own is not None and 0 < own.rows < policy.least_rows:
        yield Breach(
            "least_rows",
            f"This site has {own.rows} {'row' if own.rows == 1 else 'rows'}, and its policy wants {policy.least_rows} (least_rows): from what is "
            "told of so few the rows themselves may be worked out.",
        )
    yield from refused_task(policy, plan.task)
    if plan.choice is not None:
        if plan.stopping.questions > policy.most_questions:
            yield Breach(
                "most_questions",
                f"Up to {plan.stopping.questions:,} questions may be asked, and this site's policy allows {policy.most_questions:,} "
                "(most_questions).",
            )
        return
    both = sides(plan, me)
    if both and not policy.hub_beside_me:
        names = join_names(sorted(plan.members[one].name for one in both))
        yield Breach(
            "hub_beside_me",
            f"{names} {'sees' if len(both) == 1 else 'see'} the token both before and after this site, which this site's policy does not "
            "allow (hub_beside_me): so a single member learns what else takes two.",
        )
    if policy.least_cover > 0.0:
        yield from _thin_masks(policy, plan, OwnData(0, 1.0) if own is None else own)


# ---------------------------------------------------------------- what a fit does not keep to

# The families of fits without a formula.
FAMILIES = {"least_squares": "gaussian", "logistic": "binomial"}


def refused_task(policy: Policy, task: Task) -> tuple[Breach, ...]:
    """What of a fit as planned does not keep to a policy: its columns and its family."""
    found, regression = [], task.regression
    columns = [column.name for column in task.columns if column.name not in policy.allowed_columns]
    if columns and ALL not in policy.allowed_columns:
        found.append(
            Breach(
                "allowed_columns",
                f"The plan uses {join_names(columns)}, and this site's policy does not allow {'it' if len(columns) == 1 else 'them'} (allowed_columns).",
            )
        )
    family = FAMILIES.get(task.kind, task.kind) if regression is None else regression.family
    if not {family, ALL} & {*policy.allowed_families}:
        found.append(
            Breach(
                "allowed_families",
                f"The plan is of the family {family}, and this site's policy allows {join_names(policy.allowed_families) or 'none'} "
                "(allowed_families).",
            )
        )
    calculated = () if regression is None else regression.terms.calculations
    allowed = {_without_spaces(one) for one in policy.allowed_calculations}
    unknown = [one for one in calculated if _without_spaces(one) not in allowed]
    if unknown and ALL not in allowed:
        found.append(
            Breach(
                "allowed_calculations",
                f"The formula calculates {join_names([json.dumps(one, ensure_ascii=False) for one in unknown[:NAMED]])}, and this site's policy allows no more than "
                f"{_allowed(policy.allowed_calculations)} (allowed_calculations): such a calculation can be laid around a single person.",
            )
        )
    return tuple(found)


def _without_spaces(calculation: str) -> str:
    return "".join(calculation.split())


def _allowed(calculations: tuple[str, ...]) -> str:
    simple = "powers, logarithms and roots of one column"
    return join_names([simple, *(in_short(one) for one in calculations)])


def refused_numbers(policy: Policy, beside_most: Mapping[str, int]) -> tuple[Breach, ...]:
    """What of the columns of a fit without a formula does not keep to a policy: those that are about a few of this site's rows.

    Of each column is given how many rows have another number than most.
    """
    least = policy.least_rows_a_level
    few = [name for name, rows in beside_most.items() if 0 < rows < least]
    if not few:
        return ()
    return (
        Breach(
            "least_rows_a_level",
            f"This site's rows have the same number in {join_names(few[:NAMED])} but for fewer than {least} of them, which its policy does not allow "
            "(least_rows_a_level): what is told of so few may tell of one. Let the fit be planned without such a column.",
        ),
    )


def refused_unknowns(policy: Policy, unknowns: int, rows: int) -> tuple[Breach, ...]:
    """More unknowns than so many rows of all sites may have."""
    if unknowns <= policy.most_parameters_per_row * rows:
        return ()
    return (
        Breach(
            "most_parameters_per_row",
            f"The fit has {unknowns:,} unknowns and all sites together {rows:,} rows, and this site's policy allows "
            f"{policy.most_parameters_per_row:g} unknowns for each row (most_parameters_per_row).",
        ),
    )


def refused_rows(policy: Policy, rows: SiteRows) -> tuple[Breach, ...]:
    """What of a site's own rows does not keep to its policy, before anything of them is told.

    Conversions, levels that few of the rows have, and what else is about few of them. It is for the site's own eyes.
    """
    return (
        *_conversions(policy, rows), *_rare_levels(policy, rows), *_singled_out(policy, rows), *_small_folds(policy, rows),
    )  # fmt: skip


def _small_folds(policy: Policy, rows: SiteRows) -> Iterator[Breach]:
    folds = rows.regression.folds
    if folds and rows.count // folds < policy.least_rows_a_level:
        yield Breach(
            "least_rows_a_level",
            f"The plan leaves rows out in {folds} folds, which are fewer than {policy.least_rows_a_level} of this site each, and its policy does not "
            "allow that (least_rows_a_level): what is told with and without a fold tells of its rows. Plan with fewer folds.",
        )


def _conversions(policy: Policy, rows: SiteRows) -> Iterator[Breach]:
    if rows.converted and not policy.conversions:
        yield Breach(
            "conversions",
            f"The plan converts {join_names(rows.converted)} at this site, and its policy lets no plan do so (conversions): look whether that is "
            "right, since by a wrong factor this site's numbers would stand out of every sum; or convert the file.",
        )


def _singled_out(policy: Policy, rows: SiteRows) -> Iterator[Breach]:
    found = singled_out(rows, policy.least_rows_a_level)
    if found:
        yield Breach(
            "least_rows_a_level",
            f"What the formula has of {join_names([in_short(one) for one in found[:NAMED]])} is about fewer than {policy.least_rows_a_level} rows "
            "of this site, which its policy does not allow (least_rows_a_level): what is told of so few may tell of one. Let the formula do without it.",
        )


def _rare_levels(policy: Policy, rows: SiteRows) -> Iterator[Breach]:
    few = _few_of_a_level(rows, policy.least_rows_a_level)
    if few:
        yield Breach(
            "least_rows_a_level",
            f"This site has {_some(few)}, and its policy wants {policy.least_rows_a_level} of each level that it has (least_rows_a_level): what is "
            "told of so few may tell of one. Join the level with another in the data, or let Table 1 be planned without groups.",
        )


class LevelCount(NamedTuple):
    """How many rows have a level of a column, all of them or those `beside` another level."""

    column: str
    level: str
    rows: int
    beside: str = ""

    def __str__(self) -> str:
        return f"{self.rows} row{'s' * (self.rows != 1)} with the level {self.level!r} of {self.column}{self.beside}"


def _few_of_a_level(rows: SiteRows, least: int) -> list[LevelCount]:
    """The levels that some rows have, but fewer than so many, in all rows, in a group of Table 1 or with a weight; of a rare level not its parts."""
    few = [one for one in _level_counts(rows) if 0 < one.rows < least]
    rare = {(one.column, one.level) for one in few}
    by = next((one for one in rows.regression.columns if one.name == rows.regression.by), None)
    parts = {f" among those with the weight {value:g}": part for value, part in counting_alike(rows).items()}
    for code, group in enumerate(() if by is None else by.levels):
        inside = replace(rows, frame=rows.frame[np.asarray(rows.frame[by.name].cat.codes) == code])  # type: ignore[union-attr]
        parts[f" among those with the level {group!r} of {rows.regression.by}"] = inside
    for beside, inside in parts.items():
        few += [
            one._replace(beside=beside)
            for one in _level_counts(inside)
            if 0 < one.rows < least and one.column != rows.regression.by and (one.column, one.level) not in rare
        ]
    return few


def _level_counts(rows: SiteRows) -> list[LevelCount]:
    return [
        LevelCount(column.name, level, count)
        for column in rows.regression.columns
        if column.values == "levels"
        for level, count in zip(
            column.levels,
            np.bincount(rows.frame[column.name].cat.codes, minlength=len(column.levels)).tolist(),
            strict=True,
        )
    ]


def refused_counts(policy: Policy, known: Known, own: SiteRows | None = None) -> tuple[Breach, ...]:
    """What of the rows of all sites does not keep to a policy, by the counts that everybody has been told and this site's own rows."""
    return tuple(_refused_counts(policy, known, own))


def _refused_counts(policy: Policy, known: Known, own: SiteRows | None) -> Iterator[Breach]:
    yield from refused_unknowns(policy, known.regression.dim + known.constants, known.rows)
    yield from _unknowns_of_a_fold(policy, known)
    has_levels = any(column.values == "levels" for column in known.regression.columns)
    if own is not None and (known.has("counts") or not has_levels):
        crossed = crossed_splines(own, known, policy.least_rows_a_level)
        if crossed:
            yield Breach(
                "least_rows_a_level",
                f"Of the rows of all sites hardly one is between two knots in {join_names([in_short(one) for one in crossed[:NAMED]])}, and this site's "
                "policy does not allow that (least_rows_a_level): their products would be about one patient. Let the spline have a smaller df, or join "
                "levels in the data.",
            )
    if own is not None and known.has("products") and not known.has("moments"):
        yield from _before_outcomes(policy, known, own)
    if own is not None and known.has("bins again"):
        narrow = narrow_knots(own, known.knots, policy.least_rows_a_level)
        if narrow:
            yield Breach(
                "least_rows_a_level",
                f"By the sums that were told, {join_names(narrow)} would have two knots with fewer than {policy.least_rows_a_level} rows of this site "
                "between them, though a good many were to be expected, and its policy does not allow that (least_rows_a_level): some site may have "
                "made up its numbers, to learn who is there. Ask the others for theirs, or let a polynomial stand for the spline.",
            )
    if own is not None and narrow_step(own, known, policy.least_rows_a_level):
        yield Breach(
            "least_rows_a_level",
            f"Beside the offset of the formula the next sum would be about fewer than {policy.least_rows_a_level} rows of this site, which its policy "
            "does not allow (least_rows_a_level): what is told of so few may tell of one. Let the fit be planned without the offset.",
        )
    if not known.has("counts"):
        return
    counts = [
        LevelCount(column.name, level, round(count))
        for column in known.regression.columns
        if column.values == "levels"
        for level, count in zip(
            column.levels,
            known.told("counts")[column.name].reshape(-1, len(column.levels)).sum(axis=0).tolist(),
            strict=True,
        )
    ]
    folds = max(known.regression.folds, 1)
    few = [one for one in counts if 0 < one.rows < policy.least_rows_a_level * folds]
    if few and folds > 1:
        most = min(one.rows for one in few) // policy.least_rows_a_level
        yield Breach(
            "least_rows_a_level",
            f"All sites together have {_some(few)}, in {folds} folds, and this site's policy wants {policy.least_rows_a_level} of each level in a "
            "fold (least_rows_a_level): what is told with and without a fold tells of its rows. Plan with "
            f"{f'{most} folds at most' if most > 1 else 'no folds'}, or join levels in the data.",
        )
    elif few:
        yield Breach(
            "least_rows_a_level",
            f"All sites together have {_some(few)}, and this site's policy wants {policy.least_rows_a_level} of each level "
            "(least_rows_a_level).",
        )
    if own is None or policy.lone_levels:
        return
    lone = [one for one, mine in zip(counts, _level_counts(own), strict=True) if 0 < mine.rows == one.rows]
    if lone:
        yield Breach(
            "lone_levels",
            f"No other site has rows with {_levels(lone)}, so that what is told of them is told of this site alone, which its policy does not "
            "allow (lone_levels): let the formula have site in the place of a column that tells the sites apart.",
        )


def _before_outcomes(policy: Policy, known: Known, own: SiteRows) -> Iterator[Breach]:
    """What the sums with what is explained would tell of few rows, by all that was told before them."""
    least, response = policy.least_rows_a_level, known.regression.response
    if alone_among_all(own, known, least):
        yield Breach(
            "least_rows_a_level",
            f"By the formula's columns a row of this site stands nearly alone among those of all sites: the sums of {response} with them would tell "
            "it of this row, which its policy does not allow (least_rows_a_level). Let the formula have fewer powers, products or knots, or take the "
            "logarithm of a column with a long tail; or look whether a cell is wrong.",
        )
    if not policy.lone_levels and left_to_others(own, known) < HIDES_NOTHING:
        yield Breach(
            "lone_levels",
            f"The formula's columns can be put together so that they are 0 in all rows but this site's: the sums of {response} with them would be of this "
            "site alone, which its policy does not allow (lone_levels). Let the formula do without a number that is the same in all rows of a site, or "
            "that one site alone has, or have site in its place.",
        )
    if rare := rare_outcomes(own, known, least):
        yield Breach(
            "least_rows_a_level",
            f"In {join_names([in_short(one) for one in rare[:NAMED]])} the formula multiplies a number with levels of which fewer than {least} rows of "
            f"all sites have an outcome in {response}, which this site's policy does not allow (least_rows_a_level): the sums would be what these few "
            "are like. Let the formula do without the product, or join levels in the data.",
        )


# Of what is summed so much has to be others' rows, in parts of how many of the rows are theirs: in fits to real data it is a twentieth and more.
HIDES_NOTHING = 0.01
# In part of the rows, such as a fold, there may be so many times more unknowns to each row than in all: three rows to each where these are ten.
IN_A_PART = 10.0 / 3.0


def _unknowns_of_a_fold(policy: Policy, known: Known) -> Iterator[Breach]:
    """Sums over the rows outside of each fold, and over all, tell those over its own, which are few; of each equation alike."""
    regression, folds = known.regression, known.regression.folds
    unknowns, each = (
        (regression.dim + known.constants) // regression.equations,
        IN_A_PART * policy.most_parameters_per_row,
    )
    if folds and unknowns * folds > each * known.rows:
        most = int(each * known.rows / unknowns)
        yield Breach(
            "most_parameters_per_row",
            f"A fold has {known.rows // folds:,} rows of all sites for {unknowns:,} unknowns, and this site's policy allows {each:.2g} for each row of "
            "a fold (most_parameters_per_row, and a third of its rows): what is told with and without a fold would tell its rows. Plan with "
            f"{f'{most} folds at most' if most > 1 else 'no folds'}, or a formula with fewer unknowns.",
        )


def _levels(some: list[LevelCount]) -> str:
    return _listed([f"the level {one.level!r} of {one.column}" for one in some])


def _some(few: list[LevelCount]) -> str:
    return _listed([str(one) for one in few])


def _listed(words: list[str]) -> str:
    return (
        join_names(words)
        if len(words) <= NAMED
        else f"{', '.join(words[:NAMED])} and {len(words) - NAMED} more such levels"
    )


def _too_few(plan: RingPlan) -> str:
    if plan.agents == 2:
        return "of two, each knows all that the other adds"
    return f"the other {plan.agents - 1} together know all that this site adds"


def _thin_masks(policy: Policy, plan: RingPlan, own: OwnData) -> Iterator[Breach]:
    masks, slope = masks_of(plan), own.slope
    if slope == 0.0:  # there is nothing to hide
        return
    if masks.size < policy.least_cover * slope:
        much = (
            "no masks that hide what is added to it"
            if masks.size == 0.0
            else f"masks {masks.size / slope:.2g} times as large as its gradient"
        )
        yield Breach(
            "least_cover",
            f"The token starts under {much}, and this site's policy wants them {policy.least_cover:g} times as large (least_cover): its "
            "neighbours could work out the gradient of its data.",
        )
    elif (bits := max(masks.bits_of(min(slope, own.least_slope)), 0.0)) < policy.least_bits:
        yield Breach(
            "least_bits",
            f"The token is called masked, but a step of the masks is {masks.step:.2g} in the gradient, of which they hide {bits:.0f} bits, and "
            f"this site's policy wants {policy.least_bits} (least_bits): a smaller ρ or more bits after the point would hide more.",
        )


class Masks(NamedTuple):
    """Under what a token starts, in units of the gradient: how large the masks are, and a step of their grid."""

    size: float
    step: float

    def bits_of(self, slope: float) -> float:
        """How many bits a number of this size has on the grid."""
        return math.log2(slope / self.step)

    @property
    def hide(self) -> bool:
        """Whether they hide a gradient of the size of 1, by the usual policy."""
        return self.size >= Policy.least_cover and self.bits_of(1.0) >= Policy.least_bits


def masks_of(plan: RingPlan) -> Masks:
    """What hides y in c = x − y/ρ at the start: masks on c are ρ times as large on y, and so are the steps of their grid."""
    method: Any = plan.method
    facts = getattr(method, "facts", None)
    if facts is None:  # another update than that of ADMM, of which nobody has said what it hides
        return Masks(0.0, math.inf)
    if facts.xstep.step == "else":  # masks hide one vector: where a step takes a few rows at a time, these lift them
        return Masks(0.0, math.inf)
    rho, start = float(method.rho), facts.start
    grid = getattr(method.start, "sum_grid", None)
    if plan.warm or grid is not None:  # the shares are summed under masks that are uniform over all words
        return Masks(math.inf, rho * (grid or SealedStart().sum_grid).grid)
    if start.share == "masked" and start.scale > 0.0:
        return Masks(rho * start.scale, rho * math.ldexp(1.0, -mask_grid(plan.agents, start.scale).bits))
    return Masks(0.0, math.inf)


def sides(plan: RingPlan, me: int) -> frozenset[int]:
    """The members that see the token both before and after a visit of this one: on a walk whoever hands it over may get it back."""
    if not plan.on_cycle:
        return plan.neighbours[me]
    order, first = plan.order, {member: place for place, member in reversed([*enumerate(plan.order)])}

    def seen(step: int) -> frozenset[int]:
        """Who has it one way, up to and with the first that changes it; others only pass it on."""
        members, place = set(), first[me]
        while True:
            place = (place + step) % len(order)
            members.add(order[place])
            if first[order[place]] == place:
                return frozenset(members)

    return (seen(-1) & seen(1)) - {me}
