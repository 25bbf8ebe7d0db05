"""The demonstration and the chaos on Ray run to their ends, with right answers."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from backends.ray_cluster import skip_without_ray

from bench.ray.processes import Process, descendants, end

ROOT = Path(__file__).parents[2]
MARK = "QUERYARD_TEST_RUN"


def of_run(run: str) -> Iterator[Process]:
    """All processes that were started in a run, whatever has become of those that started them."""
    marked = f"{MARK}={run}".encode()
    for process in descendants(0):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if marked in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                yield process


def output_of(*command: str, limit_s: float) -> str:
    """What a program says; it must end within a time, and all that it has started with it."""
    run = uuid.uuid4().hex
    try:
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env={**os.environ, MARK: run, "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
        told = done.stdout + done.stderr[-5000:]
        assert done.returncode in (0, 1), told
        assert "Traceback" not in done.stderr, told
    finally:
        left = end(list(of_run(run)), 5.0)
    assert left == []
    return told


@pytest.mark.long
def test_the_demonstration_loses_a_node_and_gives_right_answers(tmp_path: Path):
    skip_without_ray()
    pytest.importorskip("matplotlib")
    figure = tmp_path / "cluster.png"
    told = output_of(
        *("bench.ray.demo", "--seconds=15", "--scale=0.01"),
        *(f"--figure={figure}", f"--data={tmp_path}"),
        limit_s=300.0,
    )
    assert "a node is killed" in told
    assert "another node is started" in told
    assert "All answers are those of plain DuckDB." in told
    assert figure.read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_the_chaos_ends_without_a_wrong_answer_and_without_a_leak(tmp_path: Path):
    """Its third target is a time, which belongs to benches: a busy machine may miss it."""
    skip_without_ray()
    told = output_of("bench.ray.chaos", "--quick", f"--data={tmp_path}", limit_s=540.0)
    assert "a node is killed" in told
    assert "0 leaks, 0 wrong answers" in told
