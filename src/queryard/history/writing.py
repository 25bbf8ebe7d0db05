"""What the thread of a `History` does: rows into the file, in short transactions."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from queryard.core.codec import encode, encode_named
from queryard.core.journal import Step

from .errors import HistoryError
from .fold import Fold, Row, compact
from .opening import is_busy, open_for_writing
from .presence import Presence
from .retention import Retention
from .rows import (
    AskedRow,
    CostRow,
    DoneRow,
    EndedRow,
    ForecastRow,
    HeldRow,
    LearntRow,
    Recorded,
    SessionRow,
)
from .schema import INSERT
from .tidying import give_sign_of_life, tidy

TIDY_EVERY_S = 3600.0
# A part of the tidying after each commit, so that rows never wait for it.
TIDY_PART_S = 0.05
# Rows that may wait for another connection's lock before recording is given up.
MOST_WAITING = 200_000

_TABLE = {
    AskedRow: "asked",
    EndedRow: "ended",
    ForecastRow: "forecasts",
    HeldRow: "held",
    CostRow: "costs",
    DoneRow: "done",
}


class Writer:
    """One connection, the rows that wait to be committed, and what is folded out of the steps."""

    def __init__(self, file: Path, keep: Retention) -> None:
        self._file = file
        self._keep = keep
        self._connection = open_for_writing(file)
        self._session: SessionRow | None = None
        self._presence: Presence | None = None
        self._steps = 0
        self._fold = Fold()
        self._rows: dict[str, list[Row]] = {name: [] for name in INSERT}
        self._waiting = 0
        # Template of the queries on their way, of those that run on their own.
        self._templates: dict[str, str] = {}
        self._tidying: Iterator[None] | None = None
        self._tidy_at = time.monotonic()

    @property
    def rest_s(self) -> float:
        """How long there is nothing to do unless something is recorded."""
        if self._waiting or self._tidying is not None:
            return TIDY_PART_S
        return max(TIDY_PART_S, self._tidy_at - time.monotonic())

    # --- from records to rows ----------------------------------------------------------------

    def add(self, record: Recorded) -> None:
        """Take a record; `commit` writes it."""
        if isinstance(record, SessionRow):
            self._begin(record)
            return
        if self._session is None:
            raise HistoryError(f"{self._file}: {record!r} belongs to no session; begin one first")
        if isinstance(record, Step):
            self._add_step(record)
            return
        if isinstance(record, LearntRow):
            self._rows["learnt"].append({**_values(record), "state": compact(record.state)})
            self._waiting += 1
            return
        self._put(_TABLE[type(record)], _values(record))
        if isinstance(record, AskedRow):
            # What staged execution takes says nothing of what a template takes natively.
            if not record.twin_of and record.plan != "staged":
                self._templates[record.query] = record.template
        elif isinstance(record, EndedRow):
            self._learn(record, self._session.began_at)

    def _put(self, table: str, row: Row) -> None:
        assert self._session is not None
        row["session"] = self._session.session
        self._rows[table].append(row)
        self._waiting += 1

    def _begin(self, record: SessionRow) -> None:
        self._leave()
        self._session = record
        self._presence = Presence(self._file, record.session)
        row = _values(record)
        for name in ("settings", "profile"):
            row[name] = compact(encode(row[name]))
        self._put("sessions", {**row, "seen_at": time.time(), "closed_at": None})

    def _add_step(self, step: Step) -> None:
        self._steps += 1
        row = {
            "number": self._steps,
            "time_s": step.time_s,
            "events": compact([encode_named(event) for event in step.events]),
            "commands": compact([encode_named(command) for command in step.commands]),
        }
        self._put("steps", row)
        self._fold.see(step)

    def _learn(self, record: EndedRow, began_at: float) -> None:
        template = self._templates.pop(record.query, None)
        if template is None or record.outcome != "finished":
            return
        self._rows["past"].append(
            {
                "template": template,
                "ended_at": began_at + record.time_s,
                "work_s": record.work_s,
                "held_s": record.held_s,
                "peak_memory_bytes": record.peak_memory_bytes,
                "table_bytes": record.table_bytes,
            }
        )

    # --- into the file -----------------------------------------------------------------------

    def commit(self) -> bool:
        """Write what waits, in one transaction; whether nothing waits any more.

        While another connection holds the file, it goes on waiting.
        """
        for table, rows in self._fold.take().items():
            for row in rows:
                self._put(table, row)
        if self._waiting:
            try:
                with self._connection as connection:
                    connection.execute("BEGIN IMMEDIATE")
                    for table, rows in self._rows.items():
                        connection.executemany(INSERT[table], rows)
            except sqlite3.Error as error:
                if not is_busy(error) or self._waiting > MOST_WAITING:
                    raise
                return False
            for rows in self._rows.values():
                rows.clear()
            self._waiting = 0
        self._tidy()
        return True

    def _tidy(self) -> None:
        """Go on with the tidying for a moment, or begin it if it is time."""
        if self._tidying is None:
            if self._session is None or time.monotonic() < self._tidy_at:
                return
            self._tidy_at = time.monotonic() + TIDY_EVERY_S
            self._tidying = tidy(self._connection, self._file, self._keep, self._session.session)
        until = time.monotonic() + TIDY_PART_S
        try:
            for _ in self._tidying:
                if time.monotonic() > until:
                    return
        except sqlite3.Error as error:
            if not is_busy(error):
                raise
        self._tidying = None

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._session is not None:
                self._mark_closed(self._session.session)
        self._connection.close()
        self._leave()

    def _mark_closed(self, session: str) -> None:
        now = time.time()
        with self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            give_sign_of_life(connection, session, now)
            connection.execute(
                "UPDATE sessions SET closed_at = ? WHERE session = ?", (now, session)
            )

    def _leave(self) -> None:
        if self._presence is not None:
            self._presence.end()
            self._presence = None


def _values(
    record: (
        SessionRow | AskedRow | EndedRow | ForecastRow | HeldRow | CostRow | DoneRow | LearntRow
    ),
) -> Row:
    """The fields of a record; `asdict` would copy every value, which takes ten times as long."""
    return {name: getattr(record, name) for name in record.__slots__}
