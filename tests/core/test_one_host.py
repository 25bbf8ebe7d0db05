"""A divisible job that has started cannot move: its slots are of one host until it ends."""

from __future__ import annotations

import random
from typing import Any

import pytest
from by_hand import Hand, divisible, granted, launched, maps, of_type, revoked
from hypothesis import given, settings
from hypothesis import strategies as st
from long_forms import examples

from queryard.core import events as ev
from queryard.core.commands import Fail, Finish, Grant, Release, Revoke
from queryard.core.journal import Journal
from queryard.core.model import Divisible, Job, Node
from queryard.sim import replay

A4, B4 = Node("a", 4), Node("b", 4)


def homes(hand: Hand) -> dict[str, set[str]]:
    return {job.id: set(job.leases) for job in hand.state.jobs.values()}


# --- grants -------------------------------------------------------------------------------------


def test_a_job_as_wide_as_two_nodes_uses_one_of_them():
    hand = Hand("fifo", [A4, B4])
    assert hand.submit("q", divisible("d", 8)) == [Grant("q/d", "a", 4)]
    assert hand.state.nodes["b"].free == 4
    hand.check_replay()


def test_nodes_of_one_host_serve_one_job():
    hand = Hand("fifo", [Node("a", 2, host="h"), Node("b", 2, host="h"), Node("c", 2)])
    assert granted(hand.submit("q", divisible("d", 6))) == {"q/d": 4}
    assert homes(hand) == {"q/d": {"a", "b"}}


def test_a_slot_that_the_first_cannot_use_goes_to_the_next():
    hand = Hand("fifo", [A4, B4])
    hand.submit("first", divisible("d", 8))
    assert hand.submit("second", divisible("d", 8)) == [Grant("second/d", "b", 4)]
    assert hand.submit("third", maps("j", 1)) == [], "no slot is free"
    hand.lease_over("second/d")
    assert hand.running() == ["third/j:m0"], "the first query cannot use this node"


def test_it_keeps_its_host_while_it_is_paused():
    hand = Hand("swrd", [Node("a", 1), Node("b", 1)])
    hand.submit("long", divisible("d", 1), estimates=100.0)
    hand.submit("other", divisible("d", 1), estimates=50.0)
    assert homes(hand) == {"long/d": {"a"}, "other/d": {"b"}}
    hand.obey(hand.wait(1.0).submit("short", divisible("d", 1), estimates=1.0))
    assert homes(hand) == {"long/d": set(), "other/d": {"b"}, "short/d": {"a"}}
    assert not of_type(Grant, hand.wait(1.0).lease_over("other/d")), "it started elsewhere"
    assert hand.wait(1.0).lease_over("short/d") == [Finish("short"), Grant("long/d", "a", 1)]


def test_only_slots_that_another_job_could_use_are_revoked():
    """The newcomer would use one host: the leases of the other are left alone."""
    hand = Hand("swrd", [Node("a", 2), Node("b", 2)])
    hand.submit("one", divisible("d", 2), estimates=100.0)
    hand.submit("two", divisible("d", 2), estimates=90.0)
    commands = hand.wait(1.0).submit("small", divisible("d", 4), estimates=1.0)
    (job,) = revoked(commands)
    assert revoked(commands) == {job: 2}
    assert granted(hand.returned(commands)) == {"small/d": 2}
    for _ in range(3):
        assert not of_type(Revoke, hand.wait(1.0).do(ev.Woke(hand.now)))


def test_jobs_of_one_query_may_run_on_different_hosts():
    hand = Hand("fifo", [Node("a", 2), Node("b", 2)])
    hand.submit("q", divisible("x", 2), divisible("y", 2))
    assert sorted(map(sorted, homes(hand).values())) == [["a"], ["b"]]


