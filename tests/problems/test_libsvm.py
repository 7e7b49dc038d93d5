"""Files in the format of LIBSVM: the same as scikit-learn reads, and a sentence with the line where there is something else."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings, strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import roundelay as rl
from roundelay.problems import libsvm


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 30), st.integers(1, 12), st.floats(0.0, 1.0), st.booleans(), st.integers(0, 2**32 - 1))
def test_it_reads_what_scikit_learn_reads(
    tmp_path: Path, rows: int, columns: int, density: float, from_zero: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    features = sp.random_array((rows, columns), density=density, rng=rng, format="csr")
    features.data *= 10.0 ** rng.integers(-200, 200, features.nnz)
    targets = rng.normal(size=rows)
    file = str(tmp_path / "rows.svm")
    dump_svmlight_file(features, targets, file, zero_based=from_zero, comment="made\nby hand")
    wanted, answers = load_svmlight_file(file, n_features=columns, zero_based=from_zero)
    if from_zero and not (features.indices == 0).any():
        return  # nobody can tell then
    found, own = rl.read_libsvm(file, columns)
    assert found.shape == (rows, columns)
    np.testing.assert_array_equal(found.toarray(), wanted.toarray())
    np.testing.assert_array_equal(own, answers)


TEXT = b"# two rows, and one without a number\n+1 1:0.5 3:-2e-1  # a comment: 7:8\n\n-1\n1 2:1 3:4\n"


@pytest.mark.parametrize(
    ("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_packed_or_not(tmp_path: Path, suffix: str, pack: object) -> None:
    file = tmp_path / f"rows.svm{suffix}"
    file.write_bytes(pack(TEXT))  # type: ignore[operator]
    features, targets = rl.read_libsvm(file)
    np.testing.assert_array_equal(features.toarray(), [[0.5, 0.0, -0.2], [0.0, 0.0, 0.0], [0.0, 1.0, 4.0]])
    np.testing.assert_array_equal(targets, [1.0, -1.0, 1.0])
    assert rl.read_libsvm(file, 9)[0].shape == (3, 9)
    problem = rl.Logistic(*rl.split(features, targets, agents=3, how=rl.ByLabel(), name="rows"), ridge=0.1)
    assert repr(problem) == "Logistic(rows, 3 rows, 3 agents, by label, seed 0, p = 3, sparse)"


def test_in_pieces_it_is_the_same_and_lines_are_counted_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.svm"
    file.write_bytes(b"".join(b"%d %d:1 %d:2\n" % (row, row + 1, row + 2) for row in range(50)))
    whole = rl.read_libsvm(file)[0].toarray()
    monkeypatch.setattr(libsvm, "CHUNK", 40)
    np.testing.assert_array_equal(rl.read_libsvm(file)[0].toarray(), whole)
    with file.open("ab") as more:
        more.write(b"1 1:x\n")
    with pytest.raises(ValueError, match="line 51"):
        rl.read_libsvm(file)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "has no rows"),
        (b"# nothing\n\n", "has no rows"),
        (b"1 1:2\nx 1:2\n", "line 2"),
        (b"1 1:2 3\n", "line 1.*not index:value"),
        (b"1 1:2:3 4\n", "line 1.*not index:value"),
        (b"1 1:\n", "line 1.*not index:value"),
        (b"1 qid:3 1:2\n", "line 1"),
        (b"1,2 1:2\n", "line 1"),
        (b"1 2:1 1:1\n", "line 1.*don't rise"),
        (b"1 1:1\n1 2:1 2:1\n", "line 2.*don't rise"),
        (b"1 1.5:1\n", "line 1.*no whole number"),
        (b"1 -1:1\n", "line 1.*no whole number"),
        (b"1 99999999999:1\n", "line 1.*no whole number"),
        (b"1 1:nan\n", "line 1.*not finite"),
        (b"inf 1:1\n", "line 1.*not finite"),
        (b"1 1:1e999\n", "line 1.*not finite"),
        (b"\x00\xff\x00\n", "line 1"),
    ],
)
def test_anything_else_is_refused_with_its_line(tmp_path: Path, text: bytes, why: str) -> None:
    file = tmp_path / "rows.svm"
    file.write_bytes(text)
    with pytest.raises(ValueError, match=why):
        rl.read_libsvm(file)


@given(st.binary(max_size=60))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_rows_or_a_sentence(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "rows.svm"
    file.write_bytes(text)
    try:
        features, targets = rl.read_libsvm(file)
    except ValueError as refusal:
        assert str(file) in str(refusal)
    else:
        assert features.shape[0] == len(targets) > 0


def test_files_that_are_not_there_or_not_whole(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="There is no file"):
        rl.read_libsvm(tmp_path / "rows.svm")
    with pytest.raises(ValueError, match="can't be read"):
        rl.read_libsvm(tmp_path)
    for suffix, pack in ((".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)):
        (tmp_path / f"cut.svm{suffix}").write_bytes(pack(TEXT * 100)[:-20])
        (tmp_path / f"no.svm{suffix}").write_bytes(b"not packed at all")
        for name in ("cut", "no"):
            with pytest.raises(ValueError, match="is it whole"):
                rl.read_libsvm(tmp_path / f"{name}.svm{suffix}")
    (tmp_path / "rows.svm").write_bytes(TEXT)
    with pytest.raises(ValueError, match="feature number 3, but features is 2"):
        rl.read_libsvm(tmp_path / "rows.svm", 2)
