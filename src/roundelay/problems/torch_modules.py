"""A problem from a PyTorch module: its parameters are what the agents agree on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from roundelay.kernels import Vector
from roundelay.problems.callables import PythonProblem
from roundelay.problems.problem import check_agent, known_optimum
from roundelay.problems.rows import Weights, check_ridge, read_weights

if TYPE_CHECKING:
    import torch

# How much two answers to one question may differ, over their size: sums on a GPU are not formed in one order.
REPEATS = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class TorchProblem(PythonProblem):
    """f_i(x) = weight_i·loss(module_x(features_i), targets_i) + ridge/2 ‖x‖², where x are the module's trainable parameters, end to end.

    `features` and `targets` hold a tensor or an array for each agent; where the module takes several inputs, a tuple of them. `loss`
    is a function (output, targets) → one number, such as `torch.nn.functional.cross_entropy`, the mean over an agent's rows;
    `weights` are "equal", "rows" (then Σf_i is in proportion to the loss over all rows), or one number for each agent.

    Runs begin at the module's own parameters, unless x0 says otherwise, since the origin is a saddle of most networks. There is
    no optimum, unless one is given (`with_optimum`): the history has ‖Σ∇f_i‖ and the objective. `module_at(x)` is the module with
    the parameters x. It computes in the module's own precision, on `device`; left out, on a GPU where there is one.
    """

    why_not_compiled: ClassVar[str] = "the problem is a PyTorch module, which PyTorch runs"

    module: torch.nn.Module
    loss: Callable[[Any, Any], Any]
    features: Sequence[Any]
    targets: Sequence[Any]
    ridge: float = 0.0
    weights: Weights = "equal"
    device: str | None = None

    def __post_init__(self) -> None:
        try:
            import torch  # noqa: F401
        except ImportError:
            raise ImportError(
                "A PyTorch module as a problem needs the package torch: install it by pip install 'roundelay[torch]'."
            ) from None
        check_ridge(self.ridge)
        if not hasattr(self.module, "named_parameters"):
            raise ValueError(
                f"The module is a {type(self.module).__name__}: give a torch.nn.Module, such as torch.nn.Linear(3, 1)."
            )
        if self.dim < 1:
            raise ValueError("The module has no parameter that requires a gradient: there is nothing to agree on.")
        for what, blocks in (("features", self.features), ("targets", self.targets)):
            if not isinstance(blocks, Sequence) or not blocks:
                raise ValueError(
                    f"The {what} are no list, or an empty one: give a list with one tensor for each agent."
                )
        if len(self.features) != len(self.targets):
            raise ValueError(
                f"There are features for {len(self.features)} agents but targets for {len(self.targets)}: give one of each for every agent."
            )
        _ = self.scales
        for agent in range(self.agents):
            first, again = (self.gradient(agent, self.begins_at) for _ in range(2))
            if np.linalg.norm(first - again) > REPEATS * np.linalg.norm(first):
                raise ValueError(
                    f"The gradient of agent {agent} is another when it is asked for again: what a module draws at random, as dropout does, "
                    "is no function of its parameters. Call module.eval() first, or leave such layers out."
                )
        vars(self)["optimum"] = known_optimum(self, None)

    @property
    def agents(self) -> int:
        """N, the number of agents."""
        return len(self.features)

    @cached_property
    def dim(self) -> int:
        """p, how many numbers the trainable parameters are."""
        return sum(parameter.numel() for parameter in self._trainable.values())

    @cached_property
    def begins_at(self) -> Vector:
        """The parameters of the module as it was given."""
        return np.concatenate(
            [parameter.detach().cpu().double().numpy().ravel() for parameter in self._trainable.values()]
        )

    @cached_property
    def scales(self) -> Vector:
        """weight_i."""
        return read_weights(self.weights, np.array([len(block) for block in self.targets]))

    def module_at(self, x: ArrayLike) -> torch.nn.Module:
        """A copy of the module with these parameters, where the module was."""
        import torch

        numbers = np.asarray(x, np.float64)
        if numbers.shape != (self.dim,):
            raise ValueError(
                f"The parameters have the shape {numbers.shape}: give {self.dim} numbers, such as run.estimate."
            )
        copied, begin = deepcopy(self.module), 0
        with torch.no_grad():
            for name, parameter in copied.named_parameters():
                if name in self._trainable:
                    own = torch.from_numpy(numbers[begin : begin + parameter.numel()])
                    parameter.copy_(own.reshape(parameter.shape))
                    begin += parameter.numel()
        return copied

    def value(self, agent: int, x: Vector) -> float:
        """f_i(x)."""
        import torch

        check_agent(agent, self.agents)
        with torch.no_grad():
            answer = float(self._loss(agent, self._tensor(x)))
        return float(self._checked(answer, agent, "value", ())) + 0.5 * self.ridge * float(x @ x)

    def slope(self, agent: int, x: Vector) -> Vector:
        """∇f_i(x), by PyTorch."""
        import torch

        point = self._tensor(x).requires_grad_()
        (slope,) = torch.autograd.grad(self._loss(agent, point), point)
        return slope.double().cpu().numpy() + self.ridge * x

    def hessian_times(self, agent: int, x: Vector, direction: Vector) -> Vector:
        """∇²f_i(x)·direction, as the gradient of ∇f_i(x)'direction."""
        import torch

        check_agent(agent, self.agents)
        point = self._tensor(x).requires_grad_()
        (slope,) = torch.autograd.grad(self._loss(agent, point), point, create_graph=True)
        along = slope @ self._tensor(direction)
        bent = torch.autograd.grad(along, point)[0] if along.requires_grad else torch.zeros_like(point)
        return bent.double().cpu().numpy() + self.ridge * direction

    def prox_from(self, agent: int, v: Vector, penalty: float, start: Vector) -> Vector:
        """By L-BFGS, which goes down from the start: a root of the gradient might be a saddle."""
        from scipy.optimize import minimize

        def whole(x: Vector) -> tuple[float, Vector]:
            away = x - v
            return self.value(agent, x) + 0.5 * penalty * float(away @ away), self.gradient(agent, x) + penalty * away

        found = minimize(
            whole,
            start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 10_000, "maxcor": 30, "gtol": 0.0, "ftol": 0.0},
        )
        x = np.asarray(found.x, np.float64)
        residual, own = np.linalg.norm(whole(x)[1]), np.linalg.norm(self.gradient(agent, x))
        if not residual <= self._rounding * (penalty * (np.linalg.norm(x) + np.linalg.norm(v)) + own):
            raise ValueError(
                f"L-BFGS could not solve the proximal step of agent {agent} (the residual is {residual:.1e}): use the first-order form of the "
                "method (first_order=True), a larger penalty, or a module in double precision."
            )
        return x

    @property
    def _rounding(self) -> float:
        """How far a residual comes down in the module's precision."""
        import torch

        return float(torch.finfo(self._dtype).eps ** 0.5)

    @cached_property
    def _trainable(self) -> dict[str, Any]:
        return {name: parameter for name, parameter in self.module.named_parameters() if parameter.requires_grad}

    @cached_property
    def _dtype(self) -> torch.dtype:
        return next(iter(self._trainable.values())).dtype

    @cached_property
    def _device(self) -> torch.device:
        import torch

        if self.device is not None:
            return torch.device(self.device)
        return torch.device("cuda") if torch.cuda.is_available() else next(iter(self._trainable.values())).device

    @cached_property
    def _rest(self) -> dict[str, Any]:
        """Parameters that stay as they are, and buffers, where it computes."""
        fixed = {name: value for name, value in self.module.named_parameters() if name not in self._trainable}
        return {
            name: value.detach().to(self._device) for name, value in (fixed | dict(self.module.named_buffers())).items()
        }

    @cached_property
    def _data(self) -> list[tuple[tuple[Any, ...], Any]]:
        """Every agent's inputs and targets, where it computes."""
        return [
            (
                tuple(self._input(part, agent) for part in (block if isinstance(block, tuple) else (block,))),
                self._input(answer, agent),
            )
            for agent, (block, answer) in enumerate(zip(self.features, self.targets, strict=True))
        ]

    def _input(self, values: Any, agent: int) -> Any:
        """An array as a tensor, numbers with a point in the module's precision."""
        import torch

        try:
            tensor = torch.as_tensor(values)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"The data of agent {agent} are not numbers ({error}): give tensors or arrays.") from None
        return tensor.to(self._device, self._dtype if tensor.is_floating_point() else tensor.dtype)

    def _tensor(self, x: Vector) -> torch.Tensor:
        import torch

        return torch.from_numpy(np.ascontiguousarray(x)).to(self._device, self._dtype, copy=True)

    def _loss(self, agent: int, point: torch.Tensor) -> torch.Tensor:
        """weight_i·loss at these parameters. Buffers are copies: what a layer keeps of one answer must not reach the next."""
        from torch.func import functional_call

        features, targets = self._data[agent]
        state, begin = {name: value.clone() for name, value in self._rest.items()}, 0
        for name, parameter in self._trainable.items():
            state[name] = point[begin : begin + parameter.numel()].reshape(parameter.shape)
            begin += parameter.numel()
        answer = self.loss(functional_call(self.module, state, features), targets)
        if answer.numel() != 1:
            raise ValueError(
                f"The loss of agent {agent} is a tensor of the shape {tuple(answer.shape)}: let it be one number, the mean over the rows."
            )
        return answer.reshape(()) * self.scales[agent]
