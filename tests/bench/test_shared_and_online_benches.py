"""The benches of shared scans and online answers run from end to end on next to no data."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.online import answers, together
from bench.shared import segments, ten_aggregations
from bench.shared.waits import Parsed, mean_waits, waits_of
from queryard.core.commands import Grant, Launch
from queryard.core.events import LeaseEnded, QuerySubmitted, TaskFinished
from queryard.core.journal import Journal, Step
from queryard.core.model import MAP, Job, Phase, Query, TaskId
from queryard.core.state import Settings

SCALE = "--scale=0.002"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


def test_ten_aggregations_print_their_rows_and_what_each_waited_for(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ten_aggregations.main([SCALE, f"--data={data}", "--only=csv"])
    told = capsys.readouterr().out
    for row in ("at once ", "segments kept", "over half a scan ", "MRShare's batches"):
        assert row in told
    assert told.count("mean seconds: planning") == 6


def test_costs_of_segments_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    segments.main([SCALE, "--repeats=1", "--formats=json"])
    assert "shared/plain" in capsys.readouterr().out


def test_online_answers_are_measured(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers.main([SCALE, f"--data={data}", "--repeats=1", "--only=q6"])
    assert "q6" in capsys.readouterr().out


@pytest.mark.long
def test_twenty_online_queries_are_measured(data: Path) -> None:
    together.main([SCALE, f"--data={data}", "--repeats=1"])


def journal_of(*steps: Step) -> Journal:
    journal = Journal(Settings(), {"name": "fifo"})
    journal.steps.extend(steps)
    return journal


def test_a_response_is_divided_into_what_it_waited_for() -> None:
    jobs = (Job("scan", map=Phase(2)),)
    entered = [QuerySubmitted(1.0, Query(name, jobs)) for name in ("q", "other")]

    def launch(number: int, *indices: int) -> Launch:
        tasks = [TaskId("q/scan", MAP, index) for index in indices]
        return Launch(number, "n", (*tasks, TaskId("other/scan", MAP, 0)))

    journal = journal_of(
        Step(1.0, tuple(entered), ()),
        Step(3.0, (), (launch(1, 0),)),
        Step(6.0, (TaskFinished(6.0, 1),), ()),
        Step(7.0, (), (launch(2, 1),)),
        Step(8.0, (TaskFinished(8.0, 2),), ()),
    )
    # The first segment is parsed for 2 s; that of another number is no concern of the query.
    parsed = [Parsed(0, (3.0, 5.0)), Parsed(5, (7.0, 8.0))]
    found = waits_of("q", journal, parsed, (0.5, 8.5))
    assert found == (0.5, 3.0, 2.0, 2.0, 0.5)
    assert sum(found) == 8.0
    assert mean_waits(journal, parsed, {}) is None


def test_of_a_query_that_duckdb_runs_the_time_with_slots_is_its_ride() -> None:
    journal = journal_of(
        Step(1.0, (QuerySubmitted(1.0, Query("q", (Job("query", map=Phase(1)),))),), ()),
        Step(2.0, (), (Grant("q/query", "n", 1),)),
        Step(3.0, (), (Grant("q/query", "n", 1),)),
        Step(4.0, (LeaseEnded(4.0, "q/query", "n", 1, "revoked"),), ()),
        Step(5.0, (LeaseEnded(5.0, "q/query", "n", 1, "finished"),), ()),
    )
    assert waits_of("q", journal, [], (1.0, 5.0)) == (0.0, 1.0, 0.0, 3.0, 0.0)
    # What an identical query answers has no slots of its own.
    assert waits_of("twin", journal, [], (1.0, 5.0)) == (4.0, 0.0, 0.0, 0.0, 0.0)
