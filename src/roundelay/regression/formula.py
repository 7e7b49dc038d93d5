"""A formula in Wilkinson's notation: what of a site's columns is explained by what, and the numbers that follow for each row.

    outcome ~ age + C(sex) * smoker + bs(bmi, df=4) + site + offset(log(years)) + weights(w)

formulaic reads the notation and says which columns keep a term from being there twice. A formula comes from whoever plans, and is never
run as Python: what stands in it is held against a short list of functions first, and a site computes with those alone.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from roundelay.kernels import Matrix, Vector
from roundelay.regression.columns import Column

if TYPE_CHECKING:
    import pandas as pd

FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "I": lambda value: value,
}
# The word for the site at which a row is: it gives each site a constant of its own, and is no column of the data.
SITE = "site"
# Of a term's own kind: levels, splines, and what stands beside the predictors.
LEVELS, SPLINE, BESIDE = "C", "bs", ("offset", "weights")
# What can't be called and a column at once.
RESERVED = frozenset((*FUNCTIONS, LEVELS, SPLINE))
# Responses of two columns.
COUNTS, SURVIVAL = "cbind", "Surv"
LONGEST, MOST_DEGREE, MOST_DF = 2000, 5, 50
# Each sign * may double the number of terms; multiplied out there may be so many, each of some of the coefficients, of which there may be so many.
MOST_STARS, MOST_POWER, MOST_TERMS, MOST_COEFFICIENTS = 10, 3, 20_000, 2000
_OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide, ast.Pow: np.power,
    ast.Gt: np.greater, ast.GtE: np.greater_equal, ast.Lt: np.less, ast.LtE: np.less_equal, ast.Eq: np.equal, ast.NotEq: np.not_equal,
}  # fmt: skip


class Spline(NamedTuple):
    """Piecewise polynomials of a degree over a column, with so many coefficients."""

    column: str
    df: int
    degree: int

    @property
    def inside(self) -> int:
        """How many knots there are between the two ends."""
        return self.df - self.degree


# The knots of each spline, as it is written in the formula: both ends and what is between them, in order.
Knots = Mapping[str, Sequence[float]]


@dataclass(frozen=True, eq=False)
class Formula:
    """A formula over columns: `text`, and the columns that it may name."""

    text: str
    columns: tuple[Column, ...]
    _aliases: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if len(self.text) > LONGEST:
            raise ValueError(f"The formula has {len(self.text)} characters: it may have {LONGEST}.")
        _ = self.response, self.terms
        self._check_use()

    # ------------------------------------------------------------ what is written

    @cached_property
    def _sides(self) -> tuple[str, str]:
        sides = re.sub("`([^`]*)`", lambda found: self._alias(found[1]), self.text).split("~")
        if len(sides) != 2 or not all(side.strip() for side in sides):
            raise ValueError(
                f"The formula {self.text!r} needs one ~, with what is explained before it and what explains it behind it."
            )
        return sides[0].strip(), sides[1].strip()

    def _alias(self, name: str) -> str:
        """A name without spaces for a column that is written between backticks."""
        alias = next(
            (alias for alias, other in self._aliases.items() if other == name), f"quoted_{len(self._aliases)}_"
        )
        self._aliases[alias] = name
        return alias

    def named(self, alias: str) -> str:
        """The column that a name in the formula stands for."""
        return self._aliases.get(alias, alias)

    @cached_property
    def response(self) -> tuple[str, tuple[ast.expr, ...]]:
        """What is explained: an expression; "cbind" with successes and failures; or "Surv" with time and event."""
        side = self._parsed(self._sides[0])
        if isinstance(side, ast.Call) and isinstance(side.func, ast.Name) and side.func.id in (COUNTS, SURVIVAL):
            if len(side.args) != 2 or side.keywords:
                words = "successes, failures" if side.func.id == COUNTS else "time, event"
                raise ValueError(f"{side.func.id} in the formula takes two columns: {side.func.id}({words}).")
            parts = tuple(side.args)
            for part in parts:
                self._check(part)
            return side.func.id, parts
        self._check(side, levels=isinstance(side, ast.Name))
        return "", (side,)

    @cached_property
    def response_names(self) -> tuple[str, ...]:
        """The columns of which what is explained is made."""
        used = {
            self.named(node.id) for part in self.response[1] for node in ast.walk(part) if isinstance(node, ast.Name)
        }
        return tuple(column.name for column in self.columns if column.name in used)

    @cached_property
    def _all_terms(self) -> tuple[Any, ...]:
        formulaic = _formulaic()
        plain = re.sub(r"\w+\([^()]*\)", "", self._sides[1])
        if plain.count("*") > MOST_STARS or any(
            int(power) > MOST_POWER for power in re.findall(r"(?:\*\*|\^)\s*(\d+)", plain)
        ):
            raise ValueError(
                f"The formula multiplies too much out: it may have {MOST_STARS} signs * and the power {MOST_POWER} between its terms. Write the "
                "interactions that are meant one by one, with a colon."
            )
        self._check_length()
        try:
            read = formulaic.Formula(self._sides[1])
        except Exception as error:  # of many kinds, with drawings in them
            raise self._unreadable(error) from None
        if not isinstance(read, formulaic.SimpleFormula):
            raise ValueError(f"The formula {self.text!r} has several parts behind its ~: write one.")
        return tuple(read)

    def _unreadable(self, error: Exception) -> ValueError:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return ValueError(f"The formula {self.text!r} can't be read: {first.rstrip('.')}.")

    def _check_length(self) -> None:
        """Refuse what would be multiplied out for hours, before it is."""
        python = self._sides[1].replace("%in%", "/").replace("^", "**").replace(":", "@")
        try:
            count = _terms_at_most(self._parsed(python))
        except RecursionError:
            count = MOST_TERMS + 1
        if count > MOST_TERMS:
            raise ValueError(f"The formula multiplies too much out: it may have {MOST_TERMS:,} terms.")

    def _check_width(self, terms: Sequence[Any]) -> None:
        """Refuse more coefficients than there may be, before there is a column of numbers for each."""
        width = sum(math.prod(self._width(factor.expr) for factor in term.factors) for term in terms)
        if width > MOST_COEFFICIENTS:
            raise ValueError(
                f"The formula has at least {width:,} coefficients, and there may be {MOST_COEFFICIENTS:,}: leave out terms or levels."
            )

    def _width(self, expression: str) -> int:
        """How many columns of numbers a factor has at least."""
        parsed, call = self._parsed(expression), _call(expression)
        if call is not None and call.func.id == SPLINE:  # type: ignore[attr-defined]
            return self._spline(expression, call).df
        name = parsed.args[0] if isinstance(parsed, ast.Call) and parsed.args else parsed
        column = self._column(name.id) if isinstance(name, ast.Name) else None
        return max(len(column.levels) - 1, 1) if column is not None and column.values == "levels" else 1

    @cached_property
    def terms(self) -> tuple[Any, ...]:
        """The terms that have coefficients, as formulaic has them."""
        found = []
        for term in self._all_terms:
            if self._names_site(term):
                continue
            sides = [self._beside(factor.expr) for factor in term.factors]
            if any(sides):
                if len(sides) > 1:
                    raise ValueError(
                        f"{term} in the formula multiplies an offset or weights with something: let each stand by itself."
                    )
                continue
            for factor in term.factors:
                self._check_factor(factor.expr)
            found.append(term)
        if self.has_site and not any(str(term) == "1" for term in found):
            # Levels are told from a reference where sites have constants, as where all rows have one.
            found.insert(0, next(iter(_formulaic().Formula("1"))))
        if not found:
            raise ValueError(
                f"The formula {self.text!r} has nothing that could explain anything: write 1 for a constant alone."
            )
        self._check_width(found)
        return tuple(found)

    def _names_site(self, term: Any) -> bool:
        """Whether a term is the site; multiplied with something, it would tell what each site has alone."""
        names = [factor.expr.strip() in (SITE, f"{LEVELS}({SITE})") for factor in term.factors]
        if any(names) and len(names) > 1:
            raise ValueError(
                f"{term} in the formula would have a coefficient for each site, which tells what that site has: write {SITE} by itself, which "
                "gives each site a constant of its own that nobody else sees."
            )
        return any(names)

    def _beside(self, expression: str) -> bool:
        parsed = _call(expression)
        return parsed is not None and parsed.func.id in BESIDE  # type: ignore[attr-defined]

    @cached_property
    def beside(self) -> Mapping[str, ast.expr]:
        """The offset and the weights, as far as there are any."""
        found: dict[str, ast.expr] = {}
        for term in self._all_terms:
            call = _call(term.factors[0].expr) if len(term.factors) == 1 else None
            if call is None or call.func.id not in BESIDE:  # type: ignore[attr-defined]
                continue
            what = call.func.id  # type: ignore[attr-defined]
            if what in found or len(call.args) != 1 or call.keywords:
                raise ValueError(
                    f"The formula has {what} more than once, or not of one expression: write {what}(…) once."
                )
            self._check(call.args[0])
            found[what] = call.args[0]
        return found

    @cached_property
    def splines(self) -> Mapping[str, Spline]:
        """The splines by how they are written."""
        found = {}
        for term in self.terms:
            for factor in term.factors:
                call = _call(factor.expr)
                if call is not None and call.func.id == SPLINE:  # type: ignore[attr-defined]
                    found[factor.expr] = self._spline(factor.expr, call)
        return found

    @property
    def has_intercept(self) -> bool:
        """Whether there is a constant among the terms."""
        return any(str(term) == "1" for term in self.terms)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns that the formula names, in the order of the columns; the site is none of them."""
        parts = [*self.response[1], *(self._parsed(factor.expr) for term in self._all_terms for factor in term.factors)]
        return self._names_in(parts)

    @cached_property
    def predictors(self) -> tuple[str, ...]:
        """Those of them by which a row is predicted, the offset included."""
        parts = [self._parsed(factor.expr) for term in self.terms for factor in term.factors]
        return self._names_in([*parts, *([self.beside["offset"]] if "offset" in self.beside else [])])

    def names_in(self, *expressions: str) -> tuple[str, ...]:
        """The columns that some expressions name."""
        return self._names_in([self._parsed(one) for one in expressions])

    def _names_in(self, parts: Sequence[ast.expr]) -> tuple[str, ...]:
        called = {id(node.func) for part in parts for node in ast.walk(part) if isinstance(node, ast.Call)}
        nodes = [
            node for part in parts for node in ast.walk(part) if isinstance(node, ast.Name) and id(node) not in called
        ]
        used = {self.named(node.id) for node in nodes}
        return tuple(column.name for column in self.columns if column.name in used and column.name != SITE)

    @property
    def has_site(self) -> bool:
        """Whether the site itself is one of the predictors."""
        return any(self._names_site(term) for term in self._all_terms)

    # ------------------------------------------------------------ what may be written

    def _parsed(self, expression: str) -> ast.expr:
        try:
            return ast.parse(expression.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ValueError(
                f"{expression!r} in the formula can't be read: write names of columns, numbers and functions."
            ) from None

    def _column(self, alias: str) -> Column:
        name = self.named(alias)
        found = next((column for column in self.columns if column.name == name), None)
        if found is None:
            known = ", ".join(column.name for column in self.columns)
            raise ValueError(
                f"The formula names {name!r}, which is no column: the columns are {known}. Write a name with spaces between `backticks`."
            )
        return found

    def _check(self, node: ast.expr, levels: bool = False) -> None:
        """Refuse what is not plain arithmetic on columns of numbers; a column of levels may stand alone."""
        if isinstance(node, ast.Name):
            column = self._column(node.id)
            if node.id in RESERVED:  # formulaic would take the column for the function
                raise ValueError(
                    f"The column {node.id!r} is called as a function of formulas is: write it between `backticks`, or rename it."
                )
            if column.values == "levels" and not levels:
                raise ValueError(
                    f"The formula calculates with {column.name!r}, which has levels and no numbers: use it by itself."
                )
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, bool) or not isinstance(node.value, int | float):
                raise ValueError(f"The formula has {node.value!r}, which is no number.")
        elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            if isinstance(node.op, ast.Pow) and not any(isinstance(one, ast.Name) for one in ast.walk(node)):
                # 9 ** 9 ** 9 has more digits than there is memory.
                raise ValueError(
                    f"The formula has {ast.unparse(node)!r}, a power of numbers alone: write the number that it comes to."
                )
            self._check(node.left)
            self._check(node.right)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            self._check(node.operand)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
            self._check(node.left)
            self._check(node.comparators[0])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            if len(node.args) != 1 or node.keywords:
                raise ValueError(f"{node.func.id} in the formula takes one expression.")
            self._check(node.args[0])
        else:
            raise ValueError(
                f"The formula has {ast.unparse(node)!r}, which is not understood: it may calculate with columns and numbers by + - * / ** and "
                f"comparisons, and by the functions {', '.join(FUNCTIONS)}; {LEVELS}(column) and {SPLINE}(column, df=4) stand by themselves."
            )

    def _check_factor(self, expression: str) -> None:
        call = _call(expression)
        name = "" if call is None else call.func.id  # type: ignore[attr-defined]
        if name == LEVELS:
            assert call is not None
            if len(call.args) != 1 or call.keywords or not isinstance(call.args[0], ast.Name):
                raise ValueError(
                    f"{expression!r} in the formula: write {LEVELS}(column); the reference level stands in the plan."
                )
            self._check(call.args[0], levels=True)
            if self._column(call.args[0].id).values != "levels":
                raise ValueError(
                    f"{expression!r} in the formula takes {call.args[0].id!r} for levels, but it was agreed to be a number: plan with its levels."
                )
        elif name == SPLINE:
            assert call is not None
            self._spline(expression, call)
        else:
            node = self._parsed(expression)
            self._check(node, levels=isinstance(node, ast.Name))

    def _spline(self, expression: str, call: ast.Call) -> Spline:
        options = {one.arg: one.value for one in call.keywords}
        numbers = {name: getattr(value, "value", None) for name, value in options.items()}
        df, degree = numbers.get("df"), numbers.get("degree", 3)
        plain = len(call.args) == 1 and isinstance(call.args[0], ast.Name) and set(options) <= {"df", "degree"}
        whole = all(isinstance(one, int) and not isinstance(one, bool) for one in (df, degree))
        if not plain or not whole or not 1 <= degree <= MOST_DEGREE or not degree <= df <= MOST_DF:  # type: ignore[operator]
            raise ValueError(
                f"{expression!r} in the formula: write {SPLINE}(column, df=4), where df is at least the degree, which is 3 unless degree=… says "
                f"otherwise, and at most {MOST_DF}."
            )
        self._check(call.args[0])
        return Spline(self.named(call.args[0].id), df, degree)  # type: ignore[attr-defined, arg-type]

    def _check_use(self) -> None:
        _ = self.beside, self.splines
        for name in self.names:
            column = self._column(name)
            if column.values == "levels" and len(column.levels) < 2:
                raise ValueError(
                    f"The column {name!r} has {len(column.levels)} level{'s' * (len(column.levels) != 1)}: one to be told from another takes two."
                )

    # ------------------------------------------------------------ what every formula may calculate

    @cached_property
    def calculations(self) -> tuple[str, ...]:
        """All that is calculated but polynomials of a column, up to its cube, and logarithms and roots of one, as it is or times a number or one more.

        Of these nobody can make what is about one person: they rise, or have a bend, where the column itself does. A limit may lie anywhere, and
        sums, products and quotients of several can come to anything.
        """
        factors = [
            self._parsed(factor.expr)
            for term in self.terms
            for factor in term.factors
            if not self._of_a_kind(factor.expr)
        ]
        written = [*self.response[1], *self.beside.values(), *factors]
        calculated = [self.spoken(ast.unparse(inside(node))) for node in written if not _is_simple(node)]
        return tuple(
            dict.fromkeys([*calculated, *(self.spoken(str(term)) for term in self.terms if self._is_bent(term))])
        )

    def _is_bent(self, term: Any) -> bool:
        """Whether a term multiplies what it has of one column to more than its cube: a number in several of its factors."""
        degrees: dict[str, int | None] = {}
        levels = {column.name for column in self.columns if column.values == "levels"}
        for factor in term.factors:
            for name in {*self.names_in(factor.expr)} - levels:
                degree, before = _degree(self._parsed(factor.expr)), degrees.get(name, 0)
                if name in degrees and (degree is None or before is None or before + degree > HIGHEST):
                    return True
                degrees[name] = degree if degree is None or before is None else before + degree
        return False

    def _of_a_kind(self, expression: str) -> bool:
        """Whether it is a column's levels, or a spline."""
        call = _call(expression)
        return call is not None and call.func.id in (LEVELS, SPLINE)  # type: ignore[attr-defined]

    # ------------------------------------------------------------ what follows for each row

    def value(self, node: ast.expr, table: pd.DataFrame) -> Any:
        """An expression for all rows."""
        if isinstance(node, ast.Name):
            column = table[self.named(node.id)]
            if self._column(node.id).values == "levels":
                return column.cat.codes.to_numpy(np.float64)
            return column.to_numpy(np.float64)
        if isinstance(node, ast.Constant):
            return float(node.value)  # type: ignore[arg-type]
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](self.value(node.left, table), self.value(node.right, table))
        if isinstance(node, ast.UnaryOp):
            operand = self.value(node.operand, table)
            return -operand if isinstance(node.op, ast.USub) else operand
        if isinstance(node, ast.Compare):
            pair = self.value(node.left, table), self.value(node.comparators[0], table)
            return np.asarray(_OPERATORS[type(node.ops[0])](*pair), np.float64)
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        return FUNCTIONS[node.func.id](self.value(node.args[0], table))

    def numbers(self, node: ast.expr, table: pd.DataFrame) -> Vector:
        """An expression for all rows, as a vector of finite numbers."""
        with np.errstate(all="ignore"):
            values = np.broadcast_to(np.asarray(self.value(node, table), np.float64), (len(table),)).copy()
        self._check_finite(values[:, None], [self.spoken(ast.unparse(node))])
        return values

    def design(self, table: pd.DataFrame, knots: Knots | None = None) -> tuple[tuple[str, ...], Matrix]:
        """The names of the coefficients, and a column of numbers for each; every level counts, whether it is in these rows or not.

        Without knots, splines have some: then only the names count.
        """
        formulaic = _formulaic()
        renamed = {name: f"{name}_as_it_is" for name in RESERVED} | {
            name: alias for alias, name in self._aliases.items()
        }
        aliased = table.rename(columns=renamed)
        context = {**FUNCTIONS, SPLINE: _Splines(self, {} if knots is None else knots)}
        try:
            with np.errstate(all="ignore"):
                made = formulaic.model_matrix(
                    formulaic.Formula(list(self.terms)), aliased, context=context, na_action="ignore", output="numpy"
                )
        except formulaic.errors.FormulaicError as error:  # 0x10, say, is a number here and a name there
            raise self._unreadable(error) from None
        names = tuple(self.spoken(name) for name in made.model_spec.column_names)
        matrix = np.ascontiguousarray(np.asarray(made, np.float64).reshape(len(table), len(names)))
        self._check_finite(matrix, names)
        return names, matrix

    @cached_property
    def coefficients(self) -> tuple[str, ...]:
        """The names of the coefficients, which do not depend on any site's data."""
        import pandas as pd

        most = max((len(column.levels) for column in self.columns), default=0)
        count = max(most, 8)
        made: dict[str, Any] = {}
        for column in self.columns:
            if column.values == "levels" and column.levels:
                words = [column.levels[number % len(column.levels)] for number in range(count)]
                made[column.name] = pd.Categorical(words, list(column.levels))
            else:
                made[column.name] = np.linspace(1.0, 2.0, count)
        # What the numbers here are does not matter: a logarithm of them need not exist.
        return self._without_check().design(pd.DataFrame(made))[0]

    def typical_sizes(self, numbers: Mapping[str, tuple[float, float]], knots: Knots) -> dict[str, float]:
        """How large each coefficient's column is in rows that are drawn by means and deviations: a power of two, the same wherever it is computed.

        1 where no row of those has a number but 0.
        """
        import pandas as pd

        rng, count = np.random.default_rng(0), 256
        made: dict[str, Any] = {}
        for column in self.columns:
            if column.values == "levels" and column.levels:
                words = [column.levels[number % len(column.levels)] for number in rng.permutation(count)]
                made[column.name] = pd.Categorical(words, list(column.levels))
            else:
                mean, spread = numbers.get(column.name, (1.0, 0.5))
                made[column.name] = mean + spread * rng.standard_normal(count)
        names, matrix = self._without_check().design(pd.DataFrame(made), knots)
        with np.errstate(all="ignore"):
            squares = np.where(np.isfinite(matrix), matrix, 0.0) ** 2
            powers = np.round(0.5 * np.log2(squares.mean(axis=0)))
        sizes = np.where(np.isfinite(powers), 2.0 ** np.clip(powers, -500.0, 500.0), 1.0)
        return dict(zip(names, sizes.tolist(), strict=True))

    def _without_check(self) -> Formula:
        return _Unchecked(self.text, self.columns)

    def spoken(self, name: str) -> str:
        """A coefficient as people read it: with the columns' own names."""
        for alias, own in self._aliases.items():
            name = name.replace(alias, own)
        return name

    def _check_finite(self, matrix: Matrix, names: Sequence[str]) -> None:
        bad = ~np.isfinite(matrix)
        if bad.any():
            name = names[int(np.argmax(bad.any(axis=0)))]
            raise ValueError(
                f"{name!r} of the formula is not a number in {int(bad.any(axis=1).sum()):,} of this site's rows: a logarithm of 0, say, or a "
                "division by it. Change the formula, or leave those cells empty."
            )


