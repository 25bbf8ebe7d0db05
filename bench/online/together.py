"""Twenty online queries over one table within three seconds, beside plain DuckDB.

python -m bench.online.together [--scale 5] [--repeats 3]: about three minutes.

Mean time to 1 % by interval, over the mean response of the exact queries run one after another, and
over plain DuckDB's mean response for all of them at the same times.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import duckdb
from rich.console import Console
from rich.table import Table

import queryard

from .questions import LINEITEM
from .setting import options, tables

WITHIN_S = 3.0


def arrivals(seed: int) -> list[float]:
    """When the queries come, in seconds."""
    draw = Random(f"together/{seed}")
    return sorted(draw.uniform(0.0, WITHIN_S) for _ in LINEITEM)


def played(ask: Callable[[str], None], times: Sequence[float]) -> list[float]:
    """The response of each query, asked at its time on a thread of its own."""
    found = [0.0] * len(times)
    began = time.perf_counter()

    def one(place: int) -> None:
        time.sleep(max(0.0, times[place] - (time.perf_counter() - began)))
        ask(LINEITEM[place])
        found[place] = time.perf_counter() - began - times[place]

    threads = [threading.Thread(target=one, args=(place,)) for place in range(len(times))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def one_by_one(connection: duckdb.DuckDBPyConnection, times: Sequence[float]) -> list[float]:
    """The response of each exact query, in order of arrival."""
    found, free = [], 0.0
    for place, due in enumerate(times):
        began = time.perf_counter()
        connection.execute(LINEITEM[place]).fetchall()
        free = max(free, due) + time.perf_counter() - began
        found.append(free - due)
    return found


def bench(folder: Path, repeats: int, slots: int) -> None:
    plain = duckdb.connect(config={"threads": slots})
    plain.execute(f"CREATE VIEW lineitem AS FROM read_parquet('{folder}/lineitem.parquet')")

    def exactly(sql: str) -> None:
        plain.cursor().execute(sql).fetchall()

    rows = []
    with queryard.connect(folder, slots=slots, history=False, statistics="off") as qy:
        qy.shuffle("lineitem")

        def online(sql: str) -> None:
            for _ in qy.online(sql, stop_at=0.01, every=0):
                pass

        online(LINEITEM[0])
        for seed in range(repeats):
            times = arrivals(seed)
            ours = statistics.fmean(played(online, times))
            alone = statistics.fmean(one_by_one(plain, times))
            together = statistics.fmean(played(exactly, times))
            rows.append((ours, alone, together, ours / alone, ours / together))
    table = Table(title=f"{len(LINEITEM)} online queries within {WITHIN_S:g} s, {slots} slots")
    for column in ("online to 1 %", "exact one by one", "DuckDB at once", "of 1st", "of 2nd"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*(f"{value:.2f}" for value in row))
    Console(width=110).print(table)
    print(
        f"median: {statistics.median(r[3] for r in rows):.2f} of one by one (target 0.20), "
        f"{statistics.median(r[4] for r in rows):.2f} of DuckDB's at once (target 0.50)"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__, "one repeat")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args(arguments)
    folder = tables(given)
    bench(folder, 1 if given.quick else given.repeats, given.slots)


if __name__ == "__main__":
    main()
