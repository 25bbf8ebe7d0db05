"""Policies that change the number of nodes of a cluster."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import duckdb
import pytest
from waiting import wait_until

import queryard
from queryard.core.errors import QueryardError

from .fake_ray import ray_faked

TOTAL = "SELECT sum(n) FROM numbers"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    duckdb.sql(f"COPY (SELECT range AS n FROM range(1000)) TO '{tmp_path}/numbers.parquet'")
    return tmp_path


def profile(part: str) -> dict[str, Any]:
    return {"order": "fair", "provisioning": {"name": part, "period_s": 0.05}}


def connect(folder: Path, policy: Any, **backend: Any) -> queryard.Session:
    table = {"kind": "ray", "address": "auto", **backend}
    options: Any = {"memory": "1 GB", "history": False, "statistics": "off", "profile": policy}
    return queryard.connect(folder, backend=table, **options)


def in_use(session: Any) -> int:
    return len(session.host.backend.nodes)


def asks(session: Any, plan: str = "native") -> None:
    assert session.sql(TOTAL, plan=plan).fetchall() == [(499500,)]


def test_nodes_of_a_fixed_cluster_are_taken_out_of_use_and_into_it(folder):
    with ray_faked(1, 1, 1) as ray, connect(folder, profile("-x"), nodes=(1, 3)) as session:
        assert in_use(session) == 3
        asks(session)
        wait_until(lambda: in_use(session) == 1)
        # Their processes are kept warm, and nothing runs there.
        assert sum(actor.alive for actor in ray.actors) == 3
        asks(session, "staged")
        assert len(session.cluster().nodes) == 1
        session.use_profile(profile("+x"))
        slow = session.submit("SELECT count(*) FROM range(100000000) a, range(10000) b")
        wait_until(lambda: in_use(session) == 3)
        slow.cancel()
        asks(session, "staged")
        assert not ray.asked
        session.use_profile(profile("-x"))
        asks(session)
        wait_until(lambda: in_use(session) == 1)
        session.use_profile("fair")  # a policy that does not size has all of them
        wait_until(lambda: in_use(session) == 3)
        asks(session, "staged")


def test_no_more_nodes_take_part_than_are_said(folder):
    with ray_faked(1, 1, 1) as ray, connect(folder, "fair", nodes=(1, 2)) as session:
        assert in_use(session) == 2
        ray.add(1)
        time.sleep(0.2)
        assert in_use(session) == 2
        used = {actor.node for actor in ray.actors if actor.alive}
        ray.lose(sorted(used)[0])  # another one takes its place
        wait_until(lambda: in_use(session) == 2)
        asks(session, "staged")


def test_nodes_are_asked_of_the_autoscaler_and_let_go(folder):
    with ray_faked() as ray:
        table = {"nodes": (1, 3), "autoscaler": True, "slots": 1}
        with connect(folder, profile("+x"), **table) as session:
            # There was none: the least number was asked for, and waited for.
            assert ray.asked[0] == (1, 1)
            asks(session)
            slow = session.submit("SELECT count(*) FROM range(100000000) a, range(10000) b")
            wait_until(lambda: in_use(session) == 3)
            assert ray.asked[-1] == (3, 1)
            asks(session, "staged")
            slow.cancel()
            session.use_profile(profile("-x"))
            asks(session, "staged")
            wait_until(lambda: in_use(session) == 1)
            # The processes there end, so that the autoscaler can take the nodes.
            wait_until(lambda: sum(actor.alive for actor in ray.actors) == 1)
            wait_until(lambda: ray.asked[-1] == (1, 1))
            backend: Any = session.host.backend
            wait_until(lambda: len(backend._peers._actors) == 1)  # no rows are asked for there
            time.sleep(0.2)
            assert in_use(session) == 1  # nodes that are still there do not join again
            ray.let_go_idle(1)
            asks(session, "staged")
        assert ray.asked[-1][0] == 0  # nothing is asked for after the end


def test_nodes_whose_ids_begin_alike_have_names_of_their_own(folder):
    with ray_faked() as ray:
        for number in range(3):
            name = f"{'f' * 12}{number}"
            ray._nodes[name] = {
                "NodeID": name,
                "Alive": True,
                "NodeManagerAddress": "127.0.0.1",
                "Resources": {"CPU": 1, "object_store_memory": 1 << 20},
            }
        with connect(folder, "fair") as session:
            names = {node.id for node in session.host.backend.nodes}
            assert names == {"ffffffff-1", "ffffffff-2", "ffffffff-3"}
            asks(session, "staged")


def test_a_policy_that_sizes_needs_to_know_how_many_nodes(folder):
    with ray_faked(1), pytest.raises(QueryardError, match=r"nodes = \[1, 8\] under \[backend\]"):
        connect(folder, profile("+x"))


def test_a_portfolio_sizes_the_cluster(folder):
    """With provisioning parts, the portfolio's candidates stay between the bounds as well."""
    with ray_faked(1, 1) as ray, connect(folder, "portfolio:low cost", nodes=(1, 2)) as session:
        chosen = session.host.ask(lambda coordinator: coordinator.kernel.policy.provisioning)
        assert (chosen.minimum, chosen.maximum) == (1, 2)
        asks(session)
        assert ray.actors
