"""Idle slots are offered to other queries, and requested again now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from engine.native_driving import write_facts
from waiting import wait_until

import queryard
from queryard.backends.local.leases import IDLE_S
from queryard.backends.local.member import RETRY_S, Member
from queryard.core.events import WidthChanged
from queryard.engine.meter import Meter, SlotMeter
from queryard.engine.threads import of_this_thread
from queryard.results.streams import ResultStream

from .stubborn import PATIENCE_S, Books, StubbornQuery, job


class FakeMeter:
    """So many inside, so many of them idle."""

    def __init__(self) -> None:
        self.inside, self.asleep = 0, 0

    def idle(self, for_s: float) -> tuple[int, int]:
        return self.inside, self.asleep


class Told:
    """A member with four slots, and the widths it has told."""

    def __init__(self, width: int = 4) -> None:
        self.widths: list[int] = []
        self.member = Member("q", "q/native", width, ResultStream(), self._note)
        self.meter = FakeMeter()
        self.member.meter = self.meter  # type: ignore[assignment]

    def _note(self, event: WidthChanged) -> None:
        assert event.job == "q/native"
        self.widths.append(event.width)

    def adapt(self, now: float, inside: int, asleep: int) -> None:
        self.meter.inside, self.meter.asleep = inside, asleep
        self.member.adapt(now, IDLE_S)


def test_busy_slots_are_kept():
    told = Told()
    for now in range(20):
        told.adapt(now / 100, 4, 0)
    assert told.widths == []


def test_idle_slots_are_given_up_at_once_and_only_once():
    told = Told()
    for now in range(5):
        told.adapt(10.0 + now * RETRY_S[0] / 10, 4, 3)
    assert told.widths == [1]


def test_the_last_slot_is_kept_even_if_it_sleeps():
    told = Told()
    told.adapt(10.0, 1, 1)
    assert told.widths == []
    told.adapt(10.0, 4, 4)
    assert told.widths == [1]


def test_it_tries_again_after_pauses_that_grow_to_a_most():
    told = Told()
    now, narrowed_at, pauses = 10.0, 0.0, []
    while len(pauses) < 8:
        before = len(told.widths)
        told.adapt(now, 4, 3)
        if len(told.widths) > before:
            if told.widths[-1] == 1:
                narrowed_at = now
            else:
                pauses.append(now - narrowed_at)
        now += 0.005
    assert told.widths[:4] == [1, 4, 1, 4]
    first, most = RETRY_S
    assert pauses[0] == pytest.approx(first, abs=0.01)
    for before, after in pairwise(pauses):
        assert after == pytest.approx(min(2 * before, most), abs=0.02)


def test_slots_that_were_of_use_for_a_while_shorten_the_pauses():
    told = Told()
    now = 10.0
    while len(told.widths) < 8:
        told.adapt(now, 4, 3)
        now += 0.005
    for _ in range(200):  # a second of work on all of them
        told.adapt(now, 4, 0)
        now += 0.005
    told.adapt(now, 4, 2)
    narrowed_at = now
    assert told.widths[-1] == 2
    while told.widths[-1] == 2:
        told.adapt(now, 4, 2)
        now += 0.005
    assert now - narrowed_at == pytest.approx(RETRY_S[0], abs=0.02)


def test_a_query_that_is_left_alone_may_use_all_slots_again():
    told = Told()
    told.adapt(10.0, 4, 3)
    told.member.widen()
    told.member.widen()
    assert told.widths == [1, 4]


@pytest.mark.parametrize("beside", [False, True])
def test_a_query_of_a_moment_has_one_slot_until_it_is_looked_at(beside):
    widths = []
    member = Member(
        "q",
        "q/native",
        4,
        ResultStream(),
        lambda event: widths.append(event.width),
        narrow=True,
    )
    for _ in range(2):
        if beside:
            member.adapt(10.0, IDLE_S)
        else:
            member.widen()
    assert widths == [4]


# --- in a backend --------------------------------------------------------------------------------


@pytest.fixture
def books() -> Iterator[Books]:
    made = Books(4)
    yield made
    made.backend.close()


def widths(books: Books, wait_s: float) -> list[tuple[str, int]]:
    found = []
    until = time.monotonic() + wait_s
    while (left := until - time.monotonic()) > 0:
        try:
            event = books.events.get(timeout=left)
        except Exception:
            break
        if isinstance(event, WidthChanged):
            found.append((event.job, event.width))
    return found


def next_width(books: Books) -> tuple[str, int]:
    while True:
        event = books.events.get(timeout=PATIENCE_S)
        if isinstance(event, WidthChanged):
            return event.job, event.width


def gets_its_slots_back_for_good(books: Books, name: str) -> None:
    member = books.backend._leases._jobs[job(name)].members[job(name)]
    wait_until(lambda: not widths(books, 0.2) and member._told == 4, PATIENCE_S, "all its slots")


def test_a_lone_query_keeps_its_slots_and_gets_them_back_when_it_is_alone(books):
    query, other = StubbornQuery(), StubbornQuery()
    query.computes = other.computes = True
    books.add("q", query, 4)
    books.grant("q", 4)  # all of them sleep
    assert widths(books, 0.2) == []
    books.add("other", other, 4)
    assert next_width(books) == (job("q"), 1)
    other.end()
    books.backend.forget("other")
    gets_its_slots_back_for_good(books, "q")
    query.end()


def test_a_query_that_plans_or_hands_over_rows_is_left_alone(books):
    query, other = StubbornQuery(), StubbornQuery()
    books.add("q", query, 4)
    books.add("other", other, 4)
    books.grant("q", 4)
    assert widths(books, 0.2) == []
    query.computes = True
    assert next_width(books) == (job("q"), 1)
    query.computes = False
    gets_its_slots_back_for_good(books, "q")
    query.end()
    other.end()


def test_a_run_with_several_members_does_not_narrow(books):
    query, other = StubbornQuery(), StubbornQuery()
    query.computes = True
    books.add("q", query, 4)
    books.add("twin", query, 4)
    books.add("other", other, 4)
    books.grant("q", 2)
    books.grant("twin", 2)
    assert widths(books, 0.2) == []
    query.end()
    other.end()


# --- the meter -----------------------------------------------------------------------------------


@contextmanager
def at_work(meter: Meter, spins: bool) -> Iterator[None]:
    """A thread inside a query that computes, or that sleeps."""
    over, entered = threading.Event(), threading.Event()

    def work() -> None:
        stay = meter.enter()
        entered.set()
        while not over.is_set():
            if spins:
                sum(range(2000))
            else:
                over.wait(0.5)
        meter.leave(stay)

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(10.0)
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_sleeping_thread_does_no_work():
    meter = Meter()
    with at_work(meter, spins=False):
        time.sleep(0.15)
        assert meter.slots == 1
        assert meter.work_s < 0.05
        assert 0.14 < meter.held_s < 10.0
    assert meter.slots == 0
    assert meter.work_s < 0.05


def test_a_busy_thread_works_and_what_it_did_stays_counted():
    meter = Meter()
    with at_work(meter, spins=True):
        wait_until(lambda: meter.work_s > 0.1)
        inside = meter.work_s
    after = meter.work_s
    assert after >= inside
    assert meter.held_s >= 0.09
    time.sleep(0.02)
    assert meter.work_s == after


def test_work_and_held_time_never_fall_while_threads_come_and_go():
    meter = Meter()
    seen = [(0.0, 0.0)]
    for spins in (True, False, True):
        with at_work(meter, spins=spins):
            for _ in range(20):
                seen.append((meter.work_s, meter.held_s))
                time.sleep(0.002)
        seen.append((meter.work_s, meter.held_s))
    assert [work for work, _ in seen] == sorted(work for work, _ in seen)
    assert [held for _, held in seen] == sorted(held for _, held in seen)


def test_idle_threads_are_told_from_busy_ones():
    meter = Meter()
    assert meter.idle(IDLE_S) == (0, 0)
    with at_work(meter, spins=False), at_work(meter, spins=True):
        time.sleep(IDLE_S)

        def one_is_idle() -> bool:
            time.sleep(IDLE_S / 4)
            return meter.idle(IDLE_S) == (2, 1)

        wait_until(one_is_idle, 10.0)


def test_a_thread_is_not_idle_from_the_start():
    meter = Meter()
    with at_work(meter, spins=False):
        (stay,) = meter._inside
        assert not stay.is_idle(stay.began_s + 0.001, IDLE_S)
        wait_until(lambda: stay.is_idle(stay.began_s + 2 * IDLE_S, IDLE_S), 10.0)


@pytest.mark.skipif(of_this_thread().is_asleep() is None, reason="needs /proc")
def test_a_thread_that_waits_for_a_processor_is_not_idle(monkeypatch):
    """On a busy machine it may not get one for a while, and yet has something to do."""
    meter = Meter()
    stay = meter.enter()
    monkeypatch.setattr(SlotMeter, "cpu_s", lambda self: stay.began_cpu_s)  # as if it got none
    assert not stay.is_idle(stay.began_s + 2 * IDLE_S, IDLE_S)
    meter.leave(stay)


# --- with DuckDB ---------------------------------------------------------------------------------


def test_a_query_on_one_thread_leaves_the_other_slot_to_others(tmp_path):
    """A window over one partition runs on one thread; another query has work for the other."""
    write_facts(tmp_path)
    with queryard.connect(tmp_path, slots=2, memory="2 GB", history=False) as session:
        narrow = session.submit(
            "SELECT sum(s) FROM (SELECT sum(price) OVER (ORDER BY id ROWS BETWEEN 300 PRECEDING "
            "AND 300 FOLLOWING EXCLUDE CURRENT ROW) AS s FROM facts)"
        )
        wide = session.submit("SELECT sum(hash(words, r)::HUGEINT) FROM facts, range(20) t(r)")
        assert wide.result(60.0).fetchall()
        assert narrow.result(60.0).fetchall()
        assert wide.wait(60.0)
        assert narrow.wait(60.0)
        assert wide.timing.work_s > 0
        assert narrow.timing.work_s > 0
