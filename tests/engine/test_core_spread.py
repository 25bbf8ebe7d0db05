"""Threads that are woken at once begin on cores of their own."""

from __future__ import annotations

import os
import threading
import time

import pytest
from waiting import wait_until

from queryard.backends.workers import Workers
from queryard.engine.threads import CoreSpread

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="there is one core, or the system cannot choose cores",
)


@pytest.fixture
def sleepers():
    """Threads that wait, by their native ids."""
    over = threading.Event()
    threads = [threading.Thread(target=over.wait, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    yield [thread.native_id for thread in threads]
    over.set()
    for thread in threads:
        thread.join(20)


def cores() -> set[int]:
    return os.sched_getaffinity(0)


def test_threads_are_spread_over_all_cores_and_set_free(sleepers):
    spread = CoreSpread(len(cores()))
    chosen = sleepers[: min(len(cores()), len(sleepers))]
    places = [spread.begin(thread) for thread in chosen]
    assert len(set(places)) == len(chosen)
    where = [os.sched_getaffinity(thread) for thread in chosen]
    assert all(len(each) == 1 for each in where)
    assert len(set.union(*where)) == len(chosen)
    for thread, place in zip(chosen, places, strict=True):
        spread.free(thread)
        spread.end(place)
        assert os.sched_getaffinity(thread) == cores()
    assert not any(spread._begun)


def test_the_core_with_the_fewest_is_the_next(sleepers):
    spread = CoreSpread(len(cores()))
    first = spread.begin(sleepers[0])
    spread.end(first)
    # Again, and not beside another one.
    places = {spread.begin(thread) for thread in sleepers[:2]}
    assert len(places) == 2


def test_with_more_cores_than_slots_the_system_chooses(sleepers):
    spread = CoreSpread(len(cores()) - 1)
    assert spread.begin(sleepers[0]) is None
    spread.free(sleepers[0])
    spread.end(None)
    assert os.sched_getaffinity(sleepers[0]) == cores()


def test_a_thread_that_is_gone_is_no_error():
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    # The system ends it a moment later.
    wait_until(lambda: not os.path.exists(f"/proc/self/task/{thread.native_id}"))
    spread = CoreSpread(len(cores()))
    assert spread.begin(thread.native_id) is None
    spread.free(thread.native_id)
    assert not any(spread._begun)


def test_work_stays_at_its_core_only_if_it_is_to():
    errors: list[BaseException] = []
    workers = Workers(errors.append, CoreSpread(len(cores())))
    seen: list[set[int]] = []
    for stays in (True, True, False, True):
        before = len(seen)
        workers.start(lambda: seen.append(cores()), stays=stays)
        wait_until(lambda before=before: len(seen) > before and len(workers._idle) == 1)
    assert workers.close(time.monotonic() + 20)
    # The first starts the thread, which is nowhere held.
    assert [len(each) for each in seen] == [len(cores()), 1, len(cores()), 1]
    assert not errors
