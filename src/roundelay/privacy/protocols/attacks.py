"""What follows from sums over a site's rows: totals, rows that stand alone, tables of counts, and the rows themselves.

Every attack is given `Known`, what the messages of one site say, and nothing else. It refuses by a ValueError what it can't work
with. What it finds it says with an error that it has itself estimated; whether that is right only the truth can tell.

**Totals.** Of a Gaussian model I = X'X, S = X'y − X'Xβ and D = y'y − 2β'X'y + β'X'Xβ at every point; where only S was sent, these are linear
equations in X'X and X'y. Of a binomial model w = 1/4 and μ = 1/2 at β = 0, so that X'X = 4I and X'y = S + X'1/2 there. Σ y x and
Σ (1 − y) x are so the sums over the cases and over the others. Several local steps of a linear model are w ↦ Aw + b with A = (I − rate·X'X/n)^steps.

**Who is alone.** A column with values 0 and 1 says by X'X how many rows have the 1: c = Σ x_j = Σ x_j². Where c = 1, the column of X'X and X'y are that
row, whatever n is; where c = n − 1 the row with the 0 is what is left of the sums. The outcome is such a column as well.

**Tables of counts.** Where all columns are 0 or 1, rows are of K = 2^(p−1) kinds, and S and I are linear in the K counts: X'X is the table of pairs, every further
point has other weights. So few iterations give all counts, for any n. The outcome enters by X'y alone, since the link is canonical: its counts are whole
numbers between 0 and those of the rows, with p sums; how large and how small each can be is found by linear programming.

**Rows.** One row: I = w·xx' and S = (y − μ)·x, so x = S/S_0 = I_0/I_00. Two Gaussian rows: mean ± d/2, where the covariance is dd'/4.
Three and more Gaussian rows: nothing that any rotation which leaves the constant in place would not leave, too; that is proven, and the attack says so. A
binomial site's rows, of which there are n(p − 1) unknowns once the labels are sorted (rows have no order), are found by least squares from many starts: with K points there are
K·p(p + 3)/2 equations. They are all functions of x'β along a path of points that converge, so their number says little: the equations are first measured in units of how
much they differ between random sites of the same totals (whitened), then taken as they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy

from roundelay.kernels import Matrix, Vector
from roundelay.privacy.protocols.known import Known, Numbers, SumsAt, descended, mean, sums_at
from roundelay.registry import register

# A row is said to be known if it is off by less than this part of how far rows are apart.
GOOD_ENOUGH = 1e-3
# Beyond these the searches take long, and find nothing.
MOST_ROWS, MOST_KINDS = 40, 32
STARTS, EVALUATIONS = 30, 200
# A start that misses by so much of what sums differ by between random sites leads nowhere.
FAR = 1e-2
# How many starts must lead to the same rows before they are taken for the site's: fewer where there are twice as many equations as unknowns. With
# hardly more equations several sets of rows may meet them all; at a single point what is orthogonal to β stands in squares, and has two roots.
AGREE, AGREE_IF_TIGHT = 2, 6


@dataclass(frozen=True, eq=False)
class Totals:
    """X'X and X'y of a site, and y'y where that is known."""

    XtX: Matrix
    Xty: Vector
    yty: float | None = None

    @property
    def joint(self) -> Matrix | None:
        """(X y)'(X y)."""
        if self.yty is None:
            return None
        return np.block([[self.XtX, self.Xty[:, None]], [self.Xty[None, :], np.array([[self.yty]])]])


@dataclass(frozen=True, eq=False)
class Counts:
    """How many rows there are of each kind of 0s and 1s, at least and at most: of any outcome, and of a binomial model with 0 and with 1."""

    kinds: Matrix
    least: Matrix
    most: Matrix

    @property
    def exact(self) -> tuple[int, int]:
        """How many counts are known: of the kinds, and of the kinds by outcome."""
        known = self.least == self.most
        return int(known[:, 0].sum()), int(known[:, 1:].sum())


@dataclass(frozen=True, eq=False)
class Learned:
    """What an attack learned of a site.

    `rows` are records, a line each: the columns but for the constant, then the outcome. `error` is the attack's own estimate of how far
    off they are, against how far rows are apart. `settled` says whether it vouches for them.
    """

    words: str
    settled: bool
    totals: Totals | None = None
    rows: Matrix | None = None
    counts: Counts | None = None
    error: float = 0.0


