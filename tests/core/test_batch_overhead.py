"""From the times of answers and the slots held between them the overhead of a batch is known."""

from __future__ import annotations

import pytest
from by_hand import Hand, divisible

from queryard.core import events as ev
from queryard.core.errors import InvalidEvent
from queryard.core.model import Divisible, Job, Node, Query
from queryard.policies import resolve_profile
from queryard.policies.orders.progress_claims import forecast_of
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload


def answer(hand: Hand, batch: int, core_s: float) -> None:
    hand.do(ev.AnswerReported(hand.now, "q/d", batch, 1.0 / batch, core_s))


def test_an_answer_knows_how_long_how_many_slots_were_held():
    hand = Hand("fifo", "1x4")
    hand.submit("q", divisible("d", 4, 5), kind="online")
    answer(hand.wait(3.0), 1, 8.0)
    back = hand.wait(1.0).do(ev.WidthChanged(hand.now, "q/d", 2))
    hand.wait(1.0).returned(back)
    answer(hand.wait(2.0), 2, 8.0)
    back = hand.do(ev.WidthChanged(hand.now, "q/d", 0))
    hand.returned(back)
    hand.wait(50.0).do(ev.WidthChanged(hand.now, "q/d", 1))
    answer(hand.wait(9.0), 3, 8.0)
    held = [(each.wall_s, each.slots) for each in hand.state.jobs["q/d"].answers]
    assert held == [(3.0, 4.0), (4.0, 3.0), (9.0, 1.0)], "two slots for two seconds; no pause"


def test_batches_that_were_read_together_divide_the_time_and_have_changes_of_their_own():
    hand = Hand("fifo", "1x4")
    hand.submit("q", divisible("d", 4, 9), kind="online")
    hand.wait(6.0).do(ev.AnswerReported(hand.now, "q/d", 3, 0.1, 8.0, 0.5, (1.0, 0.2), 0.6))
    hand.wait(4.0).do(ev.AnswerReported(hand.now, "q/d", 5, 0.05, 8.0, 0.3, (0.4,)))
    told = hand.state.jobs["q/d"].answers
    assert [each.batch for each in told] == [1, 2, 3, 4, 5]
    assert [each.progress for each in told] == pytest.approx([1.0, 0.5, 0.25, 1.0, 0.125])
    assert [(each.wall_s, each.slots) for each in told] == [(2.0, 4.0)] * 5
    assert [each.error for each in told] == [None, None, 0.5, None, 0.3]
    assert [each.left for each in told] == [None, None, 0.6, None, None]
    with pytest.raises(InvalidEvent):
        hand.do(ev.AnswerReported(hand.now, "q/d", 2, 0.1, 8.0, None, (0.1, 0.1)))


@pytest.mark.parametrize("overhead_s", [0.0, 1.0])
@pytest.mark.parametrize("speed", [1.0, 0.5])
def test_the_overhead_is_told_from_the_work(overhead_s: float, speed: float):
    """Whatever the speed of the slots: the number of them changes between batches."""
    job = Job("d", divisible=Divisible(4, 60))
    truth = JobTruth(work_s=480.0, batch_overhead_s=overhead_s)
    arrival = Arrival(Query("q", (job,), kind="online"), {"d": truth})
    nodes = [Node("n", 4, map_speed=speed)]
    driver = build(Workload("one", (arrival,)), nodes, resolve_profile("relaqs"))
    for time_s, width in ((9.0, 2), (30.0, 1), (80.0, 4)):
        driver.post(time_s, 0, ev.WidthChanged(time_s, "q/d", width))
    driver.run(until_s=95.0)
    forecast = forecast_of(driver.scheduler.state.jobs["q/d"])
    assert forecast is not None
    assert forecast.time.c == pytest.approx(overhead_s, abs=0.35)
    assert forecast.time.b == pytest.approx(8.0 / speed, rel=0.1)
