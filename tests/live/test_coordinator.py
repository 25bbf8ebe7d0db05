"""The coordinator by itself: from a submission to its end, without DuckDB and without sleeping."""

from __future__ import annotations

import pytest

from queryard.backends.fake import Script
from queryard.core.errors import QueryardError
from queryard.core.events import WidthChanged
from queryard.core.model import Node
from queryard.engine.errors import OutOfMemory, QueryCancelled, QueryFailed, QueryTimedOut
from queryard.live import effects as out
from queryard.live import inputs
from queryard.live.admission.limits import Limits, Refused

from .fake_host import MIB, FakeClient, FakeHost


def test_a_query_is_let_in_runs_and_ends():
    host = FakeHost()
    query = host.submit()
    assert host.replies[query].query == query
    assert host.facts[query].started_s == 0.0
    host.run()
    facts = host.ended[query]
    assert (facts.error, facts.ended_s, facts.work_s) == (None, 0.5, 1.0)
    assert host.asked[query] == 1
    assert [(learned.work_s, learned.known) for learned in host.learned][-1] == (1.0, "exactly")
    host.check_idle()


def test_an_error_of_the_engine_is_the_querys_own():
    error = QueryFailed("no such column")
    host = FakeHost(script=Script(error=lambda run: error))
    query = host.submit()
    host.run()
    assert host.ended[query].error is error
    assert host.failed_outputs[query] is error
    host.check_idle()


def test_queries_that_ask_the_same_are_one_run():
    host = FakeHost()
    queries = [host.submit(key="k") for _ in range(3)]
    other = host.submit(key="other")
    host.run()
    assert [host.ended[query].shares_with for query in queries] == ["", "q1", "q1"]
    assert [host.ended[query].work_s for query in queries] == [1.0, 0.0, 0.0]
    assert host.ended[other].shares_with == ""
    assert all(host.ended[query].error is None for query in queries)
    host.check_idle()


def test_a_query_that_comes_too_late_has_a_run_of_its_own():
    host = FakeHost(script=Script(joinable=lambda run: False))
    queries = [host.submit(key="k") for _ in range(2)]
    host.run()
    assert [host.ended[query].shares_with for query in queries] == ["", ""]
    assert [host.ended[query].work_s for query in queries] == [1.0, 1.0]
    host.check_idle()


def test_when_the_first_leaves_another_holds_the_memory_of_the_run():
    host = FakeHost()
    first, second = host.submit(key="k"), host.submit(key="k")
    held = host.coordinator.kernel.state.queries
    assert held[first].memory_bytes > 0
    assert held[second].memory_bytes == 0
    host.cancel(first)
    assert held[second].memory_bytes > 0
    host.run()
    assert isinstance(host.ended[first].error, QueryCancelled)
    assert host.ended[second].error is None
    host.check_idle()


def test_one_query_at_a_time_has_the_clients_own_connection():
    host = FakeHost()
    client = FakeClient("c")
    queries = [host.submit("own", client) for _ in range(3)]
    beside = host.submit("reads", client)
    assert [host.facts[query].started_s is not None for query in queries] == [True, False, False]
    host.run()
    ends = [host.ended[query].ended_s for query in queries]
    assert ends == sorted(ends)
    assert host.ended[beside].ended_s is not None
    host.check_idle()


def test_clients_do_not_stand_in_each_others_line():
    host = FakeHost((Node("local", 4, 1024.0 * MIB),))
    mine, yours = host.submit("own", FakeClient("a")), host.submit("own", FakeClient("b"))
    assert host.facts[mine].work is not None
    assert host.facts[yours].work is not None
    host.run()
    host.check_idle()


def test_a_query_that_may_see_side_effects_waits_for_them():
    host = FakeHost()
    client = FakeClient("c")
    writes = host.submit("own writes", client)
    reads = host.submit("reads", client)
    assert host.facts[reads].work is None
    host.run()
    assert host.ended[reads].started_s >= host.ended[writes].ended_s
    host.check_idle()


def test_a_caller_has_the_connection_to_itself():
    host = FakeHost()
    client = FakeClient("c")
    query = host.submit("own", client)
    host.post(inputs.AcquireConnection("caller", client))
    later = host.submit("own", client)
    assert "caller" not in host.replies
    host.run()
    assert host.ended[query].error is None
    assert host.replies["caller"].error is None
    assert later not in host.ended
    host.post(inputs.ReleaseConnection("caller", client))
    host.run()
    assert host.ended[later].error is None
    host.check_idle()