class SiteAttack(Protocol):
    """The slot of an attack on what a protocol makes known of a site, entered by @register(SiteAttack, "word")."""

    def __call__(self, known: Known, /) -> Learned:
        """What it learned; a ValueError where it does not apply."""


# ---------------------------------------------------------------- totals


@register(SiteAttack, "totals")
def totals(known: Known) -> Learned:
    """X'X and X'y, where they follow in closed form."""
    found, error = totals_of(known)
    what = "X'X, X'y" + (", y'y" if found.yty is not None else "")
    return Learned(
        f"The totals of its {known.rows} rows are known: {what}.", error < GOOD_ENOUGH, totals=found, error=error
    )


def totals_of(known: Known) -> tuple[Totals, float]:
    """The totals and how far off they may be."""
    if known.family == "gaussian":
        whole = [one for one in known.sums if one.score is not None and one.information is not None]
        if whole:
            return _gaussian_totals(whole[0]), known.rounding
        if known.descent is not None:
            return _totals_of_steps(known)
        return _totals_of_scores(known)
    for one in known.sums:
        if one.information is not None and one.score is not None and not one.point.any():
            square = 4.0 * one.information
            return Totals(square, one.score + square[0] / 2.0), known.rounding
    raise ValueError("no information at β = 0 was sent, and elsewhere the sums are weighted by what nobody knows")


def _gaussian_totals(one: SumsAt) -> Totals:
    assert one.information is not None
    assert one.score is not None
    square, at = one.information, one.point
    cross = one.score + square @ at
    yty = None if one.deviance is None else float(one.deviance + 2.0 * at @ cross - at @ square @ at)
    return Totals(square, cross, yty)


def _totals_of_scores(known: Known) -> tuple[Totals, float]:
    """S_k = X'y − X'Xβ_k, linear in both."""
    scored = [(one.point, one.score) for one in known.sums if one.score is not None]
    return _affine(known, np.array([at for at, _ in scored]), np.array([score for _, score in scored]))


def _totals_of_steps(known: Known) -> tuple[Totals, float]:
    """w' = Aw + b with A = (I − rate·H)^steps: its root says H = X'X/n, and b = rate Σ_j (I − rate·H)^j X'y/n says X'y."""
    own = known.descent
    assert own is not None
    moved, error = _affine(known, own.received, own.returned - own.received, sure=False)
    values, vectors = np.linalg.eigh(np.eye(known.dim) - moved.XtX)
    if (values <= 0.0).any():
        raise ValueError("the map from weights to weights has no root: the rounds determine it badly")
    roots = values ** (1.0 / own.steps)
    square = vectors @ np.diag((1.0 - roots) / own.rate) @ vectors.T
    # Σ_j root^j = (1 − value)/(1 − root), which is `steps` where the root is 1.
    series = np.array([sum(root**j for j in range(own.steps)) for root in roots])
    cross = vectors @ ((vectors.T @ moved.Xty) / series) / own.rate
    gain = float((1.0 / (own.steps * np.maximum(values, 1e-300) ** (1.0 - 1.0 / own.steps))).max())
    return Totals(known.rows * square, known.rows * cross), error * max(gain, 1.0)


def _affine(known: Known, points: Matrix, values: Matrix, sure: bool = True) -> tuple[Totals, float]:
    """The symmetric M and the v with values_k = v − M·point_k; that M_00 = n is an equation more where M is X'X."""
    dim = known.dim
    pairs = list(itertools.combinations_with_replacement(range(dim), 2))
    lines = []
    for at in points:
        block = np.zeros((dim, len(pairs) + dim))
        for place, (a, b) in enumerate(pairs):
            block[a, place] -= at[b]
            if a != b:
                block[b, place] -= at[a]
        block[:, len(pairs) :] = np.eye(dim)
        lines.append(block)
    design, right = np.vstack(lines), values.ravel()
    if sure:
        first = np.zeros((1, design.shape[1]))
        first[0, 0] = 1.0
        design, right = np.vstack([design, first]), np.append(right, known.rows)
    size = np.linalg.norm(design, axis=0)
    found, _, rank, spread = np.linalg.lstsq(design / np.where(size, size, 1.0), right, rcond=known.rounding)
    if rank < design.shape[1]:
        raise ValueError(
            f"{len(points)} points give {rank} equations in the {design.shape[1]} numbers of X'X and X'y: too few, or too near to each other"
        )
    theta = found / size
    square = np.zeros((dim, dim))
    for place, (a, b) in enumerate(pairs):
        square[a, b] = square[b, a] = theta[place]
    return Totals(square, theta[len(pairs) :]), float(known.rounding * spread[0] / spread[-1])


