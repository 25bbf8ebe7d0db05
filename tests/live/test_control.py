"""Sessions that answer other processes: their list, errors, and files after a crash."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine.native_driving import write_facts
from waiting import wait_until

import queryard
from queryard.cli.asking import NoAnswer, Remote, remotes
from queryard.core.errors import QueryardError
from queryard.live import control

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


def test_it_tells_which_queries_run_and_which_wait(session: queryard.Session, kept: Path) -> None:
    runs = session.submit(LONG.format(1), tenant="web")
    waits = session.submit(LONG.format(2), tenant="batch", deadline="5 min")
    wait_until(lambda: runs.status == "running", 20.0)
    first, second = only(kept).ask("queries")
    assert (first["id"], first["tenant"], first["status"]) == (runs.id, "web", "running")
    assert (second["id"], second["status"], second["slots"]) == (waits.id, "waiting", 0)
    assert second["deadline_s"] > 200
    assert only(kept).ask("forecasts")[runs.id]["end_s"] is not None
    assert first["now_s"] >= first["submitted_s"]


def test_it_tells_why(session: queryard.Session, kept: Path) -> None:
    runs, waits = session.submit(LONG.format(1)), session.submit(LONG.format(2))
    wait_until(lambda: runs.status == "running", 20.0)
    told = only(kept).ask("why", query=waits.id)
    assert (told["query"], told["status"]) == (waits.id, "waiting")
    assert waits.id in told["text"]
    assert told["reasons"]
    with pytest.raises(QueryardError, match="active query"):
        only(kept).ask("why", query="unknown-1")


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


class Slow:
    """A session that thinks about `why` until it is told to go on."""

    def __init__(self) -> None:
        self.profile = {"name": "slow"}
        self.go_on = threading.Event()

    def why(self, query: str) -> None:
        self.go_on.wait(60.0)
        raise QueryardError("thought enough")

    def queries(self) -> tuple[()]:
        return ()

    def now(self) -> float:
        return 1.0


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Slow]:
    asked = Slow()
    listening = control.Control(tmp_path, "slow", lambda: asked)  # type: ignore[arg-type,return-value]
    yield asked
    asked.go_on.set()
    listening.close()


def test_a_question_that_takes_long_keeps_no_other_waiting(slow: Slow, tmp_path: Path) -> None:
    late: list[BaseException] = []

    def ask() -> None:
        try:
            only(tmp_path).ask("why", query="q1", within_s=60.0)
        except BaseException as error:
            late.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert only(tmp_path).ask("queries", within_s=30.0) == []
    assert not late
    slow.go_on.set()
    for thread in threads:
        thread.join(30.0)
    assert [str(error) for error in late] == ["thought enough"] * 3


def test_a_session_that_does_not_answer_in_time_is_told_as_open(slow: Slow, tmp_path: Path) -> None:
    remote = only(tmp_path)
    with pytest.raises(NoAnswer) as told:
        remote.ask("why", query="q1", within_s=0.05)
    assert str(told.value).startswith(
        f"session slow (process {os.getpid()}) is open but has not answered within 0.05 s"
    )


def ask_again_and_again(remote: Remote) -> None:
    for _ in range(100):
        remote.ask("profile", within_s=30.0)


def test_too_many_questions_at_a_time_are_turned_away(
    slow: Slow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "MOST_CALLS", 2)
    remote = only(tmp_path)
    # The call by which it was found is over.
    wait_until(lambda: "queryard-control-call" not in {t.name for t in threading.enumerate()}, 30.0)
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            caller = stack.enter_context(socket.socket(socket.AF_UNIX))
            caller.connect(address(tmp_path))
            caller.sendall(b'{"ask": "why", "query": "q1"}\n')
        with pytest.raises(QueryardError, match="2 questions are being answered"):
            ask_again_and_again(remote)


def test_a_caller_that_says_nothing_or_is_too_slow_is_dropped(
    slow: Slow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "CALL_S", 0.2)
    with (
        socket.socket(socket.AF_UNIX) as silent,
        socket.socket(socket.AF_UNIX) as trickles,
    ):
        silent.connect(address(tmp_path))
        trickles.connect(address(tmp_path))
        with contextlib.suppress(OSError):
            while True:
                trickles.sendall(b" ")
                time.sleep(0.02)
        silent.settimeout(30.0)
        assert silent.recv(100) == b""
    assert only(tmp_path).ask("profile", within_s=30.0) == {"name": "slow"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"x" * (control._LONGEST_BYTES + 10), "longer than"),
        (b"[" * 100_000 + b"\n", "no line of JSON"),
        (b"\xff\xfe\n", "no line of JSON"),
        (b'{"ask": "why"', "in the middle"),
        (b'{"ask": ["why"]}\n', "question"),
        (b'{"ask": "dance"}\n', "valid: cancel, "),
    ],
)
def test_what_is_wrong_with_a_question_is_said(
    slow: Slow, tmp_path: Path, line: bytes, problem: str
) -> None:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(address(tmp_path))
        caller.settimeout(30.0)
        with contextlib.suppress(BrokenPipeError):
            caller.sendall(line)
            caller.shutdown(socket.SHUT_WR)
        answer = caller.recv(100_000)
    assert problem in json.loads(answer)["error"]
    assert only(tmp_path).ask("profile", within_s=30.0) == {"name": "slow"}


def test_a_session_goes_on_listening_when_a_call_could_not_be_taken(
    slow: Slow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the process has too many open files for a moment."""
    took = socket.socket.accept
    failures = iter([OSError(24, "Too many open files")] * 2)

    def accept(self: socket.socket) -> object:
        for failure in failures:
            raise failure
        return took(self)

    monkeypatch.setattr(socket.socket, "accept", accept)
    for _ in range(3):
        assert only(tmp_path).ask("profile", within_s=30.0) == {"name": "slow"}
    assert not list(failures)


