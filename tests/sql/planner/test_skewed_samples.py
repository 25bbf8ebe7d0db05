"""Sizes of joins of skewed tables of which a sample is known only, after filters."""

from __future__ import annotations

import duckdb
import pytest

from queryard.engine.planning import Planner
from queryard.engine.syntax.classify import classify
from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.planner import plan_staged
from queryard.sql.statistics import quick_statistics


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """Two tables, too large to be sampled whole, with keys of which few are frequent."""
    folder = tmp_path_factory.mktemp("sampled")
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.4)")
        for name, rows, power in (("facts", 300_000, 3), ("more", 150_000, 2)):
            connection.execute(
                f"""COPY (
                    SELECT floor(50000 * random() ** {power})::INTEGER AS k, i % 40 AS region
                    FROM range({rows}) r(i)
                ) TO '{folder / name}.parquet' (ROW_GROUP_SIZE 20000)"""
            )
    found = open_catalog(folder)
    for key in found.tables:
        quick_statistics(found, key)
    return found


@pytest.mark.parametrize(
    ("where", "factor"),
    [
        # About 400 rows of the sample match, most of them of the most frequent keys.
        ("m.k < 20", 1.6),
        ("m.k = 0", 1.5),
        # The same number without the most frequent keys.
        ("m.k BETWEEN 1000 AND 1400", 1.5),
        # What says nothing of the key leaves its frequent values as they are.
        ("m.region = 3", 1.6),
    ],
)
def test_a_filter_on_one_side_keeps_frequent_values_or_drops_them(
    catalog: Catalog, where: str, factor: float
) -> None:
    joined = f"SELECT f.k FROM facts f JOIN more m ON f.k = m.k WHERE {where}"
    with duckdb.connect() as connection:
        for table in catalog.tables.values():
            connection.execute(f'CREATE VIEW "{table.name}" AS FROM {table.relation}')
        ((real,),) = connection.execute(f"SELECT count(*) FROM ({joined})").fetchall()
    planned = plan_staged(joined, catalog).jobs[-1].rows_expected
    assert max(planned / real, real / planned) <= factor, (planned, real)
    if where == "m.k = 0":
        return  # Columns of both tables have the same names, and the plan does not tell the files
    # The same functions tell of the plans of native queries.
    planner = Planner(catalog)
    features = planner.features(classify(joined)[0])
    planner.close()
    assert features is not None
    foreseen = features.operators[0].rows
    assert max(foreseen / real, real / foreseen) <= factor, (foreseen, real)