# ---------------------------------------------------------------- who is alone


@register(SiteAttack, "who is alone")
def who_is_alone(known: Known) -> Learned:
    """Rows that are the only ones with a 1, or with a 0, in some column or in the outcome; n does not matter."""
    found, error = totals_of(known)
    rows: list[Vector] = []
    why: list[str] = []
    for name, count, ones in _columns_of_two_values(known, found):
        zeros = np.append(found.XtX[0], found.Xty[0]) - ones
        for many, sums, value in ((count, ones, 1), (known.rows - count, zeros, 0)):
            if many == 1 and known.rows > 1:
                rows.append(sums[1:])
                why.append(f"{name} = {value}")
    if not rows:
        raise ValueError("no column of two values has one row alone at a value")
    return Learned(
        f"The whole record of who is alone with {', '.join(why)} is known.", error < GOOD_ENOUGH, rows=np.array(rows), error=error
    )  # fmt: skip


def _columns_of_two_values(known: Known, found: Totals) -> Iterator[tuple[str, int, Vector]]:
    """Columns with Σx = Σx², a whole number, as they are of 0s and 1s: the name, how many 1s, and the sums over the rows with them."""
    for place, name in enumerate(known.columns[1:], 1):
        if _is_count(known, found.XtX[0, place], found.XtX[place, place]):
            yield name, round(found.XtX[0, place]), np.append(found.XtX[place], found.Xty[place])
    square = found.Xty[0] if known.family == "binomial" else found.yty
    if square is not None and _is_count(known, found.Xty[0], square):
        yield "the outcome", round(found.Xty[0]), np.append(found.Xty, square)


def _is_count(known: Known, total: float, square: float) -> bool:
    near = 1e-7 * max(known.rows, 1)
    return abs(total - square) < near and abs(total - round(total)) < near and 0 <= round(total) <= known.rows


# ---------------------------------------------------------------- tables of counts


@register(SiteAttack, "table of counts")
def table_of_counts(known: Known) -> Learned:
    """How many rows there are of each combination, where every column is 0 or 1, however many rows there are."""
    found, _ = totals_of(known)
    free = known.dim - 1
    if free < 1 or not _is_binary(known):
        raise ValueError("not every column is 0 or 1")
    if 2**free > MOST_KINDS:
        raise ValueError(f"{free} columns of two values have more than {MOST_KINDS} combinations")
    kinds = np.array(list(itertools.product((0.0, 1.0), repeat=free)))
    X = np.column_stack([np.ones(len(kinds)), kinds])
    least, most = _counts_of_rows(known, X, found)
    kinds_known = int((least == most).sum())
    words = f"Of {kinds_known} of the {len(kinds)} combinations of its columns it is known how many of the {known.rows} rows have them"
    if known.family != "binomial":
        return Learned(f"{words}.", True, counts=Counts(kinds, least[:, None], most[:, None]))
    cases, at_most = _whole_numbers(X.T, np.round(found.Xty), most)
    low = np.column_stack([least, (least - at_most).clip(0), cases])
    counts = Counts(kinds, low, np.column_stack([most, most - cases, at_most]))
    alone = _records_alone(counts)
    words += f", and of {counts.exact[1]} of {2 * len(kinds)} with which outcome"
    return Learned(f"{words}; {len(alone)} records are of one row.", True, rows=alone, counts=counts)


def _is_binary(known: Known) -> bool:
    """Whether every column but the constant is of 0s and 1s, as far as the totals say."""
    try:
        found, _ = totals_of(known)
    except ValueError:
        return False
    return all(_is_count(known, found.XtX[0, place], found.XtX[place, place]) for place in range(1, known.dim))


