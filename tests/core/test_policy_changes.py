"""Another policy may take over at any moment; what runs is not disturbed."""

from __future__ import annotations

import pytest
from by_hand import Hand, divisible, launched, maps, of_type
from long_forms import some_of

from queryard.core import events as ev
from queryard.core.commands import Fail, Finish
from queryard.core.errors import InvalidProfile
from queryard.core.model import Node, Query, Split, Table
from queryard.policies import resolve_profile
from queryard.policies.profiles import PROFILES
from queryard.sim.run import build
from queryard.workload import Mix, generate, parse_nodes

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


# --- what was seen before the change --------------------------------------------------------------

NODES = parse_nodes("4x4")
# Shared scans begin their rounds anew, a lottery draws once more, and averages are asked for again.
BEGIN_ANEW = {
    *("mrshare", "s3", "s3-pays", "marshal", "tls-circular", "tls-circular-htumm"),
    *("edls-pr", "h-tumm"),
}


def ends(profile: dict, times_s: tuple[float, ...]) -> dict[str, float]:
    mix = Mix(queries=50, load=1.0, deadlines=0.3, tenants={"a": 2.0, "b": 1.0})
    workload = generate(mix, 1, NODES)
    driver = build(workload, NODES, profile, estimates="oracle")
    for time_s in times_s:
        driver.post(time_s, 0, ev.PolicyChosen(time_s, profile))
    driver.run()
    return driver.ends


@pytest.mark.parametrize("name", some_of(sorted(PROFILES.keys() - BEGIN_ANEW), 8))
def test_to_choose_what_is_in_force_changes_nothing(name: str):
    profile = resolve_profile(name)
    assert ends(profile, (200.5, 500.5, 800.5)) == ends(profile, ())


@pytest.mark.parametrize("part", ["+x", "-x", "dlx", "maxbsd"])
def test_nodes_on_their_way_are_not_forgotten(part: str):
    profile = {"order": "fifo", "provisioning": {"name": part, "maximum": 12}}
    assert ends(profile, tuple(100.0 + 17.0 * n for n in range(30))) == ends(profile, ())


def test_load_of_late_outlasts_a_change_of_job_order():
    """Of two profiles with the same order, the second goes on with the load the first has seen."""
    workload = generate(Mix(queries=100, load=0.8), 3, NODES)
    profiles = [resolve_profile(name) for name in ("tls", "tls-dfa")]
    found = []
    for profile in profiles:
        driver = build(workload, NODES, profiles[0], estimates="oracle")
        driver.post(1200.0, 0, ev.PolicyChosen(1200.0, profile))
        driver.run(1260.0)
        (order,) = (pool.order for pool in driver.scheduler.tree.pools.values() if pool.order)
        found.append(order.threshold(driver.scheduler.state))
    assert found[0] == found[1] > 2.0
