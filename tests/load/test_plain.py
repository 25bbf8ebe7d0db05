"""Plain DuckDB over the tables of a catalog."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import duckdb
import pytest

from queryard.engine.errors import QueryCancelled, QueryFailed
from queryard.engine.plain import PlainDuckDB
from queryard.sql.catalog import open_catalog


def test_files_schemas_and_databases(tmp_path: Path):
    (tmp_path / "cities.csv").write_text("name\nRome\n")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "towns.csv").write_text("name,n\nOstia,1\n")
    (tmp_path / "old" / "villages.csv").write_text("name,m\nCapri,1\n")
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as made:
        made.execute("CREATE TABLE orders AS SELECT 42 AS n")
    with PlainDuckDB(open_catalog(tmp_path), 1, 1 << 28) as duck:
        cursor = duck.cursor()
        assert cursor.arrow("SELECT name FROM cities").to_pylist() == [{"name": "Rome"}]
        assert cursor.arrow("SELECT n FROM old.towns").to_pylist() == [{"n": 1}]
        assert cursor.arrow("SELECT n FROM shop.orders").to_pylist() == [{"n": 42}]
        cursor.close()


def test_errors_are_queryards_own_and_queries_can_be_stopped():
    with PlainDuckDB(open_catalog(None), 1, 1 << 28) as duck:
        cursor = duck.cursor()
        with pytest.raises(QueryFailed, match="nothing"):
            cursor.arrow("SELECT nothing")
        stopper = threading.Thread(target=lambda: (time.sleep(0.2), cursor.interrupt()))
        stopper.start()
        with pytest.raises(QueryCancelled):
            cursor.arrow("SELECT count(*) FROM range(1000000000000) a WHERE hash(a.range) = 1")
        stopper.join()
        cursor.close()
        assert cursor.progress() == 0.0
        cursor.interrupt()


def test_a_broken_table_fails_only_the_queries_that_name_it(tmp_path: Path):
    (tmp_path / "bad.parquet").write_text("not parquet")
    (tmp_path / "cities.csv").write_text("name\nRome\n")
    with PlainDuckDB(open_catalog(tmp_path), 1, 1 << 28) as duck:
        cursor = duck.cursor()
        assert cursor.arrow("SELECT count(*) AS n FROM cities").to_pylist() == [{"n": 1}]
        with pytest.raises(QueryFailed, match="bad"):
            cursor.arrow("SELECT * FROM bad")
        cursor.close()
