"""Queries of sessions that were killed: they have no end, and are not on their way any more."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from history_samples import (
    NODE_STEP,
    asked_row,
    ended_row,
    record,
    session_row,
    steps_of,
)

from queryard.core.commands import Launch
from queryard.core.events import QuerySubmitted
from queryard.core.journal import Step
from queryard.core.model import MAP, Job, Phase, Query, TaskId
from queryard.history import History, HistoryReader, presence

pytestmark = pytest.mark.skipif(presence.fcntl is None, reason="no such locks here")
SAMPLES = Path(__file__).parent
DAY_S = 86_400.0

# One query that has ended, one that runs on two slots, one that waits.
HOLDS = """
import sys, time
sys.path.insert(0, sys.argv[1])
from history_samples import NODE_STEP, asked_row, ended_row, session_row, steps_of
from queryard.core.journal import Step
from queryard.history import History
history = History.open(sys.argv[2])
history.begin(session_row(sys.argv[3], time.time()))
history.step(NODE_STEP)
history.asked(asked_row("done", 1.0))
history.ended(ended_row("done", 2.0))
history.asked(asked_row("runs", 3.0))
for step in steps_of("runs", 3.0)[:3]:
    history.step(step)
history.step(Step(10.0, (), ()))
history.asked(asked_row("waits", 5.0))
assert history.flush()
print("ready", flush=True)
sys.stdin.readline()
history.close()
"""


def holder(file: Path, session: str = "held") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(SAMPLES), str(file), session],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def outcomes(file: Path, **which: object) -> dict[str, str]:
    with HistoryReader(file) as reader:
        return {row.query: row.outcome for row in reader.queries(**which)}  # type: ignore[arg-type]


def killed(file: Path) -> Path:
    kill(holder(file))
    return file


def test_a_query_is_open_while_its_session_lives_and_lost_once_it_was_killed(file: Path) -> None:
    process = holder(file)
    assert outcomes(file) == {"done": "finished", "runs": "open", "waits": "open"}
    kill(process)
    assert outcomes(file) == {"done": "finished", "runs": "lost", "waits": "lost"}
    assert list(outcomes(file, outcomes=["lost"])) == ["runs", "waits"]
    assert outcomes(file, outcomes=["open"]) == {}
    assert list(outcomes(file, limit=1)) == ["waits"]


def test_what_a_lost_query_held_is_the_least_it_needs(file: Path) -> None:
    with HistoryReader(killed(file)) as reader:
        _, runs, waits = reader.queries()
    assert (runs.ended_s, runs.response_s, runs.ran_s, runs.work_s) == (None, None, None, None)
    assert (runs.started_s, runs.waited_s) == (3.0, 0.0)
    # Two slots from 3 s on, of which one was given back at 4.25 s; the last step is of 10 s.
    assert runs.held_s == pytest.approx(1.25 + 7.0)
    assert "process of its session ended" in runs.error
    assert (waits.started_s, waits.waited_s, waits.held_s) == (None, None, 0.0)


def test_the_next_session_closes_what_a_killed_one_left(file: Path) -> None:
    with HistoryReader(killed(file)) as reader:
        shown = reader.queries()
    record(file, "next")
    connection = sqlite3.connect(file)
    rows = connection.execute(
        "SELECT query, outcome, time_s FROM ended WHERE session = 'held' ORDER BY query"
    ).fetchall()
    connection.close()
    assert rows == [("done", "finished", 2.0), ("runs", "lost", None), ("waits", "lost", None)]
    with HistoryReader(file) as reader:
        assert reader.queries(session="held") == shown
    record(file, "third")
    with HistoryReader(file) as reader:
        assert reader.queries(session="held") == shown


def test_only_finished_queries_are_learnt_from(file: Path) -> None:
    killed(file)
    record(file, "next")
    with HistoryReader(file) as reader:
        assert len(reader.past()) == 2


def test_a_session_tells_whether_it_was_killed(file: Path) -> None:
    record(file, "closed")
    process = holder(file)
    with HistoryReader(file) as reader:
        assert {row.session: row.lost for row in reader.sessions()} == {
            "closed": False,
            "held": False,
        }
    kill(process)
    record(file, "next")
    with HistoryReader(file) as reader:
        told = {row.session: (row.lost, row.closed_at is None) for row in reader.sessions()}
    assert told == {"closed": (False, False), "held": (True, True), "next": (False, False)}


def test_a_session_that_lives_is_not_closed_by_another(file: Path) -> None:
    process = holder(file)
    record(file, "next")
    assert outcomes(file, session="held")["runs"] == "open"
    process.communicate("end\n")
    assert process.returncode == 0


def test_a_session_of_this_process_is_not_taken_for_gone(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row("mine", time.time()))
    history.asked(asked_row("q1"))
    assert history.flush()
    record(file, "next")
    assert outcomes(file, session="mine") == {"q1": "open"}
    history.close()


def _told_by_another_machine(file: Path) -> None:
    (lock,) = file.with_name(f"{file.name}-sessions").iterdir()
    lock.write_text("elsewhere 0000-1111")


def _unseen(file: Path, session: str, days: float) -> None:
    connection = sqlite3.connect(file)
    connection.execute(
        "UPDATE sessions SET seen_at = ? WHERE session = ?", (time.time() - days * DAY_S, session)
    )
    connection.commit()
    connection.close()


def test_a_session_of_another_machine_is_gone_after_a_day_without_a_sign_of_life(
    file: Path,
) -> None:
    killed(file)
    _told_by_another_machine(file)
    assert outcomes(file)["runs"] == "open"
    record(file, "next")
    assert outcomes(file)["runs"] == "open"
    _unseen(file, "held", 1.1)
    assert outcomes(file)["runs"] == "lost"


def test_a_session_of_a_restarted_machine_is_gone(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(file)
    name = presence.this_machine().split()[0]
    monkeypatch.setattr(presence, "this_machine", lambda: f"{name} other-boot")
    assert outcomes(file)["runs"] == "lost"


def test_sessions_of_earlier_versions_are_gone_after_a_day_without_a_sign_of_life(
    file: Path,
) -> None:
    killed(file)
    (lock,) = file.with_name(f"{file.name}-sessions").iterdir()
    lock.unlink()
    assert outcomes(file)["runs"] == "open"
    _unseen(file, "held", 1.1)
    assert outcomes(file)["runs"] == "lost"


def test_a_session_that_was_taken_for_gone_and_lives_has_the_last_word(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row("asleep", time.time()))
    history.asked(asked_row("q1"))
    assert history.flush()
    _taken_for_gone(file, "asleep")
    record(file, "next")
    assert outcomes(file, session="asleep") == {"q1": "lost"}
    history.ended(ended_row("q1"))
    history.close()
    with HistoryReader(file) as reader:
        (found,) = reader.queries(session="asleep")
    assert found.outcome == "finished"


def test_lock_files_are_their_users_and_go_with_their_session(file: Path) -> None:
    folder = file.with_name(f"{file.name}-sessions")
    process = holder(file)
    (lock,) = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    process.communicate("end\n")
    assert not folder.exists()


def test_the_lock_file_of_a_killed_session_goes_after_a_day(file: Path) -> None:
    folder = file.with_name(f"{file.name}-sessions")
    killed(file)
    record(file, "next")
    assert [lock.name for lock in folder.iterdir()] == ["held"]
    _unseen(file, "held", 1.1)
    record(file, "third")
    assert not folder.exists()
    assert outcomes(file, session="held")["runs"] == "lost"


def test_where_nothing_can_be_written_lost_queries_are_shown_all_the_same(file: Path) -> None:
    killed(file)
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    before = file.read_bytes()
    file.chmod(0o400)
    file.parent.chmod(0o500)
    try:
        assert outcomes(file) == {"done": "finished", "runs": "lost", "waits": "lost"}
    finally:
        file.parent.chmod(0o700)
    assert file.read_bytes() == before


def _taken_for_gone(file: Path, session: str) -> None:
    (lock,) = file.with_name(f"{file.name}-sessions").iterdir()
    lock.unlink()
    _unseen(file, session, 2.0)


def test_staged_tasks_count_in_what_a_lost_query_held(file: Path) -> None:
    spec = Query("q1", (Job("scan", map=Phase(2)),), submit_s=1.0)
    launch = Launch(1, "local", (TaskId("q1/scan", MAP, 0),))
    history = History.open(file)
    history.begin(session_row("staged", time.time()))
    history.asked(asked_row("q1"))
    for step in (NODE_STEP, Step(1.0, (QuerySubmitted(1.0, spec),), (launch,)), Step(4.0, (), ())):
        history.step(step)
    assert history.flush()
    _taken_for_gone(file, "staged")
    with HistoryReader(file) as reader:
        (found,) = reader.queries()
    assert (found.outcome, found.started_s, found.held_s) == ("lost", 1.0, 3.0)
    history.close()


def test_ends_of_many_lost_queries_are_found_in_one_pass(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row("crowd", time.time()))
    for number in range(300):
        history.asked(asked_row(f"q{number}", float(number)))
        for step in steps_of(f"q{number}", float(number))[:2]:
            history.step(step)
    assert history.flush()
    _taken_for_gone(file, "crowd")
    with HistoryReader(file) as reader:
        rows = reader.queries()
    assert {row.outcome for row in rows} == {"lost"}
    assert all(row.held_s is not None and row.held_s >= 2.0 for row in rows)
    history.close()
