"""Slots that overstay after a revoke: a burst slot replaces them, and each end is reported once.

The books are those of a kernel: no slot may be returned twice, nor one that was not granted.
"""

from __future__ import annotations

import random
import threading
import time

import pytest
from engine.native_driving import write_facts
from waiting import wait_until

import queryard
from queryard.backends.local import member
from queryard.backends.local.leases import MOST_BURSTS
from queryard.backends.local.member import OVERSTAY_S
from queryard.results.fan import Fan
from queryard.results.streams import ResultStream

from .stubborn import Books, StubbornQuery, job

QUIET_S = 4 * OVERSTAY_S


@pytest.fixture
def books():
    made = Books()
    queries: list[StubbornQuery] = []
    add = made.add

    def remember(name, query, width=2):
        queries.append(query)
        return add(name, query, width)

    made.add = remember  # type: ignore[method-assign]
    yield made
    for query in queries:
        query.end()
        query.hear()
    assert made.backend.close()


def test_a_slot_that_comes_in_time_is_no_burst(books):
    query = StubbornQuery()
    books.add("q", query)
    books.grant("q", 2)
    books.revoke("q")
    event = books.next()
    assert (event.job, event.slots, event.outcome) == (job("q"), 1, "revoked")
    assert books.read(QUIET_S) == []
    assert (books.backend.report().bursts, books.backend.report().burst_s) == (0, 0.0)


def test_a_slot_that_overstays_is_told_back_once_and_counted(books):
    query = StubbornQuery(deaf=True)
    member = books.add("q", query)
    books.grant("q")
    wait_until(lambda: query.inside == 1)
    began = time.monotonic()
    books.revoke("q")
    event = books.next()
    assert time.monotonic() - began >= OVERSTAY_S
    assert (event.slots, event.outcome) == (1, "revoked")
    assert books.backend.report().bursts == 1
    time.sleep(0.05)
    query.hear()
    wait_until(lambda: query.inside == 0 and not member.leases)
    assert books.read(QUIET_S) == []
    assert books.held[job("q")] == 0
    assert books.backend.report().burst_s >= 0.04
    assert member.burst_s == books.backend.report().burst_s


def test_only_so_many_overstay_at_the_expense_of_others(books):
    queries = [StubbornQuery(deaf=True) for _ in range(4)]
    for number, query in enumerate(queries):
        books.add(f"q{number}", query)
        books.grant(f"q{number}")
        wait_until(lambda query=query: query.inside == 1)
    for number in range(4):
        books.revoke(f"q{number}")
    told = [books.next() for _ in range(MOST_BURSTS)]
    assert books.read(QUIET_S) == []
    # One comes back, and another may overstay in its place.
    first = int(told[0].job[1])
    queries[first].hear()
    assert books.next().job != told[0].job
    assert books.read(QUIET_S) == []
    assert books.backend.report().bursts == MOST_BURSTS + 1


def overstay(books: Books, number: int) -> None:
    """One more query; its slot is revoked and overstays."""
    query = StubbornQuery(deaf=True)
    books.add(f"q{number}", query)
    books.grant(f"q{number}")
    wait_until(lambda: query.inside == 1)
    books.revoke(f"q{number}")


def test_a_tenant_below_its_guarantee_gets_its_slot_however_many_overstay(books):
    books.backend.set_guarantee_unmet(True)
    slots = books.backend.slots
    for number in range(MOST_BURSTS + slots):
        overstay(books, number)
        assert books.next().job == job(f"q{number}")
    # There is an end to it: the machine does not grow with what is asked of it.
    overstay(books, 9)
    assert books.read(QUIET_S) == []
    assert books.backend.report().bursts == MOST_BURSTS + slots


def test_a_slot_that_overstays_is_written_off_when_a_tenant_below_its_guarantee_comes(books):
    for number in range(MOST_BURSTS + 1):
        overstay(books, number)
    # Slots that are overdue at one look are told in any order.
    told = [books.next().job for _ in range(MOST_BURSTS)]
    assert books.read(QUIET_S) == []
    books.backend.set_guarantee_unmet(True)
    told.append(books.next().job)
    assert sorted(told) == [job(f"q{number}") for number in range(MOST_BURSTS + 1)]


