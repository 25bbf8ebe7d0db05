"""A fork is a kernel of its own: it decides as the original would, and changes nothing there."""

from __future__ import annotations

import random
from typing import Any

import pytest
from by_hand import Hand, divisible, maps

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.codec import encode
from queryard.core.model import Divisible, Job, Node, Query, Split, Table
from queryard.core.scheduler import Scheduler
from queryard.policies import catalogue, resolve_profile

TABLE = Table("t", tuple(Split(1.0, ("n0",)) for _ in range(4)))
PROFILES = [info.name for info in catalogue()]


def in_the_middle(profile: Any, seed: int = 0) -> Hand:
    """Tasks, leases, riders, a retry, an estimate, an answer: something of everything."""
    hand = Hand(profile, [Node(f"n{i}", 2, 100.0) for i in range(3)], [TABLE], seed=seed)
    for number in range(10):
        jobs: tuple[Job, ...] = (
            (maps("scan", 4, 2, scans=("t",)), maps("sum", 2, upstream=("scan",))),
            (divisible("d", 3),),
            (maps("a", 3, 1), maps("b", 2, upstream=("a",))),
            (Job("online", divisible=Divisible(2, 4)),),
            (maps("scan", 4, scans=("t",)),),
        )[number % 5]
        hand.wait(1.0)
        hand.obey(
            hand.submit(
                f"q{number}",
                *jobs,
                estimates=3.0 + number,
                kind="online" if number % 5 == 3 else "exact",
                deadline_s=hand.now + 20.0 if number % 2 else None,
                tenant=("ann", "bob", "eve")[number % 3],
                memory_bytes=40.0 if number % 4 == 1 else 0.0,
                class_name="daily",
            )
        )
        if number == 4 and hand.state.running:
            hand.fail(next(t for r in hand.state.running.values() for t in map(str, r.tasks)))
        if hand.state.running and number % 2:
            run = next(iter(hand.state.running.values()))
            hand.obey(hand.do(ev.TaskFinished(hand.now, run.number, run.node)))
        if "q3/online" in hand.state.jobs and number in (6, 8):
            hand.do(ev.AnswerReported(hand.now, "q3/online", number // 2 - 2, 0.5, 1.0, 0.1))
    return hand


def go_on(scheduler: Scheduler, now: float, seed: int, steps: int = 60) -> list[Any]:
    """Anything that can happen, drawn from the seed and from what the kernel decides."""
    draw = random.Random(seed)
    told: list[Any] = []
    revokes: list[do.Revoke] = []

    def handle(*events: ev.Event) -> None:
        commands = scheduler.handle(*events)
        told.append(commands)
        revokes.extend(c for c in commands if isinstance(c, do.Revoke))

    for number in range(steps):
        now += draw.choice((0.0, 0.5, 2.0))
        state = scheduler.state
        what = draw.randrange(10)
        if what < 4 and state.running:
            run = draw.choice(sorted(state.running.values()))
            handle(ev.TaskFinished(now, run.number, run.node))
        elif what == 4 and state.running:
            handle(ev.TaskFailed(now, draw.choice(sorted(state.running)), "oops"))
        elif what == 5 and state.leaseholders:
            job = state.leaseholders[draw.choice(sorted(state.leaseholders))]
            handle(
                *(ev.LeaseEnded(now, job.id, n, sum(s), "finished") for n, s in job.leases.items())
            )
        elif what == 6 and revokes:
            gone = revokes.pop(0)
            job = state.jobs.get(gone.job)
            if job is not None and sum(job.leases.get(gone.node, [0])) >= gone.slots:
                handle(ev.LeaseEnded(now, gone.job, gone.node, gone.slots, "revoked"))
        elif what == 7:
            query = Query(f"new{number}", (maps("scan", 4, 1, scans=("t",)), divisible("d", 2)))
            handle(ev.QuerySubmitted(now, query))
        elif what == 8 and state.queries:
            handle(ev.QueryCancelled(now, draw.choice(sorted(state.queries))))
        else:
            handle(ev.Woke(now))
    scheduler.validate()
    return told


def picture(scheduler: Scheduler) -> Any:
    """Everything one can see of a kernel."""
    state = scheduler.state
    return encode(
        {
            "now": state.now,
            "nodes": {
                n.id: (n.free, n.maps, n.reduces, n.leased, n.draining, n.map_mean.mean)
                for n in state.nodes.values()
            },
            "queries": {
                q.id: (q.stage, q.slots, q.left_s, q.total_s, q.pool, q.started_s, q.open_jobs)
                for q in state.queries.values()
            },
            "jobs": {
                j.id: (
                    j.slots,
                    j.lanes,
                    j.held_back,
                    j.done_share,
                    [list(j.map.counts), j.map.mean.mean] if j.map else None,
                    list(j.reduce.counts) if j.reduce else None,
                    {n: list(s) for n, s in j.leases.items()},
                    [(a.batch, a.progress) for a in j.answers],
                )
                for j in state.jobs.values()
            },
            "running": list(state.running.values()),
            "killed": sorted(state.killed),
            "keys": state.keys,
            "means": {str(k): (m.n, m.mean) for k, m in state.class_means.items()},
            "memory": (state.reserved_bytes, state.memory_bytes, state.total_slots),
            "wakes": sorted(scheduler.waking.times_s),
            "pools": [
                (p.path, p.used, p.queries, p.ready, [r.entries for r in p.lanes])
                for p in scheduler.tree.pools.values()
            ],
            "random": state.random.random() and str(state.random.getstate()[1][-1]),
        }
    )


def seen(scheduler: Scheduler) -> Any:
    """A picture; drawing it takes nothing out of the generator."""
    chance = scheduler.state.random.getstate()
    found = picture(scheduler)
    scheduler.state.random.setstate(chance)
    return found


@pytest.mark.parametrize("profile", PROFILES)
def test_whatever_happens_to_the_fork_the_original_stays_as_it_is(profile: str):
    hand = in_the_middle(profile)
    before = seen(hand.scheduler)
    steps = len(hand.journal.steps)
    fork = hand.scheduler.fork()
    fork.validate()
    go_on(fork, hand.now, seed=1)
    fork.handle(ev.NodeLost(1e3, "n0"), ev.NodeJoined(1e3, Node("new", 3)))
    fork.handle(ev.PolicyChosen(1e3, {"order": "fair"}))
    fork.handle(ev.TableChanged(1e3, Table("t", ())))
    hand.scheduler.validate()
    assert seen(hand.scheduler) == before
    assert len(hand.journal.steps) == steps


@pytest.mark.parametrize("profile", PROFILES)
def test_a_fork_decides_as_the_original_does(profile: str):
    hand = in_the_middle(profile)
    fork = hand.scheduler.fork()
    again = fork.fork()
    expected = go_on(hand.scheduler, hand.now, seed=2)
    assert go_on(fork, hand.now, seed=2) == expected
    assert go_on(again, hand.now, seed=2) == expected
    assert seen(fork) == seen(hand.scheduler)


@pytest.mark.parametrize("profile", ["fifo", "tls", "s3", "relaqs", "edls-pr", "h-tumm"])
def test_forks_do_not_know_of_each_other(profile: str):
    hand = in_the_middle(profile)
    first, second = hand.scheduler.fork(), hand.scheduler.fork()
    expected = go_on(hand.scheduler.fork(), hand.now, seed=3)
    go_on(first, hand.now, seed=4)
    assert go_on(second, hand.now, seed=3) == expected


@pytest.mark.parametrize("profile", ["fair", "tls", "s3", "mrshare", "static", "relaqs", "edls-sh"])
def test_a_fork_may_follow_another_policy(profile: str):
    hand = in_the_middle("capacity")
    before = seen(hand.scheduler)
    fork = hand.scheduler.fork()
    fork.handle(ev.PolicyChosen(hand.now, resolve_profile(profile)))
    fork.validate()
    assert fork.policy.name == profile
    go_on(fork, hand.now, seed=5)
    assert hand.scheduler.policy.name == "capacity"
    assert seen(hand.scheduler) == before


def test_a_fork_keeps_no_journal_but_may_be_given_one():
    hand = in_the_middle("fifo")
    fork = hand.scheduler.fork()
    assert fork.journal is None
    fork.handle(ev.Woke(hand.now))


def test_a_fork_shares_the_luck_it_was_forked_with():
    hand = in_the_middle("edls-pr", seed=6)
    fork = hand.scheduler.fork()
    assert fork.state.random.random() == hand.state.random.random()
    fork.state.random.random()
    assert fork.state.random.getstate() != hand.state.random.getstate()
