"""Lends threads to native queries by hand, as a backend would, at whatever moment a test likes."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from queryard.engine.instances.budget import Budget
from queryard.engine.native import NativeEngine, NativeQuery, NativeStatement
from queryard.engine.session.session import SessionInstance
from queryard.engine.statement import Lease
from queryard.engine.syntax.classify import classify
from queryard.results.streams import ResultStream
from queryard.sql.catalog import open_catalog

PATIENCE_S = 60.0
MIB = 1 << 20


def write_facts(folder: Path, rows: int = 400_000) -> None:
    """Numbers with skew, NULLs and duplicates, the same every time."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute(
            f"""
            COPY (
                SELECT i AS id,
                       (i * 7919) % 1000 AS key,
                       CASE WHEN i % 11 = 0 THEN NULL ELSE (i * 31) % 97 END AS small,
                       (i % 1000) / 8.0 AS amount,
                       ((i * 13) % 100000)::DECIMAL(12,2) / 100 AS price,
                       DATE '2020-01-01' + ((i * 17) % 900)::INTEGER AS day,
                       'text ' || md5((i % 5000)::VARCHAR) AS words
                FROM range({rows}) AS r(i)
            ) TO '{folder / "facts.parquet"}' (ROW_GROUP_SIZE 51200)
            """
        )
        connection.execute(
            f"COPY (SELECT i AS key, i % 7 AS part, 'name ' || i AS name FROM range(1000) AS r(i)) "
            f"TO '{folder / 'dims.parquet'}'"
        )
        connection.execute(
            f"COPY (SELECT i AS key, 'x' AS name FROM range(0) AS r(i)) "
            f"TO '{folder / 'none.parquet'}'"
        )


def plain(folder: Path, sql: str) -> pa.Table:
    """DuckDB's own answer, on the same files."""
    with duckdb.connect(config={"threads": 2}) as connection:
        for file in sorted(folder.glob("*.parquet")):
            connection.execute(f"CREATE VIEW \"{file.stem}\" AS FROM read_parquet('{file}')")
        return connection.sql(sql).to_arrow_table()


def check_same(found: pa.Table, expected: pa.Table, ordered: bool = False) -> None:
    """The same columns, Arrow types and rows; without `ordered`, in any order."""
    assert found.schema.names == expected.schema.names
    assert found.schema.types == expected.schema.types
    assert found.num_rows == expected.num_rows
    if not (found.equals(expected) or (not ordered and _sorted_equal(found, expected))):
        ours, theirs = _rows(found), _rows(expected)
        if not ordered:
            ours.sort(key=_sortable)
            theirs.sort(key=_sortable)
        for our, their in zip(ours, theirs, strict=True):
            assert len(our) == len(their)
            assert all(map(_alike, our, their)), (our, their)


def _sorted_equal(found: pa.Table, expected: pa.Table) -> bool:
    """Fast where it can be told fast; otherwise rows are compared one by one."""
    if any(pa.types.is_nested(kind) or pa.types.is_floating(kind) for kind in found.schema.types):
        return False
    places = [str(place) for place in range(found.num_columns)]
    by = [(place, "ascending") for place in places]
    try:
        ours, theirs = (t.rename_columns(places).sort_by(by) for t in (found, expected))
    except (pa.ArrowNotImplementedError, TypeError):
        return False
    return bool(ours.equals(theirs))


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _sortable(row: tuple[Any, ...]) -> list[tuple[bool, str]]:
    # Sums of floats depend on the order of the rows; eight digits are enough to sort by.
    return [(v is None, f"{v:.8e}" if isinstance(v, float) else repr(v)) for v in row]


