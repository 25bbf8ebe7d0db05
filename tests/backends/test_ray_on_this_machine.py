"""`address="local"` with Ray itself: a cluster of the session's own, which ends with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb

from bench.ray.processes import descendants, end, listening, off_loopback
from queryard.backends.ray import cluster as clusters

from .ray_cluster import skip_without_ray

# What users type first. It waits for a line while the session is open; once it is closed, until its
# input ends.
PROGRAM = """
import json, sys
import queryard

with queryard.connect(sys.argv[1], backend="ray", address="local") as qy:
    asked = "SELECT n % 2, sum(n) FROM numbers GROUP BY 1 ORDER BY 1"
    answers = [qy.sql(asked, plan=plan).fetchall() for plan in ("native", "staged")]
    print(json.dumps(answers), flush=True)
    sys.stdin.readline()
print("closed", flush=True)
sys.stdin.readline()
"""


def test_a_cluster_of_ones_own_answers_on_loopback_only_and_ends_with_its_session(tmp_path: Path):
    skip_without_ray()
    duckdb.sql(f"COPY (SELECT range AS n FROM range(1000)) TO '{tmp_path}/numbers.parquet'")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOME": str(tmp_path)},  # Ray keeps a token for the user there
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None

        def folders() -> list[Path]:
            return list(clusters._root().glob(f"{program.pid}-*"))

        answers = json.loads(program.stdout.readline())
        assert answers == [[[0, 249500], [1, 250000]]] * 2
        started = descendants(program.pid)
        pids = {program.pid, *(process.pid for process in started)}
        names = {Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids}
        assert names >= {"gcs_server", "raylet"}
        assert listening(pids)
        assert off_loopback(pids) == []
        assert len(folders()) == 1

        program.stdin.write("close\n")
        program.stdin.flush()
        assert program.stdout.readline() == "closed\n"
        # The program lives: what is left now would be left by the session, not by its end.
        assert end(started, 10.0) == []
        assert descendants(program.pid) == set()
        assert listening({program.pid}) == []
        assert folders() == []
    assert program.returncode == 0
