"""A task far behind its like runs a second time elsewhere; the first to end counts."""

from __future__ import annotations

from typing import Any

import pytest
from by_hand import Hand, maps
from hypothesis import given, settings
from hypothesis import strategies as st

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.errors import InvalidProfile
from queryard.core.model import Job, Node, Phase, Query
from queryard.metrics.runs import read_run
from queryard.policies import compose, resolve_profile
from queryard.sim import Conditions
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload

LATE = {"order": "fifo", "speculation": {"name": "late", "share": 0.5}}


def late(**given: Any) -> dict[str, Any]:
    return {"order": "fifo", "speculation": {"name": "late", "share": 0.5, **given}}


def behind(profile: Any = None, nodes: Any = "2x2", **job: Any) -> Hand:
    """Three of four maps took 2 s each, the fourth still runs; a slot is free at the other node."""
    hand = Hand(profile or LATE, nodes)
    hand.submit("q", maps("scan", 4, **job))
    others = [f"q/scan:m{number}" for number in range(3)]
    hand.wait(2.0).finish(*others)
    return hand


def launches(commands: list[do.Command]) -> list[do.Launch]:
    return [command for command in commands if isinstance(command, do.Launch)]


def again(hand: Hand) -> tuple[do.Launch, do.Launch]:
    """The first launch of the task that is late, and the second."""
    first = next(iter(hand.state.running.values()))
    (second,) = launches(hand.wait(2.0).do(ev.Woke(hand.now)))
    return first, second


def test_a_task_that_is_late_runs_again_at_another_node():
    hand = behind()
    assert not launches(hand.wait(1.9).do(ev.Woke(hand.now)))
    first = next(iter(hand.state.running.values()))
    (second,) = launches(hand.wait(0.1).do(ev.Woke(hand.now)))
    assert second.tasks == first.tasks
    assert second.node != first.node
    # Not a third time.
    assert not launches(hand.wait(60.0).do(ev.Woke(hand.now)))


def test_the_kernel_asks_to_be_woken_when_a_task_will_be_late():
    hand = Hand(LATE, "2x2")
    hand.submit("q", maps("scan", 4))
    told = hand.wait(2.0).finish("q/scan:m0", "q/scan:m1", "q/scan:m2")
    assert do.WakeAt(4.0) in told


@pytest.mark.parametrize("winner", [0, 1])
def test_the_first_to_end_counts_and_the_other_is_killed(winner: int):
    hand = behind()
    pair = again(hand)
    told = hand.do(ev.TaskFinished(hand.now, pair[winner].number, pair[winner].node))
    loser = pair[1 - winner]
    assert told == [do.Kill(loser.number), do.Finish("q")]
    # Its slot is free when it has stopped; until then nothing is launched there.
    assert hand.state.nodes[loser.node].free == 1
    hand.do(ev.TaskFailed(hand.now, loser.number, "killed"))
    assert hand.state.nodes[loser.node].free == 2
    hand.check_replay()


def test_both_may_end_in_one_instant_and_count_once():
    hand = behind()
    pair = again(hand)
    told = hand.do(*(ev.TaskFinished(hand.now, run.number, run.node) for run in pair))
    assert told == [do.Finish("q")]
    assert all(node.free == 2 for node in hand.state.nodes.values())


def test_the_loser_may_end_well_after_it_was_killed():
    hand = behind(reduces=1)
    first, second = again(hand)
    hand.do(ev.TaskFinished(hand.now, second.number, second.node))
    job = hand.state.jobs["q/scan"]
    assert job.map.done == 4
    hand.do(ev.TaskFinished(hand.now, first.number, first.node))
    assert job.map.done == 4
    outputs = sorted(index for done in job.map.outputs.values() for index in done)
    assert outputs == [0, 1, 2, 3]
    assert first.tasks[0].index not in job.map.outputs.get(first.node, [])


@pytest.mark.parametrize("failing", [0, 1])
def test_if_one_fails_the_other_goes_on_alone(failing: int):
    hand = behind()
    pair = again(hand)
    assert not launches(hand.do(ev.TaskFailed(hand.now, pair[failing].number, "a fault")))[1:]
    other = pair[1 - failing]
    assert other.number in hand.state.running
    assert hand.do(ev.TaskFinished(hand.now, other.number, other.node))[-1] == do.Finish("q")


@pytest.mark.parametrize("lost", [0, 1])
def test_if_a_node_is_lost_the_task_goes_on_at_the_other(lost: int):
    hand = behind()
    pair = again(hand)
    hand.lose(pair[lost].node)
    assert hand.state.jobs["q/scan"].map.pending == 0
    other = pair[1 - lost]
    hand.do(ev.TaskFinished(hand.now, other.number, other.node))
    assert "q" in hand.ended


def test_a_node_is_lost_with_what_was_beaten_there():
    hand = behind(reduces=1)
    first, second = again(hand)
    hand.do(ev.TaskFinished(hand.now, second.number, None))
    hand.lose(first.node)
    assert not hand.state.beaten


def test_a_cancelled_query_ends_when_both_have_stopped():
    hand = behind()
    pair = again(hand)
    told = hand.cancel("q")
    assert sorted(told) == sorted(do.Kill(run.number) for run in pair)
    hand.do(ev.TaskFailed(hand.now, pair[0].number, "killed"))
    assert "q" not in hand.ended
    hand.do(ev.TaskFailed(hand.now, pair[1].number, "killed"))
    assert isinstance(hand.ended["q"], do.Fail)


