"""A server on a cluster is killed: its processes at nodes end, and another one goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest
from service.processes import a_process
from waiting import wait_until

import queryard
from bench.ray.processes import descendants
from queryard.backends.ray import cluster as clusters
from queryard.history import HistoryReader

from .ray_cluster import ray_cluster, skip_without_ray

SLOW = "SELECT count(*) FROM range(1000000000) a, range(1000) b, numbers c WHERE a.range > c.n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    duckdb.sql(f"COPY (SELECT range AS n FROM range(1000)) TO '{folder}/numbers.parquet'")
    return folder


def actors(pid: int) -> list[int]:
    """The processes of nodes that a driver has, below those of the cluster."""
    return [
        child.pid
        for child in descendants(pid)
        if b"NodeActor" in Path(f"/proc/{child.pid}/cmdline").read_bytes()
    ]


def left(root: Path) -> list[str]:
    """Folders of processes in a place for temporary files."""
    return [str(found) for found in root.glob("queryard-*/*") if found.is_dir()]


@pytest.mark.long
@pytest.mark.limit(240.0)  # a cluster and two servers are started one after another
def test_a_server_is_killed_and_another_goes_on(data: Path, tmp_path: Path, monkeypatch: Any):
    skip_without_ray()
    temp = tmp_path / "temp"
    (temp / "ray").mkdir(parents=True)  # Ray writes a note of the cluster there
    monkeypatch.setenv("TMPDIR", str(temp))
    with ray_cluster(1) as cluster:
        where = (data, "--backend", "ray", "--address", cluster.address, "--postgres", "off")
        with a_process(tmp_path, *where) as server:
            token = server.token
            with queryard.connect(server.url, token=token, patience=0) as qy:
                assert qy.sql("SELECT sum(n) FROM numbers").fetchall() == [(499500,)]
                lost = qy.submit(SLOW, idempotency_key="report")
                wait_until(lambda: lost.status == "running", what="it runs")
                time.sleep(1.0)  # the history is written twice per second
                before = actors(os.getpid())
                assert before
                server.send(signal.SIGKILL)
                server.end()
        wait_until(lambda: not set(before) & set(actors(os.getpid())), what="its actors end")
        with HistoryReader(data / ".queryard" / "history.sqlite") as reader:
            outcomes = {row.query: row.outcome for row in reader.queries()}
        assert sorted(outcomes.values()) == ["finished", "lost"]
        assert outcomes[lost.id] == "lost"
        # The CPUs of the cluster are free again: another server has the same nodes.
        with a_process(tmp_path, *where) as server:
            assert server.wait_for("query lost")["query"] == lost.id
            with queryard.connect(server.url, token=token) as qy:
                assert qy.past_query(lost.id).outcome == "lost"
                again = qy.submit("SELECT max(n) FROM numbers", idempotency_key="report-2")
                assert again.take().fetchall() == [(999,)]
                asked = qy.submit(SLOW, idempotency_key="report")
                assert asked.id != lost.id
                wait_until(lambda: asked.status == "running", what="it runs")
                asked.cancel()
            server.send(signal.SIGTERM)
            assert server.end() == 0
    assert left(temp) == []


def test_what_a_killed_program_has_left_is_removed_by_the_next(tmp_path: Path, monkeypatch: Any):
    """A cluster of one's own keeps its files where the next one finds those of a dead process."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = (
        "import os, sys, signal\n"
        "from pathlib import Path\n"
        "from queryard.engine.temp import TempSpace, own_root\n"
        f"space = TempSpace(own_root(Path({str(tmp_path / 'qyray')!r})))\n"
        "(space.path / 'session').mkdir()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    (abandoned,) = (tmp_path / "qyray").iterdir()
    space = clusters.TempSpace(clusters.own_root(tmp_path / "qyray"))
    try:
        assert not abandoned.exists()
        assert space.path.exists()
    finally:
        space.close()
    assert list((tmp_path / "qyray").iterdir()) == []
