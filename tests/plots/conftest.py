import pytest

import roundelay as rl


@pytest.fixture(scope="session")
def run() -> rl.Run:
    """Comes down to rounding."""
    return simulate(rl.IADMM(rho=10.0))


@pytest.fixture(scope="session")
def diverged() -> rl.Run:
    return simulate(rl.IADMM(rho=0.1, first_order=True))


@pytest.fixture(scope="session")
def ensemble() -> rl.Ensemble:
    return rl.simulate(
        rl.PIADMM1(rho=10.0),
        lambda seed: rl.paper_least_squares(agents=5, samples=6, seed=seed),
        rl.ring(5),
        hops=200,
        seeds=range(4),
        engine="python",
    )


@pytest.fixture(scope="session")
def gossip() -> rl.Ensemble:
    """Under conditions, so that it has seconds."""
    return rl.simulate(
        rl.DADMM(c=0.5),
        lambda seed: rl.paper_least_squares(agents=5, samples=6, seed=seed),
        rl.ring(5),
        iterations=40,
        seeds=range(3),
        conditions=rl.NetworkConditions(latency=0.01, latency_jitter=0.5),
        engine="python",
    )


def simulate(algorithm: object) -> rl.Run:
    problem = rl.paper_least_squares(agents=5, samples=30)
    return rl.simulate(algorithm, problem, rl.ring(5), hops=1500, engine="python", progress=False)