def test_too_little_memory_on_a_guess_is_followed_by_a_second_run():
    runs: list[str] = []

    def error(run):
        runs.append(run)
        return OutOfMemory("no more") if len(runs) == 1 else None

    host = FakeHost(script=Script(error=error))
    query = host.submit(work_s=0.01)
    host.run()
    assert host.ended[query].error is None
    assert runs == [query, query]
    assert host.asked[query] == 1
    host.check_idle()


def test_memory_that_was_asked_for_is_not_increased():
    host = FakeHost(script=Script(error=lambda run: OutOfMemory("no more")))
    asked = host.submit(memory_bytes=64 * MIB)
    host.run()
    assert isinstance(host.ended[asked].error, OutOfMemory)
    host.check_idle()


def test_rows_that_a_reader_has_seen_are_not_made_again():
    script = Script(error=lambda run: OutOfMemory("no more"), rows_out=lambda run: True)
    host = FakeHost(script=script)
    query = host.submit(work_s=0.01)
    host.run()
    assert isinstance(host.ended[query].error, OutOfMemory)
    host.check_idle()


def test_a_time_limit_ends_a_query_and_says_whether_it_had_begun():
    host = FakeHost(script=Script(work_s=lambda run: 100.0))
    running = host.submit(time_limit_s=2.0, time_limit="2 s")
    waiting = host.submit(time_limit_s=1.0, time_limit="1 s")
    host.run()
    assert isinstance(host.ended[running].error, QueryTimedOut)
    assert "still waiting" in str(host.ended[waiting].error)
    assert "still waiting" not in str(host.ended[running].error)
    assert host.learned[-1].known == "at least"
    host.check_idle()


def test_a_slow_reader_and_a_narrow_plan_do_not_get_in_each_others_way():
    host = FakeHost(script=Script(work_s=lambda run: 100.0))
    query = host.submit()
    job = host.coordinator.kernel.state.jobs[f"{query}/native"]
    host.post(WidthChanged(0.0, job.id, 1))
    assert job.width == 1
    host.post(inputs.ReaderState(query, True))
    assert job.width == 0
    host.post(WidthChanged(0.0, job.id, 2))
    assert job.width == 0
    host.post(inputs.ReaderState(query, False))
    assert job.width == 2
    host.cancel(query)
    host.run()
    host.check_idle()


def test_a_query_of_a_moment_begins_on_one_slot_and_has_all_if_it_takes_longer():
    host = FakeHost(script=Script(work_s=lambda run: 1.0))
    queries = [host.submit(work_s=0.005, key="k") for _ in range(2)]
    jobs = [host.coordinator.kernel.state.jobs[f"{query}/native"] for query in queries]
    assert [(job.width, job.slots) for job in jobs] == [(1, 1), (1, 1)]
    host.cancel(queries[1])
    host.run(until_s=0.2)
    assert (jobs[0].width, jobs[0].slots) == (1, 1)
    host.run(until_s=0.3)
    assert (jobs[0].width, jobs[0].slots) == (2, 2)
    host.run()
    assert host.ended[queries[0]].error is None
    host.check_idle()


@pytest.mark.parametrize(("work_s", "spreads"), [(0.05, False), (0.5, False), (0.005, True)])
def test_other_queries_begin_on_all_slots(work_s, spreads):
    host = FakeHost(spreads=spreads)
    query = host.submit(work_s=work_s)
    assert host.coordinator.kernel.state.jobs[f"{query}/native"].slots == 2
    host.run()
    host.check_idle()


def test_what_is_known_of_a_query_is_published_once_per_half_of_a_step():
    host = FakeHost()
    published = []
    carry_out = host._carry_out

    def noted(effect):
        if isinstance(effect, out.Publish):
            published.append((effect.facts.id, effect.facts.started_s))
        carry_out(effect)

    host._carry_out = noted
    query = host.submit()
    # Once as it entered, and once as it began.
    assert published == [(query, None), (query, 0.0)]
    host.run()
    host.check_idle()


def test_a_slow_reader_spills_once_another_query_waits_for_memory():
    host = FakeHost(script=Script(work_s=lambda run: 10.0))
    slow = host.submit(memory_bytes=800 * MIB)
    host.post(inputs.ReaderState(slow, True))
    assert not host.spilled
    host.submit(memory_bytes=800 * MIB)
    assert host.spilled[slow] == 1
    host.run()
    host.check_idle()


def test_a_staged_query_is_planned_run_and_handed_over():
    host = FakeHost()
    query = host.submit("reads", plan="staged")
    host.run()
    assert host.ended[query].error is None
    assert host.plans[query].closed == 1
    host.check_idle()


