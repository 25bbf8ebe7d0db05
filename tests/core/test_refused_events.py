"""Events that cannot have happened are refused, and those that came too late ignored."""

from __future__ import annotations

import math

import pytest
from by_hand import Hand, divisible, maps

from queryard.core import events as ev
from queryard.core.errors import InvalidEvent
from queryard.core.model import Node, Query
from queryard.core.scheduler import Scheduler

NOW = 7.0


class NoEvent:
    time_s = NOW


def busy() -> Hand:
    """Tasks and a lease run, a query waits, one has ended, a node was lost."""
    hand = Hand("swrd", [Node("a", 3), Node("b", 2), Node("gone", 1)])
    hand.submit("ended", maps("j", 1), estimates=1.0)
    hand.finish("ended/j:m0")
    hand.submit("leased", divisible("work", 3), estimates=5.0)
    hand.submit("tasks", maps("j", 4, 1), estimates=10.0)
    hand.wait(1.0).lose("gone")
    hand.submit("waiting", maps("j", 4), estimates=90.0)
    hand.wait(NOW - hand.now).do(ev.Woke(NOW))
    return hand


def what_follows(scheduler: Scheduler) -> list[object]:
    """What a kernel decides from here on, whatever became of the last event."""
    told: list[object] = []
    told += scheduler.handle(ev.Woke(NOW))
    told += scheduler.handle(ev.QuerySubmitted(NOW, Query("small", (maps("j", 1),))))
    for number in list(scheduler.state.running):
        told += scheduler.handle(ev.TaskFinished(NOW, number, "a"))
    told += scheduler.handle(ev.LeaseEnded(NOW, "leased/work", "a", 1, "revoked"))
    told += scheduler.handle(ev.NodeLost(NOW, "b"))
    told += scheduler.handle(ev.NodeJoined(NOW, Node("c", 5)))
    scheduler.validate()
    return told


WRONG: dict[str, tuple[ev.Event, str]] = {
    "time goes back": (ev.Woke(NOW - 0.1), "lies before the present"),
    "time is not a number": (ev.Woke(math.nan), "lies before the present"),
    "a launch finished that never was": (ev.TaskFinished(NOW, 999), "launch 999 was never made"),
    "a launch failed that never was": (ev.TaskFailed(NOW, -1, "x"), "launch -1 was never made"),
    "a node joined twice": (ev.NodeJoined(NOW, Node("a", 1)), "'a' is part of the cluster already"),
    "an unknown node was lost": (ev.NodeLost(NOW, "z"), "unknown node 'z'"),
    "a lost node was lost again": (ev.NodeLost(NOW, "gone"), "unknown node 'gone'"),
    "an unknown node fell silent": (ev.NodeSilent(NOW, "z", True), "unknown node 'z'"),
    "an active id again": (
        ev.QuerySubmitted(NOW, Query("waiting", (maps("other", 1),))),
        "a query with the id 'waiting' is active already",
    ),
    "more slots back than were held": (
        ev.LeaseEnded(NOW, "leased/work", "a", 9, "revoked"),
        "the job holds",
    ),
    "fewer than no slots back": (
        ev.LeaseEnded(NOW, "leased/work", "a", -1, "finished"),
        "the job holds",
    ),
    "fewer slots than none can be used": (ev.WidthChanged(NOW, "leased/work", -1), "at least 0"),
    "less memory than none": (ev.MemoryChanged(NOW, "leased", -1.0), "at least 0"),
    "memory without end": (ev.MemoryChanged(NOW, "leased", math.inf), "finite number"),
    "memory that is no number": (ev.MemoryChanged(NOW, "gone", math.nan), "finite number"),
    "no slots back": (
        ev.LeaseEnded(NOW, "leased/work", "a", 0, "revoked"),
        "revoked slots are at least 1",
    ),
    "tasks end without slots": (
        ev.LeaseEnded(NOW, "tasks/j", "a", 0, "finished"),
        "only divisible jobs",
    ),
    "tasks have no width": (ev.WidthChanged(NOW, "tasks/j", 1), "only divisible jobs"),
    "more than all is done": (ev.Progressed(NOW, "leased/work", 1.01), "between 0 and 1"),
    "less than nothing is done": (ev.Progressed(NOW, "leased/work", -0.01), "between 0 and 1"),
    "done is not a number": (ev.Progressed(NOW, "leased/work", math.nan), "between 0 and 1"),
    "more than the first error is left": (
        ev.AnswerReported(NOW, "leased/work", 1, 0.1, 1.0, left=1.1),
        "left must lie between 0 and 1",
    ),
    "an endless estimate": (ev.EstimateChanged(NOW, "tasks/j", math.inf), "finite number"),
    "an estimate below 0": (ev.EstimateChanged(NOW, "tasks/j", reduce_s=-1.0), "finite number"),
    "an estimate that is no number": (
        ev.EstimateChanged(NOW, "leased/work", work_s=math.nan),
        "finite number",
    ),
    "half of an estimate is wrong": (ev.EstimateChanged(NOW, "tasks/j", 1.0, -1.0), "finite"),
    "something that is no event": (NoEvent(), "is not an event of the kernel"),  # type: ignore
}


