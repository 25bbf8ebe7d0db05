"""Reading a history, also while sessions write to it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queryard.core.codec import decode_command, decode_event
from queryard.core.journal import Journal, Step

from .errors import HistoryError
from .rows import CostRow, ForecastRow, PastRow, QueryRecord, SessionRecord

if TYPE_CHECKING:
    from sqlalchemy import Select, Table

PAST_RUNS = 16


class HistoryReader:
    """Reads and changes nothing; close it, or use it with `with`. Use it from one thread."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        # A third of a second, which no session should wait for that only records.
        from . import schema, selections
        from .opening import open_for_reading

        self.file = Path(file)
        self._tables = schema
        self._selections = selections
        self._connection = open_for_reading(self.file)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> HistoryReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # --- sessions ----------------------------------------------------------------------------

    def sessions(self) -> list[SessionRecord]:
        """All of them, the oldest first."""
        gone = self._gone()
        rows = self._rows(self._selections.sessions())
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
        for number, row in enumerate(self._of(self._tables.steps, record.session, "number"), 1):
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
        limit: int | None = None,
        template: str | None = None,
        outcomes: Collection[str] | None = None,
    ) -> list[QueryRecord]:
        """The last `limit` queries, in the order they were asked for.

        `tenant` stands for those below it, too; `since` is in seconds since 1970. The outcome of a
        query without an end is "open" while its session lives, and "lost" once that is gone.
        """
        wanted = self._selections.queries(
            session, tenant, since, limit, template, outcomes, self._gone()
        )
        return [_query(row) for row in self._rows(wanted)]

    def past(self, limit: int = PAST_RUNS) -> list[PastRow]:
        """What the last `limit` queries of every template took, the oldest first."""
        return [PastRow(**row) for row in self._rows(self._selections.past(limit))]

    def forecasts(self, session: str) -> list[ForecastRow]:
        rows = self._of(self._tables.forecasts, session, "made_s")
        return [ForecastRow(**_without_session(row)) for row in rows]

    # --- the rest of a session ---------------------------------------------------------------

    def costs(self, session: str) -> list[CostRow]:
        rows = self._of(self._tables.costs, session, "time_s")
        return [CostRow(**_without_session(row)) for row in rows]

    def jobs(self, session: str) -> list[Mapping[str, Any]]:
        """Rows as in `schema.jobs`, like those of the four below; what is open has no end."""
        return self._of(self._tables.jobs, session, "submitted_s")

    def tasks(self, session: str) -> list[Mapping[str, Any]]:
        return self._of(self._tables.tasks, session, "launch")

    def leases(self, session: str) -> list[Mapping[str, Any]]:
        return self._of(self._tables.leases, session, "number")

    def estimates(self, session: str) -> list[Mapping[str, Any]]:
        return self._of(self._tables.estimates, session, "time_s")

    def policies(self, session: str) -> list[Mapping[str, Any]]:
        """Changes of the policy; the first one is the session's `profile`."""
        rows = self._of(self._tables.policies, session, "time_s")
        return [{**row, "profile": json.loads(row["profile"])} for row in rows]

    # --- all of it ---------------------------------------------------------------------------

    def export(self, folder: str | os.PathLike[str]) -> dict[str, int]:
        """Write one Parquet file a table into a folder; how many rows each has.

        All of them are of the same moment. Files of the same names are replaced.
        """
        from .export import export

        return export(self._connection, Path(folder))

    def _gone(self) -> list[str]:
        """Sessions that were killed."""
        from .presence import is_gone

        now = time.time()
        return [
            row["session"]
            for row in self._rows(self._selections.unclosed())
            if is_gone(self.file, row["session"], row["seen_at"], now)
        ]

    def _of(self, table: Table, session: str, order: str) -> list[Mapping[str, Any]]:
        wanted = self._selections.of_session(table, session, order)
        return list(self._rows(wanted))

    def _rows(self, wanted: Select[Any]) -> list[dict[str, Any]]:
        from sqlalchemy.exc import DatabaseError

        from .opening import reason_of

        try:
            with self._connection.begin():
                return [row._asdict() for row in self._connection.execute(wanted)]
        except DatabaseError as error:
            raise HistoryError(reason_of(error, str(self.file))) from error


def _without_session(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "session"}


def _session(row: dict[str, Any], lost: bool) -> SessionRecord:
    for name in ("settings", "profile"):
        row[name] = json.loads(row[name])
    return SessionRecord(**row, lost=lost)


def _query(row: dict[str, Any]) -> QueryRecord:
    for which in ("first", "last"):
        made_s, start_s, end_s = (row.pop(f"{which}_{name}") for name in _FORECAST)
        found = None if made_s is None else ForecastRow(row["query"], made_s, start_s, end_s)
        row[f"{which}_forecast"] = found
    return QueryRecord(**row)


_FORECAST = ("made_s", "start_s", "end_s")
