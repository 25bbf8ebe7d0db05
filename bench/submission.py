"""What a submission costs the thread that submits, beside DuckDB's own tokenizer and parser.

Run by itself: `python -m bench.submission [--repeats 10]`. CPU time of that thread only, medians
over batches of queries that are submitted one after another and then waited for.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

import queryard

# Queries that are submitted before the first answer is asked for.
BATCH = 10
SIZES = (300, 3_000, 10_000)
TARGETS = {"new": 1.5, "seen": 0.3}
COLUMNS = ("amount", "quantity", "discount")


class Cost(NamedTuple):
    """Milliseconds of one submission, and of DuckDB's own passes over the same texts."""

    size: int
    kind: str
    submit_ms: float
    tokenizer_ms: float
    parser_ms: float


def statement(size: int, number: int) -> str:
    """About so many characters, five per token; another number is another text and template."""
    text = (
        f"WITH chosen_{number} AS (\n    SELECT * FROM orders WHERE amount > 10\n)\nSELECT customer"
    )
    place = 0
    while len(text) < size - 120:
        text += (
            f",\n       sum(CASE WHEN orders.region_name = 'NORTH {place}' "
            f"THEN orders.{COLUMNS[place % 3]} ELSE 0 END) AS north_{COLUMNS[place % 3]}_{place}"
        )
        place += 1
    return f"{text}\nFROM chosen_{number} AS orders\nGROUP BY customer\nORDER BY customer\nLIMIT 5"


def _data(folder: Path) -> None:
    duckdb.sql(
        "COPY (SELECT i % 10 AS customer, i AS amount, i % 7 AS quantity, "
        "'N' || i % 5 AS region_name, 0.1 AS discount FROM range(100) r(i)) "
        f"TO '{folder / 'orders.parquet'}'"
    )


def _cpu_ms(run: Callable[[str], Any], text: str) -> tuple[float, Any]:
    began = time.thread_time()
    answer = run(text)
    return (time.thread_time() - began) * 1e3, answer


def costs(repeats: int) -> list[Cost]:
    """The medians for each size, for texts that are new and for one seen before."""
    parse = duckdb.connect().extract_statements
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        _data(Path(temporary))
        with queryard.connect(temporary, slots=2, history=False) as qy:
            qy.sql("SELECT count(*) FROM orders").fetchall()
            for size in SIZES:
                for kind in ("new", "seen"):
                    times: tuple[list[float], ...] = ([], [], [])
                    for turn in range(repeats + 1):
                        numbers = range(turn * BATCH, (turn + 1) * BATCH)
                        texts = [statement(size, n if kind == "new" else 0) for n in numbers]
                        for place, run in enumerate((qy.submit, duckdb.tokenize, parse)):
                            took = [_cpu_ms(run, text) for text in texts]
                            times[place].append(statistics.median(ms for ms, _ in took))
                            for _, answer in took if run is qy.submit else ():
                                answer.result().fetchall()
                    # The first warms up.
                    found.append(Cost(size, kind, *(statistics.median(t[1:]) for t in times)))
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.submission", description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    given = parser.parse_args(arguments)
    print("  size  text   submit ms  target  of tokenizer  of parser")
    for cost in costs(given.repeats):
        target = TARGETS[cost.kind]
        print(
            f"{cost.size:6,}  {cost.kind:4}  {cost.submit_ms:10.2f}  {target:6.1f}  "
            f"{cost.submit_ms / cost.tokenizer_ms:12.2f}  {cost.submit_ms / cost.parser_ms:9.2f}  "
            f"{'reached' if cost.submit_ms <= target else 'missed'}"
        )


if __name__ == "__main__":
    main()