@pytest.mark.parametrize("profile", ["fifo", "fair", "query-fair", "swrd", "srtf", "tls", "tumm"])
def test_among_many_that_are_bound_elsewhere_the_one_that_can_run_is_found(profile: str):
    hand = Hand(profile, [Node("a", 1), Node("b", 1)])
    hand.submit("there", divisible("d", 1), estimates=50.0)
    for number in range(20):
        hand.obey(hand.wait(1.0).submit(f"q{number}", divisible("d", 1), estimates=60.0))
    while hand.state.queries:
        for node in hand.state.nodes.values():
            could = [q for q in hand.state.queries.values() if _could_use(q, node)]
            assert not (node.free and could), f"{node.id} is idle"
        hand.obey(hand.wait(1.0).lease_over(next(iter(hand.state.leaseholders))))
    assert {type(end) for end in hand.ended.values()} == {Finish}


def _could_use(query: Any, node: Any) -> bool:
    return any(job.host in ("", node.host) for jobs in query.runnable for job in jobs)


def test_tasks_go_anywhere():
    hand = Hand("fifo", [Node("a", 1), Node("b", 1)])
    assert len(launched(hand.submit("q", maps("j", 2)))) == 2


def test_why_says_that_a_job_cannot_move():
    hand = Hand("swrd", [Node("a", 1), Node("b", 1)])
    hand.submit("long", divisible("d", 1), estimates=100.0)
    hand.obey(hand.wait(1.0).submit("x", divisible("d", 1), estimates=90.0))
    hand.obey(hand.wait(1.0).submit("short", divisible("d", 1), estimates=1.0))
    assert "job d has started on 'a' and can use its slots only" in str(hand.scheduler.why("long"))


def test_alone_a_job_has_the_slots_of_one_host():
    hand = Hand("fifo", [A4, B4])
    hand.submit("q", divisible("d", 8), estimates=40.0)
    assert hand.state.queries["q"].alone_s == 10.0
    hand.submit("r", Job("d", divisible=Divisible(8, span="cluster")), estimates=40.0)
    assert hand.state.queries["r"].alone_s == 5.0


# --- journals of before -------------------------------------------------------------------------


def test_a_journal_without_the_setting_replays_as_it_was():
    hand = Hand("query-fair", [A4, B4], lease_span="cluster")
    hand.submit("q", divisible("d", 8))
    hand.obey(hand.wait(1.0).submit("r", divisible("d", 8)))
    hand.wait(1.0).lose("a")
    hand.run_all()
    assert {command.node for s in hand.journal.steps for command in of_type(Grant, s.commands)} == {
        "a",
        "b",
    }
    old = {key: value for key, value in hand.journal.settings.items() if key != "lease_span"}
    assert replay(Journal(old, hand.journal.profile, hand.journal.steps)) is None


# --- hosts that are lost ------------------------------------------------------------------------


def test_with_its_host_a_job_loses_all_it_did_and_begins_again():
    hand = Hand("fifo", [Node("a", 2), Node("b", 2)], max_attempts=1)
    hand.submit("q", divisible("d", 2), estimates=10.0)
    hand.wait(1.0).do(ev.Progressed(1.0, "q/d", 0.5))
    assert hand.lose("a") == [Grant("q/d", "b", 2)]
    assert hand.state.jobs["q/d"].done_share == 0.0
    assert hand.state.queries["q"].left_s == 10.0
    assert hand.lease_over("q/d") == [Finish("q")], "the loss was no attempt"
    hand.check_replay()


def test_a_paused_job_begins_again_too():
    hand = Hand("swrd", [Node("a", 1), Node("b", 1)])
    hand.submit("long", divisible("d", 1), estimates=100.0)
    hand.submit("x", divisible("d", 1), estimates=90.0)
    hand.obey(hand.wait(1.0).submit("short", divisible("d", 1), estimates=1.0))
    hand.do(ev.Progressed(hand.now, "long/d", 0.4))
    assert hand.lose("a") == [Revoke("x/d", "b", 1)], "short is nowhere now, and comes first"
    assert hand.state.jobs["long/d"].host == ""
    assert hand.state.jobs["long/d"].done_share == 0.0