def test_it_is_off_by_default_and_others_come_first():
    hand = behind({"order": "fifo"})
    assert not launches(hand.wait(60.0).do(ev.Woke(hand.now)))
    hand = behind()
    told = hand.wait(3.0).submit("r", maps("scan", 9))
    # Three slots are free: tasks of the other query have them all.
    assert all(run.tasks[0].job == "r/scan" for run in launches(told))


def test_it_goes_to_no_slower_node_and_to_another_host_first():
    hand = Hand(late(), [Node("a", 3), Node("b", 1, map_speed=0.5)])
    hand.submit("q", maps("scan", 4))
    at_a = [str(run.tasks[0]) for run in hand.state.running.values() if run.node == "a"]
    at_b = [str(run.tasks[0]) for run in hand.state.running.values() if run.node == "b"]
    hand.wait(2.0).finish(*at_a[1:], *at_b)
    assert {node.id for node in hand.state.nodes.values() if node.free} == {"a", "b"}
    assert not launches(hand.wait(60.0).do(ev.Woke(hand.now)))
    hosts = [Node("a", 3, host="x"), Node("b", 2, host="x"), Node("c", 1, host="y")]
    hand = Hand(late(), hosts)
    hand.submit("q", maps("scan", 6))
    running = {run.node: str(run.tasks[0]) for run in hand.state.running.values()}
    rest = [str(run.tasks[0]) for run in hand.state.running.values()]
    rest.remove(running["a"])
    hand.wait(2.0).finish(*rest)
    (second,) = launches(hand.wait(2.0).do(ev.Woke(hand.now)))
    assert second.node == "c"


def test_it_stays_within_the_cap_of_a_tenant():
    profile = {
        "pools": {"by": "tenant", "children": {"ann": {"order": "fifo", "cap": 0.25}}},
        "speculation": {"name": "late", "share": 1.0, "done": 0.0},
    }
    profile["pools"]["default"] = {"order": "fifo"}  # type: ignore[index]
    hand = Hand(profile, "2x2")
    hand.submit("q", maps("scan", 2), tenant="ann")
    hand.wait(2.0).finish("q/scan:m0")
    assert not launches(hand.wait(60.0).do(ev.Woke(hand.now)))


def test_expectations_follow_the_size_of_the_input():
    hand = Hand(late(), "2x2")
    sized = Job("scan", map=Phase(4, sizes=(1.0, 1.0, 1.0, 9.0)))
    hand.submit("q", sized)
    hand.wait(2.0).finish("q/scan:m0", "q/scan:m1", "q/scan:m2")
    # Three times the mean size: 6 s are to be expected, and 12 s are late.
    assert not launches(hand.wait(9.0).do(ev.Woke(hand.now)))
    assert launches(hand.wait(1.0).do(ev.Woke(hand.now)))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"factor": 0.5}, "factor must be a number of at least 1"),
        ({"share": 2}, "share must be a number between 0 and 1"),
        ({"least_s": -1}, "least_s must be a number of at least 0"),
        ({"quantile": 1}, "unknown setting of late 'quantile'"),
    ],
)
def test_settings_are_checked(given: dict[str, Any], told: str):
    with pytest.raises(InvalidProfile, match=told):
        compose(late(**given))


# --- in simulation -----------------------------------------------------------------------------


def simulated(speculation: Any, conditions: Conditions, tasks: int, seed: int) -> Any:
    job = Job("scan", map=Phase(tasks), reduce=Phase(2))
    truth = {"scan": JobTruth(map_s=2.0, shuffle_s=0.5, merge_s=0.1, reduce_s=1.0)}
    arrivals = tuple(
        Arrival(Query(f"q{number}", (job,), submit_s=5.0 * number), truth) for number in range(4)
    )
    driver = build(
        Workload("late", arrivals),
        [Node(f"n{number}", 2) for number in range(4)],
        resolve_profile({"order": "fifo", "speculation": speculation}),
        conditions=conditions,
        seed=seed,
    )
    driver.run()
    assert not driver.unfinished
    return driver


def test_stragglers_hold_queries_up_less():
    conditions = Conditions(straggler_share=0.05, straggler_factor=20.0)
    plain = simulated("none", conditions, 16, seed=3)
    twice = simulated(LATE["speculation"], conditions, 16, seed=3)
    assert max(twice.ends.values()) < 0.7 * max(plain.ends.values())
    rows = read_run(twice.scheduler.journal)
    assert any(launch.outcome == "killed" for launch in rows.launches)


@settings(max_examples=20, deadline=None)
@given(
    tasks=st.integers(1, 12),
    factor=st.sampled_from((1.0, 1.5, 3.0)),
    failure=st.sampled_from((0.0, 0.1)),
    mtbf_s=st.sampled_from((0.0, 60.0)),
    seed=st.integers(0, 99),
)
def test_every_task_counts_once(tasks, factor, failure, mtbf_s, seed):
    """Whatever fails, a query ends, and of each task the kernel has counted one result."""
    conditions = Conditions(
        noise=0.5,
        straggler_share=0.2,
        task_failure=failure,
        node_mtbf_s=mtbf_s,
        node_repair_s=5.0,
    )
    eager = {"name": "late", "factor": factor, "done": 0.0, "share": 1.0, "least_s": 0.0}
    driver = simulated(eager, conditions, tasks, seed)
    driver.scheduler.validate()
    state = driver.scheduler.state
    assert not state.queries
    assert not state.twins
    assert not state.running
