"""Faults that were found once, each as small as it could be made."""

from __future__ import annotations

import json
import math

import pytest
import small_worlds as sw
from by_hand import Hand, divisible, launched, maps, of_type, revoked
from small_worlds import arrival, events, run, scan, table

from queryard.core import events as ev
from queryard.core.commands import Fail, Finish, Kill, Release, WakeAt
from queryard.core.errors import InvalidEvent, InvalidModel, InvalidProfile, InvalidRecord
from queryard.core.journal import Journal
from queryard.core.model import Job, Node, Phase, Query, Split, Table
from queryard.policies import resolve_profile
from queryard.sim import Conditions, forecast, replay
from queryard.sim.run import build
from queryard.workload.model import JobTruth, Workload


# --- A. events the kernel refuses -------------------------------------------------------------
def test_a_refused_event_does_not_move_the_clock():
    hand = Hand()
    with pytest.raises(InvalidEvent):
        hand.scheduler.handle(ev.NodeLost(1e9, "unknown"))
    assert hand.state.now == 0.0
    assert launched(hand.submit("q", maps("j", 1)))


def test_good_events_before_a_refused_one_are_in_the_journal_or_not_applied():
    hand = Hand("fifo", "1x2")
    query = Query("x", (maps("j", 1),))
    with pytest.raises(InvalidEvent):
        hand.scheduler.handle(ev.QuerySubmitted(0.0, query), ev.NodeLost(0.0, "unknown"))
    hand.submit("y", maps("j", 1))
    hand.check_replay()


def test_a_bad_profile_is_refused_and_the_kernel_goes_on():
    hand = Hand("fifo", "1x2")
    query = Query("x", (maps("j", 1),))
    with pytest.raises(InvalidProfile):
        hand.scheduler.handle(
            ev.QuerySubmitted(0.0, query), ev.PolicyChosen(0.0, {"order": "nope"})
        )
    hand.submit("y", maps("j", 1))
    hand.scheduler.validate()
    hand.check_replay()


def test_endless_time_is_refused():
    hand = Hand()
    with pytest.raises(InvalidEvent):
        hand.scheduler.handle(ev.Woke(math.inf))


def test_an_answer_of_batch_0_or_of_tasks_is_refused():
    hand = Hand("relaqs", "1x2")
    hand.submit("tasks", maps("j", 1))
    hand.submit("online", divisible("j", 1, 6), kind="online")
    for job, batch in (("tasks/j", 0), ("tasks/j", 1), ("online/j", 0)):
        with pytest.raises(InvalidEvent, match="answers come from divisible jobs"):
            hand.scheduler.handle(ev.AnswerReported(hand.now, job, batch, 1.0, 1.0))
    hand.do(ev.AnswerReported(hand.now, "online/j", 1, 1.0, 1.0))
    hand.check_replay()


def test_an_answer_that_is_no_number_starves_no_query():
    hand = Hand("relaqs", "1x2")
    for id in "xyz":
        hand.submit(id, divisible("j", 2, 6), kind="online")
    for batch in range(1, 5):
        for id in "xyz":
            hand.wait(1.0)
            change = math.nan if (id, batch) == ("x", 2) else 0.5 / batch
            hand.obey(hand.do(ev.AnswerReported(hand.now, f"{id}/j", batch, change, 1.0)))
    served = dict.fromkeys("xyz", 0)
    for _ in range(40):
        hand.wait(1.0)
        hand.obey(hand.do(ev.Woke(hand.now)))
        for id in "xyz":
            served[id] += hand.slots(id)
    assert min(served.values()) > 0, served


# --- B. policies ------------------------------------------------------------------------------
def test_cancel_of_a_waiting_query_in_the_instant_of_a_policy_change():
    hand = Hand("fifo", "1x1")
    hand.submit("x", maps("j", 3))
    hand.submit("w", maps("j", 3))
    out = hand.do(ev.QueryCancelled(0.0, "w"), ev.PolicyChosen(0.0, resolve_profile("fair")))
    assert of_type(Fail, out)


