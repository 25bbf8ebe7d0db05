"""Another policy may take over at any moment; what runs is not disturbed."""

from __future__ import annotations

import pytest
from by_hand import Hand, divisible, launched, maps, of_type

from queryard.core import events as ev
from queryard.core.commands import Fail, Finish
from queryard.core.errors import InvalidProfile
from queryard.core.model import Node, Query, Split, Table
from queryard.policies import resolve_profile

TABLE = Table("t", tuple(Split(1.0) for _ in range(3)))
FAIR = resolve_profile("fair")


def choose(hand: Hand, name: str) -> list:
    return hand.do(ev.PolicyChosen(hand.now, resolve_profile(name)))


def test_from_now_on_the_new_order_rules():
    hand = Hand("fifo", "1x1")
    hand.submit("now", maps("j", 1), estimates=1.0)
    hand.submit("long", maps("j", 1), estimates=50.0)
    hand.submit("short", maps("j", 1), estimates=5.0)
    assert choose(hand, "swrd") == []
    assert hand.running() == ["now/j:m0"], "what runs goes on"
    assert launched(hand.finish("now/j:m0")) == ["short/j:m0"]


def test_leases_are_dealt_anew():
    hand = Hand("fifo", "1x4")
    hand.submit("a", divisible("d", 4))
    hand.wait(1.0).submit("b", divisible("d", 4))
    hand.wait(1.0)
    hand.obey(choose(hand, "query-fair"))
    assert (hand.slots("a"), hand.slots("b")) == (2, 2)


def test_who_waited_for_a_shared_scan_waits_no_more():
    hand = Hand("mrshare", "1x1", [TABLE])
    hand.submit("q", maps("j", 3, scans=("t",)))
    assert hand.running() == []
    assert launched(choose(hand, "fifo")) == ["q/j:m0"]


def test_riders_finish_their_ride_under_the_new_policy():
    profile = {"sharing": {"name": "mrshare", "count": 2}}
    hand = Hand(profile, "1x1", [TABLE])
    hand.submit("a", maps("j", 3, scans=("t",)))
    hand.submit("b", maps("j", 3, scans=("t",)))
    assert hand.running() == ["a/j:m0", "b/j:m0"]
    choose(hand, "fifo")
    assert hand.running() == ["a/j:m0", "b/j:m0"]
    hand.run_all()
    assert set(hand.ended.values()) == {Finish("a"), Finish("b")}
    hand.check_replay()


# --- in company ----------------------------------------------------------------------------------


def test_a_waiting_query_is_cancelled_in_the_same_instant():
    hand = Hand("fifo", "1x1")
    hand.submit("x", maps("j", 2))
    hand.submit("w", maps("j", 2))
    for events in (
        [ev.QueryCancelled(0.0, "w"), ev.PolicyChosen(0.0, FAIR)],
        [ev.PolicyChosen(0.0, resolve_profile("tumm")), ev.QueryCancelled(0.0, "x")],
    ):
        hand.obey(hand.do(*events))
    assert set(hand.ended.values()) == {Fail("w", "cancelled"), Fail("x", "cancelled")}
    hand.check_replay()


@pytest.mark.parametrize("profile", ["fifo", "tumm", "s3", "relaqs", "edls-sh"])
def test_a_query_finishes_in_the_same_instant(profile: str):
    hand = Hand("capacity", "1x2")
    for tenant in "ab":
        hand.submit(tenant, maps("j", 1), tenant=tenant)
    chosen = ev.PolicyChosen(0.0, resolve_profile(profile))
    assert of_type(Finish, hand.do(ev.TaskFinished(0.0, hand.number("b/j:m0")), chosen))
    assert hand.scheduler.tree.root.queries == 1
    hand.run_all()
    assert hand.ended.keys() == {"a", "b"}
    hand.check_replay()


def test_everything_at_once():
    hand = Hand("s3", "2x2", [TABLE], slow_start=0.0)
    hand.submit("a", maps("j", 3, 2, scans=("t",)))
    hand.submit("b", divisible("d", 3))
    commands = hand.wait(1.0).do(
        ev.NodeLost(hand.now, "n0"),
        ev.QueryCancelled(hand.now, "b"),
        ev.PolicyChosen(hand.now, resolve_profile("h-tumm")),
        ev.QuerySubmitted(hand.now, Query("c", (maps("j", 3, scans=("t",)),))),
        ev.NodeJoined(hand.now, Node("n2", 3)),
        ev.PolicyChosen(hand.now, resolve_profile("tls-circular")),
        ev.Woke(hand.now),
    )
    assert hand.scheduler.policy.name == "tls-circular", "the last word counts"
    hand.obey(commands)
    hand.run_all()
    assert {id: type(end) for id, end in hand.ended.items()} == {
        "a": Finish,
        "b": Fail,
        "c": Finish,
    }
    hand.check_replay()


# --- a profile that cannot be followed -----------------------------------------------------------


@pytest.mark.parametrize(
    "profile",
    [
        {"order": "nope"},
        {"pools": {"by": "tenant", "children": {"ann": {"order": "fifo"}}}},
        {"ordre": "fifo"},
    ],
)
def test_a_wrong_profile_is_refused_and_the_old_one_stays(profile: dict):
    hand = Hand("swrd", "1x1")
    hand.submit("x", maps("j", 2), tenant="bob", estimates=9.0)
    with pytest.raises(InvalidProfile):
        hand.scheduler.handle(ev.PolicyChosen(hand.now, profile))
    hand.scheduler.validate()
    assert hand.scheduler.policy.name == "swrd"
    hand.submit("y", maps("j", 1), estimates=1.0)
    assert launched(hand.finish("x/j:m0")) == ["y/j:m0"]
    hand.check_replay()