def _alike(our: Any, their: Any) -> bool:
    if isinstance(our, float) and isinstance(their, float):
        if math.isnan(our) or math.isnan(their):
            return math.isnan(our) and math.isnan(their)
        return math.isclose(our, their, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(our, dict) and isinstance(their, dict):
        return our.keys() == their.keys() and all(_alike(our[k], their[k]) for k in our)
    if isinstance(our, list | tuple) and isinstance(their, list | tuple):
        return len(our) == len(their) and all(map(_alike, our, their))
    return type(our) is type(their) and (our == their or _is_nan(our, their))


def _is_nan(our: Any, their: Any) -> bool:
    return isinstance(our, Decimal) and our.is_nan() and their.is_nan()


class Slots:
    """Threads lent to one query; `width` of them at any time."""

    def __init__(self, query: NativeQuery) -> None:
        self.query = query
        self._leases: list[tuple[Lease, threading.Thread]] = []
        self._all: list[threading.Thread] = []
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._poll, daemon=True)
        self._watch.start()

    def _poll(self) -> None:
        while not self._over.wait(0.0005):
            self.query.poll()

    @property
    def width(self) -> int:
        return len(self._leases)

    def widen(self, count: int = 1) -> Slots:
        for _ in range(count):
            lease = Lease()
            thread = threading.Thread(target=self.query.serve, args=(lease,), daemon=True)
            self._leases.append((lease, thread))
            self._all.append(thread)
            thread.start()
        return self

    def narrow(self, count: int = 1) -> list[threading.Thread]:
        """Revoke the youngest leases; their threads, which end soon."""
        leaving = [self._leases.pop() for _ in range(min(count, self.width))]
        for lease, _ in leaving:
            self.query.withdraw(lease)
        return [thread for _, thread in leaving]

    def set_width(self, width: int) -> None:
        if width > self.width:
            self.widen(width - self.width)
        else:
            self.narrow(self.width - width)

    def close(self) -> None:
        """All threads must come home by themselves once the query has ended."""
        for thread in self._all:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a slot did not come back"
        self._over.set()
        self._watch.join(PATIENCE_S)


class Bench:
    """An engine, and what must hold when it is idle."""

    def __init__(self, where: Path, temp: Path, memory_bytes: int = 256 * MIB) -> None:
        temp.mkdir(exist_ok=True)
        self.where = where
        self.temp = temp
        self.budget = Budget(memory_bytes, 2 * memory_bytes)
        self.memory_bytes = memory_bytes
        catalog = open_catalog(where)
        self.engine = NativeEngine(catalog, 2, self.budget.pool_bytes, temp)
        self.client = SessionInstance(2, self.budget.session_bytes, temp, self.engine.reach, False)

    def query(
        self,
        sql: str,
        parameters: Sequence[Any] = (),
        output: ResultStream | None = None,
        memory_bytes: int | None = None,
        sprints: bool = False,
    ) -> NativeQuery:
        statement = NativeStatement(
            tuple(classify(sql)),
            parameters,
            memory_bytes or self.memory_bytes,
            sprints,
            self.client,
        )
        return self.engine.open(statement, output if output is not None else ResultStream())

    def run(self, sql: str, parameters: Sequence[Any] = (), width: int = 2) -> pa.Table:
        """The answer, with all slots all the time."""
        query = self.query(sql, parameters)
        slots = Slots(query).widen(width)
        try:
            return collect(query)
        finally:
            slots.close()

    def check_idle(self) -> None:
        """Nothing is left of any query: no memory beyond caches, no files, limits in the budget."""
        assert self.engine.pool.limits_bytes <= self.budget.pool_bytes
        for idle in self.engine.pool._idle:
            used = idle.instance.control.rows(
                "SELECT sum(memory_usage_bytes)::BIGINT AS bytes FROM duckdb_memory() "
                "WHERE tag NOT IN ('EXTERNAL_FILE_CACHE', 'OBJECT_CACHE', 'METADATA')"
            )
            assert (used[0]["bytes"] or 0) <= 2 * MIB, used
            spilled = idle.instance.control.rows("SELECT * FROM duckdb_temporary_files()")
            assert spilled == []
        assert [path for path in self.temp.rglob("*.tmp") if path.is_file()] == []

    def close(self) -> None:
        self.client.close()
        self.engine.close()


def collect(query: NativeQuery) -> pa.Table:
    """All rows, read as they come."""
    schema = query.output.schema(PATIENCE_S)
    batches = []
    while (batch := query.output.next(PATIENCE_S)) is not None:
        batches.append(batch)
    return pa.Table.from_batches(batches, schema)