@pytest.mark.parametrize("sql", ["unsplittable", "impossible"])
def test_what_cannot_be_split_runs_natively_and_says_why(sql):
    host = FakeHost()
    query = host.submit(sql, plan="staged")
    host.run()
    assert host.ended[query].error is None
    assert len(host.ended[query].reasons) == 1
    host.check_idle()


def test_a_defect_of_the_planner_is_no_reason_to_run_natively():
    host = FakeHost()
    query = host.submit("defect", plan="staged")
    host.run()
    assert isinstance(host.ended[query].error, RuntimeError)
    host.check_idle()


def test_a_task_that_may_pass_is_tried_again_and_one_that_would_not_ends_the_query():
    passes = Script(task_error=lambda task, attempt: OSError("disk") if attempt == 1 else None)
    host = FakeHost(script=passes)
    query = host.submit(plan="staged")
    host.run()
    assert host.ended[query].error is None
    bad = QueryFailed("out of range")
    host = FakeHost(script=Script(task_error=lambda task, attempt: bad))
    query = host.submit(plan="staged")
    host.run()
    assert host.ended[query].error is bad
    host.check_idle()


def test_rows_that_cannot_be_handed_over_are_the_querys_error():
    host = FakeHost()
    host.handovers["q1"] = error = QueryFailed("the disk is full")
    query = host.submit(plan="staged")
    host.run()
    assert host.ended[query].error is error
    host.check_idle()


def test_limits_refuse_and_nothing_is_left():
    host = FakeHost(limits=Limits(waiting=1), script=Script(work_s=lambda run: 10.0))
    queries = [host.submit() for _ in range(5)]
    refused = [query for query in queries if isinstance(host.replies[query].error, Refused)]
    assert refused
    host.run()
    assert len(host.ended) == len(queries) - len(refused)
    host.check_idle()


def test_the_same_idempotency_key_is_the_same_query():
    host = FakeHost()
    first = host.submit(idempotency_key="k")
    again = host.submit(idempotency_key="k")
    assert host.replies[again].query == first
    other = host.submit("other", idempotency_key="k")
    assert isinstance(host.replies[other].error, QueryardError)
    tenant = host.submit(idempotency_key="k", tenant="b")
    assert host.replies[tenant].query == tenant
    host.run()
    assert set(host.ended) == {first, tenant}
    host.check_idle()


def test_keys_of_two_tenants_never_meet():
    host = FakeHost()
    asked = [("a", "b:c"), ("a:b", "c"), ("a", "/b/c"), ("a/b", "c"), ("a", "b//c")]
    queries = {host.submit(tenant=tenant, idempotency_key=key) for tenant, key in asked}
    host.run()
    assert set(host.ended) == queries
    assert len(queries) == len(asked)
    host.check_idle()


def test_the_end_of_the_host_ends_every_query():
    host = FakeHost(script=Script(work_s=lambda run: 100.0, leave_s=lambda: 1.0))
    client = FakeClient("c")
    queries = [host.submit("own", client), host.submit("own", client), host.submit(plan="staged")]
    queries += [host.submit(key="k") for _ in range(3)]
    host.post(inputs.Close(QueryCancelled("closed")))
    host.run()
    assert {str(host.ended[query].error) for query in queries} == {"closed"}
    late = host.submit()
    assert isinstance(host.replies[late].error, QueryardError)
    host.check_idle()


# --- what is expected of staged tasks ------------------------------------------------------------


def test_staged_tasks_teach_what_others_will_take():
    script = Script(task_s=lambda task, attempt: 4.0)
    host = FakeHost(script=script)
    first = host.submit(plan="staged")
    state = host.coordinator.kernel.state
    assert state.jobs[f"{first}/scan"].map_s == 1.0  # by the bytes it reads
    host.run(until_s=4.0)
    assert state.jobs[f"{first}/scan"].map_s == pytest.approx(4.0)
    other = host.submit("reads something else", plan="staged")
    again = host.submit(plan="staged")
    for query in (other, again):
        assert state.jobs[f"{query}/scan"].map_s == pytest.approx(4.0)
    host.run()
    last = host.submit(plan="staged")
    assert state.jobs[f"{last}/scan"].reduce_s == pytest.approx(4.0)
    host.run()
    assert host.ended.keys() == {first, other, again, last}
    tasks = host.coordinator._ledger.tasks
    assert not tasks._jobs, "ended queries are forgotten"
    assert not tasks._queries
