"""The first-order step with clipped records: against its definition, record by record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roundelay as rl
from roundelay.algorithms import ClippedGradient, PrimalNoise, TokenADMM
from roundelay.kernels import BATCH, PRIMAL, normals, uniform
from tests.engine.support import Trace, mutated, trace

AGENTS, SEED, RHO, SIGMA = 7, 5, 12.0, 0.1
HOPS = 4 * AGENTS
START = rl.UniformStart(0.0, 3.0)
NETWORK = rl.random_network(AGENTS, 0.6, 1)


def ragged(kind: str, dim: int = 3, weights: Any = "rows") -> Any:
    """Between one and five rows an agent, with a ridge."""
    generator = np.random.default_rng(3)
    counts = [1, 2, 3, 5, 4, 2, 5]
    features = [generator.normal(size=(count, dim)) for count in counts]
    if kind == "logistic":
        labels = [np.sign(generator.normal(size=count)) for count in counts]
        return rl.Logistic(features, labels, ridge=0.1, weights=weights)
    targets = [generator.normal(size=count) for count in counts]
    return rl.LeastSquares(features, targets, scale=kind, ridge=0.1, weights=weights)


def private(clip: float | None, **options: Any) -> rl.PIADMM2:
    chosen = {"rho": RHO, "sigma": SIGMA, "first_order": True, "start": START, **options}
    return rl.PIADMM2(clip=clip, **chosen)


def clipped_gradient(
    problem: Any, agent: int, x: np.ndarray, clip: float, drawn: list[bool] | None = None, rate: float = 1.0
) -> np.ndarray:
    """ridge·x + weight/q Σ min(1, C/‖∇ℓ_j‖) ∇ℓ_j, from the losses as the problems' docstrings write them."""
    own = problem.rows.of(agent)
    rows, answers = problem.rows.features[own], problem.rows.targets[own]
    total = np.zeros_like(x)
    for j, (row, answer) in enumerate(zip(rows, answers, strict=True)):
        if drawn is not None and not drawn[j]:
            continue
        if isinstance(problem, rl.Logistic):
            gradient = -answer * row / (1.0 + np.exp(answer * row @ x))
        else:
            gradient = (2.0 if problem.scale == "mean" else 1.0) * (row @ x - answer) * row
        total += gradient * min(1.0, clip / max(float(np.linalg.norm(gradient)), 1e-300))
    counts = problem.rows.counts
    proportion = counts[agent] / counts.mean() if isinstance(problem.weights, str) else problem.weights[agent]
    if isinstance(problem, rl.LeastSquares) and problem.scale == "half_sum":
        weight = 1.0 if isinstance(problem.weights, str) else proportion
    else:
        weight = proportion / counts[agent]
    return weight / rate * total + problem.ridge * x


def misfit(problem: Any, run: Trace, algorithm: rl.PIADMM2) -> float:
    """How far any visit is from x⁺ = z + (y − g)/ρ + ω, y⁺ = y + ρ(z − x⁺)."""
    worst, rate = 0.0, algorithm.sample_rate
    for hop, agent in enumerate(run.order):
        i = int(agent)
        z, x, y = run.tokens[hop], run.x[hop, i], run.y[hop, i]
        drawn = None
        if rate is not None:
            drawn = [uniform(SEED, i, hop, BATCH, j) < rate for j in range(int(problem.rows.counts[i]))]
        omega = np.zeros(problem.dim)
        normals(SEED, i, hop, PRIMAL, omega)
        g = clipped_gradient(problem, i, x, algorithm.clip, drawn, 1.0 if rate is None else rate)
        new = z + (y - g) / algorithm.rho + algorithm.sigma * omega
        worst = max(worst, float(np.abs(run.x[hop + 1, i] - new).max()))
        worst = max(worst, float(np.abs(run.y[hop + 1, i] - (y + algorithm.rho * (z - new))).max()))
    return worst


@pytest.mark.parametrize("weights", ["rows", (0.5, 2.0, 1.0, 1.5, 0.7, 1.0, 3.0)], ids=["by rows", "given"])
@pytest.mark.parametrize("kind", ["half_sum", "mean", "logistic"])
@pytest.mark.parametrize("rate", [None, 0.4])
def test_every_visit_is_that_of_the_definition(kind: str, weights: Any, rate: float | None) -> None:
    problem, algorithm = ragged(kind, weights=weights), private(0.3, sample_rate=rate)
    assert misfit(problem, trace(algorithm, problem, NETWORK, HOPS, SEED), algorithm) < 1e-12


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("limit / size", "size / limit"),
        ("xstep.clip * record_weight(problem, i)", "xstep.clip"),
        ("factor /= xstep.rate", "factor /= 1.0"),
        ("problem.ridge * x[d]", "0.0 * x[d]"),
        ("size > limit", "size > 2.0 * limit"),
        ("j - begin", "j"),
    ],
)
def test_a_wrong_step_is_noticed(old: str, new: str) -> None:
    problem, algorithm = ragged("mean"), private(2.0, sample_rate=0.4)
    wrong = trace(
        algorithm, problem, NETWORK, HOPS, SEED, prepared=mutated(algorithm, problem, NETWORK, "solve", old, new)
    )
    assert misfit(problem, wrong, algorithm) > 1e-6


def same(one: Trace, other: Trace) -> bool:
    return all((a == b).all() for a, b in ((one.tokens, other.tokens), (one.x, other.x), (one.y, other.y)))


