"""Every sentence of the paper that can be checked: what was measured, the threshold, and so the verdict."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from roundelay.comparison.field_methods import KINDS, Kind
from roundelay.paper.accuracy import piece_name, seeds_of, units_to_level, wins_of
from roundelay.paper.beyond import GAMMA_RUN
from roundelay.paper.counting import COUNTS
from roundelay.paper.document import Check, Claim, Found
from roundelay.paper.eavesdropping import SOLVED, STOPPED, eavesdropping_name
from roundelay.paper.inference import BACKWARDS, BROKEN, EXACTLY
from roundelay.paper.readings import DEVIATION, SCALING, SIGN
from roundelay.paper.settings import I_ADMM, METRICS, OURS, PANELS, PI_ADMM1, RIVALS, W_ADMM
from roundelay.paper.theory import CASES, LIMITS
from roundelay.paper.variations import CONNECTIVITY, FIRST_ORDER, HAMILTONIAN, INEXACT, RESIDUE, STRAGGLER

Checks = Callable[[Found], tuple[Check, ...]]


# ---------------------------------------------------------------- Figs. 3 and 5


def _median_units(found: Found, kind: Kind, panel: int, method: str, metric: str) -> float:
    return float(np.median(units_to_level(found, kind, PANELS[panel], method, metric)))


def _against(found: Found, kind: Kind, method: str, others: tuple[str, ...], metrics: tuple[str, ...]) -> float:
    """The method's median units over those of the best of the others, in the worst panel and metric."""
    ratios = [
        _median_units(found, kind, panel, method, metric)
        / min(_median_units(found, kind, panel, other, metric) for other in others)
        for panel in range(len(PANELS))
        for metric in metrics
    ]
    return max(ratios)


def _cheapest_squares(found: Found) -> tuple[Check, ...]:
    among = (I_ADMM, *RIVALS)
    wins = min(wins_of(found, "least squares", panel, I_ADMM, metric, among) for panel in PANELS for metric in METRICS)
    seeds = found[piece_name("least squares", PANELS[0], I_ADMM)].numbers["seeds"]
    return (
        Check(
            "units of I-ADMM over those of the best rival, worst panel",
            _against(found, "least squares", I_ADMM, RIVALS, METRICS), "≤", 1.0,
        ),
        Check("seeds in which I-ADMM is the cheapest, worst panel", wins, "≥", 0.5 * seeds),
    )  # fmt: skip


def _cheapest_logistic(found: Found) -> tuple[Check, ...]:
    return tuple(
        Check(
            f"units of {method} over those of the best rival, worst panel and metric",
            _against(found, "logistic", method, RIVALS, METRICS), "≤", 1.0,
        )
        for method in OURS
    )  # fmt: skip


def _cheapest_logistic_without_noise(found: Found) -> tuple[Check, ...]:
    return _cheapest_logistic(found)[:2]


def _faster_than_walk(found: Found) -> tuple[Check, ...]:
    return tuple(
        Check(
            f"iterations of I-ADMM over those of W-ADMM, {kind}, worst panel",
            _against(found, kind, I_ADMM, (W_ADMM,), METRICS), "≤", 1.0,
        )
        for kind in KINDS
    )  # fmt: skip


def _value_at(found: Found, method: str, metric: str, units: float) -> float:
    table = found[piece_name("least squares", PANELS[0], method)].tables[f"{metric} curve"]
    return float(np.interp(units, table["units"], table["median"]))


EARLY = 300.0


METRIC_WORDS = {"accuracy": "accuracy", "error": "common error"}


def _slow_then_fast(*metrics: str) -> Checks:
    def checks(found: Found) -> tuple[Check, ...]:
        early = {
            metric: _value_at(found, PI_ADMM1, metric, EARLY) / _value_at(found, W_ADMM, metric, EARLY)
            for metric in metrics
        }
        late = _against(found, "least squares", PI_ADMM1, (W_ADMM,), METRICS)
        return (
            *(
                Check(f"{METRIC_WORDS[metric]} of PI-ADMM1 over that of W-ADMM at {EARLY:.0f} units", ratio, "≥", 1.0)
                for metric, ratio in early.items()
            ),
            Check("units to 1e-6 of PI-ADMM1 over those of W-ADMM, worst panel and metric", late, "≤", 1.0),
        )

    return checks


