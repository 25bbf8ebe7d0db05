"""The thread that owns the kernel: its mailbox, its timers, and its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from engine.native_driving import wait_until
from queryard.live.driver import Driver

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.errors import InvalidEvent
from queryard.core.model import Divisible, Job, Node, Query
from queryard.core.scheduler import Scheduler
from queryard.policies import compose


class Notes:
    """An owner and a backend that note what they are told."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.error: BaseException | None = None

    def began(self, query: str) -> None:
        self.told.append(("began", query))

    def finished(self, query: str) -> None:
        self.told.append(("finished", query))

    def failed(self, query: str, cause: str) -> None:
        self.told.append(("failed", query, cause))

    def broken(self, error: BaseException) -> None:
        self.error = error

    def scale(self, nodes: int) -> None: ...

    def let_go(self, node: str) -> None: ...

    def obey(self, command: do.Grant | do.Revoke | do.Launch | do.Kill) -> None:
        self.told.append(command)


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def driver(notes: Notes) -> Iterator[Driver]:
    made = Driver(Scheduler(compose, {"order": "fifo"}), notes)
    made.post(ev.NodeJoined(0.0, Node("local", 2, 1e9)))
    made.start(notes)
    yield made
    made.stop()


def submitted(name: str) -> ev.QuerySubmitted:
    return ev.QuerySubmitted(0.0, Query(name, (Job("native", divisible=Divisible(2)),)))


def test_what_is_posted_leads_to_decisions(driver: Driver, notes: Notes) -> None:
    driver.post(submitted("q"))
    wait_until(lambda: len(notes.told) == 2, 10.0)
    assert notes.told == [("began", "q"), do.Grant("q/native", "local", 2)]
    driver.post(ev.LeaseEnded(0.0, "q/native", "local", 2, "finished"))
    wait_until(lambda: notes.told[-1] == ("finished", "q"), 10.0)
    assert driver.decisions >= 2
    assert driver.cpu_s >= driver.decide_s > 0


def test_questions_are_answered_in_order_with_what_was_posted(driver: Driver) -> None:
    driver.post(submitted("q"))
    # Whoever asks after posting hears of it, at the latest with the second answer.
    driver.ask(lambda kernel: None)
    assert driver.ask(lambda kernel: list(kernel.state.queries)) == ["q"]
    with pytest.raises(KeyError, match="nobody"):
        driver.ask(lambda kernel: kernel.state.queries["nobody"])


def test_timers_come_in_their_order(driver: Driver) -> None:
    came: list[int] = []
    now = driver.now()
    for number in (3, 1, 2):
        driver.call_at(now + number / 50, lambda number=number: came.append(number))  # type: ignore[misc]
    driver.call_at(now - 5.0, lambda: came.append(0))
    wait_until(lambda: len(came) == 4, 10.0)
    assert came == [0, 1, 2, 3]


def test_all_that_was_posted_before_the_end_is_dealt_with(notes: Notes) -> None:
    driver = Driver(Scheduler(compose, {"order": "fifo"}), notes)
    driver.post(ev.NodeJoined(0.0, Node("local", 1, 1e9)))
    driver.post(submitted("q"))
    driver.start(notes)
    driver.stop()
    assert ("began", "q") in notes.told


def test_who_asks_after_the_end_is_answered_at_once(driver: Driver) -> None:
    driver.post(submitted("q"))
    driver.stop()
    began = time.monotonic()
    assert driver.ask(lambda kernel: list(kernel.state.queries)) == ["q"]
    assert time.monotonic() - began < 5.0


def test_nobody_who_asks_is_left_waiting_when_it_ends() -> None:
    for _ in range(30):
        notes = Notes()
        driver = Driver(Scheduler(compose, {"order": "fifo"}), notes)
        driver.start(notes)
        answers: list[int] = []

        def ask(driver: Driver = driver, answers: list[int] = answers) -> None:
            answers.extend([driver.ask(lambda kernel: 1) for _ in range(20)])

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        driver.stop()
        for thread in threads:
            thread.join(20.0)
            assert not thread.is_alive()
        assert len(answers) == 60


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_mistake_of_the_kernel_is_told_and_nobody_waits(driver: Driver, notes: Notes) -> None:
    driver.post(submitted("q"))
    driver.post(ev.Progressed(0.0, "q/native", 7.0))
    wait_until(lambda: notes.error is not None, 10.0)
    assert isinstance(notes.error, InvalidEvent)
    began = time.monotonic()
    assert driver.ask(lambda kernel: "still here") == "still here"
    assert time.monotonic() - began < 5.0


def test_time_never_goes_back(notes: Notes) -> None:
    times = iter([100.0, 105.0, 103.0, 101.0, *([106.0] * 1000)])
    driver = Driver(Scheduler(compose, {"order": "fifo"}), notes, lambda: next(times))
    driver.start(notes)
    for name in ("a", "b", "c"):
        driver.post(submitted(name))
        driver.ask(lambda kernel: None)
    driver.stop()
    assert notes.error is None
    assert driver.scheduler.state.now <= 6.0
