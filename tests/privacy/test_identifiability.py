from __future__ import annotations

import numpy as np
import pytest

import roundelay as rl
from roundelay.kernels import STEP
from roundelay.kernels.random import uniform
from roundelay.privacy.identifiability import agent_of, unknowns_of

QUADRATICS = (
    rl.IADMM(rho=5.0),
    rl.RandomStart(rho=5.0),
    rl.PIADMM1(rho=5.0),
    rl.PIADMM1(rho=90.0, first_order=True),
    rl.PIADMM1(rho=5.0, gamma=3.0, gamma_spread=0.2),
    rl.PIADMM1(rho=5.0, gamma_is="vector"),
    rl.RandomStart(rho=5.0, start=rl.UniformStart(printed_sign=True)),
    rl.IADMM(rho=5.0, start=rl.SealedStart()),
)


@pytest.mark.parametrize("method", QUADRATICS, ids=repr)
def test_its_update_is_that_of_the_simulator(method):
    """The increments of a real run come out of the map whose derivative is taken."""
    agents, dim = 6, 3
    problem, network = rl.paper_least_squares(agents, 12, dim, seed=2), rl.random_network(agents, 0.6, seed=2)
    run = rl.simulate(method, problem, network, 41, seed=3, transcript=True, progress=False, engine="python")
    visits = run.transcript.seen_by(rl.Eavesdropper()).visits_of(2)
    parts, count = method.parts(), len(visits)
    unknowns = unknowns_of(problem.hessian(2), problem.gradient(2, np.zeros(dim)))
    start = parts.start_states(3, problem).x[2]
    unknowns.numbers |= {("start", place): value for place, value in enumerate(start)}
    for turn, hop in enumerate(visits.hop):
        unknowns.numbers |= {(STEP, turn, index): uniform(3, 2, int(hop), STEP, index) for index in range(dim)}
    increments, kept = agent_of(parts, visits.received, "quadratic")(unknowns)
    truth = visits.increments(agents)
    np.testing.assert_allclose(increments.real.reshape(count, dim), truth, atol=1e-9 * np.abs(truth).max())
    np.testing.assert_allclose(kept["x"].real[-dim:], run.x[2], atol=1e-9 * np.abs(run.x).max())
    np.testing.assert_allclose(kept["y"].real[-dim:], run.y[2], atol=1e-9 * np.abs(run.y).max())


@pytest.mark.parametrize("model", ["quadratic", "unknown"])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_nothing_of_incremental_admm_is_hidden(model, dim):
    answer = rl.identifiable(rl.IADMM(), visits=10, dim=dim, model=model)
    assert all(one.wholly for one in answer.quantities)


def test_without_a_model_a_random_start_hides_all_states():
    answer = rl.identifiable(rl.RandomStart(), visits=10, model="unknown")
    assert (answer.equations, answer.unknowns, answer.rank) == (20, 22, 20)
    assert answer["x"].numbers == answer["y"].numbers == 0


def test_with_a_model_it_hides_nothing():
    answer = rl.identifiable(rl.RandomStart(), visits=10)
    assert all(one.wholly for one in answer.quantities)


def test_a_scalar_gamma_hides_only_the_start():
    answer = rl.identifiable(rl.PIADMM1(), visits=20)
    assert (answer.equations, answer.unknowns, answer.rank) == (40, 27, 26)
    assert [one.quantity for one in answer.quantities if one.wholly] == ["x", "y", "H", "g"]
    assert answer["start"].numbers == 0
    assert "not determined, so that nobody can infer it exactly: start" in answer.words


def test_without_a_model_a_scalar_gamma_hides_everything():
    answer = rl.identifiable(rl.PIADMM1(), visits=20, model="unknown")
    assert all(one.numbers == 0 for one in answer.quantities)


@pytest.mark.parametrize("dim", [2, 3, 4, 5, 7, 10])
def test_how_many_visits_a_scalar_gamma_stands(dim):
    """R ≥ 1 + p(p + 3)/(2(p − 1)) and R ≥ p + 2."""
    least = max(int(np.ceil(1 + dim * (dim + 3) / 2 / (dim - 1))), dim + 2)
    assert rl.identifiable(rl.PIADMM1(), visits=least, dim=dim)["H"].wholly
    assert not rl.identifiable(rl.PIADMM1(), visits=least - 1, dim=dim)["H"].wholly


def test_in_one_dimension_a_scalar_gamma_hides_everything():
    assert all(one.numbers == 0 for one in rl.identifiable(rl.PIADMM1(), visits=50, dim=1).quantities)


