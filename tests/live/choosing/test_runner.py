"""The thread of a portfolio: workers that hang, die or answer nonsense cost one decision each."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from waiting import wait_until

from queryard.backends.fake import Script
from queryard.core.model import Node
from queryard.live import inputs
from queryard.live.choosing import runner
from queryard.live.choosing.decisions import PolicyDecision
from queryard.live.choosing.questions import Look
from queryard.live.choosing.runner import Choosing
from queryard.portfolio.documents import read_portfolio
from queryard.portfolio.processes import Answer

from ..fake_host import MIB, FakeHost

DOCUMENT = {
    "portfolio": {
        "objective": "small queries fast",
        "candidates": ["fifo", "swrd"],
        "late_s": 0.3,
        "least_s": 0.01,
        "period_s": 0.01,
        "share": 1.0,
    }
}


class Works:
    """A worker in this process."""

    def __init__(self) -> None:
        self.killed = threading.Event()

    def ask(self, request: Any) -> Answer:
        return Answer(request(rest=lambda: None), 0.0)

    def cpu_s(self) -> float | None:
        return 0.0

    def kill(self) -> None:
        self.killed.set()


class Fails(Works):
    """It starts, and then `does` something else than it should."""

    def __init__(self, does: str) -> None:
        super().__init__()
        self._does = does

    def ask(self, request: Any) -> Answer:
        if request.__class__.__name__ == "function":
            return Answer(None, 0.0)  # it has started
        if self._does == "hangs":
            assert self.killed.wait(30.0)
            raise EOFError("it was killed")
        if self._does == "dies":
            raise EOFError("it ended without an answer")
        return Answer({"what": "is this"}, 0.0)


@pytest.fixture
def host():
    slow = Script(work_s=lambda run: 20.0 if run == "q1" else 1.0)
    host = FakeHost((Node("local", 2, 4096.0 * MIB),), slow)
    for work_s in (20.0, 1.0, 1.0, 1.0):
        host.submit(work_s=work_s)
    return host


def choosing_on(host: FakeHost, workers: list[Any]) -> tuple[Choosing, list[str]]:
    lock = threading.Lock()
    chosen: list[str] = []

    def ask(look):
        with lock:
            return look(host.coordinator)

    def choose(choice):
        chosen.append(choice.name)
        with lock:
            host.post(inputs.ChoosePolicy(choice.profile, choice.reason, "portfolio"))

    began_s = time.monotonic()
    problems: list[BaseException] = []
    choosing = Choosing(
        read_portfolio(DOCUMENT),
        ask,
        choose,
        lambda: time.monotonic() - began_s,
        problems.append,
        lambda: workers.pop(0) if len(workers) > 1 else workers[0],
    )
    choosing.wake()
    return choosing, chosen


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("hangs", "no answer within"),
        ("dies", "the worker failed"),
        ("answers nonsense", "no candidate could be tried"),
    ],
)
def test_a_worker_that_fails_costs_one_decision(host, does, told):
    bad = Fails(does)
    choosing, chosen = choosing_on(host, [bad, Works()])
    wait_until(lambda: bool(chosen))
    assert chosen[0] == "swrd"
    assert bad.killed.is_set()
    choosing.close()
    first = choosing.decisions(100, 0.0)[-1]
    assert told in first["dropped"]
    assert first["chosen"] == first["before"] == "fifo"
    host.run()
    assert len(host.ended) == 4
    host.check_idle()


def test_a_worker_that_cannot_be_started_is_told_and_nothing_else_happens(host):
    def fail():
        raise OSError("no more processes")

    problems: list[BaseException] = []
    choosing = Choosing(
        read_portfolio(DOCUMENT),
        lambda look: look(host.coordinator),
        lambda choice: None,
        time.monotonic,
        problems.append,
        fail,
    )
    choosing.wake()
    wait_until(lambda: bool(problems))
    choosing.close()
    assert "could not be started (no more processes)" in str(problems[0])
    told = choosing.decisions(9, 0.0)[-1]
    assert told["dropped"] == "the worker could not be started (no more processes)"
    assert told["reason"] == f"fifo stays: {told['dropped']}"
    assert (told["trigger"], told["waiting"], told["chosen"]) == ("first look", 4, "fifo")


def test_it_closes_while_a_worker_hangs(host):
    hangs = Fails("hangs")
    choosing, chosen = choosing_on(host, [hangs])
    wait_until(lambda: choosing._question is not None or hangs.killed.is_set())
    choosing.close()
    assert hangs.killed.is_set()
    assert not chosen
    assert not choosing._thread.is_alive()


def test_no_choice_is_made_once_it_is_closed(host):
    gate = threading.Event()

    class Slow(Works):
        def ask(self, request: Any) -> Answer:
            if request.__class__.__name__ != "function":
                assert gate.wait(30.0)
            return super().ask(request)

    choosing, chosen = choosing_on(host, [Slow()])
    wait_until(lambda: choosing._question is not None)
    closing = threading.Thread(target=choosing.close)
    closing.start()
    gate.set()
    closing.join(30.0)
    assert not closing.is_alive()
    before = list(chosen)
    choosing.wake()
    assert chosen == before


def test_an_error_while_an_answer_is_read_costs_that_decision(host, monkeypatch):
    broken = [RuntimeError("a defect")]
    real = runner.verdict

    def verdict(*given: Any) -> Any:
        if broken:
            raise broken.pop()
        return real(*given)

    monkeypatch.setattr(runner, "verdict", verdict)
    choosing, chosen = choosing_on(host, [Works()])
    wait_until(lambda: bool(chosen))
    choosing.close()
    first = choosing.decisions(100, 0.0)[-1]
    assert first["dropped"] == "deciding failed (RuntimeError: a defect)"
    assert chosen[0] == "swrd"


class Deaf:
    """A driver that answers nothing in time; it comes to what it was asked later."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.is_deaf = True
        self.late: list[Any] = []

    def ask(self, look: Any) -> Any:
        if self.is_deaf:
            self.late.append(look)
            raise TimeoutError("no answer within 30 s")
        return look(self.host.coordinator)


