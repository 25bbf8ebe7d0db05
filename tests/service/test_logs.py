"""Lines of the log are written by a thread of their own, in order."""

from __future__ import annotations

import io
import json
import logging
import threading

from queryard.service import logs
from queryard.service.http import browsing
from queryard.service.logs import LOGGER, JsonLines, Later, Lines
from queryard.service.quack.listener import _told
from service.http.serving import a_server


class Stuck(io.StringIO):
    """A pipe that takes nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def write(self, text: str) -> int:
        self.go.wait(10)
        return super().write(text)


def test_a_pipe_that_takes_nothing_holds_up_no_event():
    stream = Stuck()
    handler = Later(stream)
    handler.setFormatter(Lines())
    for number in range(100):
        handler.handle(logging.makeLogRecord({"msg": f"event {number}"}))
    assert stream.getvalue() == ""
    stream.go.set()
    handler.flush()
    told = [line.split()[-1] for line in stream.getvalue().splitlines()]
    assert told == [str(number) for number in range(100)]


def test_lines_that_are_not_taken_are_dropped_and_counted(monkeypatch):
    monkeypatch.setattr(logs, "MOST_LINES", 50)
    stream = Stuck()
    handler = Later(stream)
    handler.setFormatter(Lines())
    for number in range(1000):
        handler.handle(logging.makeLogRecord({"msg": f"event {number}"}))
    stream.go.set()
    handler.flush()
    handler.handle(logging.makeLogRecord({"msg": "event last"}))
    handler.flush()
    lines = stream.getvalue().splitlines()
    lost = [line for line in lines if "dropped" in line]
    counts = [int(line.rpartition("lines=")[2]) for line in lost]
    assert "warning" in lost[0]
    assert 0 < len(lines) - len(lost) <= 110
    assert sum(counts) + len(lines) - len(lost) == 1001


def test_defects_of_listeners_are_told_in_the_form_of_the_log(tmp_path, monkeypatch):
    def fails(*_given):
        raise RuntimeError("a defect")

    monkeypatch.setattr(browsing, "principal_of", fails)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    with a_server(tmp_path) as server, server.client("ann") as ann, server.client("root") as root:
        LOGGER.addHandler(handler)
        try:
            assert ann.get("/v1/whoami").status_code == 500
            _told(RuntimeError("another one"))
        finally:
            LOGGER.removeHandler(handler)
        kept = [line["event"] for line in root.get("/v1/logs").json()["lines"]]
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    events = ["GET /v1/whoami failed", "a request of Quack failed"]
    assert [line["event"] for line in told if line["level"] == "error"] == events
    assert all("RuntimeError" in line["traceback"] for line in told if line["level"] == "error")
    assert [event for event in kept if event in events] == events
