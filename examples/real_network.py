"""A token against gossip on a network that loses messages and has one slow agent: which is cheaper, which is sooner?"""

import numpy as np

import roundelay as rl

AGENTS = 30


def main(seeds: int = 3) -> rl.Comparison:
    compute = np.full(AGENTS, 0.001)
    compute[7] = 0.05  # one slow machine
    conditions = rl.NetworkConditions(loss=rl.BernoulliLoss(0.1), resend=True, latency=0.01, compute=compute)
    comparison = rl.compare(
        [rl.IADMM(rho=10.0), rl.WADMM(rho=10.0), rl.DADMM(c=0.5), rl.NIDS(), rl.LEAD(), rl.OnePass()],
        lambda seed: rl.paper_least_squares(agents=AGENTS, seed=seed),
        lambda seed: rl.random_network(AGENTS, density=0.3, seed=seed),
        seeds=range(seeds),
        units=300_000,
        conditions=conditions,
        progress=False,
    )
    print(comparison.text())
    return comparison


if __name__ == "__main__":
    main()
