"""A journal written by hand: every number in it can be checked on paper."""

from __future__ import annotations

import pytest

from queryard.core.commands import Fail, Finish, Grant, Kill, Launch
from queryard.core.events import (
    LeaseEnded,
    NodeJoined,
    NodeLost,
    QueryCancelled,
    QuerySubmitted,
    TableChanged,
    TaskFailed,
    TaskFinished,
)
from queryard.core.journal import Journal, Step
from queryard.core.model import Divisible, Job, Node, Phase, Query, Split, Table, TaskId
from queryard.metrics import RunRows, read_run


def maps(query: str, *indices: int) -> tuple[TaskId, ...]:
    return tuple(TaskId(f"{query}/scan", "map", index) for index in indices)


def scan_query(query: str, **fields: object) -> Query:
    """Two map tasks over the table `t`."""
    return Query(query, jobs=(Job("scan", map=Phase(2), scans=("t",)),), **fields)  # type: ignore[arg-type]


TABLE = Table("t", (Split(100, ("n1",)), Split(200, ("n2",))))


@pytest.fixture
def journal() -> Journal:
    """Two nodes of two slots; six queries, one for each way to end.

    a  10…20  maps 0 and 1, the first of them fails once             finished, deadline 18
    b  10…24  rides with a's map 1, then its own map 0               finished, tenant "two"
    c  12…30  leases of 1 then 2 slots                               finished
    d  12…14  cancelled, its launch killed                           cancelled
    e  13…25  fails                                                  failed
    f  40…    still runs at 50                                       unfinished
    """
    a = scan_query("a", deadline_s=18.0, idempotency_key="once")
    b = scan_query("b", tenant="two")
    c = Query("c", jobs=(Job("work", divisible=Divisible(4)),), tenant="two", deadline_s=31.0)
    d = scan_query("d", deadline_s=100.0)
    e = Query("e", jobs=(Job("load", map=Phase(1, 50.0), reduce=Phase(1)),), deadline_s=90.0)
    f = scan_query("f", deadline_s=60.0)
    again = scan_query("a2", idempotency_key="once")
    steps = [
        Step(
            0.0,
            (
                NodeJoined(0.0, Node("n1", 2)),
                NodeJoined(0.0, Node("n2", 2)),
                TableChanged(0.0, TABLE),
            ),
            (),
        ),
        Step(
            10.0,
            (QuerySubmitted(10.0, a), QuerySubmitted(10.0, b)),
            (Launch(0, "n1", maps("a", 0)), Launch(1, "n1", maps("a", 1) + maps("b", 1), "r1")),
        ),
        Step(
            12.0,
            (
                QuerySubmitted(12.0, c),
                QuerySubmitted(12.0, d),
                QuerySubmitted(12.0, again),
                TaskFailed(12.0, 0, "disk"),
            ),
            (
                Grant("c/work", "n2", 1),
                Launch(2, "n2", maps("d", 1)),
                Launch(3, "n1", maps("a", 0)),
            ),
        ),
        Step(13.0, (QuerySubmitted(13.0, e), QueryCancelled(13.0, "d")), (Kill(2),)),
        Step(
            14.0,
            (TaskFailed(14.0, 2, "killed"),),
            (
                Fail("d", "cancelled"),
                Launch(4, "n2", (TaskId("e/load", "map", 0),)),
            ),
        ),
        Step(18.0, (TaskFinished(18.0, 3),), (Launch(5, "n1", maps("b", 0)),)),
        Step(20.0, (TaskFinished(20.0, 1),), (Finish("a"), Grant("c/work", "n1", 1))),
        Step(24.0, (TaskFinished(24.0, 5),), (Finish("b"), Grant("c/work", "n1", 1))),
        Step(
            25.0,
            (TaskFinished(25.0, 4, "n2"),),
            (Fail("e", "no room"),),
        ),
        Step(
            30.0,
            (
                LeaseEnded(30.0, "c/work", "n1", 2, "finished"),
                LeaseEnded(30.0, "c/work", "n2", 1, "finished"),
            ),
            (Finish("c"),),
        ),
        Step(35.0, (NodeLost(35.0, "n2"),), ()),
        Step(40.0, (QuerySubmitted(40.0, f),), (Launch(6, "n1", maps("f", 0)),)),
        Step(50.0, (), ()),
    ]
    return Journal(steps=steps)


@pytest.fixture
def run(journal: Journal) -> RunRows:
    return read_run(journal)