@pytest.mark.parametrize("comes_to_it", ["never", "later", "in the last moment"])
def test_a_look_that_the_driver_has_no_time_for_is_made_later(host, comes_to_it):
    driver = Deaf(host)
    chosen: list[str] = []
    began_s = time.monotonic()

    def ask(look: Any) -> Any:
        if comes_to_it == "in the last moment" and not driver.late:
            driver.is_deaf = False
            driver.late.append(look(host.coordinator))
            raise TimeoutError("no answer within 30 s")
        return driver.ask(look)

    choosing = Choosing(
        read_portfolio(DOCUMENT),
        ask,
        lambda choice: chosen.append(choice.name),
        lambda: time.monotonic() - began_s,
        lambda error: None,
        Works,
    )
    choosing.wake()
    wait_until(lambda: bool(driver.late))
    if comes_to_it == "later":
        wait_until(lambda: choosing._next_s < 1e9)  # it has noticed
        assert driver.late[0](host.coordinator) == Look()
    driver.is_deaf = False
    wait_until(lambda: bool(chosen))
    choosing.close()
    assert chosen[0] == "swrd"


def test_decisions_are_told_without_the_lock_of_the_driver(host, monkeypatch):
    choosing, chosen = choosing_on(host, [Works()])
    wait_until(lambda: bool(chosen))
    free: list[bool] = []
    real = PolicyDecision.plain

    def take_the_lock() -> None:
        with choosing._changed:
            free.append(True)

    def plain(self: PolicyDecision, ahead_s: float) -> Any:
        driver = threading.Thread(target=take_the_lock, daemon=True)
        driver.start()
        driver.join(30.0)
        return real(self, ahead_s)

    monkeypatch.setattr(PolicyDecision, "plain", plain)
    told = choosing.decisions(1, 0.0)
    choosing.close()
    assert (len(told), free[:1]) == (1, [True])