def test_a_query_that_ends_while_its_slot_overstays_is_told_without_slots(books):
    query = StubbornQuery(deaf=True)
    books.add("q", query)
    books.grant("q")
    books.revoke("q")
    assert books.next().outcome == "revoked"
    query.end()
    query.hear()
    event = books.next()
    assert (event.slots, event.outcome) == (0, "finished")
    assert books.read(QUIET_S) == []


def test_the_cause_of_a_failure_is_told_without_slots_too(books):
    query = StubbornQuery(deaf=True)
    books.add("q", query)
    books.grant("q")
    books.revoke("q")
    books.next()
    query.end(ValueError("out of luck"))
    query.hear()
    event = books.next()
    assert (event.slots, event.outcome, event.cause) == (0, "failed", "out of luck")


def test_the_end_is_told_by_the_slots_that_count(books):
    query = StubbornQuery(deaf=True)
    books.add("q", query)
    books.grant("q", 2)
    wait_until(lambda: query.inside == 2)
    books.revoke("q")
    assert books.next().outcome == "revoked"
    query.end()
    query.hear()
    event = books.next()
    assert (event.slots, event.outcome) == (1, "finished")
    assert books.read(QUIET_S) == []


def test_an_ended_query_is_not_written_off(books):
    query = StubbornQuery(deaf=True)
    books.add("q", query)
    books.grant("q")
    wait_until(lambda: query.inside == 1)
    query.end()
    books.revoke("q")
    assert books.read(QUIET_S) == []
    query.hear()
    assert books.next().outcome == "finished"
    assert books.backend.report().bursts == 0


def test_members_without_slots_hear_the_end(books):
    query = StubbornQuery()
    for name in ("first", "second", "third"):
        books.add(name, query)
    books.grant("first")
    books.grant("second")
    wait_until(lambda: query.inside == 2)
    query.end()
    told = {}
    for _ in range(3):
        event = books.next()
        told[event.job] = (event.slots, event.outcome)
    assert told == {
        job("first"): (1, "finished"),
        job("second"): (1, "finished"),
        job("third"): (0, "finished"),
    }
    assert books.read(QUIET_S) == []


def test_a_member_that_is_granted_a_slot_after_the_end_gives_it_back(books):
    query = StubbornQuery()
    books.add("first", query)
    books.add("second", query)
    books.grant("first")
    query.end()
    assert {books.next().slots for _ in range(2)} == {0, 1}
    books.grant("second")
    event = books.next()
    assert (event.job, event.slots, event.outcome) == (job("second"), 1, "finished")


def test_a_forgotten_query_may_still_overstay(books):
    query = StubbornQuery(deaf=True)
    member = books.add("q", query)
    books.grant("q")
    books.revoke("q")
    books.next()
    query.cancel()
    books.backend.forget("q")
    query.hear()
    wait_until(lambda: not member.leases)
    other = StubbornQuery(deaf=True)
    books.add("other", other)
    books.grant("other")
    books.revoke("other")
    while books.next().job != job("other"):
        pass
    assert books.backend.report().bursts == 2


@pytest.mark.parametrize("seed", range(12))
def test_every_slot_is_told_back_once_whatever_happens(seed, monkeypatch):
    """Grants, calls, deaf slots, ends and members that share a run, in any order."""
    monkeypatch.setattr(member, "OVERSTAY_S", 0.01)
    draw = random.Random(seed)
    books = Books()
    runs: dict[str, StubbornQuery] = {}
    granted: dict[str, int] = {}
    for number in range(4):
        query = StubbornQuery(deaf=draw.random() < 0.3)
        for twin in range(draw.choice((1, 1, 2, 3))):
            name = f"q{number}.{twin}"
            runs[name] = query
            granted[name] = 0
            books.add(name, query)
    for _ in range(120):
        books.read()
        name = draw.choice(list(runs))
        free = books.held[job(name)] - books.called[job(name)]
        action = draw.random()
        if action < 0.4 and books.held[job(name)] < 3:
            books.grant(name)
            granted[name] += 1
        elif action < 0.7 and free > 0:
            books.revoke(name, draw.randint(1, free))
        elif action < 0.8:
            runs[name].deaf = True
        elif action < 0.95:
            runs[name].hear()
        elif action < 0.96:
            runs[name].end(draw.choice((None, ValueError("luck"))))
        time.sleep(draw.choice((0.0, 0.0, 0.001, 0.004)))
    for name in runs:
        if name.endswith(".0"):
            books.grant(name)  # a query ends on a slot
            granted[name] += 1
    for query in set(runs.values()):
        query.hear()
        query.end()
    wait_until(lambda: not books.read() and not any(books.held.values()), what="the end")
    books.read(0.05)
    for name in runs:
        told = [event for event in books.told if event.job == job(name)]
        assert sum(event.slots for event in told) == granted[name]
        assert [event for event in told if event.outcome != "revoked"], f"{name} heard no end"
        assert len([event for event in told if event.slots == 0]) <= 1
    wait_until(lambda: books.backend._leases._bursting == 0, what="the last that overstayed")
    assert books.backend.close()


