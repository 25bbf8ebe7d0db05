"""Slots that come and go at random moments change no answer, leak nothing and hang nowhere."""

from __future__ import annotations

import os
import random
import threading
import time

import pytest
from waiting import turns_until, wait_until

from engine.native_driving import (
    MIB,
    PATIENCE_S,
    Bench,
    Slots,
    check_same,
    collect,
    plain,
)
from queryard.engine.errors import OutOfMemory, QueryCancelled, QueryFailed
from queryard.results.streams import ResultStream

SOAK_S = float(os.environ.get("QUERYARD_SOAK_S", "0"))

QUERIES = {
    "aggregate": "SELECT key, count(*), sum(price), avg(amount), count(DISTINCT small) "
    "FROM facts GROUP BY key",
    "one row": "SELECT sum(amount), min(words), max(day), count(small) FROM facts, range(4)",
    "join": "SELECT part, count(*), sum(price) FROM facts JOIN dims USING (key) "
    "WHERE small > 3 GROUP BY part",
    "outer join": "SELECT d.part, count(f.id) FROM dims d LEFT JOIN facts f "
    "ON d.key = f.key AND f.small = 5 GROUP BY ALL",
    "sort": "SELECT id, words FROM facts ORDER BY words DESC, id",
    "top": "SELECT * FROM facts ORDER BY amount DESC, id LIMIT 20",
    "window": "SELECT key, id, row_number() OVER (PARTITION BY key ORDER BY day, id) AS place, "
    "sum(price) OVER (PARTITION BY key ORDER BY day, id) AS so_far FROM facts WHERE key < 200",
    "nothing matches": "SELECT id FROM facts, range(3) WHERE regexp_matches(words, '(x+y)+z$')",
    "distinct": "SELECT DISTINCT words, small % 4 AS few FROM facts",
    "streaming": "SELECT id, words, amount + range AS a FROM facts, range(4)",
    "union": "SELECT key FROM facts WHERE small = 1 UNION ALL SELECT key FROM dims "
    "UNION ALL SELECT key FROM none",
    "correlated": "SELECT key, (SELECT max(price) FROM facts f WHERE f.key = d.key) FROM dims d",
    "recursive": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) "
    "SELECT i, name FROM n JOIN dims ON dims.key = n.i",
    "grouping sets": "SELECT part, small, sum(amount) FROM facts JOIN dims USING (key) "
    "GROUP BY CUBE (part, small)",
    "nothing": "SELECT * FROM none JOIN facts USING (key)",
    "quantiles": "SELECT key % 5 AS k, median(price), quantile_cont(amount, 0.9) FROM facts "
    "GROUP BY ALL",
}
FAILING = {
    "error in the middle": (
        "SELECT CASE WHEN id = 333333 THEN error('stop here') ELSE id END FROM facts",
        "stop here",
    ),
    "error in an aggregate": (
        "SELECT key, sum(CASE WHEN id = 390000 THEN error('late') ELSE 1 END) FROM facts "
        "GROUP BY key",
        "late",
    ),
    "bad cast": ("SELECT sum(words::INTEGER) FROM facts", "Conversion Error"),
    "overflow": ("SELECT sum((id * 1000000)::INTEGER) FROM facts", "Conversion Error"),
}

_expected: dict[str, object] = {}


@pytest.fixture(scope="module")
def shared(facts, tmp_path_factory):
    made = Bench(facts, tmp_path_factory.mktemp("temp"))
    yield made
    made.close()


def expected(bench: Bench, name: str):
    if name not in _expected:
        _expected[name] = plain(bench.where, QUERIES[name])
    return _expected[name]


def disturb(slots: Slots, draw: random.Random) -> None:
    """Change the width at random until the query has ended; it is never left without slots."""
    for _ in turns_until(lambda: slots.query.ended):
        slots.set_width(draw.choice((0, 0, 1, 1, 2, 2, 3)))
        time.sleep(draw.choice((0.0, 0.0005, 0.002, 0.01)))
        if slots.width == 0:
            slots.widen(1)