class _Unchecked(Formula):
    def _check_finite(self, matrix: Matrix, names: Sequence[str]) -> None:
        """Only the names are wanted."""


class _Splines:
    """`bs` as the formula calls it."""

    def __init__(self, formula: Formula, knots: Knots) -> None:
        self.formula, self.knots = formula, knots

    def __call__(self, values: Any, df: int, degree: int = 3) -> Any:
        from formulaic.materializers.types import FactorValues

        x = np.asarray(values, np.float64)
        spline = next(
            one for one in self.formula.splines.items() if one[1][1:] == (df, degree) and self._is_of(one[1], values)
        )
        ends = self.knots.get(spline[0])
        if ends is None:
            ends = np.linspace(float(x.min()), float(x.max()), spline[1].inside + 2).tolist()
        columns = spline_columns(x, ends, degree)
        return FactorValues(
            {str(number + 1): columns[:, number] for number in range(columns.shape[1])},
            kind="numerical",
            format="{name}[{field}]",
        )

    def _is_of(self, spline: Spline, values: Any) -> bool:
        return str(getattr(values, "name", "")) in (
            spline.column,
            *(a for a, n in self.formula._aliases.items() if n == spline.column),
        )


def spline_columns(x: Vector, knots: Sequence[float], degree: int) -> Matrix:
    """B-splines but for the first, which the constant stands for; beyond the ends they go on as straight lines.

    As polynomials they would be about the largest value alone, where a column has a long tail.
    """
    from scipy.interpolate import BSpline  # late: it takes long, and few formulas have splines

    low, high = knots[0], knots[-1]
    whole = np.concatenate([np.full(degree, low), np.asarray(knots, np.float64), np.full(degree, high)])
    basis = BSpline(whole, np.eye(len(whole) - degree - 1), degree, extrapolate=True)
    within = np.clip(x, low, high)
    return np.asarray(basis(within) + (x - within)[:, None] * basis(within, 1), np.float64)[:, 1:]


