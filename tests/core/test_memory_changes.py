"""What a query reserves may change on its way, and its work may end without slots."""

from __future__ import annotations

from by_hand import Hand, divisible, granted, launched, maps, of_type

from queryard.core import events as ev
from queryard.core.commands import Command, Fail, Finish
from queryard.core.model import Node
from queryard.metrics import read_run
from queryard.sim import forecast

HUNDRED = [Node("n0", 4, 100.0)]


def reserve(hand: Hand, query: str, memory_bytes: float) -> list[Command]:
    return hand.do(ev.MemoryChanged(hand.now, query, memory_bytes))


def end_without_slots(hand: Hand, job: str, outcome: str = "finished") -> list[Command]:
    return hand.do(ev.LeaseEnded(hand.now, job, "n0", 0, outcome, "elsewhere"))  # type: ignore[arg-type]


def test_a_waiting_query_that_needs_less_starts():
    hand = Hand("fifo", HUNDRED)
    hand.submit("a", maps("j", 1), memory_bytes=70.0)
    assert hand.submit("b", maps("j", 1), memory_bytes=40.0) == []
    assert launched(reserve(hand, "b", 30.0)) == ["b/j:m0"]
    assert hand.state.reserved_bytes == 100.0
    hand.check_replay()


def test_a_waiting_query_that_needs_none_passes_the_gate():
    hand = Hand("fifo", HUNDRED)
    hand.submit("a", maps("j", 1), memory_bytes=100.0)
    hand.submit("b", maps("j", 1), memory_bytes=40.0)
    assert launched(reserve(hand, "b", 0.0)) == ["b/j:m0"]
    assert hand.state.reserved_bytes == 100.0


def test_a_waiting_query_that_needs_memory_after_all_waits_at_the_gate():
    hand = Hand("fifo", [Node("n0", 1, 100.0)])
    hand.submit("a", maps("j", 1), memory_bytes=70.0)
    hand.submit("b", maps("j", 1))
    reserve(hand, "b", 40.0)
    hand.join(Node("n1", 1, 0.0))
    assert hand.state.queries["b"].stage == "waiting"
    assert launched(hand.finish("a/j:m0")) == ["b/j:m0"]


def test_what_a_started_query_gives_up_starts_another():
    hand = Hand("fifo", HUNDRED)
    hand.submit("a", divisible("d", 1), memory_bytes=70.0)
    hand.submit("b", divisible("d", 1), memory_bytes=40.0)
    assert granted(reserve(hand, "a", 60.0)) == {"b/d": 1}
    assert hand.state.reserved_bytes == 100.0


def test_a_reservation_moves_from_one_query_to_another_at_once():
    hand = Hand("fifo", HUNDRED)
    hand.submit("first", divisible("d", 1), memory_bytes=70.0)
    hand.submit("twin", divisible("d", 1))
    hand.do(ev.MemoryChanged(0.0, "twin", 70.0), ev.MemoryChanged(0.0, "first", 0.0))
    assert hand.state.reserved_bytes == 70.0
    hand.lease_over("first/d")
    assert hand.state.reserved_bytes == 70.0
    hand.lease_over("twin/d")
    assert hand.state.reserved_bytes == 0.0
    hand.check_replay()


def test_a_started_query_may_come_to_need_more_than_there_is():
    hand = Hand("fifo", HUNDRED)
    hand.submit("a", divisible("d", 1), memory_bytes=70.0)
    reserve(hand, "a", 130.0)
    assert hand.submit("b", maps("j", 1), memory_bytes=10.0) == []
    assert launched(hand.lease_over("a/d")) == ["b/j:m0"]


def test_a_waiting_query_that_can_never_start_any_more_fails():
    hand = Hand("fifo", HUNDRED)
    hand.submit("a", maps("j", 1), memory_bytes=70.0)
    hand.submit("b", maps("j", 1), memory_bytes=40.0)
    (failed,) = of_type(Fail, reserve(hand, "b", 130.0))
    assert failed.query == "b"
    assert "needs 130 bytes of memory" in failed.cause


def test_memory_is_not_kept_for_a_query_that_could_not_use_a_slot():
    hand = Hand("fifo", HUNDRED)
    hand.submit("a", maps("j", 1), memory_bytes=60.0)
    hand.submit("large", divisible("d", 1), memory_bytes=80.0)
    assert hand.submit("small", maps("j", 1), memory_bytes=30.0) == [], "room is kept for large"
    hand.do(ev.WidthChanged(0.0, "large/d", 0))
    assert hand.state.queries["small"].stage == "running"
    assert hand.submit("more", maps("j", 1), memory_bytes=10.0), "no query is in its way"


def test_a_job_may_finish_while_it_holds_no_slot():
    hand = Hand("fifo", "1x2")
    hand.submit("q", divisible("d", 2))
    hand.returned(hand.do(ev.WidthChanged(0.0, "q/d", 0)))
    assert end_without_slots(hand, "q/d") == [Finish("q")]


def test_a_job_that_finished_without_slots_ends_when_those_elsewhere_are_back():
    hand = Hand("fifo", "2x2")
    hand.submit("q", divisible("d", 2))
    assert sorted(hand.state.jobs["q/d"].leases) == ["n0", "n1"]
    hand.do(ev.LeaseEnded(0.0, "q/d", "n0", 1, "revoked"))
    assert end_without_slots(hand, "q/d") == []
    assert hand.state.jobs["q/d"].finishing
    back = [
        ev.LeaseEnded(0.0, "q/d", node, sum(slots), "revoked")
        for node, slots in hand.state.jobs["q/d"].leases.items()
    ]
    assert Finish("q") in hand.do(*back)


def test_a_query_that_never_started_may_be_complete():
    hand = Hand("fifo", [Node("n0", 1, 100.0)])
    hand.submit("a", divisible("d", 1), memory_bytes=90.0)
    hand.wait(1.0).submit("twin", divisible("d", 1), memory_bytes=90.0)
    assert end_without_slots(hand.wait(1.0), "twin/d") == [Finish("twin")]
    assert hand.state.reserved_bytes == 90.0
    row = read_run(hand.journal).queries["twin"]
    assert (row.start_s, row.end_s, row.outcome) == (None, 2.0, "finished")
    hand.check_replay()


def test_a_query_that_never_started_may_fail():
    hand = Hand("fifo", "1x1")
    hand.submit("a", divisible("d", 1))
    hand.submit("twin", divisible("d", 1))
    assert end_without_slots(hand, "twin/d", "failed") == [Fail("twin", "job twin/d: elsewhere")]


def test_the_jobs_after_one_that_never_ran_become_ready():
    hand = Hand("fifo", "1x1")
    hand.submit("a", divisible("d", 1))
    hand.submit("q", divisible("d", 1), maps("j", 1, upstream=("d",)))
    end_without_slots(hand, "q/d")
    assert hand.state.queries["q"].stage == "waiting"
    assert launched(hand.lease_over("a/d")) == ["q/j:m0"]


def test_a_forecast_goes_by_the_memory_as_it_is_now():
    hand = Hand("fifo", HUNDRED)
    hand.submit("a", divisible("d", 1), estimates=10.0, memory_bytes=70.0)
    hand.submit("b", divisible("d", 1), estimates=10.0, memory_bytes=40.0)
    reserve(hand, "a", 90.0)
    assert forecast(hand.scheduler)["b"].start_s == 10.0
    reserve(hand, "a", 50.0)
    assert forecast(hand.scheduler)["b"].start_s == 0.0