def run_disturbed(bench: Bench, name: str, draw: random.Random) -> None:
    query = bench.query(QUERIES[name])
    slots = Slots(query).widen(draw.randint(1, 2))
    disturber = threading.Thread(target=disturb, args=(slots, draw), daemon=True)
    disturber.start()
    try:
        found = collect(query)
    finally:
        disturber.join(PATIENCE_S)
        slots.close()
    check_same(found, expected(bench, name), ordered=name in ("sort", "top"))


@pytest.mark.parametrize("name", QUERIES)
def test_random_widths_give_the_same_answer(shared, name):
    run_disturbed(shared, name, random.Random(name))
    shared.check_idle()


@pytest.mark.parametrize("name", QUERIES)
def test_cancelling_at_a_random_moment_frees_everything(shared, name):
    draw = random.Random(name)
    for _ in range(4):
        query = shared.query(QUERIES[name])
        slots = Slots(query).widen(draw.randint(0, 2))
        time.sleep(draw.choice((0.0, 0.001, 0.005, 0.02, 0.06)))
        slots.set_width(draw.randint(0, 2))
        query.cancel()
        slots.close()
        assert query.ended
        if query.error is not None:
            with pytest.raises(QueryCancelled):
                query.output.next(PATIENCE_S)
    shared.check_idle()


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("seed", range(2))
def test_a_failing_query_tells_why_and_leaves_the_engine_well(shared, name, seed):
    sql, message = FAILING[name]
    draw = random.Random(seed)
    query = shared.query(sql)
    slots = Slots(query).widen(1)
    disturber = threading.Thread(target=disturb, args=(slots, draw), daemon=True)
    disturber.start()
    with pytest.raises(QueryFailed, match=message):
        collect(query)
    disturber.join(PATIENCE_S)
    slots.close()
    shared.check_idle()
    check_same(shared.run("SELECT count(*) AS n FROM facts"), plain(shared.where, COUNT))


COUNT = "SELECT count(*) AS n FROM facts"


def test_too_little_memory_is_an_error_and_not_the_end(shared):
    query = shared.query(
        "SELECT list(words), list(id), list(words || id) FROM facts, range(20)",
        memory_bytes=48 * MIB,
    )
    slots = Slots(query).widen(2)
    with pytest.raises(OutOfMemory, match="memory"):
        collect(query)
    slots.close()
    shared.check_idle()
    check_same(shared.run(COUNT), plain(shared.where, COUNT))


def test_spilling_leaves_no_files(shared):
    sql = (
        "SELECT sum(place) AS s FROM "
        "(SELECT row_number() OVER (ORDER BY words, id) AS place, * FROM facts)"
    )
    query = shared.query(sql, memory_bytes=40 * MIB)
    slots = Slots(query).widen(2)
    found = collect(query)
    slots.close()
    check_same(found, plain(shared.where, sql))
    shared.check_idle()


def test_a_query_without_slots_stands_still_and_then_goes_on(shared):
    query = shared.query(QUERIES["sort"])
    slots = Slots(query).widen(2)
    time.sleep(0.02)
    for thread in slots.narrow(2):
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    if not query.ended:
        rows = query.output.rows
        time.sleep(0.2)
        assert query.output.rows == rows
        slots.widen(1)
    check_same(collect(query), expected(shared, "sort"), ordered=True)
    slots.close()
    shared.check_idle()


def test_cancelling_a_paused_query_needs_no_slot(shared):
    query = shared.query(QUERIES["window"])
    slots = Slots(query).widen(2)
    time.sleep(0.03)
    for thread in slots.narrow(2):
        thread.join(PATIENCE_S)
    before = time.monotonic()
    query.cancel()
    assert time.monotonic() - before < 1.0
    assert query.ended
    slots.close()
    shared.check_idle()


def test_withdrawn_slots_come_back_soon_from_steps_that_overstay(shared):
    for name in ("nothing matches", "sort", "window", "distinct"):
        query = shared.query(QUERIES[name])
        slots = Slots(query).widen(2)
        time.sleep(0.03)
        began = time.monotonic()
        for thread in slots.narrow(2):
            thread.join(PATIENCE_S)
        assert time.monotonic() - began < 5.0
        query.cancel()
        slots.close()