def slope_ratio(found: Found, kind: Kind, panel: int) -> float:
    """The median slope of PI-ADMM1 over that of I-ADMM."""
    ours, plain = (
        float(np.nanmedian(seeds_of(found, kind, PANELS[panel], method)["slope"])) for method in (PI_ADMM1, I_ADMM)
    )
    return ours / plain


def _same_slope(found: Found) -> tuple[Check, ...]:
    gaps = [abs(slope_ratio(found, "least squares", panel) - 1.0) for panel in range(len(PANELS))]
    return (Check("largest deviation of PI-ADMM1's slope from I-ADMM's, between 1e-4 and 1e-9", max(gaps), "≤", 0.15),)


def _almost_same_cost(metric: str) -> Checks:
    def checks(found: Found) -> tuple[Check, ...]:
        return tuple(
            Check(
                f"units of PI-ADMM1 over those of I-ADMM, {kind}, {METRIC_WORDS[metric]}, worst panel",
                _against(found, kind, PI_ADMM1, (I_ADMM,), (metric,)), "≤", 1.3,
            )
            for kind in KINDS
        )  # fmt: skip

    return checks


def _floor(found: Found) -> tuple[Check, ...]:
    numbers = found[DEVIATION].numbers
    checks: list[Check] = []
    for metric in ("error", "accuracy"):
        small, large = (numbers[f"deviation {sigma}: floor of the {metric}"] for sigma in ("1e-3", "1e-2"))
        words = METRIC_WORDS[metric]
        checks += [
            Check(f"floor of PI-ADMM2's {words}", small, "≥", 1e-6),
            Check(
                f"the floor of the {words} grows with ten times σ by a factor whose distance from 10 is",
                abs(large / small - 10.0),
                "≤",
                0.5,
            ),
        ]
    return tuple(checks)


def _variance(found: Found) -> tuple[Check, ...]:
    numbers = found[DEVIATION].numbers
    ratio = numbers["variance 1e-3: floor of the accuracy"] / numbers["deviation 1e-3: floor of the accuracy"]
    return (Check("floor with σ as variance over the floor with σ as deviation", ratio, "≤", 1.1),)


def _deviation(found: Found) -> tuple[Check, ...]:
    floor = found[DEVIATION].numbers["deviation 1e-3: floor of the accuracy"]
    return (Check("floor of the accuracy with σ = 1e-3 as deviation", floor, "≤", 1e-3),)


def _same_for_both_densities(found: Found) -> tuple[Check, ...]:
    numbers = found[CONNECTIVITY].numbers
    return tuple(
        Check(
            f"largest difference of {method}'s curves for η = 0.3 and 0.5",
            numbers[f"{method}: largest difference"],
            "≤",
            0.0,
        )
        for method in OURS
    )


def _slower_in_larger_networks(found: Found) -> tuple[Check, ...]:
    return tuple(
        Check(
            f"units of {method} at N = 200 over those at N = 100, {METRIC_WORDS[metric]}",
            _median_units(found, "least squares", 2, method, metric)
            / _median_units(found, "least squares", 0, method, metric),
            "≥",
            1.2,
        )
        for method in (I_ADMM, PI_ADMM1)
        for metric in METRICS
    )


# ---------------------------------------------------------------- theory


def _rises(lemma: int, when: str) -> Checks:
    def checks(found: Found) -> tuple[Check, ...]:
        cases = [case for case in CASES if case.lemma == lemma]
        if when == "at any hop":
            return tuple(
                Check(
                    f"rises in the first lap, {start} start, most of any run",
                    max(
                        found[case.name].numbers["most rises in the first lap"] for case in cases if case.start == start
                    ),
                    "≤",
                    0.0,
                )
                for start in ("zero", "random")
            )
        total = sum(found[case.name].numbers["rises after it"] for case in cases)
        return (Check("rises after the first lap, all runs", total, "≤", 0.0),)

    return checks


def _below(when: str) -> Checks:
    def checks(found: Found) -> tuple[Check, ...]:
        column = f"below F(x*) {when}"
        total = sum(found[case.name].numbers[column] for case in CASES if case.lemma == 4)
        return (Check(f"hops with L_ρ < F(x*) {when}", total, "≤", 0.0),)

    return checks


def _both_below(found: Found) -> tuple[Check, ...]:
    return (*_below("in the first lap")(found), *_below("after it")(found))


