"""What a server's own threads cost is told by part, and grows only."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from queryard.service.own_cpu import PARTS, OwnCpu, own_cpu, thread_clock
from service.yard_ground import a_ground

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads have clocks on Linux")


def test_threads_count_by_what_they_do_and_slots_do_not():
    own = OwnCpu(thread_clock)
    go, done = threading.Event(), threading.Barrier(4)

    def work() -> None:
        began = time.thread_time()
        while time.thread_time() - began < 0.02:
            pass
        done.wait()
        go.wait()

    def listen() -> None:
        own.name_this_thread("listeners")
        work()

    threads = [
        threading.Thread(target=work, name="queryard-history"),
        threading.Thread(target=work, name="queryard-slot-3"),
        threading.Thread(target=listen, name="any"),
    ]
    for thread in threads:
        thread.start()
    done.wait()
    found = own.read()
    assert set(found) == set(PARTS)
    assert found["history"] >= 0.02
    assert found["listeners"] >= 0.02
    go.set()
    for thread in threads:
        thread.join()
    # What a thread has cost stays when it has ended.
    after = own.read()
    assert all(after[part] >= found[part] for part in ("history", "listeners"))


def test_queries_cost_the_driver_and_its_threads_something(tmp_path):
    with a_ground(tmp_path) as ground:
        client = ground.yard.open(ground.principal("ann"))
        before = own_cpu()
        for _ in range(20):
            client.submit("SELECT count(*) FROM numbers").result().fetchall()
        after = own_cpu()
        assert after["driver"] > before["driver"]
        assert all(after[part] >= before[part] for part in PARTS)
