"""Threads that overstay share the last cores, and only as long as they do."""

from __future__ import annotations

import os
import threading

import pytest

from queryard.engine.threads import CoreConfinement

linux = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no choice of cores here")
several = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")


class Sleeper:
    def __init__(self) -> None:
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.over.wait)
        self.thread.start()
        assert self.thread.native_id is not None
        self.id = self.thread.native_id

    def end(self) -> None:
        self.over.set()
        self.thread.join()


@pytest.fixture
def sleepers():
    made = [Sleeper() for _ in range(3)]
    yield made
    for sleeper in made:
        sleeper.end()


@linux
@several
def test_some_threads_share_a_core_and_get_all_back(sleepers):
    confinement = CoreConfinement(2)
    own = os.sched_getaffinity(0)
    before = [os.sched_getaffinity(sleeper.id) for sleeper in sleepers]
    for sleeper in sleepers:
        confinement.confine(sleeper.id)
        confinement.confine(sleeper.id)
    now = [os.sched_getaffinity(sleeper.id) for sleeper in sleepers]
    assert now == [{max(before[0])}, {max(before[1])}, before[2]]
    for sleeper in sleepers:
        confinement.release(sleeper.id)
        confinement.release(sleeper.id)
    assert [os.sched_getaffinity(sleeper.id) for sleeper in sleepers] == before
    assert os.sched_getaffinity(0) == own


@linux
@several
def test_one_core_is_left_free_however_many_are_confined(sleepers):
    confinement = CoreConfinement(3)
    own = os.sched_getaffinity(0)
    for sleeper in sleepers:
        confinement.confine(sleeper.id)
    taken = [os.sched_getaffinity(sleeper.id) for sleeper in sleepers]
    assert all(len(cores) == 1 for cores in taken)
    assert min(own) not in set().union(*taken)
    assert taken[0] == taken[1] == {max(own)}
    assert (taken[2] == taken[0]) is (len(own) == 2)
    for sleeper in sleepers:
        confinement.release(sleeper.id)
    assert [os.sched_getaffinity(sleeper.id) for sleeper in sleepers] == [own] * 3


@linux
@several
def test_no_thread_and_one_that_has_gone(sleepers):
    confinement = CoreConfinement(2)
    own = os.sched_getaffinity(0)
    confinement.confine(0)
    gone = Sleeper()
    gone.end()
    confinement.confine(gone.id)
    confinement.release(gone.id)
    assert os.sched_getaffinity(0) == own
    confinement.confine(sleepers[0].id)
    assert len(os.sched_getaffinity(sleepers[0].id)) == 1
    confinement.release(sleepers[0].id)


def test_where_cores_cannot_be_chosen(sleepers, monkeypatch):
    moved = []
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda *given: moved.append(given), raising=False)
    confinement = CoreConfinement(2)
    confinement.confine(sleepers[0].id)
    confinement.release(sleepers[0].id)
    assert moved == []
    assert all(sleeper.thread.is_alive() for sleeper in sleepers)
