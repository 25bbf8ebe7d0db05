"""Staged queries keep to their memory: rows beyond it lie in files, not in the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

ALLOWED_BYTES = 160_000_000  # half for the instance, half for the rows between tasks
OVERHEAD_BYTES = 150_000_000

SCRIPT = """
import sys, threading, time
from pathlib import Path

from queryard.core.model import TaskId
from queryard.engine.staged.instance import open_instance
from queryard.engine.staged.local_exchange import LocalExchange
from queryard.engine.staged.node import StagedNode
from queryard.engine.staged.query import StagedQuery
from queryard.sql.catalog import open_catalog
from queryard.sql.planner import plan_staged

folder, temp, allowed, sql = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
options = eval(sys.argv[5])


def anonymous_bytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))


plan = plan_staged(sql, open_catalog(folder), **options)
peak = 0


def watch():
    global peak
    while True:
        peak = max(peak, anonymous_bytes())
        time.sleep(0.005)


def work(node, tasks):
    while tasks:
        task = tasks.pop()
        query.done(task, node.run(query.spec(task, 1)))


half = allowed // 2
query, exchange = StagedQuery(plan, "q", allowed), LocalExchange(half, temp)
with open_instance(half, temp) as instance, StagedNode(instance, exchange) as node:
    base = anonymous_bytes()
    threading.Thread(target=watch, daemon=True).start()
    for job in plan.jobs:
        for kind, count in (("map", job.map_tasks), ("reduce", job.partitions)):
            tasks = [TaskId(job.name, kind, i) for i in range(count)]
            workers = [threading.Thread(target=work, args=(node, tasks)) for _ in range(2)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
    rows = sum(batch.num_rows for batch in query.result(exchange))
    print(rows, peak - base, exchange.store.spilled_bytes)
"""

JOIN = "SELECT f.id, f.words, d.name FROM fact f JOIN dim d ON f.id % 2 = d.k % 2"
SHUFFLED = "SELECT a.id, a.words, b.words AS other FROM fact a JOIN fact b ON a.id = b.id"
GATHERED = "SELECT id, words FROM fact ORDER BY id DESC"
LARGE_BUILD = "SELECT a.id, b.words FROM fact a JOIN fact b ON a.id < b.id AND a.id + 1 = b.id"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory")
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT i AS id, repeat(md5(i::VARCHAR), 8) AS words FROM range(1000000) t(i)) "
            f"TO '{folder / 'fact.parquet'}' (ROW_GROUP_SIZE 50000, COMPRESSION zstd)"
        )
        connection.execute(
            "COPY (SELECT i AS k, 'name ' || i AS name FROM range(6) t(i)) "
            f"TO '{folder / 'dim.parquet'}'"
        )
    return folder


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for its figures")
@pytest.mark.parametrize(
    ("sql", "options", "rows"),
    [
        pytest.param(JOIN, {}, 3_000_000, id="a join that multiplies rows"),
        pytest.param(
            SHUFFLED,
            {"broadcast_bytes": 0, "partitions": 8},
            1_000_000,
            id="shuffle",
            marks=pytest.mark.long,
        ),
        pytest.param(GATHERED, {}, 1_000_000, id="all rows in one task", marks=pytest.mark.long),
        pytest.param(
            LARGE_BUILD,
            {"broadcast_bytes": 1e12},
            999_999,
            id="a large build side",
            marks=pytest.mark.long,
        ),
    ],
)
def test_the_process_stays_small(
    folder: Path, tmp_path: Path, sql: str, options: dict[str, float], rows: int
) -> None:
    given = [str(folder), str(tmp_path), str(ALLOWED_BYTES), sql, repr(options)]
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT, *given], capture_output=True, text=True, timeout=120
    )
    assert answer.returncode == 0, answer.stderr
    found, grown_bytes, spilled_bytes = map(int, answer.stdout.split())
    assert found == rows
    assert spilled_bytes > ALLOWED_BYTES
    assert grown_bytes < ALLOWED_BYTES + OVERHEAD_BYTES
