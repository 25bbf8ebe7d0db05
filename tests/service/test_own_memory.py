"""What clients keep of their own has one budget; the next one is told where it is used up."""

from __future__ import annotations

import pytest
from waiting import wait_until

from queryard.engine.instances.instance import MIN_MEMORY_BYTES
from queryard.service.limits import TooMany
from service.yard_ground import a_ground


def test_instances_of_clients_share_one_budget(tmp_path):
    with a_ground(tmp_path) as ground:
        yard, ann = ground.yard, ground.principal("ann")
        clients = [yard.open(ann) for _ in range(12)]
        count = yard.own_memory.total_bytes // MIN_MEMORY_BYTES
        assert 2 <= count < len(clients)
        *opened, refused = clients[: count + 1]
        for client in opened:
            client.submit("CREATE TEMP TABLE t AS SELECT 42 AS a").result().fetchall()
        with pytest.raises(TooMany, match="no memory is left"):
            refused.submit("CREATE TEMP TABLE t AS SELECT 43 AS a").result()
        assert yard.own_memory.used_bytes <= yard.own_memory.total_bytes
        assert refused.submit("SELECT count(*) FROM numbers").result().fetchall() == [(30_000,)]
        opened[0].close()
        refused.submit("CREATE TEMP TABLE t AS SELECT 43 AS a").result().fetchall()
        assert refused.submit("FROM t").result().fetchall() == [(43,)]
        assert opened[1].submit("FROM t").result().fetchall() == [(42,)]
        for client in clients:
            client.close()
        wait_until(lambda: not yard.own_memory.used_bytes)


def test_instances_that_hold_nothing_make_way(tmp_path):
    with a_ground(tmp_path) as ground:
        yard, ann = ground.yard, ground.principal("ann")
        clients = [yard.open(ann) for _ in range(12)]
        for _ in range(2):
            for client in clients:
                found = client.submit("SHOW TABLES").result().fetchall()
                assert sorted(found) == [("numbers",), ("small",)]
        assert 0 < yard.own_memory.used_bytes <= yard.own_memory.total_bytes


def test_a_client_that_was_refused_has_not_lost_its_place(tmp_path):
    with a_ground(tmp_path) as ground:
        yard, ann = ground.yard, ground.principal("ann")
        client = yard.open(ann)
        yard.own_memory.total_bytes = 0
        with pytest.raises(TooMany):
            client.submit("CREATE TEMP TABLE t AS SELECT 1 AS a").result()
        yard.own_memory.total_bytes = 1 << 30
        client.submit("CREATE TEMP TABLE t AS SELECT 1 AS a").result().fetchall()
        assert client.submit("FROM t").result().fetchall() == [(1,)]