def _kkt(found: Found) -> tuple[Check, ...]:
    return (
        Check(
            "largest relative KKT residual at the end",
            found[LIMITS].numbers["conditions of Lemma 4: largest KKT residual"],
            "≤",
            1e-6,
        ),
    )


def _sufficient(found: Found) -> tuple[Check, ...]:
    numbers = found[LIMITS].numbers
    return (
        Check(
            "largest relative KKT residual with the paper's γ",
            numbers["the paper's γ: largest KKT residual"],
            "≤",
            1e-6,
        ),
        Check("whether the paper's γ meets the conditions", numbers["the paper's γ: meets the conditions"], "≤", 0.0),
    )


def _covered(found: Found) -> tuple[Check, ...]:
    meets = found[LIMITS].numbers["the paper's γ: meets the conditions"]
    return (Check("whether the paper's parameters meet the conditions of Lemma 4", meets, "≥", 1.0),)


def _public_where_proven(found: Found) -> tuple[Check, ...]:
    numbers = found[GAMMA_RUN].numbers
    return (
        Check(
            "‖x − z‖ over ‖x − x*‖ for the first γ within the proof",
            numbers["‖x − z‖ over error within the proof"],
            "≥",
            1e-2,
        ),
    )


def _printed_sign(found: Found) -> tuple[Check, ...]:
    numbers = found[SIGN].numbers
    return tuple(
        Check(
            f"median common error at the end with y⁰ = −ρυ, {kind}",
            numbers[f"{kind}, −ρυ, as printed: median error at the end"], "≤", 1e-6,
        )
        for kind in KINDS
    )  # fmt: skip


def _right_sign(found: Found) -> tuple[Check, ...]:
    numbers = found[SIGN].numbers
    return tuple(
        Check(
            f"median common error at the end with y⁰ = +ρυ, {kind}",
            numbers[f"{kind}, +ρυ: median error at the end"],
            "≤",
            1e-6,
        )
        for kind in KINDS
    )


def _scaling(scale: str) -> Checks:
    def checks(found: Found) -> tuple[Check, ...]:
        numbers = found[SCALING].numbers
        seeds = found[piece_name("least squares", PANELS[0], I_ADMM)].numbers["seeds"]
        words = scale.replace("_", "-")
        return (
            Check(
                f"seeds in which IPW-ADMM converges, {words} loss",
                numbers[f"{scale}: seeds in which IPW-ADMM converges"], "≥", 0.9 * seeds,
            ),
            Check(
                f"units of I-ADMM at ρ = 10 over those at the best ρ tried, {words} loss",
                numbers[f"{scale}: units of I-ADMM at ρ = 10"] / numbers[f"{scale}: units of I-ADMM at the best ρ"],
                "≤", 1.2,
            ),
        )  # fmt: skip

    return checks


# ---------------------------------------------------------------- privacy


def _inferred(found: Found) -> tuple[Check, ...]:
    numbers = found[EXACTLY].numbers
    return tuple(
        Check(f"largest relative error of {name}, all agents", numbers[f"largest relative error of {name}"], "≤", 1e-12)
        for name in ("x", "y", "gradient")
    )


def _count_gap(found: Found, system: str) -> float:
    numbers = found[COUNTS].numbers
    return abs(numbers[f"{system}: paper's equations"] - numbers[f"{system}: equations"]) + abs(
        numbers[f"{system}: paper's unknowns"] - numbers[f"{system}: unknowns"]
    )


def _counts(*systems: str) -> Checks:
    def checks(found: Found) -> tuple[Check, ...]:
        return tuple(
            Check(f"equations and unknowns counted otherwise, {system}", _count_gap(found, system), "≤", 0.0)
            for system in systems
        )

    return checks


def _remark_2_corrected(found: Found) -> tuple[Check, ...]:
    determined = found[COUNTS].numbers["Remark 2: determined"]
    return (*_counts("Remark 2")(found), Check("unknowns that the system determines", determined, "≤", 0.0))


def _forgotten(found: Found) -> tuple[Check, ...]:
    error = found[BACKWARDS].numbers["relative error of the last x, filter"]
    return (Check("relative error of x by the forward filter after 40 visits", error, "≥", 1e-2),)


