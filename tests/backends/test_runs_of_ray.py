"""What becomes of a native run when its node is lost, at every moment of its life."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from queryard.backends.protocol import Leased, RunEnded
from queryard.backends.ray.messages import (
    Credit,
    Execute,
    Forget,
    Lease,
    RowsBegan,
    RowsCame,
    RowsEnded,
)
from queryard.backends.ray.rows_out import WINDOW_BYTES, RowsOut
from queryard.backends.ray.runs import NodeGone, Runs
from queryard.core.commands import Grant
from queryard.core.events import LeaseEnded
from queryard.results.streams import ResultStream

BATCH = pa.record_batch({"n": [1, 2, 3]})
JOB = "q/native"


class Yard:
    """Runs, links that note what is sent, and what is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.runs = Runs(lambda link: None)
        self.runs.begin(self.told.append)
        self.output = ResultStream()
        self.runs.add("q", Leased("q", 2, self.output, "statement"))

    def link(self, name: str) -> Any:
        sent: list[Any] = []
        return SimpleNamespace(name=name, sent=sent, send=sent.append)

    def rows(self, *events: Any) -> None:
        run = self.runs.find("q")
        assert run is not None
        for each in events:
            run.note_rows(each)
            run.hear_rows(each, run.link)

    def ends(self) -> list[tuple[int, str]]:
        return [(e.slots, e.outcome) for e in self.told if isinstance(e, LeaseEnded)]


@pytest.fixture
def yard() -> Yard:
    return Yard()


COLUMNS = RowsBegan("q", BATCH.schema, ("BIGINT",), "rows")
SOME = RowsCame("q", BATCH, BATCH.nbytes)


@pytest.mark.parametrize("before", [(), (COLUMNS,)])
def test_without_rows_it_begins_again_where_it_is_granted_a_slot(yard, before):
    first, second = yard.link("n1"), yard.link("n2")
    yard.runs.grant(Grant(JOB, "n1", 2), first)
    yard.rows(*before)
    yard.runs.lose(first, "power")
    assert yard.told == []
    yard.runs.grant(Grant(JOB, "n2", 1), second)
    assert second.sent[0] == Lease("q", 2, "statement")
    yard.rows(COLUMNS, SOME, RowsEnded("q"))
    assert [batch.num_rows for batch in yard.output] == [3]


def test_rows_that_no_reader_has_taken_come_again(yard):
    yard.output = ResultStream(limit_bytes=BATCH.nbytes)
    yard.runs.add("q", Leased("q", 2, yard.output, "statement"))
    first, second = yard.link("n1"), yard.link("n2")
    yard.runs.grant(Grant(JOB, "n1", 2), first)
    yard.rows(COLUMNS, SOME)
    yard.runs.lose(first, "power")
    assert yard.told == []
    assert (yard.output.rows, yard.output.full) == (0, False)
    # What the lost node had sent before is heard of only now.
    yard.runs.find("q").hear_rows(SOME, first)
    yard.runs.grant(Grant(JOB, "n2", 1), second)
    yard.runs.find("q").hear_rows(SOME, first)
    yard.rows(COLUMNS, SOME)
    yard.runs.find("q").note_rows(RowsEnded("q"))
    yard.runs.find("q").hear_rows(SOME, first)
    yard.rows(RowsEnded("q"))
    assert [batch.num_rows for batch in yard.output] == [3]
    # It began again with the credit of a fresh run.
    assert second.sent[1:] == [Execute(Grant(JOB, "n2", 1)), Credit("q", BATCH.nbytes)]


def test_an_answer_that_is_whole_when_its_node_is_lost_is_finished(yard):
    link = yard.link("n1")
    yard.runs.grant(Grant(JOB, "n1", 1), link)
    yard.rows(COLUMNS, SOME)
    run = yard.runs.find("q")
    run.note_rows(RowsEnded("q"))
    yard.runs.lose(link, "power")
    run.hear_rows(RowsEnded("q"), link)
    assert [batch.num_rows for batch in yard.output] == [3]
    assert yard.told[0] == RunEnded("q", None, True)


