"""The last lines of the server's log, for its admins; secrets are left out."""

from __future__ import annotations

import itertools
import logging
import re
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ..logs import LOGGER

Level = Literal["info", "warning", "error"]
KEPT = 5_000
CHARACTERS = 1_000
FIELDS = 30
# Beside our own, libraries that tell what goes wrong.
LOGGERS = (LOGGER.name, "uvicorn.error", "asyncio", "py.warnings")
_SECRET = re.compile(
    r"qy_[\w-]{6,}|(?<=bearer )\S{6,}|(?<=basic )\S{6,}"
    r"|(?<=password=)\S+|(?<=secret=)\S+|(?<=token=)qy\S+",
    re.IGNORECASE,
)
HIDDEN = "…"


def without_secrets(text: str) -> str:
    """A text without what looks like a token or a password.

    >>> without_secrets("Authorization: Bearer qy_abcdefgh123, password=x")
    'Authorization: Bearer …, password=…'
    """
    return _SECRET.sub(HIDDEN, text)


class Line(NamedTuple):
    """One event of the log; numbers go up by one.

    The first is the time in microseconds, so that the lines of a server that was started again come
    after those of the one before it.
    """

    seq: int
    at: float
    level: str
    number: int
    event: str
    text: str
    fields: Mapping[str, Any]


class LogRing(logging.Handler):
    """Keeps the last lines; `attach` it, and `detach` it at the end."""

    def __init__(self, redacts: bool) -> None:
        super().__init__(logging.INFO)
        self._redacts = redacts
        self._last = time.time_ns() // 1000
        # Lines are written out when they are shown: most never are.
        self._lines: deque[_Kept] = deque(maxlen=KEPT)
        self._guard = threading.Lock()

    def attach(self) -> None:
        """Hear of what is logged from now on, in this process."""
        for name in LOGGERS:
            logging.getLogger(name).addHandler(self)
        if LOGGER.level == logging.NOTSET:
            LOGGER.setLevel(logging.INFO)

    def detach(self) -> None:
        for name in LOGGERS:
            logging.getLogger(name).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            given = itertools.islice(getattr(record, "fields", {}).items(), FIELDS)
            fields = {str(name): _kept(value) for name, value in given}
            error = ""
            if record.exc_info and record.exc_info[1] is not None:
                error = self._error(record.exc_info[1])
            event = record.getMessage()[: 2 * CHARACTERS]
            with self._guard:
                self._last += 1
                self._lines.append(
                    _Kept(self._last, record.created, record.levelno, event, error, fields)
                )
        except Exception:
            self.handleError(record)

    def _error(self, error: BaseException) -> str:
        """An error by its kind; what it says may quote values."""
        kind = type(error).__name__
        return kind if self._redacts else without_secrets(f"{kind}: {error}")

    def lines(self, after: int | None, level: Level, limit: int) -> tuple[list[Line], int]:
        """The next lines after a number, or the last ones; and the number of the last of all."""
        least = getattr(logging, level.upper())
        with self._guard:
            found = [line for line in self._lines if line.number >= least]
            last = self._last
        # A number that is not reached yet is of another server, whose clock was ahead.
        if after is None or after > last:
            shown = found[-limit:]
        else:
            shown = [line for line in found if line.seq > after][:limit]
        return [_shown(line) for line in shown], last


class _Kept(NamedTuple):
    """An event as it was told."""

    seq: int
    at: float
    number: int
    event: str
    error: str
    fields: Mapping[str, Any]


def _kept(value: object) -> Any:
    """A value of a field that holds nothing else."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)[: 2 * CHARACTERS]


def _shown(kept: _Kept) -> Line:
    """A line without secrets."""
    fields = {
        name: without_secrets(value)[:CHARACTERS] if isinstance(value, str) else value
        for name, value in kept.fields.items()
    }
    text = " ".join(f"{name}={value}" for name, value in fields.items())
    text = f"{text} {kept.error}".strip()[:CHARACTERS]
    event = without_secrets(kept.event)[:CHARACTERS]
    level = logging.getLevelName(kept.number).lower()
    return Line(kept.seq, round(kept.at, 3), level, kept.number, event, text, fields)


def log_document(lines: list[Line], last: int) -> dict[str, Any]:
    """Lines as plain data, with the fields that pages look for."""
    return {
        "lines": [
            {
                "seq": line.seq,
                "at": line.at,
                "level": line.level,
                "event": line.event,
                "text": line.text,
                "query": line.fields.get("query"),
                "tenant": line.fields.get("tenant"),
                "fields": line.fields,
            }
            for line in lines
        ],
        "last": lines[-1].seq if lines and lines[-1].seq < last else last,
    }
