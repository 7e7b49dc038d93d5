"""Why a member of sealed laps must have no memory: what the sum alone betrays of consensus ADMM.

    x_i⁺ = argmin f_i(x) − y_i'(x − z) + ρ/2 ‖x − z‖²    y_i⁺ = y_i + ρ(z − x_i⁺)    z⁺ = (1/N) Σ (x_i⁺ − y_i⁺/ρ)

Let the sum in z⁺ be formed under perfect masks, so that nobody ever sees a member's summand. A member remembers y_i, and what it
adds next follows from it: each is a filter of its own, and the sum of N filters over many laps tells them apart. For members with
quadratic functions the table says how much of the uncertainty about every H_i is left to one who sees the sums alone, to the
last digit of double precision: 1 is nothing learned. Then the three Hessians of three members are computed from the sums.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

import roundelay as rl
from roundelay.kernels import Matrix, Vector
from roundelay.privacy.attacks.group_sum import lap_sum
from roundelay.privacy.identifiability import Unknowns, agent_of, columns_of, unknowns_of

RHO = 10.0
CASES = ((3, 2), (4, 2), (5, 2), (5, 4), (5, 10))


def members_of(problem: rl.LeastSquares) -> list[Unknowns]:
    """What every member keeps to itself: H_i and g_i."""
    origin = np.zeros(problem.dim)
    return [unknowns_of(problem.hessian(i), problem.gradient(i, origin)) for i in range(problem.agents)]


def laps_of(problem: rl.LeastSquares, laps: int, rho: float) -> tuple[Matrix, Matrix]:
    """The points z and the sums of what was added, lap by lap: all that anybody sees."""
    method, members = rl.IADMM(rho=rho).parts(), members_of(problem)
    points = np.zeros((1, problem.dim))
    for _ in range(laps):
        added = [agent_of(method, points, "quadratic")(member)[0].real for member in members]
        sums = np.sum(added, axis=0).reshape(points.shape)
        points = np.vstack([points, points[-1] + sums[-1] / problem.agents])
    return points[:laps], sums


def left_of_hessians(problem: rl.LeastSquares, laps: int, rho: float) -> float:
    """The deviation of the H_i after the laps over that before, as members of this kind differ: their root mean square."""
    points, sums = laps_of(problem, laps, rho)
    member_at = agent_of(rl.IADMM(rho=rho).parts(), points, "quadratic")
    before = spread(problem)
    jacobian = np.hstack(
        [columns_of(lambda one=one: member_at(one)[0], one) * before for one in members_of(problem)]
    )  # fmt: skip
    rounding = np.finfo(np.float64).eps * np.abs(np.cumsum(sums, axis=0)).max()
    _, sizes, directions = np.linalg.svd(jacobian)
    sizes = np.pad(sizes, (0, len(directions) - len(sizes)))
    variances = (directions.T**2) @ (1.0 / (1.0 + (sizes / rounding) ** 2))
    hessians = problem.dim * (problem.dim + 1) // 2
    return float(np.sqrt(variances.reshape(problem.agents, -1)[:, :hessians].mean()))


def spread(problem: rl.LeastSquares) -> Vector:
    """How much the numbers of H and g differ among members of this kind."""
    many = members_of(rl.paper_least_squares(400, dim=problem.dim, seed=99))
    return np.std([list(member.numbers.values()) for member in many], axis=0)


def recovered_error(problem: rl.LeastSquares, laps: int, rho: float) -> float:
    """The largest relative error of an H_i that is computed from the sums; in which order they come nobody knows."""
    points, sums = laps_of(problem, laps, rho)
    found = lap_sum(points, sums, problem.agents, rho).H
    truth = np.array([problem.hessian(i) for i in range(problem.agents)])
    sizes = np.linalg.norm(truth, axis=(1, 2))
    return min(
        float((np.linalg.norm(found[list(order)] - truth, axis=(1, 2)) / sizes).max())
        for order in permutations(range(problem.agents))
    )


def main(cases: tuple[tuple[int, int], ...] = CASES, laps: int = 60) -> list[float]:
    print(
        f"Consensus ADMM, only the sum of all members seen, {laps} laps: what is left of the uncertainty about every H_i"
    )
    print("| members | unknowns | left |")
    print("|---:|---:|---:|")
    left = []
    for agents, dim in cases:
        left.append(left_of_hessians(rl.paper_least_squares(agents, dim=dim), laps, RHO))
        print(f"| {agents} | {dim} | {left[-1]:.0e} |" if left[-1] < 0.01 else f"| {agents} | {dim} | {left[-1]:.2f} |")
    error = recovered_error(rl.paper_least_squares(3), laps // 2, RHO)
    print(f"Computed from {laps // 2} sums of 3 members with 2 unknowns: every H_i to {error:.0e} of its size.")
    sealed = rl.identifiable(rl.SealedLaps(), agents=3, colluders=0)
    print(f"Sealed laps, whose members have no memory: {sealed['H'].numbers} of {sealed['H'].of} numbers of H_i.")
    return [*left, error]


if __name__ == "__main__":
    main()
