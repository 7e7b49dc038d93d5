"""What is refused, and in what words; and how gossip runs end, are saved, and come in many seeds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.kernels import Part
from tests.gossip.cases import AGENTS, COMPRESSORS, FIVE, LINE, LOGISTIC, NETWORK, SQUARES, cases

GOSSIP = [case for case in cases() if case.problem is SQUARES and case.network is NETWORK]


def by_callables(problem: Any, **known: Any) -> rl.CallableProblem:
    return rl.CallableProblem(
        [lambda x, i=i: problem.gradient(i, x) for i in range(problem.agents)], problem.dim,
        prox_of=[lambda v, c, i=i: problem.prox(i, v, c) for i in range(problem.agents)], **known,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Lacking(rl.LeastSquares):
    """Least squares that do not offer one of their kernel functions."""

    without: str = ""

    def kernel(self) -> Part:
        part = super().kernel()
        return replace(part, functions=tuple(pair for pair in part.functions if pair[0] != self.without))


def lacking(name: str) -> Lacking:
    return Lacking(SQUARES.features, SQUARES.targets, without=name)


def refusal(algorithm: Any, problem: Any = SQUARES, network: Any = NETWORK, **options: Any) -> str:
    """The sentence with which a run is refused; nothing has run by then."""
    seen: list[int] = []
    with pytest.raises(ValueError) as caught:
        rl.simulate(
            algorithm, problem, network, **{"iterations": 50, **options}, progress=lambda done, total: seen.append(done)
        )
    assert not seen
    return str(caught.value)


# ---------------------------------------------------------------- what belongs to the other family


@pytest.mark.parametrize("case", GOSSIP, ids=lambda case: case.name)
def test_gossip_takes_iterations_and_nothing_of_tokens(case: Any) -> None:
    algorithm, name = case.algorithm, case.algorithm.name
    length = f"{name} is a gossip method, whose length is given in iterations: say iterations=… ."
    assert refusal(algorithm, iterations=None, hops=50) == length
    assert refusal(algorithm, hops=50) == length
    assert refusal(algorithm, iterations=None) == length
    assert refusal(algorithm, transcript=True).startswith(
        f"A transcript holds the tokens that crossed the links, and {name}"
    )
    content = refusal(algorithm, content=1e-3)
    assert f"{name} has no token: leave `content` out" in content


@pytest.mark.parametrize("algorithm", [rl.IADMM(), rl.WADMM(), rl.MCSAG(0.1)], ids=lambda one: one.name)
def test_tokens_take_hops(algorithm: Any) -> None:
    length = f"{algorithm.name} is a token method, whose length is given in hops: say hops=… ."
    assert refusal(algorithm) == length
    assert refusal(algorithm, hops=50) == length
    assert refusal(algorithm, iterations=None) == length


def test_mc_sag_has_no_rule_of_its_own_to_stop() -> None:
    words = refusal(rl.MCSAG(0.1), iterations=None, hops=50, content=1e-3)
    assert (
        "can't end MC-SAG with content=0.001: its steps do not tell an agent how far the sum is from its minimum."
        in words
    )


def test_a_run_of_gossip_has_nothing_of_tokens() -> None:
    run = rl.simulate(rl.DGD(), SQUARES, NETWORK, iterations=3, engine="python")
    assert run.family == "gossip" and run.iterations == run.steps == 3 and run.tour == ""
    for attribute in ("hops", "tokens", "token", "visits", "reader", "received"):
        with pytest.raises(AttributeError, match=r"A run of a gossip method has no "):
            getattr(run, attribute)
    with pytest.raises(AttributeError, match="every agent has its own x"):
        run.readout()
    token = rl.simulate(rl.MCSAG(0.01), SQUARES, NETWORK, 3, engine="python")
    with pytest.raises(AttributeError, match=r"A run of a token method has hops, not iterations: use run\.hops\."):
        _ = token.iterations


@pytest.mark.parametrize("iterations", [-1, 2.5, "many", True, float("nan")])
def test_the_number_of_iterations_is_whole(iterations: Any) -> None:
    words = refusal(rl.DGD(), iterations=iterations)
    assert words.startswith("iterations is ") and words.endswith(("use a whole number.", "use at least 0."))


@pytest.mark.parametrize("tolerance", [0.0, -1.0, float("inf"), "small"])
def test_a_tolerance_is_positive(tolerance: Any) -> None:
    assert refusal(rl.DGD(), tolerance=tolerance).startswith("tolerance is ")
    assert refusal(rl.OnePass(), iterations=None, tolerance=tolerance).startswith("tolerance is ")


# ---------------------------------------------------------------- the one pass


def test_the_one_pass_exists_for_least_squares_alone() -> None:
    for problem, name in ((LOGISTIC, "Logistic"), (by_callables(SQUARES), "CallableProblem")):
        words = refusal(rl.OnePass(), problem, iterations=None)
        assert words.startswith(f"The one-pass baseline solves least squares by its normal equations, which a {name}")
        assert words.endswith(".")
        assert rl.OnePass().conditions(problem)[0].holds is False
    assert rl.OnePass().conditions(SQUARES).hold


def test_the_one_pass_is_made_of_hops_and_can_do_nothing_else() -> None:
    assert refusal(rl.OnePass()) == "The one pass is made of hops: leave iterations out, or say hops=… ."
    words = refusal(rl.OnePass(), iterations=None, content=1e-3)
    assert words == "The one pass has nothing to stop or to watch: leave these options out."


def test_the_one_pass_can_be_cut_short() -> None:
    run = rl.simulate(rl.OnePass(), SQUARES, NETWORK, 3)
    assert (run.steps, run.units, run.stop) == (3, 3 * (SQUARES.dim + 3) / 2, "hops")
    assert (run.x == 0.0).all()
    assert rl.simulate(rl.OnePass(), SQUARES, NETWORK, 10_000).steps == 2 * AGENTS - 1


# ---------------------------------------------------------------- what a problem must offer

OPEN_STEPS = [
    (rl.DGD(), "alpha"), (rl.EXTRA(), "alpha"), (rl.NIDS(), "alpha"), (rl.GradientTracking(), "alpha"), (rl.LEAD(), "eta"),
    (rl.CHOCO(), "eta"), (rl.Scaffnew(), "gamma"), (rl.PQASGD(), "alpha"), (rl.EFSignSGD(), "alpha"),
    (rl.SparseDropping(), "alpha"), (rl.MCSAG(), "gamma"),
]  # fmt: skip


@pytest.mark.parametrize(("algorithm", "name"), OPEN_STEPS, ids=lambda value: getattr(value, "name", ""))
def test_an_open_step_size_needs_l(algorithm: Any, name: str) -> None:
    options = {"iterations": None, "hops": 50} if isinstance(algorithm, rl.MCSAG) else {}
    words = refusal(algorithm, by_callables(SQUARES), **options)
    assert words == (
        f"{algorithm.name} takes its step size from L, which is not known of this problem, or not finite: "
        f"give {name} to {type(algorithm).__name__}, or L to the problem."
    )
    # Either way out works, and says in the run which step it took.
    length = {"hops": 3} if options else {"iterations": 3}
    known = rl.simulate(algorithm, by_callables(SQUARES, L=SQUARES.L), NETWORK, **length)
    own = rl.simulate(algorithm, SQUARES, NETWORK, engine="python", **length)
    assert getattr(algorithm, name) is None
    assert getattr(known.algorithm, name) == getattr(own.algorithm, name) > 0.0
    assert np.abs(known.x - own.x).max() < 1e-12


PROX = [rl.DADMM(), rl.COCA(), rl.WeightedADMM(), rl.QuantisedADMM(), rl.ColouredDADMM(), rl.DualPerturbedADMM(), rl.PrimalPerturbedADMM(), rl.PenaltyPerturbedADMM()]  # fmt: skip
SLOPE = [
    rl.DADMM(first_order=True), rl.COCA(first_order=True, cola=True), rl.WeightedADMM(first_order=True),
    rl.QuantisedADMM(first_order=True), rl.DGD(), rl.DGD(adapt_then_combine=True), rl.EXTRA(), rl.NIDS(), rl.LEAD(),
    rl.CHOCO(), rl.Scaffnew(), rl.PQASGD(), rl.EFSignSGD(), rl.SparseDropping(), rl.GradientTracking(),
    rl.GradientTracking(adapt_then_combine=True), rl.MCSAG(),
]  # fmt: skip


@pytest.mark.parametrize("algorithm", PROX + SLOPE, ids=repr)
def test_what_a_method_needs_of_a_problem(algorithm: Any) -> None:
    options = {"iterations": None, "hops": 50} if isinstance(algorithm, rl.MCSAG) else {}
    missing, words = ("minimise", "a proximal step") if algorithm in PROX else ("gradient", "gradients")
    instead = {
        "minimise": "choose another algorithm, or a problem that has it",
        "gradient": "use a method of exact proximal steps, such as roundelay.IADMM() or roundelay.DADMM(), or a problem that has gradients",
    }
    assert refusal(algorithm, lacking(missing), **options) == (
        f"{algorithm.name} needs {words}, which a Lacking does not offer: {instead[missing]}."
    )
    other = "gradient" if missing == "minimise" else "minimise"
    rl.simulate(algorithm, lacking(other), NETWORK, engine="python", **(options or {"iterations": 2}))


def test_problem_and_network_must_agree() -> None:
    assert "7 agents but the network has 5" in refusal(rl.DGD(), SQUARES, rl.ring(5))
    assert "is not an algorithm" in refusal(rl.DGD, SQUARES)


def test_means_of_all_are_refused_where_they_would_fill_the_memory() -> None:
    agents = 3001
    problem, network = rl.paper_least_squares(agents=agents, samples=2), rl.ring(agents)
    for algorithm in (rl.EFSignSGD(), rl.SparseDropping(), rl.PQASGD()):
        assert "With 3001 agents every one would hear every other, 9,003,000 messages" in refusal(
            algorithm, problem, network
        )


# ---------------------------------------------------------------- bad options

BAD_NUMBERS = (-1.0, 0.0, float("nan"), float("inf"), "much", True)
POSITIVE = [
    (rl.DADMM, "c"), (rl.COCA, "c"), (rl.QuantisedADMM, "c"), (rl.QuantisedADMM, "step"), (rl.ColouredDADMM, "rho"),
    (rl.DualPerturbedADMM, "eta"), (rl.PrimalPerturbedADMM, "eta"), (rl.PenaltyPerturbedADMM, "eta"), (rl.DGD, "alpha"),
    (rl.EXTRA, "alpha"), (rl.NIDS, "alpha"), (rl.GradientTracking, "alpha"), (rl.NetworkDANE, "penalty"), (rl.LEAD, "eta"), (rl.LEAD, "gamma"),
    (rl.LEAD, "alpha"), (rl.CHOCO, "eta"), (rl.CHOCO, "gamma"), (rl.Scaffnew, "gamma"), (rl.Scaffnew, "tau"),
    (rl.PQASGD, "alpha"), (rl.EFSignSGD, "alpha"), (rl.SparseDropping, "alpha"), (rl.MCSAG, "gamma"), (rl.Rounded, "step"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "name"), POSITIVE, ids=lambda value: getattr(value, "__name__", value))
def test_positive_numbers(form: Any, name: str) -> None:
    for bad in BAD_NUMBERS:
        with pytest.raises(ValueError, match=rf"^{name} is .*: use a (positive |finite )?number\.$"):
            form(**{name: bad})


NOT_NEGATIVE = [
    (rl.DualPerturbedADMM, "scale", {}), (rl.PrimalPerturbedADMM, "scale", {}), (rl.PenaltyPerturbedADMM, "scale", {}),
    (rl.DGD, "decay", {}), (rl.COCA, "alpha", {}), (rl.Censoring, "alpha", {}), (rl.DADMM, "inertia", {"first_order": True}),
    (rl.COCA, "inertia", {"first_order": True}), (rl.WeightedADMM, "inertia", {"first_order": True}),
    (rl.QuantisedADMM, "inertia", {"first_order": True}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "name", "others"), NOT_NEGATIVE, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_numbers_that_are_not_negative(form: Any, name: str, others: dict[str, Any]) -> None:
    form(**{name: 0.0}, **others)
    for bad in (-1.0, float("nan"), float("inf"), "much", False):
        with pytest.raises(ValueError, match=rf"^{name} is .*: use a .*number( that is not negative)?\.$"):
            form(**{name: bad}, **others)


# What is refused, and what the sentence says.
OTHERS: list[tuple[Any, dict[str, Any], str]] = [
    *((form, {"inertia": 1.0}, "inertia and cola belong to the first-order step: set first_order=True, or leave them out.")
      for form in (rl.DADMM, rl.COCA, rl.WeightedADMM, rl.QuantisedADMM)),
    (rl.COCA, {"cola": True}, "inertia and cola belong to the first-order step: set first_order=True, or leave them out."),
    (rl.COCA, {"rho": 0.0}, "rho is 0.0: the threshold α·ρᵏ needs a number above 0 and up to 1."),
    (rl.COCA, {"rho": 1.5}, "rho is 1.5: the threshold α·ρᵏ needs a number above 0 and up to 1."),
    (rl.COCA, {"rho": "slow"}, "rho is 'slow': use a number."),
    (rl.PenaltyPerturbedADMM, {"growth": 0.9}, "growth is 0.9: use a number that is not below 1."),
    (rl.Scaffnew, {"q": 0.0}, "q is 0.0: a chance of speaking is above 0 and at most 1."),
    (rl.Scaffnew, {"q": 1.1}, "q is 1.1: a chance of speaking is above 0 and at most 1."),
    (rl.PQASGD, {"local_steps": 0}, "local_steps is 0: use at least 1."),
    (rl.PQASGD, {"local_steps": 1.5}, "local_steps is 1.5: use a whole number."),
    (rl.SparseDropping, {"share": 0.0}, "share is 0.0: use a number above 0 and up to 1."),
    (rl.SparseDropping, {"share": 2.0}, "share is 2.0: use a number above 0 and up to 1."),
    (rl.TopShare, {"share": -0.1}, "share is -0.1: use a number above 0 and up to 1."),
    (rl.Quantised, {"bits": 0}, "bits is 0: use at least 1."),
    (rl.Quantised, {"bits": 33}, "bits is 33: use a whole number from 1 to 32."),
    (rl.Quantised, {"bits": 2.5}, "bits is 2.5: use a whole number."),
    (rl.TopK, {"count": 0}, "count is 0: use at least 1."),
    (rl.RandomK, {"count": "two"}, "count is 'two': use a whole number."),
    *((form, {"channel": rl.TopK}, f"The channel is {rl.TopK!r}: use an object such as Quantised(2), or Channel(TopK(1)).")
      for form in (rl.DADMM, rl.WeightedADMM, rl.ColouredDADMM, rl.DGD, rl.EXTRA, rl.NIDS, rl.GradientTracking, rl.LEAD, rl.CHOCO, rl.Scaffnew, rl.PQASGD)),
    (rl.DGD, {"channel": "fast"}, "The channel is 'fast': use an object such as Quantised(2), or Channel(TopK(1))."),
    *((rl.GradientTracking, {"adapt_then_combine": True, "channel": channel},
       "In the adapt-then-combine form an agent sends s and x in turn, so that a channel that compares a message with the last one "
       "would compare s with x: leave out differences and censoring, or use the other form.")
      for channel in (rl.Channel(rl.Plain(), None, True), rl.Channel(rl.Plain(), rl.Censoring()))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "options", "words"), OTHERS, ids=[f"{form.__name__} {options}"[:90] for form, options, _ in OTHERS]
)
def test_bad_options_are_refused_when_they_are_given(form: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as caught:
        form(**options)
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("penalties", "words"),
    [
        ([1.0, 2.0], "There are 2 penalties but the network has 6 links: give one for each."),
        ([1.0] * 5 + [-1.0], "Some penalties are negative or not finite: use positive numbers, or 0 to delete a link."),
        ([1.0] * 5 + [np.nan], "Some penalties are negative or not finite: use positive numbers, or 0 to delete a link."),
        (-1.0, "The penalty is -1.0: use a positive number."),
        (0.0, "The penalty is 0.0: use a positive number."),
        ([0.0, *[1.0] * 5], "Without the links of penalty 0 nothing can be agreed on. The network is not connected: it falls into 2 parts, {0} and {1, 2, 3, 4, 5, 6}. Add links between them, or make a network of one part only."),
    ],
    ids=["too few", "negative", "not a number", "one negative", "one zero", "cut"],
)  # fmt: skip
def test_penalties_that_do_not_fit_the_network(penalties: Any, words: str) -> None:
    with pytest.raises(ValueError) as caught:  # what needs no network to be seen is refused before it is there
        rl.simulate(rl.WeightedADMM(penalties), SQUARES, LINE, iterations=3)
    assert str(caught.value) == words


def test_differences_need_every_message() -> None:
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(0.1))
    channel = rl.Channel(rl.Quantised(2), None, True)
    words = refusal(rl.DADMM(channel=channel), conditions=conditions)
    assert words.startswith("A channel of differences needs every message") and words.endswith(".")
    rl.simulate(
        rl.DADMM(channel=channel),
        SQUARES,
        NETWORK,
        iterations=3,
        conditions=replace(conditions, resend=True),
        engine="python",
    )


@pytest.mark.parametrize("monitor", [rl.AugmentedLagrangian(), rl.KKTResiduals()], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("algorithm", [rl.DGD(), rl.DADMM()], ids=lambda one: one.name)
def test_monitors_of_tokens_are_refused(algorithm: Any, monitor: Any) -> None:
    words = refusal(algorithm, monitors=[monitor])
    assert words.startswith(f"{type(monitor).__name__} can't watch {algorithm.name}: ") and words.endswith(
        " Leave it out."
    )


@dataclass(frozen=True)
class Farthest:
    """The largest distance of any agent from the mean."""

    columns: tuple[str, ...] = ("farthest",)

    def refusal(self, method: Any) -> str:
        return ""

    def measure(self, problem: Any, method: Any, snapshot: Any) -> tuple[float, ...]:
        return (float(np.linalg.norm(snapshot.x - snapshot.z, axis=1).max()),)


def test_a_monitor_of_ones_own_sees_the_mean_in_place_of_the_token() -> None:
    run = rl.simulate(rl.DGD(), SQUARES, NETWORK, iterations=9, monitors=[Farthest()], record=3, engine="python")
    assert list(run.history["iteration"]) == [0, 3, 6, 9]
    last = np.linalg.norm(run.x - run.x.mean(axis=0), axis=1).max()
    assert run.history["farthest"].iloc[-1] == pytest.approx(last, rel=1e-12)
    assert run.history["farthest"].iloc[0] == 0.0


# ---------------------------------------------------------------- what is none of what is asked for

NONE_OF_THESE: dict[str, Any] = {
    "COCA, a compressor that is none": lambda: rl.COCA(compressor="coarse"),
    "COCA, a class for a compressor": lambda: rl.COCA(compressor=rl.TopK),
    "a channel of nothing": lambda: rl.Channel("coarse"),
    "a channel in a channel": lambda: rl.Channel(rl.Channel()),
    "censoring that is none": lambda: rl.Channel(censoring=0.5),
    "weighted ADMM, one negative penalty": lambda: rl.WeightedADMM(-1.0),
    "weighted ADMM, penalties in letters": lambda: rl.WeightedADMM("strong"),
    "MC-SAG, a walk that is none": lambda: rl.MCSAG(0.1, walk="home"),
    "Invariant on a gossip method": lambda: rl.simulate(
        rl.DGD(), SQUARES, NETWORK, iterations=2, monitors=[rl.Invariant()]
    ),
    "Invariant on the one pass": lambda: rl.simulate(rl.OnePass(), SQUARES, NETWORK, monitors=[rl.Invariant()]),
    "the one pass by no engine": lambda: rl.simulate(rl.OnePass(), SQUARES, NETWORK, engine="steam"),
    "the one pass, a reader that is none": lambda: rl.simulate(rl.OnePass(), SQUARES, NETWORK, reader=99),
}


@pytest.mark.parametrize("choice", NONE_OF_THESE.values(), ids=NONE_OF_THESE)
def test_what_is_none_of_what_is_asked_for_is_refused_in_words(choice: Any) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        choice()


def test_whole_numbers_may_come_as_floats() -> None:
    run = rl.simulate(rl.DGD(channel=rl.TopK(2.0)), FIVE, NETWORK, iterations=3, engine="python")
    assert (run.x == rl.simulate(rl.DGD(channel=rl.TopK(2)), FIVE, NETWORK, iterations=3, engine="python").x).all()


def test_the_one_pass_of_a_single_agent_is_exact() -> None:
    run = rl.simulate(rl.OnePass(), rl.paper_least_squares(agents=1), rl.complete(1))
    assert run.history["error"].iloc[-1] < 1e-12


# ---------------------------------------------------------------- how runs end


def test_it_stops_at_the_first_iteration_within_the_tolerance() -> None:
    run = rl.simulate(rl.DADMM(0.7), SQUARES, NETWORK, iterations=5000, tolerance=1e-6, engine="compiled")
    assert run.stop == "tolerance"
    assert run.outcome == f"The error came down to 1e-06 after {run.steps} iterations."
    every = rl.simulate(rl.DADMM(0.7), SQUARES, NETWORK, iterations=run.steps, record=1, engine="python").history
    assert every["error"].iloc[-1] <= 1e-6 < every["error"].iloc[-2]
    assert run.history["iteration"].iloc[-1] == run.steps
    assert run.units == every["units"].iloc[-1] == 2 * len(NETWORK.edges) * run.steps
    # The row of a stop that nobody foresaw is like the others.
    unforeseen = rl.simulate(
        rl.DADMM(0.7), SQUARES, NETWORK, iterations=5000, tolerance=1e-6, record=[0], engine="compiled"
    )
    assert list(unforeseen.history["iteration"]) == [0, run.steps]
    for column in every.columns:
        assert unforeseen.history[column].iloc[-1] == pytest.approx(every[column].iloc[-1], rel=1e-6, abs=1e-15)
    done = rl.simulate(rl.DADMM(0.7), SQUARES, NETWORK, iterations=40, engine="python")
    assert (done.stop, done.outcome) == ("iterations", "It made all 40 iterations that were asked for.")


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_divergence_is_an_outcome_with_its_iteration(engine: Any) -> None:
    for alpha in (3.0, 1e300):
        run = rl.simulate(rl.DGD(alpha), SQUARES, NETWORK, iterations=5000, engine=engine, progress=False)
        assert run.stop == "diverged"
        assert run.outcome == f"It diverged at iteration {run.steps}: the states left all bounds."
        assert 0 < run.steps < 5000
        assert run.history["iteration"].iloc[-1] == run.steps
    first = rl.simulate(rl.DGD(3.0), SQUARES, NETWORK, iterations=5000, engine=engine, record=1).history
    assert (np.diff(first["iteration"]) == 1).all() and first["error"].iloc[-2] < 1e30 < first["error"].iloc[-1]


@pytest.mark.parametrize("compressor", COMPRESSORS.values(), ids=COMPRESSORS)
def test_compressed_runs_diverge_in_words_too(compressor: Any) -> None:
    run = rl.simulate(rl.DGD(9.0, channel=compressor), FIVE, NETWORK, iterations=2000, engine="python", progress=False)
    assert run.stop == "diverged" and 0 < run.steps < 2000


def test_no_iteration_at_all() -> None:
    run = rl.simulate(rl.COCA(), SQUARES, NETWORK, iterations=0, engine="python")
    assert (run.stop, run.steps, run.units, len(run.history)) == ("iterations", 0, 0, 1)
    assert run.history["error"].iloc[0] == run.history["accuracy"].iloc[0] == 1.0


def test_the_history_is_what_the_states_say() -> None:
    for engine in ("python", "compiled"):
        run = rl.simulate(rl.DGD(), SQUARES, NETWORK, iterations=37, engine=engine, record=[0, 5, 37])
        assert list(run.history["iteration"]) == [0, 5, 37]
        last, size = run.history.iloc[-1], np.linalg.norm(SQUARES.optimum)
        far = np.linalg.norm(run.x - SQUARES.optimum, axis=1).mean() / size
        mean = run.x.mean(axis=0)
        assert last["error"] == pytest.approx(far, rel=1e-12) == last["accuracy"]
        assert last["mean_error"] == pytest.approx(np.linalg.norm(mean - SQUARES.optimum) / size, rel=1e-9)
        spread = np.sqrt((np.linalg.norm(run.x - mean, axis=1) ** 2).mean()) / size
        assert last["consensus"] == pytest.approx(spread, rel=1e-10)
        assert np.abs(run.estimate - mean).max() < 1e-15
        gap = sum(SQUARES.value(i, mean) - SQUARES.value(i, SQUARES.optimum) for i in range(AGENTS))
        assert last["objective_gap"] == pytest.approx(gap, rel=1e-6)


def test_recording_and_pieces_change_nothing() -> None:
    """The loop is called in pieces, whose length depends on the time they take: the path must not."""
    runs = [
        rl.simulate(
            rl.LEAD(), SQUARES, NETWORK, iterations=301, seed=9, engine="compiled", record=record, progress=False
        )
        for record in (1, 7, [13, 300])
    ]
    assert all((run.x == runs[0].x).all() and run.units == runs[0].units for run in runs)


# ---------------------------------------------------------------- saving, seeds, plain functions

SAVED = [
    rl.DGD(0.1, channel=rl.Channel(rl.TopK(1), rl.Censoring(0.1, 0.9), True)),
    rl.LEAD(),
    rl.COCA(0.7, alpha=0.3, compressor=rl.Rounded(0.01, dithered=True)),
    rl.WeightedADMM(
        tuple(0.1 + 0.1 * link for link in range(len(NETWORK.edges))), channel=rl.RandomK(1, unbiased=True)
    ),
    rl.PQASGD(local_steps=2, channel=rl.Signs()),
    rl.Scaffnew(q=0.4, channel=rl.TopShare(0.5)),
    rl.PenaltyPerturbedADMM(),
]


@pytest.mark.parametrize("algorithm", SAVED, ids=lambda one: one.name)
@pytest.mark.parametrize("conditions", [
    None,
    rl.NetworkConditions(loss=rl.GilbertElliott(0.1, 0.5), noise=1e-3, resend=True, latency=tuple(range(1, 14)), compute=0.5, compute_jitter=0.1),
], ids=["plain", "conditions"])  # fmt: skip
def test_runs_are_saved_and_loaded(algorithm: Any, conditions: Any, tmp_path: Path) -> None:
    run = rl.simulate(
        algorithm, SQUARES, NETWORK, iterations=9, seed=3, conditions=conditions, engine="python", record=2
    )
    loaded = rl.load_run(run.save(tmp_path / "run.npz"))
    assert loaded.algorithm == run.algorithm == algorithm or loaded.algorithm == run.algorithm == algorithm.resolved(
        SQUARES
    )
    assert loaded.conditions == conditions
    assert loaded.family == "gossip" and loaded.iterations == 9
    for name in ("seed", "engine", "outcome", "stop", "steps", "units"):
        assert getattr(loaded, name) == getattr(run, name)
    for name in ("estimate", "x", "y", "optimum"):
        assert (getattr(loaded, name) == getattr(run, name)).all()
    assert loaded.history.equals(run.history)
    # What was loaded runs again, and does the same.
    again = rl.simulate(
        loaded.algorithm, SQUARES, NETWORK, iterations=9, seed=3, conditions=loaded.conditions, engine="python"
    )
    assert (again.x == run.x).all() and again.units == run.units


@pytest.mark.parametrize("algorithm", [rl.MCSAG(0.01), rl.OnePass()], ids=lambda one: one.name)
def test_the_other_new_methods_are_saved_and_loaded(algorithm: Any, tmp_path: Path) -> None:
    run = rl.simulate(algorithm, SQUARES, NETWORK, 9, engine="python")
    loaded = rl.load_run(run.save(tmp_path / "run.npz"))
    assert loaded.algorithm == run.algorithm == algorithm and loaded.family == "token"
    assert loaded.history.equals(run.history) and (loaded.tokens == run.tokens).all()


def test_many_seeds() -> None:
    ensemble = rl.simulate(
        rl.LEAD(), SQUARES, NETWORK, iterations=60, seeds=[4, 1, 9], engine="compiled", progress=False
    )
    assert [run.seed for run in ensemble] == [4, 1, 9]
    for run in ensemble:
        single = rl.simulate(
            rl.LEAD(), SQUARES, NETWORK, iterations=60, seed=run.seed, engine="compiled", progress=False
        )
        assert (run.x == single.x).all() and run.units == single.units
    assert not (ensemble[0].x == ensemble[1].x).all()
    bands = ensemble.bands("error")
    assert (bands["low"] <= bands["median"]).all() and (bands["median"] <= bands["high"]).all()
    assert bands["median"].iloc[-1] < 1e-2 < bands["median"].iloc[0]
    assert (ensemble.units_to(1e-1) <= ensemble.units_to(1e-2)).all()


@pytest.mark.parametrize("case", GOSSIP, ids=lambda case: case.name)
def test_plain_functions_run_by_the_python_engine_and_agree(case: Any) -> None:
    plain = by_callables(SQUARES, L=SQUARES.L, mu=SQUARES.mu)
    run = rl.simulate(case.algorithm, plain, NETWORK, iterations=12, progress=False)
    assert run.engine == "python" and "plain Python functions" in run.engine_reason
    same = rl.simulate(case.algorithm, SQUARES, NETWORK, iterations=12, engine="python", progress=False)
    assert np.abs(run.x - same.x).max() <= 1e-11 * np.abs(same.x).max()
    assert run.units == same.units
    with pytest.raises(
        ValueError, match=r"The compiled engine can't run this: the problem is made of plain Python functions"
    ):
        rl.simulate(case.algorithm, plain, NETWORK, iterations=12, engine="compiled")