def test_a_slow_reader_holds_a_bounded_amount(shared):
    limit = 2 * MIB
    query = shared.query(QUERIES["streaming"], output=ResultStream(limit_bytes=limit))
    slots = Slots(query).widen(2)
    wait_until(lambda: query.output.full, what="a full buffer")
    time.sleep(0.2)
    # One batch may come on top.
    assert query.output._bytes <= limit + 24 * MIB
    rows = query.output.rows
    time.sleep(0.2)
    assert query.output.rows == rows
    check_same(collect(query), expected(shared, "streaming"))
    slots.close()
    shared.check_idle()


def test_cancelling_while_a_slow_reader_has_it_stopped(shared):
    query = shared.query(QUERIES["streaming"], output=ResultStream(limit_bytes=MIB))
    slots = Slots(query).widen(2)
    wait_until(lambda: query.output.full, what="a full buffer")
    query.cancel()
    slots.close()
    with pytest.raises(QueryCancelled):
        query.output.next(1.0)
    shared.check_idle()


def test_more_slots_than_the_instance_was_made_for_do_no_harm(shared):
    for name in ("aggregate", "sort", "streaming"):
        query = shared.query(QUERIES[name])
        slots = Slots(query).widen(7)
        check_same(collect(query), expected(shared, name), ordered=name == "sort")
        slots.close()


def test_slots_that_come_after_the_end_go_home(shared):
    query = shared.query("SELECT 42 AS answer")
    slots = Slots(query).widen(1)
    assert collect(query).to_pylist() == [{"answer": 42}]
    slots.widen(3)
    slots.close()
    query.cancel()
    query.cancel()
    assert query.error is None


def test_slots_that_come_just_as_it_ends(shared):
    """The last slot that leaves cleans up, and no other."""
    draw = random.Random(3)
    for number in range(150):
        query = shared.query("SELECT count(*) AS n FROM dims WHERE key > 5")
        slots = Slots(query).widen(1)
        for _ in turns_until(lambda query=query: query.ended):
            slots.widen(1)
            time.sleep(draw.choice((0, 0, 0.0003)))
            slots.narrow(draw.randint(0, 2))
            if number % 3 == 0 and draw.random() < 0.2:
                query.cancel()
            elif slots.width == 0:
                slots.widen(1)
        slots.widen(1)
        slots.close()
    shared.check_idle()


def test_a_lease_withdrawn_before_it_begins_does_nothing(shared):
    query = shared.query("SELECT 42 AS answer")
    slots = Slots(query).widen(2)
    slots.narrow(2)
    slots.widen(1)
    assert collect(query).to_pylist() == [{"answer": 42}]
    slots.close()


def test_many_queries_at_once_each_with_changing_slots(shared):
    names = ["aggregate", "join", "window", "distinct", "streaming", "sort"]
    failures: list[BaseException] = []

    def one(name: str, seed: int) -> None:
        try:
            query = shared.query(QUERIES[name], memory_bytes=64 * MIB)
            draw = random.Random(seed)
            slots = Slots(query).widen(1)
            disturber = threading.Thread(target=disturb, args=(slots, draw), daemon=True)
            disturber.start()
            found = collect(query)
            disturber.join(PATIENCE_S)
            slots.close()
            check_same(found, expected(shared, name), ordered=name == "sort")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=one, args=(n, i), daemon=True) for i, n in enumerate(names)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE_S)
        assert not thread.is_alive()
    assert failures == []
    shared.check_idle()


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="counts threads in /proc")
def test_the_number_of_threads_stays_bounded(shared):
    before = threading.active_count()
    native = len(os.listdir("/proc/self/task"))
    for _ in range(10):
        shared.run(COUNT)
    assert threading.active_count() <= before
    assert len(os.listdir("/proc/self/task")) <= native + 2


@pytest.mark.skipif(not SOAK_S, reason="set QUERYARD_SOAK_S to the seconds to spend")
def test_soak(shared):
    draw = random.Random(1)
    until = time.monotonic() + SOAK_S
    while time.monotonic() < until:
        run_disturbed(shared, draw.choice(list(QUERIES)), draw)
        shared.check_idle()