def test_end_in_the_instant_of_a_policy_change_to_fewer_pools():
    hand = Hand("capacity", "1x2")
    for t in "ab":
        hand.submit(t, maps("j", 1), tenant=t)
    out = hand.do(ev.TaskFinished(0.0, 1), ev.PolicyChosen(0.0, resolve_profile("fifo")))
    assert of_type(Finish, out)
    assert [p.queries for p in hand.scheduler.tree.pools.values()] == [1]


@pytest.mark.parametrize("profile", ["s3", "mrshare"])
def test_unknown_table_under_shared_scans(profile):
    hand = Hand(profile, "1x1")
    assert of_type(Fail, hand.submit("q", maps("j", 2, scans=("nope",))))


def test_cap_of_a_single_leaf():
    hand = Hand({"pools": {"order": "fifo", "cap": 0.5}}, "1x4")
    assert len(launched(hand.submit("q", maps("j", 9)))) == 2


def test_priority_after_memory_came():
    hand = Hand("priority", [Node("a", 2, 100.0)])
    hand.submit("holder", maps("j", 1), memory_bytes=90.0)
    hand.submit("low", maps("j", 9))
    hand.submit("high", maps("j", 1), priority=5.0, memory_bytes=50.0)
    hand.finish("low/j:m0")
    assert launched(hand.join(Node("b", 1, 100.0))) == ["high/j:m0"]


def test_fifo_with_locf_offers_to_the_first_again():
    t = Table("t", tuple(Split(1.0, ("b",)) for _ in range(4)))
    hand = Hand("locf", [Node("a", 2), Node("b", 1)], [t])
    hand.submit("first", maps("j", 4, scans=("t",)))
    hand.submit("second", maps("j", 9))
    # first is declined on a at most twice (two nodes), then taken there
    seen = [launched([c for s in hand.journal.steps for c in s.commands])]
    for _ in range(4):
        hand.wait(0.1)
        task = next(t for t in hand.running() if t.startswith("second"))
        seen.append(launched(hand.finish(task)))
    assert any(t.startswith("first") for s in seen[1:] for t in s), seen


def test_a_table_that_grows_under_a_query():
    t = Table("t", tuple(Split(1.0, ("a",)) for _ in range(3)))
    larger = Table("t", tuple(Split(1.0, ("a",) if i < 3 else ("b",)) for i in range(6)))
    hand = Hand("fifo", [Node("a", 1), Node("b", 1)], [t])
    hand.submit("q", maps("j", 3, scans=("t",)))
    hand.do(ev.TableChanged(0.0, larger))
    hand.finish(next(str(r.tasks[0]) for r in hand.state.running.values() if r.node == "b"))
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}


def test_a_table_that_moves_under_a_shared_scan_runs_no_task_twice():
    # blocks 0..2 were read in round 1; in round 2 the places change
    before = Table("t", tuple(Split(1.0, () if i < 3 else ("a",)) for i in range(6)))
    after = Table("t", tuple(Split(1.0, ("a",) if i < 3 else ()) for i in range(6)))
    hand = Hand({"sharing": {"name": "circular", "waves": 3}}, [Node("a", 1)], [before])
    hand.submit("q", maps("j", 6, scans=("t",)))
    for _ in range(3):
        hand.wait(1.0).finish(*hand.running())
    assert hand.running() == ["q/j:m3"]
    hand.do(ev.TableChanged(hand.now, after))
    assert launched(hand.wait(1.0).finish("q/j:m3")) == ["q/j:m4"]
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}


def test_small_in_the_same_instant_but_in_a_later_call():
    hand = Hand("swrd", "1x1")
    hand.submit("big", divisible("d", 1), estimates=100.0)
    out = hand.submit("small", divisible("d", 1), estimates=1.0)
    assert revoked(out) or hand.scheduler.waking.times_s, "else nothing ever asks for the slot"


