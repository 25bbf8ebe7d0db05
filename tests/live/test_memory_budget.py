"""The budget holds for all started queries together, and every query runs in the end."""

from __future__ import annotations

import random
import threading
import time

import pytest
from engine.native_driving import check_same, plain
from long_forms import some_of
from waiting import wait_until

import queryard
from queryard.core.errors import QueryardError
from queryard.engine.errors import OutOfMemory
from queryard.engine.instances import budget

QUERIES = [
    "SELECT count(*) AS n FROM facts",
    "SELECT key, sum(price) AS s FROM facts GROUP BY key",
    "SELECT part, count(*) AS n FROM facts JOIN dims USING (key) GROUP BY part",
    "SELECT DISTINCT small FROM facts",
    "SELECT id, words FROM facts ORDER BY words DESC, id LIMIT 50",
    "SELECT max(n) AS m FROM (SELECT row_number() OVER (PARTITION BY small ORDER BY id) AS n "
    "FROM facts)",
    "SELECT * FROM none",
    "SELECT 1 AS one",
]


class Watcher:
    """Looks at the sum of the limits as often as it can."""

    def __init__(self, session) -> None:
        self._session = session
        self.most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.001):
            self.most = max(self.most, self._session.host.engine.pool.limits_bytes)

    def end(self) -> int:
        self._over.set()
        self._thread.join()
        return self.most


@pytest.mark.parametrize("asked", some_of([None, "1 MB", "40 MB", "100 MB"], 2))
def test_limits_never_exceed_the_budget_and_all_finish(data, asked):
    with queryard.connect(data, slots=2, memory="400 MB") as qy:
        watcher = Watcher(qy)
        # Paused by their readers, they hold on to their memory.
        slow = [qy.submit("SELECT * FROM facts, range(2)", memory=asked) for _ in range(7)]
        quick = [qy.submit(sql, memory=asked) for sql in QUERIES]
        for handle in slow:
            assert sum(b.num_rows for b in handle.result(60).batches()) == 800_000
        for handle, sql in zip(quick, QUERIES, strict=True):
            check_same(handle.result(60).arrow(), plain(data, sql))
        assert watcher.end() <= qy.client.pool_bytes
        assert qy.client.pool_bytes + qy.own_bytes <= 400_000_000


def test_waiting_for_memory(data):
    with queryard.connect(data, slots=2, memory="400 MB") as qy:
        holder = qy.submit("SELECT * FROM facts, range(50)", memory=qy.client.pool_bytes)
        holder.result(20)
        wait_until(lambda: holder._ticket.output.full, 20.0, "a full buffer")
        waiting = [qy.submit("SELECT 42") for _ in range(3)]
        time.sleep(0.3)
        assert [handle.status for handle in waiting] == ["waiting"] * 3
        # What runs on the session's own memory need not wait for it.
        qy.sql("CREATE TEMP TABLE t AS SELECT 7 AS i")
        holder.cancel()
        assert [handle.result(20).fetchall() for handle in waiting] == [[(42,)]] * 3


def test_two_that_fit_together_run_together(data):
    with queryard.connect(data, slots=2, memory="400 MB") as qy:
        half = qy.client.pool_bytes // 2
        first = qy.submit("SELECT * FROM facts, range(50)", memory=half)
        first.result(20)
        assert qy.submit("SELECT 42", memory=half).result(20).fetchall() == [(42,)]