def names_in(formula: str) -> set[str]:
    """What may be names of columns in a formula that was not held against any columns yet."""
    return {*re.findall(r"`([^`]*)`", formula), *re.findall(r"[^\W\d]\w*", formula)} - {SITE}


def factors_in(formula: str) -> set[str]:
    """The names that a formula takes for columns of levels."""
    return {*re.findall(rf"\b{LEVELS}\(\s*`?([^`)]*?)`?\s*\)", formula)}


def _terms_at_most(node: ast.expr) -> int:
    """How many terms there are, multiplied out; @ stands for a colon."""
    if not isinstance(node, ast.BinOp):
        return _terms_at_most(node.operand) if isinstance(node, ast.UnaryOp) else 1
    left = _terms_at_most(node.left)
    if isinstance(node.op, ast.Pow):
        power = node.right.value if isinstance(node.right, ast.Constant) else None
        return (
            (min(left, MOST_TERMS) + 1) ** MOST_POWER
            if isinstance(power, int) and power <= MOST_POWER
            else MOST_TERMS + 1
        )
    right = _terms_at_most(node.right)
    if isinstance(node.op, ast.Add | ast.Sub):
        return left + right
    return left * right + (0 if isinstance(node.op, ast.MatMult) else left + right)


# The highest power of a column that every formula may have, and the functions of one that rise with it everywhere.
HIGHEST, RISING = 3, ("log", "log2", "log10", "log1p", "sqrt")