def test_primal_noise_leaves_nothing_exact():
    answer = rl.identifiable(rl.PIADMM2(), visits=10)
    assert all(one.numbers == 0 for one in answer.quantities)


def test_a_link_has_no_equation():
    answer = rl.identifiable(rl.IADMM(), "link")
    assert (answer.equations, answer.rank) == (0, 0)
    assert answer["H"].numbers == 0
    assert "no equation at all" in answer.words


@pytest.mark.parametrize("observer", ["eavesdropper", "colluders", rl.Neighbours(3)], ids=repr)
def test_observers_of_an_agent_know_the_same(observer):
    assert rl.identifiable(rl.PIADMM1(), observer) == rl.identifiable(rl.PIADMM1(), "neighbours")


def test_refusals():
    with pytest.raises(ValueError, match="not of the incremental ADMM family"):
        rl.identifiable(rl.WPG(alpha=0.1))
    with pytest.raises(ValueError, match="tokens go round"):
        rl.identifiable(rl.PWADMM())
    with pytest.raises(ValueError, match="There is no observer"):
        rl.identifiable(rl.IADMM(), "nobody")
    with pytest.raises(ValueError, match='use "quadratic" or "unknown"'):
        rl.identifiable(rl.IADMM(), model="cubic")
    with pytest.raises(ValueError, match="There is no quantity"):
        rl.identifiable(rl.IADMM())["z"]


# ---------------------------------------------------------------- sums

OPTIMISERS = (rl.NormalEquations(), rl.ConjugateGradients(), rl.LBFGS(), rl.Newton())


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=lambda one: one.name)
@pytest.mark.parametrize("agents", [2, 3, 5, 12])
def test_of_sealed_laps_only_the_sum_over_the_honest_is_determined(agents, optimiser):
    for colluders in range(agents - 1):
        answer = rl.identifiable(rl.SealedLaps(optimiser), agents=agents, colluders=colluders, visits=30)
        assert answer["H"].numbers == answer["g"].numbers == 0
        assert answer["sum of H"].wholly and answer["sum of g"].wholly
        assert "Nothing of a single one of them is determined" in answer.words
    alone = rl.identifiable(rl.SealedLaps(optimiser), agents=agents, colluders=agents - 1, visits=30)
    assert alone["H"].wholly and alone["g"].wholly and "it hides nothing" in alone.words
    assert alone.rank == alone.unknowns


def test_a_few_laps_of_products_leave_some_of_the_sum_open():
    """Conjugate gradients ask for Hv in a few directions: 2 of 8 tell p numbers each, but for the symmetric ones."""
    answer = rl.identifiable(rl.SealedLaps(rl.ConjugateGradients()), agents=4, visits=3, dim=8)
    assert not answer["sum of H"].wholly and answer["sum of g"].wholly
    assert answer.rank == 8 + 8 + 7


def test_without_a_model_the_answers_are_the_unknowns():
    answer = rl.identifiable(rl.SealedLaps(), agents=5, model="unknown")
    assert answer["answers"].numbers == 0 and answer["sum of answers"].wholly
    assert rl.identifiable(rl.SealedLaps(), "colluders", agents=5, model="unknown")["answers"].wholly


@pytest.mark.parametrize(
    ("observer", "honest"),
    [("eavesdropper", 6), ("link", 6), ("neighbours", 4), (rl.Neighbours(2), 4), (rl.Eavesdropper(), 6), (rl.Colluders(2, (4, 5)), 3), (rl.Colluders(2), 1)],
)  # fmt: skip
def test_observers_of_sums_are_counted(observer, honest):
    answer = rl.identifiable(rl.SealedLaps(rl.NormalEquations()), observer, agents=6)
    assert answer.unknowns == 5 * honest


def test_the_one_pass_hides_nothing():
    assert rl.identifiable(rl.OnePass(), agents=6)["H"].wholly


def test_refusals_of_sums():
    with pytest.raises(ValueError, match=r"PIADMM1 is a class.* such as PIADMM1\(\)"):
        rl.identifiable(rl.PIADMM1)
    with pytest.raises(ValueError, match="say agents="):
        rl.identifiable(rl.SealedLaps())
    with pytest.raises(ValueError, match="of 3 agents up to 2 can collude"):
        rl.identifiable(rl.SealedLaps(), agents=3, colluders=3)
    with pytest.raises(ValueError, match="There is no observer 'nobody'"):
        rl.identifiable(rl.SealedLaps(), "nobody", agents=3)
    with pytest.raises(ValueError, match="say agents="):
        rl.identifiable(rl.IADMM(), colluders=3)
