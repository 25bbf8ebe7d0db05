"""Lines of the log are written by a thread of their own, in order."""

from __future__ import annotations

import io
import logging
import threading

from queryard.service.logs import Later, Lines


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