@pytest.mark.parametrize("asked", ["1 TB", 10**15])
def test_more_than_there_is(qy, asked):
    with pytest.raises(QueryardError, match=r"memory: .* more than"):
        qy.sql("SELECT 1", memory=asked)
    assert qy.sql("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize("asked", [0, -5, "lots", "5 apples", [], True, float("inf"), float("nan")])
def test_no_amount(qy, asked):
    with pytest.raises(QueryardError, match="memory"):
        qy.sql("SELECT 1", memory=asked)
    assert qy.sql("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize("memory", [0, "1 MB", "x", -1])
def test_a_budget_too_small_is_told_at_once(data, memory):
    with pytest.raises(QueryardError, match="memory"):
        queryard.connect(data, memory=memory)


@pytest.mark.parametrize("slots", [0, -1, 1.5, "2", True])
def test_wrong_slots(data, slots):
    with pytest.raises(QueryardError, match="slots"):
        queryard.connect(data, slots=slots)


@pytest.mark.parametrize("slots", [1, 3, 8])
def test_any_number_of_slots(data, slots):
    with queryard.connect(data, slots=slots, memory="512 MB") as qy:
        handles = [qy.submit(sql) for sql in QUERIES]
        for handle, sql in zip(handles, QUERIES, strict=True):
            check_same(handle.result(60).arrow(), plain(data, sql))
        qy.sql("CREATE TEMP TABLE t AS FROM dims")
        assert qy.sql("SELECT count(*) FROM t").fetchall() == [(1000,)]


def test_out_of_memory_says_what_to_do_and_fails_no_other_query(data):
    with queryard.connect(data, slots=2, memory="300 MB") as qy:
        other = qy.submit(QUERIES[1], memory="64 MB")
        with pytest.raises(OutOfMemory, match="memory="):
            qy.sql("SELECT list(words || id) FROM facts, range(40)", memory="64 MB").fetchall()
        check_same(other.result(30).arrow(), plain(data, QUERIES[1]))
        with pytest.raises(OutOfMemory):
            qy.sql("CREATE TEMP TABLE t AS SELECT list(words || id) FROM facts, range(40)")
        assert qy.sql("CREATE TEMP TABLE u AS SELECT 1 AS i").fetchall() == [(1,)]
        assert qy.sql("FROM u").fetchall() == [(1,)]


def test_fifty_clients(data):
    expected = [plain(data, sql) for sql in QUERIES]
    with queryard.connect(data, slots=2, memory="512 MB") as qy:
        watcher = Watcher(qy)
        failures: list[BaseException] = []

        def client(number: int) -> None:
            draw = random.Random(number)
            try:
                for _ in range(2):
                    which = draw.randrange(len(QUERIES))
                    memory = draw.choice((None, "40 MB", "80 MB"))
                    check_same(qy.sql(QUERIES[which], memory=memory).arrow(), expected[which])
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=client, args=(n,), daemon=True) for n in range(50)]
        for thread in threads:
            thread.start()
        most = 0
        for thread in threads:
            thread.join(100)
            most = max(most, threading.active_count())
            assert not thread.is_alive()
        assert failures == []
        assert watcher.end() <= qy.client.pool_bytes
        wait_until(lambda: qy.host.engine.pool._used_bytes == 0, 10.0)


def test_priorities_and_tenants_are_taken(qy):
    handles = [qy.submit(QUERIES[1], tenant=f"t{i % 3}", priority=float(i)) for i in range(6)]
    for handle in handles:
        assert handle.result(30).arrow().num_rows == 1000
    for bad in ({"tenant": ""}, {"tenant": 3}, {"priority": float("nan")}, {"plan": "other"}):
        with pytest.raises(QueryardError):
            qy.sql("SELECT 1", **bad)
        assert qy.sql("SELECT 1").fetchall() == [(1,)]


def test_a_priority_that_is_no_number(qy):
    with pytest.raises((QueryardError, TypeError)):
        qy.sql("SELECT 1", priority="high")
    assert qy.sql("SELECT 1").fetchall() == [(1,)]
    qy.close()


def test_results_larger_than_the_budget_stream(data):
    with queryard.connect(data, slots=2, memory="160 MB") as qy:
        seen = 0
        for batch in qy.sql("SELECT f.*, range FROM facts f, range(12)").batches():
            seen += batch.num_rows
        assert seen == 4_800_000


def test_a_budget_beyond_the_machine_is_refused_with_the_machines_memory(data, monkeypatch):
    monkeypatch.setattr(budget, "machine_bytes", lambda: 24 * 10**9)
    told = (
        r'memory: 10 TB is more than this machine has \(24\.0 GB\); give less, such as "16\.8 GB"'
    )
    with pytest.raises(QueryardError, match=told):
        queryard.connect(data, memory="10 TB")
    assert budget.memory_budget("24 GB") == 24 * 10**9
    assert budget.memory_budget(None) == int(24 * 10**9 * 0.7)


def test_slots_beyond_reason_are_refused(data):
    with pytest.raises(QueryardError, match=r"slots: 100,000 is too many.*at most 1,024"):
        queryard.connect(data, slots=100_000)
    assert budget.slot_range((1, 1024)) == (1, 1024)
