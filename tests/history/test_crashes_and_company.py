"""Processes that are killed, several that write, and some that read meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from history_samples import asked_row, is_sound, record, session_row
from waiting import turns_until

from queryard.history import History, HistoryReader

SAMPLES = Path(__file__).parent

# Asks 200 times a second and says each time how far it is.
WRITES_ON = """
import sys, time
sys.path.insert(0, sys.argv[1])
from history_samples import asked_row, session_row, steps_of
from queryard.history import History
history = History.open(sys.argv[2])
history.begin(session_row(sys.argv[3]))
history.flush()
number = 0
while number < int(sys.argv[4]):
    number += 1
    for step in steps_of(f"q{number}", number * 10.0):
        history.step(step)
    history.asked(asked_row(f"q{number}", float(number)))
    print(number, time.monotonic(), flush=True)
    time.sleep(0.005)
history.close()
assert history.error is None, history.error
"""


def _start(file: Path, session: str, most: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITES_ON, str(SAMPLES), str(file), session, str(most)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal here")
@pytest.mark.parametrize("after_s", [0.7, 1.31, 1.97])
def test_a_killed_process_loses_at_most_the_last_second(file: Path, after_s: float) -> None:
    process = _start(file, "killed", 10**6)
    assert process.stdout is not None
    said = [process.stdout.readline()]
    time.sleep(after_s)
    process.kill()
    killed_s = time.monotonic()
    said += process.stdout.readlines()
    process.wait()
    process.stdout.close()
    due = [int(n) for n, at in map(str.split, filter(_is_whole, said)) if float(at) < killed_s - 1]
    with HistoryReader(file) as reader:
        sessions = reader.sessions()
        if due:
            kept = [row.query for row in reader.queries()]
            assert len(kept) >= due[-1]
            assert kept == [f"q{number}" for number in range(1, len(kept) + 1)]
            # A step and what is read off it are there together, or not at all.
            assert len(reader.jobs("killed")) == len(
                [s for s in reader.journal("killed").steps if s.commands and s.time_s % 10 == 0]
            )
        assert all(session.closed_at is None for session in sessions)
    assert is_sound(file)
    record(file, "next")
    with HistoryReader(file) as reader:
        assert reader.session().session in ("next", "killed")
        assert len(reader.queries(session="next")) == 1


def _is_whole(line: str) -> bool:
    return line.endswith("\n") and len(line.split()) == 2


def test_what_was_open_when_the_process_was_killed_stays_open(file: Path) -> None:
    from history_samples import steps_of

    history = History.open(file)
    history.begin(session_row())
    for step in steps_of("q1")[:-1]:
        history.step(step)
    assert history.flush()
    with HistoryReader(file) as reader:
        (job,) = reader.jobs("s1")
        assert (job["started_s"], job["ended_s"], job["outcome"]) == (1.0, None, "")
        back, held = reader.leases("s1")
        assert (back["ended_s"], back["outcome"]) == (2.25, "revoked")
        assert held["ended_s"] is None
    history.close()


def test_two_processes_write_to_one_file(file: Path) -> None:
    processes = [_start(file, name, 150) for name in ("one", "two")]
    for process in processes:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert out.count("\n") == 150
    with HistoryReader(file) as reader:
        assert sorted(record.session for record in reader.sessions()) == ["one", "two"]
        for name in ("one", "two"):
            assert len(reader.queries(session=name)) == 150
            assert len(reader.journal(name).steps) == 600
    assert is_sound(file)


def test_readers_see_whole_transactions_while_a_session_writes(file: Path) -> None:
    process = _start(file, "busy", 400)
    seen = []
    for _ in turns_until(lambda: process.poll() is not None):
        if file.exists():
            with HistoryReader(file) as reader:
                if reader.sessions():
                    seen.append((len(reader.queries()), len(reader.journal("busy").steps)))
        time.sleep(0.05)
    process.communicate()
    assert process.returncode == 0
    assert seen == sorted(seen)
    assert len({queries for queries, _ in seen}) > 2
    with HistoryReader(file) as reader:
        assert len(reader.queries()) == 400


def test_a_reader_in_this_process_follows_the_writer(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row())
    history.flush()
    with HistoryReader(file) as reader:
        for number in range(1, 4):
            history.asked(asked_row(f"q{number}"))
            history.flush()
            assert len(reader.queries()) == number
    history.close()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do anything")
def test_a_history_in_a_folder_that_cannot_be_written_is_read(file: Path) -> None:
    record(file)
    file.parent.chmod(0o500)
    try:
        with HistoryReader(file) as reader:
            assert len(reader.queries()) == 1
    finally:
        file.parent.chmod(0o700)
