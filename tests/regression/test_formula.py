"""Formulas: the columns that follow from them are those of patsy, and nothing in them is ever run."""

from __future__ import annotations

import numpy as np
import pandas as pd
import patsy
import pytest

from roundelay.regression.columns import Column
from roundelay.regression.formula import Formula, spline_columns

COLUMNS = (
    Column("y"), Column("age", "years"), Column("bmi"), Column("n"), Column("body mass"),
    Column("sex", values="levels", levels=("male", "female")),
    Column("clinic", values="levels", levels=("a", "b", "c d")),
)  # fmt: skip


def table(rows: int = 24) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "y": rng.normal(size=rows), "age": rng.uniform(20, 80, rows), "bmi": rng.uniform(18, 40, rows), "n": rng.uniform(1, 9, rows),
            "body mass": rng.uniform(50, 90, rows),
            "sex": pd.Categorical.from_codes(np.arange(rows) % 2, ["male", "female"]),
            "clinic": pd.Categorical.from_codes(np.arange(rows) % 3, ["a", "b", "c d"]),
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    "right",
    [
        "age", "age + bmi", "0 + age", "age - 1", "1", "age * sex", "age:sex", "sex * clinic", "0 + sex + clinic", "C(sex) * age + clinic",
        "log(n) + I(age ** 2)", "(age + bmi + n) ** 2", "I((age > 50) * 1.0) + sqrt(bmi)", "I(age / 10) : sex", "age + offset(log(n))", "bmi + weights(n)",
    ],
)  # fmt: skip
def test_the_columns_are_those_of_patsy(right):
    frame = table()
    formula = Formula(f"y ~ {right}", COLUMNS)
    names, design = formula.design(frame)
    plain = " + ".join(part for part in right.split(" + ") if not part.startswith(("offset", "weights")))
    functions = patsy.EvalEnvironment([{"log": np.log, "sqrt": np.sqrt}])
    other = patsy.dmatrix(plain, frame, functions, return_type="dataframe")
    assert names == formula.coefficients
    # The same columns, whatever their order.
    order = {name.replace(" ", ""): number for number, name in enumerate(other.columns)}
    assert sorted(name.replace(" ", "") for name in names) == sorted(order)
    assert design == pytest.approx(other.to_numpy()[:, [order[name.replace(" ", "")] for name in names]], rel=1e-12)


def test_every_level_has_its_column_whether_it_is_in_the_rows_or_not():
    frame = table()
    few = frame[frame.clinic == "a"]
    assert Formula("y ~ clinic", COLUMNS).design(few)[0] == ("Intercept", "clinic[T.b]", "clinic[T.c d]")
    assert not Formula("y ~ clinic", COLUMNS).design(few)[1][:, 1:].any()


def test_offset_weights_and_quoted_names_stand_beside():
    formula = Formula("y ~ age + `body mass` + offset(log(n)) + weights(bmi)", COLUMNS)
    assert formula.coefficients == ("Intercept", "age", "body mass")
    assert formula.names == ("y", "age", "bmi", "n", "body mass")
    frame = table()
    assert formula.numbers(formula.beside["offset"], frame) == pytest.approx(np.log(frame.n))
    assert formula.design(frame)[1][:, 2] == pytest.approx(frame["body mass"])


def test_splines_are_those_of_patsy_between_their_ends_and_go_on_beyond():
    x = np.linspace(20.0, 60.0, 50)
    knots = [20.0, 31.0, 44.0, 60.0]
    own = spline_columns(x, knots, 3)
    assert own == pytest.approx(
        np.asarray(patsy.bs(x, df=None, knots=knots[1:3], degree=3, lower_bound=20.0, upper_bound=60.0)), abs=1e-12
    )
    beyond = spline_columns(np.array([60.0, 61.0, 62.0, 63.0, 64.0]), knots, 3)
    assert np.abs(np.diff(beyond, 4, axis=0)).max() < 1e-9  # still one cubic
    names, design = Formula("y ~ bs(age, df=5)", COLUMNS).design(table(), {"bs(age, df=5)": (20.0, 40.0, 55.0, 80.0)})
    assert len(names) == 6 and np.isfinite(design).all()


