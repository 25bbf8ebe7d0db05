"""How wide queries with speed-up curves run while others wait, and alone."""

from __future__ import annotations

import math

import pytest
from by_hand import Hand, divisible, granted, launched, maps, revoked
from hypothesis import given
from hypothesis import strategies as st

from queryard.core import events as ev
from queryard.core.commands import Command
from queryard.core.errors import InvalidEvent, InvalidModel
from queryard.core.model import Query
from queryard.core.speedup import PERFECT, Speedup
from queryard.sim import forecast

curves = st.builds(Speedup, st.floats(0, 1), st.floats(1, 64) | st.just(math.inf))


def bend(hand: Hand, job: str, serial: float, work_s: float = 1.0) -> list[Command]:
    told = ev.EstimateChanged(hand.now, job, work_s=work_s, speedup=Speedup(serial))
    return hand.do(told)


def ask(hand: Hand, name: str, serial: float, work_s: float = 1.0, width: int = 8) -> list[Command]:
    """Submit a query with its estimate, in one instant."""
    estimates = {"d": {"work_s": work_s, "speedup": Speedup(serial)}}
    return hand.submit(name, divisible("d", width), estimates=estimates)


@given(curves, st.integers(0, 80))
def test_each_further_slot_gains_less(curve: Speedup, slots: int) -> None:
    assert curve.speed(slots) <= slots
    assert -1e-12 <= curve.gain(slots + 1) <= curve.gain(slots) + 1e-9
    assert PERFECT.gain(slots) == 1.0


@pytest.mark.parametrize("wrong", [{"serial": 1.5}, {"serial": math.nan}, {"most": 0.5}])
def test_a_curve_that_is_none_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidModel, match=next(iter(wrong))):
        Speedup(**wrong)


def test_tasks_have_no_curve() -> None:
    hand = Hand("fifo", "1x2")
    hand.submit("q", maps("j", 1))
    with pytest.raises(InvalidEvent, match="has tasks"):
        bend(hand, "q/j", 0.1)


def test_alone_a_query_has_all_slots() -> None:
    hand = Hand("fifo", "1x4")
    assert granted(ask(hand, "q", 0.9)) == {"q/d": 4}
    hand.check_replay()


def test_of_two_queries_the_first_keeps_what_it_can_use_well() -> None:
    for serial, first in ((0.1, 2), (0.3, 1)):
        hand = Hand("fifo", "1x2")
        ask(hand, "first", serial)
        commands = ask(hand.wait(1.0), "second", 0.0)
        assert revoked(commands) == ({} if first == 2 else {"first/d": 1})
        hand.returned(commands)
        assert (hand.slots("first"), hand.slots("second")) == (first, 2 - first)
        hand.check_replay()


def test_a_query_that_may_be_late_has_all_slots_that_speed_it_up() -> None:
    # It takes 1 s on one slot; on two 0.65 s, which is too long for the last one by far.
    for due_in_s, slots in ((None, 1), (10.0, 1), (1.5, 2), (0.7, 2), (0.1, 1)):
        hand = Hand("fifo", "1x2")
        estimates = {"d": {"work_s": 1.0, "speedup": Speedup(0.3)}}
        hand.submit("due", divisible("d", 2), estimates=estimates, deadline_s=due_in_s)
        hand.returned(ask(hand, "other", 0.0))
        assert (hand.slots("due"), hand.slots("other")) == (slots, 2 - slots)
        hand.check_replay()


def test_the_more_queries_wait_the_narrower_they_run() -> None:
    hand = Hand("swrd", "1x4")
    for number in range(8):
        hand.wait(0.1).returned(ask(hand, f"q{number}", 0.3, work_s=1.0 + number))
    assert [hand.slots(f"q{number}") for number in range(5)] == [1, 1, 1, 1, 0]


def test_with_more_slots_than_queries_each_has_its_part_and_none_is_idle() -> None:
    hand = Hand("swrd", "1x64")
    for number in range(3):
        hand.wait(0.1).returned(ask(hand, f"q{number}", 0.05, work_s=1.0 + number, width=64))
    held = [hand.slots(f"q{number}") for number in range(3)]
    assert sum(held) == 64
    assert held == sorted(held, reverse=True)
    assert min(held) > 10, "the last gains more by its first slots than the first by its last"


def test_a_curve_may_change_on_the_way() -> None:
    hand = Hand("fifo", "1x2")
    ask(hand, "first", 0.0)
    assert granted(ask(hand.wait(1.0), "second", 0.0)) == {}
    commands = bend(hand, "first/d", 0.5)
    assert revoked(commands) == {"first/d": 1}
    assert granted(hand.returned(commands)) == {"second/d": 1}
    hand.wait(1.0)
    back = hand.do(ev.EstimateChanged(hand.now, "first/d", speedup=PERFECT))
    assert revoked(back) == {"second/d": 1}
    assert not hand.state.curved
    hand.check_replay()


def test_slots_that_one_query_cannot_use_go_to_tasks() -> None:
    hand = Hand("fifo", "1x4")
    ask(hand, "wide", 0.6)
    commands = hand.wait(1.0).submit("tasks", maps("j", 9))
    assert len(launched(hand.returned(commands))) == 3
    assert hand.slots("wide") == 1


def test_a_tenant_keeps_its_share_but_not_what_it_cannot_use() -> None:
    pools = {"by": "tenant", "default": {"order": "fifo"}}
    for serial, held in ((0.0, 2), (0.9, 1)):
        hand = Hand({"pools": pools}, "1x4")
        events: list[ev.Event] = []
        for name, tenant, curve in (("a", "ann", serial), ("b", "bob", 0.0), ("c", "bob", 0.0)):
            query = Query(name, (divisible("d", 4),), tenant=tenant)
            events.append(ev.QuerySubmitted(0.0, query))
            events.append(ev.EstimateChanged(0.0, f"{name}/d", speedup=Speedup(curve)))
        hand.do(*events)
        assert hand.slots("a") == held
        assert hand.slots("b") == 4 - held


def test_times_alone_and_forecasts_go_by_the_curve() -> None:
    hand = Hand("fifo", "1x4")
    ask(hand, "q", 0.5, work_s=8.0)
    assert hand.state.queries["q"].alone_s == pytest.approx(8.0 / 1.6)
    end_s = forecast(hand.scheduler)["q"].end_s
    assert end_s == pytest.approx(8.0 / 1.6)
