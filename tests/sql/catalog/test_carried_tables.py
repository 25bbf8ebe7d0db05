"""Tables travel to another process as data, and are the same there."""

from __future__ import annotations

import pickle
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from queryard.sql.catalog import open_catalog
from queryard.sql.catalog.carried import arrived, carried
from queryard.sql.catalog.metadata import MetadataReader


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    duckdb.sql(f"COPY (SELECT range AS n FROM range(9)) TO '{tmp_path}/numbers.parquet'")
    duckdb.sql(f"COPY (SELECT range AS n FROM range(9)) TO '{tmp_path}/lines.csv'")
    (tmp_path / "objects.json").write_text('{"n": 1}\n{"n": 2}\n')
    (tmp_path / "parts" / "day=1").mkdir(parents=True)
    duckdb.sql(f"COPY (SELECT 7 AS n) TO '{tmp_path}/parts/day=1/a.parquet'")
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as shop:
        shop.execute("CREATE TABLE orders (id INT PRIMARY KEY, n INT DEFAULT 7)")
    return tmp_path


def test_every_kind_of_table_is_the_same_there(folder):
    more = {
        "odd": {"path": str(folder / "lines.csv"), "header": False},
        "frame": pa.table({"n": [1, 2, 3]}),
    }
    catalog = open_catalog(folder, more)
    sent = pickle.dumps((carried(catalog.tables.values()), catalog.databases))
    there = arrived(*pickle.loads(sent), MetadataReader())
    found = {table.key: table for table in there.tables}
    assert found.keys() == catalog.tables.keys() - {"frame"}
    assert {table.kind for table in found.values()} == {"parquet", "csv", "json", "database"}
    for key, table in found.items():
        here = catalog.tables[key]
        assert table.fingerprint == here.fingerprint
        assert table.columns == here.columns
        assert table.relation == here.relation
        assert table.files == here.files
        assert table.declared == here.declared
    assert tuple(there.databases) == catalog.databases
