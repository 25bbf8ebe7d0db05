"""Whether a thread computes, as others see it."""

from __future__ import annotations

import contextlib
import os
import threading
import time

import pytest
from waiting import wait_until

from queryard.engine.meter import Meter
from queryard.engine.threads import ThreadState, all_asleep, of_this_thread

pytestmark = pytest.mark.skipif(of_this_thread().is_asleep() is None, reason="needs /proc")


class Other:
    """A thread that sleeps, or computes, until it is told to end."""

    def __init__(self, computes: bool) -> None:
        self.state: ThreadState
        self._computes = computes
        self._over = threading.Event()
        begun = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(begun,))
        self._thread.start()
        begun.wait()

    def _run(self, begun: threading.Event) -> None:
        self.state = of_this_thread()
        begun.set()
        while self._computes and not self._over.is_set():
            sum(range(1000))
        self._over.wait()

    def end(self) -> None:
        self._over.set()
        self._thread.join()


def test_a_thread_that_waits_is_asleep_and_one_that_computes_is_not():
    waits, computes = Other(computes=False), Other(computes=True)
    try:
        wait_until(lambda: waits.state.is_asleep() is True)
        assert all_asleep([waits.state]) is True
        # It may wait for Python's lock in between.
        assert any(computes.state.is_asleep() is False for _ in range(100_000))
    finally:
        waits.end()
        computes.end()


def test_the_state_of_a_thread_that_is_gone_is_not_known():
    other = Other(computes=False)
    other.end()
    # The system has it for a moment more.
    wait_until(lambda: other.state.is_asleep() is None)
    assert all_asleep([other.state]) is None
    assert all_asleep([other.state, of_this_thread()]) is False


def test_a_thread_has_one_state_and_one_file_while_it_is_held():
    before = open_files()
    held = of_this_thread()
    assert of_this_thread() is held
    assert open_files() == before + 1
    del held
    assert open_files() == before


def test_a_state_is_not_found_again_while_its_file_is_closed(monkeypatch):
    """Whether it was: its number may be another file's by now, which would be read and believed."""
    close, asked, found = os.close, threading.Event(), threading.Event()

    def slowly(file: int) -> None:
        asked.set()
        assert found.wait(10)
        close(file)

    monkeypatch.setattr(os, "close", slowly)
    held = [of_this_thread()]
    letting_go = threading.Thread(target=held.clear)
    letting_go.start()
    assert asked.wait(10)
    state = of_this_thread()
    found.set()
    letting_go.join()
    assert state.is_asleep() is False
    monkeypatch.undo()  # before this state is let go of


def test_a_slot_that_has_left_holds_no_file_and_can_still_be_asked():
    before = open_files()
    meter = Meter()
    stay = meter.enter()
    meter.leave(stay)
    assert open_files() == before
    assert not stay.is_idle(time.monotonic() + 60.0, 0.01)


def open_files() -> int:
    """How many states are open: other threads of the process may open other files."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found += "/task/" in os.readlink(f"/proc/self/fd/{name}")
    return found
