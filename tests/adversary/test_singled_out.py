"""A formula that singles out a person: whoever knows a patient's age to the day plans a regression whose coefficient is the outcome."""

from __future__ import annotations

import pytest

from roundelay.agents.agreement.policy import Policy, refused_rows
from roundelay.regression.pooled import glm, rows_of
from tests.agents.regression_rings import Drawn, Frames, regression_of
from tests.agents.test_regression_rings import FORMULAS

SITE, ROW = "site2", 7


def known_of(frames: Frames) -> tuple[float, float, float]:
    """What the planner knows of the patient: the age, and so what is just below and above it."""
    age = float(frames[SITE]["age"][ROW])
    return age, age - 1e-6, age + 1e-6


def formulas(frames: Frames) -> dict[str, str]:
    """Many ways to write it."""
    age, below, above = known_of(frames)
    one = f"(age > {below}) * (age < {above})"
    return {
        "product": f"length ~ dose + I({one})",
        "difference": f"length ~ dose + I(age > {below}) + I(age > {above})",
        "interaction": f"length ~ dose:I({one})",
        "curve": f"length ~ dose + I(exp(-1e6 * (age - {age}) ** 2))",
        "pole": f"length ~ dose + I(1 / abs(age - {age} + 1e-9))",
        "weights": f"length ~ 1 + weights(1e-9 + {one})",
        "all but one": f"length ~ 1 + weights(1 - {one})",
        "response": f"I(length * {one}) ~ dose",
        "offset": f"visits ~ dose + offset(-50 + 50 * {one})",
    }


def refused(frames: Frames, formula: str, family: str = "gaussian", **planned: object) -> dict[str, tuple[str, ...]]:
    """What each site's policy refuses of its own rows."""
    regression = regression_of(frames, formula, family, **planned)  # type: ignore[arg-type]
    return {name: refused_rows(Policy(), rows_of(regression, frame, name, "drop")) for name, frame in frames.items()}


def test_the_outcome_of_one_patient_is_a_coefficient() -> None:
    """The positive control: without the policy, in a sum over four sites that tells no site's part."""
    frames = Drawn().frames()
    fitted = glm(formulas(frames)["weights"], frames).coefficients["Intercept"]
    assert fitted == pytest.approx(float(frames[SITE]["length"][ROW]), abs=1e-5)


@pytest.mark.parametrize("way", list(formulas(Drawn().frames())))
def test_the_site_that_has_the_patient_does_not_take_part(way: str) -> None:
    frames = Drawn().frames()
    family = "poisson" if way == "offset" else "gaussian"
    said = refused(frames, formulas(frames)[way], family)[SITE]
    assert said and "is about fewer than 5 rows of this site" in said[0]


@pytest.mark.parametrize(
    ("formula", "family", "planned"),
    [
        *FORMULAS,
        ("length ~ age + I(age ** 2) + log(dose)", "gaussian", {}),
        ("length ~ I(age > 50) + sex:dose", "gaussian", {}),
        ("visits ~ sex + offset(log(dose))", "poisson", {}),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_people_fit_is_let_pass(formula: str, family: str, planned: dict[str, object]) -> None:
    assert not any(refused(Drawn().frames(), formula, family, **planned).values())


def test_a_number_that_few_have_is_as_a_level_that_few_have() -> None:
    frames = Drawn().frames()
    for frame in frames.values():
        frame["flag"] = 0.0
    frames[SITE].loc[ROW, "flag"] = 1.0
    assert {name for name, said in refused(frames, "length ~ age + flag").items() if said} == {SITE}
