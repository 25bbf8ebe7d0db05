"""What a submission costs the thread that submits, and an ended task the thread that decides.

Run by itself: `python -m bench.submission [--repeats 10]`. CPU time of that thread only, medians
over batches of queries that are submitted one after another and then waited for; beside it DuckDB's
own tokenizer and parser.

An update is what is learnt from a task of a staged query that has ended, with the new estimates.
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
from queryard.core.commands import Launch
from queryard.core.model import Job, Phase, Query, TaskId
from queryard.estimate.jobs import JobSizes, PhaseSizes
from queryard.estimate.tasks import make_predictor
from queryard.estimate.tasks.estimating import Report, TaskEstimates
from queryard.estimate.tasks.planned import PlannedJob, PlannedQuery

# Queries that are submitted before the first answer is asked for.
BATCH = 10
SIZES = (300, 3_000, 10_000)
TARGETS = {"new": 1.5, "seen": 0.3}
COLUMNS = ("amount", "quantity", "discount")
# A staged query for updates: a chain of jobs, each with maps and reduces.
JOBS, MAPS, REDUCES = 10, 64, 16
# Of a task that has ended.
UPDATE_US = 50.0


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


def update_us(repeats: int) -> float:
    """Microseconds per ended task: the median over queries, after one that warms up."""
    estimates = TaskEstimates(make_predictor("regression"))
    return statistics.median(_updates_us(estimates, turn) for turn in range(repeats + 1))


def _updates_us(estimates: TaskEstimates, turn: int) -> float:
    names = [f"j{number}" for number in range(JOBS)]
    jobs, planned = [], {}
    for number, name in enumerate(names):
        above = names[number - 1 : number]
        read = dict.fromkeys(above, 1e8)
        scan_bytes = 0.0 if above else 1e9
        sizes = JobSizes("join", PhaseSizes(MAPS, scan_bytes, 1e8), PhaseSizes(REDUCES, 0.0, 1e8))
        planned[name] = PlannedJob(scan_bytes, read, 1e8, 1.0, 1.0, sizes)
        jobs.append(
            Job(
                name,
                operator="join",
                upstream=tuple(above),
                map=Phase(MAPS, sizes=(1e6,) * MAPS),
                reduce=Phase(REDUCES, 1e6),
            )
        )
    query = Query(f"q{turn}", tuple(jobs), class_name=f"template{turn % 3}")
    estimates.submitted(0.0, query, PlannedQuery(planned))
    tasks = [
        TaskId(query.job_id(name), kind, index)
        for name in names
        for kind, count in (("map", MAPS), ("reduce", REDUCES))
        for index in range(count)
    ]
    began = time.thread_time()
    for number, task in enumerate(tasks):
        launch = Launch(number, "n", (task,), time_s=float(number))
        estimates.ended(number + 1.5, launch, Report(output_bytes=1e6))
    took_s = time.thread_time() - began
    estimates.forget(query.id)
    return took_s / len(tasks) * 1e6


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
    update = update_us(given.repeats)
    print(
        f"an update per ended task: {update:.0f} µs, target {UPDATE_US:.0f}, "
        f"{'reached' if update <= UPDATE_US else 'missed'}"
    )


if __name__ == "__main__":
    main()