def test_with_some_rows_read_it_fails_and_every_slot_comes_back(yard):
    link = yard.link("n1")
    yard.runs.grant(Grant(JOB, "n1", 2), link)
    yard.rows(COLUMNS, SOME)
    yard.output.next(0)
    yard.runs.lose(link, "power")
    ended = yard.told[0]
    assert isinstance(ended, RunEnded)
    assert isinstance(ended.error, NodeGone)
    assert "n1" in str(ended.error)
    assert "power" in str(ended.error)
    assert yard.ends() == [(1, "failed"), (1, "failed")]


def test_with_all_rows_out_it_has_finished(yard):
    link = yard.link("n1")
    yard.runs.grant(Grant(JOB, "n1", 1), link)
    yard.rows(COLUMNS, SOME, RowsEnded("q"))
    yard.runs.lose(link, "power")
    assert yard.told[0] == RunEnded("q", None, True)
    assert yard.ends() == [(1, "finished")]


@pytest.mark.parametrize("error", [None, ValueError("no such column")])
def test_an_end_that_was_told_in_part_is_told_in_full(yard, error):
    link = yard.link("n1")
    outcome = "finished" if error is None else "failed"
    yard.runs.grant(Grant(JOB, "n1", 2), link)
    yard.runs.hear(RunEnded("q", error, False))
    yard.runs.hear(LeaseEnded(0.0, JOB, "n1", 1, outcome))
    yard.runs.lose(link, "power")
    assert yard.ends() == [(1, outcome), (1, outcome)]
    assert len([event for event in yard.told if isinstance(event, RunEnded)]) == 1


@pytest.mark.parametrize("again", ["n1", "n2"])
def test_a_run_that_failed_begins_anew_where_it_is_granted_a_slot(yard, again):
    links = {name: yard.link(name) for name in ("n1", "n2")}
    yard.runs.grant(Grant(JOB, "n1", 1), links["n1"])
    yard.rows(COLUMNS)
    yard.runs.hear(RunEnded("q", OSError("disk"), True))
    yard.runs.hear(LeaseEnded(0.0, JOB, "n1", 1, "failed"))
    assert (yard.told[0].node, yard.told[0].rows_out) == ("n1", False)
    yard.runs.grant(Grant(JOB, again, 1), links[again])
    assert Forget("q") in links["n1"].sent
    assert isinstance(links[again].sent[-2], Lease)
    yard.rows(SOME, RowsEnded("q"))
    yard.runs.hear(RunEnded("q", None, True))
    assert (yard.told[-1].error, yard.told[-1].node) == (None, again)


def test_a_node_is_told_of_room_once_the_reader_has_some(yard):
    link = yard.link("n1")
    yard.output = ResultStream(limit_bytes=BATCH.nbytes)
    yard.runs.add("q", Leased("q", 2, yard.output, "statement"))
    yard.runs.grant(Grant(JOB, "n1", 1), link)
    yard.rows(COLUMNS, SOME)
    assert yard.output.full
    assert Credit("q", BATCH.nbytes) not in link.sent
    yard.output.next()
    assert Credit("q", BATCH.nbytes) in link.sent


def test_a_query_at_a_node_waits_while_much_is_under_way():
    told: list[Any] = []
    woken: list[bool] = []
    out = RowsOut("q", told.append)
    out.wakes = lambda: woken.append(True)
    large = pa.record_batch({"n": pa.array(range(WINDOW_BYTES // 8 + 1), pa.int64())})
    out.put(BATCH)
    assert not out.full
    out.put(large)
    assert out.full
    out.has_room(BATCH.nbytes + large.nbytes)
    assert (out.full, woken, len(told)) == (False, [True], 2)