def _bounds(found: Found) -> tuple[Check, ...]:
    numbers = found[BACKWARDS].numbers
    return (
        Check("states beyond the bound 2ⁿε", numbers["x errors above the bound"], "≤", 0.0),
        Check("multipliers beyond their bound", numbers["y errors above the bound"], "≤", 0.0),
    )


def _asymptotic_first(found: Found) -> tuple[Check, ...]:
    ratio = found[BACKWARDS].numbers["error of x⁰, last over first"]
    return (Check("error of x⁰ after 40 laps over that after 5", ratio, "≤", 0.1),)


def _asymptotic_late(found: Found) -> tuple[Check, ...]:
    numbers = found[BACKWARDS].numbers
    return (
        Check(
            "error of x two laps before the end, after 40 laps over 5",
            numbers["error of x near the end, last over first"],
            "≤",
            0.1,
        ),
        Check("contraction of ‖z − x‖ a lap, which would have to be below ½", numbers["contraction a lap"], "≥", 0.5),
    )


def _hidden(*quantities: str) -> Checks:
    def checks(found: Found) -> tuple[Check, ...]:
        numbers = found[BROKEN].numbers
        return tuple(
            Check(
                f"largest relative error of {name}, of all agents",
                numbers[f"largest relative error of {name}"],
                "≥",
                1e-3,
            )
            for name in quantities
        )

    return checks


def _nothing_determined(*systems: str) -> Checks:
    def checks(found: Found) -> tuple[Check, ...]:
        numbers = found[COUNTS].numbers
        return tuple(
            Check(f"unknowns determined, {system}", numbers[f"{system}: determined"], "≤", 0.0) for system in systems
        )

    return checks


def _x_shrinks(found: Found) -> tuple[Check, ...]:
    ratios = [
        numbers[f"x, {SOLVED}: error at the end"] / numbers[f"x, {SOLVED}: error at k = 100"]
        for numbers in (found[eavesdropping_name(kind, method)].numbers for kind in KINDS for method in OURS[1:])
    ]
    return (Check("error of x at k = 2000 over that at k = 100, worst case", max(ratios), "≤", 0.05),)


def _y_relative(words: str, label: str) -> Checks:
    def checks(found: Found) -> tuple[Check, ...]:
        errors = [
            found[eavesdropping_name(kind, method)].numbers[f"y, {words}: relative error at the end"]
            for kind in KINDS
            for method in OURS[1:]
        ]
        return (Check(f"relative error of y at k = 2000, least case, {label}", min(errors), "≥", 0.5),)

    return checks


# ---------------------------------------------------------------- the rest


def _first_order(found: Found) -> tuple[Check, ...]:
    numbers = found[FIRST_ORDER].numbers
    more, seeds = numbers["seeds in which first order costs more"], numbers["seeds"]
    return (Check(f"seeds of {seeds:.0f} in which the first-order step costs more, logistic", more, "≥", 1.0),)


def _ensured(found: Found) -> tuple[Check, ...]:
    numbers = found[HAMILTONIAN].numbers
    return (
        Check(
            "Hamiltonian cycles of a network with an agent of one link, |E| = 1485",
            numbers["cycles of the counterexample"],
            "≥",
            1.0,
        ),
    )


def _at_random(found: Found) -> tuple[Check, ...]:
    numbers = found[HAMILTONIAN].numbers
    share = numbers["random networks with a cycle"] / numbers["random networks"]
    return (Check("share of wholly random networks that have one", share, "≥", 1.0),)


def _inexact(found: Found) -> tuple[Check, ...]:
    names = ("quantised ADMM", "EF-SignSGD", "PQASGD", "sparse dropping")
    return tuple(Check(f"floor of {name}", found[INEXACT].numbers[f"{name}: floor"], "≥", 1e-6) for name in names)


def _more_accurate(found: Found) -> tuple[Check, ...]:
    numbers = found[INEXACT].numbers
    return (
        Check("floor of DGD over the last error of D-ADMM", numbers["DGD: floor"] / numbers["D-ADMM: floor"], "≥", 1e3),
    )


def _straggler(found: Found) -> tuple[Check, ...]:
    numbers = found[STRAGGLER].numbers
    return (
        Check("D-ADMM takes longer by a factor of", numbers["D-ADMM: slower by"], "≥", 2.0),
        Check("I-ADMM takes longer by a factor of", numbers["I-ADMM: slower by"], "≤", 2.0),
    )


