"""A task as data, and the function that runs it on a DuckDB instance of any process.

Names in the SQL of tasks are those of the plan: `in_J`, `x_J_S` and the names of frames are inputs,
`build_J` is the table of a build side.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import duckdb
import pyarrow as pa

from queryard.core.model import Kind

from .cancellation import Cancellation
from .exchange import Exchange, Partitions, Piece, Writer
from .instance import Build, TaskInstance

if TYPE_CHECKING:
    from queryard.sql.planner.plan import StagedPlan


class Input(NamedTuple):
    """Rows that a task reads under a name."""

    name: str
    pieces: tuple[Piece, ...]


class Output(NamedTuple):
    """Where the rows of a task go: under a key, and to partitions if a reduce phase reads them."""

    key: str
    partitions: Partitions | None


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """All that a node must know to run a task: plain data, the same in every process.

    `attempt` grows with each launch of the task. `memory_bytes` is what the query may use at a
    node. `deadline_s` is a time of the system's clock, after which no result is wanted.
    """

    query: str
    job: str
    kind: Kind
    index: int
    attempt: int
    sql: str
    inputs: tuple[Input, ...]
    builds: tuple[Build, ...]
    output: Output
    batch_rows: int
    memory_bytes: float
    deadline_s: float | None = None

    def without_text(self) -> TaskSpec:
        """What is left of it for a node that has the plan: `with_text` adds the rest there."""
        builds = tuple(build._replace(select="") for build in self.builds)
        return replace(self, sql="", builds=builds)

    def with_text(self, plan: StagedPlan) -> TaskSpec:
        """The whole specification, with the SQL of the plan that it was made from."""
        sql = plan.task(self.job, self.kind, self.index).sql
        builds = tuple(build._replace(select=plan.unpacked(build.job)) for build in self.builds)
        return replace(self, sql=sql, builds=builds)


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What an attempt of a task made and where it lies; `seconds` include fetching and putting."""

    attempt: int
    pieces: tuple[Piece, ...]
    rows: int
    output_bytes: float
    seconds: float
    fetch_s: float
    put_s: float


def run_task(
    spec: TaskSpec, instance: TaskInstance, exchange: Exchange, cancelled: Cancellation
) -> TaskOutcome:
    """Run one task on the calling thread; its errors are DuckDB's, told for the user.

    Raises `PieceLost` where rows it reads are gone.
    """
    began_s = time.perf_counter()
    with instance.cursor() as cursor, cancelled.interrupting(cursor):
        try:
            fetch_s = sum(
                instance.build(build, cursor, exchange, cancelled) for build in spec.builds
            )
            fetching_s = time.perf_counter()
            inputs = {each.name: exchange.fetch(each.pieces, cancelled) for each in spec.inputs}
            fetch_s += time.perf_counter() - fetching_s
            with (
                _registered(cursor, inputs),
                closing(cursor.sql(spec.sql).to_arrow_reader(spec.batch_rows)) as reader,
                exchange.open(
                    spec.output.key, spec.attempt, reader.schema, spec.output.partitions
                ) as writer,
            ):
                made = _streamed(reader, writer, cancelled)
        except duckdb.Error as error:
            raise cancelled.told(error) from error
    pieces, rows, size, put_s = made
    seconds = time.perf_counter() - began_s
    return TaskOutcome(spec.attempt, pieces, rows, size, seconds, fetch_s, put_s)


def make_builds(
    builds: Iterable[Build], instance: TaskInstance, exchange: Exchange, cancelled: Cancellation
) -> None:
    """Make build sides tables before the task that reads them runs."""
    with instance.cursor() as cursor, cancelled.interrupting(cursor):
        try:
            for build in builds:
                instance.build(build, cursor, exchange, cancelled)
        except duckdb.Error as error:
            raise cancelled.told(error) from error


def _streamed(
    reader: pa.RecordBatchReader, writer: Writer, cancelled: Cancellation
) -> tuple[tuple[Piece, ...], int, int, float]:
    """Put rows as they come; the pieces, how many rows and bytes, and how long putting took."""
    rows, size, put_s = 0, 0, 0.0
    while (batch := _next(reader, cancelled)) is not None:
        began_s = time.perf_counter()
        writer.append(batch)
        size += batch.nbytes
        rows += batch.num_rows
        put_s += time.perf_counter() - began_s
    began_s = time.perf_counter()
    pieces = writer.commit()
    return pieces, rows, size, put_s + time.perf_counter() - began_s


def _next(reader: pa.RecordBatchReader, cancelled: Cancellation) -> pa.RecordBatch | None:
    cancelled.check()
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None
    except (OSError, pa.ArrowException) as error:
        # Arrow's way to tell what DuckDB says in the middle of a stream.
        raise cancelled.told(error) from error


@contextmanager
def _registered(
    cursor: duckdb.DuckDBPyConnection, inputs: Mapping[str, pa.Table]
) -> Iterator[None]:
    """Let SQL read Arrow tables under names."""
    names = [name.strip('"') for name in inputs]
    try:
        for name, table in zip(names, inputs.values(), strict=True):
            cursor.register(name, table)
        yield
    finally:
        for name in names:
            cursor.unregister(name)
