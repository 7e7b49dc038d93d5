"""What can be inferred at all: equations, unknowns and rank, by linear algebra at a random point of the update.

An observer of one agent knows the tokens z_r that it received and the increments d_r that it sent. These are a function of
what it does not know: the start, the draws, and the function f_i. The derivative of that function at a random point
says how much of it the increments determine: a quantity is determined where no change of the unknowns that leaves the
increments as they are changes it.

The function is the update itself, as the Python engine runs it, fed with complex numbers, whose imaginary parts are the
derivative. Instead of drawing numbers it is given unknowns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundelay.algorithms.parts.defences import sent_as_it_is
from roundelay.algorithms.slots import Agents
from roundelay.algorithms.token_method import TokenADMM
from roundelay.engine.assemble import python_module, recipe
from roundelay.kernels import DIM, Matrix, Part, Vector, Visit
from roundelay.kernels.checks import whole_number
from roundelay.privacy.attacks.setting import admm, first_order, forms_sums
from roundelay.privacy.determined import Determined, Identifiable, Model, null_space, untouched
from roundelay.privacy.identifiable_sums import colluders_in, identifiable_in_sums
from roundelay.privacy.public import Public
from roundelay.problems.regularisers import plain_token
from roundelay.transcripts.observers import Observer, observer_of

Complex = NDArray[np.complex128]

# The imaginary step of the derivatives, which have no cancellation.
STEP = 1e-30


def identifiable(
    algorithm: Any,
    observer: Literal["eavesdropper", "neighbours", "colluders", "link"] | Observer = "neighbours",
    visits: int = 20,
    dim: int = 2,
    model: Model = "quadratic",
    *,
    agents: int | None = None,
    colluders: int | None = None,
) -> Identifiable:
    """What an observer of so many `visits` can infer of an agent, given that f_i is quadratic, or nothing about f_i.

    Every number is a number: p equations a visit, one unknown for each coordinate of what is drawn. It speaks of a generic
    agent (H of full rank, another token at each visit), and of what is determined locally: a quantity that is not
    determined can't be inferred by anybody; one that is has at most isolated other solutions.

    Those who are all the other agents also know its share c_i, as Nz less their own, under any start: "colluders" are, and
    "neighbours" where there are no more than three `agents`, or `colluders` so many. Of sums, as in sealed laps, all there is to
    know is the sum over those who do not collude: there say how many `agents` there are, and how many `colluders`, unless the
    observer says it. `visits` is then how many laps there are at most.

        >>> identifiable(rl.PIADMM1(), visits=20)["H"].wholly
        True
        >>> identifiable(rl.IADMM(start=rl.SealedStart()), agents=4)["g"].numbers
        0
        >>> identifiable(rl.IADMM(start=rl.SealedStart()), agents=3)["g"].wholly
        True
        >>> identifiable(rl.SealedLaps(), agents=5, colluders=3)["H"].numbers
        0
    """
    visits = whole_number("visits", visits, least=1)
    dim = whole_number("dim", dim, least=1)
    if model not in ("quadratic", "unknown"):
        raise ValueError(f'model is {model!r}: use "quadratic" or "unknown".')
    public = Public(algorithm, 2 if agents is None else agents, dim)
    if forms_sums(public):
        return identifiable_in_sums(public, colluders_in(observer, agents, colluders), visits, model)
    method = admm(public)
    _check(method)
    sees = _sees_increments(observer)
    everybody = _are_all_others(observer, agents, colluders) and not method.facts.start.balanced
    generator = np.random.default_rng([dim, visits])
    received = generator.standard_normal((visits, dim))
    jacobian, slopes = _derivatives(agent_of(method, received, model, everybody), Unknowns(generator))
    if not sees:
        jacobian = jacobian[:0]
    rank, null = null_space(jacobian, jacobian.shape[1])
    quantities = tuple(Determined(quantity, untouched(moved, null), len(moved)) for quantity, moved in slopes.items())
    equations, count = jacobian.shape
    words = _words(quantities, equations, count, rank, sees, model, everybody)
    return Identifiable(equations, count, rank, quantities, words)


def _check(method: TokenADMM) -> None:
    first_order(method)  # refuses a step that is neither
    if method.tokens != 1:
        raise ValueError(f"{method.tokens} tokens go round, but this counts the equations of one.")
    if method.facts.perturbation.noise == "else":
        raise ValueError(
            f"There are no equations here for {type(method.perturbation).__name__}: use I-ADMM, Algorithm 2, PI-ADMM1 or PI-ADMM2."
        )


def _sees_increments(observer: Any) -> bool:
    """Whether the observer sees both what an agent received and what it sent."""
    if observer == "link":
        return False
    agent = getattr(observer, "agent", 0)
    return observer_of(observer, agent).sees_all_of(agent)


def _are_all_others(observer: Any, agents: int | None, colluders: int | None) -> bool:
    """Whether the observer is made of all agents but one, where that is said."""
    if agents is None and colluders is None:
        return bool(observer == "colluders" or getattr(observer, "honest", None) == ())
    return colluders_in(observer, agents, colluders) + 1 == agents


# ---------------------------------------------------------------- the agent


@dataclass(eq=False)
class Unknowns:
    """The numbers that the observer does not know: one is drawn at random when it is first asked for, by its name.

    This stands for the seed of a run: where the update would draw a number from its seed, it asks here.
    """

    generator: np.random.Generator
    numbers: dict[tuple[Any, ...], complex] = field(default_factory=dict)

    def uniform(self, *name: Any) -> complex:
        """One that was drawn from U[0, 1)."""
        return self.numbers.setdefault(name, self.generator.uniform())

    def normal(self, *name: Any) -> complex:
        """Any other one, of size 1."""
        return self.numbers.setdefault(name, self.generator.standard_normal())

    def normals(self, size: int, *name: Any) -> Complex:
        """Several of them."""
        return np.array([self.normal(*name, place) for place in range(size)], np.complex128)


# The increments that the agent sends, behind its share where that is known, and what it keeps to itself by name.
Told = tuple[Complex, dict[str, Complex]]


def agent_of(
    method: TokenADMM, received: Matrix, model: Model, share_is_known: bool = False
) -> Callable[[Unknowns], Told]:
    """What an agent that receives these tokens makes of the unknowns."""
    dim, quadratic = received.shape[1], model == "quadratic"
    start, rho, numbers, visit = method.facts.start, method.rho, method.update().numbers, _visit(method, model, dim)

    def agent(unknowns: Unknowns) -> Told:
        problem: Any = _quadratic(unknowns, dim) if quadratic else None
        kept: dict[str, Complex] = {}
        x, share = np.full((1, dim), start.middle, np.complex128), np.zeros((1, dim), np.complex128)
        if start.share == "masked":
            share[0] = unknowns.normals(dim, "mask")
        if start.share == "sealed":
            at_zero = problem.g if quadratic else unknowns.normals(dim, "gradient at 0")
            share[0] = at_zero / -rho
            kept |= {} if quadratic else {"gradient at 0": at_zero}
        if start.width > 0.0:
            x[0] = kept["start"] = unknowns.normals(dim, "start")
        if start.share == "twice x":
            share = 2.0 * x
        y = rho * (x - share)
        states: Any = (x, y, share, np.zeros(1, np.int64))
        increments = [share[0].copy()] if share_is_known else []
        after_x, after_y = [], []
        for r, z in enumerate(received):
            if not quadratic:
                problem = Anything(unknowns.normals(dim, "answer", r))
            token = z.astype(np.complex128)
            at: Any = (unknowns, 0, r, r, 1)  # complex numbers, and the unknowns in the place of the seed
            visit(problem, numbers, Visit(*at), token, Agents(*states), False)
            increments.append(token - z)
            after_x.append(x[0].copy())
            after_y.append(y[0].copy())
        kept = {"x": np.concatenate(after_x), "y": np.concatenate(after_y)} | kept
        if quadratic:
            kept |= {"H": problem.H[np.triu_indices(dim)], "g": problem.g}
        return np.concatenate(increments), kept

    return agent


def _quadratic(unknowns: Unknowns, dim: int) -> Quadratic:
    """One whose H is near a multiple of I, so that it is positive definite."""
    hessian = np.zeros((dim, dim), np.complex128)
    hessian[np.triu_indices(dim)] = unknowns.normals(dim * (dim + 1) // 2, "H")
    return Quadratic(hessian + hessian.T + _middle(dim), unknowns.normals(dim, "g"))


def _middle(dim: int) -> Matrix:
    return 4.0 * (1.0 + dim**0.5) * np.eye(dim)


def unknowns_of(hessian: Matrix, slope: Vector) -> Unknowns:
    """The unknowns of an agent whose function is ½x'Hx + g'x, and which draws nothing: the diagonal of H stands there by half."""
    dim = len(slope)
    row, column = np.triu_indices(dim)
    numbers = (hessian - _middle(dim))[row, column] * np.where(row == column, 0.5, 1.0)
    unknowns = Unknowns(np.random.default_rng(0))
    unknowns.numbers |= {("H", place): value for place, value in enumerate(numbers)}
    unknowns.numbers |= {("g", place): value for place, value in enumerate(slope)}
    return unknowns


# ---------------------------------------------------------------- the update, with other functions in some of its slots


class Quadratic(NamedTuple):
    """f = ½x'Hx + g'x."""

    H: Complex
    g: Complex


def minimise_quadratic(problem: Quadratic, i: int, w: Complex, penalty: complex, start: Complex, out: Complex) -> None:
    """(H + penalty·I)x = w − g."""
    out[:] = np.linalg.solve(problem.H + penalty * np.eye(DIM), w - problem.g)


def gradient_of_quadratic(problem: Quadratic, i: int, x: Complex, out: Complex) -> None:
    """Hx + g."""
    out[:] = problem.H @ x + problem.g


class Anything(NamedTuple):
    """An f of which nothing is known: whatever it is asked, at every visit its answer is one that nobody knows."""

    answer: Complex


def minimise_anything(problem: Anything, i: int, w: Complex, penalty: complex, start: Complex, out: Complex) -> None:
    """The minimiser may be anything."""
    out[:] = problem.answer


def gradient_of_anything(problem: Anything, i: int, x: Complex, out: Complex) -> None:
    """The gradient may be anything."""
    out[:] = problem.answer


def complex_vector(dim: int) -> Complex:
    """Scratch space for one vector."""
    return np.zeros(dim, np.complex128)


def unknown_uniform(seed: Unknowns, agent: int, hop: int, purpose: int, index: int) -> complex:
    """An unknown instead of a draw."""
    return seed.uniform(purpose, hop, index)


def unknown_uniforms(seed: Unknowns, agent: int, hop: int, purpose: int, out: Complex) -> None:
    """Unknowns instead of draws."""
    out[:] = [seed.uniform(purpose, hop, index) for index in range(len(out))]


def unknown_normals(seed: Unknowns, agent: int, hop: int, purpose: int, out: Complex) -> None:
    """Unknowns instead of draws."""
    out[:] = seed.normals(len(out), purpose, hop)


FUNCTIONS: dict[Model, tuple[tuple[str, Callable[..., None]], ...]] = {
    "quadratic": (("minimise", minimise_quadratic), ("gradient", gradient_of_quadratic)),
    "unknown": (("minimise", minimise_anything), ("gradient", gradient_of_anything)),
}
COMPLEX: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("vector", complex_vector),
    ("uniform", unknown_uniform),
    ("uniforms", unknown_uniforms),
    ("normals", unknown_normals),
)


def _visit(method: TokenADMM, model: Model, dim: int) -> Callable[..., Any]:
    """The update's own `visit`. The tokens are taken for what they stand for, and rounding them to a grid is left out."""
    update = dict(method.update().functions) | {"at_token": plain_token, "as_sent": sent_as_it_is}
    part = Part((*update.items(), *FUNCTIONS[model], *COMPLEX))
    module: Any = python_module(recipe((part,), (), (), (("DIM", dim), ("TOKENS", 1)), compiled=False), dim)
    visit: Callable[..., Any] = module.visit
    return visit


