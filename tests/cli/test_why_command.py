"""`queryard why` and `queryard profile` talk to a session that another process holds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from queryard.core.errors import QueryardError

SOURCES = Path(__file__).parents[2] / "src"

# Two long queries on one slot, and a short one before that has ended; it obeys line by line.
HOLDS = """
import sys, queryard
session = queryard.connect(sys.argv[1], slots=1, memory="2 GB", profile=sys.argv[2])
done = session.submit("SELECT count(*) FROM numbers", tenant="web")
done.result().fetchall(); done.wait()
bad = session.submit("SELECT error('out of luck') FROM numbers", tenant="web")
bad.wait()
long = "SELECT sum(hash(n, r)::HUGEINT), {} FROM numbers, range(1000000) t(r)"
first = session.submit(long.format("'[/red]'"), tenant="web")
second = session.submit(long.format(2), tenant="night/batch", deadline="10 min")
while first.status != "running":
    pass
session.host._recorder.history.flush()
print(done.id, bad.id, first.id, second.id, flush=True)
for line in sys.stdin:
    if line == "profile\\n":
        print(session.profile["name"], flush=True)
    elif line == "close\\n":
        session.close()
        print("closed", flush=True)
"""


class Holder:
    """A process with a session."""

    def __init__(self, place: Path, profile: str = "fifo") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDS, str(place), profile],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )
        assert self.process.stdout is not None
        self.done, self.bad, self.first, self.second = self.process.stdout.readline().split()
        self.session = self.first.rpartition("-")[0]

    def say(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("held")
    pq.write_table(pa.table({"n": list(range(10_000))}), made / "numbers.parquet")
    return made


@pytest.fixture(scope="module")
def holder(place: Path) -> Iterator[Holder]:
    made = Holder(place)
    yield made
    made.end()


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """A place where no session is open."""
    pq.write_table(pa.table({"n": list(range(10_000))}), tmp_path / "numbers.parquet")
    return tmp_path


# --- why -----------------------------------------------------------------------------------------


def test_all_queries_on_their_way_are_listed(call, place, holder):
    ended = call("why", "--data", place)
    assert ended.code == 0, ended.err
    header, first, second = ended.out.splitlines()
    assert header.split()[:4] == ["query", "tenant", "status", "slots"]
    assert first.split()[:4] == [holder.first, "web", "running", "1"]
    assert second.split()[:4] == [holder.second, "night/batch", "waiting", "0"]
    assert "SELECT sum" in first
    assert holder.done not in ended.out


def test_the_list_as_json(call, place, holder):
    ended = call("why", "--data", place, "--json")
    first, second = json.loads(ended.out)
    assert (first["id"], first["status"]) == (holder.first, "running")
    assert second["deadline_s"] > 60
    assert second["forecast_end_s"] is None or second["forecast_end_s"] >= 0


def test_a_running_query(call, place, holder):
    ended = call("why", holder.first, "--data", place)
    assert ended.code == 0, ended.err
    assert ended.out.startswith(f"{holder.first} runs for ")


def test_a_waiting_query_says_what_holds_it(call, place, holder):
    ended = call("why", holder.second, "--data", place)
    assert ended.code == 0, ended.err
    headline, *reasons = ended.out.splitlines()
    assert headline.startswith(f"{holder.second} waits for ")
    assert reasons
    assert all(reason.startswith("- ") for reason in reasons)


def test_one_query_as_json(call, place, holder):
    told = json.loads(call("why", holder.second, "--data", place, "--json").out)
    assert (told["query"], told["status"]) == (holder.second, "waiting")
    assert told["reasons"]
    assert set(told["forecast"]) == {"query", "start_s", "end_s"}


def test_a_query_that_has_ended_is_looked_up_in_the_history(call, place, holder):
    ended = call("why", holder.done, "--data", place)
    assert ended.code == 0, ended.err
    assert ended.out.startswith(f"{holder.done} finished after ")
    assert "core-seconds of work were predicted" in ended.out
    told = json.loads(call("why", holder.done, "--data", place, "--json").out)
    assert (told["query"], told["outcome"]) == (holder.done, "finished")


def test_why_a_query_failed(call, place, holder):
    ended = call("why", holder.bad, "--data", place)
    assert ended.out.startswith(f"{holder.bad} failed after ")
    assert "out of luck" in ended.out


@pytest.mark.parametrize("name", ["unknown", "unknown-3"])
def test_an_unknown_query(call, place, holder, name):
    ended = call("why", name, "--data", place)
    assert ended.code == 2
    assert f"{name}: no query of this name is on its way or in the history" in ended.err
    assert "queryard why" in ended.err
    ended = call("why", f"{holder.session}-999", "--data", place)
    assert ended.code == 2
    assert "no query of this name" in ended.err


def test_where_no_session_is_open(call, alone):
    ended = call("why", "--data", alone)
    assert ended.code == 2
    assert f"no session is open on {alone}" in ended.err
    assert "queryard.connect" in ended.err
    ended = call("why", "some-1", "--data", alone)
    assert ended.code == 2
    assert "there is no history" in ended.err


def test_a_place_that_is_not_there(call, alone):
    for command in (("why",), ("why", "some-1"), ("profile",), ("profile", "fifo")):
        ended = call(*command, "--data", alone / "nowhere")
        assert ended.code == 2
        assert "no such file or folder" in ended.err


def test_the_place_may_be_a_file_of_the_data_or_in_the_environment(
    call, place, holder, monkeypatch
):
    monkeypatch.setenv("QUERYARD_DATA", str(place))
    assert holder.first in call("why").out
    monkeypatch.delenv("QUERYARD_DATA")
    monkeypatch.chdir(place)
    assert holder.first in call("why").out


# --- profile -------------------------------------------------------------------------------------


def test_the_policy_is_shown_and_changed_from_outside(call, place, holder):
    ended = call("profile", "--data", place)
    assert ended.code == 0, ended.err
    assert f"session {holder.session} (process {holder.process.pid}) follows fifo: " in ended.out
    ended = call("profile", "tls", "--data", place)
    assert ended.code == 0, ended.err
    assert "follows tls: " in ended.out
    assert holder.say("profile") == "tls"
    # What ran runs on.
    assert holder.first in call("why", "--data", place).out
    assert "follows fifo: " in call("profile", "fifo", "--data", place).out


def test_a_policy_of_the_users(call, place, holder, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text('[profiles.mine]\nbase = "priority"\nsummary = "As they come."\n')
    ended = call("profile", "mine", "--profiles", own, "--data", place)
    assert ended.code == 0, ended.err
    assert holder.say("profile") == "mine"
    assert "follows fifo: " in call("profile", "fifo", "--data", place).out


def test_parts_that_do_nothing_in_a_session_are_told(call, place, holder):
    told = call("profile", "locf", "--data", place).out
    assert "follows locf: " in told
    assert "placement 'locf' has no effect" in told
    assert "no effect" not in call("profile", "fifo", "--data", place).out


def test_an_unknown_policy_changes_nothing(call, place, holder):
    ended = call("profile", "tsl", "--data", place)
    assert ended.code == 2
    assert "tsl" in ended.err
    assert "tls" in ended.err
    assert holder.say("profile") == "fifo"


def test_a_policy_that_this_session_cannot_follow(call, place, holder, tmp_path):
    """It would add and remove slots, of which the session has a fixed number."""
    own = tmp_path / "own.toml"
    own.write_text('[profiles.grows]\nbase = "fifo"\nprovisioning = { name = "dlx" }\n')
    ended = call("profile", "grows", "--profiles", own, "--data", place)
    assert ended.code == 2
    assert f"session {holder.session} (process {holder.process.pid}): provisioning" in ended.err
    assert holder.say("profile") == "fifo"


def test_no_session_to_change(call, alone):
    for command in (("profile",), ("profile", "fifo")):
        ended = call(*command, "--data", alone)
        assert ended.code == 2
        assert "no session is open" in ended.err


# --- sessions that end ---------------------------------------------------------------------------


def test_after_the_session_is_closed_or_killed(call, alone):
    closes, dies = Holder(alone, "marshal"), Holder(alone)
    try:
        both = call("profile", "--data", alone).out
        assert "marshal" in both
        assert "fifo" in both
        assert closes.say("close") == "closed"
        left = call("profile", "--data", alone).out
        assert "marshal" not in left
        assert call("why", closes.first, "--data", alone).out.startswith(
            f"{closes.first} cancelled after"
        )
        dies.kill()
        ended = call("profile", "--data", alone)
        assert "no session is open" in ended.err
        assert not list((alone / ".queryard" / "sessions").iterdir())
        told = call("why", dies.first, "--data", alone).out
        assert "was under way when the process of its session ended" in told
        assert "slot-seconds" in told
        listed = call("history", "--data", alone, "--failed").out
        first = f"{dies.session[:4]}-3 "
        assert "lost" in next(line for line in listed.splitlines() if line.startswith(first))
        assert "open" not in listed
        assert "lost" in call("history", "--data", alone, "--sessions").out
    finally:
        closes.end()
        dies.end()


def test_a_session_that_does_not_answer_is_told_as_open(call, alone):
    holder = Holder(alone)
    try:
        holder.process.send_signal(signal.SIGSTOP)
        told = (
            f"session {holder.session} (process {holder.process.pid}) is open but has not answered"
        )
        for command in (("why", holder.first), ("profile",)):
            ended = call(*command, "--data", alone)
            assert ended.code == 2
            assert f"{told} within 2 s" in ended.err
            assert "no session is open" not in ended.err
        holder.process.send_signal(signal.SIGCONT)
        assert holder.first in call("why", "--data", alone).out
    finally:
        holder.end()


def test_sessions_that_answer_are_shown_beside_one_that_does_not(call, alone):
    answers, stopped = Holder(alone), Holder(alone)
    try:
        stopped.process.send_signal(signal.SIGSTOP)
        ended = call("why", "--data", alone)
        assert ended.code == 0
        assert answers.first in ended.out
        assert f"session {stopped.session} (process {stopped.process.pid}) is open but" in ended.err
    finally:
        answers.end()
        stopped.end()


# --- help ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["why", "profile"])
def test_help_says_what_is_asked_and_how(call, command):
    ended = call(command, "--help")
    assert ended.code == 0
    words = " ".join(ended.out.split())
    assert f"queryard {command} --data data/" in words
    assert "sessions" in words
    assert "--data" in words
    assert "history file itself" not in words


def test_several_sessions_are_not_changed_by_accident(monkeypatch):
    from queryard.cli import profile as command

    monkeypatch.setattr(command, "open_sessions", lambda data: ["session a", "session b"])
    with pytest.raises(QueryardError, match="session a, session b are open; name the data"):
        command._check_only_one(None)
    command._check_only_one("data/")
