"""What several tasks do together is stopped once all of them must stop, and no earlier."""

from __future__ import annotations

import threading

import duckdb
import pytest

from queryard.engine.errors import QueryCancelled
from queryard.engine.staged.cancellation import Cancellation, Together

LONG = "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"


def test_the_last_of_the_tasks_stops_a_statement_that_they_share():
    tasks = [Cancellation(), Cancellation()]
    together = Together(tasks)
    began, ended = threading.Event(), threading.Event()
    errors = []

    def run():
        with duckdb.connect(config={"threads": 1}) as cursor:
            try:
                with together.interrupting(cursor):
                    began.set()
                    cursor.execute(LONG).fetchall()
            except duckdb.InterruptException as error:
                errors.append(error)
            ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert began.wait(20)
    tasks[0].stop()  # returns at once: the other task goes on
    together.check()
    assert not ended.wait(0.1)
    tasks[1].stop(wait_s=20)
    thread.join(20)
    assert errors
    with pytest.raises(QueryCancelled):
        together.check()


def test_nothing_begins_when_all_have_been_stopped():
    task = Cancellation()
    task.ask()
    with (
        duckdb.connect() as cursor,
        pytest.raises(QueryCancelled),
        Together([task]).interrupting(cursor),
    ):
        pass
