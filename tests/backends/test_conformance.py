"""What every backend must hold to, whatever runs work there."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from queryard.backends.protocol import (
    JoinRefused,
    LaunchFailed,
    QueryUsed,
    RunJoined,
)
from queryard.core.commands import Kill, Release, Scale
from queryard.core.events import NodeJoined, NodeLost, TaskFinished

from .grounds import NODES, FakeGround, LocalGround, ended, ends


@pytest.fixture(scope="module")
def shared_ray():
    """Two nodes of two slots each."""
    from .ray_cluster import ray_cluster, skip_without_ray

    skip_without_ray()
    from queryard.backends.ray.cluster import Cluster

    from .ray_ground import SharedRay

    with ray_cluster(2, 2) as cluster:
        joined = Cluster.join(cluster.address)
        shared = SharedRay(joined, len(NODES))
        yield shared
        assert shared.backend.close(10.0)
        joined.close()


@pytest.fixture(params=["local", "fake", "ray"])
def ground(request, tmp_path):
    if request.param == "ray":
        shared = request.getfixturevalue("shared_ray")
        from .ray_ground import RayGround

        made = RayGround(shared, tmp_path)
    else:
        made = {"local": LocalGround, "fake": FakeGround}[request.param]()
    yield made
    assert made.close()


def _needs_sharing(ground):
    """A backend without shared runs refuses every query that would join one."""
    if not ground.shares:
        ground.leased("q")
        ground.leased("twin", "q")
        refused = ground.until(lambda told: kinds(told, JoinRefused))
        assert [event.query for event in kinds(refused, JoinRefused)] == ["twin"]
        pytest.skip("its queries share no runs")


def kinds(told, *wanted):
    return [event for event in told if isinstance(event, wanted)]


def test_its_nodes_join_when_it_starts(ground):
    joined = kinds(ground.until(lambda told: len(told) >= len(NODES)), NodeJoined)
    assert [event.node.id for event in joined] == list(ground.nodes)
    assert ground.backend.slots == sum(node.slots for node in NODES)


def test_a_run_that_ends_is_told_before_its_slots_are_back(ground):
    ground.leased("q")
    ground.grant("q", 2)
    ground.finish("q")
    told = ground.until_ended(2)
    assert [(event.run, event.error) for event in ended(told)] == [("q", None)]
    assert [(e.job, e.node, e.outcome) for e in ends(told)] == [
        ("q/native", ground.nodes[0], "finished")
    ] * 2
    assert told.index(ended(told)[0]) < told.index(ends(told)[0])
    assert told.index(kinds(told, QueryUsed)[0]) < told.index(ends(told)[0])
    ground.backend.forget("q")


def test_an_error_is_told_as_it_is(ground):
    error = ValueError("no such column")
    ground.leased("q")
    ground.grant("q")
    ground.finish("q", error)
    told = ground.until_ended(1)
    assert _same(ended(told)[0].error, error)
    assert [(e.outcome, e.cause) for e in ends(told)] == [("failed", "no such column")]


def test_slots_that_are_called_back_come_back_and_the_run_goes_on(ground):
    ground.leased("q")
    ground.grant("q", 2)
    ground.revoke("q")
    assert [(e.slots, e.outcome) for e in ends(ground.until_ended(1))] == [(1, "revoked")]
    assert not ended(ground.quiet())
    ground.finish("q")
    assert [e.outcome for e in ends(ground.until_ended(2))] == ["revoked", "finished"]


def test_several_queries_are_one_run_and_all_hear_of_its_end(ground):
    _needs_sharing(ground)
    ground.leased("q")
    ground.leased("twin", "q")
    assert kinds(ground.told, RunJoined) or ground.until(lambda told: kinds(told, RunJoined))
    ground.grant("q")
    ground.finish("q")
    told = ground.until(lambda told: len(ends(told)) == 2)
    assert len(ended(told)) == 1
    assert {(e.job, e.slots) for e in ends(told)} == {("q/native", 1), ("twin/native", 0)}


def test_a_run_that_is_over_or_unknown_cannot_be_joined(ground):
    ground.leased("q")
    ground.grant("q")
    ground.finish("q")
    ground.until_ended(1)
    ground.leased("late", "q")
    ground.leased("lost", "no such run")
    told = ground.until(lambda told: len(kinds(told, JoinRefused)) == 2)
    assert [event.query for event in kinds(told, JoinRefused)] == ["late", "lost"]


def test_a_query_that_leaves_does_not_end_the_run_of_others(ground):
    _needs_sharing(ground)
    ground.leased("q")
    ground.leased("twin", "q")
    ground.grant("q")
    ground.grant("twin")
    ground.backend.stop("q", RuntimeError("cancelled"))
    assert not ended(ground.quiet())
    ground.backend.stop("twin", RuntimeError("cancelled, too"))
    told = ground.until_ended(2)
    assert str(ended(told)[0].error) == "cancelled, too"
    assert {e.outcome for e in ends(told)} == {"failed"}


def test_what_is_gone_may_be_called_back(ground):
    ground.leased("q")
    ground.grant("q")
    ground.finish("q")
    ground.until_ended(1)
    ground.backend.forget("q")
    ground.revoke("q")
    ground.backend.forget("q")
    ground.backend.stop("q", RuntimeError("cancelled"))
    assert len(ends(ground.quiet())) == 1


def test_tasks_end_well_or_with_their_own_error(ground):
    ground.staged("q")
    ground.launch(1, "q")
    ground.launch(2, "q", 1)
    error = OSError("the disk is gone")
    ground.finish_task(1, "q")
    ground.finish_task(2, "q", error)
    told = ground.until(lambda told: len(kinds(told, TaskFinished, LaunchFailed)) == 2)
    (finished,) = kinds(told, TaskFinished)
    (failed,) = kinds(told, LaunchFailed)
    assert (finished.launch, finished.place) == (1, ground.nodes[0])
    assert (failed.launch, failed.query) == (2, "q")
    assert _same(failed.error, error)


def test_a_kill_stops_one_launch_and_no_other(ground):
    ground.staged("q")
    for number in (1, 2, 3):
        ground.launch(number, "q", 0 if number < 3 else 1)
    ground.backend.execute(Kill(2))
    told = ground.until(lambda told: kinds(told, LaunchFailed))
    assert [event.launch for event in kinds(told, LaunchFailed)] == [2]
    ground.finish_task(1, "q")
    ground.finish_task(3, "q")
    told = ground.until(lambda told: len(kinds(told, TaskFinished)) == 2)
    assert {event.launch for event in kinds(told, TaskFinished)} == {1, 3}
    ground.backend.execute(Kill(2))
    assert len(kinds(ground.quiet(), LaunchFailed)) == 1


def test_nodes_leave_and_come_back(ground):
    ground.until(lambda told: len(told) >= len(NODES))
    other = ground.nodes[1]
    ground.backend.execute(Release(other))
    told = ground.until(lambda told: kinds(told, NodeLost))
    assert [event.node for event in kinds(told, NodeLost)] == [other]
    ground.backend.execute(Scale(2))
    told = ground.until(lambda told: len(kinds(told, NodeJoined)) == 3)
    assert told[-1].node.id == other


@pytest.mark.parametrize("seed", range(6))
def test_every_slot_that_was_granted_is_told_back_once(ground, seed):
    draw = random.Random(seed)
    granted: Counter[str] = Counter()
    held: Counter[tuple[str, str]] = Counter()
    names = ["a", "b", "c"]
    for name in names:
        ground.leased(name)
    every = names
    if ground.shares:
        ground.leased("twin", "a")
        every = [*names, "twin"]
    homes = {name: draw.choice([0, 1]) for name in names}
    for _ in range(40):
        name, node = draw.choice(every), draw.choice([0, 1])
        if not ground.spans:
            node = homes[name]
        in_use = sum(slots for (_, where), slots in held.items() if where == node)
        if draw.random() < 0.6 and in_use < 2:
            ground.grant(name, 1, node)
            granted[name] += 1
            held[name, node] += 1
        elif held[name, node]:
            before = len(ends(ground.told))
            ground.revoke(name, 1, node)
            ground.until(lambda told, before=before: len(ends(told)) > before)
            held[name, node] -= 1
    for name in names:
        slots = sum(held[each, node] for each in _members(name) for node in (0, 1))
        if slots:
            ground.finish(name)
    total = sum(granted.values())
    told = ends(ground.until_ended(total))
    ground.quiet()
    back: Counter[str] = Counter()
    for event in told:
        back[event.job.partition("/")[0]] += event.slots
    assert +back == +granted


def _same(error: BaseException, other: BaseException) -> bool:
    """Errors may have come from another process."""
    return type(error) is type(other) and str(error) == str(other)


def _members(name: str) -> tuple[str, ...]:
    return ("a", "twin") if name == "a" else (name,)
