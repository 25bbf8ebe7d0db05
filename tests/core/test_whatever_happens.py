"""Anything that can happen, in any order and company, under any composition of parts.

Unlike the conformance suite this goes without the simulator: what comes in one instant, when
kills and revokes are answered, which slots of a lease come back first is all up to chance.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from by_hand import Hand, maps
from long_forms import some_of

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.model import Divisible, Job, Node, Query, Split, Table
from queryard.core.speedup import Speedup
from queryard.policies.parts import PARTS

TABLES = {"t": 6, "u": 4}
EAGER = {"factor": 1.0, "done": 0.0, "share": 1.0, "least_s": 0.0}
DIVISIONS = {
    "tenant": ("ann", "bob"),
    "deadline": ("deadline", "batch"),
    "kind": ("exact", "online"),
}


def any_pool(draw: random.Random, depth: int = 0) -> dict[str, Any]:
    if depth == 2 or draw.random() < 0.5:
        return {"order": draw.choice(sorted(PARTS["order"]))}
    by = draw.choice(sorted(DIVISIONS))
    pool = {"by": by, "default": any_pool(draw, depth + 1)}
    pool["choice"] = draw.choice(("share", "share", "turns", "lottery"))
    pool["children"] = {
        name: {
            **any_pool(draw, depth + 1),
            "guarantee": draw.choice((0.0, 0.2, 0.3)),
            "cap": draw.choice((1.0, 0.5, 0.7)),
            "weight": draw.choice((1.0, 2.0, "queries")),
        }
        for name in DIVISIONS[by]
        if draw.random() < 0.5
    }
    return pool


def any_profile(draw: random.Random) -> dict[str, Any]:
    profile: dict[str, Any] = {"pools": any_pool(draw)}
    for decision in ("jobs", "slots", "placement", "sharing"):
        if draw.random() < 0.5:
            profile[decision] = draw.choice(sorted(PARTS[decision]))
    if draw.random() < 0.5:
        profile["speculation"] = {"name": "late", **draw.choice((EAGER, {}))}
    return profile


class Chance:
    """A cluster and its users, both moody; it keeps what the kernel has asked for."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        tables = [Table(name, self.splits(count)) for name, count in TABLES.items()]
        self.hand = Hand(
            any_profile(self.draw),
            [Node(f"n{i}", 2, 60.0, host=self.draw.choice(("", "h"))) for i in range(3)],
            tables,
            slow_start=self.draw.choice((1.0, 0.3, 0.0)),
            max_attempts=3,
            max_losses=seed % 4,
            seed=seed,
        )
        self.revokes: list[do.Revoke] = []
        self.made = 0
        self.submitted: set[str] = set()

    def splits(self, count: int) -> tuple[Split, ...]:
        return tuple(Split(1.0, (f"n{self.draw.randrange(4)}",)) for _ in range(count))

    def step(self, *makers: Any) -> None:
        """One call of the kernel, and the same call of a fork."""
        events = [event for make in makers for event in make()]
        fork = self.hand.scheduler.fork() if self.draw.random() < 0.2 else None
        commands = self.hand.do(*events)
        if fork is not None:
            placement = self.hand.scheduler.policy.placement.name
            assert placement == "locf" or fork.handle(*events) == commands
        self.revokes += [command for command in commands if isinstance(command, do.Revoke)]

    # --- what may happen -------------------------------------------------------------------

    def submit(self) -> list[ev.Event]:
        self.made += 1
        draw, now = self.draw, self.hand.now
        online = draw.random() < 0.2
        jobs: list[Job] = []
        for number in range(1 if online else draw.randint(1, 3)):
            upstream = tuple(job.name for job in jobs if draw.random() < 0.4)
            shape = "work" if online else draw.choice(("maps", "maps", "scan", "work"))
            name, reduces = f"j{number}", draw.randint(0, 2)
            if shape == "work":
                batches = draw.randint(2, 4) if online else 1
                span = draw.choice(("host", "host", "cluster"))
                work = Divisible(draw.randint(1, 5), batches, span=span)
                jobs.append(Job(name, divisible=work, upstream=upstream))
            elif shape == "scan":
                table = draw.choice(sorted(TABLES))
                jobs.append(maps(name, TABLES[table], reduces, scans=(table,), upstream=upstream))
            else:
                jobs.append(maps(name, draw.randint(1, 5), reduces, upstream=upstream))
        query = Query(
            f"q{self.made}",
            tuple(jobs),
            tenant=draw.choice(("ann", "ann/lab", "bob", "eve/lab/night")),
            priority=draw.randint(0, 2),
            deadline_s=draw.choice((None, now + 10.0)),
            kind="online" if online else "exact",
            memory_bytes=draw.choice((0.0, 0.0, 30.0, 100.0)),
        )
        self.submitted.add(query.id)
        estimates = [
            ev.EstimateChanged(now, query.job_id(j.name), *(draw.random() * 9 for _ in range(3)))
            for j in jobs
        ]
        return [ev.QuerySubmitted(now, query), *(estimates if draw.random() < 0.7 else [])]

    def end_a_task(self) -> list[ev.Event]:
        state, now = self.hand.state, self.hand.now
        runs = {**state.running, **state.beaten}
        if not runs:
            return []
        run = self.draw.choice(sorted(runs.values()))
        if run.number in state.killed or self.draw.random() < 0.15:
            retry = self.draw.choice(("count", "elsewhere", "elsewhere", "free", "never"))
            return [ev.TaskFailed(now, run.number, "chance", retry)]
        return [ev.TaskFinished(now, run.number, self.draw.choice((run.node, None)))]

    def end_a_lease(self) -> list[ev.Event]:
        """All slots of some nodes come back; the others follow some other time."""
        leased = self.hand.state.leaseholders
        if not leased:
            return []
        job = leased[self.draw.choice(sorted(leased))]
        outcome = "failed" if self.draw.random() < 0.2 else "finished"
        retry = self.draw.choice(("count", "elsewhere", "free", "never"))
        return [
            ev.LeaseEnded(self.hand.now, job.id, node, sum(slots), outcome, "chance", retry)
            for node, slots in sorted(job.leases.items())
            if self.draw.random() < 0.8
        ]

    def return_slots(self) -> list[ev.Event]:
        if not self.revokes:
            return []
        revoke = self.revokes.pop(self.draw.randrange(len(self.revokes)))
        job = self.hand.state.jobs.get(revoke.job)
        revoking = job.leases.get(revoke.node, (0, 0))[1] if job else 0
        slots = min(revoke.slots, revoking)
        if not slots:
            return []
        return [ev.LeaseEnded(self.hand.now, revoke.job, revoke.node, slots, "revoked")]

    def tell(self) -> list[ev.Event]:
        jobs = self.hand.state.jobs
        if not jobs:
            return []
        job = jobs[self.draw.choice(sorted(jobs))]
        batches = job.spec.divisible.batches if job.spec.divisible else 1
        if batches > 1 and len(job.answers) < batches and self.draw.random() < 0.5:
            together = self.draw.randint(1, batches - len(job.answers))
            *before, change = (self.draw.random() for _ in range(together))
            batch = len(job.answers) + together
            told = ev.AnswerReported(self.hand.now, job.id, batch, change, 1.0, None, tuple(before))
            return [told]
        if job.spec.divisible:
            return [ev.Progressed(self.hand.now, job.id, self.draw.random())]
        return [ev.EstimateChanged(self.hand.now, job.id, self.draw.random() * 9)]

    def resize(self) -> list[ev.Event]:
        """A divisible job can use more slots from now on, or fewer, or none; or another curve."""
        jobs = [job for job in self.hand.state.jobs.values() if job.spec.divisible]
        if not jobs:
            return []
        job = self.draw.choice(jobs)
        if self.draw.random() < 0.3:
            curve = Speedup(
                self.draw.choice((0.0, 0.02, 0.3, 1.0)), self.draw.choice((2, math.inf))
            )
            return [ev.EstimateChanged(self.hand.now, job.id, speedup=curve)]
        return [ev.WidthChanged(self.hand.now, job.id, self.draw.choice((0, 0, 1, 2, 9)))]

    def widen(self) -> list[ev.Event]:
        stalled = [job.id for job in self.hand.state.jobs.values() if job.is_stalled]
        return [ev.WidthChanged(self.hand.now, job, 2) for job in stalled[:1]]

    def rereserve(self) -> list[ev.Event]:
        """A query needs other memory than it said, at times more than there will ever be."""
        queries = sorted(self.hand.state.queries)
        if not queries:
            return []
        amount = self.draw.choice((0.0, 0.0, 30.0, 100.0, 100.0, 9000.0))
        return [ev.MemoryChanged(self.hand.now, self.draw.choice(queries), amount)]

    def end_elsewhere(self) -> list[ev.Event]:
        """A divisible job ends although it holds no slot, started or not."""
        jobs = [job for job in self.hand.state.jobs.values() if job.spec.divisible]
        if not jobs:
            return []
        job, outcome = self.draw.choice(jobs), self.draw.choice(("finished", "failed"))
        retry = self.draw.choice(("count", "elsewhere", "free", "never"))
        return [ev.LeaseEnded(self.hand.now, job.id, "n0", 0, outcome, "chance", retry)]

    def cancel(self) -> list[ev.Event]:
        queries = sorted(self.hand.state.queries)
        return [ev.QueryCancelled(self.hand.now, self.draw.choice(queries))] if queries else []

    def lose(self) -> list[ev.Event]:
        nodes = sorted(self.hand.state.nodes)
        return [ev.NodeLost(self.hand.now, self.draw.choice(nodes))] if nodes else []

    def fall_silent(self) -> list[ev.Event]:
        """A node does not answer, or answers again."""
        nodes = list(self.hand.state.nodes.values())
        if not nodes:
            return []
        node = self.draw.choice(nodes)
        return [ev.NodeSilent(self.hand.now, node.id, not node.silent)]

    def join(self) -> list[ev.Event]:
        missing = [f"n{i}" for i in range(4) if f"n{i}" not in self.hand.state.nodes]
        if not missing:
            return []
        name, host = self.draw.choice(missing), self.draw.choice(("", "h"))
        node = Node(name, self.draw.randint(1, 4), 60.0, host=host)
        return [ev.NodeJoined(self.hand.now, node)]

    def wake(self) -> list[ev.Event]:
        return [ev.Woke(self.hand.now)]

    def pause(self) -> list[ev.Event]:
        """No waiting query starts, or they start again."""
        if self.hand.state.paused_by is None:
            return [ev.Paused(self.hand.now, "ann")]
        return [ev.Resumed(self.hand.now)]

    def choose(self) -> list[ev.Event]:
        return [ev.PolicyChosen(self.hand.now, any_profile(self.draw))]

    # --- a day -----------------------------------------------------------------------------

    def a_day(self, steps: int) -> None:
        often = [self.end_a_task] * 6 + [self.submit] * 2 + [self.return_slots] * 2
        seldom = [self.end_a_lease, self.tell, self.cancel, self.lose, self.join, self.wake]
        seldom += [self.resize] * 2 + [self.rereserve] * 2 + [self.end_elsewhere]
        for _ in range(steps):
            self.hand.wait(self.draw.choice((0.0, 0.5, 2.0)))
            makers = dict.fromkeys(self.draw.choices(often + seldom, k=self.draw.choice((1, 1, 3))))
            if self.end_a_lease in makers:
                makers.pop(self.return_slots, None)  # both would speak of the same slots
            self.step(*makers)
            if self.draw.random() < 0.03:
                self.step(self.choose)
            if self.draw.random() < 0.05:
                self.step(self.pause)
            if self.draw.random() < 0.08:
                self.step(self.fall_silent)

    def the_evening(self) -> None:
        """Nothing bad happens any more, and there is a host for every query: all get home."""
        self.hand.join(Node("large", 1, 9000.0))
        for node in list(self.hand.state.nodes):
            self.hand.do(ev.NodeSilent(self.hand.now, node, False))
        self.hand.do(ev.Resumed(self.hand.now))
        for _ in range(3000):
            if not self.hand.state.queries:
                return
            self.hand.wait(1.0)
            home = (self.join, self.end_a_task, self.return_slots, self.wake, self.widen)
            self.step(self.draw.choice(home))
            for job in list(self.hand.state.leaseholders):
                if self.draw.random() < 0.2:
                    self.hand.lease_over(job)
        waiting = [str(self.hand.scheduler.why(query)) for query in self.hand.state.queries]
        raise AssertionError(f"some query never ends: {waiting}")


@pytest.mark.parametrize("seed", some_of(range(60), 12))
def test_the_kernel_agrees_with_itself_and_everything_ends(seed: int):
    chance = Chance(seed)
    chance.a_day(60)
    chance.the_evening()
    hand = chance.hand
    assert hand.ended.keys() == chance.submitted
    assert not hand.state.running
    assert not hand.state.twins
    assert not hand.state.leaseholders
    assert hand.state.reserved_bytes == 0.0
    hand.check_replay()