def test_a_session_of_another_machine_is_left_alone(kept: Path) -> None:
    notes = kept / control.NOTES
    notes.mkdir(parents=True)
    told = {"pid": 1, "socket": "/nowhere/s", "machine": "elsewhere 0000"}
    (notes / "x.json").write_text(json.dumps(told))
    assert list(remotes(kept)) == []
    assert (notes / "x.json").exists()


def test_notes_and_their_folders_are_their_users_only(place: Path, kept: Path) -> None:
    before = os.umask(0)
    try:
        with queryard.connect(place, slots=1, memory="2 GB"):
            (note,) = (kept / control.NOTES).glob("*.json")
            modes = [stat.S_IMODE(path.stat().st_mode) for path in (kept, note.parent, note)]
    finally:
        os.umask(before)
    assert modes == [0o700, 0o700, 0o600]


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


def test_closing_while_a_process_asks(place: Path, kept: Path) -> None:
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


def killed(place: Path, kept: Path, temp: Path) -> Path:
    """The folder of the socket of a session that was killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(place)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCES), "TMPDIR": str(temp)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    assert only(kept).pid == process.pid
    where = Path(address(kept))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert where.is_socket()
    assert where.is_relative_to(temp)
    return where.parent


@pytest.fixture
def temp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files of these tests only, with a short name."""
    made = Path(tempfile.mkdtemp(prefix="qt"))
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    yield made
    shutil.rmtree(made)


def test_what_a_killed_session_left_is_removed_by_a_process_that_asks(
    place: Path, kept: Path, temp: Path
) -> None:
    folder = killed(place, kept, temp)
    assert list(remotes(kept)) == []
    assert not list((kept / control.NOTES).iterdir())
    assert not folder.exists()


def test_what_a_killed_session_left_is_removed_by_the_next_one(
    place: Path, kept: Path, temp: Path, tmp_path: Path
) -> None:
    """Also if that is on other data."""
    folder = killed(place, kept, temp)
    (tmp_path / "other").mkdir()
    write_facts(tmp_path / "other", 10)
    with queryard.connect(tmp_path / "other", slots=1):
        assert not folder.exists()


def test_what_earlier_versions_left_is_removed_if_it_is_a_socket_that_is_dead(
    place: Path, temp: Path
) -> None:
    def former(name: str) -> Path:
        folder = temp / f"queryard-{name}"
        folder.mkdir(mode=0o700)
        return folder

    dead, living, other, more = map(former, ("dead0000", "living00", "other000", "more0000"))
    (other / "s").write_text("no socket")
    with socket.socket(socket.AF_UNIX) as ends, socket.socket(socket.AF_UNIX) as listens:
        ends.bind(str(dead / "s"))
        ends.listen()
        listens.bind(str(living / "s"))
        listens.listen()
        with socket.socket(socket.AF_UNIX) as beside:
            beside.bind(str(more / "s"))
        (more / "mine").write_text("a file")
        ends.close()
        with queryard.connect(place, slots=1):
            left = sorted(path.name for path in temp.glob("queryard-????????"))
    assert left == ["queryard-living00", "queryard-more0000", "queryard-other000"]


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


def test_a_session_without_its_folder_closes_well(place: Path, kept: Path) -> None:
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
