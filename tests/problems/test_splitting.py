"""Rows divided over agents: each once, as many as were asked for, the same for a seed in every process, and said in what comes of it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_linnerud, make_classification

import roundelay as rl
from roundelay.algorithms.algorithm import Algorithm
from roundelay.tables import as_table, from_table

WAYS = st.one_of(
    st.just(rl.Evenly()),
    st.integers(1, 3).map(rl.ByLabel),
    st.floats(0.3, 1e6).map(rl.Dirichlet),
    st.lists(st.integers(1, 9), min_size=1, max_size=5).map(lambda sizes: rl.BySize(tuple(sizes))),
)


@settings(max_examples=200)
@given(WAYS, st.integers(1, 5), st.integers(60, 90), st.integers(1, 4), st.integers(0, 2**64 - 1), st.booleans())
def test_every_row_once_and_nobody_without(
    how: Any, agents: int, count: int, labels: int, seed: int, sparse: bool
) -> None:
    rows = np.arange(2.0 * count).reshape(count, 2)
    targets = np.random.default_rng(seed).integers(labels, size=count)
    given_rows = sp.csr_array(rows) if sparse else rows
    divided = rl.split(given_rows, targets, agents=getattr(how, "agents", agents), how=how, seed=seed)
    blocks = [block.toarray() if sparse else block for block in divided.features]
    back = np.concatenate(blocks)
    order = np.argsort(back[:, 0])
    np.testing.assert_array_equal(back[order], rows)
    np.testing.assert_array_equal(np.concatenate(list(divided.targets))[order], targets)
    assert all(len(block) == len(own) > 0 for block, own in zip(blocks, divided.targets, strict=True))
    assert len(blocks) == getattr(how, "agents", agents)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 5))
def test_sizes_are_as_asked(sizes: list[int], times: int) -> None:
    count = times * sum(sizes)
    found = rl.split(np.zeros((count, 1)), np.zeros(count), how=rl.BySize(tuple(sizes)))
    assert [len(block) for block in found.features] == [times * size for size in sizes]
    evenly = rl.split(np.zeros((count, 1)), np.zeros(count), agents=len(sizes))
    assert np.ptp([len(block) for block in evenly.features]) <= 1


@given(st.lists(st.floats(0.1, 10.0), min_size=2, max_size=6), st.integers(200, 400))
def test_what_does_not_come_out_even_is_given_to_whoever_is_short(sizes: list[float], count: int) -> None:
    found = rl.split(np.zeros((count, 1)), np.zeros(count), how=rl.BySize(tuple(sizes)))
    wanted = count * np.array(sizes) / np.sum(sizes)
    assert np.abs([len(block) for block in found.features] - wanted).max() < 1.0 + 1e-6


def shares_of(how: Any, seed: int, agents: int = 10) -> np.ndarray:
    """How many rows of each label each agent has, of 10 labels with 200 rows each."""
    targets = np.repeat(np.arange(10), 200)
    own = rl.split(np.zeros((2000, 1)), targets, agents=agents, how=how, seed=seed).targets
    return np.array([np.bincount(one, minlength=10) for one in own])


def test_with_a_large_alpha_it_is_even_and_with_a_small_one_labels_concentrate() -> None:
    assert np.abs(shares_of(rl.Dirichlet(1e8), 0) - 20).max() <= 1
    most = [
        np.mean([shares_of(rl.Dirichlet(alpha), seed).max(axis=0).mean() for seed in range(5)])
        for alpha in (0.1, 1.0, 10.0)
    ]
    assert most[0] > 120 > most[1] > 40 > most[2] > 20


def test_proportions_have_the_moments_of_dirichlets_law() -> None:
    """A share of a label has the mean 1/N and the variance (1/N)(1 − 1/N)/(Nα + 1)."""
    for alpha in (0.3, 2.0):
        shares = np.concatenate([shares_of(rl.Dirichlet(alpha), seed).ravel() for seed in range(60)]) / 200.0
        assert shares.mean() == pytest.approx(0.1)
        assert shares.var() == pytest.approx(0.09 / (10 * alpha + 1), rel=0.1)


def test_by_label_an_agent_has_few_labels() -> None:
    assert ((shares_of(rl.ByLabel(), 0) > 0).sum(axis=1) == 1).all()
    two = shares_of(rl.ByLabel(2), 3)
    assert ((two > 0).sum(axis=1) <= 2).all() and (two.sum(axis=1) == 200).all()
    assert ((two > 0).sum(axis=1) == 2).any()
    assert ((shares_of(rl.ByLabel(), 0, agents=7) > 0).sum(axis=1) <= 3).all()


def test_seeds_repeat_in_another_process_and_differ_from_each_other() -> None:
    script = (
        "import numpy as np, roundelay as rl, hashlib\n"
        "found = [rl.split(np.arange(90.0)[:, None], np.arange(90) % 3, agents=3, how=how, seed=5).features\n"
        "         for how in (rl.Evenly(), rl.BySize((1, 2, 3)), rl.ByLabel(2), rl.Dirichlet(0.5))]\n"
        "print(hashlib.sha256(b''.join(b.tobytes() for own in found for b in own)).hexdigest())"
    )
    said = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert said[0] == said[1] and len(said[0]) == 65
    for how in (rl.Evenly(), rl.ByLabel(2), rl.Dirichlet(0.5)):
        divided = [
            rl.split(np.arange(90.0)[:, None], np.arange(90) % 3, agents=3, how=how, seed=seed).features
            for seed in (0, 1)
        ]
        assert any(not np.array_equal(one, other) for one, other in zip(*divided, strict=True))


def test_what_loaders_give_is_taken_as_it_comes() -> None:
    bunch = load_breast_cancer()
    same = [
        rl.split(bunch, agents=4, seed=1),
        rl.split(load_breast_cancer(return_X_y=True), agents=4, seed=1),
        rl.split(load_breast_cancer(as_frame=True), agents=4, seed=1),
        rl.split(load_breast_cancer(as_frame=True).frame, "target", agents=4, seed=1),
        rl.split(pd.DataFrame(bunch.data), pd.Series(bunch.target), agents=4, seed=1),
    ]
    for other in same[1:]:
        for one, two in zip(same[0].features, other.features, strict=True):
            np.testing.assert_array_equal(one, two)
    assert same[0].features.words == "breast cancer, 569 rows, 4 agents, evenly, seed 1"
    assert rl.split(load_diabetes(), agents=2).features.words.startswith("diabetes, 442 rows")
    assert rl.split(make_classification(50, random_state=0), agents=2, name="made").features.words.startswith(
        "made, 50 rows"
    )


def test_a_label_against_all_others_once_rows_are_divided_by_what_they_were() -> None:
    own = rl.split(load_digits(), agents=10, how=rl.ByLabel(), positive=3).targets
    shares = sorted(float((one == 1.0).mean()) for one in own)
    assert shares[-1] > 0.95 and shares[-3] == 0.0
    assert {float(value) for one in own for value in one} == {-1.0, 1.0}
    words = np.array(["ill", "well"])[load_breast_cancer().target]
    problem = rl.Logistic(*rl.split(load_breast_cancer().data, words, agents=3, positive="well"), ridge=1.0)
    assert problem.rows.targets.sum() == (words == "well").sum() - (words == "ill").sum()


def test_where_rows_come_from_is_said_by_all_that_comes_of_them(tmp_path: Path) -> None:
    words = "breast cancer, 569 rows, 10 agents, Dirichlet(0.3), seed 0"
    divided = rl.split(load_breast_cancer(), agents=10, how=rl.Dirichlet(0.3))
    assert repr(divided) == f"Divided(features=Blocks({words}), targets=Blocks({words}))"
    problem = rl.LeastSquares(*divided, ridge=1.0)
    assert repr(problem) == f"LeastSquares({words}, p = 30)"
    assert (
        problem.data_in_words
        == replace(problem, ridge=2.0).data_in_words
        == pickle.loads(pickle.dumps(problem)).data_in_words
        == words
    )
    run = rl.simulate(rl.IADMM(), problem, rl.ring(10), 20, engine="python", progress=False)
    assert run.data_in_words == words and f"I-ADMM on {words}" in repr(run)
    assert rl.load_run(run.save(tmp_path / "run.npz")).data_in_words == words
    assert replace(run, problem=None).data_in_words == ""
    compared = rl.compare([rl.IADMM()], problem, rl.ring(10), seeds=[0], units=20, engine="python", progress=False)
    assert run.made()["data"] == compared.made()["data"] == words
    plain = rl.paper_least_squares(3, 4, 2)
    assert plain.data_in_words == "" and repr(plain) == "LeastSquares(3 agents, 12 rows, p = 2)"
    table = rl.sweep(rl.IADMM(), problem, rl.ring(10), seeds=[0], hops=2, engine="python", processes=0, progress=False)
    assert table.problem.tolist() == [words]


def test_sparse_rows_of_a_table_stay_sparse() -> None:
    features = sp.random_array((40, 12), density=0.2, rng=np.random.default_rng(0), format="coo")
    divided = rl.split(features, np.arange(40.0), agents=4, how=rl.ByLabel())
    assert all(sp.issparse(block) for block in divided.features)
    assert repr(rl.LeastSquares(*divided)) == "LeastSquares(data, 40 rows, 4 agents, by label, seed 0, p = 12, sparse)"


def test_ways_to_divide_stand_in_files() -> None:
    for how in (rl.Evenly(), rl.BySize((1, 2.5)), rl.ByLabel(3), rl.Dirichlet(0.3)):
        assert from_table(as_table(how, rl.Split), "it", rl.Split) == how
    with pytest.raises(ValueError, match="can't stand in a file"):
        as_table(rl.Evenly(), Algorithm)


EYE, THREE = np.eye(3), np.array([0, 1, 2])


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: rl.split(EYE, THREE), "Over how many agents"),
        (lambda: rl.split(EYE, agents=2), "no targets beside the features"),
        (lambda: rl.split(EYE, THREE, agents=0), "agents is 0"),
        (lambda: rl.split(EYE, THREE, agents=4), "3 rows can't be divided over 4 agents"),
        (lambda: rl.split(EYE, THREE, agents=2, seed=-1), "seed is -1"),
        (lambda: rl.split(EYE, THREE, agents=2, seed=2**64), "from 0 to"),
        (lambda: rl.split(EYE, THREE, agents=2, how="even"), "use Evenly"),
        (lambda: rl.split(EYE, THREE, agents=2, how=rl.Dirichlet), "use Evenly"),
        (lambda: rl.split(EYE, THREE, agents=2, how=rl.BySize((1, 1, 1))), "which are 3: leave agents out"),
        (lambda: rl.split(EYE, THREE, how=rl.BySize((1, 1000))), "Agent 0 would have none"),
        (lambda: rl.split(np.eye(5), np.zeros(5), agents=3, how=rl.Dirichlet(1e-6)), "always one without a row"),
        (lambda: rl.split(EYE, THREE, agents=2, positive=7), "No row has the target 7.*0, 1, 2"),
        (lambda: rl.split(EYE, THREE, agents=2, positive="x"), "No row has the target 'x'"),
        (lambda: rl.split(EYE, THREE[:2], agents=2), "3 rows but 2 targets"),
        (lambda: rl.split(EYE[0], THREE, agents=2), "1 dimensions instead of 2"),
        (lambda: rl.split(EYE, "x", agents=2), "no data frame"),
        (lambda: rl.split(pd.DataFrame(EYE, columns=["a", "b", "c"]), "x", agents=2), "no column 'x': use one of a, b"),
        (lambda: rl.split(pd.DataFrame({"a": ["u", "v"], "t": [0, 1]}), "t", agents=2), "column 'a' is of .* encode"),
        (lambda: rl.split(load_linnerud(), agents=2), "2 dimensions instead of 1"),
        (lambda: rl.split(EYE, np.array([0, np.nan, 1]), agents=2), "target of row 1 is missing"),
        (lambda: rl.split(EYE, np.array([0, "a", None], object), agents=2), "numbers and words at once"),
        (lambda: rl.split(load_diabetes(), agents=3, how=rl.Dirichlet(1.0)), "214 different targets"),
        (lambda: rl.Dirichlet(0.0), "alpha is 0.0"),
        (lambda: rl.Dirichlet(float("nan")), "alpha is nan"),
        (lambda: rl.ByLabel(0), "runs is 0"),
        (lambda: rl.BySize(()), "sizes is"),
        (lambda: rl.BySize((1, -2)), "A size is -2"),
    ],
)
def test_what_can_not_be_meant_is_refused_in_words(make: Callable[[], Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        make()
