"""A session on a cluster that cannot be opened leaves nothing, and says what is wrong."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any

import duckdb
import pytest

import queryard
from queryard.backends.ray import cluster as clusters
from queryard.backends.ray.cluster import Cluster
from queryard.core.errors import QueryardError

WAITS = "import sys, time; time.sleep(600)"


def test_what_a_failed_start_has_started_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    started: list[subprocess.Popen[bytes]] = []

    def fails(**given: Any) -> None:
        started.append(subprocess.Popen([sys.executable, "-c", WAITS, given["_temp_dir"]]))
        raise Exception("The current node timed out during startup.\nmore")

    fake = types.SimpleNamespace(init=fails, shutdown=lambda: None, is_initialized=lambda: False)
    monkeypatch.setattr(clusters, "import_on_loopback", lambda: fake)
    monkeypatch.setattr(clusters, "_root", lambda: tmp_path / "ray")
    other = subprocess.Popen([sys.executable, "-c", WAITS, str(tmp_path)])
    try:
        with pytest.raises(QueryardError, match=r"3 CPUs \(slots\).* 80 MB \(store\): The current"):
            Cluster.join("local", 3, 80 << 20)
        assert started[0].poll() is not None
        assert other.poll() is None
        assert list((tmp_path / "ray").iterdir()) == []
    finally:
        for process in (*started, other):
            process.kill()
            process.wait()


@pytest.mark.parametrize("port", ["free", "99999"])
def test_an_address_where_nothing_listens_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, port: str
):
    def init(**given: Any) -> None:
        raise AssertionError("Ray would try for minutes")

    util = types.SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1")
    fake = types.SimpleNamespace(init=init, is_initialized=lambda: False, util=util)
    monkeypatch.setattr(clusters, "import_ray", lambda: fake)
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
        with pytest.raises(AssertionError):
            Cluster.join(f"127.0.0.1:{number}")
    address = f"127.0.0.1:{number if port == 'free' else port}"
    with pytest.raises(QueryardError, match=f"nothing answers at {address} .*ray start --head"):
        Cluster.join(address)


def test_a_session_that_cannot_be_opened_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    data, temp = tmp_path / "data", tmp_path / "temp"
    data.mkdir()
    duckdb.sql(f"COPY (SELECT 1 AS n) TO '{data}/numbers.parquet'")

    def refuses(*given: Any, **named: Any) -> Any:
        raise QueryardError("no cluster there")

    monkeypatch.setattr(Cluster, "join", refuses)
    before = set(threading.enumerate())
    with pytest.raises(QueryardError, match="no cluster there"):
        queryard.connect(data, backend="ray", address="auto", temp=temp)
    assert set(threading.enumerate()) <= before
    assert list(temp.iterdir()) == []
