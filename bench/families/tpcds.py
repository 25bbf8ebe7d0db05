"""TPC-DS, the family for reporting: coefficients are frozen before its queries run.

Its queries were not run, and no prediction for them was looked at, while the model was made: the
first run is the one that is reported. What was checked before is only that the data are made and
that each of the 99 texts binds.

Data and texts are those of DuckDB's extension `tpcds`. On PyPI it exists for DuckDB 1.5.5, so an
environment of its own makes them (`QUERYARD_BENCH_CACHE` names a folder in which it stays; else it
is removed). Size 1 is scale factor 1. A folder keeps the texts beside its tables.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from .making import claim, missing, size_of
from .model import Family, FamilyError, Progress, Query

VERSION = "1.5.5"
CACHE = "QUERYARD_BENCH_CACHE"
TABLES = (
    "call_center", "catalog_page", "catalog_returns", "catalog_sales", "customer",
    "customer_address", "customer_demographics", "date_dim", "household_demographics",
    "income_band", "inventory", "item", "promotion", "reason", "ship_mode", "store",
    "store_returns", "store_sales", "time_dim", "warehouse", "web_page", "web_returns",
    "web_sales", "web_site",
)  # fmt: skip

# Runs in the other environment: the folder, the scale factor, the tables to write.
_PROGRAM = """
import json, pathlib, sys
import duckdb, duckdb_extension_tpcds
folder, scale, tables = pathlib.Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
home = pathlib.Path(duckdb_extension_tpcds.__file__).parent
with duckdb.connect() as connection:
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"LOAD '{next(home.glob('extensions/*/tpcds.duckdb_extension'))}'")
    texts = connection.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY 1").fetchall()
    (folder / ".queryard" / "queries.json").write_text(json.dumps(texts, indent=1) + "\\n")
    print("dsdgen", flush=True)
    connection.execute(f"CALL dsdgen(sf={scale!r})")
    for table in tables:
        print(table, flush=True)
        made = folder / f".{table}.parquet.part"
        connection.execute(f"COPY {table} TO '{made}' (FORMAT parquet)")
        made.replace(folder / f"{table}.parquet")
"""


def make(folder: Path, size: float, progress: Progress) -> None:
    """Make the 24 tables and keep the 99 texts; then see that each text binds."""
    claim(folder, "tpcds", size)
    todo = missing(folder, TABLES)
    if todo or not _texts(folder).exists():
        with _environment(progress) as python:
            _run([python, "-c", _PROGRAM, str(folder), str(size), *todo], len(todo), progress)
    progress(0.95, "binding every text")
    check_binding(folder)
    progress(1.0, "done")


def queries(folder: Path) -> tuple[Query, ...]:
    """The 99 texts that the folder keeps."""
    size_of(folder, "tpcds")
    texts = json.loads(_texts(folder).read_text(encoding="utf-8"))
    names = [(f"q{number:02}", sql) for number, sql in texts]
    return tuple(Query(name, sql.strip().rstrip(";"), name) for name, sql in names)


def check_binding(folder: Path) -> None:
    """See that DuckDB can plan every text; the plans are not looked at."""
    with duckdb.connect() as connection:
        for table in TABLES:
            file = folder / f"{table}.parquet"
            connection.execute(f"CREATE VIEW {table} AS FROM read_parquet('{file}')")
        for query in queries(folder):
            try:
                connection.execute(f"EXPLAIN {query.sql}")
            except duckdb.Error as error:
                raise FamilyError(f"tpcds {query.name} does not bind: {error}") from error


def _texts(folder: Path) -> Path:
    return folder / ".queryard" / "queries.json"


@contextmanager
def _environment(progress: Progress) -> Iterator[str]:
    """The interpreter of an environment with DuckDB 1.5.5 and the extension."""
    with tempfile.TemporaryDirectory(prefix="queryard-tpcds-") as temporary:
        home = Path(os.environ.get(CACHE) or temporary) / f"tpcds-{VERSION}"
        python = home / "bin" / "python"
        ready = home / "ready"
        if not ready.exists():
            progress(0.0, f"installing DuckDB {VERSION} into {home}")
            _run([sys.executable, "-m", "venv", "--clear", str(home)])
            packages = [f"duckdb=={VERSION}", f"duckdb-extension-tpcds=={VERSION}"]
            _run([str(python), "-m", "pip", "install", "--quiet", *packages])
            ready.touch()
        yield str(python)


def _run(command: list[str], steps: int = 0, progress: Progress | None = None) -> None:
    """Run to the end; each line it prints is a step."""
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
            assert process.stdout is not None
            for done, line in enumerate(process.stdout):
                if progress is not None:
                    progress(0.9 * done / (steps + 1), f"making {line.strip()}")
        if process.returncode:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()
            raise FamilyError(f"{command[0]} failed: {said[-2000:]}")


TPCDS = Family("tpcds", "reporting", TABLES, make, queries)
