"""The thread that owns the coordinator: its mailbox, its timers, and its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from waiting import wait_until

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.errors import InvalidEvent
from queryard.core.model import Divisible, Job, Node, Query
from queryard.core.scheduler import Scheduler
from queryard.live import effects as out
from queryard.live import inputs
from queryard.live import loop as module
from queryard.live.admission.gate import Gate
from queryard.live.admission.limits import Limits
from queryard.live.admission.memory import Reservations
from queryard.live.coordinating import Coordinator
from queryard.live.loop import Loop, Mailbox
from queryard.policies import compose


class Notes:
    """Notes what is to be done, and an error that ends the loop."""

    def __init__(self) -> None:
        self.done: list[out.Effect] = []
        self.error: BaseException | None = None

    def broken(self, error: BaseException) -> None:
        self.error = error

    @property
    def commands(self) -> list[object]:
        return [effect.command for effect in self.done if isinstance(effect, out.Execute)]


def made(notes: Notes, clock=time.monotonic) -> Loop:
    kernel = Scheduler(compose, {"order": "fifo"})
    coordinator = Coordinator(kernel, Gate(Limits(), {}, 2), Reservations(1 << 30), 2)
    mailbox = Mailbox()
    loop = Loop(mailbox, coordinator, notes.done.append, notes.broken, clock)
    loop.post = mailbox.post  # type: ignore[attr-defined]
    return loop


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def loop(notes: Notes) -> Iterator[Loop]:
    found = made(notes)
    found.post(ev.NodeJoined(0.0, Node("local", 2, 1e9)))
    found.start()
    yield found
    found.stop()


def submitted(name: str) -> ev.QuerySubmitted:
    return ev.QuerySubmitted(0.0, Query(name, (Job("native", divisible=Divisible(2)),)))


def queries(loop: Loop) -> list[str]:
    return loop.ask(lambda coordinator: list(coordinator.kernel.state.queries))


def test_what_is_posted_leads_to_decisions(loop: Loop, notes: Notes) -> None:
    loop.post(submitted("q"))
    wait_until(lambda: notes.commands == [do.Grant("q/native", "local", 2)], 10.0)
    loop.post(ev.LeaseEnded(0.0, "q/native", "local", 2, "finished"))
    wait_until(lambda: not queries(loop), 10.0)
    assert loop.decisions >= 2
    assert loop.cpu_s >= loop.decide_s > 0


def test_questions_are_answered_with_what_was_posted_before(loop: Loop) -> None:
    loop.post(submitted("q"))
    assert queries(loop) == ["q"]
    with pytest.raises(KeyError, match="nothing"):
        loop.ask(lambda coordinator: coordinator.kernel.state.queries["nothing"])


def test_timers_come_in_their_order() -> None:
    notes = Notes()
    loop = made(notes)
    came: list[float] = []

    def take(now, *given):
        woken = [each.time_s for each in given if isinstance(each, ev.Woke)]
        came.extend(woken)
        timers = [out.SetTimer(now + s, ev.Woke(s)) for s in (0.06, 0.02, 0.04)]
        return [] if woken or came else timers

    loop._coordinator.take = take  # type: ignore[method-assign]
    loop.start()
    loop.post(ev.Woke(0.0))
    wait_until(lambda: len(came) == 1, 10.0)
    came.clear()
    loop.post(ev.NodeJoined(0.0, Node("local", 2, 1e9)))
    wait_until(lambda: len(came) == 3, 10.0)
    assert came == [0.02, 0.04, 0.06]
    loop.stop()


def test_timers_of_queries_that_have_ended_are_dropped(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMERS", 10)
    loop = made(notes)
    entries = loop._coordinator._ledger.entries
    entries["runs"] = None  # type: ignore[assignment]
    loop._most_timers = 10
    woken = out.SetTimer(3600.0, ev.Woke(3600.0))
    limit = out.SetTimer(3600.0, inputs.TimeLimitReached("runs"))
    turn = out.SetTimer(120.0, inputs.TurnOverdue("gone", 120.0))
    over = [out.SetTimer(1800.0, inputs.TimeLimitReached(str(place))) for place in range(1000)]
    loop._carry([woken, limit, turn, *over])
    kept = [timer[2] for timer in loop._timers]
    assert len(kept) < 50
    assert {woken.input, limit.input} <= set(kept)
    assert turn.input not in kept
    assert loop._timers[0] == min(loop._timers, key=lambda timer: timer[:2])


def test_all_that_was_posted_before_the_end_is_dealt_with(notes: Notes) -> None:
    loop = made(notes)
    loop.post(ev.NodeJoined(0.0, Node("local", 1, 1e9)))
    loop.post(submitted("q"))
    loop.start()
    loop.stop()
    assert notes.commands == [do.Grant("q/native", "local", 1)]


def test_a_question_after_the_end_is_answered_at_once(loop: Loop) -> None:
    loop.post(submitted("q"))
    loop.stop()
    assert queries(loop) == ["q"]


def test_no_question_is_left_open_when_it_ends() -> None:
    for _ in range(30):
        loop = made(Notes())
        loop.start()
        answers: list[int] = []

        def ask(loop: Loop = loop, answers: list[int] = answers) -> None:
            answers.extend([loop.ask(lambda coordinator: 1) for _ in range(20)])

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        loop.stop()
        for thread in threads:
            thread.join(20.0)
            assert not thread.is_alive()
        assert len(answers) == 60


def test_a_defect_of_the_kernel_is_told_and_no_question_waits(loop: Loop, notes: Notes) -> None:
    loop.post(submitted("q"))
    loop.post(ev.Progressed(0.0, "q/native", 7.0))
    wait_until(lambda: notes.error is not None, 10.0)
    assert isinstance(notes.error, InvalidEvent)
    assert loop.ask(lambda coordinator: "still here") == "still here"


def test_time_never_goes_back(notes: Notes) -> None:
    times = iter([100.0, 105.0, 103.0, 101.0, *([106.0] * 1000)])
    loop = made(notes, lambda: next(times))
    loop.start()
    for name in ("a", "b", "c"):
        loop.post(submitted(name))
        loop.ask(lambda coordinator: None)
    loop.stop()
    assert notes.error is None
