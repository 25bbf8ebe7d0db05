"""What a server writes on stderr: one line per event, as text or JSON, with the ids of queries."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import warnings
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any, TextIO

from .config import LogFormat

# How long the end of a process waits for its last lines to be written.
FLUSH_S = 2.0
# Lines of this time are written together: a thread that is woken for each costs more than the line.
GATHER_S = 0.05
# Lines that wait to be written, where a terminal or a pipe takes nothing; others are dropped.
MOST_LINES = 10_000
LOGGER = logging.getLogger("queryard.service")
# Of these libraries only warnings are told, in our form.
_OTHERS = ("uvicorn", "uvicorn.error", "asyncio", "py.warnings")


def log(event: str, level: int = logging.INFO, **fields: object) -> None:
    """Write an event with its fields, of which None is left out."""
    if not LOGGER.isEnabledFor(level):
        return
    told = {name: value for name, value in fields.items() if value is not None}
    # Without `LOGGER.log`, which looks for the place in the code: no line has it.
    LOGGER.handle(
        LOGGER.makeRecord(LOGGER.name, level, "", 0, event, (), None, extra={"fields": told})
    )


def set_up(form: LogFormat, stream: TextIO | None = None) -> None:
    """Write the events of this process in a form; once per process."""
    handler = Later(sys.stderr) if stream is None else logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if form == "json" else Lines())
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    logging.captureWarnings(True)
    # A warning tells where in Queryard's code it came from, which says nothing to an operator.
    warnings.formatwarning = lambda message, *_rest, **_more: str(message)
    for name in _OTHERS:
        other = logging.getLogger(name)
        other.handlers[:] = [handler]
        other.setLevel(logging.WARNING)
        other.propagate = False


class Later(logging.StreamHandler[TextIO]):
    """Writes on a thread of its own: the end of a query is told by the scheduler's thread.

    A terminal or a pipe that takes nothing would hold up every query.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._records: SimpleQueue[logging.LogRecord | threading.Event] = SimpleQueue()
        self._dropped = 0
        threading.Thread(target=self._write, name="queryard-log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        if self._records.qsize() < MOST_LINES:
            self._records.put(record)
        else:
            self._dropped += 1

    def flush(self) -> None:
        """Wait until all that was told so far is written, for a while."""
        done = threading.Event()
        self._records.put(done)
        done.wait(FLUSH_S)

    def _write(self) -> None:
        while True:
            first = self._records.get()
            time.sleep(GATHER_S)
            told = [first, *(self._records.get() for _ in range(self._records.qsize()))]
            records = [each for each in told if isinstance(each, logging.LogRecord)]
            if self._dropped:
                records.append(self._lost())
            try:
                lines = (self.format(record) + self.terminator for record in records)
                self.stream.write("".join(lines))
                self.stream.flush()
            except Exception:  # as `StreamHandler` does
                if records:
                    self.handleError(records[-1])
            for done in told:
                if isinstance(done, threading.Event):
                    done.set()

    def _lost(self) -> logging.LogRecord:
        """A line that tells how many are missing."""
        count, self._dropped = self._dropped, 0
        told = {"msg": "lines of the log were dropped: they were not taken in time"}
        level = {"levelno": logging.WARNING, "levelname": "WARNING"}
        return logging.makeLogRecord({**told, **level, "fields": {"lines": count}})


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, event, and the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": _when(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str, ensure_ascii=False)


class Lines(logging.Formatter):
    """One line of text: time, level, event, `name=value` for each field."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        told = " ".join(f"{name}={_value(value)}" for name, value in fields.items())
        when = _when(record).strftime("%Y-%m-%d %H:%M:%S")
        message = " ".join(record.getMessage().split())
        line = f"{when} {record.levelname.lower():<7} {message}{'  ' if told else ''}{told}"
        return line + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else "")


def _when(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _value(value: object) -> str:
    """A value on one line, in quotes where it has blanks.

    >>> _value("a b"), _value(1.5), _value("x")
    ('"a b"', '1.5', 'x')
    """
    text = str(value)
    return text if text and text.isprintable() and " " not in text else json.dumps(text)