def test_with_one_of_several_nodes_of_a_host_only_slots_are_lost():
    hand = Hand("fifo", [Node("a", 1, host="h"), Node("b", 1, host="h")])
    hand.submit("q", divisible("d", 2), estimates=10.0)
    hand.do(ev.Progressed(0.0, "q/d", 0.5))
    hand.lose("a")
    assert hand.state.jobs["q/d"].done_share == 0.5
    assert homes(hand) == {"q/d": {"b"}}


def test_a_query_that_lost_everything_gives_its_memory_back():
    hand = Hand("fifo", [Node("a", 1, 100.0), Node("b", 1, 50.0)])
    hand.submit("q", divisible("d", 1), memory_bytes=80.0)
    hand.lose("a")
    assert hand.state.reserved_bytes == 0.0
    assert hand.state.queries["q"].stage == "waiting"
    assert hand.submit("small", divisible("d", 1), memory_bytes=40.0) == [Grant("small/d", "b", 1)]
    assert hand.join(Node("c", 1, 100.0)) == [Grant("q/d", "c", 1)]


def test_what_was_done_before_the_loss_is_kept():
    hand = Hand("fifo", [Node("a", 1), Node("b", 1)])
    hand.submit("q", maps("j", 1), divisible("d", 1, upstream=("j",)))
    hand.finish("q/j:m0")
    (host,) = homes(hand)["q/d"]
    assert of_type(Grant, hand.lose(host))
    assert hand.state.queries["q"].stage == "running"
    assert hand.state.queries["q"].open_jobs == 1


# --- memory -------------------------------------------------------------------------------------


def test_the_memory_of_a_divisible_query_must_fit_on_one_host():
    hand = Hand("fifo", [Node("a", 2, 60.0), Node("b", 2, 60.0)])
    assert of_type(Fail, hand.submit("huge", divisible("d", 1), memory_bytes=100.0))
    assert "on one host" in hand.ended["huge"].cause  # type: ignore[union-attr]
    assert launched(hand.submit("tasks", maps("j", 1), memory_bytes=90.0)), "tasks are spread"
    hand.finish("tasks/j:m0")
    for name in ("x", "y"):
        hand.submit(name, divisible("d", 1), memory_bytes=40.0)
    assert homes(hand) == {"x/d": {"a"}, "y/d": {"b"}}
    assert not of_type(Grant, hand.submit("z", divisible("d", 1), memory_bytes=30.0))
    assert any("memory" in reason for reason in hand.scheduler.why("z").reasons)
    assert granted(hand.lease_over("y/d")) == {"z/d": 1}
    hand.check_replay()


def test_a_large_query_is_not_passed_by_small_ones_for_ever():
    hand = Hand("fifo", [Node("a", 4, 60.0), Node("b", 4, 60.0)])
    for number in range(4):
        hand.submit(f"s{number}", divisible("d", 1), memory_bytes=30.0)
    hand.submit("large", divisible("d", 1), memory_bytes=60.0)
    for number in range(4, 20):
        hand.wait(1.0).submit(f"s{number}", divisible("d", 1), memory_bytes=30.0)
        hand.lease_over(next(iter(hand.state.leaseholders)))
        if hand.slots("large"):
            return
    raise AssertionError("it was passed by every small query")


# --- a cluster that shrinks ---------------------------------------------------------------------


def shrinking(**settings: Any) -> dict[str, Any]:
    return {
        "order": "fifo",
        "provisioning": {"name": "-x", "minimum": 1, "period_s": 1.0, **settings},
    }


def test_a_host_with_a_started_job_drains_when_the_job_has_ended():
    hand = Hand("fifo", [Node("a", 2), Node("b", 2)])
    hand.submit("x", divisible("d", 2))
    hand.submit("y", divisible("d", 2))
    commands = hand.wait(1.0).do(ev.PolicyChosen(hand.now, shrinking()))
    (drained,) = (node for node in hand.state.nodes.values() if node.draining)
    assert not revoked(commands), "nothing could go on elsewhere"
    here = next(job for job, nodes in homes(hand).items() if nodes == {drained.id})
    # It may even be widened there, but nothing new begins.
    hand.obey(hand.do(ev.WidthChanged(hand.now, here, 0)))
    assert not of_type(Release, hand.wait(1.0).do(ev.Woke(hand.now)))
    hand.submit("z", divisible("d", 2))
    assert granted(hand.do(ev.WidthChanged(hand.now, here, 2))) == {here: 2}
    assert homes(hand)["z/d"] == set()
    assert Release(drained.id) in hand.wait(1.0).lease_over(here)
    hand.check_replay()


