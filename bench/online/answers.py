"""Online answers beside plain DuckDB on TPC-H: first answer, near answers, exact answer.

python -m bench.online.answers [--scale 5] [--repeats 5]: about four minutes, and as long again the
first time, for a shuffled copy of lineitem.

The clock starts with the call, and every call has a text that was not seen before, so planning is
included. "1 % true" is when the median over groups
and columns of the true relative error stays below 1 %, by answers after every statement. Statistics
are not collected meanwhile. "To exact" is with answers every half a second, as by default.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.table import Table

import queryard
from queryard.results.online import OnlineAnswer

from .questions import question
from .setting import options, tables

ASKED = ("q1", "q6", "q14", "q3total", "q5", "q12")
EXACT = ("q17", "q19")
_runs = itertools.count(1)


def bench(folder: Path, repeats: int, slots: int, names: Sequence[str]) -> None:
    plain = duckdb.connect(config={"threads": slots})
    for file in folder.glob("*.parquet"):
        plain.execute(f"CREATE VIEW {file.stem} AS FROM read_parquet('{file}')")
    table = Table(title=f"online answers beside plain DuckDB, {slots} slots, {repeats} repeats")
    for column in ("query", "native", "first", "1 % true", "stop at 1 %", "read", "to exact"):
        table.add_column(column, justify="right")
    with queryard.connect(folder, slots=slots, history=False, statistics="off") as qy:
        qy.shuffle("lineitem")
        for _ in qy.online("SELECT count(*) AS n FROM lineitem"):
            pass  # what a session does once is not measured
        for name in names:
            table.add_row(name, *_measured(qy, plain, question(name), repeats))
        for name in EXACT:
            answers = qy.online(question(name))
            *_, last = answers
            table.add_row(name, "", "", "", "", "", f"exact: {last.notes[0] if last.notes else ''}")
    Console(width=140).print(table)


def _measured(
    qy: queryard.Session, plain: duckdb.DuckDBPyConnection, sql: str, repeats: int
) -> list[str]:
    truth = Truth(plain, sql)
    native, first, near, stopped, read, exact = ([] for _ in range(6))
    for _ in range(repeats):
        began = time.perf_counter()
        plain.execute(sql).fetchall()
        native.append(time.perf_counter() - began)
        times = _run(qy, sql, truth)
        first.append(times["first"])
        near.append(times["near"])
        text = unseen(sql)
        began = time.perf_counter()
        for _ in qy.online(text):
            pass
        exact.append(time.perf_counter() - began)
        text = unseen(sql)
        began = time.perf_counter()
        *_, last = qy.online(text, stop_at=0.01, every=0)
        stopped.append(time.perf_counter() - began)
        read.append(last.fraction)
    alone = statistics.median(native)

    def told(values: Sequence[float]) -> str:
        value = statistics.median(values)
        return f"{value:.2f} s ({value / alone:.2f})"

    return [
        f"{alone:.2f} s",
        told(first),
        told(near),
        told(stopped),
        f"{statistics.median(read):.0%}",
        told(exact),
    ]


def unseen(sql: str) -> str:
    """The query as a text that no plan is kept of."""
    return f"{sql}\n-- run {next(_runs)}"


def _run(qy: queryard.Session, sql: str, truth: Truth) -> dict[str, float]:
    text = unseen(sql)
    began = time.perf_counter()
    first = near = None
    for answer in qy.online(text, every=0):
        now = time.perf_counter() - began
        first = now if first is None else first
        if truth.error_of(answer) > 0.01:
            near = None
        elif near is None:
            near = now
    return {"first": first or math.nan, "near": near or math.nan}


class Truth:
    """The exact answer of a query, by plain DuckDB."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, sql: str) -> None:
        self._rows = connection.execute(sql).fetchall()
        self._names = [column[0] for column in connection.description or ()]

    def error_of(self, answer: OnlineAnswer) -> float:
        """The median relative error over groups and estimated columns.

        A group that is missing is wrong by 100 %.
        """
        if answer.exact:
            return 0.0
        found = self._by_group(answer.rows(), answer)
        errors = []
        for key, values in self._by_group(self._rows, answer).items():
            given = found.get(key)
            for place, value in enumerate(values):
                off = 1.0 if given is None else abs(given[place] - value) / (abs(value) or 1.0)
                errors.append(off)
        return statistics.median(errors) if errors else 0.0

    def _by_group(
        self, rows: Sequence[tuple[Any, ...]], answer: OnlineAnswer
    ) -> dict[tuple[str, ...], list[float]]:
        estimated = [place for place, name in enumerate(self._names) if name in answer.low]
        return {
            tuple(str(value) for place, value in enumerate(row) if place not in estimated): [
                float(row[place] or 0.0) for place in estimated
            ]
            for row in rows
        }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__, "one repeat")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", help="some of the queries, as q1,q6")
    given = parser.parse_args(arguments)
    folder = tables(given)
    names = given.only.split(",") if given.only else ASKED
    bench(folder, 1 if given.quick else given.repeats, given.slots, names)


if __name__ == "__main__":
    main()
