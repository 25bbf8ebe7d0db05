"""What must run in the driver of a cluster keeps to the driver's own CPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from waiting import wait_until

import queryard
from queryard.live.client import Client

from .fake_ray import ray_faked

LONG = "SELECT sum(a.n * b.n + {}) FROM frame a, frame b, frame c"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    duckdb.sql(f"COPY (SELECT range AS n FROM range(1000)) TO '{tmp_path}/numbers.parquet'")
    return tmp_path


def connect(folder: Path) -> queryard.Session:
    options: Any = {"memory": "1 GB", "history": False, "statistics": "off"}
    session = queryard.connect(folder, backend="ray", address="auto", **options)
    session.register("frame", pa.table({"n": range(20_000)}))
    return session


def slots(session: queryard.Session) -> list[tuple[int, int]]:
    """The width and the slots of each query that runs."""
    return session.host.ask(
        lambda coordinator: sorted(
            (job.width, job.slots) for job in coordinator.kernel.state.leaseholders.values()
        )
    )


@pytest.mark.parametrize(("cpus", "wide"), [(0, 1), (1, 1), (2, 2), (8, 4)])
def test_a_query_that_runs_in_the_driver_has_no_more_slots_than_the_driver_cpus(folder, cpus, wide):
    with ray_faked(4, 4) as ray:
        ray.driver_cpus = cpus
        with connect(folder) as session:
            handle = session.submit(LONG.format(0))
            wait_until(lambda: slots(session) == [(wide, wide)])
            handle.cancel()


def test_queries_that_run_in_the_driver_share_its_cpus_and_have_one_each_at_least(folder):
    with ray_faked(4, 4) as ray:
        ray.driver_cpus = 2
        with connect(folder) as session:
            clients = [Client.open(session.host, memory_bytes=100 << 20) for _ in range(3)]
            for client in clients:
                made = client.submit(
                    "CREATE TEMP TABLE frame AS SELECT range AS n FROM range(20000)"
                )
                wait_until(lambda made=made: made.ended)
            first = clients[0].submit(LONG.format(0))
            wait_until(lambda: slots(session) == [(2, 2)])
            others = [client.submit(LONG.format(0)) for client in clients[1:]]
            wait_until(lambda: slots(session) == [(1, 1)] * 3)
            for ticket in (first, others[0]):
                session.host.cancel(ticket.id)
            wait_until(lambda: slots(session) == [(2, 2)])
            session.host.cancel(others[1].id)
            wait_until(lambda: not slots(session))
            for client in clients:
                client.close()


def test_what_runs_at_nodes_has_all_their_slots(folder):
    with ray_faked(4, 4) as ray:
        ray.driver_cpus = 0
        with connect(folder) as session:
            sql = (
                "SELECT sum(a.n * b.n + c.n * d.n) FROM numbers a, numbers b, numbers c, numbers d"
            )
            handle = session.submit(sql, plan="native")
            wait_until(lambda: slots(session) == [(4, 4)])
            handle.cancel()
