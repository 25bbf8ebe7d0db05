"""Reading a history, also while sessions write to it."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from queryard.core.codec import decode_command, decode_event
from queryard.core.events import Event
from queryard.core.journal import Journal, Step
from queryard.core.model import JobId

from . import selections
from .errors import HistoryError
from .export import export
from .opening import open_for_reading, reason_of
from .presence import is_gone
from .rows import CostRow, DoneRow, ForecastRow, LearntRow, PastRow, QueryRecord, SessionRecord

PAST_RUNS = 16
# Rows that are taken from SQLite at once.
PART = 10_000


class HistoryReader:
    """Reads and changes nothing; close it, or use it with `with`. Use it from one thread."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self.file = Path(file)
        self._connection = open_for_reading(self.file)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # --- sessions ----------------------------------------------------------------------------

    def sessions(self) -> list[SessionRecord]:
        """All of them, the oldest first."""
        gone = self._gone()
        rows = self._rows(selections.SESSIONS)
        return [_session(row, row["session"] in gone) for row in rows]

    def session(self, name: str | None = None) -> SessionRecord:
        """One by its name or the beginning of it; the last one without a name."""
        known = self.sessions()
        if not known:
            raise HistoryError(f"{self.file}: no session has been recorded yet")
        if name is None:
            return known[-1]
        found = [record for record in known if record.session.startswith(name)]
        exact = [record for record in found if record.session == name]
        if len(exact or found) != 1:
            listed = ", ".join(record.session for record in (found or known)[-5:])
            problem = "several sessions begin with" if found else "there is no session"
            raise HistoryError(f"{self.file}: {problem} {name!r}; there are {listed}")
        return (exact or found)[0]

    def journal(self, session: str) -> Journal:
        """All steps of a session, with what its kernel was started with."""
        record = self.session(session)
        journal = Journal(record.settings, record.profile)
        for number, row in enumerate(self._of("steps", record.session, "number"), 1):
            if row["number"] != number:
                raise HistoryError(
                    f"session {record.session}: its steps begin with {row['number']}, because the "
                    "history has grown beyond what is kept; keep more (Retention.max_bytes), or "
                    "choose another session"
                )
            where = f"session {record.session}, step {number}"
            journal.steps.append(
                Step(
                    row["time_s"],
                    tuple(decode_event(item, where) for item in json.loads(row["events"])),
                    tuple(decode_command(item, where) for item in json.loads(row["commands"])),
                )
            )
        return journal

    # --- queries -----------------------------------------------------------------------------

    def queries(
        self,
        session: str | None = None,
        tenant: str | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int | None = None,
        template: str | None = None,
        outcomes: Collection[str] | None = None,
        query: str | None = None,
    ) -> list[QueryRecord]:
        """The last `limit` queries, in the order they were asked for.

        `tenant` stands for those below it, too; `since` and `until` are in seconds since 1970. The
        outcome of a query without an end is "open" while its session lives, and "lost" once that is
        gone.
        """
        chosen = {
            "query": query,
            "session": session,
            "tenant": tenant,
            "since": since,
            "until": until,
            "template": template,
            "outcomes": None if outcomes is None else json.dumps(list(outcomes)),
        }
        wanted = selections.queries([name for name, value in chosen.items() if value is not None])
        rows = self._rows(
            wanted,
            **chosen,
            limit=-1 if limit is None else limit,  # SQLite takes -1 for all
            gone=json.dumps(self._gone()),
        )
        return [_query(row) for row in rows]

    def past(self, limit: int = PAST_RUNS) -> list[PastRow]:
        """What the last `limit` queries of every template took, the oldest first."""
        return [PastRow(**row) for row in self._rows(selections.PAST, limit=limit)]

    def learnt(self) -> list[LearntRow]:
        """What each model has learnt."""
        rows = self._rows("SELECT model, saved_at, state FROM learnt ORDER BY model")
        return [LearntRow(row["model"], row["saved_at"], json.loads(row["state"])) for row in rows]

    def done(self, tenant: str, key: str) -> DoneRow | None:
        """The statement with side effects that a tenant has begun under an idempotency key."""
        wanted = "SELECT * FROM done WHERE tenant = :tenant AND key = :key"
        rows = self._rows(wanted, tenant=tenant, key=key)
        return DoneRow(**_without_session(rows[0])) if rows else None

    def forecasts(self, session: str) -> list[ForecastRow]:
        rows = self._of("forecasts", session, "made_s")
        return [ForecastRow(**_without_session(row)) for row in rows]

    # --- the rest of a session ---------------------------------------------------------------

    def costs(self, session: str) -> list[CostRow]:
        rows = self._of("costs", session, "time_s")
        return [CostRow(**_without_session(row)) for row in rows]

    def jobs(self, session: str) -> list[Mapping[str, Any]]:
        """Rows of the table, like those of the four below; what is open has no end."""
        return self._of("jobs", session, "submitted_s")

    def tasks(self, session: str) -> list[Mapping[str, Any]]:
        return self._of("tasks", session, "launch")

    def rides(self, session: str) -> dict[str, dict[str, int]]:
        """Which queries rode together: of each, how many reads it has shared with each other."""
        riders: dict[int, list[str]] = {}
        for row in self.tasks(session):
            riders.setdefault(row["launch"], []).append(JobId.of(row["job"]).query)
        found: dict[str, dict[str, int]] = {}
        for queries in riders.values():
            for query in queries if len(queries) > 1 else ():
                shared = found.setdefault(query, {})
                for other in queries:
                    if other != query:
                        shared[other] = shared.get(other, 0) + 1
        return found

    def leases(self, session: str) -> list[Mapping[str, Any]]:
        return self._of("leases", session, "number")

    def estimates(self, session: str) -> list[Mapping[str, Any]]:
        return self._of("estimates", session, "time_s")

    def policies(self, session: str) -> list[Mapping[str, Any]]:
        """Changes of the policy; the first one is the session's `profile`."""
        rows = self._of("policies", session, "time_s")
        return [{**row, "profile": json.loads(row["profile"])} for row in rows]

    # --- of a span of time -------------------------------------------------------------------

    def jobs_of_span(self, session: str, from_s: float, until_s: float) -> list[Mapping[str, Any]]:
        """Rows of jobs of the queries that were asked in a span of the session's clock."""
        return list(self._rows(selections.SPAN_JOBS, session=session, low=from_s, high=until_s))

    def task_times(
        self, session: str, from_s: float, until_s: float
    ) -> dict[tuple[str, str], float]:
        """The mean seconds of tasks that gave a result, by job and kind, of such queries."""
        rows = self._rows(selections.SPAN_TASKS, session=session, low=from_s, high=until_s)
        return {(row["job"], row["kind"]): row["mean_s"] for row in rows}

    def events(self, session: str, kind: str, from_s: float, until_s: float) -> list[Event]:
        """Events of one kind, by the name of its class, that are kept of a span."""
        rows = self._rows(
            selections.SPAN_EVENTS,
            session=session,
            low=from_s,
            high=until_s,
            kind=f'%"type":"{kind}"%',
        )
        found = [item for row in rows for item in json.loads(row["events"])]
        where = f"session {session}"
        return [decode_event(item, where) for item in found if item["type"] == kind]

    # --- all of it ---------------------------------------------------------------------------

    def export(self, folder: str | os.PathLike[str]) -> dict[str, int]:
        """Write one Parquet file per table into a folder; how many rows each has.

        All of them are of the same moment. Files of the same names are replaced.
        """
        return export(self._connection, Path(folder))

    def _gone(self) -> list[str]:
        """Sessions that were killed."""
        now = time.time()
        return [
            row["session"]
            for row in self._rows(selections.UNCLOSED)
            if is_gone(self.file, row["session"], row["seen_at"], now)
        ]

    def _of(self, table: str, session: str, order: str) -> list[Mapping[str, Any]]:
        """All rows of a session, in an order; equal ones as they were written."""
        wanted = f"SELECT * FROM {table} WHERE session = :session ORDER BY {order}, rowid"
        return list(self._rows(wanted, session=session))

    def _rows(self, wanted: str, **values: str | float | None) -> list[dict[str, Any]]:
        try:
            return [dict(row) for row in self._connection.execute(wanted, values)]
        except sqlite3.Error as error:
            raise HistoryError(reason_of(error, str(self.file))) from error

    def _tuples(
        self, wanted: str, values: Mapping[str, str | float | None]
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Very many rows, some at a time."""
        try:
            found = self._connection.cursor()
            found.row_factory = None
            found.execute(wanted, values)
            while part := found.fetchmany(PART):
                yield part
        except sqlite3.Error as error:
            raise HistoryError(reason_of(error, str(self.file))) from error


def _without_session(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "session"}


def _session(row: dict[str, Any], lost: bool) -> SessionRecord:
    for name in ("settings", "profile"):
        row[name] = json.loads(row[name])
    return SessionRecord(**row, lost=lost)


def _query(row: dict[str, Any]) -> QueryRecord:
    del row["row"]
    for which in ("first", "last"):
        made_s, start_s, end_s = (row.pop(f"{which}_{name}") for name in _FORECAST)
        found = None if made_s is None else ForecastRow(row["query"], made_s, start_s, end_s)
        row[f"{which}_forecast"] = found
    return QueryRecord(**row)


_FORECAST = ("made_s", "start_s", "end_s")