# --- with DuckDB ---------------------------------------------------------------------------------

# None of them hands over a row or a slot for a long time.
BIG = {
    "a filter that matches nothing": (
        "SELECT count(*) FROM facts, range(20000) t(r) WHERE hash(id, r) = 1"
    ),
    "a big sort": (
        "SELECT max(w) FROM (SELECT words || r AS w, row_number() OVER (ORDER BY words || r, id) n "
        "FROM facts, range(12) t(r)) WHERE n % 7 = 0"
    ),
    "a regular expression": (
        "SELECT count(*) FROM facts, range(200) t(r) "
        "WHERE regexp_matches(words || r, '(a+b*c?)+[0-9]{3}.*(e|f)+x$')"
    ),
}


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("facts")
    write_facts(folder)
    return folder


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("what", list(BIG))
def test_a_small_query_is_answered_long_before_a_big_one_ends(facts, what, slots):
    with queryard.connect(facts, slots=slots, memory="2 GB", history=False) as session:
        session.sql("SELECT count(*) FROM dims").fetchall()
        big = session.submit(BIG[what])
        wait_until(lambda: big.status == "running", what="the big query")
        time.sleep(0.2)
        took = []
        for number in range(3):
            began = time.monotonic()
            answer = session.sql(f"SELECT count(*) + {number} FROM dims").fetchall()
            took.append(time.monotonic() - began)
            assert answer == [(1000 + number,)]
        assert not big.ended, f"{what} is too small for this machine"
        big.cancel()
        assert big.wait(20.0)
        assert min(took) < 1.0, took
        wait_until(lambda: session.report().running == 0)


def test_bursts_are_reported_and_their_slots_come_home(facts):
    """A Python function cannot be interrupted at all."""
    entered, go_on = threading.Event(), threading.Event()

    def slow(value: int) -> int:
        entered.set()
        go_on.wait(10.0)
        return value

    with queryard.connect(facts, slots=1, memory="2 GB", history=False) as session:
        session.create_function("slow", slow, ["BIGINT"], "BIGINT", side_effects=True)
        big = session.submit("SELECT slow(key) FROM dims WHERE key = 7")
        assert entered.wait(20.0)
        assert session.sql("SELECT count(*) FROM facts").fetchall() == [(400_000,)]
        assert not big.ended
        assert session.report().bursts == 1
        go_on.set()
        assert big.result(20.0).fetchall() == [(7,)]
        assert big.wait(20.0)
        wait_until(lambda: session.report().burst_s > 0)
        assert big.timing.burst_s > 0
        assert session.sql("SELECT count(*) FROM dims").fetchall() == [(1000,)]


def test_who_was_slow_to_leave_is_not_waited_for_again(books):
    query = StubbornQuery(deaf=True)
    books.add("q", query)
    books.grant("q")
    wait_until(lambda: query.inside == 1)
    books.revoke("q")
    assert books.next().outcome == "revoked"
    time.sleep(4 * OVERSTAY_S)
    query.hear()
    wait_until(lambda: query.inside == 0)
    query.deaf = True
    books.grant("q")
    wait_until(lambda: query.inside == 1)
    books.revoke("q")
    # It is written off by the revoke itself, not by the thread that polls.
    assert not books.events.empty()
    assert books.next().outcome == "revoked"
    assert books.backend.report().bursts == 2


def test_patience_returns_with_slots_that_come_at_once():
    run = member.LeasedExecution("q", StubbornQuery(), Fan(ResultStream()))  # type: ignore[arg-type]
    assert run.patience_s == OVERSTAY_S
    run.left(0.2)
    assert run.patience_s == 0.0
    for _ in range(10):
        run.left(0.001)
    assert run.patience_s == OVERSTAY_S