def test_the_site_is_no_column():
    formula = Formula("y ~ age + sex + site", COLUMNS)
    assert formula.has_site and formula.names == ("y", "age", "sex")
    assert formula.coefficients == ("Intercept", "age", "sex[T.female]")
    assert Formula("y ~ 0 + sex + C(site)", COLUMNS).coefficients == ("Intercept", "sex[T.female]")
    with pytest.raises(ValueError, match="would have a coefficient for each site"):
        Formula("y ~ age * site", COLUMNS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("y age", "needs one ~"),
        ("y ~ age ~ bmi", "needs one ~"),
        ("y ~ height", "'height', which is no column: the columns are y, age"),
        ("y ~ log(sex)", "calculates with 'sex', which has levels"),
        ("y ~ C(age)", "was agreed to be a number"),
        ("y ~ log(age, bmi)", "takes one expression"),
        ("y ~ offset(age) + offset(bmi)", "more than once"),
        ("y ~ offset(age):bmi", "multiplies an offset"),
        ("y ~ 0", "nothing that could explain"),
        ("y ~ bs(age)", "write bs\\(column, df=4\\)"),
        ("y ~ bs(age, df=2)", "at least the degree"),
        ("y ~ bs(age, df=10 ** 9)", "write bs"),
        ("y ~ (age + bmi) ** 9", "multiplies too much out"),
        ("cbind(y) ~ age", "cbind in the formula takes two columns"),
        ("y ~ 'age'", ""),
        ("y ~ .", ""),
        ("y ~ age | bmi", ""),
        ("y ~ " + "+".join(["age"] * 3000), "characters"),
        ("y ~ __import__('os').system('true')", ""),
        ("y ~ age.__class__", ""),
        ("y ~ I([age for age in age])", ""),
        ("y ~ I(lambda: age)", ""),
        ("y ~ I(age if age else bmi)", ""),
        ("y ~ I((age := 3))", ""),
        ("y ~ poly(age, 3)", ""),
        ("y ~ hashed(sex, levels=4)", ""),
        ("y ~ I(" + "(" * 300 + "age" + ")" * 300 + ")", ""),
        ("y ~ I(" + "-" * 1900 + "age)", ""),
        ("y ~ I(9 ** 9 ** 9 ** age)", ""),
    ],
)
def test_what_is_no_formula_is_refused_in_a_sentence(text, sentence):
    def used() -> None:
        formula = Formula(text, COLUMNS)
        formula.design(table(), dict.fromkeys(formula.splines, (20.0, 80.0)))

    with pytest.raises(ValueError, match=sentence or None) as refused:
        used()
    said = str(refused.value)
    assert said.endswith(".") and "Traceback" not in said


def test_a_logarithm_of_what_has_none_is_named_with_the_number_of_rows():
    frame = table()
    frame.loc[[3, 5], "n"] = 0.0
    with pytest.raises(ValueError, match=r"'log\(n\)' of the formula is not a number in 2 of this site's rows"):
        Formula("y ~ log(n)", COLUMNS).design(frame)


@pytest.mark.parametrize("name", ["log", "C", "I", "bs"])
def test_a_column_may_be_called_as_a_function_is(name: str) -> None:
    """It was taken for the function, and the agent of whoever was sent such a plan ended without a word."""
    columns = (*COLUMNS, Column(name))
    frame = table().assign(**{name: np.arange(24.0)})
    others = "log(age) + C(sex) + I(bmi ** 2) + bs(n, df=4)"
    plain, quoted = Formula(f"y ~ {others}", columns), Formula(f"y ~ {others} + `{name}`", columns)
    assert plain.design(frame)[1].shape[1] + 1 == quoted.design(frame)[1].shape[1]
    assert quoted.design(frame)[0][-1] == name
    for term in (name, f"log({name})", f"I({name} ** 2)", f"C({name})", f"bs({name}, df=4)"):
        with pytest.raises(ValueError, match="write it between `backticks`"):
            Formula(f"y ~ age + {term}", columns)


@pytest.mark.parametrize("term", ["0x10", "1_0", "0x10 * age"])
def test_what_is_a_number_here_and_a_name_to_who_reads_the_notation_is_refused_in_words(term: str) -> None:
    with pytest.raises(ValueError, match="can't be read"):
        _ = Formula(f"y ~ {term}", COLUMNS).coefficients
