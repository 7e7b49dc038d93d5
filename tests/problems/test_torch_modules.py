"""Problems of PyTorch modules: the same as those that are written out, without a memory, and begun where the module stands."""

from __future__ import annotations

import os
import pickle
import re
from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.problems import total_gradient, total_value

if os.environ.get("ROUNDELAY_REQUIRE_TORCH") == "1":
    import torch
else:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

F = torch.nn.functional
AGENTS, DIM = 4, 3
RNG = np.random.default_rng(5)
FEATURES = [RNG.normal(size=(rows, DIM)) for rows in (5, 2, 7, 4)]
TARGETS = [RNG.normal(size=len(block)) for block in FEATURES]
CLASSES = [RNG.integers(0, 3, len(block)) for block in FEATURES]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Any:
    """Small products take longer by many threads than by one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def line() -> Any:
    module = torch.nn.Linear(DIM, 1, bias=False).double()
    torch.nn.init.zeros_(module.weight)
    return module


def half_squares(output: Any, targets: Any) -> Any:
    return 0.5 * ((output[:, 0] - targets) ** 2).sum()


def squares(**others: Any) -> rl.TorchProblem:
    return rl.TorchProblem(line(), half_squares, FEATURES, TARGETS, **others)


def network_of(*, seed: int = 0, hidden: Any = None, **others: Any) -> rl.TorchProblem:
    torch.manual_seed(seed)
    module = torch.nn.Sequential(torch.nn.Linear(DIM, 4), hidden or torch.nn.Tanh(), torch.nn.Linear(4, 3)).double()
    return rl.TorchProblem(module, F.cross_entropy, FEATURES, CLASSES, **others)


def test_a_line_is_least_squares() -> None:
    problem, known = squares(ridge=0.2), rl.LeastSquares(FEATURES, TARGETS, ridge=0.2)
    assert isinstance(problem, rl.Problem) and (problem.agents, problem.dim) == (AGENTS, DIM)
    points = np.random.default_rng(0).normal(size=(AGENTS, DIM))
    np.testing.assert_allclose(problem.values(points), known.values(points), rtol=1e-13)
    np.testing.assert_allclose(problem.gradients(points), known.gradients(points), rtol=1e-12)
    for agent, x in enumerate(points):
        bent = problem.hessian_times(agent, x, points[0])
        np.testing.assert_allclose(bent, known.hessian_times(agent, x, points[0]), rtol=1e-12)
        np.testing.assert_allclose(problem.prox(agent, x, 2.0), known.prox(agent, x, 2.0), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "algorithm",
    [rl.WPG(alpha=0.02), rl.PIADMM1(rho=40.0, first_order=True), rl.IADMM(rho=10.0), rl.DGD(alpha=0.01)],
    ids=lambda algorithm: algorithm.name,
)
def test_every_family_runs_on_it_as_on_the_same_functions_written_out(algorithm: Any) -> None:
    steps: dict[str, int] = {"iterations": 20} if algorithm.name == "DGD" else {"hops": 40}
    runs = [
        rl.simulate(algorithm, problem, rl.ring(AGENTS), engine=engine, progress=False, **steps)
        for problem, engine in (
            (squares(), "auto"),
            (rl.LeastSquares(FEATURES, TARGETS).with_optimum(None), "python"),
        )
    ]
    np.testing.assert_allclose(runs[0].x, runs[1].x, rtol=1e-6, atol=1e-7)
    assert "PyTorch" in runs[0].engine_reason


def test_sealed_laps_find_the_pooled_fit() -> None:
    run = rl.simulate(rl.SealedLaps(), squares(), rl.ring(AGENTS), progress=False)
    pooled = np.linalg.lstsq(np.concatenate(FEATURES), np.concatenate(TARGETS), rcond=None)[0]
    assert run.stop == "found"
    np.testing.assert_allclose(run.estimate, pooled, rtol=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_gradients_and_curvature_are_those_of_the_values(seed: int) -> None:
    problem, rng = network_of(seed=seed, ridge=0.1), np.random.default_rng(seed)
    x, direction, step = rng.normal(size=problem.dim), rng.normal(size=problem.dim), 1e-6
    for agent in range(AGENTS):
        ahead, behind = (problem.value(agent, x + sign * step * direction) for sign in (1, -1))
        assert problem.gradient(agent, x) @ direction == pytest.approx((ahead - behind) / (2 * step), rel=1e-6)
        slopes = [problem.gradient(agent, x + sign * step * direction) for sign in (1, -1)]
        bent = problem.hessian_times(agent, x, direction)
        np.testing.assert_allclose(bent, (slopes[0] - slopes[1]) / (2 * step), rtol=1e-5, atol=1e-7)


def test_by_rows_the_sum_is_the_loss_over_all_rows() -> None:
    problem = network_of(weights="rows")
    x = np.random.default_rng(1).normal(size=problem.dim)
    output = problem.module_at(x)(torch.from_numpy(np.concatenate(FEATURES)))
    pooled = float(F.cross_entropy(output, torch.from_numpy(np.concatenate(CLASSES))).detach())
    assert total_value(problem, x) == pytest.approx(AGENTS * pooled, rel=1e-13)


def test_a_run_begins_where_the_module_stands() -> None:
    problem = network_of()
    assert np.abs(problem.begins_at).min() > 0.0
    for algorithm in (rl.WPG(alpha=0.1), rl.SealedLaps()):
        run = rl.simulate(algorithm, problem, rl.ring(AGENTS), 3 * AGENTS, progress=False)
        first = run.history.iloc[0]
        assert first.objective == pytest.approx(total_value(problem, problem.begins_at), rel=1e-13)
        slope = np.linalg.norm(total_gradient(problem, problem.begins_at))
        assert first.gradient_norm == pytest.approx(slope, rel=1e-12)
        assert run.history.objective.iloc[-1] < first.objective
    elsewhere = np.full(problem.dim, 0.3)
    run = rl.simulate(rl.WPG(alpha=0.1), problem, rl.ring(AGENTS), 1, x0=elsewhere, progress=False)
    assert run.history.objective.iloc[0] == pytest.approx(total_value(problem, elsewhere), rel=1e-13)


def test_module_at_has_the_parameters_and_leaves_the_module_alone() -> None:
    problem = network_of()
    before = {name: value.clone() for name, value in problem.module.state_dict().items()}
    again = problem.module_at(problem.begins_at)
    for name, value in again.state_dict().items():
        assert torch.equal(value, before[name])
    moved = problem.module_at(problem.begins_at + 1.0)
    for name, value in moved.state_dict().items():
        torch.testing.assert_close(value, before[name] + 1.0)
        assert torch.equal(problem.module.state_dict()[name], before[name])


def test_what_does_not_learn_stays_as_it_is() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(DIM, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3)).double()
    module[0].requires_grad_(False)
    problem = rl.TorchProblem(module, F.cross_entropy, FEATURES, CLASSES)
    assert problem.dim == 4 * 3 + 3
    learnt = problem.module_at(np.zeros(problem.dim))
    assert torch.equal(learnt[0].weight, module[0].weight) and not learnt[2].weight.any()


def test_layers_that_count_what_they_have_seen_leave_no_trace() -> None:
    """Batch normalisation keeps means of all that it was shown: an answer would depend on the ones before."""
    problem = network_of(hidden=torch.nn.BatchNorm1d(4))
    x, kept = problem.begins_at, {name: value.clone() for name, value in problem.module.named_buffers()}
    first = problem.gradient(0, x)
    for agent in range(AGENTS):
        problem.gradient(agent, x + 1.0)
    np.testing.assert_array_equal(problem.gradient(0, x), first)
    for name, value in problem.module.named_buffers():
        assert torch.equal(value, kept[name])


def test_modules_of_several_inputs_and_of_words() -> None:
    class Beside(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.line = torch.nn.Embedding(3, 2), torch.nn.Linear(DIM, 2)

        def forward(self, word: Any, numbers: Any) -> Any:
            return (self.words(word) * self.line(numbers)).sum(1, keepdim=True)

    inputs = [(word, block) for word, block in zip(CLASSES, FEATURES, strict=True)]
    problem = rl.TorchProblem(Beside().double(), half_squares, inputs, TARGETS)
    assert np.isfinite(total_gradient(problem, problem.begins_at)).all()


def test_single_precision_goes_as_far_as_it_goes() -> None:
    single = rl.TorchProblem(line().float(), half_squares, FEATURES, TARGETS)
    point = np.ones(DIM)
    np.testing.assert_allclose(single.gradient(0, point), squares().gradient(0, point), rtol=1e-5)
    np.testing.assert_allclose(single.prox(0, point, 1.0), squares().prox(0, point, 1.0), rtol=1e-3)


def test_it_goes_to_another_process() -> None:
    problem = network_of()
    total_gradient(problem, problem.begins_at)
    copied = pickle.loads(pickle.dumps(problem))
    np.testing.assert_array_equal(
        copied.gradients(np.ones((AGENTS, problem.dim))), problem.gradients(np.ones((AGENTS, problem.dim)))
    )


def test_its_data_are_not_printed() -> None:
    assert repr(network_of()) == f"TorchProblem(4 agents, p = {4 * DIM + 4 + 15})"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no GPU here that PyTorch could use.")
def test_a_gpu_says_the_same() -> None:
    there, here = network_of(), network_of(device="cpu")
    points = np.random.default_rng(0).normal(size=(AGENTS, there.dim))
    assert there._data[0][0][0].is_cuda
    np.testing.assert_allclose(there.gradients(points), here.gradients(points), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(there.values(points), here.values(points), rtol=1e-12)
    module = there.module_at(there.begins_at)
    assert not next(module.parameters()).is_cuda


REFUSED: list[tuple[Any, str]] = [
    (lambda: network_of(hidden=torch.nn.Dropout(0.5)), "another when it is asked for again"),
    (lambda: rl.TorchProblem(3, half_squares, FEATURES, TARGETS), "The module is a int"),  # type: ignore[arg-type]
    (lambda: rl.TorchProblem(torch.nn.Tanh(), half_squares, FEATURES, TARGETS), "no parameter that requires a gradient"),
    (lambda: rl.TorchProblem(line(), half_squares, [], []), "The features are no list, or an empty one"),
    (lambda: rl.TorchProblem(line(), half_squares, FEATURES, TARGETS[:2]), "features for 4 agents but targets for 2"),
    (lambda: rl.TorchProblem(line(), half_squares, [["a"]], [["b"]]), "The data of agent 0 are not numbers"),
    (lambda: rl.TorchProblem(line(), lambda o, t: o, FEATURES, TARGETS), r"loss of agent 0 is a tensor of the shape \(5, 1\)"),
    (lambda: squares(weights=[1.0, 2.0]), "4 agents: give one number for each agent"),
    (lambda: squares(ridge=-1.0), "The ridge is -1.0"),
    (lambda: squares().module_at([1.0]), r"have the shape \(1,\): give 3 numbers"),
    (lambda: squares().value(9, np.zeros(DIM)), "There is no agent 9"),
    (lambda: squares().prox(0, np.zeros(DIM), -1.0), "The penalty is -1.0"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_refusals(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        make()
    assert re.match(r"(?s)^[A-Z].*: .*\.$", str(caught.value))
