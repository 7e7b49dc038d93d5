"""A problem of your own: Huber regression, which a few wild records can't pull away.

Agent i has rows o_j with targets t_j, and minimises

    f_i(x) = (1/b_i) Σ_j ℓ(o_j'x, t_j) + ridge/2 ‖x‖²,      ℓ(u, t) = ½ r²            where |r| ≤ δ,  r = u − t,
                                                                      δ |r| − ½ δ²    elsewhere.

So ℓ' is r, cut off at ±δ, and ℓ'' is 1 within δ and 0 beyond. These three functions are all that has to be written:
they are run by both engines, and the minimiser, the proximal steps, the curvature and the ring follow from them.
(Roundelay has this problem as `rl.Huber`; here it is written as you would write one that it has not.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import roundelay as rl


class HuberNumbers(NamedTuple):
    """What the loss needs besides a prediction and a target."""

    delta: float


def huber(own: HuberNumbers, prediction: Any, target: Any) -> Any:
    """ℓ(u, t): quadratic up to δ, and a straight line beyond."""
    size = np.abs(prediction - target)
    within = np.minimum(size, own.delta)
    return 0.5 * within**2 + own.delta * (size - within)


def huber_slope(own: HuberNumbers, prediction: Any, target: Any) -> Any:
    """ℓ'(u, t): the residual, cut off at ±δ."""
    return np.minimum(np.maximum(prediction - target, -own.delta), own.delta)


def huber_curvature(own: HuberNumbers, prediction: Any, target: Any) -> Any:
    """ℓ''(u, t): 1 within δ, 0 beyond."""
    return 1.0 * (np.abs(prediction - target) <= own.delta)


@rl.register(rl.RowProblem, "own_huber")
@dataclass(frozen=True, eq=False, repr=False)
class OwnHuber(rl.RowProblem):
    """Huber regression, one block of features and targets an agent."""

    features: Sequence[ArrayLike] | ArrayLike
    targets: Sequence[ArrayLike] | ArrayLike
    delta: float = 1.0
    ridge: float = 0.0
    weights: Any = "equal"

    loss = rl.Loss(huber, huber_slope, huber_curvature)
    model = "a linear model, by Huber's loss,"

    @property
    def own(self) -> HuberNumbers:
        """δ, as the kernel functions read it."""
        return HuberNumbers(float(self.delta))

    @property
    def width(self) -> float:
        """δ: where the loss changes from one form to the other."""
        return float(self.delta)


def sites(agents: int = 8, samples: int = 30, dim: int = 3, seed: int = 0) -> tuple[Any, Any, Any]:
    """Features, targets of which every tenth is wild, and the x behind the others."""
    generator = np.random.default_rng(seed)
    truth, features = generator.normal(size=dim), generator.normal(size=(agents, samples, dim))
    targets = features @ truth + 0.1 * generator.normal(size=(agents, samples))
    return features, np.where(generator.random((agents, samples)) < 0.1, 50.0, targets), truth


def main(engine: Any = "auto") -> dict[str, float]:
    """Fit by a token and by gossip; print how far each is from the minimiser, and both losses from the truth."""
    features, targets, truth = sites()
    problem, network = OwnHuber(features, targets, delta=0.5), rl.ring(len(features))
    token = rl.simulate(rl.IADMM(rho=0.5), problem, network, hops=800, engine=engine)
    gossip = rl.simulate(rl.NIDS(), problem, network, iterations=400, engine=engine)
    errors = {run.algorithm.name: float(np.abs(run.x - problem.optimum).max()) for run in (token, gossip)}
    for name, error in errors.items():
        print(f"{name} is {error:.1e} from the minimiser.")
    squares = rl.LeastSquares(features, targets)
    for fit in (problem, squares):
        print(f"{fit!r} is {np.linalg.norm(fit.optimum - truth):.2g} from the truth.")
    return errors


if __name__ == "__main__":
    main()