@pytest.mark.parametrize("make", [rl.paper_least_squares, rl.paper_logistic])
@pytest.mark.parametrize("rate", [None, 0.4])
def test_the_engines_agree_bit_for_bit(make: Any, rate: float | None) -> None:
    problem, algorithm = make(agents=AGENTS, samples=6, dim=2, seed=1), private(0.3, sample_rate=rate)
    plain, ours = (trace(algorithm, problem, NETWORK, HOPS, SEED, engine) for engine in ("python", "compiled"))
    assert same(plain, ours)


def test_a_large_clip_changes_nothing() -> None:
    problem = ragged("logistic")
    assert same(trace(private(1e9), problem, NETWORK, HOPS, SEED), trace(private(None), problem, NETWORK, HOPS, SEED))
    for kind in ("half_sum", "mean"):  # its plain gradient comes from an eigendecomposition: alike up to rounding
        squares = ragged(kind)
        ours, plain = (trace(private(clip), squares, NETWORK, HOPS, SEED) for clip in (1e9, None))
        assert np.abs(ours.x - plain.x).max() < 1e-12 * np.abs(plain.x).max()


def test_to_draw_every_record_is_not_to_sample() -> None:
    problem = ragged("mean")
    certain, plain = (trace(private(0.3, sample_rate=rate), problem, NETWORK, HOPS, SEED) for rate in (1.0, None))
    assert same(certain, plain)


def test_sampling_is_right_on_average() -> None:
    """From zero and without noise, y⁺ is the estimate of the gradient at 0: its mean must be the whole one."""
    problem = rl.paper_logistic(agents=1, samples=8, seed=1, ridge=0.1)
    estimates = []
    for seed in range(1500):
        run = trace(private(0.3, sigma=0.0, start=rl.ZeroStart(), sample_rate=0.25), problem, rl.ring(1), 1, seed)
        estimates.append(run.y[1, 0])
    whole = clipped_gradient(problem, 0, np.zeros(2), 0.3)
    error = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    assert (np.abs(np.mean(estimates, axis=0) - whole) < 4.5 * error).all()
    assert (error > 0.0).all()


def test_the_noise_on_x_has_the_deviation_sigma() -> None:
    """The residual x⁺ − z − (y − g)/ρ over many visits: mean 0, deviation σ, the coordinates and visits independent."""
    problem, algorithm = ragged("logistic", dim=4), private(0.3, sigma=0.37)
    run = trace(algorithm, problem, NETWORK, 300 * AGENTS, SEED)
    residuals = []
    for hop, agent in enumerate(run.order):
        i = int(agent)
        g = clipped_gradient(problem, i, run.x[hop, i], 0.3)
        residuals.append(run.x[hop + 1, i] - run.tokens[hop] - (run.y[hop, i] - g) / RHO)
    noise = np.array(residuals) / 0.37
    count = noise.size
    assert abs(noise.mean()) < 4.5 / np.sqrt(count)
    assert abs(noise.var() - 1.0) < 4.5 * np.sqrt(2.0 / count)
    assert abs((noise**4).mean() - 3.0) < 4.5 * np.sqrt(96.0 / count)
    correlations = np.corrcoef(noise.T)[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(len(noise))
    assert abs((noise[1:] * noise[:-1]).mean()) < 4.5 / np.sqrt(count)


def test_clipping_bounds_every_step_whatever_the_data() -> None:
    """A record of any size moves x by at most weight·C/ρ."""
    generator = np.random.default_rng(0)
    for size in (1e-3, 1.0, 1e3, 1e80):
        problem = rl.LeastSquares(
            [size * generator.normal(size=(4, 2))], [size * generator.normal(size=4)], scale="mean"
        )
        run = trace(private(0.3, sigma=0.0), problem, rl.ring(1), 1, SEED)
        step = run.x[1, 0] - run.tokens[0] - run.y[0, 0] / RHO
        assert np.linalg.norm(step) <= 0.3 / RHO * (1.0 + 1e-9)


def test_a_run_is_kept_and_read_again(tmp_path: Any) -> None:
    algorithm = private(0.3, sample_rate=0.5)
    run = rl.simulate(algorithm, ragged("mean"), NETWORK, 20, engine="python", progress=False)
    assert rl.load_run(run.save(tmp_path / "run.npz")).algorithm == algorithm


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clip": 1.0}, "say first_order=True"),
        ({"first_order": True, "sample_rate": 0.1}, "set clip too"),
        ({"first_order": True, "clip": 0.0}, "clip is 0.0: use a positive number"),
        ({"first_order": True, "clip": float("inf")}, "use a finite number"),
        ({"first_order": True, "clip": 1.0, "sample_rate": 0.0}, "use a positive number"),
        ({"first_order": True, "clip": 1.0, "sample_rate": 1.1}, "at most 1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        rl.PIADMM2(**options)


def test_a_problem_without_records_is_refused() -> None:
    problem = rl.CallableProblem([lambda x: 2.0 * x] * 3, 2)
    with pytest.raises(ValueError, match="needs gradients of single data rows, which a CallableProblem does not offer"):
        rl.simulate(private(1.0), problem, rl.ring(3), 3, progress=False)


def test_the_agents_are_not_asked_whether_they_are_content() -> None:
    with pytest.raises(ValueError, match="neither clipped nor noisy"):
        rl.simulate(private(1.0), ragged("mean"), NETWORK, 10, content=1e3, progress=False)


def test_the_step_is_a_part_like_any_other() -> None:
    method = private(0.3, sample_rate=0.5).parts()
    assert method == TokenADMM(RHO, rl.Cycle(), ClippedGradient(0.3, 0.5), PrimalNoise(SIGMA), START)