@pytest.mark.parametrize("name", WRONG)
def test_an_impossible_event_is_refused_and_nothing_is_lost(name: str):
    event, complaint = WRONG[name]
    hand = busy()
    undisturbed = what_follows(busy().scheduler)
    with pytest.raises(InvalidEvent, match=complaint):
        hand.scheduler.handle(event)
    hand.scheduler.validate()
    assert hand.state.now == NOW
    assert what_follows(hand.scheduler) == undisturbed


def test_a_refusal_names_the_event():
    hand = busy()
    with pytest.raises(InvalidEvent, match=r"TaskFinished\(time_s=7.0, launch=999"):
        hand.scheduler.handle(ev.TaskFinished(NOW, 999))


STALE: dict[str, ev.Event] = {
    "a task of a lost node finished": ev.TaskFinished(NOW, 0, "gone"),
    "a task that had ended failed": ev.TaskFailed(NOW, 0, "late"),
    "progress of a job that is gone": ev.Progressed(NOW, "ended/j", 0.5),
    "the width of a job that is gone": ev.WidthChanged(NOW, "ended/j", 0),
    "the width of an unknown job": ev.WidthChanged(NOW, "never/j", 3),
    "the memory of a query that is gone": ev.MemoryChanged(NOW, "ended", 5.0),
    "the end, without slots, of a job that is gone": (
        ev.LeaseEnded(NOW, "ended/j", "a", 0, "finished")
    ),
    "an answer of a job that is gone": ev.AnswerReported(NOW, "ended/j", 3, 0.1, 1.0),
    "an estimate for a job that is gone": ev.EstimateChanged(NOW, "ended/j", 3.0),
    "a lease of a job that is gone": ev.LeaseEnded(NOW, "ended/j", "a", 1, "revoked"),
    "a lease on a lost node": ev.LeaseEnded(NOW, "leased/work", "gone", 1, "revoked"),
    "a lease the job never had there": ev.LeaseEnded(NOW, "tasks/j", "a", 1, "finished"),
    "a cancel after the end": ev.QueryCancelled(NOW, "ended"),
    "a cancel of an unknown query": ev.QueryCancelled(NOW, "never heard of"),
}


@pytest.mark.parametrize("name", STALE)
def test_an_event_that_came_too_late_changes_nothing(name: str):
    hand = busy()
    undisturbed = what_follows(busy().scheduler)
    assert hand.do(STALE[name]) == []
    assert what_follows(hand.scheduler) == undisturbed


def test_a_call_without_events_decides_nothing_new():
    hand = busy()
    assert hand.do() == []
    assert hand.journal.steps[-1].events == ()