def _records_alone(counts: Counts) -> Matrix:
    """Records of which there is exactly one row, for sure."""
    found = [
        [*kind, outcome]
        for kind, least, most in zip(counts.kinds, counts.least, counts.most, strict=True)
        for outcome in (0.0, 1.0)
        if least[1 + int(outcome)] == most[1 + int(outcome)] == 1
    ]
    return np.array(found).reshape(-1, counts.kinds.shape[1] + 1)


def _counts_of_rows(known: Known, X: Matrix, found: Totals) -> tuple[Vector, Vector]:
    """n_x: linear equations by every information matrix; by whole numbers what these leave open."""
    upper = np.triu_indices(known.dim)
    products = (X[:, :, None] * X[:, None, :])[:, *upper].T
    design, right = [products], [found.XtX[upper]]
    for one in known.sums:
        if one.information is not None and one.point.any() and known.family == "binomial":
            chance = mean("binomial", X @ one.point).real
            design.append(products * (chance * (1.0 - chance)))
            right.append(one.information[upper])
    whole, sides = np.vstack(design), np.concatenate(right)
    size = np.maximum(np.abs(whole).max(axis=1), 1e-300)
    whole, sides = whole / size[:, None], sides / size
    counts, _, rank, spread = np.linalg.lstsq(whole, sides, rcond=1e-11)
    wrong = float(spread[0] / spread[-1]) * known.rounding * known.rows if rank == len(X) else np.inf
    near: Vector = np.array(np.round(counts), dtype=np.float64)
    fits = np.array_equal(products @ near, np.round(found.XtX[upper]))
    if wrong < 0.1 and np.abs(counts - near).max() < 0.2 and (near >= 0).all() and fits:
        return near, near
    return _whole_numbers(products, np.round(found.XtX[upper]), np.full(len(X), float(known.rows)))


def _whole_numbers(design: Matrix, right: Vector, most: Vector) -> tuple[Vector, Vector]:
    """The least and the most that each of some whole numbers can be, given sums of them: as numbers, then rounded inwards."""
    ends = np.zeros((2, design.shape[1]))
    for place, side in itertools.product(range(design.shape[1]), (0, 1)):
        cost = np.zeros(design.shape[1])
        cost[place] = 1.0 if side == 0 else -1.0
        best = scipy.optimize.linprog(cost, A_eq=design, b_eq=right, bounds=list(zip(0.0 * most, most, strict=True)))
        if best.x is None:
            raise ValueError("no numbers of rows have these sums: the columns are not 0 and 1 after all")
        ends[side, place] = best.x[place]
    return np.ceil(ends[0] - 1e-6), np.floor(ends[1] + 1e-6)


# ---------------------------------------------------------------- rows


@register(SiteAttack, "rows")
def rows(known: Known, starts: int = STARTS) -> Learned:
    """The rows one by one, where they are few."""
    if known.products is not None:
        raise ValueError("there are products of one column, which is found as a whole")
    if known.rows == 1:
        return _one_row(known)
    if known.family == "gaussian":
        return _two_gaussian_rows(known)
    if known.dim < 2:
        raise ValueError("there is no column but the constant: all rows are alike")
    if known.rows > MOST_ROWS:
        raise ValueError(f"{known.rows} rows are more than {MOST_ROWS}, where every search has failed long before")
    return _binomial_rows(known, starts)


def _one_row(known: Known) -> Learned:
    """x = S/S_0: the change of one row's weights goes along the row; y by its sign, or of a Gaussian model by its length."""
    if known.descent is not None:
        own = known.descent
        change = own.returned[0] - own.received[0]
        point, length = own.received[0], change[0] / own.rate
    elif (scored := next((one for one in known.sums if one.score is not None and np.any(one.score)), None)) is not None:
        assert scored.score is not None
        change, point = scored.score, scored.point
        length = change[0]
    else:
        raise ValueError("no score was sent, so that no row can be read from it")
    if change[0] == 0.0:
        raise ValueError("the one row was met exactly: its score is 0")
    x = change / change[0]
    if known.family == "binomial":
        outcome = float(length > 0.0)
    else:
        if known.descent is not None:
            shrinks = 1.0 - known.descent.rate * float(x @ x)
            length = length / sum(shrinks**j for j in range(known.descent.steps))
        outcome = float(point @ x + length)
    words = "Its one row is known: the score goes along it, and says by its sign what its outcome is."
    return Learned(words, True, rows=np.append(x[1:], outcome)[None], error=known.rounding)


