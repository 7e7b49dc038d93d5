"""The rows of a DuckDB query, asked once."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from tests.batches.folders import NAMES, Site

duckdb = pytest.importorskip("duckdb", reason="a query needs DuckDB")


@pytest.fixture
def database(sites: list[Site], tmp_path: Path) -> Path:
    path = tmp_path / "site.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.sql(f"create table rows as select * from '{sites[0].folder}/*.parquet'")
        connection.sql("create table chosen as select distinct c from rows where b > 0")
    return path


def test_a_query_is_a_source_of_rows(sites: list[Site], database: Path, tmp_path: Path) -> None:
    query = "select rows.a, b / 10 as b, rows.c, t, label from rows join chosen using (c);"
    folder = rl.rows_of_query(query, tmp_path / "runs" / "kept", database)
    site, above = sites[0], sites[0].features[:, 1] > 0.0
    assert folder.rows == above.sum()
    features = site.features[above] * [1.0, 0.1, 1.0]
    found = rl.by_batches(rl.LeastSquares, [folder], NAMES, "t")
    np.testing.assert_allclose(found.optimum, rl.LeastSquares([features], [site.target[above]]).optimum, rtol=1e-9)
    assert stat.S_IMODE((tmp_path / "runs" / "kept" / "rows.parquet").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "runs").stat().st_mode) == 0o700


def test_what_is_kept_is_not_asked_again(database: Path, tmp_path: Path) -> None:
    first = rl.rows_of_query("select * from rows order by random()", tmp_path / "kept", database)
    with duckdb.connect(str(database)) as connection:
        connection.sql("delete from rows")
    assert rl.rows_of_query("select * from rows order by random()", tmp_path / "kept", database) == first
    with pytest.raises(ValueError, match="has the rows of another query"):
        rl.rows_of_query("select a from rows", tmp_path / "kept", database)
    with pytest.raises(ValueError, match="have no rows"):
        rl.rows_of_query("select * from rows", tmp_path / "other", database)


def test_a_query_that_can_not_be_answered_leaves_nothing(database: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="DuckDB can't answer the query"):
        rl.rows_of_query("select nothing from nowhere", tmp_path / "kept", database)
    with pytest.raises(ValueError, match="There is no database"):
        rl.rows_of_query("select 1", tmp_path / "kept", tmp_path / "none.duckdb")
    assert not list((tmp_path / "kept").iterdir())