def test_guarantees_hold_under_a_lottery_or_are_refused():
    pools = {
        "by": "tenant",
        "choice": "lottery",
        "default": {"order": "fifo"},
        "children": {"ann": {"order": "fifo", "guarantee": 0.9, "weight": 0.01}},
    }
    try:
        hand = Hand({"pools": pools}, "1x10")
    except InvalidProfile:
        return
    hand.do(*(ev.QuerySubmitted(0.0, Query(t, (maps("j", 99),), tenant=t)) for t in ("ann", "bob")))
    assert hand.slots("ann") >= 9


# --- C. memory ----------------------------------------------------------------------------------
def test_cancel_of_the_query_memory_was_kept_for():
    hand = Hand("fifo", [Node("a", 4, 100.0)])
    hand.submit("a", maps("j", 1), memory_bytes=60.0)
    hand.submit("large", maps("j", 1), memory_bytes=90.0)
    hand.submit("s", maps("j", 1), memory_bytes=30.0)
    assert launched(hand.cancel("large")) == ["s/j:m0"]


def test_rounding_of_reserved_memory():
    demands = (0.2, 0.9, 0.8)
    hand = Hand("fifo", [Node("a", 4, sum(demands))])
    for i, m in enumerate(demands):
        hand.submit(f"q{i}", maps("j", 1), memory_bytes=m)
    hand.submit("all", maps("j", 1), memory_bytes=sum(demands))
    for i in (2, 0, 1):
        out = hand.finish(f"q{i}/j:m0")
    assert launched(out) == ["all/j:m0"]


def test_endless_memory_is_no_demand():
    try:
        query = Query("a", (maps("j", 1),), memory_bytes=math.inf)
    except InvalidModel:
        return
    hand = Hand("fifo", "1x4")
    hand.do(ev.QuerySubmitted(0.0, query))
    hand.submit("b", maps("j", 2), memory_bytes=1.0)
    hand.finish("a/j:m0")
    assert launched(hand.submit("c", maps("j", 1), memory_bytes=1.0))


def test_too_much_memory_is_found_when_the_nodes_come():
    hand = Hand("fifo", [])
    hand.submit("q", maps("j", 1), memory_bytes=50.0)
    # It may still fit: a larger node may come.
    assert of_type(Fail, hand.join(Node("a", 1, 10.0))) == []
    assert "it needs 50 bytes of memory and 10 are free" in str(hand.scheduler.why("q"))
    assert launched(hand.join(Node("b", 1, 40.0))) == ["q/j:m0"]


# --- D. losses --------------------------------------------------------------------------------
def test_lost_maps_that_no_reduce_needs_do_not_run_again():
    hand = Hand("fifo", [Node("a", 1), Node("b", 1)])
    hand.submit("q", maps("j", 2, 1))
    hand.finish("q/j:m0", "q/j:m1")
    (reducing,) = [r.node for r in hand.state.running.values()]
    hand.lose("b" if reducing == "a" else "a")
    assert hand.wait(1.0).finish("q/j:r0") == [Finish("q")]


def test_no_kill_of_what_ended_in_the_same_instant():
    hand = Hand("fifo", "1x1")
    hand.submit("q", maps("j", 2))
    out = hand.do(ev.QueryCancelled(0.0, "q"), ev.TaskFinished(0.0, 0))
    assert not of_type(Kill, out)


# --- E. resizing ------------------------------------------------------------------------------
def shrinking(**more):
    return {"order": "fifo", "provisioning": {"name": "-x", "period_s": 10.0, "minimum": 1}, **more}


def test_the_last_node_is_not_released():
    hand = Hand(shrinking(), "2x1")
    hand.submit("q", maps("j", 4))
    drained = next(n.id for n in hand.state.nodes.values() if n.draining)
    (other,) = {"n0", "n1"} - {drained}
    hand.lose(other)
    here = next(str(r.tasks[0]) for r in hand.state.running.values())
    out = hand.wait(1.0).finish(here)
    assert not of_type(Release, out), "the minimum is one node"
    assert launched(out) or launched(hand.wait(20.0).do(ev.Woke(hand.now)))


def test_nodes_drained_by_an_earlier_policy_serve_again():
    hand = Hand(shrinking(), "2x1")
    hand.submit("q", maps("j", 8))
    hand.do(ev.PolicyChosen(0.0, {"order": "fifo"}))
    for _ in range(3):
        hand.wait(1.0).finish(*hand.running())
    assert not any(n.draining for n in hand.state.nodes.values())