def _two_gaussian_rows(known: Known) -> Learned:
    """Of two rows z = (x, y) the mean m and the covariance C = dd'/4 are known: they are m ± d/2."""
    found, error = totals_of(known)
    joint = found.joint
    if known.rows > 2 or joint is None:
        raise ValueError(
            "a Gaussian site says (X y)'(X y) and no more, however often it is asked: every rotation of three or more rows "
            "that leaves the constant column as it is says the same"
        )
    middle = joint[0, 1:] / 2.0
    covariance = joint[1:, 1:] / 2.0 - np.outer(middle, middle)
    values, vectors = np.linalg.eigh(covariance)
    half = np.sqrt(max(values[-1], 0.0)) * vectors[:, -1]
    found_rows: Matrix = np.array([middle + half, middle - half], dtype=np.float64)
    return Learned(
        "Both rows are known: their mean, and how far they are from it.", True, rows=found_rows, error=np.sqrt(error)
    )


# ---------------------------------------------------------------- rows of a binomial site, by least squares


def _binomial_rows(known: Known, starts: int) -> Learned:
    """Least squares from many starts, for each number of cases that there may be."""
    if 2 ** (known.dim - 1) <= MOST_KINDS and _is_binary(known):
        raise ValueError("every column is 0 or 1, so that rows are counted and not searched for")
    equations = _Equations(known)
    unknowns = known.rows * (known.dim - 1)
    if len(equations.target) < unknowns:
        raise ValueError(f"{len(equations.target)} equations are too few for {unknowns} unknown numbers")
    best, met = None, list[_Fit]()
    possible = _cases(known)
    agree = AGREE if len(equations.target) >= 2 * unknowns else AGREE_IF_TIGHT
    for cases in possible:
        own = 0
        for fit in equations.fits(cases, starts if len(possible) == 1 else max(2 * agree, 2 * starts // len(possible))):
            best = fit if best is None or fit.misfit < best.misfit else best
            if fit.meets:
                own += 1
                met.append(fit)
            # Two that agree, of all that were found, for each number of cases; two that differ settle that nothing is settled.
            if own == agree or not _alike(met):
                break
        if not _alike(met):
            break
    if best is None:
        raise ValueError("the sums differ between possible sites in fewer ways than there are unknown numbers")
    if met and not _alike(met):
        words = f"{known.rows} rows were looked for, and several sets of them meet every sum: which is the site's nobody can say."
        return Learned(words, False, rows=met[0].rows, error=np.inf)
    settled = len(met) >= agree and met[0].error < GOOD_ENOUGH
    words = (
        f"All {known.rows} rows are known, to {met[0].error:.0e} of how far they are apart."
        if settled
        else f"{known.rows} rows were looked for, and not found: the best of {starts} starts miss the sums by {best.misfit:.0e}, or leave them open."
    )
    return Learned(words, settled, rows=best.rows, error=best.error)


def _alike(met: list[_Fit]) -> bool:
    """Whether all are the same rows in some order."""
    return all(same_rows(met[0].rows, other.rows) for other in met[1:])


def same_rows(one: Matrix, other: Matrix) -> bool:
    """Whether these are the same rows in some order, as far as rows are told apart."""
    apart = np.where(one.std(axis=0) > 0.0, one.std(axis=0), np.maximum(np.abs(one).max(axis=0), 1e-300))
    off = np.abs((one[:, None, :] - other[None, :, :]) / apart).max(axis=2)
    return bool(off[scipy.optimize.linear_sum_assignment(off)].max() < 10.0 * GOOD_ENOUGH)


def _cases(known: Known) -> list[int]:
    """How many rows may have the outcome 1: what a sum at 0 says, or all numbers, the likeliest first."""
    for one in known.sums:
        if one.score is not None and not one.point.any():
            return [round(float(one.score[0]) + known.rows / 2.0)]
    if known.descent is not None and not known.descent.received[0].any():
        start = known.descent.returned[0][0] / (known.descent.rate * known.descent.steps)
        likely = known.rows * (start + 0.5)
    else:
        likely = known.rows / 2.0
    return sorted(range(known.rows + 1), key=lambda cases: abs(cases - likely))


@dataclass(frozen=True, eq=False)
class _Fit:
    """What one start led to: records, by how much they miss the sums, and how far off they may be."""

    rows: Matrix
    misfit: float
    error: float
    meets: bool


class _Equations:
    """What a site's rows would have to say, as a function of them: f(rows) = target."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.upper = np.triu_indices(known.dim)
        parts: list[Vector] = []
        for one in known.sums:
            parts += [] if one.score is None else [one.score]
            parts += [] if one.information is None else [one.information[self.upper]]
            parts += [] if one.deviance is None else [np.array([one.deviance])]
        if known.variances is not None:
            parts.append(np.log(known.variances[1]))
        if known.descent is not None:
            parts += list(known.descent.returned - known.descent.received)
        if not parts:
            raise ValueError("nothing was sent that says anything of single rows")
        self.target = np.concatenate(parts)
        # A score and an information of some size are right to so many digits of that size, however small the sum.
        self.size = np.concatenate([np.full(len(part), max(float(np.abs(part).max()), 1e-6)) for part in parts])
        for one, place in zip(known.sums, self._places(), strict=True):
            if one.score is not None:  # 0 at a site's own estimate, to the rounding of what was summed
                self.size[place : place + known.dim] = np.maximum(self.size[place : place + known.dim], self._typical)

    @property
    def _typical(self) -> float:
        known = [np.abs(one.information).max() for one in self.known.sums if one.information is not None]
        return float(max(known, default=1e-6))

    def _places(self) -> list[int]:
        places, at = [], 0
        for one in self.known.sums:
            places.append(at)
            at += 0 if one.score is None else self.known.dim
            at += 0 if one.information is None else len(self.upper[0])
            at += one.deviance is not None
        return places

    def say(self, free: Numbers, outcomes: Vector) -> Numbers:
        """What these rows say, free (…, n, p − 1); complex ones, too."""
        known = self.known
        X = np.concatenate([np.ones((*free.shape[:-1], 1)), free], axis=-1)
        parts: list[Numbers] = []
        for one in known.sums:
            score, information, deviance = sums_at(known.family, X, outcomes, one.point)
            parts += [] if one.score is None else [score]
            parts += [] if one.information is None else [information[..., self.upper[0], self.upper[1]]]
            parts += [] if one.deviance is None else [deviance[..., None]]
        if known.variances is not None:
            _, information, _ = sums_at(known.family, X, outcomes, known.variances[0])
            parts.append(np.log(np.diagonal(np.linalg.inv(information), axis1=-2, axis2=-1)))
        if known.descent is not None:
            own = known.descent
            parts += [descended(known.family, X, outcomes, at, own.rate, own.steps) - at for at in own.received]
        return np.concatenate(parts, axis=-1)

    def slopes(self, free: Matrix, outcomes: Vector) -> Matrix:
        """The derivative by every number of the rows, by complex steps."""
        count = free.size
        moved = np.broadcast_to(free, (count, *free.shape)).astype(np.complex128)
        moved = moved + 1e-30j * np.eye(count).reshape(count, *free.shape)
        return self.say(moved, outcomes).imag.T / 1e-30

    def fits(self, cases: int, starts: int) -> Iterator[_Fit]:
        """What each start leads to; as many cases stand first, since rows have no order."""
        known, count = self.known, self.known.rows
        outcomes = np.r_[np.ones(cases), np.zeros(count - cases)]
        random = np.random.default_rng([count, cases, known.dim])
        draw, anywhere = self._drawer(cases, random)
        samples = np.array([self.say(anywhere(), outcomes) for _ in range(6 * len(self.target))]).real
        _, spread, directions = np.linalg.svd(
            (samples - self.target) / self.size / np.sqrt(len(samples)), full_matrices=False
        )
        seen = spread > known.rounding * max(float(spread[0]), 1.0)
        if seen.sum() < count * (known.dim - 1):
            return
        white = directions[seen] / np.maximum(spread[seen], 10.0 * known.rounding)[:, None] / self.size
        for _ in range(starts):
            with np.errstate(all="ignore"):
                try:
                    near, misses = self._solve(white, draw(), outcomes)
                    if misses > FAR:
                        yield self._judged(near, outcomes)
                        continue
                    exactly, _ = self._solve(np.diag(1.0 / self.size), near, outcomes)
                    yield self._judged(exactly, outcomes)
                except (ValueError, np.linalg.LinAlgError):  # a start that ran off to infinity
                    continue

    def _drawer(self, cases: int, random: np.random.Generator) -> tuple[Callable[[], Matrix], Callable[[], Matrix]]:
        """Random rows of the same totals, as far as these are known, and rows of about the same size and place."""
        known, count, free = self.known, self.known.rows, self.known.dim - 1
        try:
            found, _ = totals_of(known)
        except ValueError:
            return (lambda: random.standard_normal((count, free)),) * 2
        middle = found.XtX[0, 1:] / count
        covariance = found.XtX[1:, 1:] / count - np.outer(middle, middle)
        values, vectors = np.linalg.eigh(covariance)
        # No direction is flat, or what differs along it would not be looked at.
        root = vectors * np.sqrt(np.maximum(values, 0.01 * max(float(values[-1]), 1e-12)))
        sums = (found.Xty[1:], found.XtX[0, 1:] - found.Xty[1:])

        def anywhere() -> Matrix:
            return middle + random.standard_normal((count, free)) @ root.T

        def draw() -> Matrix:
            drawn = anywhere()
            for group, total in zip((slice(0, cases), slice(cases, count)), sums, strict=True):
                if drawn[group].size:
                    drawn[group] += total / len(drawn[group]) - drawn[group].mean(axis=0)
            return drawn

        return draw, anywhere

    def _solve(self, weights: Matrix, start: Matrix, outcomes: Vector) -> tuple[Matrix, float]:
        shape = start.shape

        def missed(free: Vector) -> Vector:
            return weights @ (self.say(free.reshape(shape), outcomes).real - self.target)

        def slopes(free: Vector) -> Matrix:
            return weights @ self.slopes(free.reshape(shape), outcomes)

        found: Any = scipy.optimize.least_squares(
            missed, start.ravel(), slopes, method="lm", xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=EVALUATIONS
        )
        return np.array(found.x, dtype=np.float64).reshape(shape), float(np.sqrt(2.0 * found.cost))

    def _judged(self, free: Matrix, outcomes: Vector) -> _Fit:
        misfit = float(np.abs((self.say(free, outcomes).real - self.target) / self.size).max())
        slopes = self.slopes(free, outcomes) / self.size[:, None]
        apart = np.maximum(free.std(axis=0), 1e-300)
        scaled = slopes * np.tile(apart, len(free))
        least = float(np.linalg.svd(scaled, compute_uv=False)[-1]) if np.isfinite(scaled).all() else 0.0
        error = max(misfit, 1e-15) / least if least > 0.0 else np.inf
        both: Matrix = np.array(np.column_stack([free, outcomes]), dtype=np.float64)
        return _Fit(both, misfit, error, misfit < self.known.rounding)


# ---------------------------------------------------------------- one hidden column


@register(SiteAttack, "hidden column")
def hidden_column(known: Known) -> Learned:
    """A column from its products with known ones: as many linearly independent ones as there are rows determine it."""
    if known.products is None:
        raise ValueError("no products with known columns were sent")
    own = known.products
    found, _, rank, spread = np.linalg.lstsq(own.known, own.products, rcond=known.rounding)
    if rank < known.rows:
        raise ValueError(f"{len(own.known)} products are {rank} independent equations in {known.rows} values: too few")
    error = float(known.rounding * spread[0] / spread[-1])
    column: Matrix = np.array(found, dtype=np.float64)[:, None]
    words = f"All {known.rows} values of the hidden column are known, from {len(own.known) - 1} requests."
    return Learned(words, error < GOOD_ENOUGH, rows=column, error=error)
