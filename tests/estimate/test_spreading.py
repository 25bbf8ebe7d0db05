"""What queries take natively on one node of a cluster, and in tasks on all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.core.model import Job, Phase
from queryard.core.speedup import PERFECT, Speedup
from queryard.estimate.spreading import GAIN, SHORT_S, Crowd, Member, at_once, compared

nodes = st.lists(
    st.builds(Member, st.integers(1, 16), st.floats(0.25, 4.0), st.floats(1e9, 64e9)),
    min_size=1,
    max_size=6,
).map(tuple)
crowds = st.builds(Crowd, nodes, st.integers(0, 20))
works = st.floats(0.01, 1e4)


def scan(maps: int, reduces: int = 0) -> list[Job]:
    return [Job("scan", map=Phase(maps), reduce=Phase(reduces) if reduces else None)]


@given(crowds, works, st.floats(0.0, 0.5))
def test_what_is_said_at_once_holds_when_all_is_known(crowd, work_s, serial):
    """If tasks do no less work than expected at least, a plan would not have changed the choice."""
    speedup = Speedup(serial)
    verdict = at_once(crowd, work_s, speedup, 0.0)
    least_s = crowd.least_staged_s(work_s)
    if verdict is None:
        assert least_s < GAIN * crowd.native_s(work_s, speedup)
        return
    assert not verdict.in_tasks
    is_short = verdict.native_s <= SHORT_S or len(crowd.nodes) == 1
    assert is_short or not compared(crowd, work_s, speedup, 0.0, least_s).in_tasks


@given(crowds, st.integers(1, 200), st.integers(0, 50), st.floats(0.01, 10.0))
def test_more_company_and_more_bytes_never_make_it_faster(crowd, maps, reduces, task_s):
    jobs, seconds = scan(maps, reduces), {"scan": (task_s, task_s)}
    alone = crowd._replace(others=0)
    assert alone.staged_s(jobs, seconds, 0.0) <= crowd.staged_s(jobs, seconds, 0.0) + 1e-9
    assert crowd.staged_s(jobs, seconds, 0.0) <= crowd.staged_s(jobs, seconds, 1e9)
    assert alone.native_s(task_s, PERFECT) <= crowd.native_s(task_s, PERFECT)


@given(nodes, works)
def test_a_further_node_helps_tasks_and_never_hurts_a_native_query(members, work_s):
    more = Crowd((*members, members[0]))
    assert more.native_s(work_s, PERFECT) <= Crowd(members).native_s(work_s, PERFECT)
    assert more.least_staged_s(work_s) < Crowd(members).least_staged_s(work_s)


def test_memory_decides_before_time_does():
    crowd = Crowd((Member(2, 1.0, 4e9), Member(2, 1.0, 8e9)))
    assert at_once(crowd, 0.01, PERFECT, 9e9) is None
    found = compared(crowd, 0.01, PERFECT, 9e9, 60.0)
    assert found.in_tasks
    assert found.reason == "it needs about 9 GB of memory, and the largest node has 8 GB"


@pytest.mark.parametrize(("staged_s", "in_tasks"), [(0.89, True), (0.95, False), (2.0, False)])
def test_a_tenth_must_be_gained(staged_s, in_tasks):
    crowd = Crowd((Member(1, 1.0, 4e9), Member(1, 1.0, 4e9)))
    assert compared(crowd, 1.0, PERFECT, 0.0, staged_s).in_tasks is in_tasks