def test_a_fork_just_after_a_drain_has_the_caps_of_the_original():
    p = shrinking()
    del p["order"]
    p["pools"] = {"by": "tenant", "default": {"order": "fifo", "cap": 0.5}}
    hand = Hand(p, "4x1")
    hand.submit("x", maps("j", 9))
    fork = hand.scheduler.fork()
    event = ev.Woke(1.0)
    assert fork.handle(event) == hand.do(event)
    assert [p.cap for p in fork.tree.pools.values()] == [
        p.cap for p in hand.scheduler.tree.pools.values()
    ]


def test_work_on_draining_nodes_does_not_keep_others_idle():
    hand = Hand(shrinking(), [Node("a", 2), Node("b", 2)])
    hand.submit("q", maps("j", 4))  # all four slots; one node drains
    drained = next(n.id for n in hand.state.nodes.values() if n.draining)
    active = ({"a", "b"} - {drained}).pop()
    task = next(str(r.tasks[0]) for r in hand.state.running.values() if r.node == active)
    hand.submit("next", maps("j", 4))
    assert launched(hand.wait(1.0).finish(task)) == ["next/j:m0"]


def test_an_undrained_node_is_used_at_once():
    rule = {"name": "dlx", "period_s": 10.0, "minimum": 1}
    hand = Hand({"order": "edf", "provisioning": rule}, "2x1")
    hand.submit("batch", maps("j", 9, 1), estimates=1.0)
    drained = next(n.id for n in hand.state.nodes.values() if n.draining)
    task = next(str(r.tasks[0]) for r in hand.state.running.values() if r.node == drained)
    hand.wait(1.0).finish(task)  # idle, but kept for its output
    hand.wait(10.0)
    out = hand.submit("due", maps("j", 60), estimates=1.0, deadline_s=hand.now + 20.0)
    assert hand.state.nodes[drained].free == 0, out


# --- F. simulator -----------------------------------------------------------------------------
def test_cancel_as_the_maps_end_kills_early_reduces_at_once():
    q = arrival("q", (sw.maps(1, 1), JobTruth(map_s=10.0, reduce_s=50.0)), cancel_s=10.0)
    assert run([q], [Node("a", 2)], slow_start=0.0).ends == {"q": 10.0}


def test_two_with_one_key_in_one_instant():
    two = [arrival(i, (sw.maps(1), 1.0), idempotency_key="k") for i in ("x", "y")]
    assert run(two, [Node("a", 2)]).unfinished == 0


def test_early_reduces_fail_as_often_as_others():
    many = [
        arrival(f"q{i}", (sw.maps(1, 50), JobTruth(map_s=1.0, reduce_s=1.0)), at=100.0 * i)
        for i in range(5)
    ]
    count = [
        len(
            events(
                run(many, [Node("a", 60)], task_failure=0.3, slow_start=s).journal, ev.TaskFailed
            )
        )
        for s in (0.0, 1.0)
    ]
    assert count[0] > count[1] / 2, count


def test_a_node_repaired_in_no_time_comes_back():
    found = run(
        [arrival("q", (sw.maps(40), 10.0))], [Node("a", 1)], node_mtbf_s=60.0, node_repair_s=0.0
    )
    assert not found.unfinished


def test_the_cluster_never_has_more_nodes_than_the_maximum():
    rule = {"name": "+x", "x": 1, "period_s": 50.0, "maximum": 4}
    found = run(
        [arrival("q", (sw.maps(400), 10.0))],
        [Node("a", 1), Node("b", 1)],
        {"order": "fifo", "provisioning": rule},
        node_mtbf_s=60.0,
        node_repair_s=20.0,
        node_boot_s=100.0,
    )
    here = most = 0
    for step in found.journal.steps:
        here += sum(isinstance(e, ev.NodeJoined) - isinstance(e, ev.NodeLost) for e in step.events)
        most = max(most, here)
    assert most <= 4


