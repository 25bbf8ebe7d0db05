"""Nodes, tables, jobs and queries that cannot exist say why."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from by_hand import maps

from queryard.core.errors import InvalidModel, QueryardError
from queryard.core.model import (
    Divisible,
    Job,
    Node,
    Phase,
    Query,
    Split,
    Table,
    TableInput,
    TaskId,
    Tenant,
)
from queryard.core.state import Settings

J = maps("j", 1)
ONLINE = Job("j", divisible=Divisible(1))

WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: Tenant(""), "tenant name must be a non-empty string"),
    (lambda: Tenant("a", 0), "tenant 'a': weight must be above 0, got 0"),
    (lambda: Split(-1.0), "split bytes must be a number of at least 0, got -1.0"),
    (lambda: Split(math.nan), "split bytes"),
    (lambda: Table("", ()), "table name"),
    (lambda: Node("", 1), "node id"),
    (lambda: Node("n", 0), "node 'n': slots must be a whole number of at least 1, got 0"),
    (lambda: Node("n", 1.5), "node 'n': slots"),  # type: ignore[arg-type]
    (lambda: Node("n", True), "node 'n': slots"),
    (lambda: Node("n", 1, -1.0), "node 'n': memory_bytes"),
    (lambda: Node("n", 1, map_speed=0.0), "node 'n': map_speed must be above 0"),
    (lambda: Node("n", 1, reduce_speed=math.inf), "node 'n': reduce_speed"),
    (lambda: Node("n", 1, map_speed=math.nan), "node 'n': map_speed"),
    (lambda: Phase(0), "phase: tasks must be a whole number of at least 1, got 0"),
    (lambda: Phase(1, -5.0), "phase: bytes_per_task"),
    (lambda: Phase(2, sizes=(1.0, -1.0)), "phase: sizes"),
    (lambda: Phase(3, sizes=(1.0, 2.0)), "2 sizes for 3 tasks; give one size per task"),
    (lambda: Divisible(0), "divisible: width"),
    (lambda: Divisible(1, 0), "divisible: batches"),
    (lambda: TableInput("", 1.0), "input table"),
    (lambda: TableInput("t", -1.0), "input 't': bytes"),
    (lambda: Job("", map=Phase(1)), "job name"),
    (lambda: Job("a/b", map=Phase(1)), "job 'a/b': the name may not contain '/'"),
    (lambda: Job("j"), "job 'j' has no work: give it a map phase or make it divisible"),
    (lambda: Job("j", reduce=Phase(1)), "job 'j' has no work"),
    (
        lambda: Job("j", map=Phase(1), divisible=Divisible(1)),
        "job 'j': divisible work has no phases",
    ),
    (
        lambda: Job("j", divisible=Divisible(1), scans=("a", "b")),
        "job 'j': divisible work scans one table at most",
    ),
    (
        lambda: Job("j", "jion", map=Phase(1)),  # type: ignore[arg-type]
        "unknown operator 'jion'; did you mean 'join'\\?",
    ),
    (lambda: Query("", (J,)), "query id"),
    (lambda: Query("a/b", (J,)), "the id may not contain '/'"),
    (lambda: Query("q", ()), "query 'q' has no jobs"),
    (lambda: Query("q", (J, J)), "query 'q': two jobs are called 'j'"),
    (
        lambda: Query("q", (J, maps("k", 1, upstream=("jj",)))),
        r"query 'q', job 'k': unknown upstream job 'jj' \(valid: j, k\)",
    ),
    (lambda: Query("q", (maps("j", 1, upstream=("j",)),)), "'j'.* depend on one another"),
    (
        lambda: Query(
            "q", (maps("a", 1, upstream=("b",)), maps("b", 1, upstream=("a",)), maps("c", 1))
        ),
        r"the jobs \['a', 'b'\] depend on one another",
    ),
    (lambda: Query("q", (J,), tenant=""), "query 'q': tenant"),
    (lambda: Query("q", (J,), priority=math.inf), "query 'q': priority must be a finite number"),
    (lambda: Query("q", (J,), submit_s=-1.0), "query 'q': submit_s"),
    (lambda: Query("q", (J,), deadline_s=math.nan), "query 'q': deadline_s"),
    (lambda: Query("q", (J,), memory_bytes=-1.0), "query 'q': memory_bytes"),
    (lambda: Query("q", (ONLINE,), target_error=-0.1), "query 'q': target_error"),
    (lambda: Query("q", (J,), kind="exat"), "unknown kind 'exat'; did you mean 'exact'"),  # type: ignore[arg-type]
    (lambda: Query("q", (J,), kind="online"), "an online query is made of divisible jobs only"),
    (lambda: Settings(slow_start=1.1), "slow_start must lie between 0 and 1, got 1.1"),
    (lambda: Settings(slow_start=math.nan), "slow_start"),
    (lambda: Settings(max_attempts=0), "max_attempts must be at least 1, got 0"),
]


@pytest.mark.parametrize(("make", "complaint"), WRONG, ids=[text[:40] for _, text in WRONG])
def test_it_cannot_exist(make: Callable[[], object], complaint: str):
    with pytest.raises(InvalidModel, match=complaint) as caught:
        make()
    assert isinstance(caught.value, QueryardError)


def test_a_long_chain_and_a_wide_fan_are_no_cycles():
    chain = [maps("j0", 1)] + [maps(f"j{i}", 1, upstream=(f"j{i - 1}",)) for i in range(1, 200)]
    fan = [maps(f"f{i}", 1) for i in range(200)]
    root = maps("root", 1, upstream=tuple(job.name for job in [*fan, chain[-1]]))
    assert len(Query("q", (root, *reversed(chain), *fan)).jobs) == 401


def test_a_task_is_named_by_job_kind_and_index():
    assert str(TaskId("q/j", "map", 3)) == "q/j:m3"
    assert str(TaskId("q/j", "reduce", 0)) == "q/j:r0"


def test_a_phase_knows_its_bytes():
    assert Phase(3, 2.0).bytes == 6.0
    assert Phase(2, sizes=(1.0, 4.0)).bytes == 5.0
    assert Phase(2, sizes=(1.0, 4.0)).size_of(1) == 4.0
    assert Table("t", (Split(1.0), Split(2.5))).bytes == 3.5
