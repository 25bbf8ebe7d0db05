"""How often the loop is woken for a query: each step costs more than what is done in it."""

from __future__ import annotations

import gc

from waiting import wait_until, wait_until_settled

SMALL = "SELECT count(*) AS n FROM dims WHERE key < {}"


def settled_decisions(qy) -> int:
    """How many there were once the steps of what has ended are over."""
    return wait_until_settled(lambda: qy.report().decisions)


def test_rows_that_were_read_to_the_end_wake_no_loop(qy):
    handle = qy.submit(SMALL.format(5))
    answer = handle.result()
    assert handle.wait(20)
    before = settled_decisions(qy)
    assert answer.fetchall()
    del handle, answer
    gc.collect()
    assert qy.report().decisions == before


def test_rows_that_were_not_read_are_freed_by_the_loop(qy):
    handle = qy.submit(SMALL.format(5))
    output = handle._ticket.output
    assert handle.wait(20)
    assert not output.drained
    del handle
    gc.collect()
    wait_until(lambda: output.drained)


def test_a_short_query_is_two_steps(qy):
    """One with which it begins, and one with which it ends."""
    for number in range(5):  # its template is known then
        qy.sql(SMALL.format(number)).fetchall()
    counts = []
    for number in range(5, 25):
        before = qy.report().decisions
        handle = qy.submit(SMALL.format(number))
        assert handle.result().fetchall()
        assert handle.wait(20)
        counts.append(qy.report().decisions - before)
    # Threads that are held up, as on a busy machine, may post the parts of an end one by one.
    assert sorted(counts)[len(counts) // 4] == 2


def test_a_template_that_is_known_as_short_and_takes_longer_has_all_slots(qy):
    sql = "SELECT sum(hash(a.range + b.range)::HUGEINT) FROM range({}) a, range(1000) b"
    for number in range(1, 6):
        qy.sql(sql.format(number)).fetchall()
    handle = qy.submit(sql.format(3_000_000))
    wait_until(lambda: max((each.slots for each in qy.queries()), default=0) >= 2)
    handle.cancel()