def test_a_table_that_shrinks_in_the_simulator():
    t, smaller = table("t", 6), table("t", 2)
    w = Workload("w", (arrival("q", (scan(t), 5.0)),), (t,))
    d = build(w, [Node("a", 1)], {"order": "fifo"}, conditions=Conditions(remote_penalty=0.1))
    d.post(7.0, 0, ev.TableChanged(7.0, smaller))
    d.run()
    assert d.ends


# --- G. forecasts -----------------------------------------------------------------------------
def comes_true(workload, nodes, profile, at, **how):
    d = build(workload, nodes, resolve_profile(profile), **how)
    d.run(at)
    f = forecast(d.scheduler)
    d.run()
    assert {q: x.end_s for q, x in f.items()} == pytest.approx({q: d.ends[q] for q in f})


def test_paused_work_is_not_done_again():
    w = Workload(
        "w",
        (
            arrival("big", (sw.divisible(2), 100.0)),
            arrival("small", (sw.divisible(2), 10.0), at=30.0),
        ),
    )
    comes_true(w, [Node("a", 2)], "swrd", 30.0)


def test_tasks_running_on_slow_nodes():
    w = Workload("w", (arrival("q", (sw.maps(6), 5.0)),))
    comes_true(w, [Node("a", 2, map_speed=0.5)], "fifo", 1.0)


def test_tasks_running_on_large_inputs():
    w = Workload("w", (arrival("q", (Job("j", map=Phase(3, sizes=(1.0, 1.0, 4.0))), 5.0)),))
    comes_true(w, [Node("a", 3)], "fifo", 1.0)


def test_riders_take_as_long_as_the_slowest():
    t = table("t", 4)
    w = Workload("w", (arrival("fast", (scan(t), 5.0)), arrival("slow", (scan(t), 9.0))), (t,))
    comes_true(w, [Node("a", 2)], "s3", 1.0)


# --- H. records ---------------------------------------------------------------------------------
HEAD = json.dumps({"queryard_journal": 1, "settings": {}, "profile": {}})


@pytest.mark.parametrize(
    "line",
    [
        '{"time_s":1,"events":null,"commands":[]}',
        '{"time_s":1,"events":[],"commands":5}',
        '{"time_s":1,"events":[{"type":[]}],"commands":[]}',
        '{"time_s":"soon","events":[],"commands":[]}',
        '{"time_s":1,"events":[{"type":"Woke","time_s":1' + "0" * 400 + '}],"commands":[]}',
        '{"time_s":1,"events":[{"type":"TaskFinished","time_s":1,"launch":false}],"commands":[]}',
    ],
)
def test_unreadable_lines(line):
    with pytest.raises(InvalidRecord, match="line 2"):
        Journal.from_lines([HEAD, line])


@pytest.mark.parametrize(
    "head",
    [
        '{"queryard_journal":1,"settings":[1],"profile":{}}',
        '{"queryard_journal":1,"settings":{},"profile":3}',
        '{"queryard_journal":true,"settings":{},"profile":{}}',
        '{"queryard_journal":1,"settings":{"nope":1},"profile":{"order":"fifo"}}',
    ],
)
def test_unreadable_heads(head):
    with pytest.raises(InvalidRecord):
        replay(Journal.from_lines([head]))


def test_the_story_of_a_query_is_not_that_of_a_job_of_the_same_name():
    hand = Hand("fifo", "1x4")
    hand.submit("a", maps("j", 1))
    hand.submit("b", maps("a", 1))
    assert not any("query=b" in s for _, s in hand.scheduler.story("a"))


# --- I. the real-time driver ------------------------------------------------------------------


def test_a_timer_that_rings_a_little_early_is_asked_for_again():
    t = Table("t", (Split(1.0), Split(1.0)))
    hand = Hand("mrshare", "1x1", [t])
    out = hand.submit("q", maps("j", 2, scans=("t",)))
    (wake,) = of_type(WakeAt, out)
    hand.wait(wake.time_s - 1e-9)
    assert hand.do(ev.Woke(hand.now)), "neither launched nor woken again"