def inside(node: ast.expr) -> ast.expr:
    """What I(…) stands around."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "I":
        node = node.args[0]
    return node


def _is_simple(node: ast.expr) -> bool:
    """A polynomial of one column, or a rising function of the column, of a multiple of it, or of one more."""
    node = inside(node)
    if isinstance(node, ast.Call):
        inner = inside(node.args[0])
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add):  # log(1 + x)
            sides = [inside(inner.left), inside(inner.right)]
            inner = next((one for one in sides if not (isinstance(one, ast.Constant) and one.value == 1)), inner)
        return isinstance(node.func, ast.Name) and node.func.id in RISING and _is_multiple(inner)
    columns = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    degree = _degree(node)
    return len(columns) <= 1 and degree is not None and degree <= HIGHEST


def _is_multiple(node: ast.expr) -> bool:
    """A column, or a multiple of it: to this nothing was added, so that it is 0 where the column is."""
    return _degree(node) == 1 and not any(isinstance(one, ast.Add | ast.Sub) for one in ast.walk(node))


def _degree(node: ast.expr) -> int | None:
    """The degree of a polynomial; None for anything else."""
    node = inside(node)
    if isinstance(node, ast.Name):
        return 1
    if isinstance(node, ast.Constant):
        return 0
    if isinstance(node, ast.UnaryOp):
        return _degree(node.operand)
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _degree(node.left), _degree(node.right)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Pow):
        power = node.right.value if isinstance(node.right, ast.Constant) else None
        return left * power if isinstance(power, int) and power > 0 else None
    if isinstance(node.op, ast.Div):
        return left if right == 0 else None
    return left + right if isinstance(node.op, ast.Mult) else max(left, right)


def _call(expression: str) -> ast.Call | None:
    """The call of a named function that an expression is; None where it is something else."""
    try:
        parsed = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return parsed if isinstance(parsed, ast.Call) and isinstance(parsed.func, ast.Name) else None


def _formulaic() -> Any:
    try:
        import formulaic
    except ImportError:
        raise ImportError(
            "A formula needs the package formulaic: install it by pip install 'roundelay[regression]'."
        ) from None
    return formulaic
