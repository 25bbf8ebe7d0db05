"""A small load on small data, drawn and measured."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from queryard.load import Ground, LoadSpec, Measured, examples, measure_alone, prepare, read_spec

QUERIES = {
    "count": "SELECT count(*) AS n FROM trips",
    "sums": "SELECT city, sum(price) AS total FROM trips GROUP BY city ORDER BY city",
    "pairs": "SELECT count(*) FROM trips a JOIN trips b ON a.id % 97 = b.id % 97",
}
SPEC = """
queries = 12
slots = 2
memory = "400 MB"

[data]
place = "place"
sql = "sql"

[arrivals]
rate = 30

[[tenants]]
name = "web"
guarantee = 0.5
share = 2
mix = ["count", "sums"]

[[tenants]]
name = "batch"
deadline = "1 min"
mix = "pairs"
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`place` with a table, `sql` with queries, and a spec over both."""
    made = tmp_path_factory.mktemp("load")
    (made / "place").mkdir()
    trips = pa.table(
        {
            "id": list(range(5000)),
            "city": [["Rome", "Oslo", "Bern"][i % 3] for i in range(5000)],
            "price": [i / 4 for i in range(5000)],
        }
    )
    pq.write_table(trips, made / "place" / "trips.parquet")
    (made / "sql").mkdir()
    for name, text in QUERIES.items():
        (made / "sql" / f"{name}.sql").write_text(text + ";\n")
    (made / "load.toml").write_text(SPEC)
    return made


@pytest.fixture(scope="session")
def spec(folder: Path) -> LoadSpec:
    return read_spec(folder / "load.toml")


@pytest.fixture(scope="session")
def ground(spec: LoadSpec, folder: Path) -> Ground:
    return prepare(spec, folder / "data")


@pytest.fixture(scope="session")
def measured(ground: Ground, spec: LoadSpec) -> Measured:
    return measure_alone(ground, examples(spec))
