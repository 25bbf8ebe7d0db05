"""Threads that are kept for the next piece of work."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import pytest
from waiting import wait_until

from queryard.backends.workers import Workers


@pytest.fixture
def errors() -> list[BaseException]:
    return []


@pytest.fixture
def workers(errors):
    made = Workers(errors.append)
    yield made
    assert made.close(time.monotonic() + 20)


class Work:
    """Waits until it may end."""

    def __init__(self, may_end: bool = True) -> None:
        self.thread: threading.Thread | None = None
        self.began, self.may_end, self.ended = (threading.Event() for _ in range(3))
        if may_end:
            self.may_end.set()

    def __call__(self) -> None:
        self.thread = threading.current_thread()
        self.began.set()
        self.may_end.wait(20)
        self.ended.set()


def idle(workers: Workers, threads: int) -> None:
    wait_until(lambda: len(workers._idle) == threads)


def test_there_are_as_many_threads_as_are_needed_at_once(workers):
    for _ in range(3):
        works = [Work(may_end=False) for _ in range(4)]
        for work in works:
            workers.start(work)
        assert all(work.began.wait(20) for work in works)
        assert len({work.thread for work in works}) == 4
        for work in works:
            work.may_end.set()
        idle(workers, 4)
    assert len(workers._workers) == 4


def test_one_thread_is_enough_for_work_that_comes_one_after_another(workers):
    for _ in range(10):
        work = Work()
        workers.start(work)
        assert work.ended.wait(20)
        idle(workers, 1)
    assert len(workers._workers) == 1


def test_an_idle_thread_holds_no_work(workers):
    for _ in range(2):
        work = Work()
        held = weakref.ref(work)
        workers.start(work)
        assert work.ended.wait(20)
        idle(workers, 1)
        del work
        gc.collect()
        assert held() is None


def test_an_error_ends_no_thread(workers, errors):
    def fails() -> None:
        raise ValueError("a defect")

    workers.start(fails)
    idle(workers, 1)
    work = Work()
    workers.start(work)
    assert work.ended.wait(20)
    assert [str(error) for error in errors] == ["a defect"]
    assert len(workers._workers) == 1


def test_what_was_started_before_and_after_the_end_is_done(errors):
    workers = Workers(errors.append)
    slow, waiting = Work(may_end=False), Work()
    workers.start(slow)
    workers.start(waiting)
    assert not workers.close(time.monotonic() + 0.1)
    late = Work()
    workers.start(late)
    assert late.ended.wait(20)
    slow.may_end.set()
    assert waiting.ended.wait(20)
    assert workers.close(time.monotonic() + 20)


def test_work_may_end_the_threads(errors):
    workers = Workers(errors.append)
    closed = []
    workers.start(lambda: closed.append(workers.close(time.monotonic() + 20)))
    wait_until(lambda: closed == [True])
