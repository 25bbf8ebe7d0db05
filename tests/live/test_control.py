"""Sessions that answer other processes: who is there, what is wrong, what they leave behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine.native_driving import wait_until, write_facts

import queryard
from queryard.core.errors import QueryardError
from queryard.live import control
from queryard.live.control import Remote, remotes

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no such sockets here")
SOURCES = Path(__file__).parents[2] / "src"
LONG = "SELECT sum(hash(words, r)::HUGEINT), {} FROM facts, range(9999) t(r)"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_facts(tmp_path, 20_000)
    return tmp_path


@pytest.fixture
def kept(place: Path) -> Path:
    return place / ".queryard"


@pytest.fixture
def session(place: Path) -> Iterator[queryard.Session]:
    with queryard.connect(place, slots=1, memory="2 GB") as made:
        yield made


def only(kept: Path) -> Remote:
    (found,) = remotes(kept)
    return found


def address(kept: Path) -> str:
    (note,) = (kept / control.NOTES).glob("*.json")
    return str(json.loads(note.read_text())["socket"])


def test_an_open_session_is_found_and_a_closed_one_is_not(place: Path, kept: Path) -> None:
    assert list(remotes(kept)) == []
    with queryard.connect(place, slots=1, memory="2 GB") as session:
        remote = only(kept)
        assert remote.pid == os.getpid()
        handle = session.submit("SELECT 1")
        assert handle.id.startswith(remote.session)
        where = Path(address(kept))
        assert where.is_socket()
    assert list(remotes(kept)) == []
    assert not where.exists()
    assert not where.parent.exists()
    assert not list((kept / control.NOTES).iterdir())


def test_only_its_user_may_call_a_session(session: queryard.Session, kept: Path) -> None:
    folder = Path(address(kept)).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_it_tells_who_runs_and_who_waits(session: queryard.Session, kept: Path) -> None:
    runs = session.submit(LONG.format(1), tenant="web")
    waits = session.submit(LONG.format(2), tenant="batch", deadline="5 min")
    wait_until(lambda: runs.status == "running", 20.0)
    first, second = only(kept).ask("queries")
    assert (first["id"], first["tenant"], first["status"]) == (runs.id, "web", "running")
    assert (second["id"], second["status"], second["slots"]) == (waits.id, "waiting", 0)
    assert second["deadline_s"] > 200
    assert first["forecast_end_s"] is not None
    assert first["now_s"] >= first["submitted_s"]


def test_it_tells_why(session: queryard.Session, kept: Path) -> None:
    runs, waits = session.submit(LONG.format(1)), session.submit(LONG.format(2))
    wait_until(lambda: runs.status == "running", 20.0)
    told = only(kept).ask("why", query=waits.id)
    assert (told["query"], told["status"]) == (waits.id, "waiting")
    assert waits.id in told["text"]
    assert told["reasons"]
    with pytest.raises(QueryardError, match="query on its way"):
        only(kept).ask("why", query="nobody-1")


def test_it_changes_the_policy(session: queryard.Session, kept: Path) -> None:
    from queryard.policies import resolve_profile

    assert only(kept).ask("profile")["name"] == "marshal"
    assert only(kept).ask("profile", profile=dict(resolve_profile("srtf")))["name"] == "srtf"
    assert session.profile["name"] == "srtf"
    with pytest.raises(QueryardError, match="nonsense"):
        only(kept).ask("profile", profile={"order": "nonsense"})
    assert session.profile["name"] == "srtf"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"no json\n",
        b"[]\n",
        b"17\n",
        b"{}\n",
        b'{"ask": "dance"}\n',
        b'{"ask": "why"}\n',
    ],
)
def test_nonsense_does_not_end_the_conversation(
    session: queryard.Session, kept: Path, line: bytes
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.connect(address(kept))
        caller.sendall(line)
        caller.shutdown(socket.SHUT_WR)
        caller.settimeout(10.0)
        answer = caller.recv(10_000)
    assert not answer or "error" in json.loads(answer)
    assert only(kept).ask("profile")["name"] == "marshal"


def test_a_caller_who_says_nothing_does_not_keep_others_waiting_for_long(
    session: queryard.Session, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "CALL_S", 0.2)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.connect(address(kept))
        began = time.monotonic()
        assert only(kept).ask("profile")["name"] == "marshal"
        assert time.monotonic() - began < 10.0


def test_callers_at_the_same_time_are_all_answered(session: queryard.Session, kept: Path) -> None:
    handle = session.submit(LONG.format(1))
    answers: list[str] = []

    def ask() -> None:
        answers.extend([only(kept).ask("queries")[0]["id"] for _ in range(5)])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [handle.id] * 20


def test_closing_while_somebody_asks(place: Path, kept: Path) -> None:
    for _ in range(5):
        session = queryard.connect(place, slots=1, memory="2 GB")
        handle = session.submit(LONG.format(1))
        over = threading.Event()
        odd: list[BaseException] = []

        def ask(over: threading.Event = over, odd: list[BaseException] = odd) -> None:
            while not over.is_set():
                try:
                    for remote in remotes(kept):
                        remote.ask("queries")
                except (OSError, QueryardError):
                    pass
                except BaseException as error:
                    odd.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(0.05)
        began = time.monotonic()
        session.close()
        assert time.monotonic() - began < 8.0
        over.set()
        thread.join()
        assert not odd
        assert handle.ended
    names = [thread.name for thread in threading.enumerate()]
    assert "queryard-control" not in names


def test_two_sessions_on_the_same_data_both_answer(place: Path, kept: Path) -> None:
    with (
        queryard.connect(place, slots=1, memory="2 GB"),
        queryard.connect(place, slots=1, memory="2 GB", profile="fifo"),
    ):
        names = sorted(remote.ask("profile")["name"] for remote in remotes(kept))
        assert names == ["fifo", "marshal"]


KILLED = """
import sys, time, queryard
session = queryard.connect(sys.argv[1], slots=1, memory="2 GB")
print("ready", flush=True)
time.sleep(60)
"""


def test_what_a_killed_session_left_is_removed_by_who_finds_it(place: Path, kept: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(place)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    assert only(kept).pid == process.pid
    where = Path(address(kept))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert where.is_socket()
    assert list(remotes(kept)) == []
    assert not list((kept / control.NOTES).iterdir())
    assert not where.parent.exists()


def test_notes_that_are_no_notes_are_passed_over(session: queryard.Session, kept: Path) -> None:
    notes = kept / control.NOTES
    (notes / "a.json").write_text("no json")
    (notes / "b.json").write_text("[]")
    (notes / "c.json").write_text('{"pid": "x", "socket": "/nowhere"}')
    assert only(kept).pid == os.getpid()


def test_a_note_cannot_make_anybody_remove_other_files(kept: Path, tmp_path: Path) -> None:
    precious = tmp_path / "queryard-mine"
    precious.mkdir()
    (precious / "s").write_text("mine")
    notes = kept / control.NOTES
    notes.mkdir(parents=True)
    (notes / "x.json").write_text(json.dumps({"pid": 1, "socket": str(precious / "s")}))
    assert list(remotes(kept)) == []
    assert (precious / "s").read_text() == "mine"


def test_a_session_whose_folder_is_gone_closes_well(place: Path, kept: Path) -> None:
    session = queryard.connect(place, slots=1, memory="2 GB", history=place / "h.sqlite")
    session.sql("SELECT 1").fetchall()
    shutil.rmtree(kept)
    kept.write_text("a file now")
    session.close()
    with pytest.raises(QueryardError, match="closed"):
        session.sql("SELECT 1")


def test_a_session_that_is_forgotten_stops_listening(place: Path, kept: Path) -> None:
    session = queryard.connect(place, slots=1, memory="2 GB")
    session.sql("SELECT 1").fetchall()
    assert only(kept)
    del session
    wait_until(lambda: list(remotes(kept)) == [], 20.0)
    names = [thread.name for thread in threading.enumerate()]
    assert "queryard-control" not in names


@pytest.mark.parametrize("options", [{"history": False}, {"tables": True}])
def test_a_session_that_leaves_nothing_beside_the_data_is_found_in_the_cache(
    place: Path, kept: Path, tmp_path: Path, options, monkeypatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    if options.pop("tables", False):
        asked = queryard.connect(tables={"facts": str(place / "facts.parquet")}, slots=1)
    else:
        asked = queryard.connect(place, slots=1, **options)
    with asked:
        assert not list(remotes(kept))
        remote = only(cache / "queryard")
        assert remote.ask("profile")["name"] == "marshal"
    assert not list(remotes(cache / "queryard"))