def test_hosts_without_started_jobs_are_drained_first():
    hand = Hand("fifo", [Node("a", 4), Node("b", 3), Node("c", 3)])
    hand.submit("work", divisible("d", 1))
    assert homes(hand) == {"work/d": {"a"}}
    hand.submit("tasks", maps("j", 9))
    here = [str(run.tasks[0]) for run in hand.state.running.values() if run.node == "a"]
    hand.finish(*here, place=None)
    assert hand.state.nodes["a"].free == 3, "the least busy one"
    hand.wait(1.0).do(ev.PolicyChosen(hand.now, shrinking(minimum=2)))
    assert [node.id for node in hand.state.nodes.values() if node.draining] == ["b"]


# --- whatever happens ---------------------------------------------------------------------------


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(
    profile=st.sampled_from(("fifo", "fair", "query-fair", "swrd", "srtf", "tls", "marshal")),
    shrinks=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_grants_of_a_started_job_name_one_host_until_it_is_lost(
    profile: str, shrinks: bool, seed: int
):
    draw = random.Random(seed)
    rule = {"name": "-x", "minimum": 1, "period_s": 3.0} if shrinks else "fixed"
    nodes = [Node(f"n{i}", 2, 100.0, host=f"h{i // 2}" if i < 4 else "") for i in range(6)]
    hand = Hand({"base": profile, "provisioning": rule}, nodes, max_attempts=3)
    host_of = {node.id: node.host or node.id for node in nodes}
    for number in range(40):
        hand.wait(draw.choice((0.0, 1.0, 4.0)))
        what = draw.randrange(8)
        commands: list[Any] = []
        if what < 3:
            jobs = [divisible("d", draw.randint(1, 4)), maps("j", draw.randint(1, 3))]
            memory = draw.choice((0.0, 40.0, 90.0))
            chosen = draw.choice((jobs[:1], jobs[1:], jobs))
            commands = hand.submit(f"q{number}", *chosen, estimates=5.0, memory_bytes=memory)
        elif what == 3 and hand.state.leaseholders:
            job = draw.choice(sorted(hand.state.leaseholders))
            failed = draw.random() < 0.3
            commands = hand.do(
                *(
                    ev.LeaseEnded(
                        hand.now,
                        job,
                        node,
                        sum(slots),
                        "failed" if failed else "finished",
                        "chance",
                        draw.choice(("count", "free")) if failed else "never",
                    )
                    for node, slots in hand.state.jobs[job].leases.items()
                )
            )
        elif what == 4 and len(hand.state.nodes) > 2:
            commands = hand.lose(draw.choice(sorted(hand.state.nodes)))
        elif what == 5:
            gone = [node for node in nodes if node.id not in hand.state.nodes]
            commands = hand.join(draw.choice(gone)) if gone else []
        elif what == 6 and hand.state.running:
            commands = hand.finish(draw.choice(hand.running()))
        else:
            commands = hand.do(ev.Woke(hand.now))
        hand.obey(commands)
        for job in hand.state.jobs.values():
            assert len({host_of[node] for node in job.leases}) <= 1
    hand.join(*(node for node in nodes if node.id not in hand.state.nodes))
    for _ in range(200):
        if not hand.state.queries:
            break
        hand.wait(4.0).obey(hand.do(ev.Woke(hand.now)))
        hand.run_all()
    assert not hand.state.queries, [str(hand.scheduler.why(q)) for q in hand.state.queries]
    assert not hand.state.reserved_bytes
    hand.check_replay()