def _fades(found: Found) -> tuple[Check, ...]:
    numbers = found[RESIDUE].numbers
    one = numbers["PI-ADMM1: noise on y after 100 laps"] / numbers["PI-ADMM1: noise on y after 2 laps"]
    two = numbers["PI-ADMM2: noise on y after 100 laps"] / numbers["PI-ADMM2: noise on y after 2 laps"]
    return (
        Check("PI-ADMM1's noise on y after 100 laps over that after 2", one, "≤", 1e-6),
        Check("the same for PI-ADMM2", two, "≥", 0.5),
    )


FORM_UNKNOWN = "the observer knows nothing of the form of f_i, or p = 1"
FORM = "The count treats every gradient as a new unknown; but all gradients of an agent are those of one function, and one scalar γ stretches p coordinates alike."

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "cheapest on least squares", "Section V-A, Fig. 3",
        "On least squares I-ADMM reaches a given accuracy with less communication than W-ADMM, IPW-ADMM and COCA, in all three networks.",
        "The cycle visits everyone equally often, and a hop costs one unit where a round of gossip costs 2|E|.",
        _cheapest_squares, figure="fig3",
    ),
    Claim(
        "cheapest on logistic regression", "Section V-B, Fig. 5",
        "On logistic regression the I-ADMM family (I-ADMM, PI-ADMM1, PI-ADMM2) needs the least communication.",
        "PI-ADMM2 never reaches 1e-6: its noise does not fade.",
        _cheapest_logistic, _cheapest_logistic_without_noise, "PI-ADMM2 is left out", "fig5",
    ),
    Claim(
        "faster than a random walk", "Sections I-B and V-A",
        "I-ADMM needs fewer iterations than W-ADMM, because the cycle visits agents evenly.",
        "On a random walk some agents wait long for their turn.",
        _faster_than_walk, figure="fig3",
    ),
    Claim(
        "slow at first, then faster", "Section V-A",
        "PI-ADMM1 is behind W-ADMM at first, because it starts far away, and overtakes it later.",
        "The start x⁰ ~ U(0, 100) has to be forgotten first; the paper's accuracy divides by how far that is, so that in it PI-ADMM1 is ahead from the beginning.",
        _slow_then_fast("error", "accuracy"), _slow_then_fast("error"), "it is measured by the common error, not by the paper's accuracy", "fig3",
    ),
    Claim(
        "same speed in the end", "Section V-A",
        "In the long run PI-ADMM1 converges at I-ADMM's speed.",
        "Its noise is scaled by the primal residue, so that the lap's map tends to that of I-ADMM.",
        _same_slope, figure="fig3",
    ),
    Claim(
        "same cost in the end", "Section VI",
        "PI-ADMM1 is almost as cheap in communication as I-ADMM (within 30 %).",
        "In the paper's accuracy a far start makes the denominator about 100 times larger; the common error does not.",
        _almost_same_cost("error"), _almost_same_cost("accuracy"), "it is measured by the paper's accuracy, which rewards a far start", "fig3",
    ),
    Claim(
        "a floor set by σ", "Section V-A",
        "PI-ADMM2 ends at an error that σ determines.",
        "The noise does not shrink; the floor is proportional to σ.",
        _floor, figure="fig3",
    ),
    Claim(
        "σ unambiguous", "Algorithm 4",
        "ω ~ N(0, σ) is one setting.",
        "N(0, σ) does not say whether σ is the deviation or the variance; the floors differ by a factor of 32.",
        _variance, _deviation, "σ is the standard deviation, which is what we take", "fig3",
    ),
    Claim(
        "connectivity does not matter", "Section V-A",
        "How I-ADMM, PI-ADMM1 and PI-ADMM2 converge does not depend on the connectivity η.",
        "Only the cycle matters: with the same data and cycle the curves agree bit for bit.",
        _same_for_both_densities, figure="fig3",
    ),
    Claim(
        "slower in larger networks", "Section V-A",
        "Convergence slows down as the network grows.",
        "A lap of N hops does the work of one sweep.",
        _slower_in_larger_networks, figure="fig3",
    ),
    Claim(
        "the printed loss", "Section V-A",
        "The experiments minimise the printed mean loss with the printed parameters.",
        "Under the mean loss IPW-ADMM with ρ = 1, τ = 0 diverges and ρ = 10 is far from good; f_i = ½‖O_i x − t_i‖² fits both.",
        _scaling("mean"), _scaling("half_sum"), "the loss is half the sum of squares", "fig3",
    ),
    Claim(
        "Lemma 2, descent", "Lemma 2, property 1",
        "With ρ ≥ 2L + 2 the augmented Lagrangian never rises under I-ADMM, for k ≥ 0.",
        "The proof uses y_i = ∇f_i(x_i), which is false before agent i's first turn.",
        _rises(2, "at any hop"), _rises(2, "after the first lap"), "k ≥ N", "lagrangian",
    ),
    Claim(
        "Lemma 4, descent", "Lemma 4, property 1, and Appendix A",
        "Under its conditions on ρ and γ the augmented Lagrangian never rises under PI-ADMM1, for k ≥ 0.",
        "The proof uses y_i = ∇f_i(x_i), which is false before agent i's first turn.",
        _rises(4, "at any hop"), _rises(4, "after the first lap"), "k ≥ N", "lagrangian",
    ),
    Claim(
        "Lemma 4, lower bound", "Lemma 4, property 2",
        "Under the same conditions the augmented Lagrangian is never below F(x*).",
        "A random start has y_i⁰ = ρυ_i, far from any gradient, which makes it very negative.",
        _both_below, _below("after it"), "k ≥ N", "lagrangian",
    ),
    Claim(
        "Theorem 1", "Theorem 1 and Appendix B",
        "Under Lemma 4's conditions the limit of PI-ADMM1 satisfies the KKT conditions.",
        "At γ in the thousands x⁺ is z to four digits and the method is a proximal gradient walk, which converges.",
        _kkt, figure="gamma",
    ),
    Claim(
        "sufficient, not necessary", "after Theorem 1",
        "The conditions are sufficient only: PI-ADMM1 also converges outside of them.",
        "γ between 0.9 and 1.1 meets none of them and converges.",
        _sufficient, figure="gamma",
    ),
    Claim(
        "the proof covers the experiments", "Abstract",
        "The convergence proof for PI-ADMM1 is supported by the experiments, so these are run where it holds.",
        "Lemma 4 needs γ > 2(ρ + 2)N, above 2400 at ρ = 10 and N = 100; the experiments have γ within 0.1 of 1.",
        _covered, figure="gamma",
    ),
    Claim(
        "private where proven", "Theorems 1 and 2 together",
        "There is a setting in which convergence is proven and the states x_i stay private.",
        "As γ grows x⁺ − z goes to 0: where convergence is proven every observer knows x_i to four digits or more.",
        _public_where_proven, figure="gamma",
    ),
    Claim(
        "Lemma 3", "Lemma 3 and equation (12)",
        "In I-ADMM the eavesdropper infers all states, multipliers and gradients.",
        "From x = y = 0 the recursion gives them one after another.",
        _inferred, figure="fig4",
    ),
    Claim(
        "Remark 1", "Remark 1 and Algorithm 2",
        "Algorithm 2 converges as I-ADMM does, from x⁰ = υ and y⁰ = −ρυ.",
        "With the printed sign Σ(x − y/ρ) = 2Συ ≠ 0, and z is not the mean any more.",
        _printed_sign, _right_sign, "y⁰ = +ρυ, as equation (17) and Appendix C have it", "readings",
    ),
    Claim(
        "Remark 2, the count", "Remark 2",
        "The eavesdropper of Algorithm 2 has 2K + 3 equations for 2K + 2N + 2 unknowns, and so cannot solve them.",
        "There is an equation x_i⁰ = y_i⁰/ρ for each of the N agents: 2K + N + 2. They still leave N unknowns free.",
        _counts("Remark 2, as printed"), _remark_2_corrected, "the equations are counted as 2K + N + 2", "counts",
    ),
    Claim(
        "Remark 2, the substance", "Remark 2",
        "A random start keeps the states from the eavesdropper as long as z ≠ x.",
        "Not exactly, but any guess of the start is forgotten: its error is halved at every visit.",
        _forgotten, figure="remarks",
    ),
    Claim(
        "Remark 3", "Remark 3 and Appendix C",
        "Going backwards from x ≈ z within ε, the states are known within 2ⁿε, the multipliers within ρ(2^{⌊K/N⌋+1} − 2ⁿ)ε.",
        "The error is 2ⁿε exactly, and ρ2ⁿε for y: the bound on y is loose.",
        _bounds, figure="remarks",
    ),
    Claim(
        "Remark 4", "Remark 4",
        "As K → ∞ the eavesdropper infers all states, multipliers and gradients of Algorithm 2, for k = 0, …, K.",
        "Backwards the error doubles a lap, while ‖z − x‖ shrinks by less than half: the first states are lost.",
        _asymptotic_first, _asymptotic_late, "k stays within a fixed number of laps of K", "remarks",
    ),
    Claim(
        "Theorems 2 and 3, the counts", "Theorems 2 and 3",
        "There are 2K + N + 2 equations for 3K + 2N + 3 unknowns, and 2⌊K/N⌋ + 3 for 3⌊K/N⌋ + 5 with colluders.",
        "Counted in scalars, and without f_i, the numbers are right.",
        _counts("Theorem 2", "Theorem 3"), figure="counts",
    ),
    Claim(
        "Theorem 2", "Theorem 2",
        "In PI-ADMM1 multipliers and gradients cannot be inferred exactly by the eavesdropper.",
        FORM, _hidden("all y, parametric"), _nothing_determined("Theorem 2", "quadratic f_i, p = 1, 20 visits"), FORM_UNKNOWN, "counts",
    ),
    Claim(
        "Corollary 1", "Corollary 1",
        "In PI-ADMM1 the local functions f_i cannot be inferred.",
        FORM, _hidden("H, parametric", "g, parametric"), _nothing_determined("quadratic f_i, p = 1, 20 visits"), FORM_UNKNOWN, "counts",
    ),
    Claim(
        "Theorem 3", "Theorem 3",
        "Nor can N − 1 colluding agents infer them of the last one.",
        "For one agent they know what the eavesdropper knows, and that is enough.",
        _hidden("all y, parametric"), _nothing_determined("Theorem 3", "quadratic f_i, p = 1, 20 visits"), FORM_UNKNOWN, "counts",
    ),
    Claim(
        "the estimate of x closes in", "Section V, Figs. 4 and 6",
        "The eavesdropper's estimate of x₁ᵏ closes in on the truth as the method converges.",
        "x = z is one of its equations, and becomes true.",
        _x_shrinks, figure="fig4",
    ),
    Claim(
        "the estimate of y diverges", "Section V, Figs. 4 and 6",
        "The estimate of y₁ᵏ moves away from the truth, so that PI-ADMM1 and PI-ADMM2 protect the multipliers.",
        "At its default of 20 iterations the solver has hardly moved from y = 0; solved to the end, the same equations give y.",
        _y_relative(SOLVED, "lsqr converged"), _y_relative(STOPPED, "lsqr at 20 iterations"), "the solver is stopped after 20 iterations", "fig4",
    ),
    Claim(
        "noise that fades", "Sections I-B and III-B",
        "PI-ADMM1's noise is scaled by the primal residue and fades; PI-ADMM2's does not.",
        "The noise on y is ρ(γ − 1)(z − x⁺), with z as it was received.",
        _fades, figure="fig3",
    ),
    Claim(
        "first order costs more", "Section II-C",
        "The first-order step may cost more communication for the same accuracy.",
        "Sometimes it costs more and sometimes less, as the data will have it; at ρ below 2L it does not converge at all.",
        _first_order, figure="fig5",
    ),
    Claim(
        "enough links for a cycle", "Section V",
        "With |E| = ηN(N − 1)/2 links a Hamiltonian cycle is ensured.",
        "A number of links alone ensures none; in a dense random network there is one almost surely.",
        _ensured, _at_random, "the network is drawn at random, or a cycle is put in first", "fig1",
    ),
    Claim(
        "inexact rivals", "Section I-A",
        "Quantised ADMM, EF-SignSGD, PQASGD and sparse dropping do not converge exactly.",
        "With a constant step or a fixed grid each has a floor.",
        _inexact, figure="floors",
    ),
    Claim(
        "more accurate than gradient descent", "Section I",
        "ADMM gets closer to the optimum than gradient descent with a constant step.",
        "DGD's fixed point is not the optimum.",
        _more_accurate, figure="floors",
    ),
    Claim(
        "stragglers", "Section I",
        "In synchronous ADMM one slow agent slows down everything.",
        "All wait for the slowest in every round; a token waits for it once a lap.",
        _straggler,
    ),
)  # fmt: skip
