"""`fork` copies every attribute: one that is forgotten, or shared and then changed, is found."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from by_hand import Hand, divisible, maps

from queryard.core import events as ev
from queryard.core.entities import JobState, QueryState
from queryard.core.model import Divisible, Job, Node, Split, Table
from queryard.core.pools import Pool
from queryard.policies import catalogue

TABLE = Table("t", tuple(Split(1.0, ("n0",)) for _ in range(4)))
PROFILES = [info.name for info in catalogue()]
SCALARS = (int, float, str, type(None))
CONTAINERS = (list, dict, set, bytearray)

# What a fork need not have as it was.
ANEW = {
    "Mean.add",  # of its own list
    "Ranking.changes",  # only compared with what it was a moment before
    "EfficientFair._found_for",  # goes by the changes of rankings
    "PoolTree.dealing",  # a fork is never made in the middle of a deal
    "PoolTree.refused_above",
    "State.notes",  # of the instant; see the test of the notes
    "Scheduler.journal",  # a fork keeps none
    "Scheduler._out",
}
# What may be one and the same object in both.
SHARED = {
    "JobState.answers",  # replaced as a whole, never changed
    "Static._divided",  # remembers what a pure function gave
    "BestStatic._divided",
    "BestStatic._by_node",  # replaced as a whole
    "ReserveShort._from_s",  # replaced as a whole, too
}

# Attributes that are None where there is nothing to hold.
HELD = ("map", "reduce", "returned", "taken", "local_cursors", "failures", "losses")


def in_the_middle(profile: str) -> Hand:
    """Tasks, leases, riders, a retry, an answer, memory, hosts: something of everything."""
    nodes = [Node(f"n{i}", 2, 100.0, kept_bytes=9.0) for i in range(3)]
    hand = Hand(profile, nodes, [TABLE])
    for number in range(9):
        jobs: tuple[Job, ...] = (
            (maps("scan", 4, 2, scans=("t",)), maps("sum", 2, upstream=("scan",))),
            (divisible("d", 3),),
            (Job("o", divisible=Divisible(2, 4, span="cluster")),),
        )[number % 3]
        hand.wait(1.0)
        hand.obey(
            hand.submit(
                f"q{number}",
                *jobs,
                estimates=3.0 + number,
                kind="online" if number % 3 == 2 else "exact",
                tenant=("ann", "bob")[number % 2],
                deadline_s=hand.now + 9.0,
                memory_bytes=40.0 if number % 2 else 0.0,
                class_name="daily",
                idempotency_key=f"k{number}",
            )
        )
        if hand.state.running:
            run = next(iter(hand.state.running.values()))
            hand.obey(hand.do(ev.TaskFinished(hand.now, run.number, run.node)))
        if "q2/o" in hand.state.jobs and number == 5:
            hand.do(ev.AnswerReported(hand.now, "q2/o", 1, 0.5, 1.0, 0.1))
    if hand.state.running:
        hand.fail(next(t for r in hand.state.running.values() for t in map(str, r.tasks)))
    for run in list(hand.state.running.values()):
        if run.tasks[0].job.endswith("/sum"):
            hand.do(ev.TaskFailed(hand.now, run.number, "disk full", "elsewhere"))
    return hand


def attributes(thing: object) -> list[str]:
    """All slots and instance attributes; a name with two underscores is one of its class."""
    slots = {name for cls in type(thing).__mro__ for name in getattr(cls, "__slots__", ())}
    return sorted(slots | getattr(thing, "__dict__", {}).keys())


def known(thing: object, name: str, names: set[str]) -> bool:
    return any(f"{cls.__name__}.{name}" in names for cls in type(thing).__mro__)


def differences(thing: Any, fork: Any) -> Iterator[str]:
    """What of a thing its fork lacks, has otherwise, or shares although it may change."""
    for name in attributes(thing):
        where = f"{type(thing).__name__}.{name}"
        if not hasattr(fork, name):
            yield f"{where} is missing"
        elif known(thing, name, ANEW):
            continue
        elif picture(getattr(thing, name)) != picture(getattr(fork, name)):
            yield f"{where} is {getattr(fork, name)!r}, not {getattr(thing, name)!r}"
        elif is_shared(thing, fork, name) and not known(thing, name, SHARED):
            yield f"{where} is shared"


def is_shared(thing: Any, fork: Any, name: str) -> bool:
    value = getattr(thing, name)
    return isinstance(value, CONTAINERS) and value is getattr(fork, name)


def picture(value: Any) -> Any:
    """A value in terms in which copies are equal: entities by their numbers."""
    if isinstance(value, QueryState | JobState):
        return ("candidate", value.uid)
    if isinstance(value, Pool):
        return ("pool", value.index)
    if isinstance(value, CONTAINERS) and not value:
        return None  # where there may be none, an empty one is none
    if isinstance(value, dict):
        return {key: picture(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return [picture(item) for item in value]
    if hasattr(value, "getstate"):
        return value.getstate()
    if hasattr(value, "fork") or type(value).__name__ == "Account":
        return [
            (name, picture(getattr(value, name)))
            for name in attributes(value)
            if not known(value, name, ANEW) and name != "_state"
        ]
    return value


def entities(hand: Hand) -> list[tuple[str, Any]]:
    """Everything of a kernel that has a fork of its own, with where to find its twin."""
    state, tree = hand.state, hand.scheduler.tree
    found: list[tuple[str, Any]] = [("state", state), ("tree", tree)]
    found += [(f"state.nodes[{name!r}]", node) for name, node in state.nodes.items()]
    found += [(f"state.queries[{name!r}]", query) for name, query in state.queries.items()]
    for name, job in state.jobs.items():
        found.append((f"state.jobs[{name!r}]", job))
        phases = [(kind, getattr(job, kind)) for kind in ("map", "reduce")]
        found += [(f"state.jobs[{name!r}].{kind}", phase) for kind, phase in phases if phase]
    found += [(f"tree.pools[{index}]", pool) for index, pool in tree.pools.items()]
    found += [(f"parts[{number}]", part) for number, part in enumerate(hand.scheduler.parts)]
    return found


@pytest.mark.parametrize("profile", PROFILES)
def test_a_fork_has_all_that_the_kernel_has_and_shares_nothing_that_changes(profile: str):
    hand = in_the_middle(profile)
    fork = hand.scheduler.fork()
    wrong = [
        problem
        for where, thing in entities(hand)
        for problem in differences(thing, eval(f"fork.{where}", {"fork": fork}))
    ]
    missing = set(attributes(hand.scheduler)) - set(attributes(fork)) - {"_chosen"}
    assert wrong == []
    assert missing == set()


@pytest.mark.parametrize("kind", ["NodeState", "QueryState", "JobState", "PhaseState", "Pool"])
def test_a_fork_has_whatever_value_an_attribute_has(kind: str):
    """Each is given a value that no constructor gives, so that none is right by chance."""
    hand = in_the_middle("marshal")
    numbers = count(1000)
    things = [thing for _, thing in entities(hand) if type(thing).__name__ == kind]
    assert things
    for thing in things:
        for name in attributes(thing):
            # What names a thing, what follows from its specification, what it may hold.
            if name in ("id", "uid", "index", "parent", "order", "host", "pool", *HELD):
                continue
            if isinstance(getattr(thing, name), SCALARS):
                setattr(thing, name, float(next(numbers)))
    twins = {
        "NodeState": lambda node: node.fork(),
        "PhaseState": lambda phase: phase.fork(),
        "QueryState": lambda query: query.fork(),
        "JobState": lambda job: job.fork(job.query),
        "Pool": lambda pool: pool.fork(pool.parent),
    }
    later = {"Pool.members", "Pool.names", "JobState.downstream"}  # filled by what holds it
    for thing in things:
        wrong = differences(thing, twins[kind](thing))
        assert [each for each in wrong if each.split()[0] not in later] == []


def test_a_fork_knows_what_the_policy_looks_at():
    for profile in ("fifo", "tls", "marshal", "s3"):
        hand = in_the_middle(profile)
        notes, twin = hand.state.notes, hand.scheduler.fork().state.notes
        assert attributes(notes) == attributes(twin)
        assert (twin.every_task, twin.every_run) == (notes.every_task, notes.every_run)
