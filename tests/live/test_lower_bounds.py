"""Queries that were stopped, or still run, took at least as much: their like is expected to."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from waiting import wait_until

import queryard
from queryard.engine.errors import QueryTimedOut
from queryard.history import HistoryReader

# A million by a million rows, and a function that no plan tells the price of.
CROSS = "SELECT count(*) FROM numbers a, numbers b WHERE hash(a.n, b.n) = 1"


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    duckdb.sql(f"COPY (SELECT range AS n FROM range(1000000)) TO '{tmp_path}/numbers.parquet'")
    return tmp_path


def expected_s(handle: queryard.Handle) -> float:
    return handle._ticket.facts.expected_s


def test_a_query_that_was_taken_for_short_is_planned_as_soon_as_it_is_not(numbers: Path) -> None:
    with queryard.connect(numbers, slots=1, memory="1 GB", history=False) as session:
        handle = session.submit(CROSS)
        assert expected_s(handle) < 0.2
        wait_until(lambda: expected_s(handle) > 100.0, what="the plan")
        assert not handle.ended
        handle.cancel()
        # The next one is known before it begins.
        assert expected_s(session.submit(CROSS)) > 100.0


def test_what_was_cancelled_is_known_to_the_next_of_its_template_and_to_later_sessions(
    numbers: Path, tmp_path: Path
) -> None:
    file = tmp_path / "history.sqlite"
    # Its plan is not looked at: a table of the session's own could be anything.
    own = "CREATE TEMP TABLE own AS SELECT * FROM numbers"
    cross = CROSS.replace("numbers", "own")
    with queryard.connect(numbers, slots=1, memory="1 GB", history=file) as session:
        session.sql(own)
        first = session.submit(cross)
        wait_until(lambda: first.timing.work_s > 0.5, what="some work")
        first.cancel()
        assert first.wait(20.0)
        second = session.submit(cross)
        assert expected_s(second) > 0.5
        second.cancel()
        assert second.wait(20.0)
    with HistoryReader(file) as reader:
        (stopped,) = [row for row in reader.past() if row.work_s > 0.4]
        assert stopped.outcome == "cancelled"
    with queryard.connect(numbers, slots=1, memory="1 GB", history=file) as session:
        session.sql(own)
        third = session.submit(cross)
        wait_until(lambda: expected_s(third) > stopped.work_s, what="the past")
        third.cancel()


def test_a_time_limit_is_a_lower_bound_as_well(numbers: Path, tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite"
    with queryard.connect(numbers, slots=1, memory="1 GB", history=file) as session:
        handle = session.submit(CROSS, time_limit="1 s")
        with pytest.raises(QueryTimedOut):
            handle.result(20.0)
        assert handle.wait(20.0)
    with HistoryReader(file) as reader:
        (row,) = reader.past()
        assert row.outcome == "cancelled"
        assert row.work_s > 0.1


def test_those_that_wait_learn_from_one_of_their_template_that_runs(numbers: Path) -> None:
    # How long a list is that is computed, no plan tells.
    lists = (
        "SELECT count(*) FROM (SELECT n, unnest(range(9000)) AS v FROM numbers) WHERE n + v = {}"
    )
    with queryard.connect(
        numbers, slots=1, memory="1 GB", history=False, profile="fifo"
    ) as session:
        running = session.submit(lists.format(1))
        waiting = session.submit(lists.format(2))
        wait_until(lambda: expected_s(waiting) > 2.0, what="a higher estimate")
        assert waiting.status == "waiting"
        assert not running.ended
        waiting.cancel()
        running.cancel()
