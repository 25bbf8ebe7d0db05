"""What a queue looks like, and what was decided for such a queue."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from queryard.core import events as ev
from queryard.core.model import Divisible, Job, Node, Query
from queryard.core.scheduler import Scheduler
from queryard.core.state import State
from queryard.policies import compose, resolve_profile
from queryard.portfolio.patterns import PatternMemory, pattern_of


def queue(*works: tuple[float, str, float | None], slots: int = 2) -> State:
    """Native queries: the work, the tenant and the deadline of each."""
    kernel = Scheduler(compose, resolve_profile("fifo"))
    kernel.handle(ev.NodeJoined(0.0, Node("local", slots)))
    for number, (work_s, tenant, due_s) in enumerate(works):
        job = Job("native", divisible=Divisible(slots))
        query = Query(f"q{number}", (job,), tenant=tenant, deadline_s=due_s)
        estimate = ev.EstimateChanged(0.0, query.job_id("native"), work_s=work_s)
        kernel.handle(ev.QuerySubmitted(0.0, query), estimate)
    return kernel.state


USUAL = [(0.05, "web", None)] * 5 + [(3.0, "lab", None)] * 2


def test_queues_that_differ_a_little_look_the_same():
    other = [(0.07, "web", None)] * 6 + [(3.4, "lab", None)] * 2
    assert pattern_of(queue(*USUAL)) == pattern_of(queue(*other))
    shuffled = random.Random(1).sample(USUAL, len(USUAL))
    assert pattern_of(queue(*USUAL)) == pattern_of(queue(*shuffled))


def test_sizes_tenants_deadlines_load_and_slots_make_a_difference():
    seen = {
        pattern_of(queue(*USUAL)),
        pattern_of(queue(*USUAL, slots=8)),
        pattern_of(queue(*[(30.0, tenant, due) for _, tenant, due in USUAL])),
        pattern_of(queue(*[(work, "web", due) for work, _, due in USUAL])),
        pattern_of(queue(*[(work, tenant, 2.0) for work, tenant, _ in USUAL])),
        pattern_of(queue(*[(work, tenant, 200.0) for work, tenant, _ in USUAL])),
        pattern_of(queue(*USUAL * 8)),
    }
    assert len(seen) == 7


def test_an_empty_queue_has_a_pattern():
    assert pattern_of(queue()) == pattern_of(queue())


def test_memory_is_bounded_and_forgets_what_was_used_longest_ago():
    memory = PatternMemory(3)
    for name in "abc":
        memory.learn((name,), name)
    assert memory.recall(("a",)) == "a"
    memory.learn(("d",), "d")
    assert len(memory) == 3
    assert [memory.recall((name,)) for name in "abcd"] == ["a", None, "c", "d"]


def test_one_that_is_as_good_confirms_what_is_remembered():
    memory = PatternMemory()
    memory.learn(("a",), "tls")
    assert memory.learn(("a",), "swrd", as_good=("tls", "swrd"))
    assert memory.recall(("a",)) == "tls"
    assert not memory.learn(("a",), "edf", as_good=("edf",))
    assert memory.recall(("a",)) == "edf"


def test_without_room_nothing_is_remembered():
    memory = PatternMemory(0)
    assert memory.learn(("a",), "tls")
    assert memory.recall(("a",)) is None


@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from("xyz"), st.booleans())))
def test_the_same_calls_give_the_same_answers_within_bounds(calls):
    one, other = PatternMemory(4), PatternMemory(4)
    for pattern, policy, learns in calls:
        for memory in (one, other):
            if learns:
                memory.learn((pattern,), policy)
        assert one.recall((pattern,)) == other.recall((pattern,))
        assert len(one) <= 4


def test_a_policy_in_force_that_did_as_well_is_not_left():
    memory = PatternMemory()
    memory.learn(("a",), "marshal", ["marshal", "swrd"])
    assert memory.recall(("a",)) == "marshal"
    assert [memory.recall(("a",), now) for now in ("swrd", "edf")] == ["swrd", "marshal"]
    # The latest decision for such a queue counts.
    memory.learn(("a",), "marshal", ["marshal"])
    assert memory.recall(("a",), "swrd") == "marshal"
