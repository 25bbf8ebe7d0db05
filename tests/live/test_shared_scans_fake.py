"""Shared scans through all of `live`, on a backend in which the test says how long things take."""

from __future__ import annotations

from collections import Counter
from typing import Any

from queryard.backends.fake import Script
from queryard.core.commands import Launch
from queryard.core.events import TableChanged
from queryard.core.model import Node, TaskId
from queryard.engine.errors import QueryFailed
from queryard.policies import resolve_profile
from queryard.sim import replay

from .fake_host import MIB, FakeHost

SPLITS = 8


def host_of(script: Script, slots: int = 1, profile: Any = "s3", nodes: Any = None) -> FakeHost:
    nodes = nodes or (Node("local", slots, 4096.0 * MIB),)
    host = FakeHost(nodes, script, dict(resolve_profile(profile)))
    host.table_splits = SPLITS
    return host


def maps(host: FakeHost) -> list[Launch]:
    commands = [command for step in host.journal.steps for command in step.commands]
    found = [command for command in commands if isinstance(command, Launch)]
    return [each for each in found if each.tasks[0].kind == "map" and "/scan" in each.tasks[0].job]


def seconds(task: TaskId, attempt: int) -> float:
    """A scan is read by the launch, and riders cost nothing."""
    return 0.0 if task.kind == "map" else 0.1


def reading(launch: Launch) -> float:
    task = launch.tasks[0]
    return 1.0 if task.kind == "map" and task.job.endswith("/scan") else 0.0


READ = Script(task_s=seconds, read_s=reading)


def test_a_query_joins_the_circle_where_it_is_and_ends_when_it_has_come_round() -> None:
    host = host_of(READ)
    first = host.submit("scans", plan="staged")
    host.run(3.5)
    second = host.submit("scans", plan="staged")
    host.run()
    ended = {query: facts.ended_s for query, facts in host.ended.items()}
    assert ended[first] is not None
    assert ended[second] is not None
    # Alone each takes eight seconds; the second reads four splits with the first, then four alone.
    assert ended[first] < 8.5
    assert ended[second] < 13
    reads = maps(host)
    read = Counter((task.job, task.index) for launch in reads for task in launch.tasks)
    assert set(read.values()) == {1}
    assert len(read) == 2 * SPLITS
    assert len(reads) == 12
    host.check_idle()
    assert replay(host.journal) is None


def test_a_table_is_told_once_and_again_when_it_has_changed() -> None:
    host = host_of(READ)
    host.submit("scans", plan="staged")
    host.submit("scans", plan="staged")
    host.run(2.5)
    host.table_version, host.table_splits = "second", SPLITS
    third = host.submit("scans", plan="staged")
    host.run()
    events = [event for step in host.journal.steps for event in step.events]
    assert len([event for event in events if isinstance(event, TableChanged)]) == 2
    # It has as many splits as before, and yet it does not ride with those of the former state.
    for launch in maps(host):
        queries = {task.job.partition("/")[0] for task in launch.tasks}
        assert queries == {third} or third not in queries
    assert len(host.ended) == 3
    host.check_idle()


def test_slow_slots_sit_out_and_segments_follow_the_slots_that_are_free() -> None:
    nodes = tuple(Node(name, 1, 2048.0 * MIB, host="local") for name in ("fast", "slow"))
    script = Script(
        task_s=seconds,
        read_s=lambda launch: reading(launch) * (30.0 if launch.node == "slow" else 1.0),
    )
    profile = {"base": "s3", "sharing": {"name": "circular", "check_s": 2.0}}
    host = host_of(script, nodes=nodes, profile=profile)
    host.submit("scans", plan="staged")
    host.submit("scans", plan="staged")
    host.run()
    reads = maps(host)
    assert len([launch for launch in reads if launch.node == "slow"]) == 1
    read = Counter((task.job, task.index) for launch in reads for task in launch.tasks)
    assert set(read.values()) == {1}
    assert len(read) == 2 * SPLITS
    # All others were read while the slow one was under way.
    assert max(launch.time_s for launch in reads) < 20
    host.check_idle()


def test_a_rider_that_fails_for_good_leaves_alone() -> None:
    failing: list[str] = []
    script = Script(
        task_s=seconds,
        read_s=reading,
        task_error=lambda task, attempt: (
            QueryFailed("bad") if task.job.startswith(tuple(failing)) and failing else None
        ),
    )
    host = host_of(script)
    queries = [host.submit("scans", plan="staged") for _ in range(5)]
    failing.append(f"{queries[2]}/")
    host.run()
    assert {query for query in queries if host.ended[query].error is not None} == {queries[2]}
    read = Counter(
        (task.job, task.index)
        for launch in maps(host)
        for task in launch.tasks
        if not task.job.startswith(queries[2])
    )
    assert set(read.values()) == {1}
    host.check_idle()


def told_of_scans(host: FakeHost, query: str) -> str:
    why = host.coordinator.why(query)
    assert why is not None
    (told,) = (reason for reason in why.reasons if "rides on a shared scan" in reason)
    return told


def test_why_tells_with_which_queries_a_rider_rides_and_when_it_has_read_all() -> None:
    host = host_of(READ)
    first = host.submit("scans", plan="staged")
    host.run(3.5)
    # A circle of one: no other query is on it.
    assert " with " not in told_of_scans(host, first)
    second = host.submit("scans", plan="staged")
    host.run(5.5)
    assert f"rides on a shared scan with {second} and has read all in" in told_of_scans(host, first)
    assert f"with {first}" in told_of_scans(host, second)
    left_s = {
        query: float(told_of_scans(host, query).rpartition(" in ")[2].removesuffix(" s"))
        for query in (first, second)
    }
    at_s = host.now_s
    host.run()
    for query, seconds_left in left_s.items():
        ended_s = host.ended[query].ended_s
        assert ended_s is not None
        assert abs(at_s + seconds_left - ended_s) < 1.5, query


def test_batches_wait_for_each_other() -> None:
    profile = {"base": "mrshare", "sharing": {"name": "mrshare", "count": 3, "window_s": 5.0}}
    host = host_of(READ, profile=profile)
    for _ in range(3):
        host.submit("scans", plan="staged")
        host.run(host.now_s + 0.5)
    host.run()
    assert len(maps(host)) == SPLITS
    assert all(len(launch.tasks) == 3 for launch in maps(host))
