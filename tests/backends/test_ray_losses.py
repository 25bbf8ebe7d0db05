"""What a query, a node or a driver in trouble costs on a cluster: itself, and nothing beside."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import queryard

from .fake_ray import FakeRay, ray_faked

PATIENCE_S = 30.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    duckdb.sql(f"COPY (SELECT range AS n FROM range(1000)) TO '{tmp_path}/numbers.parquet'")
    return tmp_path


@pytest.fixture
def ray() -> Iterator[FakeRay]:
    with ray_faked(2, 1) as fake:
        yield fake


@pytest.fixture
def session(ray: FakeRay, folder: Path) -> Iterator[queryard.Session]:
    options: Any = {"memory": "1 GB", "history": False, "statistics": "off"}
    with queryard.connect(folder, backend="ray", address="auto", **options) as made:
        yield made


def until(true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline_s, "it does not happen"
        time.sleep(0.01)


# --- what runs with the driver -------------------------------------------------------------------


def test_what_runs_with_the_driver_ends_without_waiting_for_the_backend(session):
    """A slot that ends posts under a lock that the backend takes where it grants."""
    backend: Any = session.host.backend
    go = threading.Event()
    handle = session.iterate(lambda step: go.wait(PATIENCE_S) and 0.5, 1, work_s=0.01)
    until(lambda: bool(backend._here.held))
    with backend._lock:
        go.set()
        until(lambda: not backend._here.held)
        leases = backend._here._leases
        assert leases._lock.acquire(timeout=PATIENCE_S)
        leases._lock.release()
    assert handle.wait(PATIENCE_S)
