"""A result as text and as CSV: the numbers that were fitted, to as many digits as they are known, and no word that does anything."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest

from roundelay.regression.result import Strength
from roundelay.regression.shown.broom import as_csv, glance, tidy
from roundelay.regression.shown.pictures import pictures_of
from roundelay.regression.shown.printed import printed
from roundelay.regression.shown.tables import coefficients, in_words
from roundelay.shown.numbers import aligned, chance, fixed, printable, short
from tests.shown.examples import HOSTILE, binomial, cox, hostile, logit


def number(cell: str) -> float:
    return float(cell.replace("−", "-").replace(",", ""))


def test_every_cell_of_the_table_is_the_number_to_three_digits_of_its_error() -> None:
    result = binomial()
    table = coefficients(result)
    assert table.header[:6] == ("", "estimate", "std. error", "z", "p", "95 % from")
    for row, (name, value), error in zip(table.rows, logit().params.items(), logit().bse, strict=True):
        assert row[0] == name
        assert abs(number(row[1]) - value) <= 0.005 * error
        assert number(row[2]) == pytest.approx(error, rel=5e-3)
        assert abs(number(row[7]) - np.exp(value)) <= 0.01 * np.exp(value) * error


def test_what_is_not_known_of_any_coefficient_has_no_column() -> None:
    shrunk = tuple(
        replace(
            one,
            std_error=None,
            statistic=None,
            p_value=None,
            low=None,
            high=None,
            ratio_low=None,
            ratio_high=None,
            inflation=None,
        )
        for one in binomial().terms
    )
    table = coefficients(binomial(terms=shrunk))
    assert table.header == ("", "estimate", "odds ratio")
    assert in_words(binomial().terms[2], True) == "0.9348 (0.8912 to 0.9805)"
    assert in_words(shrunk[2], True) == "0.9348"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (chance(0.0), "<0.001"), (chance(0.00049), "<0.001"), (chance(0.0006), "0.001"), (chance(0.05), "0.050"),
        (fixed(-0.00000001, 3), "−1.00e−08"), (fixed(-0.0004, 3), "0.000"), (fixed(float("inf"), 2), "∞"),
        (fixed(123456.7, 1), "123,456.7"), (fixed(None, 2), "–"), (short(20.0), "20"), (short(0.0012345), "0.0012345"), (short(0.000012345), "1.23e−05"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_people_do(written: str, expected: str) -> None:
    assert written == expected


def test_points_stand_below_each_other() -> None:
    cells = aligned(("1.25", "−10", "<5", "0.125", "5.3 (0.2)"))
    assert cells == ("1.25 ", "−10    ", "<5    ", "0.125", "5.3 (0.2)")


def test_the_text_has_every_part_and_small_counts_are_not_in_it() -> None:
    text = printed(binomial())
    for words in (
        "odds ratio",
        "McFadden's R²",
        "Table 1",
        "Calibration",
        "Do the sites differ?",
        "Area under the ROC curve",
    ):
        assert words in text
    assert re.search(r"^prio +<5$", text, re.MULTILINE)
    assert "hazard ratio" in printed(cox()) and "Kaplan" in printed(cox())
    assert re.search("Converged: +NO", printed(binomial(converged=False)))


def test_the_path_of_a_penalty_says_which_strength_was_taken() -> None:
    path = tuple(Strength(2.0**-power, 0.5 + 0.01 * (power - 3) ** 2, 0.02, float(power)) for power in range(6))
    result = binomial(path=path, strength=0.125)
    taken = [line.split() for line in printed(result).splitlines() if line.endswith("taken")]
    assert taken == [["0.1250", "0.5000", "0.0200", "3.0", "taken"]]
    assert "penalty" in [one.name for one in pictures_of(result)]


def test_words_of_others_move_no_cursor() -> None:
    text = printed(hostile(binomial()))
    assert all(letter.isprintable() or letter == "\n" for letter in text)


def test_the_csv_is_broom_s_and_no_cell_of_it_calculates() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(tidy(binomial())))))
    assert list(rows[0])[:7] == ["term", "estimate", "std.error", "statistic", "p.value", "conf.low", "conf.high"]
    assert [float(row["estimate"]) for row in rows] == list(logit().params)
    assert rows[0]["vif"] == ""
    whole = glance(binomial())
    assert (whole["nobs"], whole["df.residual"], whole["AIC"], whole["deviance"]) == (
        432,
        424,
        logit().aic,
        logit().deviance,
    )
    for trick in ("=1+1", "@SUM(A1)", "+1", "-1", "\t=1"):
        terms = (replace(binomial().terms[0], name=trick),)
        assert next(csv.DictReader(io.StringIO(as_csv(tidy(binomial(terms=terms))))))["term"] == f"'{printable(trick)}"
    terms = (replace(binomial().terms[0], name=HOSTILE),)
    assert "\x1b" not in as_csv(tidy(binomial(terms=terms)))