# ---------------------------------------------------------------- linear algebra


def _derivatives(agent: Callable[[Unknowns], Told], unknowns: Unknowns) -> tuple[Matrix, dict[str, Matrix]]:
    """The Jacobians of the increments and of each quantity, a column for each unknown, by complex steps.

    Columns are scaled to one size, so that the units of the unknowns make no difference. An unknown that moves nothing
    at all, such as the draw of a noise whose size is 0, is none.
    """
    at = agent(unknowns)  # asks for all unknowns
    sizes = [len(at[0]), *map(len, at[1].values())]
    whole = columns_of(lambda: _flat(*agent(unknowns)), unknowns) if unknowns.numbers else np.zeros((sum(sizes), 0))
    length = np.linalg.norm(whole, axis=0)
    whole = whole[:, length > 0.0] / length[length > 0.0]
    jacobian, *slopes = np.split(whole, np.cumsum(sizes)[:-1])
    return jacobian, dict(zip(at[1], slopes, strict=True))


def _flat(sent: Complex, kept: dict[str, Complex]) -> Complex:
    return np.concatenate([sent, *kept.values()])


def columns_of(numbers: Callable[[], Complex], unknowns: Unknowns) -> Matrix:
    """The Jacobian of what is made of the unknowns, a column for each, by complex steps."""
    columns = []
    for name, value in list(unknowns.numbers.items()):
        unknowns.numbers[name] = value + 1j * STEP
        columns.append(numbers().imag / STEP)
        unknowns.numbers[name] = value
    return np.array(columns).T


def _words(
    quantities: Sequence[Determined],
    equations: int,
    unknowns: int,
    rank: int,
    sees: bool,
    model: Model,
    everybody: bool,
) -> str:
    if not sees:
        return "The observer sees only what the agent received or only what it sent: it has no equation at all."
    known = [one.quantity for one in quantities if one.wholly]
    partly = [f"{one.numbers} of {one.of} numbers of {one.quantity}" for one in quantities if 0 < one.numbers < one.of]
    hidden = [one.quantity for one in quantities if one.numbers == 0]
    given = "given that f_i is quadratic" if model == "quadratic" else "given nothing about f_i"
    given += ", to those who are all other agents and so know its share" if everybody else ""
    parts = [
        f"determined: {', '.join([*known, *partly])}" if known or partly else "",
        f"not determined, so that nobody can infer it exactly: {', '.join(hidden)}" if hidden else "",
    ]
    return (
        f"{equations} equations in {unknowns} unknowns, rank {rank}, {given}; " + "; ".join(filter(None, parts)) + "."
    )
