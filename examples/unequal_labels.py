"""The same 1,797 digits over ten agents, divided ever less evenly: what that costs a method of sums, one with a token, and gossip.

Each agent has pictures, and all want one classifier of the digit 3 against all others (least squares with a ridge, on pictures of 4 × 4).
Evenly divided, every agent has about the same function; by Dirichlet's law with a small α an agent has few of the digits, and by label one
alone. The pooled fit is the same each time: rows only change hands. Sums don't notice. The others pay most where some agents have many rows and
some few, all of one kind, as under a small α; by label each has one kind of row, but as many as the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import roundelay as rl

WAYS = (rl.Evenly(), rl.Dirichlet(1.0), rl.Dirichlet(0.1), rl.ByLabel())
METHODS = (rl.SealedLaps(), rl.IADMM(rho=20.0), rl.NIDS())


def problem(how: Any, agents: int = 10) -> rl.LeastSquares:
    """The digits, divided in this way."""
    digits = load_digits()
    small = digits.images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16) / 16.0
    rows = np.column_stack([small, np.ones(len(small))])
    divided = rl.split(rows, digits.target, agents=agents, how=how, positive=3, name="digits of 4 × 4")
    return rl.LeastSquares(*divided, ridge=1.0)


def main(units: float = 2_000_000, engine: Any = "auto") -> dict[str, dict[str, float]]:
    """Print, for each way to divide the rows, what each method pays until the error stays below 1e-6."""
    network, found = rl.random_network(10, 0.4, seed=0), {}
    for how in WAYS:
        own = problem(how)
        result = rl.compare(
            list(METHODS), own, network, seeds=[0], units=units, levels=[1e-6], engine=engine, progress=False
        )
        found[how.words] = {row.name: row.costs["units"][0].cost for row in result.rows}
        print(f"{own.data_in_words}: " + ", ".join(f"{name} {cost:,.0f}" for name, cost in found[how.words].items()))
    return found


if __name__ == "__main__":
    main()
